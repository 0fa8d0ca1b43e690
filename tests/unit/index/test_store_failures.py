"""Failures of LanceDB: what a caller sees, and what the log says of their causes."""

from __future__ import annotations

from index import store_failures
from index.errors import IndexUnusable, Unavailable


def test_a_cause_is_logged_once_a_minute(monkeypatch, caplog):
    now = [1_000.0]
    monkeypatch.setattr(store_failures, "_LOGGED", {})
    monkeypatch.setattr("index.store_failures.time.monotonic", lambda: now[0])
    for _ in range(3):
        store_failures.log_cause(RuntimeError("something of the disk\nand more"))
    store_failures.log_cause(OSError("something of the disk"))
    now[0] += store_failures.AGAIN_S
    store_failures.log_cause(OSError("something of the disk"))
    assert [record.message for record in caplog.records] == [
        "the store failed: RuntimeError: something of the disk and more",
        "the store failed: OSError: something of the disk",
        "the store failed: OSError: something of the disk",
    ]


def test_a_caller_sees_no_path_and_no_value():
    full = store_failures.to_unavailable(OSError("/home/ada/secret: No space left on device"))
    other = store_failures.to_unavailable(RuntimeError("/home/ada/secret is broken"))
    assert (type(full), "the disk is full" in full.message) == (Unavailable, True)
    assert (type(other), "memex index --full" in other.message) == (IndexUnusable, True)
    assert "ada" not in full.message + other.message
