"""Run the main entry point of `memex` as `python -m syncd.cli`."""

from memex_vault import main

if __name__ == "__main__":
    main()
