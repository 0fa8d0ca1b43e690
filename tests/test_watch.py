"""What is heard of real files, and what is said when not everything can be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from watchdog import events

from syncd.watch import Watch, hints

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


def ignored(path, *, folder=False):
    return any(part.startswith(".") or part.endswith((".tmp", "~")) for part in path.split("/"))


class Heard:
    """A watch of `root` that keeps what it was told."""

    def __init__(self, root, **options):
        self.paths, self.doubts, self.news = [], [], threading.Condition()
        self.watch = Watch(root, self.on_paths, self.on_doubt, ignored=ignored, **options)

    def on_paths(self, paths):
        with self.news:
            self.paths += paths
            self.news.notify_all()

    def on_doubt(self, reason):
        with self.news:
            self.doubts.append(reason)
            self.news.notify_all()

    def until(self, condition, seconds=20):
        with self.news:
            assert self.news.wait_for(condition, seconds), (self.paths[-40:], self.doubts)

    def hears(self, *paths):
        self.until(lambda: set(paths) <= set(self.paths))

    def doubts_that(self, words):
        self.until(lambda: any(words in doubt for doubt in self.doubts))

    def recovers(self):
        deadline = time.monotonic() + 20
        while self.watch.healthy() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.watch.healthy() == ""

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
        assert heard.watch.healthy() == ""
        yield heard
        assert heard.watch.healthy() == ""


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
        (emitter,) = heard.watch._ears._observer.emitters
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


HINTS = [
    pytest.param(events.FileMovedEvent("/v/.t.tmp", "/v/a/n.md"), ["a/n.md"], id="only the end that counts"),
    pytest.param(events.FileMovedEvent("/v/a.md", "/v/b.MD"), ["a.md", "b.MD"], id="both ends"),
    pytest.param(events.DirMovedEvent("/v/a", "/v/b"), ["a", "b"], id="both folders"),
    pytest.param(events.DirDeletedEvent("/v"), [""], id="the root"),
    pytest.param(events.FileCreatedEvent("/vault/a.md"), [], id="another root"),
    pytest.param(events.FileCreatedEvent(b"/v/\xe9/\xe9.md"), [""], id="no Unicode at all"),
    pytest.param(events.FileModifiedEvent("/v/a.png"), [], id="no note"),
]


@pytest.mark.parametrize(("event", "expected"), HINTS)
def test_an_event_hints_at_paths(event, expected):
    assert list(hints(event, "/v", ignored)) == expected


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
    listen = heard.watch._on_paths

    def fail(paths):
        if "bad.md" in paths:
            raise ValueError(paths)
        listen(paths)

    heard.watch._on_paths = fail
    with heard:
        (vault / "bad.md").write_text("text")
        heard.doubts_that("could not be handled")
        (vault / "good.md").write_text("text")
        heard.hears("good.md")
    assert "a file event was lost" in caplog.text


def test_a_dead_thread_is_noticed_and_the_watch_begins_again(vault):
    with Heard(vault, poll_s=0.1) as heard:
        (emitter,) = heard.watch._ears._observer.emitters
        emitter.stop()
        emitter.join()
        heard.doubts_that("threads have died")
        heard.recovers()
        (vault / "new.md").write_text("text")
        heard.hears("new.md")


@pytest.mark.parametrize("how", ["deleted", "renamed away"])
def test_a_root_that_was_replaced_is_noticed_and_watched_again(vault, how):
    with Heard(vault, poll_s=0.1) as heard:
        shutil.rmtree(vault) if how == "deleted" else vault.rename(vault.parent / "old")
        heard.doubts_that("gone or was replaced")
        assert "listed every 0.1 s" in heard.watch.healthy()
        vault.mkdir()
        heard.recovers()
        (vault / "new.md").write_text("text")
        heard.hears("new.md")


def test_a_vault_that_is_not_there_is_said_and_found_when_it_comes(tmp_path):
    root = tmp_path / "later"
    with Heard(root, poll_s=0.1) as heard:
        assert "can't be watched (No such file or directory)" in heard.watch.healthy()
        root.mkdir()
        heard.recovers()
        (root / "n.md").write_text("text")
        heard.hears("n.md")


def test_without_events_the_vault_is_to_be_listed_again_and_again(vault):
    with Heard(vault, mode="poll", poll_s=0.05) as heard:
        heard.until(lambda: len(heard.doubts) >= 3)
        assert heard.watch.healthy() == "file events are switched off: the vault is listed every 0.05 s"
        assert not heard.paths


def test_switched_off_it_says_so(vault):
    with Heard(vault, mode="off") as heard:
        assert "switched off" in heard.watch.healthy()


def test_it_can_be_stopped_twice_and_started_again(vault):
    heard = Heard(vault)
    for name in ("a.md", "b.md"):
        with heard:
            (vault / name).write_text("text")
            heard.hears(name)
        heard.watch.stop()
    assert "not running" in heard.watch.healthy()
    assert not [thread for thread in threading.enumerate() if thread.name == "watch"]


@linux
def test_an_overflow_asks_for_a_listing(vault, heard):
    (emitter,) = heard.watch._ears._observer.emitters
    emitter.group.on_queue_overflow()
    heard.doubts_that("dropped file events")
    (vault / "n.md").write_text("still heard")
    heard.hears("n.md")


LIMITED = """
import sys, time
from pathlib import Path
from syncd.watch import Watch
limit = Path("/proc/sys/user/max_inotify_watches")
root, doubts = Path(sys.argv[1]), []
limit.write_text(sys.argv[2])
watch = Watch(root, lambda paths: None, doubts.append, ignored=lambda path, folder=False: False, poll_s=0.1)
watch.start()
print("limited:", watch.healthy())
time.sleep(0.5)
print("asked to list:", bool(doubts))
limit.write_text("1000")
deadline = time.monotonic() + 20
while watch.healthy() and time.monotonic() < deadline:
    time.sleep(0.05)
print("raised:", watch.healthy() or "fine")
watch.stop()
"""


@linux
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        pytest.param("30", "31 folders can't be watched", id="in a folder"),
        pytest.param("0", "the vault can't be watched (inotify watch limit reached)", id="at the root"),
    ],
)
def test_folders_beyond_the_limit_of_watches_are_polled_until_there_is_room(tmp_path, limit, said):
    command = ["unshare", "-Ur", sys.executable, "-c", LIMITED, str(tmp_path), limit]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-Ur", "true"], check=False).returncode:
        pytest.skip("no user namespaces here: the limit can't be lowered")
    for number in range(60):
        (tmp_path / f"{number:02}").mkdir()
    root = Path(__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": "."}
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, env=env, check=False)
    if "Read-only file system" in result.stderr or "Permission denied" in result.stderr:
        pytest.skip("the limit of watches can't be lowered here")
    assert result.stdout.splitlines() == [
        f"limited: {said}"
        + (" (is fs.inotify.max_user_watches too low?)" if limit != "0" else "")
        + ": the vault is listed every 0.1 s",
        "asked to list: True",
        "raised: fine",
    ], result.stderr
