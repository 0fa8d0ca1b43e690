"""One root on the real disk: what is listed, read and changed, and that nothing escapes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from syncd.vault.openat import Calls, exchange, stepwise
from syncd.vault.path_rules import objection
from syncd.vault.vault import Vault
from tests.support.example_counts import examples
from tests.support.paths import ROOT

AS_ROOT = os.geteuid() == 0


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(params=["best", "stepwise"])
def vault(request, tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    made = Vault(root, max_bytes=1000, calls=Calls() if request.param == "best" else Calls(open=stepwise))
    yield made
    made.close()


def put(vault, path, data=b"text"):
    file = vault.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


# Listing


def test_notes_are_listed_by_their_exact_paths_and_stats(vault):
    for path in ("a.md", "b/c/日本.md", "b/UPPER.MD", "b/photo.png", "c.canvas"):
        put(vault, path)
    listing = vault.listing()
    assert set(listing.files) == {"a.md", "b/c/日本.md", "b/UPPER.MD"}
    assert listing.complete
    assert listing.skipped == {}
    found = (vault.root / "a.md").stat()
    one = listing.files["a.md"]
    assert (one.size, one.mtime_ns, one.ino) == (found.st_size, found.st_mtime_ns, found.st_ino)
    assert one == vault.stat("a.md") == vault.read("a.md")[1]


def test_a_listing_can_be_of_a_folder_a_file_or_nothing(vault):
    put(vault, "a/b/x.md")
    put(vault, "a/y.md")
    put(vault, "z.md")
    assert set(vault.listing("a").files) == {"a/b/x.md", "a/y.md"}
    assert set(vault.listing("a/y.md").files) == {"a/y.md"}
    assert set(vault.listing(".").files) == {"a/b/x.md", "a/y.md", "z.md"}
    for nothing in ("missing", "missing/x.md", "z.md/x", ".obsidian", "../vault", "a//b", "x" * 300):
        listing = vault.listing(nothing)
        assert (listing.files, listing.skipped, listing.complete) == ({}, {}, True)


def test_noise_is_left_out_without_a_word(vault):
    for path in (
        ".obsidian/x.md",
        ".git/x.md",
        ".trash/x.md",
        "node_modules/a/x.md",
        ".x.md",
        "x.md~",
        ".syncthing.x.md.tmp",
        "~syncthing~x.md.tmp",
        "4913",
    ):
        put(vault, path)
    listing = vault.listing()
    assert (listing.files, listing.skipped, listing.complete) == ({}, {}, True)


def test_what_a_person_asks_to_ignore_is_left_out(tmp_path):
    vault = Vault(tmp_path, ignore=["Templates", "*.excalidraw.md"])
    for path in ("Templates/a.md", "x/Templates/b.md", "c.excalidraw.md", "d.md", "Templates/.e.md.icloud"):
        put(vault, path)
    assert set(vault.listing().files) == {"d.md"}
    assert vault.listing("Templates").files == {}
    assert vault.listing().skipped == {}
    assert vault.ignores("Templates/a.md")
    assert vault.folders() == ["x"]


def test_what_is_not_a_readable_note_is_named_and_never_followed(vault):
    put(vault, "real.md")
    (vault.root / "link.md").symlink_to("real.md")
    (vault.root / "passwd.md").symlink_to("/etc/passwd")
    (vault.root / "zero.md").symlink_to("/dev/zero")
    (vault.root / "gone.md").symlink_to("nowhere")
    (vault.root / "loop").symlink_to(".")
    os.mkfifo(vault.root / "fifo.md")
    os.mkfifo(vault.root / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(vault.root)
        try:
            one.bind("socket.md")
        finally:
            os.chdir(here)
    os.truncate(put(vault, "huge.md"), 10 << 30)
    listing = vault.listing()
    assert set(listing.files) == {"real.md"}
    assert listing.complete
    assert {path: reason.split(";")[0].split(":")[0] for path, reason in listing.skipped.items()} == {
        "link.md": "is a link", "passwd.md": "is a link", "zero.md": "is a link", "gone.md": "is a link", "loop": "is a link",
        "fifo.md": "is a FIFO, not a note", "socket.md": "is a socket, not a note", "huge.md": "is too large",
    }  # fmt: skip
    started = time.monotonic()
    for path in listing.skipped:
        with pytest.raises(Unavailable, match="is ") as caught:
            vault.read(path)
        assert not caught.value.retryable
        assert vault.listing(path).skipped == {path: listing.skipped[path]}
        assert listing.gone(path)
    assert time.monotonic() - started < 5
    assert vault.stat("fifo.md") is None
    assert vault.stat("link.md") is None


def test_a_name_that_is_not_unicode_is_named(vault):
    try:
        (vault.root / os.fsdecode(b"caf\xe9")).mkdir()
        put(vault, os.fsdecode(b"caf\xe9/inner.md"))
        put(vault, os.fsdecode(b"x/caf\xe9.md"))
    except OSError:
        pytest.skip("this disk takes Unicode names only")
    listing = vault.listing()
    assert listing.files == {}
    assert listing.skipped == dict.fromkeys([r"caf\xe9", r"x/caf\xe9.md"], "has a name that is not UTF-8")
    assert vault.stat(os.fsdecode(b"x/caf\xe9.md")) is None
    assert vault.folders() == ["x"]


def test_a_placeholder_is_a_note_that_is_there_but_not_here(vault):
    put(vault, "a/.Note.md.icloud")
    put(vault, "a/.Here.md.icloud")
    put(vault, "a/Here.md")
    for under in ("", "a", "a/Note.md"):
        listing = vault.listing(under)
        assert listing.skipped == {"a/Note.md": "is not downloaded to this machine"}
        assert listing.complete
        assert not listing.gone("a/Note.md")
        assert listing.gone("a/Other.md")
    for look in (vault.stat, vault.read, vault.remove):
        with pytest.raises(Unavailable, match="not downloaded") as caught:
            look("a/Note.md")
        assert caught.value.retryable
    assert vault.stat("a/Here.md")


def test_twins_are_two_notes(vault):
    paths = {"café.md", "cafe\u0301.md", "Note.md", "note.md", "🌱 garden.md", "a\nb.md", "#^[]|.md", "x" * 252 + ".md"}
    for path in paths:
        put(vault, path, path.encode())
    if len([*vault.root.iterdir()]) < len(paths):
        pytest.skip("this disk can't hold twins")
    assert set(vault.listing().files) == paths
    for path in paths:
        assert vault.read(path)[0] == path.encode()


def test_a_very_deep_folder_is_listed(vault):
    here = os.open(vault.root, os.O_RDONLY)
    names = ["d" * 100] * 60
    for name in names:
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    listing = vault.listing()
    assert listing.complete
    (path,) = listing.files
    assert path == "/".join([*names, "deep.md"])
    assert vault.read(path)[0] == b""


def test_a_folder_that_vanishes_while_it_is_listed_proves_nothing(vault):
    put(vault, "a/x.md")
    put(vault, "b/y.md")
    best = vault._calls.open

    def vanish(root, path, flags, mode):
        if path == "a" and flags & os.O_DIRECTORY:
            shutil.rmtree(vault.root / "a", ignore_errors=True)
        return best(root, path, flags, mode)

    moving = Vault(vault.root, calls=Calls(open=vanish))
    listing = moving.listing()
    assert not listing.complete
    assert not listing.gone("a/x.md")
    assert listing.gone("b/z.md")
    assert set(listing.files) == {"b/y.md"}
    assert moving.listing().complete


@pytest.mark.parametrize("how", ["deleted", "renamed away", "replaced", "a file now"])
def test_a_root_that_is_gone_removes_nothing(vault, how):
    """Law 7: absence is not deletion."""
    put(vault, "a.md")
    if how == "deleted":
        shutil.rmtree(vault.root)
    else:
        vault.root.rename(vault.root.parent / "elsewhere")
    if how == "replaced":
        vault.root.mkdir()
    if how == "a file now":
        vault.root.write_text("x")
    assert not vault.present()
    listing = vault.listing()
    assert not listing.complete
    assert not listing.gone("a.md") or "a.md" in listing.files
    assert not listing.gone("b/c.md")
    for change in (
        lambda: vault.create("n.md", b"x"),
        lambda: vault.remove("a.md"),
        lambda: vault.read("a.md"),
        lambda: vault.stat("a.md"),
        lambda: vault.make_folder("f"),
        vault.folders,
    ):
        with pytest.raises(Unavailable, match="missing or was replaced"):
            change()
    if how == "replaced":
        put(vault, "new.md")
        vault.reopen()
        assert vault.present()
        assert set(vault.listing().files) == {"new.md"}
    else:
        with pytest.raises(Unavailable):
            vault.reopen()


def test_a_missing_root_is_refused(tmp_path):
    with pytest.raises(Unavailable, match="can't be opened"):
        Vault(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable):
        Vault(tmp_path / "file")


def test_ten_thousand_notes_are_listed_well_under_half_a_second(tmp_path):
    for folder in range(100):
        (tmp_path / f"{folder}").mkdir()
        for name in range(100):
            os.close(os.open(tmp_path / f"{folder}/Note {name}.md", os.O_CREAT | os.O_WRONLY))
    vault = Vault(tmp_path)
    times = []
    for _ in range(3):
        started = time.process_time()
        assert len(vault.listing().files) == 10_000
        times.append(time.process_time() - started)
    assert min(times) < 2, "an order of magnitude above what it takes"  # the figure itself is the benchmark's business


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
        for _ in range(60):
            try:
                states.add(vault.read("a.md")[0])
            except Unavailable as error:
                busy.append(error)
    finally:
        stop.set()
        writer.join()
    assert all(error.retryable for error in busy)
    assert all(len(set(state)) <= 1 for state in states)
    assert any(len(state) == 900 for state in states)


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
            vault.remove(path)
        with pytest.raises(NotFound):
            vault.replace(path, b"", digest=sha(b""))
        assert vault.stat(path) is None
    (vault.root / "folder.md").mkdir()
    assert vault.stat("folder.md") is None
    with pytest.raises(Unavailable, match="folder"):
        vault.read("folder.md")
    with pytest.raises(NotFound):
        vault.remove("folder.md")


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
    vault.remove("n.md")
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


def test_folders_are_made_listed_and_removed(vault):
    vault.make_folder("a/b")
    vault.make_folder("a/b")
    vault.make_folder("c")
    put(vault, ".hidden/x")
    put(vault, "file.md")
    (vault.root / "link").symlink_to("a")
    assert vault.folders() == ["a", "c"]
    assert vault.folders("a") == ["b"]
    assert vault.folders("missing") == []
    with pytest.raises(Conflict, match="not empty"):
        vault.remove_folder("a")
    vault.remove_folder("a/b")
    vault.remove_folder("a")
    with pytest.raises(NotFound):
        vault.remove_folder("a")
    with pytest.raises(NotFound):
        vault.remove_folder("file.md")
    for taken in ("file.md/x", "link/x"):
        with pytest.raises(Conflict, match="in its way"):
            vault.make_folder(taken)
        with pytest.raises(Conflict, match="in its way"):
            vault.create(f"{taken}.md", b"")


def test_what_was_removed_can_be_put_back_under_any_name(vault):
    put(vault, "-a\nb.md", b"odd")
    vault.remove("-a\nb.md")
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
    assert vault.sweep() == [".memex-0123456789abcdef.tmp", "a/c/.memex-00000000ffffffff.tmp"]
    assert all((vault.root / path).exists() for path in kept)
    assert (vault.root.parent / ".memex-0123456789abcdef.tmp").exists()
    assert vault.sweep() == []


# Nothing escapes

WAYS_OUT = [
    "../out.md", "../../out.md", "a/../../out.md", "..", ".", "", "/", "/tmp/out.md", "//tmp/out.md", "a/..", "a/./b.md", "./a.md", "a//b.md", "a/b.md/",
    "..\\out.md", "a\\..\\..\\out.md", "C:\\out.md", "\\\\host\\share\\out.md", "up/out.md", "up/vault/x.md", "inside/x.md", "link.md", "link.md/x.md",
    "dangling.md", "abs/out.md", "loop/x.md", ".git/hooks/post-commit", ".git/config", ".GIT/config", ".Git/x.md", "a/.git/x.md", ".git", ".git/", ".gitignore",
    ".gitattributes", ".gitmodules", "git~1/config", "GIT~1/x.md", ".g\u200cit/config", ".git\u200c/config", "\ufeff.git/config", ".git /config", ".git./config",
    ".obsidian/plugins/x/main.js", ".obsidian/app.json", ".OBSIDIAN/app.json", ".trash/x.md", ".ssh/authorized_keys", "a/.hidden.md", "...", ".../x.md", "-rf", "--output=x.md",
    "a\nb.md", "a\rb.md", "a\0b.md", "\0", "\x1b[31m.md", "a\x7f.md", "\u202egnp.md", "a\u2028b.md", "CON", "nul.md", "a/aux.md", " x.md", "x.md ", "x.md.", "x" * 256, "é" * 200 + ".md",
    "node_modules/x.md", "x.md~", "x.swp", "x.tmp", "~syncthing~x.tmp", "conflict-files-obsidian-git.md", "bad\udce9.md", "\ud800.md", "a/" * 2500 + "x.md",
]  # fmt: skip


@pytest.fixture
def trap(vault):
    """A vault with a way out of every kind, and what must stay as it is: outside, in Git's folder, in the settings."""
    (vault.root / "up").symlink_to("..")
    (vault.root / "abs").symlink_to("/tmp")
    (vault.root / "inside").symlink_to("a")
    (vault.root / "loop").symlink_to("loop")
    (vault.root / "link.md").symlink_to("../secret.md")
    (vault.root / "dangling.md").symlink_to("../out.md")
    put(vault, "a/n.md")
    put(vault, ".git/config", b"[core]")
    put(vault, ".obsidian/app.json", b"{}")
    (vault.root.parent / "secret.md").write_bytes(b"secret")
    return vault


