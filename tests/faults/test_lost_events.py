"""Nothing makes the daemon deaf: each way to lose an event, done to a real process, on real files, with real limits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from index.errors import MemexError
from syncd.settings.automation import WatchSettings
from syncd.watch import watcher
from tests.support.fast_daemon import Daemon, alone_with_limits
from tests.support.world import World, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path) as one:
        yield one
        assert one.process.poll() is None, one.log.read_text()
        said = one.log.read_text()
        assert one.stop() == 0, said
        assert "Traceback" not in said, said
        assert "RuntimeWarning" not in said, said


# The queue of the kernel overflows


def overflown(daemon: Daemon, notes: int, noise: int) -> float:
    """Write while the daemon sleeps, more than the kernel keeps; the seconds from its waking until all is found."""
    daemon.write("First.md", "the first harrier\n")
    until(lambda: daemon.found("harrier") == ["First.md"])
    for number in range(200):
        (daemon.vault / f"n/{number:03}").mkdir(parents=True)
    until(lambda: daemon.status("watch", "folders") == 204)
    daemon.signal(signal.SIGSTOP)
    for number in range(noise):
        daemon.write(f"n/{number}.png", "")
    for number in range(notes):
        daemon.write(f"n/{number % 200:03}/{number}.md", f"note {number} of the harrier, word{number}x\n")
    (daemon.vault / "First.md").unlink()
    daemon.signal(signal.SIGCONT)
    since = time.monotonic()
    until(lambda: time.sleep(notes / 20_000) or daemon.status("vault", "documents") == notes, 300)
    took = time.monotonic() - since
    daemon.settled()
    hearing = daemon.status("watch")
    assert hearing["overflows"] >= 1
    assert (hearing["state"], hearing["restarts"]) == ("ok", 0)
    assert hearing["folders"] == len([path for path in daemon.vault.rglob("*") if path.is_dir()]) + 1
    for number in (0, notes // 2, notes - 1):
        assert daemon.found(f"word{number}x") == [f"n/{number % 200:03}/{number}.md"]
    daemon.write("n/000/0.md", "heard again, a hobby\n")
    until(lambda: daemon.found("hobby") == ["n/000/0.md"])
    assert daemon.status("degraded") == []
    return took


@pytest.mark.slow
@linux
def test_more_events_than_the_kernel_keeps_lose_no_note(daemon):
    overflown(daemon, 300, 9_000)


@linux
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_thousand_notes_written_while_the_daemon_was_stopped_are_found(daemon):
    took = overflown(daemon, 20_000, 0)
    print(f"20,000 notes after an overflow: all found in {took:.0f} s")  # noqa: T201 - a figure for who asks with -s


# The kernel's limits


LIMIT = "/proc/sys/user/"


def within(daemon: Daemon, limit: str, value: int) -> None:
    """Change a limit in the daemon's own namespace."""
    command = ["nsenter", "--preserve-credentials", "-U", "-t", str(daemon.process.pid), "sh", "-c"]
    subprocess.run([*command, f"echo {value} > {LIMIT}{limit}"], check=True)


