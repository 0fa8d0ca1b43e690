"""The capture writer creates, updates and deletes notes in the inbox; when a call returns, the note is on disk and searchable."""
