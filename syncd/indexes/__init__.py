"""Index builds are the versions of the search index on disk; this package creates and switches them, and looks notes up in them by id, path or name."""
