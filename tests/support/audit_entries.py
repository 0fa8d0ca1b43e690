"""Provide changes for the audit log, a ledger that refuses to log them, and a short form of the log's entries."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager

from syncd.history.audit_log import Change


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


def change(path="Captures/default/a.md", before="", after="1", **more):
    return Change(path, before, after, more.pop("bytes", 3), more.pop("id", "i"), more.pop("type", "note"), "default")


def log_write(audit, change):
    """Log one write, and return the number of its entry."""
    return audit.log_writes([change])[0]


@contextmanager
def unwritable(ledger):
    """A ledger that SQLite refuses to write."""
    ledger._connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        ledger._connection.execute("PRAGMA query_only = OFF")


def told(world, after=0):
    """Return the entries of the log in a short form."""
    return [(entry.kind, entry.surface, entry.tool, entry.path) for entry in world.app.opened.audit.entries(after + 1)]


def owner(world, name, **given):
    return world.app.operations[name](given, lambda _: None)
