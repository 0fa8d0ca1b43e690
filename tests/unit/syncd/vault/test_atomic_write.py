"""All or nothing: every call of every change is failed and killed in turn, on the real disk."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import resource
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from index.errors import Conflict, NotFound, Unavailable
from syncd.vault import atomic_write
from syncd.vault.openat import Calls
from syncd.vault.path_rules import is_temporary
from syncd.vault.vault import Vault
from tests.support.disk_faults import Fault, failing, half
from tests.support.killed_changes import CALLS, CHANGES, ONE, TWO, put_file, small_process
from tests.support.paths import ROOT

SINGLE = [*CHANGES][:8]
CHANGED = [*CHANGES][:6]
# What stands after a call stands before the next one too.
MOMENTS = ["before", pytest.param("after", marks=pytest.mark.slow)]
FIELDS = [field.name for field in dataclasses.fields(Calls)]


def state(root):
    """Every file's bytes and every folder, by path."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def notes(root):
    return {
        path: data
        for path, data in state(root).items()
        if data is not None and not is_temporary(path.rpartition("/")[2])
    }


@pytest.fixture
def fresh(tmp_path):
    count = 0

    def make():
        nonlocal count
        count += 1
        root = tmp_path / f"{count}"
        (root / "a").mkdir(parents=True)
        (root / "b").mkdir()
        (root / "a/old.md").write_bytes(ONE)
        return root

    return make


def short(real, file, data):
    """A disk that takes a little at a time, which is no failure."""
    return real(file, data[:7])


@pytest.mark.parametrize(
    ("calls", "code"),
    [*((calls, errno.ENOSPC) for calls in CALLS), *(("newest calls", code) for code in (errno.EIO, errno.EACCES))],
    ids=lambda value: errno.errorcode.get(value, value),
)
@pytest.mark.parametrize("change", SINGLE)
def test_a_failed_call_leaves_the_old_state_or_the_new_one(change, code, calls, fresh):
    good = fresh()
    before = state(good)
    CHANGES[change](Vault(good))
    after = state(good)
    points = 0
    for field in FIELDS:
        for nth in range(1, 100):
            root = fresh()
            fault = Fault(field, nth, failing(code), **CALLS[calls])
            vault = Vault(root, calls=fault.calls)
            try:
                CHANGES[change](vault)
                told = None
            except Unavailable as error:
                told = error
            vault.close()
            if not fault.hit:
                break
            points += 1
            swept = Vault(root).remove_leftovers() if field in ("unlink", "exchange") else []
            left = state(root)
            assert not any(is_temporary(path.rpartition("/")[2]) for path in left), (field, nth, swept)
            if told is None:
                assert left == after, (field, nth)
            elif field == "rmdir" and change == "create in new folders":
                assert notes(root) == {"a/old.md": ONE}
            else:
                assert left == (after if change == "remove a folder" and field == "fsync" else before), (
                    field,
                    nth,
                    told,
                )
                assert {errno.ENOSPC: "disk is full", errno.EIO: "error", errno.EACCES: "permission"}[
                    code
                ] in told.message
                assert str(root) not in told.message
        else:
            pytest.fail("never stops")
    assert points >= 3


@pytest.mark.parametrize("change", CHANGED[:3])
def test_half_a_write_leaves_nothing(change, fresh):
    root = fresh()
    before = state(root)
    with pytest.raises(Unavailable, match="disk is full"):
        CHANGES[change](Vault(root, calls=Fault("write", 1, half).calls))
    assert state(root) == before


def test_a_short_write_is_gone_on_with(fresh):
    root = fresh()
    Vault(root, calls=Fault("write", 1, short).calls).create("a/new.md", TWO)
    assert (root / "a/new.md").read_bytes() == TWO


def test_a_disk_that_takes_nothing_is_not_waited_for(fresh):
    root = fresh()
    with pytest.raises(Unavailable):
        Vault(root, calls=Fault("write", 1, lambda *_: 0).calls).create("a/new.md", TWO)
    assert notes(root) == {"a/old.md": ONE}


