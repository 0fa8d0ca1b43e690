"""Agents and a person put documents into collections in any order: each is in one, the one that was set last, wherever one looks."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from index.errors import Conflict, InvalidArgument, NotFound
from index.model import COLLECTIONS, Filter, Query
from mcp_server.tools.families import FAMILIES
from syncd.cli.main import run_command
from syncd.daemon.control_socket import ControlServer
from syncd.graph.memory_json import parse_lines
from syncd.graph.node_request import NewNode
from syncd.settings.knowledge_base import KbSettings
from syncd.settings.settings import EnrichSettings
from tests.support.fakes import FakeChat
from tests.support.graph_samples import ENTITIES, RELATIONS
from tests.support.graph_samples import READS as GRAPH
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.state_machine import run_machine
from tests.support.world import PROMPT, World, until

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
    edited: bool = False  # by a person, a moment ago: tools leave it alone


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
        return self.world.app.agent_access.workspace("default")

    def file(self, thing: Thing) -> Path:
        record = self.space._index.record(thing.id, "default")
        return self.world.vault / record.path

    def look(self) -> None:
        self.world.run()

    def pick(self, at: int) -> Thing:
        return self.things[at % len(self.things)]

    def word(self) -> str:
        return f"{WORDS[len(self.things) % len(WORDS)]}{len(self.things)}"

    def done(self, thing: Thing, call: Callable[[], object]) -> bool:
        """Whether a tool did it; it does not while a person's edit is fresh."""
        try:
            call()
        except Conflict as refused:
            assert refused.retryable
            assert thing.edited
            return False
        return True

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
        named = [tag[11:] for tag in tags if tag.startswith("collection:")]
        if self.done(thing, lambda: self.space.set_tags(thing.id, tags)) and named:
            thing.collection = named[-1]

    @rule(
        at=st.integers(0, 9),
        tags=st.none() | st.lists(st.sampled_from(["c", "collection:workspace", "collection:memory"]), unique=True),
    )
    def save(self, at: int, tags: list[str] | None) -> None:
        thing = self.pick(at)
        if thing.kind == "node":
            own = [tag for tag in tags or () if ":" not in tag]
            self.done(thing, lambda: self.space.nodes.set_tags(thing.word, own))
            return
        given = {"n": at} | ({} if tags is None else {"tags": tags})
        content = self.space.get(thing.id).content
        named = [tag[11:] for tag in tags or () if tag.startswith("collection:")]
        if self.done(thing, lambda: self.space.memos.save(content, memo_id=thing.id, metadata=given)) and named:
            thing.collection = named[-1]

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
        thing.collection, thing.edited = name, True
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
        thing.edited = True
        if name in KNOWN:
            thing.collection = name
        self.look()

    @rule(at=st.integers(0, 9))
    def take_back(self, at: int) -> None:
        """All that names a collection goes, and with it the tags."""
        thing = self.pick(at)
        put(self.file(thing), "tags", "")
        put(self.file(thing), "collection", "")
        thing.collection, thing.edited = "documents", True
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
            thing.edited = False
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


@pytest.mark.slow
def test_each_document_is_in_one_collection_whoever_put_it_there():
    run_machine(Filing, Filing.last, examples=5, steps=12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_each_document_is_in_one_collection_whoever_put_it_there_at_length():
    run_machine(Filing, Filing.last, examples=100, steps=30)


# One after the other


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path, sync=QUIET, kb=KbSettings(collections=("recipes",)), enrich=EnrichSettings(by="off"))
    yield opened
    opened.close()


def aged(file: Path) -> None:
    """Let a note have been left alone for long enough."""
    os.utime(file, (time.time() - 7200,) * 2)


def captured(world: World, text: str = "alpha text", **given: Any) -> tuple[str, Path]:
    record = world.app.agent_access.workspace("default").capture(text, **given).record
    return record.id, world.vault / record.path


