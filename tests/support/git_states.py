"""Git work trees in each state that Memex must recognise, made with real Git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time

import pytest


def run(vault, *arguments, check=True):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    environment |= {f"GIT_{r}_{k}": "t@example.org" for r in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    result = subprocess.run(["git", "-C", str(vault), *arguments], env=environment, check=check, capture_output=True)
    return result.stdout.decode().strip()


def intercept(monkeypatch, folder, word, script):
    """Run this shell script before each Git command of Memex that has the word; `exit` in the script replaces the command."""
    program, real = folder / "bin" / "git", shutil.which("git")
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\ncase " $* " in *" {word} "*) {script};; esac\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def diverge(vault):
    run(vault, "switch", "-qc", "other")
    (vault / "n.md").write_text("theirs\n")
    run(vault, "commit", "-qam", "theirs")
    run(vault, "switch", "-q", "main")
    (vault / "n.md").write_text("ours\n")
    run(vault, "commit", "-qam", "ours")
    run(vault, "merge", "-q", "other", check=False)


def with_remote(folder, name, *options):
    """Create a healthy vault with a history and a remote; the options are for `git init`."""
    root = folder / name
    root.mkdir()
    (root / "n.md").write_text("one\n")
    run(root, "init", "-q", "-b", "main", *options)
    run(root, "add", "-A")
    run(root, "commit", "-qm", "one")
    run(root, "clone", "-q", "--bare", ".", str(folder / "remote.git"))
    run(root, "remote", "add", "origin", str(folder / "remote.git"))
    run(root, "push", "-q", "-u", "origin", "main")
    return root


def theirs(vault, *, text="theirs\n", name="other.md"):
    """Push a commit to the remote that the vault lacks."""
    clone = vault.parent / "clone"
    run(vault.parent, "clone", "-q", str(vault.parent / "remote.git"), str(clone))
    (clone / name).write_text(text)
    run(clone, "add", "-A")
    run(clone, "commit", "-qm", "theirs")
    run(clone, "push", "-q")
    run(vault, "fetch", "-q")


def ours(vault, *, text="ours\n"):
    (vault / "n.md").write_text(text)
    run(vault, "commit", "-qam", "ours")


def no_repo(vault):
    shutil.rmtree(vault / ".git")


def unborn(vault):
    shutil.rmtree(vault / ".git")
    run(vault, "init", "-q")


def detached(vault):
    run(vault, "switch", "-q", "--detach")


def detached_alone(vault):
    run(vault, "switch", "-q", "--detach")
    ours(vault)


def no_upstream(vault):
    run(vault, "branch", "--unset-upstream")


def shallow(vault):
    ours(vault)
    run(vault, "push", "-q")
    origin = f"file://{vault.parent / 'remote.git'}"
    shutil.rmtree(vault)
    run(vault.parent, "clone", "-q", "--depth=1", origin, str(vault))


def diverged(vault):
    theirs(vault)
    ours(vault)


def unmade(vault):
    (vault / ".git" / "HEAD").unlink()


def files_denied(vault):
    run(vault, "config", "core.bare", "true")


def stale_lock(vault):
    lock = vault / ".git" / "index.lock"
    lock.write_bytes(b"")
    old = time.time() - 700
    os.utime(lock, (old, old))


def mended(vault):
    (vault / "n.md").write_text("both\n")
    run(vault, "add", "n.md")


def merge(vault):
    diverge(vault)
    mended(vault)


def bisect(vault):
    run(vault, "bisect", "start")


CASES = [
    pytest.param(no_repo, "no-repo", "", "unborn", id="no repository"),
    pytest.param(unborn, "unborn", "", "no-remote", id="nothing committed"),
    pytest.param(unmade, "unmade", "", "ok", id="no HEAD"),
    pytest.param(files_denied, "no-files", "", "ok", id="called bare"),
    pytest.param(detached, "detached", "", "ok", id="detached at a branch"),
    pytest.param(detached_alone, "detached", "", "no-upstream", id="detached and moved on"),
    pytest.param(no_upstream, "no-upstream", "", "ok", id="no upstream"),
    pytest.param(shallow, "shallow", "", "ok", id="shallow"),
    pytest.param(diverged, "diverged", "", "ahead", id="diverged"),
    pytest.param(theirs, "behind", "", "ok", id="behind"),
    pytest.param(ours, "ahead", "", "ok", id="ahead"),
    pytest.param(stale_lock, "stale-lock", "", "ok", id="a stale lock"),
    pytest.param(merge, "mid-operation", "merge", "ahead", id="a merge"),
    pytest.param(bisect, "mid-operation", "bisect", "ok", id="a bisect"),
]


def only_command(text):
    (command,) = re.findall(r"`([^`]+)`", text)
    return command