@pytest.fixture(scope="module")
def elsewhere():
    with small_process() as process:
        yield process


@pytest.mark.parametrize("calls", ["newest calls", "no links"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", CHANGED)
def test_a_kill_at_any_call_leaves_the_old_state_or_the_new_one(change, moment, calls, fresh, elsewhere):
    good = fresh()
    before = notes(good)
    CHANGES[change](Vault(good))
    after = notes(good)
    for field in FIELDS:
        for nth in range(1, 100):
            root = fresh()
            killed = elsewhere.change(root, change, calls=calls, moment=moment, field=field, nth=nth)
            assert notes(root) in (before, after), (field, nth)
            swept = Vault(root).remove_leftovers()
            assert all(is_temporary(path.rpartition("/")[2]) for path in swept)
            assert notes(root) == {path: data for path, data in state(root).items() if data is not None}
            if not killed:
                assert notes(root) == after
                assert swept == []
                break


@pytest.mark.parametrize("calls", ["newest calls", "no links"])
def test_an_edit_that_comes_between_is_put_back(calls, fresh):
    """The person saves after the digest was compared and before the names are exchanged."""
    root = fresh()

    def save_first(real, *arguments, **named):
        (root / "a/.theirs").write_bytes(b"the person's edit")
        (root / "a/.theirs").rename(root / "a/old.md")
        return real(*arguments, **named)

    with pytest.raises(Conflict, match="has changed"):
        CHANGES["replace"](Vault(root, calls=Fault("exchange", 1, save_first, **CALLS[calls]).calls))
    assert state(root) == {"a": None, "b": None, "a/old.md": b"the person's edit"}
    (root / "a/old.md").write_bytes(ONE)
    with pytest.raises(Conflict, match="has changed"):
        CHANGES["remove"](Vault(root, calls=Fault("rename", 1, save_first, **CALLS[calls]).calls))
    assert state(root) == {"a": None, "b": None, "a/old.md": b"the person's edit"}


def test_a_link_to_the_moved_file_is_put_back(fresh):
    """The person moves the file and leaves a link in its place, after the digest was compared."""
    root = fresh()

    def move_first(real, *arguments, **named):
        (root / "a/old.md").rename(root / "b/moved.md")
        (root / "a/old.md").symlink_to("../b/moved.md")
        return real(*arguments, **named)

    for change, field in (("replace", "exchange"), ("remove", "rename")):
        with pytest.raises(Conflict, match="has changed"):
            CHANGES[change](Vault(root, calls=Fault(field, 1, move_first).calls))
        assert (root / "a/old.md").is_symlink()
        assert state(root) == {"a": None, "b": None, "a/old.md": ONE, "b/moved.md": ONE}
        (root / "b/moved.md").rename(root / "a/old.md")


def test_a_name_taken_in_the_meantime_is_left_alone(fresh):
    root = fresh()

    def take_first(real, *arguments, **named):
        (root / "a/new.md").write_bytes(b"theirs")
        return real(*arguments, **named)

    with pytest.raises(Conflict, match="exists"):
        CHANGES["create"](Vault(root, calls=Fault("rename", 1, take_first).calls))
    assert state(root) == {"a": None, "b": None, "a/old.md": ONE, "a/new.md": b"theirs"}


def test_a_folder_that_somebody_used_is_not_unmade(fresh):
    root = fresh()

    def use_and_fail(_real, *_arguments):
        (root / "x/theirs.md").write_bytes(b"theirs")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(Unavailable):
        CHANGES["create in new folders"](Vault(root, calls=Fault("rename", 1, use_and_fail).calls))
    assert notes(root) == {"a/old.md": ONE, "x/theirs.md": b"theirs"}
    assert not (root / "x/y").exists()


def test_everything_is_synced_before_it_is_acknowledged(fresh):
    """The order of calls is what makes a power cut harmless: data, then name, then folder; new folders on the way."""
    root, log = fresh(), []
    real = Calls()

    def logged(name):
        def call(*arguments, **named):
            log.append(
                (
                    name,
                    str(Path(f"/proc/self/fd/{arguments[0]}").readlink()).replace(str(root), "")
                    if name == "fsync"
                    else "",
                )
            )
            return getattr(real, name)(*arguments, **named)

        return call

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to see which file is synced")
    names = ("write", "fsync", "rename", "mkdir", "exchange", "unlink")
    CHANGES["create in new folders"](
        Vault(root, calls=dataclasses.replace(real, **{name: logged(name) for name in names}))
    )
    temp = log[5][1]
    assert is_temporary(temp.rpartition("/")[2])
    assert log == [
        ("mkdir", ""),
        ("fsync", ""),
        ("mkdir", ""),
        ("fsync", "/x"),
        ("write", ""),
        ("fsync", temp),
        ("rename", ""),
        ("fsync", "/x/y"),
    ]


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ("replace", ["file", "exchange", "folder", "unlink"]),
        ("remove", ["rename", "folder", "unlink"]),
        ("go without a file", ["rename", "folder", "unlink"]),
    ],
)
def test_a_change_of_one_file_is_synced_before_the_old_one_goes(change, order, fresh):
    log, real = [], Calls()

    def logged(name):
        def call(*arguments, **named):
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            log.append(name if name != "fsync" else "folder" if is_folder else "file")
            return getattr(real, name)(*arguments, **named)

        return call

    names = ("fsync", "rename", "exchange", "unlink")
    CHANGES[change](Vault(fresh(), calls=dataclasses.replace(real, **{name: logged(name) for name in names})))
    assert log == order


