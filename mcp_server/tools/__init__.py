"""The tool families, one module each."""