def known(world: World, id: str) -> Any:
    return world.app.agent_access.workspace("default").get(id).record


def test_a_note_that_names_two_is_left_alone_until_it_is_quiet(world):
    id, file = captured(world)
    before = file.read_bytes()
    edited = before.replace(
        b"created_at:", b"collection: documents # mine\nTags: [collection:memory, 'x y'] \ncreated_at:"
    )
    file.write_bytes(edited)
    world.run()
    assert file.read_bytes() == edited
    assert [defect.name for defect in known(world, id).defects] == ["bad-tag", "two-collections"]
    aged(file)
    world.run()
    wanted = edited.replace(b"documents # mine", b"memory # mine").replace(
        b" [collection:memory, 'x y'] ", b"\n  - x y"
    )
    assert re.sub(rb"updated_at: .*\nversion: 2\n", b"", file.read_bytes()) == wanted
    assert (known(world, id).collection, known(world, id).tags, known(world, id).version) == ("memory", ("x y",), 2)
    assert world.run().changes == 0


def test_what_is_set_while_the_daemon_is_down_counts_wherever_it_stands(world):
    """The property comes last in the note, and yet the tag is what was set last."""
    id, file = captured(world, metadata={"tags": ["a"]})
    put(file, "collection", "")
    put(file, "collection", "collection: documents\n")
    world.run()
    put(file, "tags", "tags: [a, collection:memory]\n")
    aged(file)
    world.reopen()
    world.run()
    assert (known(world, id).collection, names_in(file)) == ("memory", ["memory"])


def test_after_a_restart_while_a_note_names_two_it_is_still_settled(world):
    id, file = captured(world)
    put(file, "tags", "tags: [collection:memory]\n")
    world.run()
    world.reopen()
    aged(file)
    world.run()
    assert (known(world, id).collection, names_in(file)) == ("memory", ["memory"])


def test_a_note_that_an_agent_changed_meanwhile_is_settled_too(world):
    """The same capture again, before anybody has looked at what the person wrote."""
    id, file = captured(world)
    put(file, "tags", "tags: [collection:memory]\n")
    captured(world)
    assert known(world, id).updated_at is not None
    aged(file)
    world.run()
    assert (known(world, id).collection, names_in(file)) == ("memory", ["memory"])


def test_properties_that_no_line_says_are_read_again_and_no_more(world):
    text = "---\n{id: a, collection: memory, tags: [collection:workspace]}\n---\nbody\n"
    file = world.write("Captures/default/Braces.md", text)
    aged(file)
    assert world.run().added == 1
    again = world.run()
    assert (again.unchanged, again.changes, file.read_text()) == (1, 0, text)
    assert known(world, "a").collection == "workspace"


@pytest.mark.slow
def test_a_collection_that_is_unknown_by_now_counts_as_documents_until_it_is_known_again(world):
    ids = [captured(world, f"{word} text", collection=name)[0] for word, name in zip(WORDS, KNOWN, strict=False)]
    for name, front in {
        "Hand": "tags: [collection:recipes]",
        "Typo": "collection: typo",
        "Two": "collection: memory\ntags: [collection:recipes]",
    }.items():
        aged(world.write(f"Captures/default/{name}.md", f"---\nid: {name.lower()}\n{front}\n---\nby hand {name}\n"))
    world.write("Own.md", "---\ncollection: recipes\n---\na person's own\n")
    world.run()
    everybody = [*ids, "hand", "typo", "two"]
    with_recipes = ["documents", "memory", "workspace", "recipes", "recipes", "documents", "recipes"]
    assert [known(world, id).collection for id in everybody] == with_recipes
    for collections, wanted in (
        ((), ["documents", "memory", "workspace", "documents", "documents", "documents", "documents"]),
        (("recipes",), with_recipes),
        (("recipes", "typo"), [*with_recipes[:5], "typo", "recipes"]),
    ):
        world._sections["kb"] = KbSettings(collections=collections)
        world.reopen()
        made = len(world.encoder.calls)
        outcome = world.run()
        assert (outcome.embedded, outcome.failed) == (0, 0)
        assert outcome.changes <= 4, "only what it may concern is read again"
        assert [known(world, id).collection for id in everybody] == wanted
        assert len(world.encoder.calls) == made
        assert world.dump() == world.rebuilt(world.state.with_name("again"))
        world.reopen()
        assert world.run().changes == 0


