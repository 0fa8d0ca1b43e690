"""syncd/captures/writer.py: errors without the names of files, and what a write leaves free for others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from index.errors import Conflict, NotFound
from index.topics.summary_and_tags import Enrichment
from syncd.captures.writer import hide_file_name
from tests.support.parsed_notes import parse
from tests.support.world import World

PATH = "Captures/default/Rent 2.md"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotFound(f"there is no file at {PATH}"), "there is no file at the place of the note"),
        (Conflict(f"{PATH} has changed since it was read"), "the file of the note has changed since it was read"),
    ],
    ids=["missing", "changed"],
)
def test_an_error_without_the_name_of_the_file_is_a_sentence(error, words):
    with pytest.raises(type(error)) as raised, hide_file_name("Captures/default", PATH):
        raise error
    assert raised.value.message == words


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
