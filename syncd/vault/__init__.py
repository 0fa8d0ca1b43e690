"""The vault layer reads, lists and atomically writes files below the vault's root, and never follows a path out of it."""
