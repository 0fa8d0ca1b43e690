"""An operation checks the caller's key, validates the arguments, runs off the event loop and shapes errors, in the same way for MCP and REST."""
