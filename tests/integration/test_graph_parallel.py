"""Many agents at once on one graph, over HTTP: nothing is lost, nothing is doubled, and the files agree."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import graph_oracle
from tests.support.live_server import running
from tests.support.mcp_agent import member, triple

MANY = 20


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture
def space(rim):
    return rim.space()


def at_once(space, work, count=MANY):
    """What `work(agent, number)` returns in each of `count` clients at the same time."""

    def one(number):
        with member(space) as agent:
            return work(agent, number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def agrees(space):
    """What the graph says after a pass and what its files say are one; returns both."""
    for _ in range(2):
        names, edges = graph_oracle.graph(space.folder)
        with member(space) as one:
            told = one.good("open_nodes", names=sorted(names))
            stats = one.good("get_stats")
        assert told["not_found"] == []
        facts = {
            node["name"]: {fact["ordinal"]: fact["content"] for fact in node["observations"]}
            for node in told["entities"]
        }
        assert facts == {name: node.facts for name, node in names.items()}
        assert {triple(edge) for edge in told["relations"]} == edges
        assert (stats["node_count"], stats["relation_count"]) == (len(names), len(edges))
        space.rim.world.run()
    return names, edges


@pytest.mark.slow
def test_different_entities_made_at_once_are_all_kept(space):
    def work(agent, number):
        return agent.listed(
            "create_entities",
            entities=[{"name": f"Node {number}.{n}", "entity_type": "x", "observations": ["a", "b"]} for n in range(3)],
        )

    told = at_once(space, work)
    assert sum(map(len, told)) == MANY * 3
    names, _ = agrees(space)
    assert len(names) == MANY * 3


@pytest.mark.slow
def test_one_name_is_given_once(space):
    def work(agent, number):
        spelt = ("The Same", "the same", "THE  SAME")[number % 3]
        return agent.ask(
            "create_entities", entities=[{"name": spelt, "entity_type": "x", "observations": [f"by {number}"]}]
        )[0]

    assert Counter(at_once(space, work)) == {"ok": 1, "CONFLICT": MANY - 1}
    names, _ = agrees(space)
    assert len(names) == len(list(space.folder.rglob("*.md"))) == 1


@pytest.mark.slow
def test_overlapping_calls_are_all_or_nothing(space):
    def work(agent, number):
        asked = [{"name": name, "entity_type": "x"} for name in (f"Own {number}", f"Shared {number % 4}")]
        return agent.ask("create_entities", entities=asked)[0]

    codes = Counter(at_once(space, work))
    assert codes == {"ok": 4, "CONFLICT": MANY - 4}
    names, _ = agrees(space)
    assert len(names) == 8


@pytest.mark.slow
def test_observations_added_at_once_to_one_node_get_ordinals_of_their_own(space):
    with member(space) as one:
        one.good("create_entities", entities=[{"name": "Hub", "entity_type": "x", "observations": ["first"]}])

    def work(agent, number):
        (told,) = agent.listed(
            "add_observations", observations=[{"entity_name": "Hub", "contents": [f"{number} one", f"{number} two"]}]
        )
        return [(fact["ordinal"], fact["content"]) for fact in told["added"]]

    told = dict(fact for facts in at_once(space, work) for fact in facts)
    assert sorted(told) == list(range(2, 2 + MANY * 2))
    assert len(set(told.values())) == MANY * 2
    names, _ = agrees(space)
    assert names["Hub"].facts == {1: "first"} | told
    assert names["Hub"].properties["version"] == 1 + MANY


@pytest.mark.slow
def test_relations_made_at_once_on_one_node_are_all_kept_and_none_twice(space):
    with member(space) as one:
        leaves = [{"name": f"Leaf {n}", "entity_type": "x"} for n in range(MANY)]
        one.good("create_entities", entities=[{"name": "Hub", "entity_type": "x"}, *leaves])

    def work(agent, number):
        ends = [("Hub", f"Leaf {number}", "to"), (f"Leaf {number}", "Hub", "from"), ("Hub", "Leaf 0", "all")]
        told = agent.good(
            "create_relations",
            relations=[{"from_entity": a, "to_entity": b, "relation_type": kind} for a, b, kind in ends],
        )
        return len(told["created"])

    assert sum(at_once(space, work)) == MANY * 2 + 1
    _, edges = agrees(space)
    wanted = {("Hub", "to", f"Leaf {n}") for n in range(MANY)} | {(f"Leaf {n}", "from", "Hub") for n in range(MANY)}
    assert edges == wanted | {("Hub", "all", "Leaf 0")}


@pytest.mark.slow
def test_all_kinds_of_writes_at_once_end_in_one_truth(space):
    with member(space) as one:
        facts = [f"fact {n}" for n in range(1, MANY + 1)]
        one.good(
            "create_entities",
            entities=[
                {"name": "Hub", "entity_type": "x", "observations": facts},
                {"name": "Other", "entity_type": "x"},
            ],
        )

    def work(agent, number):
        match number % 5:
            case 0:
                agent.good("add_observations", observations=[{"entity_name": "Hub", "contents": [f"new {number}"]}])
            case 1:
                agent.good(
                    "replace_observation", entity_name="Hub", ordinal=number + 1, new_content=f"changed {number}"
                )
            case 2:
                agent.good("delete_observations", deletions=[{"entity_name": "Hub", "ordinals": [number + 1]}])
            case 3:
                agent.good(
                    "create_relations",
                    relations=[{"from_entity": "Hub", "to_entity": "Other", "relation_type": f"r{number}"}],
                )
            case _:
                agent.good("set_summary", name="Hub", summary=f"by {number}")

    at_once(space, work)
    names, edges = agrees(space)
    kept = {n: f"fact {n}" for n in range(1, MANY + 1)}
    kept |= {number + 1: f"changed {number}" for number in range(1, MANY, 5)}
    kept = {n: text for n, text in kept.items() if n - 1 not in range(2, MANY, 5)}
    hub = names["Hub"]
    assert {n: text for n, text in hub.facts.items() if n <= MANY} == kept
    assert sorted(text for n, text in hub.facts.items() if n > MANY) == sorted(f"new {n}" for n in range(0, MANY, 5))
    assert edges == {("Hub", f"r{number}", "Other") for number in range(3, MANY, 5)}
    assert hub.properties["summary"] in {f"by {number}" for number in range(4, MANY, 5)}


@pytest.mark.slow
def test_of_writers_with_one_version_only_one_succeeds(space):
    with member(space) as one:
        one.good("create_entities", entities=[{"name": "Hub", "entity_type": "x"}])
        version = one.node("Hub")["version"]

    def work(agent, number):
        return agent.ask("set_summary", name="Hub", summary=f"by {number}", version=version)[0]

    assert Counter(at_once(space, work)) == {"ok": 1, "CONFLICT": MANY - 1}


@pytest.mark.slow
def test_a_person_who_edits_while_agents_write_loses_nothing(space):
    with member(space) as one:
        one.good("create_entities", entities=[{"name": "Hub", "entity_type": "x", "observations": ["first"]}])
    (file,) = space.folder.rglob("*.md")

    def work(agent, number):
        if number < MANY // 2:
            for turn in range(3):
                agent.good(
                    "add_observations", observations=[{"entity_name": "Hub", "contents": [f"agent {number} {turn}"]}]
                )
            return
        # Obsidian writes what it last read with the person's change; here the reading is a moment old at most.
        with space.rim.world.app.opened.builds.scopes["captures"].index.lock:
            before = file.read_text()
            after = before.replace("## Observations\n", f"## Observations\n- person {number}\n", 1)
            saving = file.with_name(f".{number}.saving")
            saving.write_text(after)
            saving.rename(file)

    at_once(space, work)
    space.rim.world.run()
    names, _ = agrees(space)
    said = set(names["Hub"].facts.values())
    assert names["Hub"].unnumbered == ()
    assert {f"agent {number} {turn}" for number in range(MANY // 2) for turn in range(3)} <= said
    assert {f"person {number}" for number in range(MANY // 2, MANY)} <= said
    assert len(names["Hub"].facts) == 1 + 3 * (MANY // 2) + MANY // 2
