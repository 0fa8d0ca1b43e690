"""Sample vaults serve the demo and the tests: a realistic vault, and a vault with every shape that a file can have."""
