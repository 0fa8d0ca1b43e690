"""index/catalog/recent_documents.py: documents by their last change, page by page, on real SQLite files."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.catalog.catalog import Catalog
from index.catalog.recent_documents import encode_cursor, following_query, list_following, list_recent
from index.catalog.schema import CHANGED
from index.errors import InvalidArgument
from index.model import Filter
from index.query import make_filter
from tests.support.catalog_rows import document, write
from tests.support.example_counts import examples


@pytest.fixture
def catalog(tmp_path):
    opened = Catalog(tmp_path / "captures.db")
    yield opened
    opened.close()


def walk(catalog, restriction, size):
    found, cursor = [], None
    while True:
        page, cursor = list_recent(catalog, restriction, size, cursor)
        found += page
        assert len(page) <= size
        if cursor is None:
            return found
        assert len(page) == size


TIMES = st.integers(-3, 3)


@examples(30)
@given(
    st.lists(st.tuples(TIMES, st.none() | TIMES, st.sampled_from("ab"), st.sampled_from(["note", "file"]))),
    st.integers(1, 4),
)
def test_the_pages_hold_each_document_once_the_latest_first(told, size):
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder, "captures.db"))
        documents = [
            document(f"{n}.md", created_at=made, updated_at=changed, workspace=where, type=kind)
            for n, (made, changed, where, kind) in enumerate(told)
        ]
        write(catalog, *documents)
        for restriction in (Filter(), Filter(workspace="a"), Filter(workspace="b", type="file")):
            found = walk(catalog, restriction, size)
            wanted = [
                one
                for one in documents
                if restriction.workspace in (None, one.workspace) and restriction.type in (None, one.type)
            ]
            assert sorted(one.path for one in found) == sorted(one.path for one in wanted)
            moments = [one.created_at if one.updated_at is None else one.updated_at for one in found]
            assert moments == sorted(moments, reverse=True)
        catalog.close()


def test_what_changes_between_two_pages_is_on_none_of_them_twice_and_first_in_the_next_walk(catalog):
    write(catalog, *(document(f"{n}.md", created_at=n) for n in range(9)))
    first, cursor = list_recent(catalog, Filter(), 3)
    write(catalog, document("8.md", created_at=8, updated_at=100), document("2.md", created_at=2, updated_at=101))
    second, cursor = list_recent(catalog, Filter(), 3, cursor)
    third, end = list_recent(catalog, Filter(), 3, cursor)
    assert [one.path for one in (*first, *second, *third)] == [f"{n}.md" for n in (8, 7, 6, 5, 4, 3, 1, 0)]
    assert end is None
    assert [one.path for one in list_recent(catalog, Filter(), 3)[0]] == ["2.md", "8.md", "7.md"]


def test_a_page_is_narrowed_in_every_way(catalog):
    write(
        catalog,
        document("a.md", tags=("Home/Garden", "x"), namespace="deep", source="cli"),
        document("b.md", tags=("home", "y"), collection="memory"),
        document("c.md", tags=("homely", "R & D"), created_at=2_000),
        document("d.md", tags=("Long" * 40,)),
    )

    def paths(**given):
        return [one.path for one in list_recent(catalog, Filter(**given), 9)[0]]

    assert sorted(paths(tags=("home",))) == ["a.md", "b.md"]
    assert paths(tags=("home", "x")) == ["a.md"]
    assert sorted(paths(any_tags=("y", "homely"))) == ["b.md", "c.md"]
    assert paths(tags=("r-&-d",)) == paths(tags=("R & D",)) == ["c.md"]
    assert paths(tags=("100%",)) == paths(tags=("home_",)) == []
    assert paths(tags=make_filter(tags=["long" * 40]).tags) == ["d.md"]
    assert paths(namespace="deep") == paths(source="cli") == ["a.md"]
    assert paths(collection="memory") == ["b.md"]
    assert paths(since=2_000) == ["c.md"]
    assert sorted(paths(until=2_000)) == ["a.md", "b.md", "d.md"]
    assert paths(workspace="' or 1=1 --") == []


@pytest.mark.parametrize("cursor", ["", "x", "é", "MTIz", "bm90LmEga2V5", "\ud800", "=" * 9])
def test_a_cursor_that_no_page_gave_is_refused(catalog, cursor):
    with pytest.raises(InvalidArgument, match="next_cursor"):
        list_recent(catalog, Filter(), 3, cursor)


def test_documents_of_one_time_follow_the_document_of_a_cursor(catalog):
    write(catalog, *(document(f"{n}.md", created_at=min(n, 6)) for n in range(9)))
    write(catalog, document("Captures/b/x.md", created_at=6, workspace="b"))
    last = catalog.record_at("7.md")

    def following(record, **where):
        cursor = encode_cursor(record, record.created_at)
        return [
            one.path
            for one in list_following(catalog, cursor, 4, **{"workspace": "default", "namespace": None} | where)
        ]

    assert following(last) == ["8.md", "5.md", "4.md", "3.md"]
    assert following(last, namespace="elsewhere") == []
    assert following(catalog.record_at("Captures/b/x.md")) == ["6.md", "7.md", "8.md", "5.md"]  # of another workspace
    write(catalog, removes=["7.md"])
    assert following(last) == ["6.md", "8.md", "5.md", "4.md"]
    with pytest.raises(InvalidArgument, match="next_before"):
        list_following(catalog, "soon", 4, workspace="default", namespace=None)


def test_a_cursor_tells_no_name(catalog):
    write(catalog, *(document(f"Captures/default/Secret name {n}.md") for n in range(3)))
    _, cursor = list_recent(catalog, Filter(), 1)
    assert cursor is not None
    assert "Secret" not in cursor
    assert "U2VjcmV0" not in cursor


@pytest.mark.parametrize("where", ["", "where workspace = 'a'"])
def test_a_page_costs_no_sorting(catalog, where):
    plan = catalog.rows(f"explain query plan select key from records {where} order by {CHANGED} desc, key limit 20")
    told = " ".join(str(row) for row in plan)
    assert "documents_changed" in told
    assert "TEMP B-TREE" not in told


@pytest.mark.parametrize("namespace", [None, "deep"])
def test_documents_after_a_cursor_cost_no_sorting(catalog, namespace):
    write(catalog, document("a.md"))
    cursor = encode_cursor(catalog.record_at("a.md"), 1_000)
    query, values = following_query(cursor, 9, workspace="default", namespace=namespace)
    plan = " ".join(str(row) for row in catalog.rows(f"explain query plan {query}", *values))
    assert "documents_recent_here (workspace=? AND created_at<?)" in plan
    assert "TEMP B-TREE" not in plan
