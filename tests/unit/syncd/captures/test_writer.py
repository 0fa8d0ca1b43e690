"""syncd/captures/writer.py: errors without the names of files, and what a write leaves free for others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from index.errors import Conflict, NotFound
from index.topics.summary_and_tags import Enrichment
from syncd.captures.writer import hide_file_name, hold_commits, lock_workspace, undo_on_failure
from tests.support.parsed_notes import parse
from tests.support.until import PATIENCE
from tests.support.world import World

PATH = "Captures/default/Rent 2.md"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotFound(f"there is no file at {PATH}"), "there is no file at the place of the note"),
        (
            Conflict(f"{PATH} has changed since it was read", retryable=True, version=2),
            "the file of the note has changed since it was read",
        ),
    ],
    ids=["missing", "changed"],
)
def test_an_error_without_the_name_of_the_file_is_a_sentence(error, words):
    with pytest.raises(type(error)) as raised, hide_file_name("Captures/default", PATH):
        raise error
    assert raised.value.message == words
    assert (raised.value.retryable, raised.value.details) == (error.retryable, error.details)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_is_undone_whatever_prevents_its_indexing(error):
    undone = []
    with pytest.raises(error), undo_on_failure(lambda: undone.append("it")):
        raise error
    assert undone == ["it"]


def test_commits_are_held_back_in_the_build_that_replaced_another_one_meanwhile():
    captures, new = SimpleNamespace(), SimpleNamespace(lock=threading.RLock())

    @contextmanager
    def wait_for_the_switch():
        captures.index = new
        yield

    captures.index = SimpleNamespace(lock=wait_for_the_switch())
    with hold_commits(captures) as index:
        assert index is new


def test_the_writes_of_one_workspace_follow_one_another():
    inbox, order = SimpleNamespace(writing={}), []

    def write(name, workspace):
        with lock_workspace(inbox, workspace, indexed=False):
            order.append(name)

    with ThreadPoolExecutor(2) as others:
        with lock_workspace(inbox, "work", indexed=False):
            second = others.submit(write, "second", "work")
            others.submit(write, "elsewhere", "home").result(PATIENCE)
            order.append("first")
        second.result(PATIENCE)
    assert order == ["elsewhere", "first", "second"]


def test_a_note_is_prepared_again_for_a_build_that_replaces_the_first_one(tmp_path, monkeypatch):
    world = World(tmp_path)
    captures, first = world.app.opened.captures, world.app.opened.captures.index
    prepare, used = first.prepare, []

    class SecondBuild:
        def __getattr__(self, name):
            return getattr(first, name)

    def prepare_and_switch(*documents, **options):
        used.append(captures.index)
        if len(used) == 1:
            captures.index = SecondBuild()
        return prepare(*documents, **options)

    monkeypatch.setattr(first, "prepare", prepare_and_switch)
    record = world.app.agent_access.workspace("default").capture("The gardener planted a plum tree.").record
    assert [type(build).__name__ for build in used] == ["Index", "SecondBuild"]
    assert [file.name for file in (world.vault / "Captures/default").glob("*.md")] == [record.path.rpartition("/")[2]]
    world.close()


def test_enrichment_holds_back_no_commit_while_it_waits_for_the_encoder(tmp_path, monkeypatch):
    world, path = World(tmp_path), "Captures/default/Plum.md"
    file = world.write(path, "---\nid: plum\n---\nThe gardener planted a plum tree.\n")
    document = parse(file.read_bytes(), path, mtime_ms=0)
    world.run()
    index, free = world.app.opened.captures.index, []
    prepare = index.prepare

    def is_free():
        return index.lock.acquire(blocking=False) and index.lock.release() is None

    def look_and_prepare(documents, **options):
        with ThreadPoolExecutor(1) as other_thread:
            free.append(other_thread.submit(is_free).result())
        return prepare(documents, **options)

    monkeypatch.setattr(index, "prepare", look_and_prepare)
    record = world.app.agent_access.workspace("default").enrich(document, Enrichment("About a tree.", ("plum",)))
    assert (record.summary, record.tags, free) == ("About a tree.", ("plum",), [True])
    world.close()
