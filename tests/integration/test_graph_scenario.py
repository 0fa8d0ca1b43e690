"""An agent reads a vault's notes into a graph of 200 entities, a person edits ten of them, the agent consolidates: all agree.

`make graph` runs it and prints what came of it."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

import vault_fixtures
from tests.support import graph_oracle
from tests.support.graph_oracle import key
from tests.support.live_server import Rim, running
from tests.support.mcp_agent import Agent, agent, triple
from tests.support.world import until

DEMO = Path(vault_fixtures.__file__).parent / "demo"
COUNT = 200
KINDS = {
    "People": "person", "Projects": "project", "Meetings": "meeting", "Books": "book", "Areas": "area", "Recipes": "recipe",
    "Daily": "day",
}  # fmt: skip
LINK = re.compile(r"\[\[([^\]|#\\]+)")
BATCH = 25


@dataclass
class Found:
    """What the test, in the place of an agent, makes of a note or of one of its sections."""

    name: str
    entity_type: str
    facts: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)  # relation type and name of the target


def extracted() -> list[Found]:
    """200 entities of the demo vault: its notes, what is to be done, its tags, the sections of its notes."""
    notes, sections, tasks, tags, aliases = [], [], [], {}, {}
    for file in sorted(DEMO.rglob("*.md"), key=lambda file: unicodedata.normalize("NFC", str(file))):
        kind = KINDS.get(file.relative_to(DEMO).parts[0])
        if kind is None:
            continue
        text = file.read_text("utf-8")
        front, body = ("", text)
        if text.startswith("---\n"):
            _, front, body = text.split("---\n", 2)
        said = yaml.safe_load(front) or {}
        note = Found(file.stem, kind, tags=[str(tag) for tag in said.get("tags", [])])
        aliases |= dict.fromkeys([*said.get("aliases", []), file.stem], file.stem)
        for person in said.get("people", ()):
            note.edges += [("attended_by", name.strip()) for name in LINK.findall(person)]
        for tag in note.tags:
            tags.setdefault(tag, Found(f"#{tag}", "tag", [f"Is used in {file.stem}"])).facts.append(
                f"Marks {file.stem}"
            )
            note.edges.append(("tagged", f"#{tag}"))
        at = note
        for line in body.splitlines():
            if heading := re.match(r"^## (.+)$", line):
                at = Found(f"{file.stem}: {heading[1]}", "section")
                sections.append(at)
                note.edges.append(("has_section", at.name))
            elif task := re.match(r"^- \[.\] ([^\[:⏫🔼🔽📅✅🆔🔁]+)", line):
                done = Found(task[1].strip()[:100].strip(), "task", [f"Is to be done for {file.stem}"])
                tasks.append(done)
                note.edges.append(("has_task", done.name))
            elif (fact := re.sub(r"^(?:[-*>] |\d+\. |#+ )+", "", line).strip()) and len(at.facts) < 6:
                at.facts.append(fact)
            at.edges += [("mentions", name.strip()) for name in LINK.findall(line)]
        notes.append(note)
    chosen = list({key(one.name): one for one in [*notes, *tasks, *tags.values(), *sections]}.values())[:COUNT]
    names = {one.name for one in chosen}
    for one in chosen:
        ends = {(kind, aliases.get(name, name)) for kind, name in one.edges}
        one.edges = sorted((kind, name) for kind, name in ends if name in names and name != one.name)
    return chosen


@dataclass
class Run:
    """The vault, the agent and what is counted on the way."""

    rim: Rim
    agent: Agent
    folder: Path
    told: dict[str, object] = field(default_factory=dict)

    def save(self, name: str, change) -> None:
        """Write a note as Obsidian does: whole, by another file's name."""
        file = self.files()[name].file
        after = change(file.read_text("utf-8"))
        assert after != file.read_text("utf-8"), name
        saving = file.with_name(f".{file.name}.saving")
        saving.write_text(after, "utf-8")
        saving.rename(file)

    def files(self) -> dict[str, graph_oracle.Read]:
        return graph_oracle.graph(self.folder)[0]

    def agrees(self) -> bool:
        """Whether the graph that tools show is the one that the files say, and every item has got its id."""
        names, edges = graph_oracle.graph(self.folder)
        told = [self.agent.good("open_nodes", names=sorted(names)[at : at + 50]) for at in range(0, len(names), 50)]
        entities = {node["name"]: node for part in told for node in part["entities"]}
        if set(entities) != set(names) or {triple(edge) for part in told for edge in part["relations"]} != edges:
            return False
        if self.agent.good("get_stats")["node_count"] != len(names):
            return False
        return all(
            {fact["ordinal"]: fact["content"] for fact in entities[name]["observations"]} == one.facts
            and not one.unnumbered
            and entities[name]["summary"] == one.properties.get("summary")
            and entities[name]["tags"] == list(one.properties.get("tags") or [])
            for name, one in names.items()
        )

    def built(self, found: list[Found]) -> None:
        """The graph, batch by batch."""
        for at in range(0, len(found), BATCH):
            batch = found[at : at + BATCH]
            told = self.agent.listed(
                "create_entities",
                entities=[
                    {"name": one.name, "entity_type": one.entity_type, "observations": one.facts, "tags": one.tags}
                    for one in batch
                ],
            )
            assert [one["name"] for one in told] == [one.name for one in batch]
        wanted = [
            {"from_entity": one.name, "to_entity": target, "relation_type": kind}
            for one in found
            for kind, target in one.edges
        ]
        made = 0
        for at in range(0, len(wanted), 100):
            told = self.agent.good("create_relations", relations=wanted[at : at + 100])
            assert (told["already_existed"], told["not_found"]) == ([], [])
            made += len(told["created"])
        assert made == len(wanted)
        assert self.agrees()
        names, edges = graph_oracle.graph(self.folder)
        assert {name: [*one.facts.values()] for name, one in names.items()} == {one.name: one.facts for one in found}
        assert edges == {(one.name, kind, target) for one in found for kind, target in one.edges}
        self.told |= {
            "entities": len(names),
            "relations": len(edges),
            "observations": sum(len(one.facts) for one in found),
        }
        self.told["types"] = dict(Counter(one.entity_type for one in found))

    def edited(self) -> None:
        """Ten edits of ten kinds, by hand; after each the graph comes to say what the file says."""
        for number, edit in enumerate(self.edits(), 1):
            until(self.agrees, 60)
            edit()
            self.told["edits by hand"] = number

    def edits(self) -> Iterator:
        """Each edit, and then what must have come of it."""
        ask = self.agent

        last = int(self.files()["Dario Venn"].properties["last_ordinal"])
        self.save(
            "Dario Venn", lambda text: text.replace("## Observations\n", "## Observations\n* Plays the zither\n", 1)
        )
        yield lambda: self.seen("Dario Venn", last + 1, "Plays the zither")

        first = min(self.files()["Heron"].facts)
        self.save(
            "Heron",
            lambda text: re.sub(rf"^- .* \^o{first}$", f"- Said anew ^o{first}", text, count=1, flags=re.MULTILINE),
        )
        yield lambda: self.seen("Heron", first, "Said anew")

        before = dict(self.files()["Sourdough"].facts)
        gone = max(before)
        self.save("Sourdough", lambda text: re.sub(rf"^- .*\^o{gone}\n", "", text, count=1, flags=re.MULTILINE))
        yield lambda: self.same("Sourdough", {n: fact for n, fact in before.items() if n != gone})
        (told,) = ask.listed(
            "add_observations", observations=[{"entity_name": "Sourdough", "contents": ["Rises twice"]}]
        )
        assert told["added"][0]["ordinal"] == gone + 1  # never the one that went

        def turned(text: str) -> str:
            lines = text.split("\n")
            at = [n for n, line in enumerate(lines) if re.search(r"^- .*\^o\d+$", line)]
            for n, line in zip(at, [lines[n] for n in reversed(at)], strict=True):
                lines[n] = line
            return "\n".join(lines)

        ordered = dict(self.files()["Sleep"].facts)
        self.save("Sleep", turned)
        yield lambda: self.same("Sleep", ordered)

        yield from self.renamed("Is done already")

        self.save(
            "Running", lambda text: text.rstrip("\n") + "\n\n## Related\n- helps:: [[Sleep]], [[Hiring|the hiring]]\n"
        )
        yield lambda: self.edges("Running", {("Running", "helps", "Sleep"), ("Running", "helps", "Hiring")})

        kept = {edge for edge in ask.edges("Compost") if edge[0] == "Compost"}
        lost = min(kept)
        self.save("Compost", lambda text: re.sub(rf"^- {lost[1]}:: .*\n", "", text, count=1, flags=re.MULTILINE))
        yield lambda: self.lost(lost)

        self.save(
            "Hiring",
            lambda text: text.replace("\nentity_type:", "\nsummary: Who is wanted, and for what.\nentity_type:", 1),
        )
        yield lambda: self.summed("Hiring", "Who is wanted, and for what.")

        told_before = ask.node("🌱 Garden")
        self.save(
            "🌱 Garden",
            lambda text: (
                f"{text.rstrip()}\n\n## My thoughts\nProse of a person about [[Heron]], in [brackets] and:: [no link].\n- an item of theirs\n"
            ),
        )
        yield lambda: self.same("🌱 Garden", {fact["ordinal"]: fact["content"] for fact in told_before["observations"]})

        (self.folder / "Entities/Written by hand.md").write_text(
            "---\nentity_type: idea\n---\nIt came to me.\n\n## Observations\n- One\n- Two\n  of two lines\n\n## Links\nabout:: [[Heron]]\n",
            "utf-8",
        )
        yield lambda: self.by_hand()

    def renamed(self, new: str) -> Iterator:
        """A note's file gets another name in Obsidian, which mends the links to it."""
        found = self.files()
        tasks = [name for name, one in found.items() if one.properties["entity_type"] == "task"]
        old = next(name for name in sorted(tasks) if "name" not in found[name].properties)
        one = found[old]
        edges = {edge for edge in graph_oracle.graph(self.folder)[1] if old in (edge[0], edge[2])}
        stem = one.file.stem
        one.file.rename(one.file.with_name(f"{new}.md"))
        for other in self.folder.rglob("*.md"):
            text = other.read_text("utf-8")
            mended = text.replace(f"[[{stem}]]", f"[[{new}]]").replace(f"[[{stem}|", f"[[{new}|")
            if mended != text:
                other.write_text(mended, "utf-8")
        wanted = {tuple(new if part == old else part for part in edge) for edge in edges}
        assert wanted
        yield lambda: self.moved(new, one.facts, wanted)

    # What must have come of an edit

    def seen(self, name: str, ordinal: int, text: str) -> None:
        assert self.agent.facts(name)[ordinal] == text
        hits = self.agent.listed("search_nodes", query=text)
        assert (name, text) in {(hit["name"], hit["matched_observation"]) for hit in hits}

    def same(self, name: str, facts: dict[int, str]) -> None:
        assert self.agent.facts(name) == facts

    def edges(self, name: str, wanted: set[tuple[str, str, str]]) -> None:
        assert wanted <= self.agent.edges(name)
        assert len(self.agent.good("get_path", from_entity=name, to_entity="Sleep")["path"]) == 2

    def lost(self, edge: tuple[str, str, str]) -> None:
        assert edge not in self.agent.edges(edge[0])

    def summed(self, name: str, summary: str) -> None:
        assert self.agent.node(name)["summary"] == summary
        assert name not in {node["name"] for node in self.agent.listed("get_pending_consolidation")}

    def moved(self, name: str, facts: dict[int, str], edges: set[tuple[str, ...]]) -> None:
        assert self.agent.facts(name) == facts
        assert edges <= self.agent.edges(name)

    def by_hand(self) -> None:
        node = self.agent.node("Written by hand")
        assert (node["entity_type"], self.agent.facts("Written by hand")) == (
            "idea",
            {1: "One", 2: "Two\nof two lines"},
        )
        assert ("Written by hand", "about", "Heron") in self.agent.edges("Heron")

    # The agent puts it in order

    def consolidated(self) -> None:
        """Drafts become summaries, the best candidates and gaps become relations."""
        ask = self.agent
        report = ask.good("get_consolidation_report")
        pending = {node["name"]: node for node in ask.listed("get_pending_consolidation")}
        names, edges = graph_oracle.graph(self.folder)
        assert set(pending) <= set(names)
        for node in pending.values():
            assert node["observation_count"] == len(names[node["name"]].facts)
        stale = {node["name"]: node for node in report["stale_summaries"]}
        assert set(stale) <= set(pending)
        orphans = {node["name"] for node in report["orphaned_nodes"]}
        joined = {end for source, _, target in edges for end in (source, target)}
        assert orphans == {node["name"] for node in ask.listed("get_orphans")} == set(names) - joined
        clustered = [name for cluster in report["cluster_summary"] for name in cluster["node_names"]]
        assert len(clustered) == len(set(clustered))
        assert set(clustered) <= set(names)
        drafted = {name: node["draft_summary"] for name, node in stale.items() if node["draft_summary"]}
        assert drafted
        for name in pending:
            ask.good(
                "set_summary", name=name, summary=drafted.get(name) or next(iter(names[name].facts.values()), name)
            )
        assert ask.listed("get_pending_consolidation") == []
        likely = [(one["node_a"], one["node_b"]) for one in report["relation_candidates"]]
        gaps = [(gap["node"], gap["referenced_name"]) for gap in ask.listed("get_relation_gaps")]
        new = list(dict.fromkeys([*likely, *gaps[:20]]))
        assert new
        pairs = {(source, target) for source, _, target in edges}
        assert not [pair for pair in likely if pair in pairs or pair[::-1] in pairs]
        ask.good(
            "create_relations",
            relations=[{"from_entity": a, "to_entity": b, "relation_type": "relates_to"} for a, b in new],
        )
        left = ask.good("get_consolidation_report")
        assert left["stale_summaries"] == []
        assert not {(one["node_a"], one["node_b"]) for one in left["relation_candidates"]} & set(likely)
        assert left["event_summary"]["updates"] > report["event_summary"]["updates"]
        self.told |= {
            "summaries set": len(pending),
            "relations made of candidates and gaps": len(new),
            "clusters": len(report["cluster_summary"]),
        }
        assert self.agrees()

    def checked(self) -> None:
        """Paths, searches, lists and files are one."""
        ask = self.agent
        names, edges = graph_oracle.graph(self.folder)
        ordered = sorted(names)
        lengths = Counter()
        for at in range(0, len(ordered), 3):
            one, other = ordered[at], ordered[-1 - at]
            told = ask.good("get_path", from_entity=one, to_entity=other)
            steps = graph_oracle.shortest(edges, one, other)
            assert (len(told["path"]) - 1 if told["found"] else None) == steps, (one, other)
            assert {triple(edge) for edge in told["relations"]} <= edges
            lengths[steps] += 1
        said = Counter(text for one in names.values() for text in one.facts.values())
        asked = 0
        for name in ordered[::4]:
            own = [text for text in names[name].facts.values() if said[text] == 1]  # others' words find others too
            if not own:
                continue
            asked += 1
            text = max(own, key=len)
            for mode in ("embedding", "text"):
                hits = ask.listed("search_nodes", query=text[:1_000], mode=mode, limit=20)
                found = {hit["name"]: hit["matched_observation"] for hit in hits}
                assert name in found, (name, mode)
                assert all(
                    any(fact.startswith(shown) for fact in names[hit].facts.values()) for hit, shown in found.items()
                )
        stats = ask.good("get_stats")
        assert (stats["node_count"], stats["relation_count"]) == (len(names), len(edges))
        assert stats["observation_count"] == sum(len(one.facts) for one in names.values())
        assert stats["embedding_coverage"] == 1.0
        assert asked > 20
        self.told |= {
            "searches compared": asked * 2,
            "paths compared": sum(lengths.values()),
            "of lengths": dict(sorted(lengths.items(), key=str)),
        }


