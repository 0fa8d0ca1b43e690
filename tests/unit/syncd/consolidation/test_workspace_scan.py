"""A workspace looked through: what the indexes hold becomes findings, and nothing of another workspace or the vault does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from index.errors import Unavailable
from syncd.consolidation import workspace_scan
from syncd.enrichment.enricher import EnrichSettings
from syncd.graph.node_request import NewNode
from tests.bench.consolidation import pairs
from tests.support.world import World

TWICE = pairs("again")[2]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, enrich=EnrichSettings(by="off"))
    yield world
    world.close()


def note(world, id, title, text, *, day=1, tags="", workspace="default", folder=""):
    """A capture of a day of January."""
    head = f"id: {id}\ncreated_at: 2026-01-{day:02d}T09:00:00.000Z\n" + (f"tags: [{tags}]\n" if tags else "")
    world.write(f"Captures/{workspace}/{folder}{title}.md", f"---\n{head}---\n{text}\n")


def planted(world, workspace="default"):
    note(world, "pods", "Pods", "A pod holds containers.", tags="kubernetes", workspace=workspace)
    note(world, "nodes", "Nodes", "A node runs pods.", day=9, tags="kubernetes", workspace=workspace)
    note(world, "one", TWICE.older[0], TWICE.older[1], day=3, tags="k8s", workspace=workspace)
    note(world, "two", TWICE.newer[0], TWICE.newer[1], day=5, workspace=workspace)


def test_what_is_planted_is_found_with_what_it_can_be_checked_by(world):
    planted(world)
    world.run()
    told = world.app.services.consolidation._look("default")
    assert told.documents == 4
    [one] = told.near
    assert (one.kind, set(one.ids), one.workspace) == ("merge-duplicates", {"one", "two"}, "default")
    assert [one.would for one in told.synonyms] == [("kubernetes", "k8s")]
    assert told.named["one"].title == TWICE.older[0]
    assert told.of["near"] == 1
    assert {one.key for one in told.proposals} == {
        one.key for one in world.app.services.consolidation._look("default").proposals
    }


def test_texts_are_read_a_few_at_a_time_and_the_findings_are_the_same(world, monkeypatch):
    planted(world)
    world.run()
    whole = world.app.services.consolidation._look("default")
    asked = []
    index = world.app.opened.builds.scopes["captures"].index
    read = index.texts_of
    monkeypatch.setattr(index, "texts_of", lambda keys: asked.append(len(keys)) or read(keys))
    monkeypatch.setattr(workspace_scan, "AT_ONCE", 1)
    again = world.app.services.consolidation._look("default")
    assert replace(again, graph=whole.graph) == whole  # the graph's report has the time of its making
    assert len(asked) >= 2
    assert set(asked) == {1}


def test_nothing_crosses_workspaces(world):
    note(world, "one", TWICE.older[0], TWICE.older[1])
    note(world, "two", TWICE.newer[0], TWICE.newer[1], day=9, workspace="work")
    world.write(f"Notes/{TWICE.newer[0]}.md", TWICE.newer[1])
    world.run()
    for workspace in ("default", "work"):
        told = world.app.services.consolidation._look(workspace)
        assert told.documents == 1
        assert not told.near + told.duplicates


def test_a_link_from_anywhere_but_a_report_says_that_a_capture_is_used(world):
    for id in ("linked", "reported", "alone"):
        note(world, id, f"Note {id}", f"Something {id} for nobody in particular.", day=2)
    world.write("Projects/Plan.md", "See [[Note linked]].")
    world.write("Captures/Reports/2026-02-01 Consolidation.md", "- [ ] archive [[Note reported]]")
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    graph = world.app.agent_access.workspace("default").nodes.report()
    linked = world.app.opened.builds.scopes["vault"].index.catalog.linked_names(["Captures/Reports"])
    told = workspace_scan.scan_workspace(index, "default", graph, linked=linked, now=1_900_000_000_000)
    assert {one.ids[0] for one in told.unused} == {"reported", "alone"}


def test_relation_candidates_are_those_of_the_graph_s_report(world):
    nodes = world.app.agent_access.workspace("default").nodes
    nodes.create(
        [
            NewNode("Ada", "person", ("Works with Babbage on the engine",)),
            NewNode("Babbage", "person", ("Builds the engine with Ada",)),
        ]
    )
    told = world.app.services.consolidation._look("default")
    assert {frozenset((one.node_a, one.node_b)) for one in told.graph.candidates} == {frozenset(("Ada", "Babbage"))}
    [one] = told.relations
    assert {told.named[id].title for id in one.ids} == {"Ada", "Babbage"}


def test_captures_without_vectors_are_compared_by_their_words(world, tmp_path):
    planted(world)
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    graph = world.app.agent_access.workspace("default").nodes.report()
    blind = type("Blind", (), {"__getattr__": lambda _, name: getattr(index, name)})()
    blind.document_vectors = lambda _: ([], index.document_vectors("default")[1][:0])
    told = workspace_scan.scan_workspace(blind, "default", graph, linked=(), now=0)
    assert told.near
    assert "4 captures without vectors yet" in told.degraded[0]


def test_an_empty_workspace_needs_nothing(world):
    world.run()
    told = world.app.services.consolidation._look("default")
    assert (told.documents, told.proposals, told.clusters) == (0, (), ())


def test_it_is_broken_off_when_the_daemon_stops(world):
    planted(world)
    world.run()
    world.app.jobs.stopping.set()
    with pytest.raises(Unavailable, match="was interrupted"):
        world.app.services.consolidation._look("default")
