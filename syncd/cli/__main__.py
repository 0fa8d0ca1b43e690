"""Run the main entry point of `memex` as `python -m syncd.cli`."""

from syncd.cli.main import main

if __name__ == "__main__":
    main()
