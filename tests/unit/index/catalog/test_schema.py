"""index/catalog/schema.py: catalogs of earlier versions are upgraded, on real SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from index.catalog.catalog import Catalog
from index.catalog.note_links import list_candidates, list_named_paths
from index.catalog.schema import VIEW
from index.document_ids import path_id
from index.model import Link, MemoRelation
from tests.support.catalog_rows import STAT, document, write
from tests.support.index_dump import dump_catalog

# What version 16 lacked.
NO_DERIVED = f"drop view records; {VIEW.replace(', summary_derived', '')}"
# What version 15 lacked, and what versions 14 and 12 lacked too.
NO_UNSETTLED = "drop table unsettled;"
NO_TAG_USES = f"{NO_UNSETTLED} drop trigger tag_added; drop trigger tag_removed; drop table tag_uses;"
NO_NAMES = (
    NO_TAG_USES
    + """drop index documents_file_name; drop index links_stem;
alter table documents drop column file_name; alter table links drop column stem;"""
)


# What version 10 lacked too.
NO_MARKS = (
    f"{NO_NAMES} drop view records; {VIEW.replace(', summary_derived, claimed, owner_marks', ', claimed')}"
    "alter table documents drop column owner_marks; alter table documents drop column summary_derived;"
    "drop index documents_superseded;"
)


def run(path: Path, script: str) -> None:
    """Change a closed catalog, for example into one of an earlier version."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def test_a_catalog_of_version_10_keeps_its_documents(tmp_path):
    path = tmp_path / "captures.db"
    made = Catalog(path)
    capture = document("Captures/default/A.md", scope="captures")
    note = document("Notes/B.md", scope="vault", workspace="")
    made.write(upserts=[(capture, STAT, 1, True), (note, STAT, 1, True)])
    made.close()
    run(path, f"{NO_MARKS} pragma user_version = 10;")
    upgraded = Catalog(path)
    assert not upgraded.fresh
    assert {entry.path: entry.digest for entry in upgraded.manifest().values()} == {capture.path: "", note.path: "d1"}
    upgraded.write(upserts=[(capture, STAT, 1, True)])
    assert upgraded.record_at(capture.path).title == capture.title
    assert not upgraded.superseded([path_id(capture.path)])
    upgraded.close()
    again = Catalog(path)
    assert not again.fresh and again.manifest()[capture.path].digest == "d1"
    again.close()


