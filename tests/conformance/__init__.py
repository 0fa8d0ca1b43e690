"""The public MCP conformance suite, run on our server: `python -m tests.conformance`, or `make conformance`."""
