"""Agents and a person at the same graph, in any order: it is what a plain model of it says, and so are its files."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import ValidationError

from index.errors import MemexError
from mcp_server.operations.wire_format import encode_payload
from mcp_server.tools.families import FAMILIES
from tests.support import graph_oracle
from tests.support.graph_oracle import key
from tests.support.mcp_agent import triple
from tests.support.state_machine import run_machine
from tests.support.world import World

TOOLS = {one.name: one for one in FAMILIES["graph"]}
NAMES = st.sampled_from(["Ada", "Bob", "Café au lait", "日本", "a/b: c", "Note.md", "🍀", "x" * 120])
TYPES = st.sampled_from(["person", "thing", "place"])
KINDS = st.sampled_from(["knew", "part of", "依存", "x-y"])
FACTS = st.one_of(
    st.sampled_from(["knew Ada", "two\nlines", "a\n\nblank between", "日本語の事実", "ends ^o9", "knew:: [[Bob]]", "- item", "## Relations"]),
    st.text(st.sampled_from("abc αβ日本🍀 \n"), min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
)  # fmt: skip
LINES = st.text(st.sampled_from("abcdef 日本🍀"), min_size=1, max_size=20).map(str.strip).filter(bool)
AT = st.integers(0, 10)
UNLINKED = ("a/b: c", "Note.md")  # what a link of these says is something else


@dataclass
class Thing:
    """An entity as the model has it."""

    name: str
    stem: str
    named: bool  # it says its name in a property, so moving its file does not rename it
    entity_type: str
    summary: str | None = None
    tags: list[str] = field(default_factory=list)
    facts: dict[int, str] = field(default_factory=dict)
    last: int = 0
    relations: list[tuple[str, str]] = field(default_factory=list)  # type, and the target as its file says it


def given(text: str) -> str:
    """An observation as it is kept."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def relinked(text: str, old: str, new: str) -> str:
    """The text once Obsidian has followed the rename of a note: it looks for links in facts too."""
    return text.replace(f"[[{old}]]", f"[[{new}]]").replace(f"[[{old}|", f"[[{new}|")


