"""index/storage/resident_rows.py, and the store that answers from it, against LanceDB itself."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from index.errors import Unavailable
from index.model import Filter
from index.storage import arrow_rows, maintenance_policy, resident_words
from index.storage.chunk_rows import Row, sql_condition
from index.storage.chunk_store import ChunkStore
from index.storage.lancedb_table import split_words, value_to_sql
from index.storage.resident_rows import EXACT, SPARE, Rows
from tests.support.chunk_rows import DIMENSIONS, row, unit
from tests.support.example_counts import examples
from tests.support.index_dump import dump_store
from tests.support.until import until

ALL = Filter()
FINEST = 1 / 65_000  # half of the step in which memory keeps the components of a vector
NAMES = st.sampled_from(["", "a", "a/b", "A", "o'neil", "'' OR true --", "日本", "\\", "%"])
TAGS = st.lists(st.sampled_from(["x", "X/y", "x/y/z", "#", "日本", "o'neil"]), max_size=3).map(tuple)
TIMES = st.sampled_from([-(10**30), -5, 0, 99, 100, 10**30])
FILTERS = st.builds(
    Filter,
    workspace=st.none() | NAMES,
    namespace=st.none() | NAMES,
    collection=st.none() | NAMES,
    tags=TAGS,
    type=st.none() | NAMES,
    source=st.none() | NAMES,
    since=st.none() | TIMES,
    until=st.none() | TIMES,
    any_tags=TAGS,
    documents=st.none() | st.frozensets(st.sampled_from(["d0", "d1", "d2", "d20", "none"])),
)
ROWS = st.builds(
    row,
    workspace=NAMES,
    namespace=NAMES,
    collection=NAMES,
    type=NAMES,
    source=st.none() | NAMES,
    tags=TAGS,
    created_at=st.sampled_from([-6, -5, 0, 99, 100]),
    text=st.sampled_from(["one", "two", "three words 🍀", "four"]),
)


@pytest.fixture
def store(tmp_path):
    opened = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    yield opened
    opened.close()


def held(store: ChunkStore) -> Rows:
    """The store's rows, once a search has had them taken into memory."""

    def taken() -> bool:
        store.search(vector=None, words="x", filter=ALL, pool=1)
        return store._table.seen.rows is not None

    until(taken)
    return store._table.seen.rows


def both(store: ChunkStore, text: str, filter: Filter = ALL, pool: int = 10) -> tuple[list[str], list[str]]:
    near, found = store.search(vector=unit(text), words=text, filter=filter, pool=pool)
    return [match.doc_id for match in near], [match.doc_id for match in found]


def passages(rows: Rows, filter: Filter = ALL) -> list[tuple[str, int]]:
    return sorted(row[:2] for row in rows._memory.read_rows(np.flatnonzero(rows.passing_rows(filter))))


@pytest.mark.slow
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROWS, min_size=1, max_size=30), st.lists(FILTERS, min_size=20, max_size=20))
def test_a_filter_lets_the_same_rows_pass_as_in_the_table(store, rows, filters):
    store.replace({doc_id: [] for doc_id in store.row_counts()})
    store.replace({f"d{n}": [replace(one, doc_id=f"d{n}", chunk_id=f"d{n}-0")] for n, one in enumerate(rows)})
    mine = store._read_all_rows()
    for one in (*filters, *(Filter(workspace=each.workspace, tags=each.tags[:1], any_tags=each.tags) for each in rows)):
        found = store._run_read(store._table.select(("doc_id", "ord"), sql_condition(one, value_to_sql)))
        assert passages(mine, one) == sorted((each["doc_id"], each["ord"]) for each in found.to_pylist()), one


def test_it_finds_what_a_scan_of_the_table_finds(store):
    store.replace(
        {
            f"d{n}": [
                row(
                    f"d{n}",
                    k,
                    f"text {n % 70} {k}",
                    source=f"s{n % 9}",
                    vector=None if n % 11 == 5 else unit((n, k)),
                )
                for k in range(3)
            ]
            for n in range(200)
        }
    )
    store.maintain()  # until then, LanceDB scores by the words of the rows that its index has
    held(store)
    for n in range(20):
        restriction = Filter(source=f"s{n % 9}") if n % 2 else ALL
        asked = {"vector": unit(f"question {n}"), "words": f"text {n}", "filter": restriction, "pool": 25}
        mine = store.search(**asked)
        reader = store._table.seen.reader
        scanned = store._run(store._table.search(reader, asked["vector"], asked["words"], restriction, 25))
        for one, answer in zip(mine, scanned, strict=True):
            other = arrow_rows.read_matches(answer, restriction)
            assert [match.value for match in one] == pytest.approx([match.value for match in other], abs=2e-3)
            shared = {(match.doc_id, match.ord): match for match in other}
            assert len(one) == 25
            last = one[-1].value + 2e-3  # of rows with about this value, each may choose others
            assert all((match.doc_id, match.ord) in shared for match in one if match.value > last)
            for match in one:
                known = shared.get((match.doc_id, match.ord), match)
                assert match._replace(value=known.value) == known


