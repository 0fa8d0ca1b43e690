"""The rim: MCP and REST dialects of the operations in `syncd`, behind one guard."""
