"""One root on the real disk: what is read, made, changed and removed."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from syncd.vault.disk_errors import FolderBlocked, NameTaken
from syncd.vault.openat import Calls
from syncd.vault.vault import Vault
from tests.support.until import until
from tests.support.vault_files import put, sha

# Reading


def test_a_read_is_one_state_of_the_file(vault):
    """A writer that truncates and writes in place is never caught in the middle."""
    file = put(vault, "a.md", b"0" * 900)
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            n += 1
            with file.open("wb", buffering=0) as out:
                out.write(b"%d" % (n % 10) * 400)
                out.write(b"%d" % (n % 10) * 500)
            time.sleep(0.012)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        states, busy = set(), []

        def read():
            for _ in range(60):
                try:
                    states.add(vault.read("a.md")[0])
                except Unavailable as error:
                    busy.append(error)
            return any(len(state) == 900 for state in states)

        until(read)  # on a machine that is busy enough, sixty looks all meet the writer
    finally:
        stop.set()
        writer.join()
    assert all(error.retryable for error in busy)
    assert all(len(set(state)) <= 1 for state in states)


def test_a_file_that_never_rests_is_said_to(vault):
    file = put(vault, "a.md")
    best = vault._calls.open

    def touch(root, path, flags, mode):
        os.utime(file, ns=(0, time.monotonic_ns()))
        return best(root, path, flags, mode)

    with pytest.raises(Unavailable, match="keeps changing"):
        Vault(vault.root, calls=Calls(open=touch)).read("a.md")


def test_what_is_missing_is_not_found(vault):
    put(vault, "a.md")
    for path in ("b.md", "x/y.md", "a.md/b"):
        with pytest.raises(NotFound):
            vault.read(path)
        with pytest.raises(NotFound):
            vault.remove(path, digest=sha(b""))
        with pytest.raises(NotFound):
            vault.replace(path, b"", digest=sha(b""))
        assert vault.stat(path) is None
    (vault.root / "folder.md").mkdir()
    assert vault.stat("folder.md") is None
    with pytest.raises(Unavailable, match="folder"):
        vault.read("folder.md")
    with pytest.raises(Unavailable, match="folder"):
        vault.remove("folder.md", digest=sha(b""))


def test_a_file_of_any_size_is_measured_and_copied_a_piece_at_a_time(tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    small = Vault(root, max_bytes=10)
    raw = bytes(range(256)) * 10_000
    (root / "a.pdf").write_bytes(raw)
    pieces = []
    found = small.digest_file("a.pdf", pieces.append)
    assert (found.digest, found.stat) == (sha(raw), small.stat("a.pdf"))
    assert b"".join(pieces) == raw
    assert len(pieces) == 3

    def edit(_):
        (root / "a.pdf").write_bytes(b"theirs")

    with pytest.raises(Conflict, match="has changed"):
        small.digest_file("a.pdf", edit)
    (root / "link.pdf").symlink_to(root / "a.pdf")
    for path, code in [
        ("link.pdf", Unavailable),
        ("none.pdf", NotFound),
        ("../a.pdf", InvalidArgument),
        (".git/x", InvalidArgument),
    ]:
        with pytest.raises(code):
            small.digest_file(path)
    small.close()


# Changing


def test_a_note_is_made_changed_and_removed(vault):
    made = vault.create("a/b/n.md", b"one")
    assert (vault.root / "a/b/n.md").read_bytes() == b"one"
    assert made == vault.stat("a/b/n.md")
    with pytest.raises(Conflict, match="exists"):
        vault.create("a/b/n.md", b"other")
    with pytest.raises(Conflict, match="changed"):
        vault.replace("a/b/n.md", b"two", digest=sha(b"other"))
    changed = vault.replace("a/b/n.md", b"two", digest=sha(b"one"))
    assert changed == vault.read("a/b/n.md")[1] != made
    with pytest.raises(Conflict):
        vault.remove("a/b/n.md", digest=sha(b"one"))
    assert vault.read("a/b/n.md")[0] == b"two"
    vault.remove("a/b/n.md", digest=sha(b"two"))
    vault.create("n.md", b"")
    vault.remove("n.md", digest=sha(b""))
    assert [path.name for path in vault.root.rglob("*")] == ["a", "b"]


def test_a_new_note_is_as_open_as_one_made_in_an_editor(tmp_path):
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            vault = Vault(tmp_path)
            vault.create(f"{mode:o}/n.md", b"x")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{mode:o}/n.md").stat().st_mode) == mode
        assert os.umask(before) == before


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL], ids=errno.errorcode.get)
def test_a_disk_without_modes_takes_notes_folders_and_changes(tmp_path, code):
    def refuse(*_arguments):
        raise OSError(code, os.strerror(code))

    vault = Vault(tmp_path, calls=Calls(fchmod=refuse))
    vault.create("a/n.md", b"x")
    (tmp_path / "a/n.md").chmod(0o755)  # as the mount says
    vault.replace("a/n.md", b"y", digest=sha(b"x"))
    assert vault.read("a/n.md")[0] == b"y"
    vault.close()


def test_folders_are_made_listed_and_removed(vault):
    vault.make_folder("a/b")
    vault.make_folder("a/b")
    vault.make_folder("c")
    put(vault, ".hidden/x")
    put(vault, "file.md")
    (vault.root / "link").symlink_to("a")
    assert vault.list_folders() == ["a", "c"]
    assert vault.list_folders("a") == ["b"]
    assert vault.list_folders("missing") == []
    with pytest.raises(Conflict, match="not empty"):
        vault.remove_folder("a")
    vault.remove_folder("a/b")
    vault.remove_folder("a")
    with pytest.raises(NotFound):
        vault.remove_folder("a")
    with pytest.raises(NotFound):
        vault.remove_folder("file.md")
    for taken in ("file.md/x", "link/x"):
        with pytest.raises(Conflict, match="can't be created: a link or a file blocks the path"):
            vault.make_folder(taken)
        with pytest.raises(Conflict, match="can't be created: a link or a file blocks the path"):
            vault.create(f"{taken}.md", b"")


@pytest.fixture(params=["file", "link", "dangling", "loop", "pipe"])
def blocked(vault, request):
    """What is no folder, and never will be one."""
    put(vault, "file", b"no folder")
    (vault.root / "elsewhere").mkdir()
    (vault.root / "link").symlink_to("elsewhere")
    (vault.root / "dangling").symlink_to("nowhere")
    (vault.root / "loop").symlink_to("loop")
    os.mkfifo(vault.root / "pipe")
    return request.param


def test_a_name_that_is_taken_and_a_folder_that_can_t_be_are_told_apart(vault, blocked):
    with pytest.raises(NameTaken):
        vault.create(blocked, b"new")
    for path in (f"{blocked}/a.md", f"{blocked}/deeper/a.md"):
        with pytest.raises(FolderBlocked):
            vault.create(path, b"new")
    with pytest.raises(FolderBlocked):
        vault.make_folder(f"{blocked}/deeper")
    assert list((vault.root / "elsewhere").iterdir()) == []


def test_a_path_that_can_t_be_a_folder_is_refused_before_anything_is_made(vault, blocked):
    for path in (blocked, f"{blocked}/deeper"):
        with pytest.raises(InvalidArgument, match=f"{path} can't be a folder: a file or a link blocks the path"):
            vault.check_folder(path)
    for path in ("elsewhere", "elsewhere/new/deeper", "new"):
        vault.check_folder(path)
    assert not (vault.root / "new").exists()


def test_what_was_removed_can_be_put_back_under_any_name(vault):
    put(vault, "-a\nb.md", b"odd")
    vault.remove("-a\nb.md", digest=sha(b"odd"))
    with pytest.raises(InvalidArgument):
        vault.create("-a\nb.md", b"odd")
    vault.create("-a\nb.md", b"odd", again=True)
    vault.replace("-a\nb.md", b"even", digest=sha(b"odd"))
    with pytest.raises(InvalidArgument):
        vault.create(".git/x", b"", again=True)


def test_a_sweep_takes_our_own_leftovers_and_nothing_else(vault):
    kept = [
        "a.md",
        ".memex-1.tmp",
        "x.tmp",
        ".syncthing.a.md.tmp",
        ".obsidian/.memex-0123456789abcdef.tmp",
        "b/.memex-0123456789abcdef.tmp/x.md",
    ]
    for path in [*kept, ".memex-0123456789abcdef.tmp", "a/c/.memex-00000000ffffffff.tmp"]:
        put(vault, path)
    (vault.root / "out").symlink_to(vault.root.parent)
    put(vault, "../.memex-0123456789abcdef.tmp")
    assert vault.remove_leftovers() == [".memex-0123456789abcdef.tmp", "a/c/.memex-00000000ffffffff.tmp"]
    assert all((vault.root / path).exists() for path in kept)
    assert (vault.root.parent / ".memex-0123456789abcdef.tmp").exists()
    assert vault.remove_leftovers() == []


def test_many_threads_write_beside_each_other(vault):
    errors = []

    def work(who):
        try:
            for n in range(20):
                vault.create(f"w{who}/{n}.md", b"%d" % n)
                vault.replace(f"w{who}/{n}.md", b"x", digest=sha(b"%d" % n))
        except MemexError as error:
            errors.append(error)

    before = len([*Path("/dev/fd").iterdir()])
    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(vault.list_notes().files) == 160
    assert len([*Path("/dev/fd").iterdir()]) == before
    vault.close()
    vault.close()
    assert not vault.is_present()
