"""A write that is taken back, refused by the disk or broken off by a crash is logged as undone, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from index.errors import Unavailable
from syncd.history import audit_log as log
from syncd.history.audit_log import Author, acting_as
from tests.support.audit_entries import change, log_write, owner, sha


@pytest.mark.parametrize("part", ["_store", "catalog"])
def test_a_write_that_is_taken_back_is_logged_as_undone(world, part):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept all along").record
    index = world.app.opened.builds.scopes["captures"].index

    class Failing:
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            if name in ("replace", "write"):
                raise Unavailable("the disk is full")
            return getattr(self.real, name)

    real = getattr(index, part)
    for write, kind in (
        (lambda: workspace.capture("never kept"), "create"),
        (lambda: workspace.capture("kept all along"), "update"),
        (lambda: workspace.delete(kept.id), "delete"),
    ):
        seen = world.app.opened.audit.head.seq
        setattr(index, part, Failing(real))
        with pytest.raises(Unavailable):
            write()
        setattr(index, part, real)
        done, undone = world.app.opened.audit.entries(seen + 1)
        assert (done.kind, undone.kind, undone.undoes) == (kind, "undone", done.seq)
        assert (undone.before, undone.after) == (done.after, done.before)
        assert owner(world, "audit.verify")["changed"] == owner(world, "audit.verify")["gone"] == []


def test_taking_back_is_never_refused(world):
    workspace = world.app.agent_access.workspace("default")
    index = world.app.opened.builds.scopes["captures"].index
    connection = world.app.opened.ledger._connection
    real = index._store

    class Failing:
        def __getattr__(self, name):
            if name == "replace":
                connection.execute("PRAGMA query_only = ON")  # between the write and its end
                raise Unavailable("the disk is full")
            return getattr(real, name)

    index._store = Failing()
    with pytest.raises(Unavailable, match="disk is full"):
        workspace.capture("never kept")
    index._store = real
    connection.execute("PRAGMA query_only = OFF")
    assert list((world.vault / "Captures/default").iterdir()) == []


def test_a_write_that_the_disk_refuses_is_logged_as_undone(world):
    folder = world.vault / "Captures/default"
    world.app.opened.vault._calls = type(world.app.opened.vault._calls)()
    real = world.app.opened.vault._calls.fsync

    def failing(_):
        raise OSError(5, "Input/output error")

    world.app.opened.vault._calls = replace(world.app.opened.vault._calls, fsync=failing)
    with pytest.raises(Unavailable):
        world.app.opened.vault.create("Captures/default/new.md", b"new")
    world.app.opened.vault._calls = replace(world.app.opened.vault._calls, fsync=real)
    assert list(folder.iterdir()) == []
    assert [(entry.kind, entry.outcome) for entry in world.app.opened.audit.entries()] == [
        ("create", "done"),
        ("undone", "UNAVAILABLE"),
    ]


def crashed(world):
    """Leave the state as a killed process would, and open it anew."""
    world.app.close()
    world.app = world._open()


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_a_write_that_a_crash_kept_from_happening_is_logged_as_undone(world, kind):
    record = world.app.agent_access.workspace("default").capture("kept").record
    raw = (world.vault / record.path).read_bytes()
    path = "Captures/default/new.md" if kind == "create" else record.path
    before, after = {"create": ("", "9"), "update": (sha(raw), "9"), "delete": (sha(raw), "")}[kind]
    with acting_as(Author("mcp", "some_tool", request="r9")):
        entry = log_write(world.app.opened.audit, change(path=path, before=before, after=after, id=record.id))
    crashed(world)
    last = world.app.opened.audit.find(1)[0]
    assert (last.kind, last.undoes, last.outcome, last.request) == ("undone", entry, "INTERRUPTED", "r9")
    assert (last.before, last.after) == (after, before)
    crashed(world)
    assert world.app.opened.audit.find(1)[0] == last
    verified = owner(world, "audit.verify")
    assert verified["changed"] == verified["gone"] == []


def test_a_write_that_happened_before_a_crash_stays(world):
    record = world.app.agent_access.workspace("default").capture("kept").record
    raw = (world.vault / record.path).read_bytes()
    log_write(world.app.opened.audit, change(path=record.path, before=sha(raw), after=sha(raw + b"x"), id=record.id))
    (world.vault / record.path).write_bytes(raw + b"x")
    crashed(world)
    assert [entry.kind for entry in world.app.opened.audit.entries()] == ["create", "update"]


def test_a_write_that_came_about_is_not_taken_for_undone_when_a_person_took_it_back(world):
    record = world.app.agent_access.workspace("default").capture("made, and then thrown away").record
    world.app.opened.builds.scopes["captures"].index.commit(
        [], [record.path]
    )  # as if the crash had come before the commit
    (world.vault / record.path).unlink()
    crashed(world)
    assert world.app.opened.audit.find(1)[0].kind == "create"
    assert world.app.opened.audit.has_created(record.id)
    assert not world.app.opened.audit.has_created("another")


def test_a_write_that_was_taken_back_has_not_come_about(world, monkeypatch):
    index = world.app.opened.builds.scopes["captures"].index

    def failing(*_, **__):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(index, "commit", failing)
    with pytest.raises(Unavailable):
        world.app.agent_access.workspace("default").capture("never made")
    made = next(entry for entry in world.app.opened.audit.find(10) if entry.kind == "create")
    assert made.seq not in world.app.opened.audit.done_entries()
    assert not world.app.opened.audit.has_created(made.id)
    crashed(world)
    assert not world.app.opened.audit.has_created(made.id)


def test_what_is_noted_of_writes_may_be_missing_or_torn(world):
    for number in range(3):
        world.app.agent_access.workspace("default").capture(f"capture {number}")
    assert world.app.opened.audit.done_entries() >= {1, 2, 3}
    file = world.state / log.CAME
    file.write_bytes(b"\0" * 16 + b"\xff garbage\n" + b"1" * 40)
    crashed(world)
    assert isinstance(world.app.opened.audit.done_entries(), frozenset)
    file.unlink()
    crashed(world)
    assert world.app.opened.audit.done_entries() == frozenset()
    assert [entry.kind for entry in world.app.opened.audit.find(10)] == ["create"] * 3
