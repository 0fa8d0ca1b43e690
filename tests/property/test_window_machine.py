"""A person shares, moves, edits, marks and deletes notes in any order: an agent reads exactly what is shared at that moment.

The model knows the files and the shares, and nothing of the index. After each step an agent reads at most what the model allows,
with the text of now; after a pass it reads all of it. `MEMEX_MACHINE=200x30` sets examples × steps of the long run."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from index.document_ids import path_id
from index.errors import MemexError, NotFound, Unavailable
from index.model import Query
from syncd.settings.access import ShareSettings
from tests.support.state_machine import run_machine
from tests.support.world import World

FOLDERS = ("Refs", "Refs/deep", "Refs/Private", "Notes", "Captures/Reports", "Diary")
PATHS = st.builds(lambda folder, name: f"{folder}/{name}.md", st.sampled_from(FOLDERS), st.sampled_from("ab"))
SHARED = st.sampled_from(["Refs", "Refs/deep", "Notes", "Notes/a.md", "Diary/b.md"])
WORKSPACES = st.sampled_from(["default", "work"])
FRONTS = {  # whether a note with these properties may be read
    "": True,
    "---\ntags: [x]\n---\n": True,
    "---\nshare: true\n---\n": True,
    "---\nshare: false\n---\n": False,
    "---\nshare:\n---\n": False,
    "---\nbroken: [\n---\n": False,
}
WORD = "zanzibar"
BELOW = "/**"


class Windows(RuleBasedStateMachine):
    """The real parts on a real folder, and beside them a dictionary of files and sets of shares."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memex-window-"))
        (self.folder / "vault/Captures/work").mkdir(parents=True)
        self.world = World(self.folder, share=ShareSettings(never=("Private",)))
        self.files: dict[str, tuple[str, str]] = {}  # path → front matter, body
        self.shares: dict[str, set[str]] = {"default": set(), "work": set()}
        self.number = 0
        self.current = False  # whether a pass has seen everything
        self.ids: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def allowed(self, workspace: str) -> dict[str, str]:
        """The text of each note that agents of this workspace may read now."""
        return {
            path: body
            for path, (front, body) in self.files.items()
            if FRONTS[front]
            and not path.startswith("Captures/")
            and "Private" not in path.split("/")
            and any(path == entry or path.startswith(f"{entry}/") for entry in self.shares[workspace])
        }

    # What a person does

    @rule(path=PATHS, front=st.sampled_from(sorted(FRONTS)))
    def write(self, path: str, front: str) -> None:
        self.number += 1
        self.files[path] = front, f"{WORD} text {self.number:04d}.\n"
        self.world.write(path, "".join(self.files[path]))
        self.ids.add(f"vault:{path_id(path)}")
        self.current = False

    @precondition(lambda self: self.files)
    @rule(data=st.data(), front=st.sampled_from(sorted(FRONTS)))
    def mark(self, data: st.DataObject, front: str) -> None:
        path = data.draw(st.sampled_from(sorted(self.files)))
        self.files[path] = front, self.files[path][1]
        self.world.write(path, "".join(self.files[path]))
        self.current = False

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.files)))
        del self.files[path]
        (self.world.vault / path).unlink()
        self.current = False

    @precondition(lambda self: self.files)
    @rule(data=st.data(), to=PATHS)
    def move(self, data: st.DataObject, to: str) -> None:
        path = data.draw(st.sampled_from(sorted(self.files)))
        (self.world.vault / to).parent.mkdir(parents=True, exist_ok=True)
        (self.world.vault / path).rename(self.world.vault / to)
        self.files[to] = self.files.pop(path)
        self.ids.add(f"vault:{path_id(to)}")
        self.current = False

    @precondition(lambda self: any(path.startswith("Refs/") for path in self.files))
    @rule(to=st.sampled_from(["Diary/moved", "Notes/moved"]))
    def move_folder(self, to: str) -> None:
        if (self.world.vault / to).exists():
            return
        (self.world.vault / to).parent.mkdir(parents=True, exist_ok=True)
        (self.world.vault / "Refs").rename(self.world.vault / to)
        for path in [path for path in self.files if path.startswith("Refs/")]:
            self.files[f"{to}/{path.removeprefix('Refs/')}"] = self.files.pop(path)
        self.ids |= {f"vault:{path_id(path)}" for path in self.files}
        self.current = False

    @rule(path=SHARED, workspace=WORKSPACES)
    def share(self, path: str, workspace: str) -> None:
        self.world.app.operations["share.add"]({"workspace": workspace, "paths": [path]}, lambda _: None)
        self.shares[workspace].add(path)
        self.current = False

    @precondition(lambda self: any(self.shares.values()))
    @rule(data=st.data())
    def unshare(self, data: st.DataObject) -> None:
        workspace = data.draw(st.sampled_from(sorted(name for name, paths in self.shares.items() if paths)))
        path = data.draw(st.sampled_from(sorted(self.shares[workspace])))
        self.shares[workspace].remove(path)
        answer = self.world.app.operations["share.remove"]({"workspace": workspace, "paths": [path]}, lambda _: None)
        assert answer["shared"] == sorted(self.allowed(workspace))
        self.current = False

    @precondition(lambda self: any(self.shares.values()))
    @rule(data=st.data())
    def die_while_unsharing(self, data: st.DataObject) -> None:
        """The rule is gone from the ledger, and the process dies before the index follows."""
        workspace = data.draw(st.sampled_from(sorted(name for name, paths in self.shares.items() if paths)))
        path = data.draw(st.sampled_from(sorted(self.shares[workspace])))
        self.world.app.opened.shares.remove(workspace, [path])
        self.shares[workspace].remove(path)
        self.restart()

    # What Memex does

    @rule()
    def run_a_pass(self) -> None:
        self.world.run()
        self.current = True

    @rule(paths=st.lists(PATHS | st.sampled_from(FOLDERS), min_size=1, max_size=3))
    def run_a_pass_over_some(self, paths: list[str]) -> None:
        self.world.app.opened.sync.run(paths)

    @rule()
    def run_a_pass_that_may_hold_removals_back(self) -> None:
        self.world.app.opened.sync.ready.set()
        self.world.app.opened.sync.run()

    @rule()
    def restart(self) -> None:
        self.world.reopen()
        self.current = False

    @rule()
    def make_a_new_index(self) -> None:
        self.world.app.opened.sync.rebuild(fresh=True)
        self.current = False

    @rule()
    def purge(self) -> None:
        mark = self.world.app.opened.builds.shared.place.mark
        if mark.exists():
            os.utime(mark, (0, 0))
            assert self.world.app.opened.builds.shared.maintain()
            self.current = False

    # What an agent reads

    @invariant()
    def no_agent_reads_more_than_is_shared(self) -> None:
        for workspace in ("default", "work"):
            read, allowed = self.read(workspace), self.allowed(workspace)
            assert read.items() <= allowed.items()
            if self.current:
                assert read == allowed

    def read(self, workspace: str) -> dict[str, str]:
        """All that an agent gets by searches, ids and paths: path → text."""
        here = self.world.app.agent_access.workspace(workspace)
        read: dict[str, str] = {}
        for mode in ("text", "hybrid"):
            hits = here.search(Query(WORD, limit=50, mode=mode), scope="all").hits
            assert all(hit.record.scope == "vault" for hit in hits)
            for hit in hits:
                assert hit.chunk.strip() == here.read_content(hit.record).strip()
                read[hit.record.path] = here.read_content(hit.record)
        for reads in [
            *(partial(here.record, id) for id in self.ids),
            *(partial(here.document_at, path, shared=True) for path in self.files),
        ]:
            try:
                record = reads()
            except (NotFound, Unavailable):
                continue
            read[record.path] = here.read_content(record)
        for id in self.ids:
            with pytest.raises(MemexError):
                here.delete(id)
        return read

    def check(self) -> None:
        """At the end, nothing of what is not shared is in the files of the shared index after the maintenance."""
        shared = self.world.app.opened.builds.shared
        self.world.run()
        if shared.place.mark.exists():
            os.utime(shared.place.mark, (0, 0))
            shared.maintain()
            self.world.run()
        files = [
            file
            for top in self.folder.joinpath("state").rglob("shared*")
            for file in (top, *top.rglob("*"))
            if file.is_file()
        ]
        stored = b"\n".join(file.read_bytes() for file in files)
        every = self.allowed("default").keys() | self.allowed("work").keys()
        assert bool(files) == any(self.shares.values())
        for path, (_, body) in self.files.items():
            if path not in every:
                assert body.strip().encode() not in stored
                assert path.encode() not in stored


def test_agents_read_exactly_what_is_shared():
    run_machine(Windows, Windows.check, 4, 15)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_agents_read_exactly_what_is_shared_at_length():
    examples, steps = map(int, os.environ.get("MEMEX_MACHINE", "60x30").split("x"))
    run_machine(Windows, Windows.check, examples, steps)
