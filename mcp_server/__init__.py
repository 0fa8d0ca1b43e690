"""The MCP and REST server offers the daemon's operations to agents, behind one guard."""
