"""Measurements of the whole, by one command: `python -m tests.bench` (or `make bench`)."""
