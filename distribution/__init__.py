"""How Memex is built: the bundled model's files, and the hooks that put them into wheels and checkouts."""
