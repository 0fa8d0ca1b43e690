"""Promotion moves a capture into the vault when its owner asks for it, updates the links to and from it, and can move it back."""
