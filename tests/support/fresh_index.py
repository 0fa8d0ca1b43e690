"""New tables and catalogs by copying: making those of one index takes twenty milliseconds, which thousands of tests would pay."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

from index.catalog import sqlite_file
from index.storage.lancedb_table import Table

_create_table, _create_catalog = Table._create, sqlite_file._create
_folder = tempfile.TemporaryDirectory(prefix="fresh-index-")


def copy_what_is_new() -> None:
    """Let this process make one table of each size and one catalog as the product does, and copy them from then on."""
    Table._create, sqlite_file._create = _make_table, _make_catalog  # type: ignore[method-assign]


async def _make_table(table: Table) -> None:
    if table.folder is None or not _is_copied(table.folder, _kept_table(table)):
        await _create_table(table)
        if table.folder is not None:
            _keep(table.folder, _kept_table(table))


def _kept_table(table: Table) -> Path:
    return Path(_folder.name, f"{table.dimensions}.lance")


def _is_copied(folder: Path, kept: Path) -> bool:
    """Copy the table that is kept, if there is one."""
    if there := kept.exists():
        shutil.copytree(kept, folder)
    return there


def _keep(folder: Path, kept: Path) -> None:
    copy = Path(tempfile.mkdtemp(dir=_folder.name), "copy")
    shutil.copytree(folder, copy)
    with suppress(OSError):  # another thread has just kept one
        copy.rename(kept)


def _make_catalog(path: Path) -> sqlite3.Connection:
    kept = Path(_folder.name, "catalog.db")
    if not kept.exists():
        _create_catalog(kept).close()
    path.write_bytes(kept.read_bytes())
    return sqlite_file._connect(path)