def tree(folder):
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in folder.rglob("*")
    }


@pytest.mark.parametrize("path", WAYS_OUT, ids=ascii)
def test_nothing_is_written_or_read_outside(trap, path):
    before = tree(trap.root.parent)
    tries = [
        lambda: trap.create(path, b"evil"),
        lambda: trap.create(path, b"evil", again=True) if objection(path) else trap.create(path, b"evil"),
        lambda: trap.replace(path, b"evil", digest=sha(b"secret")),
        lambda: trap.replace(path, b"evil", digest=sha(b"[core]")),
        lambda: trap.remove(path),
        lambda: trap.make_folder(path),
        lambda: trap.remove_folder(path),
    ]
    for attempt in tries:
        with pytest.raises(MemexError):
            attempt()
    assert tree(trap.root.parent) == before
    read = b""
    with suppress(MemexError):
        read, _ = trap.read(path)
    assert read in (b"", b"{}")  # the settings may be read, never written
    assert set(trap.listing(path).files) <= {"a/n.md"}


@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(max_size=12)
        | st.sampled_from(["..", ".", "", "up", "abs", "inside", "loop", ".git", ".obsidian", "a", "link.md"]),
        min_size=1,
        max_size=4,
    ).map("/".join)
)
@example("a/new.md")
@example("up/x")
def test_no_name_at_all_escapes(trap, path):
    """Whatever the name: a file is made under exactly that name below the root, or nothing is."""
    outside = set(trap.root.parent.iterdir())
    links = {"up", "abs", "inside", "loop"}
    try:
        trap.create(path, b"x")
    except MemexError:
        assert True
    else:
        assert not objection(path, new=True)
        assert path.split("/")[0] not in links or "/" not in path
        assert (trap.root / path).read_bytes() == b"x"
        assert trap.read(path)[0] == b"x"
        assert (path in trap.listing().files) == path.lower().endswith(".md")
        trap.remove(path, digest=sha(b"x"))
        assert not os.path.lexists(trap.root / path)
    assert set(trap.root.parent.iterdir()) == outside
    assert (trap.root / ".git/config").read_bytes() == b"[core]"


