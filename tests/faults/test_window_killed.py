"""The window under kill -9 while its owner shares, moves, edits, marks and removes notes: an agent reads exactly what is shared."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
import pytest

from index.document_ids import path_id
from index.errors import MemexError
from tests.support.fast_daemon import Daemon
from tests.support.world import until

WORD = "zanzibar"
WORKSPACES = ("default", "work")
SHARED = ("Refs", "Refs/deep", "Notes", "Notes/a.md")
PATHS = [f"{folder}/{name}.md" for folder in ("Refs", "Refs/deep", "Notes", "Diary") for name in "ab"]
FRONTS = {"": True, "---\nshare: true\n---\n": True, "---\nshare: false\n---\n": False, "---\nshare:\n---\n": False}


@dataclass
class Known:
    """What is on disk, and what is shared as far as the daemon answered."""

    vault: Path
    files: dict[str, tuple[str, str]] = field(default_factory=dict)  # path → front matter, body
    shares: set[tuple[str, str]] = field(default_factory=set)
    perhaps: tuple[str, str] | None = None  # the share that nobody answered for
    paths: set[str] = field(default_factory=set)  # all that ever were
    number: int = 0

    def allowed(self, workspace: str) -> dict[str, str]:
        entries = [entry for name, entry in self.shares if name == workspace]
        return {
            path: body
            for path, (front, body) in self.files.items()
            if FRONTS[front] and any(path == entry or path.startswith(f"{entry}/") for entry in entries)
        }

    # What a person does

    def write(self, path: str, front: str) -> None:
        self.number += 1
        self._store(path, (front, f"{WORD} text {self.number:05d}.\n"))

    def mark(self, path: str, front: str) -> None:
        if path in self.files:
            self._store(path, (front, self.files[path][1]))

    def _store(self, path: str, text: tuple[str, str]) -> None:
        file, draft = self.vault / path, self.vault / ".draft"
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text("".join(text))
        draft.rename(file)
        self.files[path] = text
        self.paths.add(path)

    def delete(self, path: str) -> None:
        if self.files.pop(path, None):
            (self.vault / path).unlink()

    def move(self, path: str, to: str) -> None:
        if path in self.files and path != to:
            (self.vault / to).parent.mkdir(parents=True, exist_ok=True)
            (self.vault / path).rename(self.vault / to)
            self.files[to] = self.files.pop(path)
            self.paths.add(to)

    def share(self, daemon: Daemon, workspace: str, entry: str) -> None:
        """Share it, or stop sharing it. Raises the error of a daemon that died."""
        self.perhaps = workspace, entry
        if is_shared := (workspace, entry) in self.shares:
            daemon.ask("share.remove", workspace=workspace, paths=[entry])
        else:
            daemon.ask("share.add", workspace=workspace, paths=[entry])
        (self.shares.remove if is_shared else self.shares.add)((workspace, entry))
        self.perhaps = None


class Owner(threading.Thread):
    """A person who never rests until the daemon is dead."""

    def __init__(self, daemon: Daemon, known: Known, life: int) -> None:
        super().__init__()
        self.door, self.known, self.chance, self.dying = daemon, known, random.Random(life), threading.Event()
        self.error = ""

    def run(self) -> None:
        chance, known = self.chance, self.known
        while self.door.process.poll() is None:
            path = chance.choice(PATHS)
            act = chance.choice(("write", "write", "mark", "delete", "move", "share", "share"))
            try:
                if act in ("write", "mark"):
                    getattr(known, act)(path, chance.choice(sorted(FRONTS)))
                elif act == "delete":
                    known.delete(path)
                elif act == "move":
                    known.move(path, chance.choice(PATHS))
                else:
                    known.share(self.door, chance.choice(WORKSPACES), chance.choice(SHARED))
            except (MemexError, OSError) as error:
                if self.door.process.poll() is None and not self.dying.is_set():
                    self.error = repr(error)
                return
            time.sleep(chance.uniform(0.0, 0.05))


class Agent:
    """An agent that reads all that it can, in both workspaces."""

    def __init__(self, daemon: Daemon) -> None:
        key = (daemon.state / "key").read_text().strip()
        url = json.loads((daemon.state / "daemon.json").read_text())["url"]
        self.http = httpx2.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60, trust_env=False)

    def read(self, workspace: str, paths: set[str]) -> dict[str, str]:
        headers, read = {"x-memory-workspace": workspace}, dict[str, str]()
        asked = {"query": WORD, "top_k": 50, "scope": "vault", "mode": "text", "detail": "full"}
        hits = self.http.post("/search", json=asked, headers=headers)
        assert hits.is_success, hits.text
        for hit in hits.json()["results"]:
            assert hit["chunk_content"].strip() == hit["document_content"].strip()
            read[hit["path"]] = hit["document_content"]
        for path in paths:
            answer = self.http.get(f"/thought/vault:{path_id(path)}", headers=headers)
            assert answer.status_code in (200, 404, 503), answer.text
            if answer.status_code == 200:
                read[path] = answer.json()["content"]
        return read


def begin(folder: Path) -> Daemon:
    daemon = Daemon(folder, poll_s=0.5)
    daemon.ask("workspace.create", name="work")
    return daemon


def resolve(daemon: Daemon, known: Known) -> None:
    """Learn what became of the share that nobody answered for; every other one must be as it was answered."""
    listed = {
        (row["workspace"], entry.removesuffix("/**")) for row in daemon.ask("share.list") for entry in row["entries"]
    }
    assert listed ^ known.shares <= {known.perhaps}
    known.shares, known.perhaps = listed, None


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.timeout(3_600)
def test_after_every_kill_an_agent_reads_exactly_what_is_shared(tmp_path):
    (tmp_path / "vault").mkdir()
    known = Known(tmp_path / "vault")
    dice = random.Random(21)
    daemon = begin(tmp_path)
    try:
        for life in range(int(os.environ.get("MEMEX_KILLS", "12"))):
            owner = Owner(daemon, known, life)
            owner.start()
            time.sleep(dice.uniform(0.3, 3.0))
            owner.dying.set()
            daemon.kill()
            owner.join(60)
            assert not owner.error
            daemon = begin(tmp_path)
            resolve(daemon, known)
            agent = Agent(daemon)
            for workspace in WORKSPACES:
                read, allowed = agent.read(workspace, known.paths), known.allowed(workspace)
                assert read.items() <= allowed.items(), f"life {life}: more than is shared"
            until(partial(_reads_all, agent, known))
            for workspace in WORKSPACES:
                assert agent.read(workspace, known.paths) == known.allowed(workspace)
    finally:
        if daemon.process.poll() is None:
            daemon.kill()


def _reads_all(agent: Agent, known: Known) -> bool:
    """Check that an agent reads no more than is shared now, and return whether it reads all of it."""
    for workspace in WORKSPACES:
        read, allowed = agent.read(workspace, known.paths), known.allowed(workspace)
        assert read.items() <= allowed.items()
        if read != allowed:
            return False
    return True
