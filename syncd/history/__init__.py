"""The audit log records every write that Memex makes, and the history keeps overwritten versions so that writes can be shown and undone."""
