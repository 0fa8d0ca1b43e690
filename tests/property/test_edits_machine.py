"""Tools, a person's hands and restarts in any order, against a plain model: version and times are as they should be."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from index.errors import Conflict
from syncd.notes.front_matter import decode, edit, encode, split
from tests.support.state_machine import run_machine
from tests.support.world import World

TEXTS = st.lists(st.sampled_from(["alpha", "beta\n", "gamma\r\n", "検索", "#inline", "---\n"]), min_size=1).map(
    " ".join
)
# In order: another order of the same tags is no edit of the note.
TAGS = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=2).map(lambda tags: tuple(sorted(tags)))
BEGIN = 1_900_000_000_000


@dataclass(frozen=True)
class Note:
    """What a note is to be, and what has been done to it by hand since the last look."""

    path: str
    text: str
    tags: tuple[str, ...]
    version: int
    created_at: int
    updated_at: int | None
    was: tuple[str, tuple[str, ...]]  # text and tags at the last look
    edited_at: int = 0

    @property
    def seen(self) -> tuple[str, tuple[str, ...]]:
        return self.text, self.tags


class Hands(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memex-hands-"))
        self.world = World(self.folder)
        self.world.app.opened.enricher.by = "off"
        self.notes: dict[str, Note] = {}
        self.clock = BEGIN

    def teardown(self):
        self.world.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def space(self):
        return self.world.app.agent_access.workspace("default")

    def one(self, data) -> tuple[str, Note]:
        return data.draw(st.sampled_from(list(self.notes.items())))  # in the order made: ids are other ones each time

    def write(self, id, note, raw):
        """Write a file as a person's editor does, at a time of its own."""
        self.clock += 1_000
        file = self.world.vault / note.path
        file.write_bytes(raw)
        os.utime(file, ns=(self.clock * 1_000_000, self.clock * 1_000_000))
        self.notes[id] = replace(note, edited_at=self.clock)

    # Tools

    @rule(text=TEXTS, tags=TAGS)
    def capture(self, text, tags):
        if any(text in (note.text, note.was[0]) for note in self.notes.values()):
            return  # that would be the same note
        record = self.space.capture(text, metadata={"tags": list(tags)}).record
        self.notes[record.id] = Note(record.path, text, tags, 1, record.created_at, None, (text, tags))

    @precondition(lambda self: self.notes)
    @rule(data=st.data(), text=TEXTS, how=st.sampled_from(["update", "compare", "stale", "memo", "tags"]), tags=TAGS)
    def tool(self, data, text, how, tags):
        id, note = self.one(data)
        calls = {
            "update": lambda: self.space.update_note(id, text)[0],
            "compare": lambda: self.space.update_note(id, text, version=note.version)[0],
            "stale": lambda: self.space.update_note(id, text, version=note.version + 1)[0],
            "memo": lambda: self.space.memos.save(text, memo_id=id).record,
            "tags": lambda: self.space.update_note(id, None, tags=tags, version=note.version)[0],
        }
        wanted = (note.text, tags) if how == "tags" else (text, note.tags)
        same = wanted == note.seen
        unread = note.seen != note.was if how in ("compare", "tags") else wanted[0] != note.text != note.was[0]
        if how == "stale" or (unread and not same):
            with pytest.raises(Conflict):
                calls[how]()
            return
        record = calls[how]()
        if same:
            return
        changed = replace(note, text=wanted[0], tags=wanted[1], version=note.version + 1, was=wanted)
        self.notes[id] = replace(changed, updated_at=record.updated_at)
        assert record.version == note.version + 1

    # Hands

    @precondition(lambda self: self.notes)
    @rule(data=st.data(), text=TEXTS)
    def write_text(self, data, text):
        id, note = self.one(data)
        front = split(decode((self.world.vault / note.path).read_bytes()))[0]
        self.write(id, replace(note, text=text), encode(front + text))

    @precondition(lambda self: self.notes)
    @rule(data=st.data(), tags=TAGS, promote=st.booleans())
    def write_properties(self, data, tags, promote):
        id, note = self.one(data)
        text = decode((self.world.vault / note.path).read_bytes())
        changed = edit(text, {"tags": list(tags) or None, "promote": promote})
        self.write(id, replace(note, tags=tags), encode(changed))

    @precondition(lambda self: self.notes)
    @rule(data=st.data())
    def touch(self, data):
        id, note = self.one(data)
        edited = note.edited_at if note.seen == note.was else self.clock + 1_000
        self.write(id, note, (self.world.vault / note.path).read_bytes())
        self.notes[id] = replace(note, edited_at=edited)

    @precondition(lambda self: self.notes)
    @rule(data=st.data(), name=st.sampled_from(["one", "two", "three", "four"]))
    def rename(self, data, name):
        id, note = self.one(data)
        path = f"Captures/default/{name}.md"
        if not (self.world.vault / path).exists():
            (self.world.vault / note.path).rename(self.world.vault / path)
            self.notes[id] = replace(note, path=path)
            self.look()  # the index knows it by its old name until then

    # Looks

    def stamped(self):
        for id, note in self.notes.items():
            if note.seen != note.was:
                before = note.created_at if note.updated_at is None else note.updated_at
                at = max(note.edited_at, before)
                self.notes[id] = replace(note, version=note.version + 1, updated_at=at, was=note.seen)

    @rule()
    def look(self):
        self.world.run()
        self.stamped()
        self.compare_with_model()

    @rule()
    def restart(self):
        self.world.reopen()
        self.world.app.opened.enricher.by = "off"

    def compare_with_model(self):
        for id, note in self.notes.items():
            kept = self.space.get(id)
            record = kept.record
            own = tuple(tag for tag in record.tags if tag != "inline")
            assert kept.content == note.text
            assert sorted(own) == sorted(note.tags)
            told = (record.path, record.version, record.created_at, record.updated_at)
            assert told == (note.path, note.version, note.created_at, note.updated_at)
        assert not self.world.app.opened.sync.edits.paths

    def check(self):
        self.look()
        before = {path: path.read_bytes() for path in self.world.vault.rglob("*.md")}
        self.world.run()
        assert {path: path.read_bytes() for path in self.world.vault.rglob("*.md")} == before
        assert self.world.dump() == self.world.rebuilt(self.folder / "again")


def test_tools_hands_and_restarts_in_any_order():
    run_machine(Hands, Hands.check, 3, 15)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_tools_hands_and_restarts_at_length():
    examples, steps = (int(n) for n in os.environ.get("MEMEX_MACHINE", "200x30").split("x"))
    run_machine(Hands, Hands.check, examples, steps)
