"""index/storage/chunk_store.py, on real LanceDB databases: what is written is read back, refused whole, and outlives a kill."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import pytest

from index.errors import InvalidArgument, Unavailable
from index.model import Filter
from index.storage import arrow_rows
from index.storage.chunk_store import ChunkStore
from index.storage.crash_repair import StoreDamaged
from tests.support.chunk_rows import ALL, DIMENSIONS, found, near, row, unit
from tests.support.index_dump import dump_store

# Writing and reading back


def test_a_new_store_is_empty_and_answers(store):
    assert store.count() == 0 and not store.may_lack_rows
    assert (store.count(), store.row_counts(), store.rows_of("a"), store.vectors(["x"])) == (0, {}, [], {})
    assert store.search(vector=unit("x"), words="x", filter=Filter(workspace="w", tags=("t",)), pool=5) == ([], [])


def test_what_was_written_is_read_back(store):
    given = row(
        tags=("Projects/Alpha",),
        source="claude",
        heading="Top > Sub",
        cut=4,
        text="Top\nsnake_case 東京都に住む",
        created_at=-5,
    )
    store.replace({"a": [given, row("a", 1, "second")]})
    first, second = store.rows_of("a")
    assert first == replace(given, vector=None) and second.ord == 1
    [match] = store.search(vector=None, words="東京", filter=ALL, pool=5)[1]
    assert (match.doc_id, match.ord, match.workspace, match.heading, match.cut, match.text) == (
        "a",
        0,
        "default",
        "Top > Sub",
        4,
        given.text,
    )
    assert match.value > 0
    assert store.row_counts() == {"a": 2} and store.count() == 2


def test_a_document_is_replaced_as_a_whole(store):
    store.replace({"a": [row("a", n, f"old {n}") for n in range(3)], "b": [row("b", 0, "old other")]})
    store.replace({"a": [row("a", 0, "new")]})
    assert [passage.text for passage in store.rows_of("a")] == ["new"]
    assert found(store, "old") == ["b"]


def test_a_document_without_rows_leaves(store):
    store.replace({"a": [row()], "b": [row("b")]})
    store.replace({"a": [], "unknown": []})
    assert store.row_counts() == {"b": 1}


def test_nothing_to_do_writes_no_version(store):
    before = store._run(store._table.version())
    store.replace({})
    store.replace({"unknown": []})
    assert store._run(store._table.version()) == before


@pytest.mark.slow
def test_many_documents_are_one_step(store):
    store.replace({f"d{n}": [row(f"d{n}", 0, f"text {n}")] for n in range(6_001)})
    assert store.count() == 6_001
    store.replace({f"d{n}": [] for n in range(6_000)})
    assert store.row_counts() == {"d6000": 1}


def test_the_order_of_writing_does_not_show(store, tmp_path):
    documents = {name: [row(name, n, f"{name} {n}") for n in range(3)] for name in "abcde"}
    store.replace(documents)
    other = ChunkStore(str(tmp_path / "other"), dimensions=DIMENSIONS)
    for name in "edcba":
        other.replace({name: [row(name, 0, "before")]})
        other.replace({name: documents[name]})
    other.maintain()
    assert dump_store(other, vectors=True) == dump_store(store, vectors=True)
    other.close()


def test_vectors_are_found_by_digest(store):
    rows = [row("a", n, f"text {n}") for n in range(4)] + [row("a", 4, "without", vector=None)]
    store.replace({"a": rows})
    vectors = store.vectors({one.digest for one in rows} | {"unknown"})
    assert set(vectors) == {one.digest for one in rows[:4]}
    for one in rows[:4]:
        assert vectors[one.digest].dtype == np.float32
        assert vectors[one.digest] == pytest.approx(one.vector, abs=1e-3)
    again = [replace(one, vector=vectors.get(one.digest)) for one in rows]
    dump = dump_store(store, vectors=True)
    store.replace({"a": again})
    assert dump_store(store, vectors=True) == dump, "a reused vector is stored exactly as it was"


def test_a_row_without_a_vector_is_found_by_its_words_only(store):
    store.replace({"a": [row("a", 0, "lonely words", vector=None)]})
    assert found(store, "lonely") == ["a"] and near(store, "lonely words") == []


# Refusing


@pytest.mark.parametrize("doc_id", ["", "a b", "x' OR true --", "a\n", "-a", "a" * 65, "ä", "../a"])
def test_a_malformed_id_never_gets_in(store, doc_id):
    with pytest.raises(AssertionError):
        store.replace({doc_id: [row(doc_id)]})
    assert store.count() == 0


def test_rows_of_another_document_and_twins_never_get_in(store):
    with pytest.raises(AssertionError):
        store.replace({"a": [row("b")]})
    with pytest.raises(AssertionError):
        store.replace({"a": [row("a", 0), row("a", 0)]})


@pytest.mark.parametrize("field", ["text", "heading", "workspace", "source", "tags"])
def test_half_a_character_is_refused_with_its_place(store, field):
    bad = "before \ud800 after"
    with pytest.raises(InvalidArgument, match="half a character"):
        store.replace({"a": [replace(row(), **{field: (bad,) if field == "tags" else bad})]})
    with pytest.raises(InvalidArgument, match="half a character"):
        store.search(vector=None, words=bad, filter=ALL, pool=5)
    with pytest.raises(InvalidArgument, match="half a character"):
        store.search(vector=None, words="x", filter=Filter(workspace=bad), pool=5)
    store.replace({"a": [row()]})
    assert store.count() == 1, "the store goes on"


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(np.full(DIMENSIONS, np.nan, np.float32), id="no number"),
        pytest.param(np.full(DIMENSIONS, np.inf, np.float32), id="infinite"),
        pytest.param(np.full(DIMENSIONS, 1e6, np.float32), id="far too long"),
        pytest.param(np.ones(DIMENSIONS + 1, np.float32), id="of another size"),
    ],
)
def test_a_vector_that_is_none_is_refused(store, vector):
    with pytest.raises(InvalidArgument, match="vector"):
        store.replace({"a": [row(vector=vector)]})
    with pytest.raises(InvalidArgument, match="vector"):
        store.search(vector=vector, words=None, filter=ALL, pool=5)


def test_a_bad_vector_among_many_changes_nothing(store, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_rows, "ADDED_ROWS", 2)  # so that the first rows would be added before it is met
    store.replace({"a": [row("a", 0, "here before")]})
    bad = replace(row("a", 3, "the last"), vector=np.full(DIMENSIONS, np.nan, np.float32))
    with pytest.raises(InvalidArgument):
        store.replace({"a": [*(row("a", at, "newer") for at in range(3)), bad]})
    with contextlib.closing(ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)) as again:
        assert [each.text for each in again.rows_of("a")] == ["here before"]
    store.replace({"a": [row("a", at, "newer") for at in range(5)]})
    assert [each.text for each in store.rows_of("a")] == ["newer"] * 5


@pytest.mark.parametrize("pool", [0, -1, 1_001, 2**31, 2**63])
def test_the_pool_is_bounded(store, pool):
    with pytest.raises(InvalidArgument, match="pool"):
        store.search(vector=unit("x"), words=None, filter=ALL, pool=pool)


def test_a_closed_store_says_so(tmp_path):
    store = ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.count()


def test_a_write_that_fails_half_way_changes_nothing(store):
    store.replace({"a": [row("a", 0, "old")], "b": [row("b", 0, "other")]})
    real = store._table._writer

    class Full:
        def __getattr__(self, name):
            return getattr(real, name)

        async def add(self, _):
            raise OSError(28, "No space left on device")

    store._table._writer = Full()
    with pytest.raises(Unavailable, match="disk is full"):
        store.replace({"a": [row("a", 0, "new")]})
    assert found(store, "old new") == ["a"]
    store.replace({"b": [row("b", 0, "changed")]})
    assert [passage.text for passage in store.rows_of("a")] == ["old"], "the delete was taken back"


def test_maintenance_first_takes_back_what_was_left_half_written(store):
    store.replace({"a": [row("a", 0, "old")]})
    store._table._undo = store._run(store._table.version())
    store._run(store._table._writer.delete("doc_id IN ('a')"))  # and here the disk was full
    store.maintain()
    assert [passage.text for passage in store.rows_of("a")] == ["old"]
    store.replace({"a": [row("a", 0, "new")]})
    assert [passage.text for passage in store.rows_of("a")] == ["new"]


# Outliving


def test_it_is_all_there_when_it_is_opened_again(tmp_path):
    store = ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)
    store.replace({"a": [row()]})
    dump = dump_store(store, vectors=True)
    store.close()
    again = ChunkStore(f"file://{tmp_path / 's'}", dimensions=DIMENSIONS)
    assert dump_store(again, vectors=True) == dump and not again.may_lack_rows
    again.close()


def test_a_store_of_another_model_must_be_made_anew(tmp_path):
    ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS).close()
    with pytest.raises(StoreDamaged, match="another model"):
        ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS + 1)


def keep_writing(uri: str, n: int, acknowledge: Connection) -> None:
    """Replace two documents at a time, for ever; say so each time that it is done."""
    store = ChunkStore(uri, dimensions=DIMENSIONS)
    while True:
        n += 1
        store.replace(
            {
                f"d{k}": [row(f"d{k}", part, f"take {n} of {k} part {part}") for part in range(3)]
                for k in (n % 7, 7 + n % 5)
            }
        )
        acknowledge.send(n)
        if n % 25 == 0:
            store.maintain()


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.unit.index.storage.test_chunk_store"])
    acknowledged, chances = 0, np.random.default_rng(5)
    for _ in range(15):
        here, there = processes.Pipe(duplex=False)
        child = processes.Process(target=keep_writing, args=(str(tmp_path / "s"), acknowledged, there))
        child.start()
        there.close()
        acknowledged = here.recv()
        time.sleep(float(chances.uniform(0, 0.4)))
        child.kill()
        with contextlib.suppress(EOFError):
            while True:
                acknowledged = here.recv()
        child.join()
        store = ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)
        try:
            assert not store.may_lack_rows
            last = {k: n for n in range(acknowledged + 1) for k in (n % 7, 7 + n % 5) if n}
            for k, n in last.items():
                texts = [passage.text for passage in store.rows_of(f"d{k}")]
                takes = {int(text.split()[1]) for text in texts}
                if not takes:  # between its delete and its add: the next pass of the pipe writes it again
                    assert k in ((acknowledged + 1) % 7, 7 + (acknowledged + 1) % 5)
                    continue
                assert len(texts) == 3 and len(takes) == 1, "never half of one and half of another"
                assert takes <= {n, acknowledged + 1}
        finally:
            store.close()
    assert acknowledged > 15
