"""Any edits, a crash anywhere: the index kept step by step equals one built from scratch, on the real stores."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from index.errors import MemexError
from tests.support.state_machine import run_machine
from tests.support.world import World

FOLDERS = ("", "a/", "a/b/", "Projects/", "Captures/default/", "Captures/default/ns/", "Captures/work/", "Captures/")
NAMES = ("One", "Two", "three", "日本", "🍀", "One copy")
PATHS = st.builds(lambda folder, name: f"{folder}{name}.md", st.sampled_from(FOLDERS), st.sampled_from(NAMES))
IDS = st.sampled_from(["same-id", "other-id", "bad id!", "007"])
WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "検索", "エンジン", "delta", "[[One]]", "#tag", "%%hidden%%", "`code`"]),
    min_size=0,
    max_size=12,
)
BODIES = st.builds(" ".join, WORDS)
NOTES = st.one_of(
    BODIES,
    st.builds("---\nid: {}\ntags: [x]\n---\n{}".format, IDS, BODIES),
    st.builds(
        "---\nid: {}\nrelations:\n  - {{id: {}, tag: t}}\n  - target: '[[One]]'\n    tag: u\n---\n{}".format,
        IDS,
        IDS,
        BODIES,
    ),
    st.builds("# {}\n\n{}\n\n## {}\n\n{}".format, BODIES, BODIES, BODIES, BODIES),
    st.sampled_from(["---\nbroken: [\n---\nbody", "", "---\nunclosed", "```\nfence", "\ufeffbom", "a\r\nb\r\n"]),
)


class Boom(Exception):
    """The crash."""


class Crashing:
    """Stands before a store or a catalog and dies at its next change: before it, or just after."""

    def __init__(self, real, *, after: bool):
        self.real, self.after = real, after

    def __getattr__(self, name):
        if name not in ("replace", "write"):
            return getattr(self.real, name)

        def dying(*args, **named):
            if self.after:
                getattr(self.real, name)(*args, **named)
            raise Boom

        return dying


class Vault(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memex-machine-"))
        self.world = World(self.folder)
        self.captured: dict[str, str] = {}

    @initialize()
    def begin(self):
        (self.world.vault / "Captures/work").mkdir()

    def teardown(self):
        self.world.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def notes(self) -> list[Path]:
        return sorted(path for path in self.world.vault.rglob("*.md") if path.is_file())

    @rule(path=PATHS, text=NOTES)
    def write(self, path, text):
        self.forget(path)
        self.world.write(path, text)

    @rule(path=PATHS, text=NOTES)
    def save_by_rename(self, path, text):
        self.forget(path)
        temporary = self.world.write(path + ".tmp", text)
        temporary.rename(self.world.vault / path)

    @precondition(lambda self: self.notes())
    @rule(data=st.data(), path=PATHS)
    def move(self, data, path):
        old = data.draw(st.sampled_from(self.notes()))
        self.forget(str(old.relative_to(self.world.vault)))
        self.forget(path)
        (self.world.vault / path).parent.mkdir(parents=True, exist_ok=True)
        old.rename(self.world.vault / path)

    @precondition(lambda self: self.notes())
    @rule(data=st.data())
    def copy(self, data):
        old = data.draw(st.sampled_from(self.notes()))
        shutil.copy2(old, old.with_name(f"{old.stem} 1.md"))

    @precondition(lambda self: self.notes())
    @rule(data=st.data())
    def remove(self, data):
        old = data.draw(st.sampled_from(self.notes()))
        self.forget(str(old.relative_to(self.world.vault)))
        old.unlink()

    @rule(
        folder=st.sampled_from(["a", "Projects", "Captures/default/ns"]),
        to=st.sampled_from(["moved", "Captures/work/in", "a/deep"]),
    )
    def move_folder(self, folder, to):
        old, new = self.world.vault / folder, self.world.vault / to
        if old.is_dir() and not new.exists() and not new.is_relative_to(old):
            self.captured = {path: text for path, text in self.captured.items() if not path.startswith(folder + "/")}
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)

    @rule(text=st.text(min_size=1, max_size=60), name=st.sampled_from(["default", "work"]))
    def capture(self, text, name):
        record = self.world.app.agent_access.workspace(name).capture(text).record
        self.captured[record.path] = text

    @precondition(lambda self: self.captured)
    @rule(data=st.data())
    def delete(self, data):
        path = data.draw(st.sampled_from(sorted(self.captured)))
        self.world.run()
        record = self.world.app.opened.builds.scopes["captures"].index.record_at(path)
        self.world.app.agent_access.workspace(record.workspace).delete(record.id)
        del self.captured[path]

    @rule()
    def sync(self):
        self.world.run()

    @rule()
    def restart(self):
        self.world.reopen()

    @rule(
        part=st.sampled_from(["_store", "catalog"]), scope=st.sampled_from(["captures", "vault"]), after=st.booleans()
    )
    def crash(self, part, scope, after):
        index = self.world.app.opened.builds.scopes[scope].index
        real = getattr(index, part)
        setattr(index, part, Crashing(real, after=after))
        try:
            self.world.run()
        except Boom:
            pass
        finally:
            setattr(index, part, real)
        self.world.reopen()

    @rule(text=st.text(min_size=1, max_size=40))
    def crash_in_capture(self, text):
        index = self.world.app.opened.builds.scopes["captures"].index
        real = index.catalog
        index.catalog = Crashing(real, after=False)
        try:
            self.world.app.agent_access.workspace("default").capture(text)
        except (Boom, MemexError):
            pass
        finally:
            index.catalog = real
        self.world.reopen()

    @rule()
    def rebuild(self):
        self.world.app.operations["index"]({"full": True}, lambda _: None)

    def forget(self, path):
        self.captured.pop(path, None)

    @invariant()
    def captures_are_on_disk(self):
        for path, text in self.captured.items():
            assert (self.world.vault / path).read_bytes().endswith(text.encode()), path

    @rule()
    def equals_rebuilt(self):
        self.check()

    def check(self):
        self.world.run()
        kept, made = self.world.dump(), self.world.rebuilt(self.folder / "other")
        for scope in kept:
            for part in kept[scope]:
                assert kept[scope][part] == made[scope][part], (scope, part)


def test_any_edits_and_crashes_leave_the_index_equal_to_a_rebuilt_one():
    run_machine(Vault, Vault.check, 3, 20)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_any_edits_and_crashes_at_length():
    examples, steps = (int(n) for n in os.environ.get("MEMEX_MACHINE", "200x30").split("x"))
    run_machine(Vault, Vault.check, examples, steps)
