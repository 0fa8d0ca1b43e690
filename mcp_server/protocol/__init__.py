"""The MCP layer serves tools, resources, prompts, completions, subscriptions and progress on every transport."""
