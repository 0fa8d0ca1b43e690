"""What is heard of real files, and what is said when not everything can be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from syncd.watch import watcher as watch
from syncd.watch.watcher import Watcher
from tests.support.fast_daemon import alone_with_limits
from tests.support.paths import ROOT
from tests.support.until import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


def ignored(path, *, folder=False):
    return any(part.startswith(".") or part.endswith((".tmp", "~")) for part in path.split("/"))


class Heard:
    """A watch of `root` that keeps what it was told."""

    def __init__(self, root, **options):
        self.paths, self.doubts, self.news = [], [], threading.Condition()
        self.watch = Watcher(root, self.on_paths, self.on_doubt, ignored=ignored, **options)

    def on_paths(self, paths):
        with self.news:
            self.paths += paths
            self.news.notify_all()

    def on_doubt(self, reason):
        with self.news:
            self.doubts.append(reason)
            self.news.notify_all()

    def until(self, condition, seconds=60):
        with self.news:
            assert self.news.wait_for(condition, seconds), (self.paths[-40:], self.doubts)

    def hears(self, *paths):
        self.until(lambda: set(paths) <= set(self.paths))

    def doubts_that(self, words):
        self.until(lambda: any(words in doubt for doubt in self.doubts))

    def recovers(self):
        until(lambda: self.watch.status().state == "ok")

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.watch.stop()


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "My Vault – ü"
    root.mkdir()
    (root / "n.md").write_text("before")
    return root


@pytest.fixture
def heard(vault):
    with Heard(vault) as heard:
        assert heard.watch.status().state == "ok"
        yield heard
        assert (heard.watch.status().state, heard.watch.status().restarts) == ("ok", 0)


def direct(vault):
    (vault / "new.md").write_text("text")
    return ["new.md"]


def truncate_and_write(vault):
    with (vault / "n.md").open("w") as file:
        file.flush()
        time.sleep(0.05)
        file.write("after")
    return ["n.md"]


def temp_and_rename(vault):
    (vault / ".n.md.tmp").write_text("after")
    (vault / ".n.md.tmp").rename(vault / "n.md")
    return ["n.md"]


def vim_with_backup(vault):
    (vault / "4913").write_text("")
    (vault / "4913").unlink()
    (vault / "n.md").rename(vault / "n.md~")
    (vault / "n.md").write_text("after")
    (vault / "n.md~").unlink()
    return ["n.md"]


def folders_and_note(vault):
    (vault / "a/b/c").mkdir(parents=True)
    (vault / "a/b/c/deep.md").write_text("text")
    return ["a/b/c/deep.md"]


def folder_moved_in(vault):
    outside = vault.parent / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "in.md").write_text("text")
    outside.rename(vault / "inside")
    return ["inside", "inside/sub/in.md"]


def copied(vault):
    shutil.copy2(vault / "n.md", vault / "n copy.md")
    return ["n copy.md"]


def renamed(vault):
    (vault / "n.md").rename(vault / "m.md")
    return ["n.md", "m.md"]


def renamed_by_case(vault):
    (vault / "n.md").rename(vault / "N.md")
    return ["n.md", "N.md"]


def deleted(vault):
    (vault / "n.md").unlink()
    return ["n.md"]


def made_readable(vault):
    (vault / "n.md").chmod(0o600)
    return ["n.md"]


SHAPES = [
    direct,
    truncate_and_write,
    temp_and_rename,
    vim_with_backup,
    folders_and_note,
    folder_moved_in,
    copied,
    renamed,
    renamed_by_case,
    deleted,
    made_readable,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_way_to_change_a_note_is_heard(vault, heard, shape):
    heard.hears(*shape(vault))
    assert not [path for path in heard.paths if ignored(path) or "4913" in path]


def test_a_folder_moved_out_is_named_and_what_is_written_in_it_later_is_only_a_hint(tmp_path):
    root = tmp_path / "vault"
    (root / "a").mkdir(parents=True)
    (root / "a" / "n.md").write_text("text")
    with Heard(root) as heard:
        (root / "a").rename(tmp_path / "away")
        heard.hears("a")
        (tmp_path / "away" / "n.md").write_text("outside")
        (root / "a").mkdir()
        (root / "a" / "m.md").write_text("inside again")
        heard.hears("a/m.md")


def test_reading_makes_no_noise_and_neither_do_git_obsidian_and_pictures(vault, heard):
    for folder in (".git/objects", ".obsidian", "pictures"):
        (vault / folder).mkdir(parents=True)
    (vault / ".git/objects/x.md").write_text("an object")
    (vault / ".obsidian/workspace.json").write_text("{}")
    (vault / "pictures/a.png").write_bytes(b"picture")
    (vault / "n.md").read_text()
    (vault / "last.md").write_text("text")
    heard.hears("pictures", "last.md")
    assert set(heard.paths) <= {"", "pictures", "last.md"}


@linux
def test_ignored_folders_are_not_even_watched(tmp_path):
    for folder in (".git/objects/00", "a/b", "a/.trash"):
        (tmp_path / folder).mkdir(parents=True)
    with Heard(tmp_path) as heard:
        (emitter,) = heard.watch._folder_events._observer.emitters
        watched = {
            os.fsdecode(os.path.relpath(path, os.fsencode(tmp_path)))
            for path in emitter.group._active_callbacks_by_path
        }
        assert watched == {".", "a", "a/b"}
        (tmp_path / ".git/objects/01").mkdir()
        (tmp_path / "a/c").mkdir()
        heard.hears("a/c")
        assert len(emitter.group._active_callbacks_by_path) == 4


def test_a_name_that_is_no_unicode_is_reported_by_its_folder(vault, heard):
    (vault / "a").mkdir()
    heard.hears("a")
    heard.paths.clear()
    Path(os.fsdecode(os.fsencode(vault / "a") + b"/caf\xe9.md")).write_text("latin-1")
    (vault / "a" / "日本 🌱\n.md").write_text("any other name is itself")
    heard.hears("a", "a/日本 🌱\n.md")
    assert all(path.encode() for path in heard.paths)


@pytest.mark.slow
def test_a_storm_of_3000_notes_as_a_checkout_makes_it_is_heard_whole(vault, heard):
    for number in range(3000):
        folder = vault / f"{number % 30:02}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.md").write_text("x" * 500)
    expected = {f"{number % 30:02}/{number}.md" for number in range(3000)}
    heard.until(lambda: expected <= set(heard.paths) or heard.doubts, 60)
    assert not heard.doubts


def test_a_listener_that_fails_is_not_the_watcher_s_end(vault, caplog):
    heard = Heard(vault)

    def fail(paths):
        if "bad.md" in paths:
            raise ValueError(paths)
        heard.on_paths(paths)

    heard.watch._on_paths = fail
    with heard:
        (vault / "bad.md").write_text("text")
        heard.doubts_that("could not be handled")
        (vault / "good.md").write_text("text")
        heard.hears("good.md")
    assert "could not handle a file event" in caplog.text


def threads_of(watch):
    """By what each does: reads the kernel's events, sorts them, hands them out."""
    (emitter,) = watch._folder_events._observer.emitters
    return {"reader": watch._folder_events._threads[0], "emitter": emitter, "observer": watch._folder_events._observer}


