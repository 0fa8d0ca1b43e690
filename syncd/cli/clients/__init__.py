"""The command `connect` connects MCP clients, prints their settings, and lists the connected ones."""
