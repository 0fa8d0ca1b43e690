"""The buffer of index/storage/store_writer.py: what waits in it is found, kept and written, whatever happens meanwhile."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import Unavailable
from index.model import Filter
from index.observations.resident_observations import ObservationVectors
from index.storage import maintenance_policy
from index.storage.chunk_store import ChunkStore
from tests.support import temporary_folders
from tests.support.chunk_rows import ALL, DIMENSIONS, found, near, row, unit
from tests.support.example_counts import examples
from tests.support.until import until

tmp_path = temporary_folders.tmp_path_on_disk

OLD = {"a": [row("a", 0, "old words"), row("a", 1, "more words")], "b": [row("b", 0, "others")]}
NEW = {"a": [row("a", 0, "new words")], "b": [], "c": [row("c", 0, "third words"), row("c", 1, "fourth words")]}


def load(store: ChunkStore) -> None:
    """Have the rows in memory, where searches find them."""
    until(lambda: found(store, "words") is not None and store._table.seen.rows is not None)


@pytest.fixture
def filled(store):
    """A store whose rows are in memory, and whose buffer has newer ones."""
    store.replace(OLD)
    load(store)
    store.replace(NEW, buffered=True)
    assert set(store.unwritten) == {"a", "b", "c"}
    return store


def written(store: ChunkStore) -> list[tuple]:
    """Return the rows that the newest version of the table has, whatever waits."""
    return sorted(
        (values["doc_id"], values["ord"], values["text"])
        for values in store._run(store._table.select(("doc_id", "ord", "text"))).to_pylist()
    )


def expected(documents) -> list[tuple]:
    return sorted((one.doc_id, one.ord, one.text) for rows in documents.values() for one in rows)


def test_a_write_waits_while_readers_have_the_rows_in_memory(filled):
    assert written(filled) == expected(OLD)
    assert found(filled, "new") == ["a"] and found(filled, "others") == []
    assert near(filled, "third words", pool=1) == ["c"]
    filled.flush()
    assert written(filled) == expected(NEW) and not filled.unwritten
    assert filled._table.seen.rows is not None
    assert found(filled, "new") == ["a"] and near(filled, "third words", pool=1) == ["c"]


READS = {
    "rows_of": lambda store: [one.text for one in store.rows_of("c")] == ["third words", "fourth words"],
    "rows with vectors": lambda store: [one.text for one in store.rows_of("a", vectors=True)] == ["new words"],
    "texts": lambda store: store.texts("default", "a") == {"a": "new words"} and not store.texts("other", "a"),
    "texts_of": lambda store: store.texts_of(["a", "b", "c"]) == {"a": "new words", "c": "third words\nfourth words"},
    "vector_sums": lambda store: store.vector_sums(ALL).keys() == {"a", "c"},
    "row_counts": lambda store: store.row_counts() == {"a": 1, "c": 2},
    "count": lambda store: store.count() == 3,
    "known_digests": lambda store: len(store.known_digests([one.digest for one in NEW["c"]])) == 2,
    "vectors": lambda store: (
        store.vectors([one.digest for one in (*NEW["c"], *OLD["a"])]).keys()
        == {one.digest for one in (*NEW["c"], *OLD["a"])}
    ),
    "vectors_of": lambda store: len(store.vectors_of("c")) == 2 and not len(store.vectors_of("b")),
    "similarities": lambda store: store.similarities(unit("new words")[None], ["a", "b"]).keys() == {"a"},
    "nearest": lambda store: [match.doc_id for match in store.nearest([(unit("new words"), ALL)], 1)[0]] == ["a"],
}


@pytest.mark.parametrize("read", READS)
def test_each_read_sees_what_waits(filled, read):
    assert READS[read](filled)


@pytest.mark.parametrize("read", READS)
def test_each_read_sees_what_waits_before_the_rows_are_in_memory(store, read):
    store.replace(OLD)
    store.replace(NEW, buffered=True)
    assert set(store.unwritten) == {"a", "b", "c"} and written(store) == expected(OLD)
    assert READS[read](store)


def test_the_first_search_writes_what_waits_and_loads_it(store, monkeypatch):
    store.replace(OLD)
    store.replace({"a": NEW["a"], "b": []}, buffered=True)
    read = store._read_all_rows

    def meanwhile():
        rows = read()
        store.replace({"c": NEW["c"]}, buffered=True)
        assert not store.unwritten, "rows that are being loaded would lack it"
        return rows

    monkeypatch.setattr(store, "_read_all_rows", meanwhile)
    load(store)
    assert written(store) == expected(NEW) and not store.unwritten
    assert found(store, "old") == [] and found(store, "new") == ["a"] and found(store, "fourth") == ["c"]


def test_a_vector_that_waits_is_read_without_a_write(filled):
    digests = [one.digest for one in NEW["c"]]
    vectors = filled.vectors(digests)
    assert np.allclose(vectors[digests[0]], NEW["c"][0].vector)
    assert filled.unwritten


@pytest.mark.parametrize(
    "given", ["rows that memory has no room for", "many rows", "a failed write before", "not asked for"]
)
def test_other_writes_wait_for_the_table(store, monkeypatch, given):
    store.replace(OLD)
    if given == "rows that memory has no room for":
        monkeypatch.setattr(maintenance_policy, "HELD", 2)
    else:
        load(store)
    if given == "many rows":
        monkeypatch.setattr(maintenance_policy, "BUFFERED", 2)
    if given == "a failed write before":
        store._unsure = True
    store.replace(NEW, buffered=given != "not asked for")
    assert written(store) == expected(NEW) and not store.unwritten


@pytest.mark.parametrize("is_loaded", [False, True], ids=["before the rows are in memory", "in memory"])
def test_no_write_waits_while_the_clock_is_before_1970(store, monkeypatch, is_loaded):
    store.replace(OLD)
    if is_loaded:
        load(store)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: -1.0)
        with pytest.raises(Unavailable, match="before 1970"):
            store.replace(NEW, buffered=True)
    assert not store.unwritten and found(store, "new") == [] and written(store) == expected(OLD)
    store.replace(NEW, buffered=True)
    assert found(store, "new") == ["a"]


def test_a_write_that_does_not_wait_takes_the_others_along(filled):
    filled.replace({"d": [row("d", 0, "fifth words")]})
    assert not filled.unwritten
    assert written(filled) == expected({**NEW, "d": [row("d", 0, "fifth words")]})
    assert found(filled, "fifth new", pool=5) and filled._table.seen.rows is not None


def test_a_document_that_changes_again_waits_with_its_last_rows(filled):
    filled.replace({"a": [], "c": [row("c", 0, "last words")]}, buffered=True)
    assert found(filled, "words") == ["c"]
    filled.flush()
    assert written(filled) == expected({"c": [row("c", 0, "last words")]})


def test_a_write_during_a_flush_neither_waits_nor_gets_lost(filled, monkeypatch):
    inside, go, sync = threading.Event(), threading.Event(), filled._sync_files

    def slow(**given):
        inside.set()
        assert go.wait(60)
        sync(**given)

    monkeypatch.setattr(filled, "_sync_files", slow)
    flushing = threading.Thread(target=filled.flush)
    flushing.start()
    assert inside.wait(60)
    filled.replace({"c": [row("c", 0, "last words")], "d": [row("d", 0, "fifth words")]}, buffered=True)
    assert found(filled, "last") == ["c"]
    go.set()
    flushing.join(60)
    assert set(filled.unwritten) == {"c", "d"}
    assert found(filled, "last") == ["c"] and found(filled, "third") == []
    filled.flush()
    assert written(filled) == expected(
        {"a": NEW["a"], "c": [row("c", 0, "last words")], "d": [row("d", 0, "fifth words")]}
    )


def fail(**_):
    raise Unavailable("the disk is full")


@pytest.mark.parametrize("late", [False, True], ids=["nothing written", "written but not synced"])
def test_a_flush_that_fails_keeps_what_waits(filled, monkeypatch, late):
    with monkeypatch.context() as patch:
        if late:
            patch.setattr(filled, "_sync_files", fail)
        else:
            patch.setattr(filled._table, "replace", fail_async)
        with pytest.raises(Unavailable):
            filled.flush()
        assert set(filled.unwritten) == {"a", "b", "c"} and found(filled, "new") == ["a"]
        with pytest.raises(Unavailable):
            filled.replace({"d": [row("d", 0, "fifth words")]}, buffered=True)
        with pytest.raises(Unavailable):
            filled.maintain()
        assert found(filled, "new") == ["a"] and near(filled, "third words", pool=1) == ["c"]
    filled.maintain()
    there = {**NEW, "d": [row("d", 0, "fifth words")]} if late else NEW  # a commit that fails removes what it wrote
    assert written(filled) == expected(there) and not filled.unwritten
    load(filled)
    assert found(filled, "new") == ["a"] and found(filled, "fifth") == (["d"] if late else [])


async def fail_async(*_):
    raise OSError(28, "No space left on device")


def test_a_removal_that_was_written_but_not_synced_is_synced_and_shown_by_the_next_flush(store, monkeypatch):
    store.replace(OLD)
    load(store)
    store.replace({"a": []}, buffered=True)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_sync_files", fail)
        with pytest.raises(Unavailable):
            store.flush()
    synced, sync = [], store._sync_files
    monkeypatch.setattr(store, "_sync_files", lambda **given: (synced.append(1), sync(**given)))
    store.flush()
    assert synced and not store.unwritten and not store._unsure
    assert written(store) == expected({"b": OLD["b"]})


def test_rows_that_are_removed_before_they_were_written_leave_memory_too(store):
    store.replace(OLD)
    load(store)
    store.replace({"c": NEW["c"]}, buffered=True)
    store.replace({"c": []})
    assert found(store, "third") == [] and near(store, "third words", pool=1) != ["c"]
    assert not store.unwritten and written(store) == expected(OLD)


def test_what_waits_and_what_does_not_is_read_though_nothing_can_be_written(filled, monkeypatch):
    filled.flush()
    filled.replace({"a": [], "d": [row("d", 0, "fifth words")]}, buffered=True)
    monkeypatch.setattr(filled, "_sync_files", fail)
    assert [one.text for one in filled.rows_of("c")] == ["third words", "fourth words"]
    assert [one.text for one in filled.rows_of("d")] == ["fifth words"] and filled.rows_of("a") == []
    assert [one.vector is None for one in filled.rows_of("d")] == [True]
    assert np.allclose(filled.rows_of("d", vectors=True)[0].vector, unit("fifth words"))
    assert len(filled.rows_of("c", vectors=True)) == 2 and filled.unwritten


@pytest.mark.parametrize("late", [False, True], ids=["nothing written", "written but not synced"])
def test_texts_and_sums_of_vectors_are_read_though_nothing_can_be_written(filled, monkeypatch, late):
    if late:
        monkeypatch.setattr(filled, "_sync_files", fail)
    else:
        monkeypatch.setattr(filled._table, "replace", fail_async)
    assert READS["texts_of"](filled)
    assert [filled.texts("default", part) for part in "abc"] == [
        {"a": "new words"},
        {},
        {"c": "third words\nfourth words"},
    ]
    assert filled.vector_sums(ALL).keys() == {"a", "b"}
    assert set(filled.unwritten) == {"a", "b", "c"}


def test_a_search_of_the_table_sees_what_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 3)
    store = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS, hold=ObservationVectors.of)
    of_type = Filter(workspace="default", type="p")

    def fact(doc_id, text):
        return {doc_id: [row(doc_id, 0, text, heading="1", type="p")]}

    for name in "abcdef":
        store.replace(fact(name, f"old words {name}"))
    until(lambda: store.nearest([(unit("x"), of_type)], 3) and store._table.seen.vectors is not None)
    for read in (lambda: found(store, "fresh", of_type) == ["b"], lambda: len(store.vectors_of("b")) == 1):
        store.replace(fact("b", "fresh words"), buffered=True)
        assert set(store.unwritten) == {"b"}
        assert [match.doc_id for match in store.nearest([(unit("fresh words"), of_type)], 1)[0]] == ["b"]
        assert read()
    store.replace(fact("b", "last words"), buffered=True)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_sync_files", fail)
        assert found(store, "old", of_type), "a search goes on though nothing can be written"
    store.flush()
    assert found(store, "last", of_type) == ["b"]
    store.close()


def test_rows_that_outgrow_memory_during_a_flush_stay_while_others_wait(filled, monkeypatch):
    sync = filled._sync_files

    def meanwhile(**given):
        sync(**given)
        filled.replace({"d": [row("d", 0, "fifth words")]}, buffered=True)
        monkeypatch.setattr(maintenance_policy, "OUTGROWN", 2)

    with monkeypatch.context() as patch:
        patch.setattr(filled, "_sync_files", meanwhile)
        filled.flush()
    assert set(filled.unwritten) == {"d"} and found(filled, "fifth") == ["d"]
    filled.flush()
    assert filled._table.seen.held is None and found(filled, "fifth") == ["d"]


def test_rows_that_another_thread_has_just_loaded_are_not_loaded_again(store, monkeypatch):
    store.replace(OLD)
    real, loads = store._recalling, []

    class Late:
        def acquire(self, **given):
            store._recalling = real
            load(store)
            until(lambda: not real.locked())
            monkeypatch.setattr(store, "_load_rows", lambda: loads.append(1))
            return real.acquire(**given)

    store._recalling = Late()
    store._start_loading_rows()
    assert not loads and not real.locked(), "what was buffered meanwhile would be missing"


def test_closing_writes_what_waits(tmp_path):
    store = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    store.replace(OLD)
    load(store)
    store.replace(NEW, buffered=True)
    shutil.copytree(tmp_path / "s.lance", tmp_path / "crashed.lance")
    store.close()
    for name, there in (("s", NEW), ("crashed", OLD)):
        again = ChunkStore(str(tmp_path / f"{name}.lance"), dimensions=DIMENSIONS)
        assert written(again) == expected(there) and not again.may_lack_rows
        again.close()


def test_a_closed_store_refuses_a_write_that_could_wait(store):
    store.replace(OLD)
    load(store)
    store.close()
    with pytest.raises(Unavailable, match="the store is closed"):
        store.replace(NEW, buffered=True)
    assert not store.unwritten


def test_a_store_closes_though_nothing_can_be_written(filled, monkeypatch):
    monkeypatch.setattr(filled._table, "replace", fail_async)
    filled.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["wait", "write"]), st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from(["one", "two", "three"]), max_size=3), min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["flush", "maintain", "unwritten", "unsynced", "load", "read"]), st.none()),
    ),
    max_size=12,
)  # fmt: skip


@examples(30)
@given(steps=STEPS)
def test_searches_and_reads_agree_with_the_last_writes_in_any_order(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("store")
    store = ChunkStore(str(folder / "s.lance"), dimensions=DIMENSIONS)
    model = {"a": [row("a", 0, "one")]}
    store.replace(model)
    load(store)
    try:
        for step, texts in steps:
            documents = {
                doc_id: [row(doc_id, n, text) for n, text in enumerate(all_)] for doc_id, all_ in (texts or {}).items()
            }
            if documents:
                store.replace(documents, buffered=step == "wait")
                model = {**model, **documents}
            elif step in ("unwritten", "unsynced"):
                with pytest.MonkeyPatch.context() as patch, suppress(Unavailable):
                    patch.setattr(store._table, "replace", fail_async) if step == "unwritten" else patch.setattr(
                        store, "_sync_files", fail
                    )
                    store.flush()
            elif step == "read":
                assert store.row_counts() == {doc_id: len(rows) for doc_id, rows in model.items() if rows}
            else:
                {"flush": store.flush, "maintain": store.maintain, "load": lambda: load(store)}[step]()
            for word in ("one", "two", "three"):
                there = sorted((one.doc_id, one.ord) for rows in model.values() for one in rows if one.text == word)
                near_, found_ = store.search(vector=unit(word), words=word, filter=Filter(), pool=20)
                assert sorted((match.doc_id, match.ord) for match in found_) == there
                assert sorted((match.doc_id, match.ord) for match in near_ if match.value > 0.99) == there
    finally:
        store.close()
    again = ChunkStore(str(folder / "s.lance"), dimensions=DIMENSIONS)
    assert written(again) == expected(model)
    again.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("awaited", [maintenance_policy.AWAITED, 1], ids=["few rows", "many rows"])
@pytest.mark.parametrize("late", [False, True], ids=["nothing written", "written but not synced"])
def test_what_waits_is_found_though_it_could_not_be_written_before_the_rows_are_in_memory(
    store, monkeypatch, late, awaited
):
    monkeypatch.setattr(maintenance_policy, "AWAITED", awaited)
    store.replace(OLD)
    store.replace(NEW, buffered=True)
    with monkeypatch.context() as patch:
        if late:
            patch.setattr(store, "_sync_files", fail)
        else:
            patch.setattr(store._table, "replace", fail_async)
        if late:
            assert store.nearest([(unit("new words"), ALL)], 1)[0][0].doc_id == "a"
        assert found(store, "new") == ["a"] and found(store, "others") == []
        assert near(store, "third words", pool=1) == ["c"]
        assert set(store.unwritten) == {"a", "b", "c"}
    store.flush()
    assert written(store) == expected(NEW) and not store.unwritten
    load(store)
    assert found(store, "new") == ["a"] and near(store, "third words", pool=1) == ["c"]