@linux
@pytest.mark.parametrize("name", ["reader", "emitter", "observer"])
def test_a_dead_thread_is_noticed_and_the_watch_begins_again(vault, name):
    with Heard(vault, poll_s=0.1) as heard:
        before = len(list(Path("/proc/self/fd").iterdir()))
        thread = threads_of(heard.watch)[name]
        thread.stop()
        thread.join()
        heard.doubts_that("restarted")
        heard.recovers()
        until(lambda: heard.watch.status().restarts == 1)
        (vault / "new.md").write_text("text")
        heard.hears("new.md")
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@linux
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_the_library_ends_a_thread_and_not_the_watch(vault):
    with Heard(vault, poll_s=0.1) as heard:
        reader = threads_of(heard.watch)["reader"]
        reader.handle_event = lambda _: 1 / 0
        (vault / "unheard.md").write_text("text")
        heard.doubts_that("restarted")
        heard.recovers()
        (vault / "new.md").write_text("text")
        heard.hears("new.md")


def test_the_supervisor_outlives_its_own_errors(vault, caplog):
    with Heard(vault, mode="poll", poll_s=0.05) as heard:
        heard.watch._repair = lambda: 1 / 0
        until(lambda: "could not check the watcher" in caplog.text)
        del heard.watch._repair
        heard.doubts.clear()
        heard.until(lambda: heard.doubts)