# Through the tools


def test_tags_that_are_so_already_are_not_written(world):
    space = world.app.agent_access.workspace("default")
    id, file = captured(world, metadata={"tags": ["a", "b"]})
    before = file.read_bytes()
    for tags in (
        ["a", "b"],
        ["#a", "b", "collection:documents"],
        ["a", "b", "collection:memory", "collection:documents"],
    ):
        assert space.set_tags(id, tags).version == 1
        assert file.read_bytes() == before
    record = space.set_tags(id, ["b", "c d", "collection:memory"])
    assert (record.tags, record.collection, record.version) == (("b", "c-d"), "memory", 2)
    assert record.updated_at is not None
    after = file.read_text()
    assert "collection: memory\n" in after
    assert "collection:memory" not in after
    assert space.set_tags(id, []).tags == ()
    assert "tags" not in front_of(file)


def test_another_version_is_a_conflict_and_nothing_is_written(world):
    space = world.app.agent_access.workspace("default")
    id, file = captured(world)
    assert space.set_tags(id, ["a"], version=1).version == 2
    before = file.read_bytes()
    with pytest.raises(Conflict) as refused:
        space.set_tags(id, ["b"], version=1)
    assert refused.value.details["version"] == 2
    assert file.read_bytes() == before


def test_what_somebody_is_editing_is_not_written(world):
    space = world.app.agent_access.workspace("default")
    id, file = captured(world)
    good = file.read_bytes()
    for edited in (good + b"a line more", good.replace(b"created_at: ", b"created_at: [")):
        file.write_bytes(edited)
        with pytest.raises(Conflict) as refused:
            space.set_tags(id, ["a"])
        assert refused.value.retryable
        assert file.read_bytes() == edited
    file.unlink()
    with pytest.raises(Conflict, match="removed a moment ago"):
        space.set_tags(id, ["a"])
    world.app.agent_access.create_workspace("other")
    with pytest.raises(NotFound):
        world.app.agent_access.workspace("other").set_tags(id, ["a"])


def test_a_stored_file_and_a_node_are_tagged_like_a_note(world):
    space = world.app.agent_access.workspace("default")
    aged(
        world.write("Captures/default/Files/r.pdf.md", "---\nid: r\ntype: file\ncollection: documents\n---\nits text\n")
    )
    world.run()
    space.nodes.create([NewNode("Ada", "person", ("wrote",), None, ("x",))])
    world.run()
    node = space.nodes.get("Ada")
    for id in ("r", node.id):
        record = space.set_tags(id, ["math", "collection:recipes"])
        assert (record.tags, record.collection, record.version) == (("math",), "recipes", 2)
    assert (space.nodes.get("Ada").tags, space.nodes.get("Ada").version) == (("math",), 2)
    assert world.dump() == world.rebuilt(world.state.with_name("again"))


def test_what_a_person_put_on_a_node_survives_the_graphs_own_tags(world):
    space = world.app.agent_access.workspace("default")
    space.nodes.create([NewNode("Ada", "person", ("wrote",), None, ("x",))])
    id = space.nodes.get("Ada").id
    file = world.vault / known(world, id).path
    put(file, "tags", "tags: [x, collection:memory]\n")
    world.run()
    with pytest.raises(Conflict):  # what the person has just written may not be replaced unread
        space.nodes.set_tags("Ada", ["y"])
    aged(file)
    world.run()
    space.nodes.set_tags("Ada", ["y"])
    assert (space.nodes.get("Ada").tags, known(world, id).collection) == (("y",), "memory")
    with pytest.raises(InvalidArgument, match="collection:"):
        space.nodes.set_tags("Ada", ["collection:memory"])