def test_a_stored_file_is_synced_before_its_name_is(fresh):
    root, log = fresh(), []
    real = Calls()

    def logged(name):
        def call(*arguments, **named):
            log.append(name)
            return getattr(real, name)(*arguments, **named)

        return call

    names = ("write", "fchmod", "fsync", "rename")
    put_file(Vault(root, calls=dataclasses.replace(real, **{name: logged(name) for name in names})))
    assert log[log.index("write") :] == ["write"] * 3 + ["fchmod", "fsync", "rename", "fsync"]


def test_a_source_that_can_not_be_read_is_an_error_of_the_vault(fresh):
    root = fresh()
    with pytest.raises(NotFound, match=r"the source of a/new\.pdf does not exist"):
        Vault(root).create_from_file("a/new.pdf", root / "gone", hashlib.sha256(TWO).hexdigest())
    assert state(root) == {"a": None, "b": None, "a/old.md": ONE}


def test_a_file_that_changes_while_it_is_stored_is_not_stored(fresh):
    root = fresh()
    source = root.parent / "staged"
    source.write_bytes(ONE)
    with pytest.raises(Conflict, match="has changed"):
        Vault(root).create_from_file("a/new.pdf", source, hashlib.sha256(TWO).hexdigest())
    assert state(root) == {"a": None, "b": None, "a/old.md": ONE}


def test_a_file_comes_back_when_what_it_goes_with_fails(fresh):
    root = fresh()
    vault = Vault(root)
    with pytest.raises(ZeroDivisionError), vault.removing("a/old.md", vault.digest_file("a/old.md")):
        assert not (root / "a/old.md").exists()
        raise ZeroDivisionError
    assert state(root) == {"a": None, "b": None, "a/old.md": ONE}
    was = vault.digest_file("a/old.md")
    (root / "a/old.md").write_bytes(TWO)
    with pytest.raises(Conflict, match="has changed"), vault.removing("a/old.md", was):
        pytest.fail("it was not what was measured")
    assert notes(root) == {"a/old.md": TWO}


