"""A place for uploads: a state folder with a queue, which processes open one after another."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from syncd.jobs.queue import Queue
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger
from syncd.uploads.upload_sessions import Uploads
from tests.support.fresh_ledger import put_ledger

SMALL = KbSettings(max_file=50_000, staged=100_000, uploads=4, free=0)


class Place:
    """A state folder with its ledger; `uploads` is the view of one process."""

    def __init__(self, folder, settings=SMALL):
        self.state, self.vault = folder / "state", folder / "vault"
        self.state.mkdir(mode=0o700)
        self.vault.mkdir()
        self.now = 1_790_000_000_000
        self.settings = settings
        self.ledger = Ledger.open(put_ledger(self.state))
        self.again()

    def again(self):
        """Return the place as the next process opens it."""
        self.queue = Queue(self.ledger, self.state, self.settings, now=lambda: self.now)
        self.uploads = Uploads(self.state, self.queue, self.settings, vault=self.vault, now=lambda: self.now)

    def start(self, size, key="k1", workspace="default", **more):
        return self.uploads.start(key, workspace, filename="a.md", total_size=size, **more).upload_id

    def chunk(self, id, index, data, key="k1", workspace="default"):
        return self.uploads.put_chunk(key, workspace, id, index, data)

    def finish(self, id, key="k1", workspace="default"):
        return self.uploads.finish(key, workspace, id)

    def staged(self, job):
        return (self.state / "staged" / job.id).read_bytes()

    @property
    def left(self):
        """Return all files in the folder of uploads."""
        root = self.state / "uploads"
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@contextmanager
def refused(error, why=""):
    """Expect this error, and check that it names no path of this machine."""
    told = SimpleNamespace()
    with pytest.raises(error, match=why or None) as raised:
        yield told
    assert "/" not in raised.value.message.replace("0-9 + /", "")
    told.error = raised.value
