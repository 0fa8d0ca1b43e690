"""Run the command `memex` as `python -m syncd.cli`, as installed service units do."""

from syncd.cli.main import main

if __name__ == "__main__":
    main()