@linux
@pytest.mark.parametrize(
    ("limit", "low", "watched"),
    [
        pytest.param("max_inotify_watches", 30, 30, id="in folders"),
        pytest.param("max_inotify_watches", 0, 0, id="at the root", marks=pytest.mark.slow),
        pytest.param("max_inotify_instances", 0, 0, id="no instance at all", marks=pytest.mark.slow),
    ],
)
def test_beyond_a_limit_edits_in_every_folder_are_found_and_events_are_back_once_there_is_room(
    tmp_path, limit, low, watched
):
    if not shutil.which("nsenter"):
        pytest.skip("nsenter is missing: the limit can't be raised again from outside")
    for number in range(60):
        (tmp_path / f"vault/{number:02}").mkdir(parents=True)
    before = [*alone_with_limits(), "sh", "-c", f'echo {low} > {LIMIT}{limit}; exec "$@"', "sh"]
    with Daemon(tmp_path, poll_s=1.0, before=before) as daemon:
        hearing = daemon.status("watch")
        assert (hearing["state"], hearing["folders"]) == ("degraded", watched)
        assert "sudo sysctl fs.inotify.max_user_" in hearing["problem"]
        assert any(told.startswith("watch: ") for told in daemon.status("degraded"))
        for number in range(60):
            daemon.write(f"{number:02}/n.md", f"the merlin of folder {number:02}\n")
        until(lambda: daemon.status("vault", "documents") == 60, 20)
        daemon.write("59/n.md", "a kestrel now\n")
        until(lambda: daemon.found("kestrel") == ["59/n.md"], 20)
        within(daemon, limit, 1000)
        until(lambda: daemon.status("watch", "state") == "ok", 20)
        assert daemon.status("watch", "folders") >= 61  # with the inbox
        assert daemon.status("degraded") == []
        since = time.monotonic()
        daemon.write("58/n.md", "a falcon now\n")
        until(lambda: daemon.found("falcon") == ["58/n.md"], 20)
        assert time.monotonic() - since < 10
        assert daemon.stop() == 0


# What runs in the daemon, without a process of its own: a thread can't be ended from outside


@pytest.mark.slow
@linux
@pytest.mark.parametrize("which", [0, 1, 2], ids=["reads the kernel", "hands out", "sorts"])
def test_a_dead_thread_costs_no_edit_and_is_counted(tmp_path, monkeypatch, which):
    monkeypatch.setattr(watcher, "CHECK_S", 0.2)
    world = World(tmp_path)
    world.write("a.md", "a stint\n")
    with world.serving():
        world.settled()
        thread = world.app.watch._folder_events._threads[which]
        thread.stop()
        thread.join()
        world.write("b.md", "a stint that nobody heard of\n")
        until(lambda: len(world.found("stint", mode="text")) == 2)
        until(lambda: world.app.health.facts()["watch"]["restarts"] == 1)
        assert world.app.health.facts()["watch"]["state"] == "ok"
        assert not world.app.health.degraded()
        world.write("c.md", "a stint that is heard of again\n")
        until(lambda: len(world.found("stint", mode="text")) == 3)
    world.close()


def test_a_person_may_do_without_events(tmp_path):
    world = World(tmp_path, watch=WatchSettings(mode="poll", poll_s=0.2))
    with world.serving():
        world.settled()
        world.write("deep/er/a.md", "a stint\n")
        until(lambda: world.found("stint", mode="text") == ["deep/er/a.md"])
        assert world.app.health.facts()["watch"]["state"] == "poll"
        assert not world.app.health.degraded()
    world.close()
    world.reopen()
    assert world.app.health.facts()["watch"] == {
        "state": "off",
        "problem": "",
        "folders": 0,
        "overflows": 0,
        "restarts": 0,
    }
    world.close()


# The root


@pytest.mark.slow
def test_a_root_that_is_gone_is_said_at_once_and_its_index_kept(daemon, tmp_path):
    for number in range(25):
        daemon.write(f"n/{number}.md", f"pipit {number}\n")
    until(lambda: len(daemon.found("pipit")) == 25)
    aside = tmp_path / "aside"
    since = time.monotonic()
    daemon.vault.rename(aside)
    until(lambda: any("vault missing" in told for told in daemon.status("degraded")))
    assert time.monotonic() - since < 10
    assert len(daemon.found("pipit")) == 25
    assert daemon.status("watch", "state") == "degraded"
    with pytest.raises(MemexError, match="missing or was replaced"):
        daemon.ask("capture", content="nowhere to put it")
    # What is written by the old name of an open folder is not taken for the vault.
    (aside / "n/0.md").write_text("meadow pipit\n")
    (aside / "n/1.md").unlink()
    assert not daemon.vault.exists()
    # An empty folder is where a disk that is not there would be mounted.
    daemon.vault.mkdir()
    with pytest.raises(MemexError, match="is missing"):
        daemon.ask("index")  # no pass is made, so no absence is believed
    assert any("vault missing" in told for told in daemon.status("degraded"))
    assert len(daemon.found("pipit")) == 25
    assert daemon.status("removals_held") == 0
    daemon.vault.rmdir()
    aside.rename(daemon.vault)
    until(lambda: daemon.status("degraded") == [], 20)
    until(lambda: len(daemon.found("pipit")) == 24)
    assert daemon.found("meadow") == ["n/0.md"]
    assert list(daemon.vault.rglob("nowhere*")) == []
    assert daemon.status("watch", "state") == "ok"
    daemon.write("n/2.md", "heard again, a hobby\n")
    until(lambda: daemon.found("hobby") == ["n/2.md"])