def test_a_folder_that_becomes_a_link_under_our_hands_is_no_way_out(trap):
    """A folder and a link to the outside trade places all the time; nothing is ever written outside."""
    out = trap.root.parent / "outside"
    out.mkdir()
    (trap.root / "f").mkdir()
    (trap.root / "g").symlink_to(out)
    stop = threading.Event()
    folder = os.open(trap.root, os.O_RDONLY)

    def flip():
        while not stop.is_set():
            exchange(folder, "f", "g")

    flipper = threading.Thread(target=flip)
    flipper.start()
    made = refused = n = 0
    until = time.monotonic() + 20
    try:
        while min(made, refused) < 30 and time.monotonic() < until:
            n += 1
            try:
                trap.create(f"f/{n}.md", b"x")
                made += 1
            except MemexError:
                refused += 1
    finally:
        stop.set()
        flipper.join()
        os.close(folder)
    assert [*out.iterdir()] == []
    assert min(made, refused) >= 1


# Permissions: root is above them, so another user tries

TRIED = """
    import hashlib, json, sys
    from pathlib import Path
    from index.errors import MemexError
    from syncd.vault.vault import Vault
    vault = Vault(Path(sys.argv[1]))
    listing = vault.listing()
    told = {}
    one = hashlib.sha256(b"text").hexdigest()
    for name, attempt in {
        "read": lambda: vault.read("secret.md"), "create": lambda: vault.create("locked/n.md", b""), "replace": lambda: vault.replace("locked/n.md", b"", digest=one),
        "remove": lambda: vault.remove("locked/n.md", digest=one), "folder": lambda: vault.make_folder("locked/f"), "stat": lambda: vault.stat("closed/n.md"),
        "look": lambda: vault.read("closed/n.md"), "folders": lambda: vault.folders("closed"), "rmdir": lambda: vault.remove_folder("locked/empty"),
    }.items():
        try:
            attempt()
        except MemexError as error:
            told[name] = [error.code, error.message]
    print(json.dumps([sorted(listing.files), listing.skipped, listing.complete, listing.gone("closed/n.md"), listing.gone("open/gone.md"), told, vault.sweep()]))
"""


