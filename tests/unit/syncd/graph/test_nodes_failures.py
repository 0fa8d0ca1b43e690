"""Operations on nodes that are refused by the disk, the encoder or a bound, or broken off by a crash."""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
from pathlib import Path

import pytest

from index.errors import Conflict, ResourceExhausted, Unavailable
from index.graph.vertex import Edge
from syncd.captures.batch_writer import EMBEDDED
from syncd.history.audit_log import TOGETHER, Author, acting_as
from tests.support.audit_entries import owner
from tests.support.disk_faults import Fault, failing
from tests.support.node_notes import ENTITIES, facts, made


def test_what_can_t_be_made_findable_is_taken_back(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", "Kay", observations=["one"])
    nodes.add_relations([Edge("Grace", "Ada", "knows")])
    before = {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()}
    index = world.app.opened.builds.scopes["captures"].index

    def failing(*_args, **_given):
        raise Unavailable("the store is full")

    monkeypatch.setattr(index, "commit", failing)
    for call in (
        lambda: made(nodes, "New", "Other"),
        lambda: nodes.delete(["Ada"]),
        lambda: nodes.add_observations([("Ada", ["x"]), ("Grace", ["y"])]),
        lambda: nodes.add_relations([Edge("Ada", "Kay", "x"), Edge("Kay", "Ada", "x")]),
    ):
        with pytest.raises(Unavailable):
            call()
        assert {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()} == before
    monkeypatch.undo()
    world.run()
    assert world.dump() == world.rebuilt(world.state.parent / "other")


@pytest.mark.slow
@pytest.mark.parametrize("field", ["write", "fsync", "exchange"])
@pytest.mark.parametrize("nth", [1, 2, TOGETHER, TOGETHER + 3])
def test_a_disk_that_fails_half_way_leaves_all_as_it_was(world, nodes, field, nth):
    names = [f"Node {number}" for number in range(TOGETHER + 3)]
    made(nodes, *names)
    before = {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()}
    vault, seen = world.app.opened.vault, world.app.opened.audit.head.seq
    fault = Fault(field, nth, failing(errno.ENOSPC))
    vault._calls = fault.calls
    with pytest.raises(Unavailable, match="disk is full") as caught:
        nodes.add_observations([(name, ["x"]) for name in names])
    assert fault.hit and "Node" not in caught.value.message
    assert {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()} == before
    entries = list(world.app.opened.audit.entries(seen + 1))
    done = {entry.seq for entry in entries if entry.kind == "update"}
    assert done and done == {entry.undoes for entry in entries if entry.kind == "undone"}
    assert owner(world, "audit.verify")["changed"] == []


def test_many_files_share_a_commit_of_the_log_and_a_sync_of_their_folder(world, nodes):
    """Of a hub that goes, each note that led to it is written: its own bytes are synced, all else is synced together."""
    count = 2 * TOGETHER
    made(nodes, "Hub", *(f"Node {number}" for number in range(count)))
    nodes.add_relations([Edge(f"Node {number}", "Hub", "part_of") for number in range(count)])
    vault, ledger = world.app.opened.vault, world.app.opened.ledger
    calls, folders, commits = vault._calls, [], []

    def fsync(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            folders.append(file)
        calls.fsync(file)

    vault._calls = dataclasses.replace(calls, fsync=fsync)
    ledger._connection.set_trace_callback(lambda told: commits.append(told) if told == "COMMIT" else None)
    assert nodes.delete(["Hub"]) == (["Hub"], [])
    ledger._connection.set_trace_callback(None)
    assert len(commits) == len(folders) == 3, "two groups of notes that change, and the note that goes"
    assert not any("[[Hub]]" in file.read_text() for file in (world.vault / ENTITIES).iterdir())


def test_each_note_is_opened_once_for_the_decision_and_once_for_the_write_and_then_closed(world, nodes):
    names = ["Ada", "Bob", "Carl"]
    made(nodes, "Hub", *names)
    nodes.add_relations([Edge(name, "Hub", "part_of") for name in names])
    vault = world.app.opened.vault
    calls, opened = vault._calls, []

    def open_file(root, path, *rest):
        opened.append(path.rpartition("/")[2])
        return calls.open(root, path, *rest)

    vault._calls = dataclasses.replace(calls, open=open_file)
    with acting_as(Author("mcp", "delete_entities")):
        assert nodes.delete(["Hub"]) == (["Hub"], [])
    assert [opened.count(f"{name}.md") for name in names] == [2, 2, 2]
    targets = [os.path.realpath(link) for link in Path("/proc/self/fd").glob("*")]  # none on other systems
    assert not [target for target in targets if f"{ENTITIES}/" in target]


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1])
def test_nobody_waits_until_all_that_led_to_a_hub_is_embedded(world, nodes, more):
    count = EMBEDDED + more
    made(nodes, "Hub", *(f"Node {number}" for number in range(count)), observations=["a fact"])
    nodes.add_relations([Edge(f"Node {number}", "Hub", "part_of") for number in range(count)])
    index = world.app.opened.builds.scopes["captures"].index
    world.encoder.calls.clear()
    assert nodes.delete(["Hub"]) == (["Hub"], [])
    assert len(index.words_only_paths()) == more * count
    assert bool(world.encoder.calls) is not bool(more)
    assert [sentence for sentence in world.app.opened.builds.degraded() if "by words find" in sentence] == [
        f"index: only searches by words find {count} notes"
    ] * more
    assert len(world.found("fact", limit=50)) == 50
    world.run()
    assert len(index.words_only_paths()) == 0
    assert world.dump() == world.rebuilt(world.state.parent / "other")


