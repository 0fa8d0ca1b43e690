"""index/catalog/catalog.py, on real SQLite files."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import threading
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.catalog.catalog import Catalog
from index.catalog.recent_documents import changed_at
from index.catalog.sqlite_file import READER_CACHE, Database
from index.document_ids import choose_owner, path_id
from index.errors import InvalidArgument, MemexError, Unavailable
from index.graph.vertex import vertex_of
from index.model import Defect, Document, Entry, Link, Node, Observation, Record, Stat, Statement
from tests.support.catalog_rows import STAT, document, write
from tests.support.example_counts import examples
from tests.support.index_dump import dump_catalog

TIMES = st.integers(-3, 3)


@pytest.fixture
def catalog(tmp_path):
    opened = Catalog(tmp_path / "captures.db")
    yield opened
    opened.close()


def test_a_new_catalog_is_empty_and_answers(catalog):
    assert catalog.fresh and not catalog.is_complete
    assert (catalog.generation, catalog.counts()) == (0, (0, 0))
    assert catalog.manifest() == {} and catalog.get("x") is None and catalog.record_at("x") is None
    assert catalog.recent(workspace=None, limit=5) == []
    assert catalog.records([]) == {}


def test_a_connection_of_a_reader_keeps_few_pages(tmp_path):
    path = tmp_path / "captures.db"
    with closing(Database(path)) as database:
        assert database.rows("pragma cache_size") == [(-READER_CACHE,)]


def test_everything_that_a_record_has_comes_back(catalog):
    given = document(
        claimed_id="my-id", type="entity", title="Título 🍀", tags=("Area/Home", "日本"), aliases=("Other",), summary="s", source="claude",
        metadata={"project": "alpha", "n": [1, 2.5, None, True, {"k": "\udc80"}]}, updated_at=2_000, version=3,
        defects=(Defect("bad-tag", "a tag that is none"),), writable=False, namespace="x/y", collection="memory",
        links=(Link("wikilink", "B", "#h", "shown", 3), Link("embed", "C.png", "", None, -1)),
    )  # fmt: skip
    catalog.write(upserts=[(given, STAT, 7, False)])
    record = catalog.get("my-id")
    assert record is not None
    for field in fields(Record):
        expected = {"id": "my-id", "chunks": 7}.get(field.name, getattr(given, field.name, None))
        assert getattr(record, field.name) == expected, field.name
    assert record == catalog.record_at(given.path) == catalog.records([path_id(given.path)])[path_id(given.path)]
    assert catalog.manifest() == {given.path: Entry(given.path, "my-id", "d1", STAT, embedded=False)}
    assert dump_catalog(catalog)["links"] == [
        (given.path, 0, "wikilink", "B", "#h", "shown", 3, "b"),
        (given.path, 1, "embed", "C.png", "", None, -1, "c.png"),
    ]


def test_a_document_is_replaced_and_removed_as_a_whole(catalog):
    write(catalog, document("a.md", tags=("x",), links=(Link("embed", "b", "", None, 1),)), document("b.md"))
    write(catalog, document("a.md", title="New"))
    assert catalog.record_at("a.md").title == "New"
    assert catalog.vocabulary("default", 10) == [] and dump_catalog(catalog)["links"] == []
    write(catalog, removes=["a.md", "unknown.md"])
    assert list(catalog.manifest()) == ["b.md"]


def test_a_move_and_a_swap_are_one_write(catalog):
    write(catalog, document("a.md", claimed_id="one"), document("b.md", claimed_id="two"))
    write(catalog, document("a.md", claimed_id="two"), document("b.md", claimed_id="one"))
    assert (catalog.get("one").path, catalog.get("two").path) == ("b.md", "a.md")
    write(catalog, document("c/b.md", claimed_id="one"), removes=["b.md"])
    assert catalog.get("one").path == "c/b.md" and catalog.counts()[0] == 2


def test_a_write_that_fails_changes_nothing(catalog):
    write(catalog, document("a.md"))
    dump, generation = dump_catalog(catalog), catalog.generation
    with pytest.raises(InvalidArgument, match="half a character"):
        write(catalog, document("b.md"), document("c.md", title="\ud800"), removes=["a.md"])
    with pytest.raises(Unavailable):
        write(catalog, document("b.md"), document("b.md"))
    assert (dump_catalog(catalog), catalog.generation) == (dump, generation)


def test_the_generation_grows_with_each_change_of_the_documents(catalog):
    assert write(catalog, document("a.md"), document("b.md")) == 1
    assert write(catalog, removes=["b.md"]) == 2
    assert write(catalog) == catalog.generation == 2
    catalog.touch({"a.md": Stat(1, 2, 3)})
    catalog.replace_skipped({"c.md": "too large"})
    assert catalog.generation == 2


def test_a_touched_file_keeps_its_digest(catalog):
    write(catalog, document("a.md"), document("b.md"))
    new = Stat(size=10, mtime_ns=2**62, ino=2**64 - 1)
    catalog.touch({"a.md": new, "unknown.md": new})
    assert catalog.manifest()["a.md"] == Entry("a.md", path_id("a.md"), "d1", new, embedded=True)
    assert catalog.manifest()["b.md"].stat == STAT


def test_what_is_forgotten_looks_changed(catalog):
    write(catalog, document("a.md", claimed_id="one"))
    catalog.forget()
    entry = catalog.manifest()["a.md"]
    assert entry.digest == "" and entry.stat.mtime_ns == -1
    assert catalog.get("one") is not None


# Identity


def test_the_shortest_path_owns_an_id_and_the_others_answer_to_their_own(catalog):
    write(catalog, document("A copy.md", claimed_id="one"))
    assert catalog.get("one").path == "A copy.md" and catalog.get(path_id("A copy.md")) is None
    write(catalog, document("A.md", claimed_id="one"))
    assert catalog.get("one").path == "A.md"
    assert catalog.get(path_id("A copy.md")).id == path_id("A copy.md")
    write(catalog, removes=["A.md"])
    assert catalog.get("one").path == "A copy.md"


@examples(40)
@given(
    claims=st.dictionaries(st.sampled_from([f"{n}{x}.md" for n in ("a", "b", "ab", "é", "日本", "😀") for x in ("", "1", "copy")]),
                           st.sampled_from([None, "one", "two"]), min_size=1),
    seed=st.integers(),
)  # fmt: skip
def test_what_it_holds_does_not_depend_on_the_order_of_writing(tmp_path_factory, claims, seed):
    folder = tmp_path_factory.mktemp("catalog")
    documents = [document(path, claimed_id=claimed, tags=(path[0], "T", "t")) for path, claimed in claims.items()]
    first = Catalog(folder / "1.db")
    write(first, *documents)
    second, order = Catalog(folder / "2.db"), random.Random(seed)
    for one in order.sample(documents, len(documents)):
        write(
            second,
            replace(one, claimed_id=order.choice([None, "one", "two"]), title="before"),
            document("gone.md", claimed_id="one"),
        )
        write(second, one, removes=["gone.md"])
    assert dump_catalog(first) == dump_catalog(second)
    assert first.vocabulary("default", 9) == second.vocabulary("default", 9)
    for claimed in {claimed for claimed in claims.values() if claimed}:
        mine = choose_owner(path for path, other in claims.items() if other == claimed)
        assert second.get(claimed).path == mine
    ids = [record.id for record in second.recent(workspace=None, limit=100)]
    assert len(set(ids)) == len(ids) == len(claims)
    assert all(second.get(id).id == id for id in ids)
    first.close()
    second.close()


# Asking


def test_a_capture_is_found_by_its_content_in_its_workspace(catalog):
    write(
        catalog,
        document("b.md", content_hash="h", created_at=5),
        document("a.md", content_hash="h", created_at=9),
        document("c.md", workspace="w", content_hash="h"),
    )
    assert catalog.find_capture("default", "h").path == "b.md"
    assert catalog.find_capture("w", "h").path == "c.md"
    assert catalog.find_capture("other", "h") is None


def test_recent_is_by_creation_newest_first(catalog):
    write(
        catalog,
        *(
            document(
                f"{n}.md",
                created_at=n // 2,
                workspace="ab"[n % 2],
                namespace="xy"[n // 5],
                type="note" if n else "file",
            )
            for n in range(10)
        ),
    )
    assert [record.path for record in catalog.recent(workspace=None, limit=3)] == ["8.md", "9.md", "6.md"]
    assert [record.path for record in catalog.recent(workspace="a", limit=9, before=3)] == ["4.md", "2.md", "0.md"]
    assert [record.path for record in catalog.recent(workspace="a", limit=9, namespace="y")] == ["8.md", "6.md"]
    assert catalog.recent(workspace="' or 1=1 --", limit=9) == [] == catalog.recent(workspace="\ud800", limit=9)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("select * from records where workspace = 'w' order by created_at desc, path limit 5", "documents_recent_here"),
        (
            "select * from records where workspace = 'w' and created_at < 9 order by created_at desc, path limit 5",
            "documents_recent_here",
        ),
        ("select * from records order by coalesce(updated_at, created_at) desc, key limit 5", "documents_changed"),
        (
            "select * from records where workspace = 'w' and content_hash = 'h' order by created_at, path limit 1",
            "documents_content",
        ),
        ("select * from records where claimed = 'c' order by length(path), path limit 1", "documents_claimed"),
        ("select count(*), coalesce(sum(chunks), 0) from documents", "documents_chunks"),
        ("select key, tag, count(*) from tags where workspace = 'w' group by key, tag", "PRIMARY KEY"),
    ],
)
def test_what_is_asked_often_is_answered_from_an_index(catalog, query, index):
    plan = [step[3] for step in catalog.rows(f"explain query plan {query}")]
    assert any(index in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


def test_whether_all_observations_are_embedded_is_answered_without_reading_them(catalog, monkeypatch):
    def entity(path: str) -> Document:
        facts = (Observation(1, "one"), Observation(2, "two"))
        return document(path, type="entity", node=Node("N", "person", facts, (), 2, False, None, None))

    for under, done in [(under, done) for under in ("a", "b", "c") for done in (2, 1)]:
        facets = dict.fromkeys(("x.md", "y.md"), ("b", 2, 10)) | {"z.md": (under, done, 10)}
        catalog.write(upserts=[(entity(path), STAT, 2, True) for path in facets], facets=facets)
        assert catalog.is_embedded("default", "b") is ((under, done) == ("b", 2))
    assert catalog.is_embedded("other", "b")
    asked, rows = [], catalog.rows
    monkeypatch.setattr(catalog, "rows", lambda query, *values: asked.append((query, values)) or [])
    catalog.is_embedded("default", "b")
    [(query, values)] = asked
    plan = [step[3] for step in rows(f"explain query plan {query}", *values) if step[3].startswith(("SEARCH", "SCAN"))]
    assert [step.partition(" INDEX ")[2] for step in plan] == [
        "facets_here (workspace=? AND perspectives<?)",
        "facets_here (workspace=? AND perspectives>?)",
        "facets_lacking (workspace=?)",
    ]


def test_the_vocabulary_is_a_workspace_s_own_most_used_first(catalog):
    write(
        catalog,
        document("a.md", tags=("Work", "home")), document("b.md", tags=("work", "Home")), document("c.md", tags=("work",)),
        document("d.md", workspace="other", tags=("secret",)),
    )  # fmt: skip
    assert catalog.vocabulary("default", 9) == [("work", 3), ("Home", 2)]
    assert catalog.vocabulary("default", 1) == [("work", 3)]
    assert catalog.vocabulary("default", 9, "default") == [("work", 3), ("Home", 2)]
    write(catalog, document("b.md", tags=("Work",), namespace="n"))
    catalog.write(removes=["c.md", "d.md"])
    assert catalog.vocabulary("default", 9) == [("Work", 2), ("home", 1)]
    assert catalog.vocabulary("default", 9, "n") == [("Work", 1)]
    assert catalog.vocabulary("other", 9) == []


def test_defects_are_listed_where_they_belong(catalog):
    bad, worse = Defect("bad-frontmatter", "line 2"), Defect("bad-id", "")
    write(
        catalog,
        document("b.md", defects=(worse, bad)),
        document("a.md", workspace="w", defects=(bad,)),
        document("c.md"),
    )
    catalog.replace_skipped(
        {"big.md": "too large", "w/fifo": "not a file"},
        workspace=lambda path: path.partition("/")[0] if "/" in path else "",
    )
    skipped = ("big.md", Defect("not-indexed", "too large")), ("w/fifo", Defect("not-indexed", "not a file"))
    assert catalog.defects() == [("a.md", bad), ("b.md", bad), ("b.md", worse), *skipped]
    assert catalog.defects("w") == [("a.md", bad), skipped[1]]
    assert catalog.defects("default") == [("b.md", bad), ("b.md", worse)]
    assert catalog.skipped_files() == {"big.md": "too large", "w/fifo": "not a file"}
    catalog.replace_skipped({})
    assert catalog.skipped_files() == {}


def test_chunks_are_counted(catalog):
    catalog.write(upserts=[(document("a.md"), STAT, 3, True), (document("b.md"), STAT, 0, True)])
    assert catalog.counts() == (2, 3)
    assert catalog.chunk_counts() == {path_id("a.md"): 3, path_id("b.md"): 0}


def test_thousands_are_asked_for_at_once(catalog):
    write(catalog, *(document(f"{n}.md", claimed_id=f"id-{n}") for n in range(1_200)))
    assert len(catalog.records([path_id(f"{n}.md") for n in range(2_000)])) == 1_200


@examples(40)
@given(
    st.lists(
        st.tuples(TIMES, st.none() | TIMES, st.sampled_from("ab"), st.none() | st.sampled_from("xyz"), st.booleans())
    ),
    st.integers(1, 4),
    st.sets(st.integers(0, 9)),
)
def test_the_newest_documents_are_those_of_a_list_of_all(rows, limit, chosen):
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder, "captures.db"))
        write(
            catalog,
            *(
                document(
                    f"{n}.md",
                    created_at=made,
                    updated_at=changed,
                    workspace=where,
                    claimed_id=claimed,
                    type="file" if is_file else "note",
                )
                for n, (made, changed, where, claimed, is_file) in enumerate(rows)
            ),
        )
        records = catalog.recent(workspace="a", limit=99)
        records.sort(key=lambda record: (-changed_at(record), record.id))
        assert catalog.newest_paths("a", limit) == [record.path for record in records[:limit]]
        ids = {record.id for n, record in enumerate(records) if n in chosen} | {"of no document"}
        among = [record.path for record in records if record.id in ids]
        assert catalog.newest_paths("a", limit, ids) == among[:limit]
        notes = [record.path for record in records if record.type == "note"]
        assert catalog.newest_paths("a", limit, without="file") == notes[:limit]
        noted = [path for path in notes if path in among]
        assert catalog.newest_paths("a", limit, ids, without="file") == noted[:limit]
        catalog.close()


# Outliving


def test_it_is_all_there_when_it_is_opened_again(tmp_path):
    catalog = Catalog(tmp_path / "c.db")
    write(catalog, document(claimed_id="one"))
    catalog.is_complete = True
    dump = dump_catalog(catalog)
    catalog.close()
    again = Catalog(tmp_path / "c.db")
    assert not again.fresh and dump_catalog(again) == dump
    assert (again.generation, again.is_complete) == (1, True)
    again.is_complete = False
    assert not again.is_complete
    again.close()


def test_a_catalog_with_tags_and_links_is_whole_when_it_is_opened_again(tmp_path):
    catalog = Catalog(tmp_path / "captures.db")
    links = (Link("wikilink", "B", "", None, 3), Link("embed", "C.png", "", None, 4))
    write(catalog, document(tags=("heron", "a/b"), links=links), document("Captures/default/B.md", tags=("heron",)))
    catalog.replace_skipped({"Big.md": "larger than 5000000 bytes"})
    catalog.close()
    again = Catalog(tmp_path / "captures.db")
    assert not again.fresh and len(again.manifest()) == 2
    again.close()


def _old(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 999")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b"not a database at all" * 100), id="another file"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5000]), id="cut"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:8192] + b"\xff" * 40_000), id="overwritten"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(_old, id="another version"),
    ],
)
def test_a_damaged_or_outdated_catalog_is_made_anew(tmp_path, damage):
    path = tmp_path / "c.db"
    catalog = Catalog(path)
    write(catalog, *(document(f"{n}.md", tags=("t",)) for n in range(100)))
    catalog.close()
    damage(path)
    again = Catalog(path)
    assert again.fresh and again.manifest() == {} and again.generation == 0
    write(again, document())
    again.close()
    last = Catalog(path)
    assert not last.fresh and len(last.manifest()) == 1
    last.close()


def test_a_catalog_that_is_in_use_is_not_taken_for_a_damaged_one(tmp_path):
    path = tmp_path / "c.db"
    catalog = Catalog(path)
    write(catalog, document())
    with pytest.raises(Unavailable):
        Catalog(tmp_path / "no" / "such" / "folder.db")
    other = Catalog(path)
    assert not other.fresh and len(other.manifest()) == 1
    other.close()
    catalog.close()


def test_readers_never_wait_for_a_writer(catalog):
    write(catalog, document("a.md"))
    with catalog.transaction() as writer:
        writer.execute("delete from documents")
        seen = []
        reader = threading.Thread(target=lambda: seen.append(list(catalog.manifest())))
        reader.start()
        reader.join(60)
        assert seen == [["a.md"]], "and they see what was before"
    assert catalog.manifest() == {}


def test_many_threads_may_read_and_write(catalog):
    failures = []

    def work(k):
        try:
            for n in range(20):
                write(catalog, document(f"{k}/{n}.md", claimed_id=f"{k}-{n}"))
                assert catalog.get(f"{k}-{n}").path == f"{k}/{n}.md"
                assert len(catalog.recent(workspace="default", limit=5)) >= 1
        except (MemexError, AssertionError, AttributeError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and catalog.counts()[0] == 120 and catalog.generation == 120
    assert len(catalog._idle) <= 4


def test_a_node_comes_back_whole_and_goes_with_its_note(catalog):
    path = "Captures/default/Entities/Ada.md"
    node = Node(
        name="Ada",
        entity_type="person",
        observations=(Observation(2, "b\n  c"), Observation(10, "a")),
        relations=(Statement("knows", "Bob"), Statement("knows", "A/b")),
        last_ordinal=12,
        unsettled=True,
        summary_updated_at=5,
        observed_at=None,
    )
    made = document(path, type="entity", node=node, tags=("t",), aliases=("x",), summary="s", updated_at=7, version=3)
    write(catalog, made)
    [(workspace, found)] = catalog.vertices()
    assert (workspace, found) == ("default", vertex_of(made))
    assert catalog.observations([path, "none"]) == {path: node.observations, "none": ()}
    write(catalog, document(path, type="entity"))
    assert list(catalog.vertices()) == []
    assert not any(dump_catalog(catalog)[table] for table in ("nodes", "observations", "relations"))


def test_only_documents_whose_collection_depends_on_those_known_are_to_be_read_again(catalog, tmp_path):
    wrong = [
        Defect("two-collections", "…"),
        Defect("unknown-collection", "…"),
        Defect("bad-tag", 'not ["two-collections", …'),
    ]
    notes = [document(f"Captures/w/{n}.md", defects=(defect,), claimed_id=f"n{n}") for n, defect in enumerate(wrong)]
    others = [
        document("Captures/w/a.md"),
        document("Captures/w/b.md", collection="memory"),
        document("Captures/w/c.md", collection="recipes"),
    ]
    write(catalog, *notes, *others)
    assert catalog.contested_paths() == {"Captures/w/0.md"}
    known = ("documents", "memory", "workspace", "recipes")
    assert sorted(catalog.forget_refiled(known)) == ["Captures/w/0.md", "Captures/w/1.md", "Captures/w/c.md"]
    assert catalog.forget_refiled(known) == []
    catalog.close()
    again = Catalog(tmp_path / "captures.db")
    assert sorted(path for path, entry in again.manifest().items() if not entry.digest) == [
        "Captures/w/0.md",
        "Captures/w/1.md",
        "Captures/w/c.md",
    ]
    assert again.forget_refiled(known) == []
    assert len(again.forget_refiled(known[:3])) == 3
    again.close()