@pytest.mark.skipif(not AS_ROOT or not shutil.which("setpriv"), reason="needs root to become somebody else")
def test_what_the_account_may_not_touch_is_named_and_kept(tmp_path):
    root = tmp_path / "vault"
    for path in ("secret.md", "closed/n.md", "locked/n.md", "open/n.md", "locked/empty/x"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"text")
    (root / "locked/empty/x").unlink()
    for folder in (root, *root.parents):
        if folder != Path("/") and folder.is_relative_to(tmp_path.parent.parent.parent):
            folder.chmod(0o755)
    (root / "secret.md").chmod(0o000)
    (root / "closed").chmod(0o000)
    (root / "locked").chmod(0o755)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c"]
    env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    if subprocess.run(
        [*other, "import syncd.vault.vault"], cwd="/", env=env, capture_output=True, check=False
    ).returncode:
        pytest.skip("another user can't run this Python, or read this project")
    command = [*other, textwrap.dedent(TRIED), str(root)]
    done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files, skipped, complete, gone_in_closed, gone_in_open, told, swept = json.loads(done.stdout)
    assert files == ["locked/n.md", "open/n.md", "secret.md"]
    assert list(skipped) == ["closed"]
    assert "permission denied" in skipped["closed"]
    assert (complete, gone_in_closed, gone_in_open, swept) == (False, False, True, [])
    assert set(told) == {"read", "create", "replace", "remove", "folder", "stat", "look", "folders", "rmdir"}
    assert all(
        code == "UNAVAILABLE" and "permission denied" in message and str(tmp_path) not in message
        for code, message in told.values()
    )


