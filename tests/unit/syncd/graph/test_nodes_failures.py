"""Operations on nodes that are refused by the disk, the encoder or a bound, or broken off by a crash."""

from __future__ import annotations

import dataclasses

import pytest

from index.errors import ResourceExhausted, Unavailable
from index.graph.vertex import Edge
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


def test_a_disk_that_fails_half_way_leaves_all_as_it_was(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", "Kay")
    before = {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()}
    replace, left = world.app.opened.vault.replace, iter([True, True])

    def full(path, data, *, digest):
        if digest and next(left, None) is None and b"x ^o1" in data:
            raise Unavailable(f"{path}: the disk is full")
        return replace(path, data, digest=digest)

    monkeypatch.setattr(world.app.opened.vault, "replace", full)
    with pytest.raises(Unavailable) as caught:
        nodes.add_observations([("Ada", ["x"]), ("Grace", ["x"]), ("Kay", ["x"])])
    assert "Kay.md" not in caught.value.message
    assert {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()} == before


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
