"""An index keeps the catalog and the stores of one scope (the inbox, or the rest of the vault) consistent, and prepares, commits and reads its documents."""