@pytest.mark.parametrize("how", ["deleted", "renamed away", "a link that leads elsewhere"])
def test_a_root_that_was_replaced_is_noticed_and_watched_again(vault, how):
    root = vault
    if how == "a link that leads elsewhere":
        root = vault.parent / "link"
        root.symlink_to(vault)
    with Heard(root, poll_s=0.1) as heard:
        if how == "deleted":
            shutil.rmtree(vault)
        elif how == "renamed away":
            vault.rename(vault.parent / "old")
        else:
            root.unlink()
        until(lambda: "gone or was replaced; Memex keeps trying" in heard.watch.status().problem)
        assert "listed every 0.1 s" in heard.watch.status().problem
        heard.doubts_that("some events may be missing")
        if how == "a link that leads elsewhere":
            (vault.parent / "other").mkdir()
            root.symlink_to(vault.parent / "other")
        else:
            vault.mkdir()
        heard.recovers()
        until(lambda: heard.watch.status().restarts == 1)
        (root / "new.md").write_text("text")
        heard.hears("new.md")


def test_a_vault_that_is_not_there_is_said_and_found_when_it_comes(tmp_path):
    root = tmp_path / "later"
    with Heard(root, poll_s=0.1) as heard:
        assert "the vault's folder is gone or was replaced; Memex keeps trying" in heard.watch.status().problem
        root.mkdir()
        heard.recovers()
        (root / "n.md").write_text("text")
        heard.hears("n.md")


def test_without_events_the_vault_is_to_be_listed_again_and_again(vault):
    with Heard(vault, mode="poll", poll_s=0.05) as heard:
        heard.until(lambda: len(heard.doubts) >= 3)
        hearing = heard.watch.status()
        assert (hearing.state, hearing.problem, hearing.folders) == ("poll", "", 0)
        (vault / "n.md").write_text("changed")
        heard.doubts.clear()
        heard.until(lambda: heard.doubts)
        assert not heard.paths


def test_it_can_be_stopped_twice_and_started_again(vault):
    heard = Heard(vault)
    for name in ("a.md", "b.md"):
        with heard:
            (vault / name).write_text("text")
            heard.hears(name)
        heard.watch.stop()
    assert "not running" in heard.watch.status().problem
    assert not [thread for thread in threading.enumerate() if thread.name == "watch"]


@linux
def test_an_overflow_asks_for_a_listing(vault, heard):
    (emitter,) = heard.watch._folder_events._observer.emitters
    emitter.group.on_queue_overflow()
    heard.doubts_that("dropped file events")
    assert heard.watch.status().overflows == 1
    (vault / "n.md").write_text("still heard")
    heard.hears("n.md")


