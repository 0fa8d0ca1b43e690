"""What the notes say, made findable: chunking, encoding, storing and searching.

Knows nothing of files on disk, Git or MCP; `tests/test_architecture.py` holds that."""
