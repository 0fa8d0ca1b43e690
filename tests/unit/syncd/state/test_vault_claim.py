"""One daemon serves a vault, by whatever path and with whatever state folder."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from index.errors import Conflict
from syncd.state import vault_claim
from syncd.state.vault_claim import VaultClaim, find_holder
from tests.support.paths import ROOT

HOLDER = """
import sys
from pathlib import Path
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import VaultClaim
lock = ProcessLock.acquire(Path(sys.argv[2]))
VaultClaim(Path(sys.argv[1])).require()
print("held", flush=True)
input()
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no names of this kind")


@pytest.fixture
def vault(tmp_path):
    (tmp_path / "vault").mkdir()
    return tmp_path / "vault"


@pytest.fixture(params=[pytest.param(True, marks=linux, id="name"), pytest.param(False, id="lock")])
def way(request, monkeypatch):
    """A name in the kernel, or where there is none a lock on the folder."""
    monkeypatch.setattr(vault_claim, "_BY_NAME", request.param)


@pytest.mark.usefixtures("way")
def test_a_claim_keeps_others_out_by_every_path_and_leaves_nothing_in_the_vault(vault):
    link = vault.parent / "link"
    link.symlink_to(vault)
    one, other = VaultClaim(vault), VaultClaim(link)
    one.require()
    one.require()
    assert other.other_holder() is not None
    with pytest.raises(Conflict, match=r"another state folder.*--force") as refused:
        other.require()
    assert refused.value.details["vault"] == str(link)
    VaultClaim(vault.parent).require()
    assert list(vault.iterdir()) == []
    one.release()
    one.release()
    assert other.other_holder() is None
    other.release()


@pytest.mark.usefixtures("way")
def test_a_released_claim_stays_free_when_somebody_still_asks(vault):
    one, other = VaultClaim(vault), VaultClaim(vault)
    one.require()
    one.release()
    assert one.other_holder() is None
    other.require()
    assert one.other_holder() is None
    other.release()
    assert one.take() is None
    assert other.take() is not None
    one.release()


@pytest.mark.usefixtures("way")
def test_a_claim_follows_the_folder_at_its_path(vault):
    one, two = VaultClaim(vault), VaultClaim(vault.parent / "old")
    one.require()
    vault.rename(vault.parent / "old")
    assert one.other_holder() is None  # a vault that is missing is nobody's
    vault.mkdir()
    assert one.other_holder() is None
    two.require()
    assert VaultClaim(vault).other_holder() is not None
    for claim in (one, two):
        claim.release()


@linux
def test_who_holds_a_claim_is_told_and_its_end_frees_it(vault):
    theirs, another = vault.parent / "state", vault.parent / "another"
    command = [sys.executable, "-c", HOLDER, str(vault), str(theirs)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert find_holder(vault) == holder.pid
        ours = VaultClaim(vault)
        with pytest.raises(Conflict, match=f"process {holder.pid} serves") as refused:
            ours.require(theirs)
        assert refused.value.details["pid"] == holder.pid
        (theirs / "lock").unlink()
        another.mkdir()
        (another / "daemon.json").write_text(f'{{"pid": {holder.pid}}}')  # left by a daemon whose pid was given again
        with pytest.raises(Conflict):
            ours.require(another)
        ours.require(theirs)  # it has lost our state folder, and ends by itself
        assert ours.other_holder() == holder.pid
        holder.kill()
    ours.require()
    ours.release()


@linux
def test_a_claim_keeps_out_a_process_with_other_names_of_the_kernel(vault, monkeypatch):
    here = VaultClaim(vault)
    here.require()
    with monkeypatch.context() as container:
        container.setattr(vault_claim, "_name", lambda inode: f"container:{inode}")
        there = VaultClaim(vault)
        assert there.other_holder() == 0
        with pytest.raises(Conflict, match="another process serves"):
            there.require()
        here.release()
        there.require()
        there.release()


@linux
def test_a_person_may_lock_the_folder_that_is_claimed(vault):
    ours = VaultClaim(vault)
    ours.require()
    folder = os.open(vault, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert ours.other_holder() is None
    assert VaultClaim(vault).other_holder() is not None
    os.close(folder)
    ours.release()


@linux
def test_a_vault_that_can_not_be_read_is_claimed_by_its_name(vault, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "no permission")

    monkeypatch.setattr(os, "open", refuse)
    ours = VaultClaim(vault)
    ours.require()
    ours.release()


@linux
def test_on_a_disk_without_record_locks_the_name_alone_is_the_claim(vault, monkeypatch):
    monkeypatch.setattr(fcntl, "F_OFD_SETLK", -1)
    ours = VaultClaim(vault)
    ours.require()
    assert VaultClaim(vault).other_holder() == os.getpid()
    ours.release()
