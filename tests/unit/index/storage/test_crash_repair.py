"""index/storage/crash_repair.py, and what the store does about files that a power cut tore."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from index.model import Filter
from index.storage import crash_repair
from index.storage.chunk_store import ChunkStore
from index.storage.crash_repair import StoreDamaged
from index.storage.lancedb_table import discard
from tests.support.chunk_rows import DIMENSIONS, row, unit


@pytest.fixture
def damaged(tmp_path):
    """The folder of a table with two commits, closed, to be damaged: document a, then document b."""
    store = ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)
    store.replace({"a": [row("a", 0, "first")]})
    store.replace({"b": [row("b", 0, "second")]})
    store.close()
    return tmp_path / "s" / "chunks.lance"


def reopened(table: Path) -> ChunkStore:
    return ChunkStore(str(table.parent), dimensions=DIMENSIONS)


def newest(folder: Path, pattern: str = "*") -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def manifests(table: Path) -> list[Path]:
    return sorted((table / "_versions").glob("*.manifest"))


def usable(store: ChunkStore, documents: str) -> None:
    """It holds these documents, and reads, writes and maintenance work."""
    assert sorted(store.row_counts()) == list(documents)
    near, words = store.search(vector=unit("first"), words="first second", filter=Filter(workspace="default"), pool=10)
    assert {match.doc_id for match in near} == {match.doc_id for match in words} == set(documents)
    store.replace({"z": [row("z", 0, "first again")]})
    store.maintain()
    assert sorted(store.row_counts()) == [*documents, "z"]
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 3, 200])
def test_a_torn_newest_manifest_gives_the_version_before(damaged, left):
    whole = manifests(damaged)[0].read_bytes()
    manifests(damaged)[0].write_bytes(whole[:left])
    store = reopened(damaged)
    assert store.may_lack_rows
    usable(store, "a")


def test_several_torn_manifests_are_no_worse(damaged):
    for manifest in manifests(damaged)[:2]:
        manifest.write_bytes(b"")
    store = reopened(damaged)
    assert store.may_lack_rows
    store.close()


def test_without_one_whole_manifest_it_must_be_made_anew(damaged):
    for manifest in manifests(damaged):
        manifest.write_bytes(b"")
    with pytest.raises(StoreDamaged):
        reopened(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("hint", [None, b"", b'{"version":999}', b'{"version":1}'])
def test_the_version_hint_is_not_relied_on(damaged, hint):
    path = damaged / "_versions" / "latest_version_hint.json"
    path.unlink()
    if hint is not None:
        path.write_bytes(hint)
    store = reopened(damaged)
    assert not store.may_lack_rows
    usable(store, "ab")


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 100])
def test_a_torn_newest_data_file_gives_the_version_before(damaged, left):
    path = newest(damaged / "data")
    path.write_bytes(path.read_bytes()[:left])
    store = reopened(damaged)
    assert store.may_lack_rows
    usable(store, "a")


def test_a_lost_newest_data_file_gives_the_version_before(damaged):
    newest(damaged / "data").unlink()
    store = reopened(damaged)
    assert store.may_lack_rows
    usable(store, "a")


def test_an_emptied_transaction_is_harmless(damaged):
    newest(damaged / "_transactions").write_bytes(b"")
    store = reopened(damaged)
    assert not store.may_lack_rows
    usable(store, "ab")


def test_without_any_data_it_must_be_made_anew_or_is_empty_and_says_so(damaged):
    for path in (damaged / "data").iterdir():
        path.unlink()
    store = reopened(damaged)  # the versions from before the first row are sound
    assert store.may_lack_rows and store.count() == 0
    store.close()


def test_data_lost_after_maintenance_means_made_anew(damaged):
    store = reopened(damaged)
    store.maintain()
    store.close()
    for path in (damaged / "data").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreDamaged):
        reopened(damaged)


@pytest.mark.parametrize("gone", ["_versions", "_versions/*"])
def test_a_table_without_versions_is_never_taken_for_an_empty_one(damaged, gone):
    shutil.rmtree(damaged / "_versions")
    if gone.endswith("*"):
        (damaged / "_versions").mkdir()
    with pytest.raises(StoreDamaged):
        reopened(damaged)
    with pytest.raises(StoreDamaged):
        reopened(damaged)
    discard(str(damaged.parent))
    store = reopened(damaged)
    assert store.count() == 0
    store.close()


def test_a_table_that_is_gone_is_made_anew_and_says_so(damaged):
    shutil.rmtree(damaged)
    store = reopened(damaged)
    assert store.count() == 0
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["empty", "cut", "gone"])
def test_torn_indices_are_made_again_without_losing_a_row(damaged, damage, monkeypatch):
    monkeypatch.setattr("index.storage.maintenance_policy.SCAN", 1)
    store = reopened(damaged)
    store.maintain()
    assert store._table.kind == "sq"
    store.close()
    for path in (damaged / "_indices").rglob("*"):
        if path.is_file() and damage == "gone":
            path.unlink()
        elif path.is_file():
            path.write_bytes(path.read_bytes()[: 0 if damage == "empty" else 40])
    store = reopened(damaged)
    assert not store.may_lack_rows
    usable(store, "ab")


def test_what_was_torn_while_it_was_first_made_is_made_anew(tmp_path):
    (tmp_path / "s" / "chunks.lance" / "data").mkdir(parents=True)
    (tmp_path / "s" / "chunks.lance" / "data" / "x.lance").write_bytes(b"half")
    with pytest.raises(StoreDamaged):
        ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)


def test_a_table_that_lacks_an_index_gets_it(damaged):
    store = reopened(damaged)
    store._run(store._table._writer.drop_index("text_idx"))
    store.close()
    store = reopened(damaged)
    assert "text_idx" in {index.name for index in store._run(store._table._writer.list_indices())}
    usable(store, "ab")


# Syncing


@pytest.fixture
def synced(monkeypatch):
    """The paths that are synced, as they are synced."""
    paths: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr("index.storage.crash_repair.os.fsync", fsync)
    return paths


def test_a_commit_syncs_all_that_it_wrote_and_nothing_twice(tmp_path, synced):
    store = ChunkStore(str(tmp_path / "s"), dimensions=DIMENSIONS)
    table = tmp_path / "s" / "chunks.lance"

    def written() -> set[str]:
        return {
            str(path) for top in crash_repair.ROWS for path in [table / top, *(table / top).rglob("*")] if path.exists()
        }

    store.replace({"a": [row()], "stays": [row("stays")]})
    assert written() | {str(table), str(table.parent), str(table.parent.parent)} <= set(synced)
    before = written()
    synced.clear()
    store.replace({"a": [row("a", 0, "changed")]})
    fresh = written() - before
    assert len(fresh) >= 5 and fresh <= set(synced)
    assert {str(table / top) for top in crash_repair.ROWS} | {str(table)} <= set(synced), (
        "names are durable too, a new folder's as well"
    )
    assert not (before - {str(table / top) for top in crash_repair.ROWS}) & set(synced), (
        "what is durable is not synced again"
    )
    synced.clear()
    store.maintain()
    assert {str(path) for path in (table / "_indices").rglob("*") if path.is_file()} <= set(synced)
    synced.clear()
    store.replace({"b": [row("b")]})
    assert len(synced) < 20
    store.close()


def test_what_vanishes_or_is_half_written_does_not_stop_it(tmp_path):
    table = tmp_path / "db" / "t.lance"
    (table / "data").mkdir(parents=True)
    (table / "data" / "x.lance").write_bytes(b"x")
    (table / "data" / ".tmpXYZ").write_bytes(b"x")
    (table / "_versions").mkdir()
    (table / "_versions" / "1.manifest#1").write_bytes(b"x")
    known = crash_repair.sync_files(table, ())
    assert known == {str(table / "data"), str(table / "data" / "x.lance"), str(table / "_versions")}
    shutil.rmtree(table / "data")
    assert crash_repair.sync_files(table, known) == {str(table / "_versions")}


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        pytest.param("/a/b", Path("/a/b"), id="a path"),
        pytest.param("a/b.lance", Path("a/b.lance"), id="a relative path"),
        pytest.param("file:///a/b", Path("/a/b"), id="a file uri"),
        pytest.param("s3://bucket/index", None, id="an object store"),
        pytest.param("db://name", None, id="a service"),
    ],
)
def test_only_a_local_uri_names_a_folder(uri, folder):
    assert crash_repair.local_folder(uri) == folder
