"""Agents and a person put documents into collections in any order: each is in one, the one that was set last, wherever one looks."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from index.errors import Conflict, InvalidArgument
from index.model import COLLECTIONS, Filter, Query
from syncd.doors import KbSettings
from syncd.newnode import NewNode
from tests.machine import run_machine
from tests.world import PROMPT, World

KNOWN = (*COLLECTIONS, "recipes")
QUIET = replace(PROMPT, adopt_s=3600.0)  # what a person wrote is young until the test says that time has passed
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def front_of(file: Path) -> dict[str, Any]:
    """The properties of a note, as another program reads them."""
    text = file.read_bytes().decode()
    return yaml.safe_load(text.split("---\n")[1]) or {} if text.startswith("---\n") else {}


def names_in(file: Path) -> list[str]:
    """The collections that a note names, of those known."""
    front = front_of(file)
    tags = front.get("tags") or []
    tags = re.split(r"[, ]+", tags) if isinstance(tags, str) else tags
    found = [front.get("collection"), *(tag[11:] for tag in map(str, tags) if tag.startswith("collection:"))]
    return [name for name in found if name in KNOWN]


def put(file: Path, key: str, lines: str) -> None:
    """Let a person write other lines for a property, where it stands or at the end of the properties."""
    text = file.read_bytes().decode()
    if not text.startswith("---\n"):
        text = f"---\n---\n{text}"
    front, body = text[4:].split("---\n", 1)
    kept = re.sub(rf"(?m)^{key}:.*\n(?:  - .*\n)*", lambda _: lines, front, count=1)
    if lines and kept == front and lines not in front:
        kept = front + lines
    file.write_bytes(f"---\n{kept}---\n{body}".encode())


@dataclass
class Thing:
    """A document as the model has it."""

    id: str
    word: str  # that no other has
    collection: str
    kind: str


class Filing(RuleBasedStateMachine):
    """What agents' tools and a person's editor do to collections, and a model of it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder, sync=QUIET, kb=KbSettings(collections=("recipes",)))
        self.things: list[Thing] = []
        self.dropped = 0

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.folder)

    @property
    def space(self) -> Any:
        return self.world.app.desk.workspace("default")

    def file(self, thing: Thing) -> Path:
        record = self.space._index.record(thing.id, "default")
        return self.world.vault / record.path

    def look(self) -> None:
        self.world.run()

    def pick(self, at: int) -> Thing:
        return self.things[at % len(self.things)]

    def word(self) -> str:
        return f"{WORDS[len(self.things) % len(WORDS)]}{len(self.things)}"

    # Agents

    @initialize()
    def begin(self) -> None:
        self.capture(None, [], None)

    @precondition(lambda self: len(self.things) < 6)
    @rule(
        collection=st.none() | st.sampled_from(KNOWN),
        tags=st.lists(st.sampled_from(["a", "collection:memory", "collection:recipes"]), unique=True),
        kind=st.sampled_from([None, "memo", "node"]),
    )
    def capture(self, collection: str | None, tags: list[str], kind: str | None) -> None:
        word = self.word()
        named = [tag[11:] for tag in tags if tag.startswith("collection:")]
        if kind == "memo":
            made = self.space.memos.save(f"{word} text", metadata={"tags": tags}).record
            wanted = named[-1] if named else "memory"
        elif kind == "node":
            self.space.nodes.create([NewNode(word, "thing", (f"{word} text",))])
            made = self.space._index.record(self.space.nodes.get(word).id, "default")
            wanted = "documents"
        else:
            made = self.space.capture(f"{word} text", metadata={"tags": tags}, collection=collection).record
            wanted = collection or (named[-1] if named else "documents")
        self.things.append(Thing(made.id, word, wanted, kind or "note"))

    @rule(at=st.integers(0, 9), tags=st.lists(st.sampled_from(["a", "b", *(f"collection:{name}" for name in KNOWN)])))
    def set_tags(self, at: int, tags: list[str]) -> None:
        thing = self.pick(at)
        self.space.set_tags(thing.id, tags)
        named = [tag[11:] for tag in tags if tag.startswith("collection:")]
        thing.collection = named[-1] if named else thing.collection

    @rule(
        at=st.integers(0, 9),
        tags=st.none() | st.lists(st.sampled_from(["c", "collection:workspace", "collection:memory"]), unique=True),
    )
    def save(self, at: int, tags: list[str] | None) -> None:
        thing = self.pick(at)
        if thing.kind == "node":
            self.space.nodes.set_tags(thing.word, [tag for tag in tags or () if ":" not in tag])
            return
        given = {"n": at} | ({} if tags is None else {"tags": tags})
        self.space.memos.save(self.space.get(thing.id).content, memo_id=thing.id, metadata=given)
        named = [tag[11:] for tag in tags or () if tag.startswith("collection:")]
        thing.collection = named[-1] if named else thing.collection

    @rule(at=st.integers(0, 9), wrong=st.sampled_from(["collection:typo", "collection:", "Collection:Docs"]))
    def mistake(self, at: int, wrong: str) -> None:
        before = self.file(self.pick(at)).read_bytes()
        with pytest.raises(InvalidArgument) as refused:
            self.space.set_tags(self.pick(at).id, ["a", wrong])
        assert refused.value.details["collections"] == list(KNOWN)
        assert self.file(self.pick(at)).read_bytes() == before

    # A person

    @rule(at=st.integers(0, 9), name=st.sampled_from(KNOWN))
    def property(self, at: int, name: str) -> None:
        thing = self.pick(at)
        file = self.file(thing)
        if front_of(file).get("collection") == name:
            return
        put(file, "collection", f"collection: {name}\n")
        thing.collection = name
        self.look()

    @rule(at=st.integers(0, 9), name=st.sampled_from([*KNOWN, "typo"]), way=st.sampled_from(["block", "flow", "text"]))
    def tag(self, at: int, name: str, way: str) -> None:
        thing = self.pick(at)
        file = self.file(thing)
        tags = front_of(file).get("tags") or []
        tags = re.split(r"[, ]+", tags) if isinstance(tags, str) else [str(tag) for tag in tags]
        if f"collection:{name}" in tags:
            return
        tags.insert(len(tags) if at % 2 else 0, f"collection:{name}")
        told = {
            "block": "tags:\n" + "".join(f"  - {tag}\n" for tag in tags),
            "flow": f"tags: [{', '.join(tags)}]\n",
            "text": f"tags: {', '.join(tags)}\n",
        }
        put(file, "tags", told[way])
        if name in KNOWN:
            thing.collection = name
        self.look()

    @rule(at=st.integers(0, 9))
    def take_back(self, at: int) -> None:
        """All that names a collection goes, and with it the tags."""
        thing = self.pick(at)
        put(self.file(thing), "tags", "")
        put(self.file(thing), "collection", "")
        thing.collection = "documents"
        self.look()

    @rule(at=st.integers(0, 9))
    def rename(self, at: int) -> None:
        thing = self.pick(at)
        if thing.kind != "node":
            file = self.file(thing)
            file.rename(file.with_name(f"{thing.word} {os.urandom(4).hex()}.md"))
            self.look()

    @precondition(lambda self: len(self.things) < 6)
    @rule(front=st.sampled_from(["", "---\ntags: [collection:memory, x]\n---\n", "---\ncollection: typo\n---\n"]))
    def drop(self, front: str) -> None:
        """A note that the person made; no tool changes it before it has its id."""
        word = self.word()
        file = self.world.write(f"Captures/default/{word}.md", f"{front}{word} text\n")
        self.look()
        (found,) = [hit.record for hit in self.space.search(Query(word, 1, "text")).hits]
        with pytest.raises(Conflict, match="soon"):
            self.space.set_tags(found.id, ["a"])
        os.utime(file, (1, 1))
        self.look()
        self.things.append(Thing(front_of(file)["id"], word, "memory" if "memory" in front else "documents", "note"))

    @rule()
    def time_passes(self) -> None:
        for thing in self.things:
            os.utime(self.file(thing), (time.time() - 7200,) * 2)
        self.look()
        self.look()
        for thing in self.things:
            self.settled(thing)

    def settled(self, thing: Thing) -> None:
        record = self.space.get(thing.id).record
        assert record.collection == thing.collection, (thing, self.file(thing).read_text())
        assert set(names_in(self.file(thing))) <= {thing.collection}
        assert not [tag for tag in record.tags if "collection" in tag]
        found = [
            name for name in KNOWN if self.space.search(Query(thing.word, 1, "text", Filter(collection=name))).hits
        ]
        assert found == [thing.collection], (thing, found)

    def last(self) -> None:
        self.time_passes()
        assert self.world.dump() == self.world.rebuilt(self.folder / "again")


def test_each_document_is_in_one_collection_whoever_put_it_there():
    run_machine(Filing, Filing.last, examples=8, steps=14)


@pytest.mark.slow
def test_each_document_is_in_one_collection_whoever_put_it_there_at_length():
    run_machine(Filing, Filing.last, examples=150, steps=30)
