"""Client connections give each MCP client its own key, and print its settings or write them into its settings file."""