LIMITED = """
import os, sys, time
from pathlib import Path
from syncd.watch.watcher import Watcher
root, limit, low = Path(sys.argv[1]), Path("/proc/sys/user") / sys.argv[2], sys.argv[3]
heard, doubts = [], []
limit.write_text(low)
watch = Watcher(root, heard.extend, doubts.append, ignored=lambda path, folder=False: False, poll_s=0.1)
watch.start()
hearing = watch.status()
print(hearing.state, hearing.folders, hearing.problem)
def count_descriptors():
    # The fewest of several moments: an attempt to watch a folder opens some for a while.
    counts = []
    for _ in range(10):
        time.sleep(0.05)
        counts.append(len(os.listdir("/proc/self/fd")))
    return min(counts)
fds = count_descriptors()
print("asked to list:", bool(doubts))
print("more descriptors:", count_descriptors() - fds)
limit.write_text("1000")
deadline = time.monotonic() + 60
while watch.status().state != "ok" and time.monotonic() < deadline:
    time.sleep(0.05)
print(watch.status().state, watch.status().folders)
(root / "59/n.md").write_text("text")
while "59/n.md" not in heard and time.monotonic() < deadline:
    time.sleep(0.05)
print("heard:", sorted(set(heard)))
watch.stop()
"""


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    ("limit", "low", "said"),
    [
        pytest.param("max_inotify_watches", "30", "30 not every folder can be watched", id="in a folder"),
        pytest.param("max_inotify_watches", "0", "0 the vault can't be watched (inotify watch limit reached)", id="at the root"),
        pytest.param("max_inotify_instances", "0", "0 the vault can't be watched (inotify instance limit reached)", id="no instance"),
    ],
)  # fmt: skip
def test_beyond_the_limits_of_the_kernel_the_vault_is_polled_until_there_is_room(tmp_path, limit, low, said):
    for number in range(60):
        (tmp_path / f"{number:02}").mkdir()
    command = [*alone_with_limits(), sys.executable, "-c", LIMITED, str(tmp_path), limit, low]
    env = {**os.environ, "PYTHONPATH": "."}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env, check=False)
    lines = result.stdout.splitlines()
    assert len(lines) == 5, result.stderr
    assert lines[0].startswith(f"degraded {said}; raise the limit: sudo sysctl fs.inotify.max_user_")
    assert re.search(r"=\d+; meanwhile the vault is listed every 0.1 s\Z", lines[0])
    assert lines[1:] == ["asked to list: True", "more descriptors: 0", "ok 61", "heard: ['59/n.md']"], result.stderr


MOUNTING = """
import subprocess, sys, time
from pathlib import Path
from syncd.watch import watcher
from syncd.watch.watcher import Watcher
root, heard, doubts = Path(sys.argv[1]), [], []
watch = Watcher(root, heard.extend, doubts.append, ignored=lambda path, folder=False: False, poll_s=0.1)
watch.start()
def wait(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()
time.sleep(0.5)
print(watch.status().restarts, doubts)
subprocess.run(["mount", "-t", "tmpfs", "none", root / "my usb"], check=True)
print(wait(lambda: watch.status().restarts == 1 and doubts == ["the watcher was restarted"]))
(root / "my usb/n.md").write_text("text")
print(wait(lambda: "my usb/n.md" in heard))
watcher.remote_kind = lambda root: "nfs4"
subprocess.run(["umount", root / "my usb"], check=True)
print(wait(lambda: watch.status().restarts == 2), "is on nfs4" in watch.status().problem)
(root / "my usb/below.md").write_text("text")
print(wait(lambda: "my usb/below.md" in heard))
watch.stop()
"""


@linux
def test_a_disk_that_is_mounted_inside_the_vault_is_watched_too(tmp_path):
    (tmp_path / "my usb").mkdir()
    command = ["unshare", "-Urm"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here: nothing can be mounted")
    env = {**os.environ, "PYTHONPATH": "."}
    script = [*command, sys.executable, "-c", MOUNTING, str(tmp_path)]
    result = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, env=env, check=False)
    assert result.stdout.splitlines() == ["0 []", "True", "True", "True True", "True"], result.stderr


def test_a_list_of_mounts_that_can_t_be_read_once_restarts_nothing(vault, monkeypatch):
    usb, disk = ("1", "0:1", "/", "/v/usb", "vfat"), ("2", "0:2", "/", "/v/disk", "ext4")
    lists = [[usb], [usb], None, [usb], [usb, disk]]
    monkeypatch.setattr(watch, "read_mounts_below", lambda _: lists.pop(0))
    watching = Watcher(vault, print, print, ignored=ignored)
    watching._mounts = watch.read_mounts_below(vault)
    assert [bool(watching._find_new_mount()) for _ in range(4)] == [False, False, False, True]


def test_a_file_system_that_others_change_is_listed_too_unless_a_person_says_otherwise(vault, monkeypatch):
    monkeypatch.setattr(watch, "remote_kind", lambda _: "nfs4")
    with Heard(vault, poll_s=0.05) as heard:
        heard.until(lambda: len(heard.doubts) >= 2)
        assert heard.watch.status().state == "degraded"
        assert "is on nfs4" in heard.watch.status().problem
    with Heard(vault, poll_s=0.05, mode="events") as heard:
        assert heard.watch.status().state == "ok"
        (vault / "n.md").write_text("heard all the same")
        heard.hears("n.md")