@pytest.mark.slow
def test_another_folder_in_the_root_s_place_is_the_vault_and_the_old_one_is_not(daemon, tmp_path):
    daemon.write("Old.md", "the old ouzel\n")
    until(lambda: daemon.found("ouzel") == ["Old.md"])
    other, aside = tmp_path / "other", tmp_path / "aside"
    (other / "Captures/default").mkdir(parents=True)
    (other / "New.md").write_text("the new ouzel\n")
    daemon.vault.rename(aside)
    other.rename(daemon.vault)
    (aside / "Old.md").write_text("written in the old tree, a dotterel\n")
    (aside / "More.md").write_text("written in the old tree, a dotterel\n")
    until(lambda: daemon.found("ouzel") == ["New.md"], 20)
    path = daemon.ask("capture", content="into the new tree")["path"]
    assert (daemon.vault / path).exists()
    assert not (aside / path).exists()
    daemon.write("Newer.md", "the newer ouzel\n")
    until(lambda: daemon.found("ouzel") == ["New.md", "Newer.md"], 20)
    daemon.settled()
    assert daemon.found("dotterel") == []
    until(lambda: daemon.status("watch", "state") == "ok")
    assert daemon.status("watch", "restarts") >= 1
    assert daemon.status("degraded") == []


@pytest.mark.slow
def test_a_root_that_is_deleted_and_made_again_is_watched_again(daemon):
    daemon.write("a.md", "the first crake\n")
    until(lambda: daemon.found("crake") == ["a.md"])
    shutil.rmtree(daemon.vault)
    daemon.vault.mkdir()
    daemon.write("b.md", "the second crake\n")
    until(lambda: daemon.found("crake") == ["b.md"], 30)
    until(lambda: daemon.status("watch", "state") == "ok")
    since = time.monotonic()
    daemon.write("c.md", "the third crake\n")
    until(lambda: daemon.found("crake") == ["b.md", "c.md"])
    assert time.monotonic() - since < 10


# The shapes of a save, and folders that come and go


def direct(daemon, path, text):
    daemon.write(path, text)


def truncated(daemon, path, text):
    with (daemon.vault / path).open("w") as file:
        file.flush()
        os.fsync(file.fileno())
        time.sleep(0.6)  # longer than a note must be quiet
        file.write(text)


def replaced(daemon, path, text):
    daemon.write(f"{path}.tmp", text).replace(daemon.vault / path)


def replaced_from_hidden(daemon, path, text):
    daemon.write(f".{path}.swx", text).replace(daemon.vault / path)


def as_vim(daemon, path, text):
    file = daemon.vault / path
    daemon.write("4913", "").unlink()
    file.rename(daemon.vault / f"{path}~")
    file.write_text(text)
    (daemon.vault / f"{path}~").unlink()


def swapped(daemon, path, text):
    """As macOS programs save: the new one beside it, the old one away, the new one in."""
    daemon.write(f"{path}.sb-1234", text)
    (daemon.vault / path).rename(daemon.vault / f".{path}.old")
    (daemon.vault / f"{path}.sb-1234").rename(daemon.vault / path)
    (daemon.vault / f".{path}.old").unlink()


def in_pieces(daemon, path, text):
    with (daemon.vault / path).open("w") as file:
        for letter in text:
            file.write(letter)
            file.flush()


def removed_and_made(daemon, path, text):
    (daemon.vault / path).unlink()
    time.sleep(1.0)  # a sync program fetches it meanwhile
    daemon.write(path, text)


