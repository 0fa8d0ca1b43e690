"""One reader for each type of file; they run in the child process only."""