def test_equals_stand_in_the_order_of_their_ids():
    rows = Rows.of((row(f"d{n}", k) for n in (3, 1, 2) for k in (1, 0)), 6, DIMENSIONS, split_words)
    found = rows.nearest(unit("hello world"), ALL, 4)
    assert [(match.doc_id, match.ord) for match in found] == [("d1", 0), ("d1", 1), ("d2", 0), ("d2", 1)]


def test_what_has_no_direction_is_near_to_nothing():
    nought = np.zeros(DIMENSIONS, np.float32)
    rows = Rows.of([row("a", vector=nought), row("b", vector=None), row("c")], 3, DIMENSIONS, split_words)
    assert [match.doc_id for match in rows.nearest(unit("x"), ALL, 9)] == ["c"]
    assert rows.nearest(nought, ALL, 9) == []


@pytest.mark.slow
@pytest.mark.parametrize("common", [0.0, 40.0], ids=["all directions", "a narrow cone"])
def test_of_many_rows_the_nearest_are_found_among_candidates(common):
    count, rng = 6_000, np.random.default_rng(3)
    directions = rng.standard_normal((24, 384))  # texts differ in few respects
    made = rng.standard_normal((count + 20, 24)) @ directions + common * rng.random(384)
    made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    vectors, points = made[:count], made[count:]
    documents = (row(f"d{n:04}", source=f"s{n % 2}", vector=vector) for n, vector in enumerate(vectors))
    rows = Rows.of(documents, count, 384, split_words)
    for restriction, theirs in ((ALL, np.arange(count)), (Filter(source="s1"), np.arange(1, count, 2))):
        assert len(theirs) > EXACT
        right = 0
        for point in points:
            nearest = theirs[np.argsort(-(vectors[theirs] @ point))[:40]]
            found = rows.nearest(point, restriction, 40, exact=False)
            right += len({match.doc_id for match in found} & {f"d{n:04}" for n in nearest})
            assert {match.doc_id for match in rows.nearest(point, restriction, 40)} == {f"d{n:04}" for n in nearest}
        assert right >= 0.97 * 20 * 40


@pytest.mark.parametrize("dimensions", [1, 63, 64, 65, 130, 384])
def test_candidates_are_those_that_are_on_the_same_side_of_the_centre_in_the_most_dimensions(dimensions, monkeypatch):
    monkeypatch.setattr("index.storage.resident_rows.SIGNS", 150)  # several blocks
    rng = np.random.default_rng(dimensions)
    for count in (1, 40, 400):
        made = rng.choice([-1.0, 0.0, 0.5, 2.0], (count, dimensions)).astype(np.float32)
        given = (row(f"d{n}", workspace=f"w{n % 7}", vector=None if n % 11 == 5 else made[n]) for n in range(count))
        rows = Rows.of(given, count, dimensions, split_words)
        rows = rows.replace({f"d{n}": [row(f"d{n}", vector=made[n - 1])] for n in range(1, count, 5)})
        centre, point = rows._memory.vectors.centre, rng.choice([-1.0, 0.0, 1.0], dimensions).astype(np.float32)
        point = point / (np.linalg.norm(point) or 1)
        for restriction in (ALL, Filter(workspace="w3"), Filter(workspace="w0")):
            passing = rows.passing_rows(restriction) & rows.near
            places = np.flatnonzero(passing)
            sides = (rows._memory.vectors.to_unit(places) > centre) == (point > centre)
            agreeing = np.count_nonzero(sides, axis=1)
            for number in (1, 3, 50) if len(places) else ():
                least = np.sort(agreeing)[::-1][:number][-1]
                expected = places[agreeing >= least].tolist()
                assert rows._memory.vectors.find_candidates(passing, point, number).tolist() == expected