def rebuilt(rim: Rim) -> None:
    """An index made anew of the files is the same."""
    world = rim.world
    world.run()
    kept, made = world.dump(), world.rebuilt(world.vault.parent / "other")
    assert kept == made


@pytest.mark.slow
def test_a_graph_of_200_entities_is_built_edited_by_hand_and_consolidated(tmp_path):
    found = extracted()
    assert len(found) == len({key(one.name) for one in found}) == COUNT
    assert sum(":" in one.name for one in found) > 30  # names that no file can have

    def fill(world):
        shutil.copytree(DEMO, world.vault, dirs_exist_ok=True)

    with running(tmp_path / "rim", fill=fill) as rim:
        rim.agent_access.create_workspace("research")
        proper = {path: raw for path, raw in rim.files().items() if not path.startswith("Captures/research/")}
        with agent(rim, workspace="research") as one:
            run = Run(rim, one, rim.world.vault / "Captures/research")
            run.built(found)
            run.edited()
            until(run.agrees, 60)
            run.consolidated()
            run.checked()
        now = {path: raw for path, raw in rim.files().items() if not path.startswith("Captures/research/")}
        assert now == proper  # no byte of another note changed
        rebuilt(rim)
    width = max(map(len, run.told))
    print()  # noqa: T201 - `make graph` shows it
    for what, value in run.told.items():
        print(f"{what:<{width}}  {value}")  # noqa: T201 - as above


@pytest.mark.slow
@pytest.mark.parametrize("workspace", ["default", "work"])
def test_the_demo_s_own_entities_are_nodes_as_they_stand(tmp_path, workspace):
    def fill(world):
        shutil.copytree(DEMO, world.vault, dirs_exist_ok=True)

    with running(tmp_path / "rim", fill=fill) as rim, agent(rim, workspace=workspace, path="/mcp/graph") as one:
        before = rim.files()
        run = Run(rim, one, rim.world.vault / f"Captures/{workspace}")
        assert run.agrees()
        names, edges = graph_oracle.graph(run.folder)
        assert len(names) >= 3
        assert edges
        for name, said in names.items():
            assert one.node(name.upper())["entity_type"] == said.properties["entity_type"]
        assert rim.files() == before
        name, said = max(names.items(), key=lambda item: len(item[1].facts))
        (told,) = one.listed("add_observations", observations=[{"entity_name": name, "contents": ["New"]}])
        assert told["added"] == [{"ordinal": said.properties["last_ordinal"] + 1, "content": "New"}]
