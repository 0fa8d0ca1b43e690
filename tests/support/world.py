"""The test world: a vault, a state folder and the real parts of Memex. Only the model is a fake."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from index.encoders.embedder import Embedder
from index.errors import MemexError
from syncd.app import App
from syncd.daemon.control_socket import ControlServer
from syncd.settings.settings import Settings, SyncSettings, VaultSettings
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.fresh_ledger import put_ledger
from tests.support.index_dump import dump_index
from tests.support.until import PATIENCE, until

PROMPT = SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=0.0, listing_s=3600.0)


def settings_of(vault: Path, state: Path, /, **sections: Any) -> Settings:
    """Return the settings of `memex serve --vault V --state S`, with short waits."""
    return replace(Settings(vault=VaultSettings(path=vault), state=state, sync=PROMPT), **sections)


class World:
    """A vault under test with its App. `reopen` simulates a restart, `crash` a kill -9."""

    def __init__(self, folder: Path, *, embedder: Embedder | None = None, **sections: Any) -> None:
        self.vault, self.state = folder / "vault", folder / "state"
        (self.vault / "Captures/default").mkdir(parents=True, exist_ok=True)
        self._sections = sections
        self.encoder = FakeEncoder()
        put_ledger(self.state)
        self.app = self._open(embedder)

    def _open(self, embedder: Embedder | None = None) -> App:
        return App(
            settings_of(self.vault, self.state, **self._sections), embedder=embedder or fake_embedder(self.encoder)
        )

    def close(self) -> None:
        self.app.close()

    def reopen(self, embedder: Embedder | None = None) -> None:
        self.app.close()
        self.app = self._open(embedder)

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a note as another process does."""
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def run(self, **given: Any) -> Any:
        """Run one index pass over the whole vault."""
        return self.app.opened.sync.run(accept=True, **given)

    def dump(self) -> dict[str, Any]:
        """Return the content of the indexes in a form that is independent of its history."""
        return {scope: dump_index(scope_index.index) for scope, scope_index in self.app.opened.builds.scopes.items()}

    def rebuilt(self, folder: Path) -> dict[str, Any]:
        """Return the content of an index rebuilt from the same files."""
        shutil.rmtree(folder, ignore_errors=True)
        app = App(settings_of(self.vault, folder, **self._sections), embedder=fake_embedder(FakeEncoder()))
        try:
            app.opened.sync.run(accept=True)
            return {scope: dump_index(scope_index.index) for scope, scope_index in app.opened.builds.scopes.items()}
        finally:
            app.close()

    def found(self, text: str, *, scope: str = "all", **given: Any) -> list[str]:
        """Return the paths of an owner's search results."""
        answer = self.app.operations["search"]({"query": text, "scope": scope, **given}, lambda _: None)
        return [hit["path"] for hit in answer["hits"]]

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the pipeline with its watcher and jobs, but without the server."""
        from contextlib import ExitStack

        with ExitStack() as running:
            self.app._start_parts(running)
            assert self.app.opened.sync.ready.wait(60)
            yield

    def settled(self, within: float = PATIENCE) -> None:
        """Wait until nothing is pending."""
        until(lambda: len(self.app.opened.sync.pending_paths) == 0, within)

    def init_git(self, name: str) -> None:
        """Put the vault under Git for this person: one process instead of three."""
        self.git("init", "-q", "-b", "main")
        with (self.vault / ".git/config").open("a") as config:
            config.write(f"[user]\nname = {name}\nemail = {name.lower()}@example.org\n")

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.vault), "-c", "user.name=Tester", "-c", "user.email=t@example.org", *words],
            check=True,
            capture_output=True,
            text=True,
        ).stdout


def promote(world: World, given: str, to: str | None = None) -> dict[str, Any]:
    """Promote a capture, as `memex promote` does. Raises the error of a refusal."""
    own = world.app.services.promotions
    (done,) = own.carry_out([own.make_plan(world.app.services.snapshot.find_capture(given), to=to)])
    if isinstance(done, MemexError):
        raise done
    return done


@contextmanager
def answering(world: World) -> Iterator[World]:
    """Yield the world with an open control socket, for commands that run in this process."""
    server = ControlServer(world.state, world.app.operations)
    server.start()
    try:
        yield world
    finally:
        server.stop()
        world.close()
