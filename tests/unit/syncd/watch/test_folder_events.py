"""What the kernel tells, as it is passed on; and what is done about folders that leave or can't be watched."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
import warnings
from contextlib import closing
from hashlib import sha256

import pytest
from watchdog import events

from syncd.vault.vault import Vault
from syncd.watch.folder_events import FolderEvents, paths_to_check
from tests.support.fast_daemon import somebody_else
from tests.support.until import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


def ignored(path, *, folder=False):
    return any(part.startswith(".") or part.endswith((".tmp", "~")) for part in path.split("/"))


HINTS = [
    pytest.param(events.FileMovedEvent("/v/.t.tmp", "/v/a/n.md"), ["a/n.md"], id="only the end that counts"),
    pytest.param(events.FileMovedEvent("/v/a.md", "/v/b.MD"), ["a.md", "b.MD"], id="both ends"),
    pytest.param(events.DirMovedEvent("/v/a", "/v/b"), ["a", "b"], id="both folders"),
    pytest.param(events.DirDeletedEvent("/v"), [""], id="the root"),
    pytest.param(events.FileCreatedEvent("/vault/a.md"), [], id="another root"),
    pytest.param(events.FileCreatedEvent(b"/v/\xe9/\xe9.md"), [""], id="no Unicode at all"),
    pytest.param(events.FileModifiedEvent("/v/a.png"), [], id="no note"),
    pytest.param(events.FileDeletedEvent("/v/a/.n.md.icloud"), ["a/n.md"], id="a placeholder of iCloud"),
    pytest.param(events.FileDeletedEvent("/v/.trash/.n.md.icloud"), [], id="a placeholder in an ignored folder"),
    pytest.param(events.FileDeletedEvent("/v/.n.png.icloud"), [], id="a placeholder of no note"),
]


@pytest.mark.parametrize(("event", "expected"), HINTS)
def test_an_event_hints_at_paths(event, expected):
    assert list(paths_to_check(event, "/v", ignored)) == expected


def test_files_that_are_wanted_are_hinted_at_too():
    event = events.FileCreatedEvent("/v/Captures/default/a.pdf")
    assert list(paths_to_check(event, "/v", ignored)) == []
    assert list(paths_to_check(event, "/v", ignored, lambda path: path.endswith(".pdf"))) == ["Captures/default/a.pdf"]
    assert list(paths_to_check(events.FileCreatedEvent("/v/.a.pdf"), "/v", ignored, lambda _: True)) == []


class Listening:
    """Ears on `root` that keep what they were told."""

    def __init__(self, root):
        self.paths, self.doubts, self.news = [], [], threading.Condition()
        self.ears = FolderEvents(str(root), self.on_paths, self.doubts.append, ignored)
        (emitter,) = self.ears._observer.emitters
        self.group = emitter.group

    def on_paths(self, paths):
        with self.news:
            self.paths += paths
            self.news.notify_all()

    def hears(self, *paths):
        with self.news:
            assert self.news.wait_for(lambda: set(paths) <= set(self.paths), 20), self.paths[-40:]

    @property
    def watched(self):
        return {os.fsdecode(path) for path in self.group._active_callbacks_by_path}

    @property
    def kept(self):
        """How many watches the kernel keeps for us."""
        return len(self.group._inotify_fd._watch_for_wd)


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "vault"
    (root / "a/deep").mkdir(parents=True)
    (root / "a/n.md").write_text("text")
    return root


@pytest.fixture
def listening(vault):
    heard = Listening(vault)
    yield heard
    heard.ears.close()


@linux
def test_a_folder_that_leaves_is_let_go_and_what_happens_to_it_there_is_not_heard(vault, listening):
    away = vault.parent / "away"
    (vault / "a").rename(away)
    listening.hears("a")
    until(lambda: listening.kept == 1)
    assert listening.watched == {str(vault)}
    (vault / "a").mkdir()
    until(lambda: listening.kept == 2)
    listening.paths.clear()
    (away / "n.md").write_text("outside")
    (away / "deep/m.md").write_text("outside")
    (vault / "a/inside.md").write_text("inside")
    listening.hears("a/inside.md")
    assert set(listening.paths) <= {"a", "a/inside.md"}


@linux
def test_a_placeholder_that_disappears_is_heard_as_its_note(vault, listening):
    """iCloud removes a note that another device deleted, even if this device never downloaded it."""
    (placeholder := vault / "a/.far.md.icloud").write_bytes(b"")
    listening.hears("a/far.md")
    time.sleep(1.0)
    listening.paths.clear()
    placeholder.unlink()
    listening.hears("a/far.md")


@pytest.mark.slow
@linux
@pytest.mark.parametrize("pause", [0, 1.0], ids=["at once", "after a while"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_folder_that_leaves_and_comes_back_is_heard_again(vault, listening, name, pause):
    with warnings.catch_warnings(record=True) as warned:
        for _ in range(3):
            (vault / "a").rename(vault.parent / "away")
            time.sleep(pause)
            (vault.parent / "away").rename(vault / name)
            listening.hears(name)
            listening.paths.clear()
            if name != "a":
                (vault / name).rename(vault / "a")
        back = vault / "a"
        time.sleep(1.0)  # the library waits half a second for the other end of a move
        listening.paths.clear()
        (back / "n.md").write_text("heard")
        (back / "deep/m.md").write_text("heard")
        listening.hears("a/n.md", "a/deep/m.md")
    assert not warned
    assert listening.watched == {str(vault), str(back), str(back / "deep")}
    assert listening.kept == 3


@linux
def test_a_place_that_another_folder_took_and_left_ends_no_thread(vault, listening):
    (vault / "a").rename(vault.parent / "away")
    (vault / "a").mkdir()
    (vault / "a").rmdir()  # before it is known that the first one left for good
    (vault.parent / "away/n.md").unlink()
    (vault.parent / "away/deep").rmdir()
    (vault.parent / "away").rmdir()
    until(lambda: listening.kept == 1)
    (vault / "new.md").write_text("text")
    listening.hears("new.md")
    assert listening.ears.problem() == ""


@linux
def test_a_root_that_is_no_longer_watched_is_broken(vault, listening):
    with listening.group._lock:
        listening.group._remove_callbacks([listening.group._active_callbacks_by_path[os.fsencode(vault)]])
    assert listening.ears.problem() == "the vault's folder is no longer watched"


CLOSED = """
    import os, sys, time
    from syncd.watch.folder_events import FolderEvents
    root, heard, doubts = sys.argv[1], [], []
    for name in ("one", "two"):
        os.mkdir(f"{root}/{name}", 0o000)
    ears = FolderEvents(root, heard.extend, doubts.append, lambda path, folder=False: False)
    print(ears.folder_count, sorted(ears.unwatched), doubts)
    for name in ("one", "two"):
        os.chmod(f"{root}/{name}", 0o700)
    end = time.monotonic() + 60
    while not ears.stirred and time.monotonic() < end:
        time.sleep(0.02)
    ears.watch_missing()
    print(ears.folder_count, sorted(ears.unwatched), bool(doubts))
    open(f"{root}/two/n.md", "w").close()
    while "two/n.md" not in heard and time.monotonic() < end:
        time.sleep(0.02)
    print("two/n.md" in heard)
    ears.close()
    os.chmod(root, 0o300)
    try:
        FolderEvents(root, heard.extend, doubts.append, lambda path, folder=False: False)
    except PermissionError:
        print("refused")