def test_a_catalog_that_lacks_only_an_index_stays_as_it_is(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    newer = document("B.md", superseded_by="A")
    made.write(upserts=[(document("A.md"), STAT, 1, True), (newer, STAT, 1, True)])
    before = made.manifest()
    made.close()
    run(path, f"{NO_NAMES} drop index documents_superseded; pragma user_version = 11;")
    upgraded = Catalog(path)
    assert not upgraded.fresh and upgraded.manifest() == before
    assert [bool(upgraded.superseded([path_id(name)])) for name in ("A.md", "B.md")] == [False, True]
    upgraded.close()


def test_an_upgrade_adds_the_names_by_which_links_are_found(tmp_path):
    made = Catalog(path := tmp_path / "notes.db")
    linking = document("Notes/GRÖSSE.md", links=(Link("wikilink", "Folder/Größe", "", None, 1),))
    made.write(upserts=[(linking, STAT, 1, True)])
    before = dump_catalog(made)
    made.close()
    run(path, f"{NO_NAMES} pragma user_version = 12;")
    upgraded = Catalog(path)
    assert not upgraded.fresh and dump_catalog(upgraded) == before
    assert list_candidates(upgraded, "Other/gro\u0308ße.md") == [(linking.path, "Folder/Größe")]
    assert list_named_paths(upgraded, ["grösse.md"]) == [linking.path]
    upgraded.close()


def test_an_upgrade_counts_the_tags(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    write(
        made, document("a.md", tags=("Work", "x")), document("b.md", tags=("work",)), document("c.md", tags=("work",))
    )
    before = dump_catalog(made)
    made.close()
    run(path, f"{NO_TAG_USES} pragma user_version = 14;")
    upgraded = Catalog(path)
    assert not upgraded.fresh and dump_catalog(upgraded) == before
    upgraded.write(removes=["b.md"])
    assert upgraded.vocabulary("default", 9)[0][1] == 2
    upgraded.close()


def test_an_upgrade_reads_notes_again_whose_tags_have_another_key(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    long = "long" * 40
    write(
        made,
        document("A.md", tags=("R & D", "x")),
        document("B.md", tags=("Größe/b-c",)),
        document("C.md", tags=(long, "y")),
    )
    made.close()
    run(path, f"update tags set key = '{long}' where tag = '{long}'; pragma user_version = 16;")
    made = Catalog(path)
    assert [entry.path for entry in made.manifest().values() if not entry.digest] == ["C.md"]
    made.write(upserts=[(document("C.md", tags=(long,)), STAT, 1, True)])
    made.close()
    run(path, f"update tags set key = 'r & d' where tag = 'R & D'; {NO_TAG_USES} pragma user_version = 13;")
    upgraded = Catalog(path)
    assert [entry.path for entry in upgraded.manifest().values() if not entry.digest] == ["A.md"]
    upgraded.close()


def test_an_upgrade_shortens_the_stems_of_links_with_an_ending_in_capitals(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    relation = MemoRelation(None, "Folder/B.MD", "relates_to", 1.0, None, 1, None, None)
    linking = document("A.md", links=(Link("markdown", "Folder/B.MD", "", None, 1),), memo_relations=(relation,))
    made.write(upserts=[(linking, STAT, 1, True)])
    made.close()
    run(path, "update links set stem = 'b.md'; update memo_relations set stem = 'b.md'; pragma user_version = 16;")
    upgraded = Catalog(path)
    assert not upgraded.fresh and list_candidates(upgraded, "Folder/B.MD") == [("A.md", "Folder/B.MD")]
    assert upgraded.rows("select stem from memo_relations") == [("b",)]
    upgraded.close()


@pytest.mark.parametrize("field", ["namespace", "source"])
def test_an_upgrade_reads_notes_again_whose_namespace_or_source_has_another_unicode_form(tmp_path, field):
    made = Catalog(path := tmp_path / "captures.db")
    write(made, document("A.md", **{field: "Cafe\u0301"}), document("B.md", **{field: "Caf\u00e9"}), document("C.md"))
    made.close()
    run(path, "pragma user_version = 16;")
    upgraded = Catalog(path)
    assert not upgraded.fresh
    assert [entry.path for entry in upgraded.manifest().values() if not entry.digest] == ["A.md"]
    upgraded.close()


def test_an_upgrade_reads_captures_again_whose_summary_is_derived(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    derived = document("B.md", summary="first sentence", summary_derived=True)
    write(made, document("A.md", summary="stated"), derived)
    made.close()
    run(path, f"{NO_DERIVED} pragma user_version = 16;")
    upgraded = Catalog(path)
    assert not upgraded.fresh
    assert [entry.path for entry in upgraded.manifest().values() if not entry.digest] == ["B.md"]
    assert [record.summary_derived for record in upgraded.records_at(["A.md", "B.md"])] == [False, True]
    upgraded.close()


def test_a_catalog_of_version_15_stays_as_it_is(tmp_path):
    made = Catalog(path := tmp_path / "captures.db")
    write(made, document("A.md"), document("B.md"))
    before = dump_catalog(made)
    made.close()
    run(path, f"{NO_UNSETTLED} pragma user_version = 15;")
    upgraded = Catalog(path)
    assert not upgraded.fresh and dump_catalog(upgraded) == before and upgraded.take_unsettled() == set()
    upgraded.mark_unsettled([path_id("A.md")])
    upgraded.close()
    again = Catalog(path)
    assert again.take_unsettled() == {path_id("A.md")} and again.take_unsettled() == set()
    assert [entry.path for entry in again.manifest().values() if not entry.digest] == ["A.md"]
    again.close()
