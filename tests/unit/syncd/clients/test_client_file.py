"""syncd/clients/client_file.py: private, atomic, behind no link, and undone when it fails."""

from __future__ import annotations

import os
import stat

import pytest

from index.errors import Conflict, InvalidArgument, MemexError, PermissionDenied
from syncd.clients import client_file
from syncd.clients.client_file import BACKUP, LARGEST, LAST_BACKUP, ClientFile, FileState, read_file, write_file


@pytest.fixture
def file(tmp_path):
    return ClientFile(tmp_path, ".tool/sub/settings.json")


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_missing_file_is_made_with_its_folders_for_the_owner_alone(file, tmp_path):
    state = read_file(file)
    assert (state.text, state.was) == ("", None)
    assert write_file(file, state, "new") is None
    assert (tmp_path / file.path).read_text() == "new"
    assert [mode(tmp_path / path) for path in (".tool", ".tool/sub", file.path)] == [0o700, 0o700, 0o600]


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o600), (0o755, 0o700), (0o400, 0o400)])
def test_a_file_keeps_what_its_owner_may_and_nobody_else_may_read_it(file, tmp_path, before, after):
    path = tmp_path / file.path
    path.parent.mkdir(parents=True)
    path.write_text("old é")
    path.chmod(before)
    backup = write_file(file, read_file(file), "new")
    assert backup == path.with_name(path.name + BACKUP)
    assert (path.read_text(), backup.read_text()) == ("new", "old é")
    assert (mode(path), mode(backup)) == (after, 0o600)
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, backup.name]


def test_the_first_backup_stays_and_the_last_one_follows_no_link(file, tmp_path):
    path, away = tmp_path / file.path, tmp_path / "away"
    away.write_text("mine")
    first, last = (path.with_name(path.name + ending) for ending in (BACKUP, LAST_BACKUP))
    write_file(file, read_file(file), "one")
    first.symlink_to(away)
    last.symlink_to(away)
    assert write_file(file, read_file(file), "two") == first
    assert write_file(file, read_file(file), "three") == last
    assert write_file(file, read_file(file), "four") == last
    assert [kept.read_text() for kept in (away, first, last, path)] == ["mine", "one", "three", "four"]
    assert (mode(first), mode(last)) == (0o600, 0o600)


@pytest.mark.parametrize("where", ["the file", "a folder", "a folder above", "inside"])
def test_no_link_is_followed(file, tmp_path, where):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text("{}")
    path = tmp_path / file.path
    if where == "a folder above":
        (elsewhere / "sub").mkdir()
        (elsewhere / "sub/settings.json").write_text("{}")
        path.parent.parent.symlink_to(elsewhere)
    elif where == "a folder":
        path.parent.parent.mkdir()
        path.parent.symlink_to(elsewhere)
    else:
        path.parent.mkdir(parents=True)
        (path.parent / "real.json").write_text("{}")
        path.symlink_to(elsewhere / "settings.json" if where == "the file" else "real.json")
    before = {name: name.read_bytes() for name in tmp_path.rglob("*") if name.is_file()}
    with pytest.raises(InvalidArgument, match="reached through a link"):
        read_file(file)
    with pytest.raises((InvalidArgument, Conflict)):
        write_file(file, client_file.FileState("", None), "secret")
    assert {name: name.read_bytes() for name in tmp_path.rglob("*") if name.is_file()} == before


def test_what_is_no_text_file_is_left_alone(file, tmp_path):
    path = tmp_path / file.path
    path.parent.mkdir(parents=True)
    path.mkdir()
    with pytest.raises(InvalidArgument):
        read_file(file)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(InvalidArgument):
        read_file(file)
    path.unlink()
    for data, word in ((b"\xff\xfe", "UTF-8"), (b" " * (LARGEST + 1), "MiB")):
        path.write_bytes(data)
        with pytest.raises(InvalidArgument, match=word):
            read_file(file)


def test_a_file_that_changed_meanwhile_is_not_overwritten(file, tmp_path):
    path = tmp_path / file.path
    absent = read_file(file)
    write_file(file, absent, "one")
    with pytest.raises(Conflict, match="did not write it: try again"):
        write_file(file, absent, "two")
    seen = read_file(file)
    path.write_text("a person's edit")
    with pytest.raises(Conflict):
        write_file(file, seen, "two")
    assert path.read_text() == "a person's edit"


def test_a_full_disk_leaves_the_old_file(file, tmp_path, monkeypatch):
    write_file(file, read_file(file), "one")
    state = read_file(file)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(client_file, "_CALLS", client_file.Calls(fsync=fail))
    with pytest.raises(Exception, match="No space left"):
        write_file(file, state, "two")
    assert (tmp_path / file.path).read_text() == "one"
    assert [entry.name for entry in (tmp_path / file.path).parent.iterdir() if BACKUP not in entry.name] == [
        "settings.json"
    ]


def test_a_folder_that_may_not_be_entered_is_said_so(file, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(client_file, "_CALLS", client_file.Calls(open=refuse))
    with pytest.raises(PermissionDenied, match="can't be read or written"):
        read_file(file)


def test_a_file_in_place_of_the_folder_is_noticed_before_anything_is_written(tmp_path):
    (tmp_path / ".cursor").write_text("no folder")
    with pytest.raises(MemexError):
        write_file(ClientFile(tmp_path, ".cursor/mcp.json"), FileState("", None), "{}")
