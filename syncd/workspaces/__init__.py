"""Workspaces are the only way from MCP and REST to the captures: this package checks API keys and runs the operations of one workspace."""
