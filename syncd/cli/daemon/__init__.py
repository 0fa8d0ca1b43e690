"""Daemon commands run, inspect and configure Memex itself: serve, status, service, doctor, keys, jobs, audit, Git and backup."""