"""


@linux
def test_a_folder_that_may_not_be_read_is_watched_once_it_may(tmp_path):
    run, root = somebody_else(tmp_path)
    done = run(textwrap.dedent(CLOSED), str(root))
    assert done.stdout.splitlines() == ["1 [] []", "3 [] True", "True", "refused"], done.stderr


def test_no_root_no_ears(tmp_path):
    with pytest.raises(FileNotFoundError):
        FolderEvents(str(tmp_path / "none"), print, print, ignored)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        FolderEvents(str(tmp_path / "file"), print, print, ignored)


@linux
def test_only_moves_of_a_temporary_file_are_queued(tmp_path, monkeypatch):
    note = tmp_path / "note.md"
    note.write_text("before")
    listening, queued = Listening(tmp_path), []
    with closing(listening.ears), closing(Vault(tmp_path)) as vault:
        put = listening.group._move_event_grouper.put_event
        monkeypatch.setattr(
            listening.group._move_event_grouper, "put_event", lambda event: (queued.append(event), put(event))
        )
        vault.replace("note.md", b"after", digest=sha256(b"before").hexdigest())
        listening.hears("note.md")
        (tmp_path / "last.md").touch()
        listening.hears("last.md")
    assert {event.ev.name for event in queued if not event.ev.is_moved_from | event.ev.is_moved_to} == {b"last.md"}


@linux
def test_a_save_by_a_rename_is_heard_at_once_even_if_its_first_half_is_seen_alone(tmp_path, monkeypatch):
    listening = Listening(tmp_path)
    with closing(listening.ears):
        grouper, put = listening.group._move_event_grouper, listening.group._move_event_grouper.put_event

        def put_slowly(event):  # the thread that reads the events takes its turn between the two halves
            put(event)
            time.sleep(0.05 if event.ev.is_moved_from else 0)

        monkeypatch.setattr(grouper, "put_event", put_slowly)
        (tmp_path / ".n.md.tmp").write_text("text")
        begun = time.monotonic()
        (tmp_path / ".n.md.tmp").replace(tmp_path / "n.md")
        listening.hears("n.md")
        assert time.monotonic() - begun < grouper.delay


@linux
def test_the_first_half_of_a_move_out_of_the_folder_is_heard_after_a_while(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "n.md").write_text("text")
    listening = Listening(vault)
    with closing(listening.ears):
        begun = time.monotonic()
        (vault / "n.md").rename(tmp_path / "n.md")
        (vault / "m.md").touch()
        listening.hears("n.md", "m.md")
        assert time.monotonic() - begun >= listening.group._move_event_grouper.delay


@linux
def test_the_other_end_of_a_move_is_found_among_many_events_at_once(tmp_path):
    listening = Listening(tmp_path)
    with closing(listening.ears):
        queue = listening.group._move_event_grouper._queue
    for number in range(3_000):
        queue.put(number, delay=True)
    compared = []
    assert queue.remove(lambda event: compared.append(event) or event == 2_999) == 2_999
    assert compared == [2_999]
    assert queue.find(lambda event: event == 0) == 0
    assert queue.remove(lambda event: event == 7) == 7
    assert queue.find(lambda event: event in {7, 2_999}) is None
