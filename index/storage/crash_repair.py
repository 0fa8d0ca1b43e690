"""Make LanceDB's files durable on a local disk, and repair a table after a crash or a power cut.

LanceDB commits by linking a manifest and never calls fsync; it never changes a file that it has written. Law, tested:
when `sync_files` returns, everything that the newest version needs is synced to disk, including names and folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from index.errors import Unavailable

ROWS = ("data", "_deletions", "_transactions", "_versions")  # folders with rows; `_indices` can be rebuilt from them
MAGIC = b"LANC"  # the last four bytes of every whole manifest


class StoreDamaged(Unavailable):
    """Reports that the stored chunks can't be read or used, and must be rebuilt from the notes."""


def local_folder(uri: str) -> Path | None:
    """Return the folder of `uri` on a local disk, or None for an object store."""
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://"))
    return None if "://" in uri else Path(uri)


def sync_files(table: Path, known: Collection[str], *, tops: Collection[str] = ROWS) -> set[str]:
    """Sync the files and folders under `table` that are not in `known`, and return all that are durable now.

    `known`: the paths that are durable already."""
    paths = {path for top in tops for path in _list_entries(str(table / top))}
    fresh = paths.difference(known)
    folders = {path.rpartition("/")[0] for path in fresh}
    for name in sorted(fresh) + sorted(folders - fresh):
        _sync(name)
    if not known:  # the first commit: the table's folder must survive too
        for path in (table, table.parent, table.parent.parent):
            _sync(path)
    return paths


def has_torn_manifest(table: Path) -> bool:
    """Return whether the newest manifest is truncated."""
    newest = min((table / "_versions").glob("*.manifest"), default=None)
    return newest is not None and not _is_intact(newest)


def drop_torn_manifests(table: Path) -> bool:
    """Remove truncated newest manifests, so that the version before them is the newest again."""
    versions = table / "_versions"
    torn = False
    for manifest in sorted(versions.glob("*.manifest")):  # named 2^64 - 1 - version, so the first is the newest
        if _is_intact(manifest):
            break
        manifest.unlink()
        torn = True
    if torn:
        (versions / "latest_version_hint.json").unlink(missing_ok=True)
        _sync(versions)
    return torn


def remove_table(table: Path) -> None:
    """Remove `table` with its whole content, durably, so that no part of it returns after a crash."""
    if table.exists():
        shutil.rmtree(table)
        _sync(table.parent)


def _is_intact(manifest: Path) -> bool:
    with manifest.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(MAGIC)))
        return file.read() == MAGIC


def _list_entries(top: str) -> Iterator[str]:
    """Yield `top` and everything below it, except files that are still being written."""
    try:
        entries = list(os.scandir(top))
    except FileNotFoundError:  # not created yet, or just removed by maintenance
        return
    yield top
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _list_entries(entry.path)
        elif ".tmp" not in entry.name and "#" not in entry.name:
            yield entry.path


def _sync(path: str | Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # removed since the listing: no version needs it
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
