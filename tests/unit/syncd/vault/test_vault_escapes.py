"""Nothing outside a vault is read or written, whatever the name or the links in it."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from index.errors import MemexError
from syncd.vault.openat import exchange
from syncd.vault.path_rules import objection
from tests.support.example_counts import examples
from tests.support.vault_files import put, sha

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
        *(partial(trap.remove, path, digest=sha(raw)) for raw in (b"secret", b"[core]", b"{}")),
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
    assert set(trap.list_notes(path).files) <= {"a/n.md"}


@pytest.mark.slow
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
        assert (path in trap.list_notes().files) == path.lower().endswith(".md")
        trap.remove(path, digest=sha(b"x"))
        assert not os.path.lexists(trap.root / path)
    assert set(trap.root.parent.iterdir()) == outside
    assert (trap.root / ".git/config").read_bytes() == b"[core]"


@pytest.mark.slow
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
