"""Whether a lock is held, also where the system hides the processes of other users."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from syncd.git import stale_locks
from syncd.git.stale_locks import is_held

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="another system counts each lock as held")


@pytest.fixture
def hidden(monkeypatch):
    """A list of processes with one that this user may not look into, as with the mount option hidepid=1."""
    folder = Path(tempfile.mkdtemp())
    process = folder / "1234"
    process.mkdir()
    (process / "comm").write_text("git\n")
    folder.chmod(0o755)
    process.chmod(0)
    monkeypatch.setattr(stale_locks, "PROCESSES", folder, raising=False)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    yield
    if is_root:
        os.seteuid(0)
    process.chmod(0o700)
    shutil.rmtree(folder)


def test_a_lock_that_nobody_has_is_free_and_an_open_one_is_held(tmp_path):
    lock = tmp_path / "index.lock"
    lock.touch()
    assert not is_held(lock, tmp_path)
    with lock.open():
        assert is_held(lock, tmp_path)


def test_a_lock_counts_as_held_if_a_process_cannot_be_looked_into(hidden):
    lock = Path("/index.lock")
    assert is_held(lock, Path("/"))