def test_a_memo_keeps_the_collection_that_only_a_tag_names(world):
    space = world.app.agent_access.workspace("default")
    aged(world.write("Captures/default/Mine.md", "---\nid: mine\ntags: [a, collection:recipes]\n---\nmine\n"))
    world.run()
    saved = space.memos.save("mine, changed", memo_id="mine", metadata={"tags": ["b"]}).record
    assert (saved.tags, saved.collection) == (("b",), "recipes")
    saved = space.memos.save("mine, changed", memo_id="mine", metadata={"tags": ["b", "collection:memory"]}).record
    assert (saved.tags, saved.collection, saved.version) == (("b",), "memory", 3)
    assert (
        space.memos.save("mine, changed", memo_id="mine", metadata={"tags": ["b", "collection:memory"]}).record.version
        == 3
    )


def test_the_same_content_in_another_collection_is_another_note(world):
    first, _ = captured(world)
    second, _ = captured(world, collection="memory")
    assert first != second
    assert captured(world, collection="memory")[0] == second
    assert captured(world, metadata={"tags": ["collection:documents"]})[0] == first
    assert captured(world)[0] == first


def test_an_endpoint_that_gives_a_collection_for_a_tag_moves_nothing(tmp_path):
    with FakeChat() as chat:
        chat.says('{"summary": "S.", "tags": ["collection:memory", "#Collection: workspace", "ok"]}')
        world = World(tmp_path, enrich=EnrichSettings(by="endpoint", base_url=chat.url, model="small", timeout_s=5.0))
        try:
            id, _ = captured(world)
            record = known(world, id)
            assert (record.collection, record.tags) == (
                "documents",
                ("collection-memory", "collection-workspace", "ok"),
            )
            file = world.write("Captures/default/Mine.md", "---\nid: mine\ntags: [collection:memory]\n---\nmine\n")
            aged(file)
            world.run()
            world.app.operations["enrich"]({"id": "mine", "replace": True}, lambda _: None)
            assert (known(world, "mine").collection, known(world, "mine").tags) == ("memory", record.tags)
            world.app.operations["enrich"]({"id": "mine", "replace": True}, lambda _: None)
            assert names_in(file) == ["memory"]
        finally:
            world.close()


def test_a_collection_goes_out_with_the_graph_and_comes_in_again(world):
    ask = world.app.operations
    space = world.app.agent_access.workspace("default")
    space.nodes.create([NewNode("Ada", "person", ("wrote",))])
    space.set_tags(space.nodes.get("Ada").id, ["collection:recipes"])
    (line,) = ask["graph.export"]({"workspace": "default", "names": ["Ada"]}, print)["entities"]
    assert json.loads(line)["collection"] == "recipes"
    [(_, entity, mistakes)] = parse_lines([(1, line.encode())])
    assert not mistakes
    world.app.agent_access.create_workspace("other")
    told = {
        "name": "Ada",
        "entity_type": "person",
        "observations": ["wrote"],
        "ordinals": [1],
        "properties": dict(entity.properties),
    }
    ask["graph.import"]({"workspace": "other", "entities": [told]}, print)
    other = world.app.agent_access.workspace("other")
    assert other.get(other.nodes.get("Ada").id).record.collection == "recipes"
    relation = {"from_entity": "Ada", "to_entity": "Ada", "relation_type": "knows"}  # as version 0.1 sends it
    assert ask["graph.import"]({"workspace": "other", "relations": [relation]}, print)["related"] == 1
    told = told | {"name": "Eve", "properties": {"collection": "typo"}}
    with pytest.raises(InvalidArgument, match="recipes"):
        ask["graph.import"]({"workspace": "other", "entities": [told]}, print)


