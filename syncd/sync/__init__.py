"""The sync pipeline compares the vault with the index and updates the index, whatever caused the change."""
