"""The watcher reports which paths of the vault may have changed, and when it may have missed an event."""
