"""Sample vaults: what Memex is for, and every shape that a file can have."""
