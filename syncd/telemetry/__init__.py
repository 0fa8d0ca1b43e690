"""Logs, metrics and traces report to operators what the daemon does."""