SAVES = [direct, truncated, replaced, replaced_from_hidden, as_vim, swapped, in_pieces, removed_and_made]


@pytest.mark.slow
def test_every_way_to_save_is_found_with_its_last_text_and_leaves_no_ghost(daemon):
    for way in SAVES:
        daemon.write(f"{way.__name__}.md", f"the old bunting of {way.__name__}\n")
    names = sorted(f"{way.__name__}.md" for way in SAVES)
    until(lambda: daemon.found("old bunting") == names)
    ids = {name: daemon.ask("get", id=name)["id"] for name in names}
    daemon.settled()
    for way in SAVES:
        before = daemon.status("generation")
        way(daemon, f"{way.__name__}.md", f"the new linnet of {way.__name__}\n")
        until(lambda way=way: f"{way.__name__}.md" in daemon.found("linnet"))
        daemon.settled()
        assert daemon.status("generation") - before <= 2, way  # once; twice if the pipe looked in the middle
    assert daemon.found("linnet") == names
    assert daemon.found("bunting") == []
    assert daemon.status("vault", "documents") == len(SAVES)
    assert {name: daemon.ask("get", id=name)["id"] for name in names} == ids
    assert daemon.status("defects") == []
    assert daemon.ask("index")["added"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 3])
def test_folders_that_are_made_moved_in_copied_and_moved_out_are_followed(daemon, tmp_path, turns):
    outside = tmp_path / "outside"
    (outside / "in").mkdir(parents=True)
    (outside / "in/Moved.md").write_text("a shrike from outside\n")
    daemon.write("a/b/c/d/Made.md", "a shrike in new folders\n")
    outside.rename(daemon.vault / "came")
    until(lambda: daemon.found("shrike") == ["a/b/c/d/Made.md", "came/in/Moved.md"])
    shutil.copytree(daemon.vault / "came", daemon.vault / "copy")
    until(lambda: len(daemon.found("shrike")) == 3)
    (daemon.vault / "a").rename(daemon.vault / "came/a")
    until(lambda: "came/a/b/c/d/Made.md" in daemon.found("shrike") and len(daemon.found("shrike")) == 3)
    for turn in range(turns):  # out and in again, with edits on both sides
        (daemon.vault / "came").rename(outside)
        (outside / "in/Moved.md").write_text(f"a wryneck outside {turn}\n")
        (outside / "in/More.md").write_text(f"a wryneck outside {turn}\n")
        until(lambda: daemon.found("shrike") == ["copy/in/Moved.md"])
        daemon.write("came/in/Moved.md", f"a siskin of the same name {turn}\n")
        until(lambda: daemon.found("siskin") == ["came/in/Moved.md"])
        (outside / "in/Moved.md").write_text(f"a wryneck outside again {turn}\n")
        daemon.settled()
        assert daemon.found("wryneck") == []
        shutil.rmtree(daemon.vault / "came")
        (outside / "in/More.md").unlink()
        (outside / "in/Moved.md").write_text("a shrike from outside\n")
        outside.rename(daemon.vault / "came")
        until(lambda: len(daemon.found("shrike")) == 3)
        daemon.write("came/in/Moved.md", "a shrike, edited inside\n")
        until(lambda: daemon.found("edited inside") == ["came/in/Moved.md"])
    daemon.settled()
    assert daemon.found("siskin") == []
    assert daemon.status("vault", "documents") == 3
    folders = [path for path in daemon.vault.rglob("*") if path.is_dir()]
    assert daemon.status("watch", "folders") == len(folders) + 1
    assert daemon.ask("index", full=True)["added"] == 3