def test_what_takes_a_place_meanwhile_is_not_written_over(fresh):
    """A person saves a file under the name while it is set aside, and what it should go with fails."""
    root = fresh()
    vault = Vault(root)
    with pytest.raises(ZeroDivisionError), vault.removing("a/old.md", vault.digest_file("a/old.md")):
        (root / "a/old.md").write_bytes(b"theirs")
        raise ZeroDivisionError
    assert notes(root) == {"a/old.md": b"theirs"}


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="a small disk needs root to be mounted")
def test_a_full_disk_is_named_and_nothing_is_left_on_it(tmp_path):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        vault = Vault(tmp_path)
        vault.create("fits.md", b"x" * 100_000)
        for change in (
            lambda: vault.create("big.md", b"y" * 200_000),
            lambda: vault.replace("fits.md", b"y" * 200_000, digest=hashlib.sha256(b"x" * 100_000).hexdigest()),
        ):
            with pytest.raises(Unavailable, match="disk is full"):
                change()
            assert state(tmp_path) == {"fits.md": b"x" * 100_000}
        vault.remove("fits.md", digest=hashlib.sha256(b"x" * 100_000).hexdigest())
        vault.create("big.md", b"y" * 200_000)
        vault.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


LIMITED = """
    import resource, signal, sys
    from pathlib import Path
    from index.errors import Unavailable
    from syncd.vault.vault import Vault
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        Vault(Path(sys.argv[1])).create("a/new.md", b"x" * 5000)
    except Unavailable as error:
        sys.exit(0 if "too large" in error.message.lower() else 2)
    sys.exit(1)
"""


def test_a_file_size_limit_leaves_nothing(fresh):
    assert resource.RLIMIT_FSIZE is not None
    root = fresh()
    before = state(root)
    script = [sys.executable, "-c", textwrap.dedent(LIMITED), root]
    done = subprocess.run(
        script, cwd=ROOT, env=os.environ | {"PYTHONPATH": "."}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert state(root) == before


CREATE = "import sys; from pathlib import Path; from syncd.vault.vault import Vault; Vault(Path(sys.argv[1])).create('a/new.md', b'x' * 5000)"


@pytest.mark.faults
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("fault", ["signal=KILL", "error=EIO", "error=ENOSPC"])
@pytest.mark.parametrize("call", ["fsync", "renameat2", "write", "openat2"])
def test_the_systems_own_calls_are_failed_in_turn(call, fault, fresh):
    env = os.environ | {"PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1"}
    for nth in range(1, 30):
        root = fresh()
        log = root.parent / "trace"
        inject = ["strace", "-f", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={nth}"]
        done = subprocess.run(
            [*inject, sys.executable, "-c", CREATE, root],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if "ptrace" in done.stderr:
            pytest.skip("this machine allows no tracing")
        found = notes(root)
        assert found in ({"a/old.md": ONE}, {"a/old.md": ONE, "a/new.md": b"x" * 5000})
        if "KILL" in fault:
            Vault(root).remove_leftovers()
        assert {path for path, data in state(root).items() if data is not None} == set(found)
        if done.returncode == 0:
            assert "a/new.md" in found
        if "INJECTED" not in log.read_text() and "killed" not in log.read_text():
            return
    pytest.fail("never stops")


def test_a_file_keeps_its_owner_mode_and_attributes(fresh):
    root = fresh()
    old = root / "a/old.md"
    old.chmod(0o640)
    if hasattr(os, "setxattr"):
        try:
            os.setxattr(old, "user.finder", b"red")
        except OSError:
            pytest.skip("this disk keeps no attributes")
    if os.geteuid() == 0:
        os.chown(old, 1234, 4321)
    before = old.stat()
    CHANGES["replace"](Vault(root))
    after = old.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    if hasattr(os, "setxattr"):
        assert os.getxattr(old, "user.finder") == b"red"


def test_what_tells_two_states_apart(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"1")
    one = atomic_write.to_stat(file.stat())
    os.utime(file, ns=(0, 5))
    assert atomic_write.to_stat(file.stat()) != one
    assert atomic_write.to_stat(file.stat()).mtime_ns == 5