CHANGES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=25
)


@pytest.mark.slow
@given(CHANGES)
def test_each_state_stays_as_it_was(changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("index.storage.resident_rows.SPARE", 2)  # packed often
        state, model, seen = Rows.of([], 0, DIMENSIONS, split_words), {}, []
        for turn, change in enumerate(changes):
            given = {name: [row(name, k, f"{name} {k} {turn}") for k in range(count)] for name, count in change.items()}
            state.replace({"unshown": [row("unshown")] * 3, "a": [row("a", 9, "unshown")]})  # a write that failed
            state, model = state.replace(given), {**model, **given}
            seen.append((state, {name: rows for name, rows in model.items() if rows}))
    for state, documents in seen:
        assert len(state) == sum(map(len, documents.values()))
        assert passages(state) == sorted((one.doc_id, one.ord) for rows in documents.values() for one in rows)
        for name in "abcdef":
            ords = [one.ord for one in documents.get(name, ())]
            assert [state._memory.numbers[0, at] for at in state.places_of(name)] == ords
            named = np.flatnonzero(state.passing_rows(Filter(documents=frozenset({name}))))
            assert named.tolist() == state.places_of(name)
        for one in (one for rows in documents.values() for one in rows):
            assert one.text in {match.text for match in state.with_words(one.text, ALL, 30)}
            for exact, each in ((2_000, 16), (0, 1)):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("index.storage.resident_rows.EXACT", exact)
                    patch.setattr("index.storage.resident_rows.EACH", each)
                    [best, *_] = state.nearest(unit(one.text), ALL, 3, exact=False)
                assert (best.text, best.value) == (one.text, pytest.approx(1, abs=1e-3))


def test_nothing_is_left_of_what_was_replaced_many_times():
    state = Rows.of([row("a")], 1, DIMENSIONS, split_words)
    for turn in range(3_000):
        state = state.replace({"a": [row("a", 0, f"take {turn}", vector=None)]})
    assert len(state._memory.created) < 3_000


# The store


def test_a_write_is_found_by_the_next_search(store):
    store.replace({"a": [row("a", 0, "old words")], "b": [row("b", 0, "others")]})
    held(store)
    store.replace({"a": [row("a", 0, "new words")], "b": []})
    assert store._table.seen.rows is not None
    assert both(store, "new words") == (["a"], ["a"])
    store.maintain()
    assert store._table.seen.rows is not None and both(store, "new words") == (["a"], ["a"])


@pytest.mark.slow
def test_what_is_written_while_the_rows_are_recalled_is_there(store, monkeypatch):
    store.replace({name: [row(name, 0, f"old {name}")] for name in "abc"})
    real, reading, go = store._table.all_rows, threading.Event(), threading.Event()

    async def slow(*columns):
        found = await real(*columns)
        reading.set()
        await asyncio.to_thread(go.wait, 20)
        return found

    monkeypatch.setattr(store._table, "all_rows", slow)
    both(store, "old")
    assert reading.wait(60)
    store.replace({"a": [row("a", 0, "new a")], "b": [], "d": [row("d", 0, "new d")]})
    assert both(store, "new")[1] == ["a", "d"], "no search waits for it"
    go.set()
    assert passages(held(store)) == [("a", 0), ("c", 0), ("d", 0)]
    assert sorted(both(store, "new")[0]) == ["a", "c", "d"] and both(store, "new")[1] == ["a", "d"]


def test_a_recall_that_fails_unexpectedly_keeps_no_later_writes(store, monkeypatch):
    store.replace({"a": [row("a", 0, "old words")]})

    def fail():
        raise OverflowError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_read_all_rows", fail)
        store._recalling.acquire()
        with pytest.raises(OverflowError):
            store._load_rows()
    assert store._missed is None
    assert passages(held(store)) == [("a", 0)]


@pytest.mark.parametrize("late", [False, True], ids=["and was taken back", "after it was stored"])
def test_after_a_write_that_failed_both_legs_still_agree(store, monkeypatch, late):
    store.replace({"a": [row("a", 0, "old words")], "b": [row("b", 0, "others")]})
    held(store)
    real, settle = store._table._writer, store._sync_files

    class Full:
        def __getattr__(self, name):
            return getattr(real, name)

        async def add(self, _):
            raise OSError(28, "No space left on device")

    def torn(**_):
        raise OSError(5, "Input/output error")

    with pytest.raises((Unavailable, OSError)):
        if late:
            store._sync_files = torn
        else:
            store._table._writer = Full()
        store.replace({"a": [row("a", 0, "new words")]})
    store._sync_files = settle
    assert both(store, "words") == (["b", "a"], ["a"]) or both(store, "words") == (["a", "b"], ["a"])
    store.maintain(prune=False)
    store.replace({"b": [row("b", 0, "changed")]})
    held(store)
    [match] = store.search(vector=None, words="words", filter=ALL, pool=5)[1]
    assert match.text == ("new words" if late else "old words")
    assert {match.text for match in store.search(vector=unit("x"), words=None, filter=ALL, pool=5)[0]} == {
        match.text,
        "changed",
    }


def test_a_store_that_grows_lets_go_of_its_rows(store, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 20)
    monkeypatch.setattr(maintenance_policy, "OUTGROWN", 30)
    store.replace({f"d{n}": [row(f"d{n}", 0, f"text {n}")] for n in range(20)})
    held(store)
    store.replace({f"d{n}": [row(f"d{n}", 0, f"text {n}")] for n in range(20, 30)})
    assert store._table.seen.rows is not None
    store.replace({"d30": [row("d30", 0, "text 30")]})
    assert store._table.seen.rows is None
    assert both(store, "text 30", pool=1) == (["d30"], ["d30"])
    until(lambda: "recall" not in {thread.name for thread in threading.enumerate()})
    assert store._table.seen.rows is None, "it is too large to be taken back"
    store.replace({f"d{n}": [] for n in range(11)})
    assert len(held(store)) == 20


def test_a_large_write_releases_the_rows_in_memory_until_the_next_search(store, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "LARGE_WRITE", 3)
    store.replace({"a": [row("a", 0, "text a")]})
    held(store)
    store.replace({"b": [row("b", n, f"text b{n}") for n in range(3)]})
    assert store._table.seen.rows is not None
    store.replace({"c": [row("c", n, f"text c{n}") for n in range(4)]})
    assert store._table.seen.rows is None
    assert both(store, "text c3", pool=1) == (["c"], ["c"])
    assert len(held(store)) == 8


@pytest.mark.slow
def test_rows_with_too_many_different_words_stay_out_of_memory(store, monkeypatch):
    monkeypatch.setattr(resident_words, "MOST_WORDS", 30)
    store.replace({"many": [row("many", n, f"word{n}") for n in range(31)], "a": [row("a", 0, "few words")]})
    for _ in range(2):
        assert both(store, "few words", pool=1) == (["a"], ["a"])
        until(lambda: "recall" not in {thread.name for thread in threading.enumerate()})
        assert store._table.seen.rows is None
    loads, load = [], store._load_rows
    monkeypatch.setattr(store, "_load_rows", lambda: (loads.append(1), load()))
    store.maintain()
    assert both(store, "few words", pool=1) == (["a"], ["a"])
    assert loads == [], "they are still too many"
    store.replace({"many": [], "b": [row("b", 0, "other words")]})
    store.maintain()
    both(store, "few words")
    assert len(held(store)) == 2
    for number in range(31):
        store.replace({"b": [row("b", 0, f"word{number}")]})
    assert store._table.seen.rows is None


@pytest.mark.slow
def test_both_legs_see_one_state_while_it_is_written(store):
    """Each document's rows carry one number, the same on all: a search sees two numbers of no document."""
    store.replace({f"d{n}": [row(f"d{n}", k, f"same take 0 part {k}") for k in range(3)] for n in range(4)})
    held(store)
    stop, wrong = threading.Event(), []

    def reads():
        while not stop.is_set():
            near, found = store.search(vector=unit("x"), words="same", filter=ALL, pool=50)
            texts = {(match.doc_id, match.ord): match.text for match in near}
            if texts != {(match.doc_id, match.ord): match.text for match in found} or len(texts) != 12:
                wrong.append((near, found))
            time.sleep(0.001)

    threads = [threading.Thread(target=reads) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(1, 20):
        store.replace({f"d{turn % 4}": [row(f"d{turn % 4}", k, f"same take {turn} part {k}") for k in range(3)]})
    store.maintain()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_held_is_no_part_of_a_dump(store, tmp_path):
    documents: dict[str, list[Row]] = {name: [row(name, n, f"{name} {n}") for n in range(3)] for name in "abc"}
    store.replace(documents)
    held(store)
    other = ChunkStore(str(tmp_path / "other"), dimensions=DIMENSIONS)
    other.replace(documents)
    assert dump_store(other, vectors=True) == dump_store(store, vectors=True)
    other.close()


def test_how_near_documents_are_is_the_same_from_the_table_and_from_memory(store):
    texts = {f"d{n}": [f"text {n} part {k}" for k in range(n % 4)] for n in range(30)}
    store.replace({name: [row(name, k, text) for k, text in enumerate(own)] for name, own in texts.items()})
    store.replace({"wordbound": [replace(row("wordbound", 0, "x"), vector=None)]})
    points = np.stack([unit("text 7 part 1"), 3 * unit("text 9 part 0")])
    asked = [*texts, "wordbound", "unknown"]
    with store._recalling:  # no read loads the rows meanwhile
        own = {name: store.vectors_of(name) for name in asked}
        first = store.similarities(points, asked)
    assert store._table.seen.rows is None
    held(store)
    assert all(store.vectors_of(name) == pytest.approx(own[name], abs=FINEST) for name in asked)
    second = store.similarities(points, asked)
    assert first.keys() == second.keys() == {name for name, own in texts.items() if own}
    assert first == pytest.approx(second, abs=FINEST * DIMENSIONS**0.5)
    plain = {
        name: max(float(unit(text) @ unit(f"text {point}")) for text in own for point in ("7 part 1", "9 part 0"))
        for name, own in texts.items()
        if own
    }
    assert second == pytest.approx(plain, abs=2e-3)  # vectors are kept in 16 bits
    assert (second["d7"], second["d9"]) == (pytest.approx(1, abs=1e-3), pytest.approx(1, abs=1e-3))
    assert store.vectors_of("d7") == pytest.approx(np.stack([unit(text) for text in texts["d7"]]), abs=1e-3)
    assert store.vectors_of("unknown").shape == store.vectors_of("wordbound").shape == (0, points.shape[1])
    assert store.similarities(points, []) == {}


@pytest.mark.parametrize(
    "read", [lambda store: store.vectors_of("a"), lambda store: store.similarities(unit("text")[None], ["a"])]
)
def test_whoever_compares_vectors_has_the_rows_loaded_for_later_reads(store, read):
    store.replace({"a": [row("a", 0, "text")]})
    read(store)
    with store._recalling:
        assert store._table.seen.rows is not None


@pytest.mark.slow
def test_the_memory_of_removed_rows_is_given_back():
    long = [row("long", n, f"passage {n}") for n in range(3 * SPARE)]
    rows = Rows.of([row("a", 0, "stays")], 1, DIMENSIONS, split_words).replace({"long": long})
    taken = rows._memory.vectors.steps.nbytes
    rows = rows.replace({"long": ()}).replace({"b": [row("b", 0, "new")]})
    assert rows._memory.vectors.steps.nbytes < taken / 3
    assert len(rows) == 2
    assert rows.nearest(unit("stays"), ALL, 5)[0].doc_id == "a"


def test_a_sample_of_a_long_document_s_vectors_is_from_all_of_it_and_the_same_from_both(store):
    texts = [f"passage {n}" for n in range(100)]
    store.replace({"long": [row("long", n, text) for n, text in enumerate(texts)]})
    with store._recalling:  # it does not load the rows meanwhile
        cold = store.vectors_of("long", 5)
    held(store)
    assert store.vectors_of("long", 5) == pytest.approx(cold, abs=FINEST)
    assert cold == pytest.approx(np.stack([unit(texts[n]) for n in (0, 25, 50, 74, 99)]), abs=1e-3)
    assert store.vectors_of("long", 200).shape == store.vectors_of("long").shape


def test_strings_that_rows_have_in_common_are_in_memory_once():
    def copy(text: str) -> str:
        return "".join(list(text))

    written = [replace(row(copy("d1"), number, "some words"), workspace=copy("a workspace")) for number in range(2)]
    for rows in (
        Rows.of(written, 2, DIMENSIONS, split_words),
        Rows.of([], 0, DIMENSIONS, split_words).replace({"d1": written}),
    ):
        (doc_id,) = rows._memory.places
        first, second = rows._memory.read_rows(np.arange(2))
        assert first[0] is second[0] is doc_id
        assert first[2] is second[2]