def test_the_commands_put_into_a_collection_and_look_in_one(world, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_VAULT", str(world.vault))
    monkeypatch.setenv("MEMEX_STATE", str(world.state))
    server = ControlServer(world.state, world.app.operations)
    server.start()
    try:
        assert run_command(["capture", "a recipe", "--collection", "recipes"]) == 0
        assert run_command(["capture", "a note", "--tag", "collection:memory", "--tag", "x"]) == 0
        capfd.readouterr()
        for name, count in (("recipes", 1), ("memory", 1), ("documents", 0)):
            assert run_command(["search", "a", "--mode", "text", "--collection", name, "--json"]) == 0
            assert len(json.loads(capfd.readouterr().out)) == count
        for line in (["capture", "x", "--collection", "typo"], ["search", "x", "--collection", "typo"]):
            assert run_command(line) == 2
            assert "documents, memory, workspace, recipes" in capfd.readouterr().err
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["Recipes", "", "two words", "a:b", "-a", "7a", "a" * 65, "straße", "#a"])
def test_a_name_that_no_tag_can_have_is_refused_as_a_setting(name):
    with pytest.raises(InvalidArgument, match=r"kb\.collections"):
        KbSettings(collections=(name,))


def test_every_name_is_known_once():
    assert KbSettings(collections=("memory", "日本", "a-b_2", "a-b_2")).all_collections == (
        *COLLECTIONS,
        "日本",
        "a-b_2",
    )


@pytest.mark.slow
def test_no_answer_of_any_tool_has_a_tag_that_names_a_collection(tmp_path):
    """All tools that read, and those that write and tell what became of it; notes that name their collection by a tag alone."""
    marked = "tags: [x, '#Collection:Memory', collection:memory]\n"
    with running(tmp_path) as rim:
        space = rim.space()
        with member(space) as agent:
            agent.good("create_entities", entities=ENTITIES)
            agent.good("create_relations", relations=RELATIONS)
            memo = agent.good(
                "memory.save", namespace="default", content="a memo", metadata={"tags": ["x", "collection:memory"]}
            )
            thought = agent.good("capture_thought", content="a thought", metadata={"tags": ["x", "collection:memory"]})
            assert (memo["tags"], thought["tags"]) == (["x"], ["x"])
            for name, front in {"Hand.md": "id: hand\n", "Files/r.pdf.md": "id: r\ntype: file\n"}.items():
                rim.world.write(f"Captures/{space.name}/{name}", f"---\n{front}{marked}---\nby hand engine\n")
            for record in space.tools.recent(50):
                file = rim.world.vault / record.path
                if record.type == "entity":
                    put(file, "tags", marked)
            until(
                lambda: len([one for one in space.tools.recent(50) if one.collection == "memory"]) == len(ENTITIES) + 4
            )
            calls: dict[str, dict[str, Any]] = {
                **GRAPH,
                "semantic_search": {"query": "engine", "top_k": 50},
                "get_thought": {"id": "hand"},
                "list_recent": {"limit": 50},
                "kb_search": {"query": "engine", "top_n": 50},
                "kb_get": {"id": "hand"},
                "kb_status": {},
                "kb_jobs": {},
                "memory.search": {"namespace": "default", "query": "memo"},
                "memory.relation.list": {},
                "memory.relation.graph": {"startMemoId": memo["memo_id"]},
            }
            reads = [one.name for family in FAMILIES.values() for one in family if one.scope == "read"]
            told = {name: agent.good(name, **calls[name]) for name in reads}
            told |= {
                f"{name} by id": agent.good(name, id=id)
                for name in ("get_thought", "kb_get")
                for id in ("r", thought["id"])
            }
            for name, one in told.items():
                assert "collection:" not in json.dumps(one).casefold(), name
        for path in ("/thoughts", f"/thought/{thought['id']}"):
            assert "collection:" not in space.rest("GET", path).text.casefold()
        assert "collection:" not in space.rest("POST", "/search", json={"query": "engine"}).text.casefold()
