"""A disk with neither hard links nor RENAME_EXCHANGE, such as exFAT on macOS and many FUSE and network mounts."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest

from index.errors import Conflict, Unavailable
from syncd.vault import openat
from syncd.vault.vault import Vault

OLD = b"old"
DIGEST = hashlib.sha256(OLD).hexdigest()


@pytest.fixture(params=[errno.EPERM, errno.ENOTSUP, errno.ENOSYS], ids=errno.errorcode.get)
def vault(request, tmp_path, monkeypatch):
    def refuse(*_arguments, **_named):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(openat, "_renameat2", refuse)
    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "note.md").write_bytes(OLD)
    (tmp_path / "note.md").chmod(0o640)
    return Vault(tmp_path)


def files(vault):
    return {path.name: path.read_bytes() for path in vault.root.iterdir()}


def save_before(monkeypatch, target, save):
    """Let the owner's editor save just before the rename onto `target`."""
    rename, saves = os.replace, [save]

    def replace(old, new, **named):
        if new == target and saves:
            saves.pop()()
        rename(old, new, **named)

    monkeypatch.setattr(os, "replace", replace)


def test_every_change_of_a_note_works(vault):
    vault.create("new.md", b"new")
    made = vault.replace("note.md", b"changed", digest=DIGEST)
    assert made == vault.stat("note.md")
    assert files(vault) == {"note.md": b"changed", "new.md": b"new"}
    assert (vault.root / "note.md").stat().st_mode & 0o777 == 0o640
    vault.remove("new.md", digest=hashlib.sha256(b"new").hexdigest())
    assert files(vault) == {"note.md": b"changed"}


def test_a_note_is_changed_where_neither_modes_nor_times_can_be_set(vault, monkeypatch):
    def refuse(*_arguments, **_named):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchmod", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    vault.replace("note.md", b"changed", digest=DIGEST)
    assert files(vault) == {"note.md": b"changed"}


def test_what_an_editor_writes_into_the_file_meanwhile_is_restored(vault, monkeypatch):
    path = vault.root / "note.md"
    mtime_ns = 1_000_000_000

    def save():
        path.write_bytes(b"the owner's edit")
        os.utime(path, ns=(mtime_ns, mtime_ns))

    save_before(monkeypatch, "note.md", save)
    with pytest.raises(Conflict, match="has changed"):
        vault.replace("note.md", b"changed", digest=DIGEST)
    assert files(vault) == {"note.md": b"the owner's edit"}
    status = path.stat()
    assert (status.st_mtime_ns, status.st_mode & 0o777) == (mtime_ns, 0o640)


def test_a_file_that_an_editor_renames_to_the_name_during_the_copy_is_kept(vault, monkeypatch):
    sync, saves = os.fsync, [b"the owner's edit"]

    def fsync(file):
        sync(file)
        if saves and os.fstat(file).st_size == len(OLD):  # the copy
            (vault.root / "theirs").write_bytes(saves.pop())
            (vault.root / "theirs").rename(vault.root / "note.md")

    monkeypatch.setattr(openat.os, "fsync", fsync)
    with pytest.raises(Conflict, match="has changed"):
        vault.replace("note.md", b"changed", digest=DIGEST)
    assert not saves
    assert files(vault) == {"note.md": b"the owner's edit"}


def test_a_file_that_changes_during_each_copy_is_left_alone(vault, monkeypatch):
    copy, count = openat._copy_to_spare, iter(range(1, 100))

    def keep_saving(folder, old):
        made = copy(folder, old)
        (vault.root / "note.md").write_bytes(b"x" * next(count))
        return made

    monkeypatch.setattr(openat, "_copy_to_spare", keep_saving)
    with pytest.raises(Unavailable, match="busy"):
        vault.replace("note.md", b"changed", digest=DIGEST)
    assert files(vault) == {"note.md": b"x" * openat._COPIES}


@pytest.mark.parametrize("nth", [1, 2])
def test_a_rename_that_fails_leaves_the_old_note_and_nothing_else(vault, monkeypatch, nth):
    rename, count = os.replace, iter(range(1, 100))

    def replace(*names, **named):
        if next(count) == nth:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(*names, **named)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Unavailable):
        vault.replace("note.md", b"changed", digest=DIGEST)
    assert files(vault) == {"note.md": OLD}


def test_a_full_disk_leaves_the_old_note_and_nothing_else(vault, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(openat.os, "write", full)
    with pytest.raises(Unavailable, match="disk is full"):
        vault.replace("note.md", b"changed", digest=DIGEST)
    assert files(vault) == {"note.md": OLD}
