"""The remote synchronizer fetches, merges and pushes the vault's Git branch, and verifies push webhooks."""