class Items:
    """The observations' lines in a note, for a person to edit: only the text that the model writes is understood."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        heads = [n for n, line in enumerate(self.lines) if line == "## Observations"]
        if not heads:
            self.lines += ["## Observations", ""] if self.lines[-1] == "" else ["", "## Observations", ""]
            heads = [len(self.lines) - 2]
        start = heads[0] + 1
        end = next((n for n in range(start, len(self.lines)) if self.lines[n].startswith("## ")), len(self.lines))
        while end > start and not self.lines[end - 1]:
            end -= 1
        self.start, self.end = start, end
        self.items: list[list[str]] = []
        for line in self.lines[start:end]:
            if line.startswith(("- ", "* ")) or not self.items:
                self.items.append([line])
            else:
                self.items[-1].append(line)

    def text(self) -> str:
        return "\n".join(
            [*self.lines[: self.start], *(line for item in self.items for line in item), *self.lines[self.end :]]
        )

    def at(self, ordinal: int) -> int:
        return next(n for n, item in enumerate(self.items) if item[-1].endswith(f"^o{ordinal}"))


class Graph(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memex-graph-"))
        self.world = World(self.folder)
        self.things: dict[str, Thing] = {}  # by key
        self.steps = self.begun = 0  # rules so far, and until the index was last made anew

    def teardown(self):
        self.world.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # The tools, as the rim runs them

    def ask(self, tool: str, **arguments: Any) -> Any:
        """What a tool tells, or the code of its refusal."""
        operation = TOOLS[tool]
        workspace = self.world.app.agent_access.workspace("default")
        try:
            asked = operation.given.model_validate(arguments)
            return encode_payload(operation.run(workspace, asked, self.world.app.settings))[0]
        except ValidationError:
            return "INVALID_ARGUMENT"
        except MemexError as error:
            return error.code

    @property
    def entities(self) -> Path:
        return self.world.vault / "Captures/default/Entities"

    def file(self, thing: Thing) -> Path:
        return self.entities / f"{thing.stem}.md"

    def known(self, name: str) -> Thing | None:
        """The thing that a call or a link means: by name, by its file's, by alias."""
        wanted = key(name)
        return self.things.get(wanted) or self.linked(name)

    def linked(self, target: str) -> Thing | None:
        wanted = key(target)
        stems = {key(thing.stem): thing for thing in self.things.values()}
        return stems.get(wanted) or self.things.get(wanted)

    def edges(self) -> set[tuple[str, str, str]]:
        return {
            (thing.name, kind, to.name)
            for thing in self.things.values()
            for kind, target in thing.relations
            if (to := self.linked(target))
        }

    def pick(self, data) -> Thing:
        return data.draw(st.sampled_from([self.things[one] for one in sorted(self.things)]))

    # What agents do

    @rule(
        name=NAMES,
        entity_type=TYPES,
        facts=st.lists(FACTS, max_size=3),
        summary=st.none() | LINES,
        tags=st.sets(st.sampled_from(["a", "b/c"])),
    )
    def create(self, name, entity_type, facts, summary, tags):
        self.created([(name, entity_type, facts, summary, sorted(tags))])

    @rule(names=st.lists(NAMES, min_size=2, max_size=3))
    def create_several(self, names):
        self.created([(name, "thing", [f"about {name}"], None, []) for name in names])

    def created(self, asked):
        told = self.ask(
            "create_entities",
            entities=[
                {"name": name, "entity_type": type, "observations": facts, "summary": summary, "tags": tags}
                for name, type, facts, summary, tags in asked
            ],
        )
        keys = [key(name) for name, *_ in asked]
        if len(set(keys)) < len(keys):
            assert told == "INVALID_ARGUMENT"
            return
        if any(one in self.things for one in keys):
            assert told == "CONFLICT"
            return
        assert [one["name"] for one in told["results"]] == [name for name, *_ in asked]
        files = {one.name: one for one in map(graph_oracle.read, self.entities.glob("*.md"))}
        for name, type, facts, summary, tags in asked:
            file = files[name]
            kept = {n: given(text) for n, text in enumerate(facts, 1)}
            self.things[key(name)] = Thing(
                name, file.file.stem, "name" in file.properties, type, summary, tags, kept, len(kept)
            )

    @precondition(lambda self: self.things)
    @rule(data=st.data(), other=NAMES)
    def delete(self, data, other):
        thing = self.pick(data)
        told = self.ask("delete_entities", entity_names=[thing.name.upper(), other])
        gone = {id(one): one for one in (thing, self.known(other)) if one}
        assert sorted(told["deleted"]) == sorted(one.name for one in gone.values())
        assert told["not_found"] == ([] if self.known(other) else [other])
        for one in self.things.values():
            one.relations = [(kind, to) for kind, to in one.relations if id(self.linked(to)) not in gone]
        self.things = {at: one for at, one in self.things.items() if id(one) not in gone}

    @precondition(lambda self: self.things)
    @rule(data=st.data(), facts=st.lists(FACTS, min_size=1, max_size=3))
    def add(self, data, facts):
        thing = self.pick(data)
        told = self.ask(
            "add_observations",
            observations=[{"entity_name": thing.name, "contents": facts}, {"entity_name": "nobody", "contents": ["x"]}],
        )
        assert [one["not_found"] for one in told["results"]] == [False, True]
        assert told["results"][0]["added"] == [
            {"ordinal": thing.last + n, "content": given(text)} for n, text in enumerate(facts, 1)
        ]
        for text in facts:
            thing.last += 1
            thing.facts[thing.last] = given(text)

    @precondition(lambda self: self.things)
    @rule(data=st.data(), text=FACTS, ordinal=st.integers(1, 6))
    def replace(self, data, text, ordinal):
        thing = self.pick(data)
        told = self.ask("replace_observation", entity_name=thing.name, ordinal=ordinal, new_content=text)
        if ordinal not in thing.facts:
            assert told == "NOT_FOUND"
            return
        assert (told["old_content"], told["new_content"]) == (thing.facts[ordinal], given(text))
        thing.facts[ordinal] = given(text)

    @precondition(lambda self: self.things)
    @rule(data=st.data(), ordinals=st.sets(st.integers(1, 6), min_size=1, max_size=3))
    def remove(self, data, ordinals):
        thing = self.pick(data)
        told = self.ask("delete_observations", deletions=[{"entity_name": thing.name, "ordinals": sorted(ordinals)}])
        (one,) = told["results"]
        assert sorted(one["deleted_ordinals"]) == sorted(ordinals & set(thing.facts))
        assert sorted(one["not_found_ordinals"]) == sorted(ordinals - set(thing.facts))
        thing.facts = {n: text for n, text in thing.facts.items() if n not in ordinals}

    @precondition(lambda self: self.things)
    @rule(data=st.data(), summary=LINES, tags=st.sets(st.sampled_from(["a", "b/c", "日本"])))
    def describe(self, data, summary, tags):
        thing = self.pick(data)
        assert self.ask("set_summary", name=thing.name, summary=summary)["summary"] == summary
        assert self.ask("set_tags", name=thing.name, tags=sorted(tags))["tags"] == sorted(tags)
        thing.summary, thing.tags = summary, sorted(tags)

    @precondition(lambda self: self.things)
    @rule(data=st.data(), kinds=st.lists(KINDS, min_size=1, max_size=3))
    def relate(self, data, kinds):
        asked = [(self.pick(data), kind, self.pick(data)) for kind in kinds]
        told = self.ask(
            "create_relations",
            relations=[{"from_entity": a.name, "to_entity": b.name, "relation_type": kind} for a, kind, b in asked],
        )
        new = []
        for a, kind, b in asked:
            if (a.name, kind, b.name) not in self.edges():
                a.relations.append((kind, b.stem))
                new.append((a.name, kind, b.name))
        assert [triple(edge) for edge in told["created"]] == new
        assert {triple(edge) for edge in told["already_existed"]} >= {
            (a.name, kind, b.name) for a, kind, b in asked
        } - set(new)
        assert told["not_found"] == []

    @precondition(lambda self: self.edges())
    @rule(data=st.data(), new=KINDS)
    def retype(self, data, new):
        source, old, target = data.draw(st.sampled_from(sorted(self.edges())))
        told = self.ask("update_relation_type", from_entity=source, to_entity=target, old_type=old, new_type=new)
        if old == new:
            same = {"from_entity": source, "to_entity": target, "old_type": old, "new_type": new}
            assert told == "CONFLICT" or told.items() >= same.items()
            return
        if (source, new, target) in self.edges():
            assert told == "CONFLICT"
            return
        assert told["new_type"] == new
        thing = self.things[key(source)]
        thing.relations = [
            (new if kind == old and self.linked(to) is self.things[key(target)] else kind, to)
            for kind, to in thing.relations
        ]

    @precondition(lambda self: self.edges())
    @rule(data=st.data())
    def unrelate(self, data):
        source, kind, target = data.draw(st.sampled_from(sorted(self.edges())))
        asked = {"from_entity": source, "to_entity": target, "relation_type": kind}
        missing = asked | {"relation_type": "never"}
        told = self.ask("delete_relations", relations=[asked, missing])
        assert (told["deleted"], told["not_found"]) == (1, 1)
        thing = self.things[key(source)]
        thing.relations = [
            one for one in thing.relations if not (one[0] == kind and self.linked(one[1]) is self.things[key(target)])
        ]

    @rule(name=NAMES, ordinal=AT)
    def fail(self, name, ordinal):
        """What is refused changes nothing: the invariant looks."""
        if self.known(name):
            assert key(name) not in self.things or (
                self.ask(
                    "create_entities",
                    entities=[{"name": "Fresh", "entity_type": "x"}, {"name": name, "entity_type": "x"}],
                )
                == "CONFLICT"
            )
            assert self.ask("set_summary", name=name, summary="late", version=10**6) == "CONFLICT"
            assert (
                self.ask("replace_observation", entity_name=name, ordinal=ordinal + 500, new_content="x") == "NOT_FOUND"
            )
            assert (
                self.ask("add_observations", observations=[{"entity_name": name, "contents": ["fine", " "]}])
                == "INVALID_ARGUMENT"
            )
        else:
            assert self.ask("set_tags", name=name, tags=["x"]) == "NOT_FOUND"
            assert self.ask("get_neighborhood", name=name) == "NOT_FOUND"
            assert self.ask("open_nodes", names=[name])["not_found"] == [name]
        assert self.ask("create_entities", entities=[{"name": " ", "entity_type": "x"}]) == "INVALID_ARGUMENT"

    # What a person does

    def edit(self, thing: Thing, change) -> None:
        file = self.file(thing)
        items = Items(file.read_bytes().decode())
        change(items)
        self.saved(file, items.text())

    def saved(self, file: Path, text: str) -> None:
        temporary = file.with_name(".saving")
        temporary.write_bytes(text.encode())
        temporary.rename(file)

    @precondition(lambda self: self.things)
    @rule(data=st.data(), lines=st.lists(st.tuples(AT, LINES), min_size=1, max_size=3), agent=st.booleans())
    def person_adds(self, data, lines, agent):
        thing = self.pick(data)

        def change(items):
            for at, line in lines:
                items.items.insert(min(at, len(items.items)), [f"- {line}"])
            for item in items.items:
                if "^o" not in item[-1]:
                    thing.last += 1
                    thing.facts[thing.last] = item[0][2:]

        self.edit(thing, change)
        if agent:  # writes before the daemon has seen what the person did
            told = self.ask("add_observations", observations=[{"entity_name": thing.name, "contents": ["an agent's"]}])
            thing.last += 1
            thing.facts[thing.last] = "an agent's"
            assert told["results"][0]["added"] == [{"ordinal": thing.last, "content": "an agent's"}]
        self.world.run()

    @precondition(lambda self: any(thing.facts for thing in self.things.values()))
    @rule(data=st.data(), line=LINES, keep=st.booleans())
    def person_rewords(self, data, line, keep):
        thing = data.draw(st.sampled_from([one for _, one in sorted(self.things.items()) if one.facts]))
        ordinal = data.draw(st.sampled_from(sorted(thing.facts)))

        def change(items):
            items.items[items.at(ordinal)] = [f"- {line} ^o{ordinal}" if keep else f"- {line}"]

        self.edit(thing, change)
        if keep:
            thing.facts[ordinal] = line
        else:  # without its id it is another one
            del thing.facts[ordinal]
            thing.last += 1
            thing.facts[thing.last] = line
        self.world.run()

    @precondition(lambda self: any(thing.facts for thing in self.things.values()))
    @rule(data=st.data(), twice=st.booleans())
    def person_copies_or_deletes(self, data, twice):
        thing = data.draw(st.sampled_from([one for _, one in sorted(self.things.items()) if one.facts]))
        ordinal = data.draw(st.sampled_from(sorted(thing.facts)))

        def change(items):
            at = items.at(ordinal)
            if twice:
                items.items.insert(at, list(items.items[at]))
            else:
                del items.items[at]

        self.edit(thing, change)
        if twice:
            thing.last += 1
            thing.facts[thing.last] = thing.facts[ordinal]
        else:
            del thing.facts[ordinal]
        self.world.run()

    @precondition(lambda self: self.things)
    @rule(data=st.data(), prose=LINES)
    def person_reorders_and_writes_prose(self, data, prose):
        thing = self.pick(data)

        def change(items):
            items.items = data.draw(st.permutations(items.items))
            items.lines += ["## Thoughts", f"{prose} about [[Ada]]", "- an item of its own", ""]

        self.edit(thing, change)
        self.world.run()

    @precondition(lambda self: self.things)
    @rule(data=st.data(), kind=KINDS, towards=NAMES, bare=st.booleans())
    def person_relates(self, data, kind, towards, bare):
        thing = self.pick(data)
        assume(towards not in UNLINKED)
        file = self.file(thing)
        text = file.read_bytes().decode()
        head = "" if text.endswith("\n") else "\n"
        line = f"{kind}:: [[{towards}]]" if bare else f"- {kind}:: [[{towards}|so called]]"
        self.saved(file, f"{text}{head}\n## Seen\n{line}\n")
        if (kind, key(towards)) not in {(one, key(to)) for one, to in thing.relations}:
            thing.relations.append((kind, towards))
        self.world.run()

    @precondition(lambda self: self.things)
    @rule(data=st.data(), stem=st.sampled_from(["Eva", "Émile Zola", "新しい", "Ada", "Bob"]), links=st.booleans())
    def person_renames(self, data, stem, links):
        thing = self.pick(data)
        assume(self.known(stem) is None)
        old = thing.stem
        pointing = [one for one in self.things.values() if any(self.linked(to) is thing for _, to in one.relations)]
        told = {
            id(one): [self.linked(to) is thing and key(to) == key(old) for _, to in one.relations] for one in pointing
        }
        self.file(thing).rename(self.entities / f"{stem}.md")
        thing.stem = stem
        if not thing.named:
            del self.things[key(thing.name)]
            thing.name = stem
            self.things[key(stem)] = thing
        if links:  # as Obsidian does when it is asked to
            for one in pointing:
                file = self.file(one)
                text = file.read_bytes().decode()
                for written in {to for _, to in one.relations if key(to) == key(old)}:
                    text = relinked(text, written, stem)
                    one.facts = {number: relinked(fact, written, stem) for number, fact in one.facts.items()}
                self.saved(file, text)
                moved = zip(one.relations, told[id(one)], strict=True)
                one.relations = [(kind, stem if hit else to) for (kind, to), hit in moved]
        self.world.run()

    @precondition(lambda self: self.things)
    @rule(data=st.data())
    def person_deletes_the_note(self, data):
        thing = self.pick(data)
        self.file(thing).unlink()
        self.things = {at: one for at, one in self.things.items() if one is not thing}
        self.world.run()

    @rule(
        name=st.sampled_from(["Ada", "Grace", "手書き"]), lines=st.lists(LINES, max_size=3), kind=KINDS, towards=NAMES
    )
    def person_makes_a_note(self, name, lines, kind, towards):
        assume(self.known(name) is None and towards not in UNLINKED)
        items = "".join(f"* {line}\n" for line in lines)
        self.world.write(
            f"Captures/default/Entities/{name}.md",
            f"---\nentity_type: place\n---\nHello.\n\n## Observations\n{items}\n## Relations\n- {kind}:: [[{towards}]]\n",
        )
        facts = dict(enumerate(lines, 1))
        self.things[key(name)] = Thing(
            name, name, False, "place", facts=facts, last=len(facts), relations=[(kind, towards)]
        )
        self.world.run()

    # What the machine does

    @precondition(lambda self: self.steps - self.begun > 4)
    @rule()
    def restart(self):
        self.begun = self.steps
        self.world.reopen()

    @precondition(lambda self: self.steps - self.begun > 4)
    @rule()
    def rebuild(self):
        self.begun = self.steps
        self.world.app.operations["index"]({"full": True}, lambda _: None)

    @precondition(lambda self: self.steps - self.begun > 4)
    @rule()
    def equals_rebuilt(self):
        self.begun = self.steps
        self.world.run()
        kept, made = self.world.dump(), self.world.rebuilt(self.folder / "other")
        for scope in kept:
            for part in kept[scope]:
                assert kept[scope][part] == made[scope][part], (scope, part)

    # What must hold

    @precondition(lambda self: len(self.things) > 1)
    @rule(data=st.data(), depth=st.integers(1, 3))
    def explore(self, data, depth):
        start, end = self.pick(data), self.pick(data)
        edges = self.edges()
        near = {name for name in (one.name for one in self.things.values()) if self.far(start.name, name) <= depth}
        told = self.ask("get_neighborhood", name=start.name, depth=depth)
        assert {node["name"] for node in told["nodes"]} == near
        assert {triple(edge) for edge in told["relations"]} == {edge for edge in edges if {edge[0], edge[2]} <= near}
        told = self.ask("get_path", from_entity=start.name, to_entity=end.name)
        steps = graph_oracle.shortest(edges, start.name, end.name)
        assert told["found"] == (steps is not None)
        if steps is not None:
            assert len(told["path"]) == steps + 1
            assert (told["path"][0], told["path"][-1]) == (start.name, end.name)
            assert len(told["relations"]) == steps
            for at, edge in enumerate(told["relations"]):
                assert triple(edge) in edges
                assert {edge["from"], edge["to"]} == set(told["path"][at : at + 2])
        between = {
            triple(edge)
            for edge in self.ask("get_relations_between", entity_a=start.name, entity_b=end.name)["results"]
        }
        assert between == {edge for edge in edges if {edge[0], edge[2]} == {start.name, end.name}}

    def far(self, start: str, end: str) -> float:
        steps = graph_oracle.shortest(self.edges(), start, end)
        return float("inf") if steps is None else steps

    @precondition(lambda self: any(thing.facts for thing in self.things.values()))
    @rule(data=st.data())
    def search(self, data):
        thing = data.draw(st.sampled_from([one for _, one in sorted(self.things.items()) if one.facts]))
        text = data.draw(st.sampled_from(sorted(thing.facts.values())))
        hits = self.ask("query_observations", entity_name=thing.name, query=text)["results"]
        assert {hit["ordinal"]: hit["content"] for hit in hits} == thing.facts
        found = {hit["name"]: hit for hit in self.ask("search_nodes", query=text, limit=50)["results"]}
        assert set(found) == {one.name for one in self.things.values() if one.facts}
        assert all(
            found[one.name]["matched_observation"] in one.facts.values() for one in self.things.values() if one.facts
        )

    @invariant()
    def the_graph_is_the_model(self):
        self.steps += 1
        things = {thing.name: thing for thing in self.things.values()}
        told = self.ask("open_nodes", names=[*sorted(things), "nobody"])
        assert told["not_found"] == ["nobody"]
        assert {triple(edge) for edge in told["relations"]} == self.edges()
        assert len(told["relations"]) == len(self.edges())
        assert [node["name"] for node in told["entities"]] == sorted(things)
        for node in told["entities"]:
            thing = things[node["name"]]
            assert node["entity_type"] == thing.entity_type
            assert (node["summary"], sorted(node["tags"])) == (thing.summary, sorted(thing.tags))
            facts = [(one["ordinal"], one["content"]) for one in node["observations"]]
            assert facts == sorted(thing.facts.items()), node["name"]
        ends = {end for source, _, target in self.edges() for end in (source, target)}
        assert {node["name"] for node in self.ask("get_orphans")["results"]} == set(things) - ends
        stats = self.ask("get_stats")
        assert (stats["node_count"], stats["relation_count"]) == (len(things), len(self.edges()))
        assert stats["observation_count"] == sum(len(thing.facts) for thing in things.values())

    @invariant()
    def the_files_are_the_model(self):
        for file in self.entities.glob("*.md") if self.entities.is_dir() else ():
            one = graph_oracle.read(file)
            thing = self.things[key(one.name)]
            assert (thing.name, thing.stem) == (one.name, file.stem)
            assert one.properties["id"], "adopted"
            assert one.properties.get("last_ordinal", 0) == thing.last or not thing.last
        assert len(list(self.entities.glob("*.md"))) == len(self.things)


@pytest.mark.timeout(900)
def test_any_edits_by_agents_and_people_make_the_graph_that_a_plain_model_says():
    run_machine(Graph, Graph.equals_rebuilt, 3, 15)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_any_edits_by_agents_and_people_at_length():
    examples, steps = (int(n) for n in os.environ.get("MEMEX_MACHINE", "200x30").split("x"))
    run_machine(Graph, Graph.equals_rebuilt, examples, steps)
