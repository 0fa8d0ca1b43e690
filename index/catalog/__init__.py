"""The catalog records in SQLite what Memex knows about each indexed file, except its text."""
