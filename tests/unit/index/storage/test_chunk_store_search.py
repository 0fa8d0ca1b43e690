"""Searches of the chunk store keep to their filter, whatever the values, on real LanceDB databases."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from index.errors import InvalidArgument
from index.model import Filter
from index.storage import lancedb_table
from tests.support.chunk_rows import ALL, found, near, row, unit
from tests.support.world import until


@pytest.fixture
def words_from_table(monkeypatch):
    """A first search by words asks LanceDB, as in a store of many rows."""
    monkeypatch.setattr("index.storage.maintenance_policy.AWAITED", 0)


def test_both_legs_answer_best_first_with_their_scores(store):
    store.replace(
        {"a": [row("a", 0, "lance index")], "b": [row("b", 0, "lance lance lance")], "c": [row("c", 0, "nothing")]}
    )
    by_vector, by_words = store.search(vector=unit("lance index"), words="lance", filter=ALL, pool=10)
    assert by_vector[0].doc_id == "a" and by_vector[0].value == pytest.approx(1.0, abs=2e-3)
    assert [match.value for match in by_vector] == sorted((match.value for match in by_vector), reverse=True)
    assert by_vector[1].value == pytest.approx(float(unit("lance index") @ unit(by_vector[1].text)), abs=2e-3)
    assert [match.doc_id for match in by_words] == ["b", "a"]
    assert len(store.search(vector=unit("x"), words="lance", filter=ALL, pool=1)[0]) == 1


def test_a_vector_is_made_while_words_are_looked_for(store, words_from_table, monkeypatch):
    store.replace({"a": [row("a", 0, "lance index")], "b": [row("b", 0, "nothing")]})
    begun, search = threading.Event(), store._table.search

    async def tell_and_search(*given, **named):
        begun.set()
        return await search(*given, **named)

    monkeypatch.setattr(store._table, "search", tell_and_search)
    made = []

    def make():
        assert begun.wait(30)
        made.append(unit("lance index"))
        return made[0]

    by_vector, by_words = store.search(vector=make, words="lance", filter=ALL, pool=10)
    assert (by_vector[0].doc_id, [match.doc_id for match in by_words], len(made)) == ("a", ["a"], 1)
    assert found(store, "lance") == [match.doc_id for match in by_words]
    assert store.search(vector=lambda: None, words="lance", filter=ALL, pool=10)[0] == []
    with pytest.raises(InvalidArgument):
        store.search(vector=lambda: unit("x") * float("nan"), words="lance", filter=ALL, pool=10)
    with pytest.raises(ZeroDivisionError):
        store.search(vector=lambda: 1 / 0, words="lance", filter=ALL, pool=10)
    assert [match.doc_id for match in store.search(vector=make, words="lance", filter=ALL, pool=10)[0]] == ["a", "b"]


def test_a_close_does_not_wait_for_rows_that_only_later_searches_need(store, words_from_table, monkeypatch):
    monkeypatch.setattr(lancedb_table, "LOADED", 1)
    store.replace({f"d{n}": [row(f"d{n}", 0, "same")] for n in range(50)})
    begun, closing, batches, next_batch = threading.Event(), threading.Event(), [], lancedb_table.next_batch

    async def read_and_wait(reader):
        begun.set()
        await asyncio.to_thread(closing.wait, 60)
        batches.append(await next_batch(reader))
        return batches[-1]

    monkeypatch.setattr(lancedb_table, "next_batch", read_and_wait)
    assert len(found(store, "same")) == 10
    assert begun.wait(60)
    closer = threading.Thread(target=store.close)
    closer.start()
    until(lambda: store._closing)
    closing.set()
    closer.join(60)
    assert not closer.is_alive()
    assert len(batches) == 1


@pytest.mark.parametrize("kept", [False, True], ids=["fresh", "after maintenance"])
@pytest.mark.parametrize(
    "words", ['"lance index"', '"index lance"', '"lance', '"lance" "index"', '  "lance"  ', '"lance"~2']
)
def test_words_in_quotation_marks_are_words(store, words_from_table, words, kept):
    store.replace({"a": [row("a", 0, "lance index")], "b": [row("b", 0, "nothing")]})
    if kept:
        store.maintain()
        store.replace({"c": [row("c", 0, "another lance index")]})
    assert sorted(found(store, words)) == (["a", "c"] if kept else ["a"])


ODD_WORDS = [
    None,
    "",
    "  ",
    "'''",
    "!!!",
    'C++ "unbalanced AND (foo',
    "zzz",
    "\x00",
    "a" * 20_000,
]


def test_any_words_may_be_asked_for(store, words_from_table):
    store.replace({"a": [row()]})
    for words in ODD_WORDS:
        assert found(store, words) == [], words


FILTERS = {
    "nothing": (Filter(), "abcd"),
    "a workspace": (Filter(workspace="work"), "bcd"),
    "the vault's workspace": (Filter(workspace=""), ""),
    "not a prefix of a workspace": (Filter(workspace="wor"), ""),
    "a namespace, and not those below it": (Filter(namespace="x"), "b"),
    "a namespace below": (Filter(namespace="x/y"), "c"),
    "a collection": (Filter(collection="memory"), "c"),
    "a type": (Filter(type="entity"), "d"),
    "a source": (Filter(source="o'neil"), "d"),
    "a tag and those below it": (Filter(tags=("#Area",)), "bc"),
    "a tag below": (Filter(tags=("area/HOME",)), "b"),
    "every tag": (Filter(tags=("area", "straße")), "c"),
    "a folded tag": (Filter(tags=("STRASSE",)), "c"),
    "a tag that is none": (Filter(tags=("#",)), ""),
    "any of several tags": (Filter(any_tags=("area/home", "STRASSE", "none")), "bc"),
    "any of one, and those below it": (Filter(any_tags=("#Area",)), "bc"),
    "any of none": (Filter(any_tags=("#", "none")), ""),
    "all of some and any of others": (Filter(tags=("area",), any_tags=("straße", "x")), "c"),
    "since": (Filter(since=200), "cd"),
    "until": (Filter(until=200), "ab"),
    "beyond all times": (Filter(since=10**40, until=-(10**40)), ""),
    "all at once": (Filter(workspace="work", tags=("area",), since=200, type="note"), "c"),
}


def test_a_search_keeps_to_its_filter(store, words_from_table):
    store.replace(
        {
            "a": [row("a", 0, "same", created_at=100, workspace="default")],
            "b": [row("b", 0, "same", created_at=199, workspace="work", namespace="x", tags=("Area/Home",))],
            "c": [
                row(
                    "c",
                    0,
                    "same",
                    created_at=200,
                    workspace="work",
                    namespace="x/y",
                    collection="memory",
                    tags=("area", "Straße"),
                )
            ],
            "d": [row("d", 0, "same", created_at=300, workspace="work", type="entity", source="o'neil")],
        }
    )
    for what, (restriction, ids) in FILTERS.items():
        assert sorted(near(store, "same", restriction)) == sorted(found(store, "same", restriction)) == list(ids), what


HOSTILE = [
    "\\') OR true --", "\\' OR 1=1 --", "' OR '1'='1", "') OR true --", "'; DROP TABLE chunks; --", "a' OR workspace = 'b' OR '1'='2",
    "' UNION SELECT * FROM chunks --", "\\", "\\\\", "'", "''", "'''", "\\'", "\\\\'", "\\\\\\'", '"', '" OR true --', "`", "`workspace`",
    "%", "_", "%' OR workspace LIKE '%", "\x00", "a\x00' OR true --", "\n", "' OR true\n--", "/*", "*/ OR true /*", "' /* ", "--",
    "workspace", "NULL", "true", "1 OR 1=1", "$1", "?", "{}", "${workspace}", "E'\\'' OR true --", "X'27'", "U&'\\0027' OR true --",
    "ʼ OR true --", "＇ OR true --", "’ OR ’1’=’1", "]) OR true --", "']) OR true --", "') OR array_has(tags, 'b",
]  # fmt: skip


FIELDS = [
    "workspace",
    "namespace",
    "collection",
    "type",
    "source",
    "tags",
    "any_tags",
]


def test_no_value_reaches_beyond_its_workspace(store, words_from_table):
    assert len(HOSTILE) >= 40
    store.replace(
        {
            "mine": [row("mine", 0, "same", workspace="a")],
            "theirs": [row("theirs", n, "same", workspace="b") for n in range(3)],
        }
    )
    for field in FIELDS:
        for payload in HOSTILE:
            value = (payload,) if field.endswith("tags") else payload
            restriction = replace(Filter(workspace="a"), **{field: value})
            both = near(store, "same", restriction) + found(store, "same", restriction)
            assert "theirs" not in both, payload
            assert both == [], payload
        assert store.row_counts() == {"mine": 1, "theirs": 3}, field


def test_a_hostile_value_is_stored_and_found_like_any_other(store):
    rows = [row(f"d{n}", 0, "same", workspace=payload, source=payload) for n, payload in enumerate(HOSTILE)]
    store.replace({one.doc_id: [one] for one in rows} | {"other": [row("other", 0, "same")]})
    for one in rows:
        assert found(store, "same", Filter(workspace=one.workspace, source=one.source)) == [one.doc_id]
        assert store.vectors([one.workspace]) == {}
        assert store.rows_of(one.workspace) == []
    store.replace({one.doc_id: [] for one in rows})
    assert store.row_counts() == {"other": 1}
