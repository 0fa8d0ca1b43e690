"""When the vault and its remote are exchanged, and when a failure is tried again."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
import types

import pytest

from index.errors import Conflict, Unavailable
from syncd.remote import branch_sync as remote
from syncd.remote.upstream_branch import fetch
from tests.support.git_states import intercept, run

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


@pytest.mark.slow
def test_failures_are_tried_again_ever_less_often_and_a_push_elsewhere_at_once(device, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    device.remote = device.made(pull_s=10.0)
    away = device.bare.with_name("away")
    device.bare.rename(away)
    tries = []
    monkeypatch.setattr(remote, "fetch", lambda *given, **how: (tries.append(now[0]), fetch(*given, **how)))
    for _ in range(3_000):
        device.remote.tick()
        now[0] += 10.0
    gaps = [b - a for a, b in itertools.pairwise(tries)]
    assert gaps[:8] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    away.rename(device.bare)
    device.there("theirs.md", "theirs\n")
    device.remote.notify_push()
    device.remote.tick()
    assert "theirs.md" in device.files()
    assert device.remote.problem == ""


def clock(now):
    """The module `time`, whose clock stands still."""
    return types.SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns)


def test_by_default_nothing_is_exchanged_until_somebody_asks(device, monkeypatch):
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    before = device.files()
    device.remote.tick()
    assert device.files() == before
    device.remote.notify_push()
    device.remote.tick()
    assert "theirs.md" in device.files()
    assert device.head(device.bare, "main") != device.head()  # what was announced is pulled; nothing is pushed


def test_with_the_setting_what_is_committed_is_pushed(device):
    device.remote = device.made(push=True)
    device.here("ours.md", "ours\n")
    device.remote.tick()
    assert device.head(device.bare, "main") == device.head()
    sent = device.remote.facts()["pushed_at"]
    device.remote.tick()
    assert device.remote.facts()["pushed_at"] == sent


def test_what_was_asked_for_once_and_failed_is_done_by_itself_later(device, monkeypatch, caplog):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    away = device.bare.with_name("away")
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    device.bare.rename(away)
    with pytest.raises(Unavailable):
        device.remote.sync()
    assert caplog.text == "", "who asked is told; the log is for what nobody asked for"
    away.rename(device.bare)
    device.remote.tick()
    assert device.remote.problem
    now[0] += 60
    device.remote.tick()
    assert (device.remote.problem, device.head(device.bare, "main")) == ("", device.head())
    assert "theirs.md" in device.files()


def test_a_push_is_announced_and_there_is_no_remote_so_the_vault_is_looked_at(device):
    run(device.vault, "remote", "remove", "origin")
    device.remote.notify_push()
    device.remote.tick()
    assert device.calls == ["untied"]
    assert device.remote.problem == ""


@pytest.mark.parametrize("state", ["detached", "broken", "mid-operation"])
def test_without_a_remote_no_state_of_the_repository_makes_a_failed_sync(device, state):
    run(device.vault, "remote", "remove", "origin")
    break_off(device.vault, state)
    with pytest.raises(Conflict):
        device.remote.sync()
    assert (device.remote.problem, device.remote.unwell) == ("", "")


def break_off(vault, state):
    """Bring the repository into this state; what brings it back."""
    file = vault / ".git/HEAD"
    before = file.read_text()
    match state:
        case "detached":
            run(vault, "switch", "--detach", "--quiet")
        case "broken":
            file.write_text("ref: refs/heads/nowhere\n")
            (vault / ".git/refs/heads/nowhere").write_text("f" * 40 + "\n")
        case _:
            file = vault / ".git/CHERRY_PICK_HEAD"
            run(vault, "update-ref", "CHERRY_PICK_HEAD", "HEAD")
            return file.unlink
    return lambda: file.write_text(before)


@pytest.mark.parametrize("state", ["detached", "mid-operation"])
def test_a_failed_sync_ends_soon_after_the_state_that_caused_it(device, monkeypatch, state):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    end = break_off(device.vault, state)
    with pytest.raises(Conflict):
        device.remote.sync()
    for _ in range(12):  # with longer and longer pauses
        now[0] += 600
        device.remote.tick()
    assert device.remote.problem
    end()
    now[0] += 6
    device.remote.tick()
    assert device.remote.problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["the disk", "symbolic-ref", "for-each-ref"])
def test_a_push_that_was_announced_while_the_system_failed_is_pulled_later(device, tmp_path, monkeypatch, fails):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    device.there("theirs.md", "theirs\n")
    device.remote.notify_push()
    with monkeypatch.context() as failing:
        if fails == "the disk":
            shutil.rmtree(device.state)  # the journal can't be written
        else:
            intercept(failing, tmp_path, fails, "exit 128")
        with contextlib.suppress(OSError):
            device.remote.tick()
    assert "theirs.md" not in device.files() and device.remote.problem
    device.state.mkdir(exist_ok=True)
    now[0] += 60
    device.remote.tick()
    assert "theirs.md" in device.files()


def test_an_error_of_the_system_is_a_problem_of_the_sync(device, monkeypatch):
    device.there("theirs.md", "theirs\n")
    shutil.rmtree(device.state)  # the journal can't be written
    with pytest.raises(Unavailable, match="No such file or directory"):
        device.remote.sync()
    assert (device.remote.unwell, "No such file" in device.remote.problem) == (remote.UNREACHED, True)
    device.state.mkdir()
