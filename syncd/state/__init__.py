"""The state folder holds everything that Memex stores outside the vault; this package locates it, locks it and the vault for one process, and opens the ledger in it."""
