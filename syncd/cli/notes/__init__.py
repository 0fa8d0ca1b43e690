"""Note commands capture, search, update, promote, review and undo notes and files."""
