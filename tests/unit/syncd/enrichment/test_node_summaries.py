"""syncd/enrichment/node_summaries.py and syncd/graph/nodes.py: the report over real files and indexes, with drafts of an endpoint's."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from index.graph.vertex import Edge
from syncd.enrichment.node_summaries import ASKED, ENOUGH_S, SummaryDrafts
from syncd.graph.node_request import NewNode
from syncd.graph.nodes import describe_coverage
from syncd.settings.settings import EnrichSettings
from tests.support.fakes import FakeChat, fake_embedder
from tests.support.sample_entities import OPEN, TOPICS, entities, vertices
from tests.support.world import World


@pytest.fixture
def chat():
    with FakeChat() as served:
        served.says('{"summary": "The endpoint says it.", "tags": ["one-tag", "two-tags"]}')
        yield served


@pytest.fixture
def remote(tmp_path, chat):
    opened = World(tmp_path, enrich=EnrichSettings(by="endpoint", base_url=chat.url, model="small", timeout_s=5.0))
    opened.run()
    yield opened
    opened.close()


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    opened.run()
    yield opened
    opened.close()


def nodes_of(world):
    return world.app.agent_access.workspace("default").nodes


def filled(world, count):
    nodes = nodes_of(world)
    nodes.create([NewNode(f"Node {n}", "thing", [f"Fact number {n} of the kite"]) for n in range(count)])
    return nodes


def drafts(report):
    return [one.draft for one in report.stale]


def test_an_endpoint_is_asked_about_a_few_nodes_and_its_drafts_are_kept(remote, chat):
    nodes = filled(remote, ASKED + 2)
    first = nodes.report()
    assert drafts(first) == ["The endpoint says it."] * ASKED + [f"Fact number {n} of the kite." for n in (5, 6)]
    assert first.degraded == (
        "2 drafts come from the observations alone, because Memex sends few nodes at a time to the endpoint; repeat the request for more",
    )
    again = nodes.report()
    assert drafts(again) == ["The endpoint says it."] * (ASKED + 2) and again.degraded == ()
    assert len(chat.requests) == ASKED + 2
    assert drafts(nodes.report()) == drafts(again) and len(chat.requests) == ASKED + 2
    sent = chat.requests[0]["messages"][1]["content"]
    assert "Node 0" in sent and "Fact number 0 of the kite" in sent
    nodes.add_observations([("Node 0", ["Its tail is long"])])
    nodes.report()
    assert "Its tail is long" in chat.requests[-1]["messages"][1]["content"]


def test_an_endpoint_that_fails_is_told_of_and_asked_once(remote, chat):
    nodes = filled(remote, 3)
    chat.status = 500
    report = nodes.report()
    assert drafts(report) == [f"Fact number {n} of the kite." for n in range(3)]
    assert report.degraded == ("the endpoint for summaries fails, so 3 drafts come from the observations alone",)
    assert len(chat.requests) == 1


def test_an_endpoint_never_sees_a_secret(remote, chat):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    nodes_of(remote).create([NewNode("Mirror", "thing", [f"The token of the mirror is {secret}"])])
    nodes_of(remote).report()
    assert len(chat.requests) == 1 and secret not in json.dumps(chat.requests)


def test_an_endpoint_that_is_slow_is_asked_no_more_after_a_while(remote, chat):
    time = 0.0
    asking = SummaryDrafts(remote.app.opened.enricher, {}, "Captures", clock=lambda: time)
    one, other, *_ = vertices()
    assert asking(one, ["A fact of it"]) == "The endpoint says it."
    time = ENOUGH_S + 1
    assert asking(other, ["Another fact"]) is None
    assert asking(one, ["A fact of it"]) == "The endpoint says it.", "what is known costs no time"
    assert asking.left == 1 and len(chat.requests) == 1


def test_without_an_endpoint_all_drafts_are_our_own(world):
    report = filled(world, 3).report()
    assert drafts(report) == [f"Fact number {n} of the kite." for n in range(3)] and report.degraded == ()


def test_the_report_agrees_with_the_notes(world):
    nodes = nodes_of(world)
    nodes.create(
        [
            NewNode("Quill battery", "part", ["Cells drift apart, says Dario Venn", "Dario Venn measured it"]),
            NewNode("Dario Venn", "person", ["Engineer for power"], summary="Engineer."),
            NewNode("Kite", "thing", ["It is red"]),
        ]
    )
    assert [(one.name, one.observations) for one in nodes.unsummarized()] == [("Quill battery", 2), ("Kite", 1)]
    assert [(gap.node, gap.referenced, gap.count) for gap in nodes.unlinked_names(9)] == [
        ("Quill battery", "Dario Venn", 2)
    ]
    report = nodes.report()
    assert [one.name for one in report.orphans] == ["Dario Venn", "Kite", "Quill battery"]
    assert (report.candidates[0].node_a, report.candidates[0].node_b) == ("Quill battery", "Dario Venn")
    assert report.events.creates == 3

    nodes.add_relations([Edge("Dario Venn", "Quill battery", "measured")])
    nodes.set_summary("Kite", "A red kite.")
    report = nodes.report()
    assert [one.name for one in report.orphans] == ["Kite"]
    assert nodes.unlinked_names(9) == [] and not any("Dario" in one.rationale for one in report.candidates)
    assert [one.name for one in report.stale] == ["Quill battery"]

    nodes.add_observations([("Kite", ["It flies"])])
    assert {one.name for one in nodes.unsummarized()} == {"Quill battery", "Kite"}


def test_an_alias_and_a_link_by_file_name_count_as_a_mention(world):
    world.write("Captures/default/Entities/Ada L.md", "---\ntype: entity\nname: Ada Lovelace\naliases: [Countess of Quill]\n---\n## Observations\n- a poet\n")  # fmt: skip
    world.write("Captures/default/Entities/Engine.md", "---\ntype: entity\n---\n## Observations\n- see [[Ada L|her]]\n- of the countess of quill\n")  # fmt: skip
    world.run()
    assert [(gap.node, gap.referenced, gap.count) for gap in nodes_of(world).unlinked_names(9)] == [
        ("Engine", "Ada Lovelace", 2)
    ]


@pytest.mark.parametrize(("share", "shown"), [(1_999 / 2_000, "only 99%"), (0.5, "only 50%"), (1.0, None)])
def test_the_whole_is_compared_by_meaning_only_if_nothing_is_missing(share, shown):
    words = describe_coverage(share)
    assert [line.startswith(shown) for line in words] == ([] if shown is None else [True])


def test_a_report_stays_in_its_workspace(world):
    (world.vault / "Captures/work").mkdir()
    world.run()
    filled(world, 2)
    other = world.app.agent_access.workspace("work").nodes
    other.create([NewNode("Secret plan", "thing", ["Node 0 must not know"])])
    assert [one.name for one in other.report().stale] == ["Secret plan"]
    assert "Secret" not in repr(nodes_of(world).report())
    assert other.unlinked_names(9) == []


def test_a_restart_changes_nothing_of_a_report(world):
    nodes = nodes_of(world)
    nodes.create(
        [NewNode(one.name, one.type, list(one.observations), None, list(one.tags)) for one in [*entities()][:20]]
    )
    before = nodes.report()
    world.reopen()
    world.run()
    again = nodes_of(world).report()
    assert replace(again, events=before.events) == before, "events are counted up to now"


@pytest.mark.slow
def test_on_entities_as_agents_write_them_a_report_is_worth_reading(tmp_path, bundled):
    """With the bundled model: measured 20 of 20 candidates, 31 of 31 gaps, 53 nodes in clusters of which 83 % fit."""
    world = World(tmp_path, embedder=fake_embedder(bundled))
    try:
        world.run()
        nodes, made = nodes_of(world), list(entities())
        for start in range(0, len(made), 20):
            some = made[start : start + 20]
            nodes.create([NewNode(one.name, one.type, list(one.observations), None, list(one.tags)) for one in some])
        nodes.add_relations([Edge(one.name, target, kind) for one in made for kind, target in one.relations])
        report, gaps = nodes.report(), nodes.unlinked_names(100)
    finally:
        world.close()
    assert sum(frozenset((one.node_a, one.node_b)) in OPEN for one in report.candidates) >= 19
    assert len(gaps) >= 25 and all(frozenset((gap.node, gap.referenced)) in OPEN for gap in gaps)
    topic = {name: title for title, names in TOPICS.items() for name in names}
    fitting = sum(Counter(topic.get(name) for name in one.names).most_common(1)[0][1] for one in report.clusters)
    clustered = sum(len(one.names) for one in report.clusters)
    assert clustered >= 40 and fitting / clustered >= 0.75
    assert sum(one.label is not None for one in report.clusters) >= 0.9 * len(report.clusters)
    assert all(one.draft and len(one.draft) <= 300 for one in report.stale)
