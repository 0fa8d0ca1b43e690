"""Client connections give each MCP client a key of its own, compose its settings and write them into its settings file."""