@pytest.mark.slow
def test_a_name_that_changes_its_case_or_form_only_is_followed(daemon):
    daemon.write("Folder/Note.md", "a brambling\n")
    until(lambda: daemon.found("brambling") == ["Folder/Note.md"])
    for old, new, path in [
        ("Folder/Note.md", "Folder/note.md", "Folder/note.md"),
        ("Folder", "folder", "folder/note.md"),
        ("folder/note.md", "folder/caf\u00e9.md", "folder/caf\u00e9.md"),
        ("folder/caf\u00e9.md", "folder/cafe\u0301.md", "folder/cafe\u0301.md"),
    ]:
        (daemon.vault / old).rename(daemon.vault / new)
        until(lambda path=path: daemon.found("brambling") == [path])
    daemon.settled()
    assert daemon.status("vault", "documents") == 1
    assert daemon.status("names", "twins") == []


@pytest.mark.slow
def test_what_sync_programs_leave_is_named_and_removes_nothing(daemon):
    daemon.write("Plan.md", "the plan of the godwit\n")
    daemon.write("Plan.sync-conflict-20261120-143205-ABCDEF7.md", "another plan of the godwit\n")
    daemon.write("Plan (Ada's conflicted copy 2026-11-20).md", "a third plan of the godwit\n")
    daemon.write(".syncthing.Plan.md.tmp", "a passing plan of the godwit\n")
    daemon.write("~syncthing~Plan.md.tmp", "a passing plan of the godwit\n")
    daemon.write("Gone.md", "no plan of the godwit\n")
    until(lambda: len(daemon.found("godwit")) == 4)
    assert daemon.status("names", "conflict_copies") == [
        "Plan (Ada's conflicted copy 2026-11-20).md",
        "Plan.sync-conflict-20261120-143205-ABCDEF7.md",
    ]
    (daemon.vault / "Plan.md").rename(daemon.vault / ".Plan.md.icloud")
    until(lambda: daemon.status("names", "placeholders") == ["Plan.md"])
    (daemon.vault / "Gone.md").unlink()
    until(
        lambda: "Gone.md" not in daemon.found("godwit")
    )  # a deletion is believed after a while, and one before it first
    assert len(daemon.found("godwit")) == 3


# What only a look at the bytes can tell


@pytest.mark.slow
def test_a_deep_check_by_hand_finds_what_no_event_told(daemon, tmp_path):
    for number in range(50):
        daemon.write(f"{number}.md", f"ruff number {number:02}\n")
    until(lambda: len(daemon.found("ruff")) == 50)
    daemon.settled()
    file, outside = daemon.vault / "7.md", tmp_path / "outside.md"
    was = file.stat()
    os.link(file, outside)  # of what is written by a name outside the vault no event tells
    outside.write_text("knot number 07\n")
    os.utime(outside, ns=(was.st_atime_ns, was.st_mtime_ns))
    daemon.ask("index")
    daemon.settled()
    assert daemon.found("knot") == []
    report = daemon.ask("check")
    assert (report["checked"], report["mended"]) == (50, 1)
    assert daemon.found("knot") == ["7.md"]
    assert daemon.status("deep_check", "mended") == 1


@pytest.mark.slow
def test_a_second_daemon_on_one_vault_that_is_wanted_is_told(daemon, tmp_path):
    with Daemon(tmp_path, state=tmp_path / "other") as second:
        told = [one for state in (daemon, second) for one in state.status("degraded")]
        pid = daemon.process.pid
        assert told == [f"vault: process {pid} also serves it, with another state folder; stop one of the two"]
        assert Path(second.vault) == daemon.vault
        assert second.stop() == 0
    assert daemon.status("degraded") == []


@pytest.mark.slow  # what a lock says of its successor is in unit/syncd/state/test_process_lock.py
def test_a_daemon_that_was_replaced_while_it_slept_ends_when_it_wakes(tmp_path):
    with Daemon(tmp_path) as stale:
        stale.signal(signal.SIGSTOP)
        (stale.state / "lock").unlink()
        with Daemon(tmp_path) as second:
            url = (second.state / "daemon.json").read_text()
            stale.signal(signal.SIGCONT)
            assert stale.process.wait(20) == os.EX_UNAVAILABLE
            assert f"process {second.process.pid} has replaced this daemon" in stale.log.read_text()
            assert (second.state / "daemon.json").read_text() == url
            assert second.status("degraded") == []
            assert second.stop() == 0
