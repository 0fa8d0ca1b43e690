"""index/storage/resident_words.py: the scores are those of LanceDB's own word index, whatever the writes were; rows keep their tags."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Filter
from index.storage import arrow_rows, resident_words
from index.storage.chunk_rows import Row
from index.storage.chunk_store import ChunkStore
from index.storage.lancedb_table import split_words
from index.storage.resident_rows import Rows
from index.storage.resident_words import TagColumns
from tests.support.chunk_rows import ALL, DIMENSIONS, row
from tests.support.example_counts import examples

WORDS = [
    *[
        "a",
        "the",
        "river",
        "rivers",
        "running",
        "Café",
        "CAFE",
        "naïve",
        "東京駅で食べた",
        "ภาษาไทย",
        "don't",
        "U.S.A.",
        "x-y",
        "snake_case",
        "3.14",
        "🍀",
        "straße",
    ],
    "a" * 41,
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
MOST = 1_000


def scores(rows: Rows, query: str) -> dict[tuple[str, int], float]:
    return {(match.doc_id, match.ord): match.value for match in rows.with_words(query, ALL, MOST)}


def fresh(documents: Mapping[str, list[Row]]) -> Rows:
    rows = [one for given in documents.values() for one in given]
    return Rows.of(rows, len(rows), DIMENSIONS, split_words)


def table_scores(store: ChunkStore, query: str) -> dict[tuple[str, int], float]:
    answer = store._run(store._table.search(store._table.seen.reader, None, query, ALL, MOST))[1]
    return {(match.doc_id, match.ord): match.value for match in arrow_rows.read_matches(answer, ALL)}


@pytest.mark.parametrize("field", ["workspace", "namespace"])
def test_the_score_of_a_row_tells_nothing_of_other_workspaces_and_namespaces(field):
    mine = [row(f"d{n}", text=text, **{field: "mine"}) for n, text in enumerate(["the river", "a river boat", "boat"])]
    others = [row(f"o{n}", text="river river of words", **{field: "other"}) for n in range(7)]
    asked = "river boat", Filter(**{field: "mine"}), MOST
    alone, among = (fresh({one.doc_id: [one] for one in rows}) for rows in (mine, [*mine, *others]))
    assert among.with_words(*asked) == alone.with_words(*asked) != []
    words, restriction, most = asked
    everywhere = [match for match in among.with_words(words, ALL, most) if match.doc_id.startswith("d")]
    assert among.with_words(words, replace(restriction, reads_all=True), most) == everywhere != alone.with_words(*asked)


def test_the_score_of_a_shared_note_tells_nothing_of_notes_that_are_not_shared_with_the_caller():
    rows = [row(f"d{n}", text=text) for n, text in enumerate(["the river", "a boat", "river river", "river of words"])]
    alone, among = (fresh({one.doc_id: [one] for one in given}) for given in (rows[:2], rows))
    shared = Filter(documents=frozenset({"d0", "d1"}))
    assert among.with_words("river boat", shared, MOST) == alone.with_words("river boat", ALL, MOST) != []


@pytest.mark.slow
def test_the_scores_are_those_of_lancedb(store):
    rng = random.Random(3)
    words = [*WORDS, *(f"word{n}" for n in range(40))]
    weights = [1 / (n + 1) for n in range(len(words))]
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(1, 40))) for _ in range(300)]
    documents = {f"d{n}": [row(f"d{n}", k, text) for k in range(1 + n % 2)] for n, text in enumerate(texts)}
    store.replace(documents)
    store.maintain()  # until then LanceDB scores the new rows by the words of the indexed ones alone
    mine = fresh(documents)
    for query in (*words, "river river word3", "word1 word2 word39 nowhere", "東京 ไทย CAFES", "", "!?", "'don\"t"):
        expected = table_scores(store, query) if query else {}
        assert scores(mine, query) == pytest.approx(expected, rel=1e-5), query


def test_a_repeated_word_counts_each_time_and_is_scored_once(monkeypatch):
    rows = fresh({f"d{n}": [row(f"d{n}", 0, f"{'river ' * n}and the boat")] for n in range(1, 6)})
    once, boat = scores(rows, "river"), scores(rows, "boat")
    compared, count_equals = [], resident_words._count_equals
    monkeypatch.setattr(resident_words, "_count_equals", lambda rows: (compared.append(1), count_equals(rows))[1])
    repeated = scores(rows, "river " * 500 + "boat")
    assert len(compared) == 2
    assert repeated == pytest.approx({key: 500 * score + boat[key] for key, score in once.items()}, rel=1e-5)
    assert sorted(repeated, key=repeated.get) == sorted(once, key=once.get)


def test_a_first_search_scores_rows_that_were_written_and_removed_since_maintenance(store):
    texts = ["the river", "a river boat", "a boat", "words of the weir", "a river of many words"]
    documents = {f"d{n}": [row(f"d{n}", 0, text)] for n, text in enumerate(texts)}
    for doc_id, rows in documents.items():
        store.replace({doc_id: rows})
        if doc_id == "d1":
            store.maintain()
    store.replace({"d0": []})
    expected = fresh({doc_id: rows for doc_id, rows in documents.items() if doc_id != "d0"})
    for query in ("river boat", "weir", "many words"):
        given = store.search(vector=None, words=query, filter=ALL, pool=MOST)[1]
        assert {(match.doc_id, match.ord): match.value for match in given} == pytest.approx(
            scores(expected, query), rel=1e-5
        )


SCRIPTS = st.sampled_from(
    "abAB12 .,'’-_:;!?/@#\n\t\x0b\x1c\x85\xa0\u2007\u2028\u3000\u200b\u200d\u0301\u093e\u0e31\u0e01東京でカー한글éßİǅﬁ🍀🇫🇮ـא\ufeff\xad"
)


@given(st.text(SCRIPTS | st.characters(codec="utf-8"), max_size=30))
def test_no_word_crosses_white_space(text):
    assert split_words(text) == [word for piece in text.split() for word in split_words(piece)]


CHANGES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(TEXTS, max_size=3), min_size=1, max_size=4),
    min_size=1,
    max_size=20,
)


@examples(60)
@given(CHANGES, st.sampled_from([1, 7, 1_000]), TEXTS)
def test_the_scores_do_not_depend_on_the_writes(changes, late, query):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resident_words, "LATE", late)
        patch.setattr("index.storage.resident_rows.SPARE", 2)  # packed often
        state, documents, states = Rows.of([], 0, DIMENSIONS, split_words), {}, []
        for change in changes:
            given = {name: [row(name, k, text) for k, text in enumerate(texts)] for name, texts in change.items()}
            state.replace({"unshown": [row("unshown", 0, "river " + query)] * 3})  # a write that failed
            state, documents = state.replace(given), documents | given
            states.append((state, documents))
    for state, documents in states:
        assert scores(state, query) == pytest.approx(scores(fresh(documents), query), rel=1e-5)


@pytest.mark.slow
def test_words_that_no_row_has_any_more_are_forgotten():
    state = Rows.of([row("a", 0, "stays")], 1, DIMENSIONS, split_words)
    for turn in range(5_000):
        state = state.replace({"b": [row("b", 0, f"word{turn}", vector=None)]})
    index = state._memory.words
    assert len(index._numbers) < 4_000 and len(index._seen.rows) + len(index._seen.late_rows) < 8_000
    assert scores(state, "stays word4999") == pytest.approx(
        scores(fresh({"a": [row("a", 0, "stays")], "b": [row("b", 0, "word4999")]}), "stays word4999")
    )


TAGS = st.lists(st.lists(st.sampled_from(["a", "b", "c", "d/e", "東京"]), max_size=4, unique=True), max_size=20)


@examples(60)
@given(TAGS, TAGS, st.data())
def test_rows_keep_their_tags(before, after, data):
    columns = TagColumns(max(1, len(before) + len(after)))
    for at, tags in enumerate(before):
        columns.write(at, tags)
    cut = data.draw(st.integers(0, len(before)))  # the rows from there on were never visible, and are overwritten
    rows = [*before[:cut], *after]
    for at, tags in enumerate(rows[cut:], cut):
        columns.write(at, tags)
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(rows)))))) if rows else []
    packed = columns.repack(np.array(kept, np.int64), len(kept) + 5)
    packed.write(len(kept), ["new", "a"])
    for held, expected in ((columns, rows), (packed, [*(rows[at] for at in kept), ["new", "a"]])):
        for asked in (["a"], ["b", "東京"], ["nobody"], []):
            having = held.rows_with(asked, len(expected)).tolist()
            assert having == [not set(asked).isdisjoint(tags) for tags in expected]


@pytest.mark.slow
def test_the_room_for_tags_does_not_grow_with_replaced_rows():
    state = Rows.of([replace(row("a", 0, "stays"), tags=("stays",))], 1, DIMENSIONS, split_words)
    for turn in range(5_000):
        state = state.replace({"b": [replace(row("b", 0, "b", vector=None), tags=(f"tag{turn}",))]})
    assert len(state._memory.tags._tags) < 4_000
    assert state.passing_rows(Filter(tags=("stays",))).sum() == state.passing_rows(Filter(tags=("tag4999",))).sum() == 1
