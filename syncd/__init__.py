"""The daemon: keeps the index true to the vault, and carries out what agents and people ask of it."""