@pytest.mark.slow
def test_a_note_may_not_grow_without_end(nodes):
    made(nodes, "Ada", observations=["x" * 9_000] * 100)
    with pytest.raises(ResourceExhausted, match="split the node"):
        nodes.add_observations([("Ada", ["y" * 9_000] * 20)])
    nodes.remove_observations([("Ada", [1])])
    assert len(facts(nodes, "Ada")) == 99


@pytest.mark.parametrize("kind", ["node", "memo"])
def test_what_a_crash_leaves_of_a_deletion_the_same_call_finishes(world, nodes, kind):
    """The links to what goes are removed first; as long as one is there, so is what it leads to."""
    space = world.app.agent_access.workspace("default")
    if kind == "node":
        made(nodes, "Ada", "Bob", "Carl")
        nodes.add_relations([Edge(name, "Ada", "knows") for name in ("Bob", "Carl")])
        target, others = ENTITIES + "/Ada.md", [ENTITIES + "/Bob.md", ENTITIES + "/Carl.md"]
    else:
        target, *others = (space.memos.save(name, memo_id=name).record.path for name in ("Ada", "Bob", "Carl"))
        for name in ("Bob", "Carl"):
            space.memo_graph.save(name, "Ada", "knows")
    seen = []
    calls = world.app.opened.vault._calls

    def spying(at, name):
        def call(*args, **given):
            files = {path: world.vault / path for path in (target, *others)}
            if not files[target].exists():
                seen.append([path for path in others if "knows" in files[path].read_text()])
            return getattr(calls, name)(*args, **given)

        return call

    names = [one.name for one in dataclasses.fields(calls)]
    world.app.opened.vault._calls = dataclasses.replace(calls, **{name: spying(calls, name) for name in names})
    if kind == "node":
        assert nodes.delete(["Ada"]) == (["Ada"], [])
    else:
        assert space.memos.delete("Ada")[1] == 2
    assert seen and not any(seen), "what leads to it outlived it"


def test_what_a_person_changed_while_a_write_is_taken_back_stays_theirs(world, nodes):
    made(nodes, "Ada", "Bob", "Carl")
    nodes.add_relations([Edge(name, "Ada", "knows") for name in ("Bob", "Carl")])
    bob, carl = (world.vault / ENTITIES / f"{name}.md" for name in ("Bob", "Carl"))
    calls = world.app.opened.vault._calls
    done = []

    def exchange(*args, **given):
        if not done and "knows" not in bob.read_text():  # Bob is written, and Carl is about to be
            done.append(True)
            bob.write_text(bob.read_text() + "\nby hand\n")
            carl.write_text(carl.read_text() + "\nby hand\n")
        return calls.exchange(*args, **given)

    world.app.opened.vault._calls = dataclasses.replace(calls, exchange=exchange)
    assert nodes.delete(["Ada"]) == (["Ada"], [])
    assert done
    for file in (bob, carl):
        assert "knows" not in file.read_text() and "by hand" in file.read_text()
    world.run()
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_relation_in_too_many_fields_inside_each_other_stays(world, nodes):
    made(nodes, "Ada", "Grace")
    nodes.add_relations([Edge("Ada", "Grace", "knows")])
    file = world.vault / ENTITIES / "Ada.md"
    file.write_text(file.read_text().replace("knows:: [[Grace]]", "[knows:: " * 50 + "[[Grace]]" + "]" * 50))
    world.run()
    for call in (lambda: nodes.remove_relations([Edge("Ada", "Grace", "knows")]), lambda: nodes.delete(["Grace"])):
        with pytest.raises(Conflict, match="'Ada': Memex can't change the note here"):
            call()
