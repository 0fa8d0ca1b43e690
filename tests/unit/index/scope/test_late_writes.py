"""index/scope/late_writes.py: rows that wait are marked in the catalog until they are written, and a crash loses none."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from index.errors import Unavailable
from index.model import Document, Query, Stat
from index.scope import late_writes
from index.scope.index import Index
from index.scope.integrity_check import check_index
from index.scope.prepared_document import fingerprint
from index.text.chunking import Sizes
from tests.support import temporary_folders
from tests.support.documents import note
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.graph_samples import entity
from tests.support.index_dump import dump_index
from tests.support.until import until

tmp_path = temporary_folders.tmp_path_on_disk

SIZES, STAT = Sizes(120, 20, 40), Stat(1, 1, 1)
ADA, NOTE, GONE, NEW = (f"Captures/w/{name}.md" for name in ("Ada", "Note", "Gone", "New"))


@contextmanager
def opened(folder: Path, *, later: bool = False) -> Iterator[Index]:
    index = Index(
        "captures",
        folder,
        uri=str(folder),
        options={},
        dimensions=64,
        embedder=fake_embedder(FakeEncoder()),
        sizes=SIZES,
        made_by=fingerprint("fake", SIZES),
        later=later,
    )
    try:
        yield index
    finally:
        index.close()


def put(index: Index, *documents: Document) -> None:
    index.commit(index.prepare([(document, STAT) for document in documents], urgent=True))


def hits(index: Index, words: str) -> list[str]:
    return [hit.record.path for hit in index.search(Query(words, mode="text")).hits]


def marks(index: Index) -> set[str]:
    return {key for (key,) in index.catalog.rows("select key from unsettled")}


@pytest.fixture
def filled(tmp_path, monkeypatch) -> Iterator[Index]:
    """An index whose rows are in memory, and which writes rows only when it is asked to."""
    (tmp_path / "index").mkdir()
    monkeypatch.setattr(late_writes, "DELAY_S", 0.01)
    monkeypatch.setattr(late_writes, "RETRY_S", 3_600.0)
    with opened(tmp_path / "index") as index:
        put(index, entity(ADA, "wrote the first algorithm"), note(NOTE, "old words"), note(GONE, "soon gone"))
        until(lambda: not marks(index))
        until(lambda: in_memory(index))
        monkeypatch.setattr(late_writes, "DELAY_S", 3_600.0)
        yield index


def in_memory(index: Index) -> bool:
    """Search both stores, which brings their rows into memory, and return whether they are there."""
    hits(index, "words")
    index.find_observations("w", "algorithm", 5)
    return all(store._table.seen.held is not None for store in index._stores)


def change(index: Index) -> None:
    """Change a note and an entity, add a note and remove one."""
    put(
        index,
        note(NOTE, "changed words"),
        entity(ADA, "wrote the first algorithm", "knew Babbage"),
        note(NEW, "new words"),
    )
    index.commit([], [GONE])


def test_what_waits_is_found_and_marked_until_it_is_written(filled):
    change(filled)
    assert len(marks(filled)) == 4
    assert set(hits(filled, "words")) == {NOTE, NEW} and hits(filled, "gone") == []
    filled._late_writes.finish()
    assert marks(filled) == set() and filled.describe_differences() == ""
    assert set(hits(filled, "words")) == {NOTE, NEW}


def test_it_is_written_a_moment_later(filled, monkeypatch):
    monkeypatch.setattr(late_writes, "DELAY_S", 0.05)
    for _ in range(2):
        change(filled)
        until(lambda: not marks(filled))
        assert not any(store.unwritten for store in filled._stores)
        put(filled, note(GONE, "soon gone"))
        until(lambda: not marks(filled))


def test_maintenance_and_closing_write_it(tmp_path, filled):
    put(filled, note(NOTE, "changed words"))
    filled.maintain()
    assert marks(filled) == set()
    change(filled)
    filled.close()
    assert check_index(tmp_path / "index", "captures", uri=str(tmp_path / "index")) == ""
    with opened(tmp_path / "index") as again:
        assert not again.mending and all(entry.digest for entry in again.manifest.values())
        assert set(hits(again, "words")) == {NOTE, NEW}


@pytest.mark.parametrize("later", [False, True], ids=["opened at once", "opened at the first use"])
def test_after_a_crash_the_next_pass_reads_what_was_not_written(tmp_path, filled, later):
    put(filled, note("Captures/w/Calm.md", "calm"))
    filled._late_writes.finish()
    change(filled)
    crashed = tmp_path / "crashed"
    shutil.copytree(tmp_path / "index", crashed)
    assert check_index(crashed, "captures", uri=str(crashed)) == "", "no damage: the next start completes it"
    with opened(crashed, later=later) as again:
        hits(again, "words")
        assert again.mending
        assert {path for path, entry in again.manifest.items() if not entry.digest} == {ADA, NOTE, NEW}
        again.drop_orphans()
        put(
            again,
            note(NOTE, "changed words"),
            entity(ADA, "wrote the first algorithm", "knew Babbage"),
            note(NEW, "new words"),
        )  # as the pass does
        again._late_writes.finish()
        assert again.describe_differences() == "" and marks(again) == set()
        assert dump_index(again)["store"] == dump_index(filled)["store"]
        assert dump_index(again)["observations"] == dump_index(filled)["observations"]


def test_a_document_whose_rows_stay_keeps_its_mark(filled):
    put(filled, note(NOTE, "changed words"))
    before = marks(filled)
    put(filled, replace(note(NOTE, "changed words"), summary="another one"))
    assert marks(filled) == before != set()


def test_a_failure_is_reported_by_the_next_commit_and_the_marks_stay(filled, monkeypatch):
    put(filled, note(NOTE, "changed words"))
    before = marks(filled)
    with monkeypatch.context() as patch:
        patch.setattr(filled._store, "_sync_files", fail)
        filled._late_writes._write_late()
        assert marks(filled) == before and hits(filled, "changed") == [NOTE]
        with pytest.raises(Unavailable):
            put(filled, note(NEW, "new words"))
        with pytest.raises(Unavailable):
            filled.maintain()
    put(filled, note(NEW, "new words"))
    filled._late_writes.finish()
    assert marks(filled) == set() and filled.describe_differences() == ""


def fail(**_):
    raise Unavailable("the disk is full")


def test_a_late_write_that_failed_is_tried_again_soon(filled, monkeypatch):
    monkeypatch.setattr(late_writes, "DELAY_S", 0.05)
    monkeypatch.setattr(late_writes, "RETRY_S", 0.05)
    failed = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(filled._store, "_sync_files", lambda **_: (failed.set(), fail()))
        put(filled, note(NOTE, "changed words"))
        assert failed.wait(60)
        failed.clear()
        assert failed.wait(60)
    until(lambda: not marks(filled))
    assert not any(store.unwritten for store in filled._stores)


def test_no_late_write_is_tried_again_once_the_index_is_closed(filled, monkeypatch):
    put(filled, note(NOTE, "changed words"))
    filled._late_writes._timer.cancel()
    monkeypatch.setattr(filled._store, "_sync_files", fail)
    filled.close()
    filled._late_writes._write_late()
    assert filled._late_writes._timer is None


@pytest.mark.parametrize("path", [NOTE, NEW], ids=["a known note", "a new note"])
def test_a_commit_to_a_closed_index_says_that_it_is_closed(filled, path):
    prepared = filled.prepare([(note(path, "changed words"), STAT)], urgent=True)
    filled.close()
    with pytest.raises(Unavailable, match="is closed") as refused:
        filled.commit(prepared)
    assert not refused.value.retryable


def test_the_mark_of_a_commit_that_failed_stays_when_its_rows_are_written(filled, monkeypatch):
    """Its rows are those of a text that the catalog does not know, so the next start must read the file again."""
    put(filled, note(NOTE, "changed words"))
    with monkeypatch.context() as patch:
        patch.setattr(filled.catalog, "write", lambda **_: fail())
        with pytest.raises(Unavailable):
            put(filled, note(NOTE, "never stored"))
    filled._late_writes.finish()
    assert len(marks(filled)) == 1 and filled.manifest[NOTE].digest == ""
    put(filled, note(NOTE, "changed words"))
    filled._late_writes.finish()
    assert marks(filled) == set()


def test_a_mark_goes_although_a_document_could_not_be_created_again(tmp_path, filled, monkeypatch):
    filled.commit([], [GONE])
    with monkeypatch.context() as patch:
        patch.setattr(filled.catalog, "write", lambda **_: fail())
        with pytest.raises(Unavailable):
            put(filled, note(GONE, "once more"))
    filled._late_writes.finish()
    assert marks(filled) == set()
    filled.drop_orphans()
    filled.close()
    with opened(tmp_path / "index") as again:
        assert not again.mending


def test_rows_without_a_document_are_marked_until_their_removal_is_written(tmp_path, filled, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(filled.catalog, "write", lambda **_: fail())
        with pytest.raises(Unavailable):
            put(filled, note(NEW, "never listed"))
    filled._late_writes.finish()
    put(filled, note(NOTE, "changed words"))  # takes the orphan along
    assert len(marks(filled)) == 2
    shutil.copytree(tmp_path / "index", tmp_path / "crashed")
    assert check_index(tmp_path / "crashed", "captures", uri=str(tmp_path / "crashed")) == ""


def test_an_index_closes_although_its_marks_can_not_be_removed(tmp_path, filled, monkeypatch):
    put(filled, note(NOTE, "changed words"))
    monkeypatch.setattr(filled.catalog, "settle", lambda _: fail())
    filled.close()
    with opened(tmp_path / "index") as again:
        assert again.mending and hits(again, "changed") == [NOTE]


def test_without_another_thread_the_next_commit_tries_again(filled, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(late_writes, "DELAY_S", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        put(filled, note(NOTE, "changed words"))
    assert marks(filled)
    put(filled, note(NEW, "new words"))
    until(lambda: not marks(filled))


def test_a_power_cut_before_the_first_write_of_a_new_store_damages_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(late_writes, "DELAY_S", 3_600.0)
    synced, sync = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(str(Path(f"/proc/self/fd/{fd}").readlink())), sync(fd)))
    (tmp_path / "index").mkdir()
    with opened(tmp_path / "index") as index:
        put(index, note(NOTE, "old words"))
        index._late_writes.finish()
        put(index, entity(ADA, "wrote the first algorithm"))
        (observations,) = index._observations.open_stores
        assert observations.unwritten
        shutil.copytree(tmp_path / "index", tmp_path / "crashed")
        for file in (tmp_path / "index").rglob("*"):
            if file.is_file() and ".lance" in str(file) and os.path.realpath(file) not in synced:
                os.truncate(tmp_path / "crashed" / file.relative_to(tmp_path / "index"), 0)
    with opened(tmp_path / "crashed") as index:
        assert index.mending and hits(index, "old") == [NOTE]
