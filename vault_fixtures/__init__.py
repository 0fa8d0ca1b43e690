"""Sample vaults: `demo`, a believable one to try Memex on, and `gnarly`, every shape that a file can have."""
