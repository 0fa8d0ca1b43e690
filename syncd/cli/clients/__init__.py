"""Client connections give each MCP client a key of its own, and print its settings or write them into its settings file."""
