"""What comes in from the vault's remote stays inside the vault and runs no program."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading

import pytest

from index.errors import Conflict, Unavailable
from syncd.remote.fast_forward import JOURNAL
from tests.support.git_states import intercept, run

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


@pytest.mark.parametrize(
    "name", [".git", "..", *(pytest.param(name, marks=pytest.mark.slow) for name in (".GIT", ".g\u200cit", "git~1"))]
)
def test_a_tree_that_leads_out_of_the_vault_is_refused(device, name):
    evil = device.clone
    blob = (
        subprocess.run(
            ["git", "-C", str(evil), "hash-object", "-w", "--stdin"], input=b"evil", check=True, capture_output=True
        )
        .stdout.decode()
        .strip()
    )
    inner = mktree(evil, f"100644 blob {blob}\thooks-x")
    root = mktree(evil, f"040000 tree {inner}\t{name}")
    commit = run(evil, "commit-tree", "-p", "HEAD", "-m", "x", root)
    run(evil, "-c", "core.protectNTFS=false", "push", "-q", "origin", f"{commit}:main")
    before = device.files()
    with pytest.raises(Conflict, match=r"Git refuses the commits of the remote: .*invalid path"):
        device.remote.sync()
    assert device.files() == before
    assert not list(device.vault.parent.glob("hooks-x"))
    assert not (device.vault / ".git/hooks-x").exists()


def mktree(root, line):
    """A tree of one entry, whatever its name."""
    done = subprocess.run(
        ["git", "-C", str(root), "mktree"], input=line.encode() + b"\n", check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def test_a_name_that_this_disk_can_t_hold_is_told_and_nothing_counts_as_taken(device):
    device.there("fine.md", "fine\n", push=False)
    blob = run(device.clone, "rev-parse", "HEAD:fine.md")
    run(device.clone, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'x' * 300}.md")
    run(device.clone, "commit", "-qm", "long")
    run(device.clone, "push", "-q")
    before, head = device.files(), device.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"Git refuses the commits of the remote: .*File name too long"):
            device.remote.sync()
    assert (device.files(), device.head(), device.calls) == (before, head, [])
    assert not (device.state / JOURNAL).exists()


def test_a_link_that_comes_in_stays_a_link_and_nothing_is_written_through_it(device):
    outside = device.vault.parent / "outside"
    outside.mkdir()
    (device.clone / "Folder").symlink_to(outside)
    run(device.clone, "add", "-A")
    run(device.clone, "commit", "-qm", "x")
    run(device.clone, "push", "-q")
    device.remote.sync()
    assert (device.vault / "Folder").is_symlink()
    (device.clone / "Folder").unlink()
    device.there("Folder/note.md", "inside\n")
    device.remote.sync()
    assert (list(outside.iterdir()), device.text("Folder/note.md")) == ([], "inside\n")
    assert not (device.vault / "Folder").is_symlink()


def test_no_hook_and_no_monitor_of_the_repository_runs(device):
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"):
        hook = device.vault / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{device.state}/ran'\n")
        hook.chmod(0o755)
    run(device.vault, "config", "core.fsmonitor", str(hook))
    device.there("theirs.md", "theirs\n")
    device.here("ours.md", "ours\n", commit=False)
    (device.state / "ran").unlink(missing_ok=True)
    assert device.remote.sync().took == 1
    assert not (device.state / "ran").exists()


def test_a_writer_waits_while_its_file_is_moved_and_others_do_not(device):
    device.here("Captures/default/a.md", "a\n")
    digest = hashlib.sha256(b"a\n").hexdigest()
    done = []

    def write():
        device.notes.replace("Captures/default/a.md", b"b\n", digest=digest)
        done.append("a")

    with device.notes.reservations.reserve(["Captures/default/a.md"]):
        thread = threading.Thread(target=write)
        thread.start()
        device.notes.create("Captures/default/other.md", b"o\n")
        assert done == []
    thread.join(60)
    assert (done, device.text("Captures/default/a.md")) == (["a"], "b\n")


@pytest.mark.slow
@pytest.mark.parametrize("incoming", [True, False])
def test_a_branch_that_is_checked_out_during_the_sync_is_neither_merged_nor_pushed(
    device, tmp_path, monkeypatch, incoming
):
    run(device.vault, "switch", "-qc", "drafts")
    device.here("draft.md", "not for others\n")
    run(device.vault, "switch", "-q", "main")
    if incoming:
        device.there("theirs.md", "theirs\n")
    else:
        device.here("ours.md", "ours\n")
    drafts = device.head(ref="drafts")
    intercept(monkeypatch, tmp_path, "fetch", f"git -C '{tmp_path}'/My* switch -q drafts")
    if incoming:
        with pytest.raises(Unavailable, match="another branch was checked out during the sync"):
            device.remote.sync()
    else:
        assert device.remote.sync().sent == 1
    names = run(device.bare, "ls-tree", "--name-only", "main").split()
    assert names == ["n.md", "theirs.md" if incoming else "ours.md"]
    assert device.head() == device.head(ref="drafts") == drafts
    assert device.files().keys() == {"draft.md", "n.md"}
