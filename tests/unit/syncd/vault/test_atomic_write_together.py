"""Several files are replaced together, or none is: every call is failed and killed in turn, on the real disk."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import os
import stat
import threading

import pytest

from index.errors import Conflict, Unavailable
from syncd.vault.openat import Calls
from syncd.vault.vault import Vault
from tests.support.disk_faults import Fault, failing
from tests.support.killed_changes import CALLS, CHANGES, ONE, TOGETHER, TWO, small_process


def state(root):
    """Every file's bytes and every folder, by path."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def notes(root):
    return {path: data for path, data in state(root).items() if path in TOGETHER}


@pytest.fixture
def several(tmp_path):
    """A vault of three files in two folders, and how all of them are replaced at once."""

    count = itertools.count()

    def make(**given):
        root = tmp_path / f"{next(count)}"
        for path in TOGETHER:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(ONE)
        vault = Vault(root, **given)
        return root, lambda: CHANGES["replace several"](vault)

    return make


@pytest.mark.parametrize("calls", CALLS)
def test_of_several_files_all_are_replaced_or_none(several, calls):
    root, replace_all = several()
    assert [made.size for made in replace_all()] == [len(TWO)] * 3
    assert {*notes(root).values()} == {TWO}
    assert state(root).keys() == notes(root).keys() | {"a", "b"}
    for field in ("open", "write", "fchmod", "fsync", "exchange"):
        for nth in range(1, 100):
            fault = Fault(field, nth, failing(errno.ENOSPC), **CALLS[calls])
            root, replace_all = several(calls=fault.calls)
            before = state(root)
            try:
                replace_all()
            except Unavailable as error:
                assert "disk is full" in error.message
                assert state(root) == before, (field, nth)
            if not fault.hit:
                break
        assert nth > 3


@pytest.mark.parametrize(
    "moment", ["before", pytest.param("after", marks=pytest.mark.slow)]
)  # after a call is before the next
def test_of_several_files_each_is_whole_when_the_process_is_killed(several, moment):
    with small_process() as elsewhere:
        for field in ("open", "write", "fchmod", "fsync", "exchange", "unlink"):
            for nth in range(1, 100):
                root, _ = several()
                where = {"calls": "newest calls", "moment": moment, "field": field, "nth": nth}
                killed = elsewhere.change(root, "replace several", **where)
                assert notes(root).keys() == {*TOGETHER}
                assert {*notes(root).values()} <= {ONE, TWO}, (field, nth)
                if not killed:
                    break
            assert nth > 3


def test_several_files_are_synced_before_the_first_takes_its_place(several):
    log, real = [], Calls()

    def fsync(file):
        log.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        real.fsync(file)

    def exchange(*names):
        log.append("exchange")
        real.exchange(*names)

    _, replace_all = several(calls=dataclasses.replace(real, fsync=fsync, exchange=exchange))
    replace_all()
    assert log == ["file"] * 3 + ["exchange"] * 3 + ["folder"] * 2


def test_several_files_are_synced_at_a_time(several):
    """Each sync waits until the others have begun, so one after another would never end."""
    real, begun = Calls(), threading.Barrier(3, timeout=10)

    def fsync(file):
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            begun.wait()
        real.fsync(file)

    root, replace_all = several(calls=dataclasses.replace(real, fsync=fsync))
    replace_all()
    assert {*notes(root).values()} == {TWO}


@pytest.mark.parametrize("calls", ["newest calls", "no links"])
@pytest.mark.parametrize("way", ["in place", "by a new file"])
def test_an_edit_of_one_of_several_files_stays_when_they_are_put_back(several, way, calls):
    """The person saves the first file once it is replaced, and the second one just before."""
    real, told = dataclasses.replace(Calls(), **CALLS[calls]), []

    def exchange(folder, temp, name):
        if name == "second.md" and not told:
            told.append(name)
            for path in ("a/old.md", "a/second.md"):
                saved = root / path if way == "in place" else root / "a/.theirs"
                saved.write_bytes(f"{path} is theirs".encode())
                saved.rename(root / path)
        return real.exchange(folder, temp, name)

    root, replace_all = several(calls=dataclasses.replace(real, exchange=exchange))
    with pytest.raises(Conflict, match="has changed"):
        replace_all()
    theirs = {path: f"{path} is theirs".encode() for path in ("a/old.md", "a/second.md")}
    assert state(root) == {"a": None, "b": None, "b/third.md": ONE, **theirs}


@pytest.mark.parametrize("calls", ["newest calls", "no links"])
def test_an_edit_that_keeps_size_and_time_stays(several, calls):
    """FAT stores times in steps of two seconds, so two saves of a checkbox in a row have the same time."""
    real, mine = dataclasses.replace(Calls(), **CALLS[calls]), ONE.swapcase()

    def fsync(file):
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            was = (root / "b/third.md").stat()
            (root / "b/third.md").write_bytes(mine)
            os.utime(root / "b/third.md", ns=(was.st_atime_ns, was.st_mtime_ns))
        real.fsync(file)

    root, replace_all = several(calls=dataclasses.replace(real, fsync=fsync))
    with pytest.raises(Conflict, match="has changed"):
        replace_all()
    assert state(root) == {"a": None, "b": None, "a/old.md": ONE, "a/second.md": ONE, "b/third.md": mine}
