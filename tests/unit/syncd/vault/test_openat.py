"""Opening and renaming below one folder, both the kernel's way and step by step, on the real disk."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from syncd.vault import openat
from syncd.vault.openat import (
    FOLDER,
    Calls,
    choose_opener,
    exchange,
    exchange_by_copy,
    exchange_stepwise,
    lstat,
    new_temporary_name,
    open_stepwise,
    rename,
    rename_by_claim,
    rename_by_link,
    scan_folder,
)
from tests.support.paths import ROOT

WAYS = [pytest.param(open_stepwise, id="stepwise")]
if choose_opener() is openat.openat2:
    WAYS.append(pytest.param(openat.openat2, id="openat2"))


@pytest.fixture
def root(tmp_path):
    """A vault with a secret beside it, and every kind of link that could lead there."""
    (tmp_path / "secret.md").write_text("secret")
    inside = tmp_path / "vault"
    (inside / "a/b").mkdir(parents=True)
    (inside / "a/b/note.md").write_text("note")
    (inside / "link.md").symlink_to("../secret.md")
    (inside / "inner.md").symlink_to("a/b/note.md")
    (inside / "up").symlink_to("..")
    (inside / "loop").symlink_to("loop")
    fd = os.open(inside, FOLDER)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_below_the_root_is_opened(way, root):
    file = way(root, "a/b/note.md", os.O_RDONLY, 0)
    assert os.read(file, 9) == b"note"
    assert not os.get_inheritable(file)
    os.close(file)
    os.close(way(root, ".", FOLDER, 0))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "a/../../secret.md",
        "/etc/passwd",
        "link.md",
        "inner.md",
        "up/secret.md",
        "up/vault/a",
        "loop",
        "loop/x",
        "..",
        "",
        "a//b/note.md/",
    ],
)
def test_nothing_leads_out_of_the_root(way, root, path):
    with pytest.raises(OSError):
        os.close(way(root, path, os.O_RDONLY, 0))
    with pytest.raises(OSError):
        os.close(way(root, path, os.O_WRONLY | os.O_CREAT, 0o600))


@pytest.mark.parametrize("way", WAYS)
def test_a_path_longer_than_the_kernel_takes_is_walked(way, root):
    here = os.dup(root)
    name = "d" * 200
    for _ in range(25):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, FOLDER, dir_fd=here)
        os.close(here)
        here = below
    deepest = os.fstat(here)
    os.close(here)
    walked = way(root, "/".join([name] * 25), FOLDER, 0)
    assert os.path.samestat(os.fstat(walked), deepest)
    os.close(walked)


def test_no_descriptor_is_left_open(root):
    before = len([*Path("/dev/fd").iterdir()])
    for path in ("a/b/note.md", "a/b/missing", "a/b/note.md/x", "up/x"):
        for way in (open_stepwise, choose_opener()):
            try:
                os.close(way(root, path, os.O_RDONLY, 0))
            except OSError:
                continue
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_a_look_sees_links_and_not_through_them(root):
    assert lstat(choose_opener(), root, "a/b/note.md").st_size == 4
    assert os.path.stat.S_ISLNK(lstat(choose_opener(), root, "link.md").st_mode)
    for path in ("up/secret.md", "missing", "missing/x", "a/b/note.md/x", "x" * 300, "x/" * 3000 + "y"):
        assert lstat(choose_opener(), root, path) is None


def test_entries_have_their_paths(root):
    assert sorted(path for path, _ in scan_folder(choose_opener(), root, "")) == [
        "a",
        "inner.md",
        "link.md",
        "loop",
        "up",
    ]
    assert [path for path, _ in scan_folder(choose_opener(), root, "a/b")] == ["a/b/note.md"]


@pytest.mark.parametrize("way", [rename, rename_by_link, rename_by_claim])
def test_a_rename_takes_no_name_that_is_taken(way, root):
    folder = choose_opener()(root, "a/b", FOLDER, 0)
    os.close(os.open("other.md", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    with pytest.raises(FileExistsError):
        way(folder, "note.md", "other.md")
    way(folder, "note.md", "new.md")
    assert sorted(entry.name for _, entry in scan_folder(choose_opener(), folder, "")) == ["new.md", "other.md"]
    with pytest.raises(FileNotFoundError):
        way(folder, "note.md", "x.md")
    os.close(folder)


@pytest.mark.parametrize("way", [exchange, exchange_stepwise, exchange_by_copy])
def test_two_files_trade_names(way, root, tmp_path):
    (tmp_path / "vault/one").write_text("1")
    (tmp_path / "vault/two").write_text("2")
    way(root, "one", "two")
    assert ((tmp_path / "vault/one").read_text(), (tmp_path / "vault/two").read_text()) == ("2", "1")
    before = sorted(path for path, _ in scan_folder(choose_opener(), root, ""))
    with pytest.raises(FileNotFoundError):
        way(root, "missing", "two")
    with pytest.raises(FileNotFoundError):
        way(root, "one", "missing")
    assert sorted(path for path, _ in scan_folder(choose_opener(), root, "")) == before


def test_fresh_names_differ():
    assert len({new_temporary_name() for _ in range(1000)}) == 1000


DENY = """
    import ctypes, errno, os, platform, struct, sys
    def deny(numbers, code):
        # BPF: load the call's number; for each forbidden one answer with `code`; allow the rest.
        steps = [(0x20, 0, 0, 0)]
        for number in numbers:
            steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | code)]
        steps.append((0x06, 0, 0, 0x7FFF0000))
        raw = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(raw)))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
            sys.exit(77)
    renameat2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276}[platform.machine()]
    deny([437, renameat2], getattr(errno, sys.argv[1]))
    import hashlib
    from pathlib import Path
    from syncd.vault import openat
    from syncd.vault.vault import Vault
    assert openat.choose_opener() is openat.open_stepwise
    vault = Vault(Path(sys.argv[2]))
    vault.create("a/b.md", b"one")
    vault.replace("a/b.md", b"two", digest=hashlib.sha256(b"one").hexdigest())
    assert vault.read("a/b.md")[0] == b"two"
    vault.create("a/c.md", b"three")
    vault.remove("a/c.md", digest=hashlib.sha256(b"three").hexdigest())
    assert os.listdir(Path(sys.argv[2]) / "a") == ["b.md"]
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.parametrize("code", ["ENOSYS", "EPERM"])
def test_a_sandbox_without_the_new_calls_is_no_hindrance(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DENY), code, tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("this machine allows no seccomp filter")
    assert done.returncode == 0, done.stderr


def test_the_calls_are_the_systems_own():
    assert Calls().fsync is openat.sync_file
    assert Calls().open is choose_opener()


def test_where_there_is_a_full_sync_it_is_used_and_a_disk_without_it_is_synced_as_usual(tmp_path, monkeypatch):
    """macOS, as far as it can be had elsewhere: its call, and one that this disk does not know."""
    asked, synced = [], []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(openat, "_FULL_SYNC", 51)
    monkeypatch.setattr(openat.fcntl, "fcntl", lambda file, call: asked.append((file, call)))
    openat.sync_file(7)
    assert (asked, synced) == ([(7, 51)], [])
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(openat, "_FULL_SYNC", 0x7FFF)  # no call of this system: EINVAL
    with (tmp_path / "note.md").open("wb") as file:
        openat.sync_file(file.fileno())
        assert synced == [file.fileno()]