@pytest.mark.skipif(not AS_ROOT or not shutil.which("mount"), reason="needs root to mount a disk read-only")
def test_a_read_only_disk_is_named(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        (tmp_path / "a.md").write_bytes(b"text")
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        vault = Vault(tmp_path)
        for change in (
            lambda: vault.create("b.md", b""),
            lambda: vault.replace("a.md", b"", digest=sha(b"text")),
            lambda: vault.remove("a.md"),
        ):
            with pytest.raises(Unavailable, match="read-only"):
                change()
        assert vault.read("a.md")[0] == b"text"
        vault.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_file_of_any_size_is_measured_and_copied_a_piece_at_a_time(tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    small = Vault(root, max_bytes=10)
    raw = bytes(range(256)) * 10_000
    (root / "a.pdf").write_bytes(raw)
    pieces = []
    found = small.measured("a.pdf", pieces.append)
    assert (found.digest, found.stat) == (sha(raw), small.stat("a.pdf"))
    assert b"".join(pieces) == raw
    assert len(pieces) == 3

    def edit(_):
        (root / "a.pdf").write_bytes(b"theirs")

    with pytest.raises(Conflict, match="has changed"):
        small.measured("a.pdf", edit)
    (root / "link.pdf").symlink_to(root / "a.pdf")
    for path, code in [
        ("link.pdf", Unavailable),
        ("none.pdf", NotFound),
        ("../a.pdf", InvalidArgument),
        (".git/x", InvalidArgument),
    ]:
        with pytest.raises(code):
            small.measured(path)
    small.close()


def test_files_that_are_wanted_are_listed_beside_the_notes(tmp_path):
    root = tmp_path / "vault"
    (root / "a/.hidden").mkdir(parents=True)
    for path in ("a/n.md", "a/x.pdf", "a/big.pdf", "a/y.zip", "a/.hidden/z.pdf", "a/x.pdf.tmp"):
        (root / path).write_bytes(b"text" if "big" not in path else b"text" * 9)
    (root / "a/link.pdf").symlink_to(root / "a/x.pdf")

    def wanted(path, size):
        return None if not path.endswith(".pdf") else "is too large" if size > 10 else ""

    vault = Vault(root, wanted=wanted)
    listing = vault.listing()
    assert set(listing.files) == {"a/n.md"}
    assert listing.others == {"a/x.pdf": vault.stat("a/x.pdf")}
    assert set(listing.skipped) == {"a/big.pdf", "a/link.pdf"}
    assert vault.listing("a/x.pdf").others == listing.others
    assert vault.listing("a/y.zip").others == {}
    assert listing.gone("a/other.pdf")
    assert not listing.gone("a/x.pdf")
    assert sorted(vault.beside()) == ["a/big.pdf", "a/link.pdf", "a/x.pdf", "a/y.zip"]
    assert Vault(root).listing().others == {}
    vault.close()


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
    assert len(vault.listing().files) == 160
    assert len([*Path("/dev/fd").iterdir()]) == before
    vault.close()
    vault.close()
    assert not vault.present()


def test_an_empty_folder_in_the_root_s_place_is_where_a_disk_is_not_mounted(vault):
    put(vault, "a.md")
    aside = vault.root.with_name("aside")
    vault.root.rename(aside)
    vault.root.mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(Unavailable, match="is empty: is its disk not mounted"):
        vault.reopen()
    assert not vault.present()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    vault.root.rmdir()
    aside.rename(vault.root)
    vault.reopen()
    assert set(vault.listing().files) == {"a.md"}
