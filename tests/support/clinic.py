"""The clinic: a vault for tests of `memex doctor`, and the doctor's findings."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace

from syncd.app import App
from syncd.cli.doctor.doctor import examine
from syncd.settings.settings import ServerSettings
from tests.support.fakes import fake_embedder
from tests.support.world import settings_of


class Clinic:
    """A healthy vault that a daemon has served, and the doctor's checks of it."""

    def __init__(self, folder, models):
        self.vault, self.state = folder / "vault", folder / "state"
        (self.vault / "Captures/default").mkdir(parents=True)
        (self.vault / "A.md").write_text("# A\n\nwords of a note")
        (self.vault / "Captures/default/C.md").write_text("words of a capture")
        self.settings = replace(settings_of(self.vault, self.state), server=ServerSettings(port=0))
        with self.opened() as app:
            app.opened.sync.run(accept=True)
        shutil.copytree(models, self.state / "models")

    def opened(self):
        return App(self.settings, embedder=fake_embedder())

    def look(self, check, *, fix=False):
        return list(examine(self.settings, {}, [check], fix=fix))

    def build(self):
        return self.state / "index" / (self.state / "index/current").read_text().strip()

    @contextmanager
    def serving(self):
        from contextlib import ExitStack

        with self.opened() as app, ExitStack() as running:
            app._start_parts(running)
            assert app.opened.sync.ready.wait(60)
            yield app


def only(found, check=None):
    [one] = [one for one in found if check is None or one.check == check]
    return one


def bytes_of(folder):
    """Return the bytes of every file, except files that SQLite and the lock keep during a read."""
    passing = ("lock", "-shm", "-wal")
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.name.endswith(passing)}
