"""Sharing decides which notes of the vault the agents of a workspace may read, and reads only those notes for them."""
