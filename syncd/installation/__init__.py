"""Installation prepares a vault for Memex, packs and restores backups, and registers the daemon with systemd or launchd."""
