"""`memex addfile` as people call it: through a daemon's door and without one; files, folders, patterns, stdin."""

import errno
import io
import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from index.errors import InvalidArgument, Unavailable
from syncd.app import App
from syncd.cli.main import run_command
from syncd.cli.notes import files as files_command
from syncd.daemon.control_socket import ControlServer
from syncd.installation.vault_setup import set_up_vault
from syncd.settings.knowledge_base import KbSettings
from syncd.uploads import local_files
from tests.support.daemon_process import daemon
from tests.support.known_vault import make_default_vault
from tests.support.world import World, settings_of, until

TEXT = b"The filter is due in May.\n"


class Door:
    """A daemon's door on a real App; what its queue is given is read by a stand-in that keeps the bytes."""

    def __init__(self, folder, **sections):
        self.world = World(folder, **sections)
        self.read, self.reasons = {}, {}
        app = self.world.app
        app.worker.register("file", self._file)
        app.worker.start()
        self.server = ControlServer(self.world.state, app.operations)
        self.server.start()

    def _file(self, work):
        name = work.job.given["name"]
        if name in self.reasons:
            raise self.reasons[name]
        self.read[name] = (work.job, work.staged.read_bytes())
        return work.job.planned

    def close(self):
        self.server.stop()
        self.world.app.worker.stop()
        self.world.close()

    @property
    def left(self):
        return sorted(path.name for path in (self.world.state / "uploads").iterdir())


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to stand in, and the environment of a vault."""
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    make_default_vault(monkeypatch, tmp_path / "home", tmp_path / "vault", tmp_path / "state")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def door(tmp_path, here):
    made = Door(tmp_path)
    yield made
    made.close()


@pytest.fixture
def ran(capfd):
    """A command line's exit code, what it tells scripts, and what it says."""

    def run(*words):
        number = run_command(["addfile", *words, "--json"])
        out, err = capfd.readouterr()
        return number, json.loads(out) if out else None, err

    return run


def statuses(told):
    return {Path(one["path"]).name: one["status"] for one in told["files"]}


def test_a_file_is_added_with_what_is_said_of_it(door, here, ran):
    (here / "a b.md").write_bytes(TEXT)
    words = ("a b.md", "--title", "T", "-t", "x y", "--tag", "z", "--collection", "memory", "--namespace", "alpha")
    number, told, _ = ran(*words)
    assert number == 0
    (one,) = told["files"]
    job, data = door.read["a b.md"]
    assert data == TEXT
    assert (one["status"], one["job_id"], one["document_id"]) == ("done", job.id, job.planned)
    assert told["counts"] == {"done": 1}
    assert (job.key, job.workspace, job.author.surface) == ("", "default", "cli")
    wanted = {"title": "T", "tags": ["x-y", "z"], "collection": "memory", "namespace": "alpha", "source": "cli"}
    assert {name: job.given[name] for name in wanted} == wanted
    assert door.left == []


def test_what_people_read_names_each_document_and_counts(door, here, capfd):
    (here / "a.md").write_bytes(TEXT)
    assert run_command(["addfile", "a.md"]) == 0
    out, err = capfd.readouterr()
    job, _ = door.read["a.md"]
    assert out == f"{job.planned}  a.md\n1 added\n"
    assert err == ""


def test_a_folder_is_walked_and_each_file_that_is_left_out_has_its_line(door, here, ran):
    tree = here / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / ".hidden").mkdir()
    for name in ("a.md", "deep/b.txt", "deep/er/c.html", ".secret.md", ".hidden/d.md"):
        (tree / name).write_bytes(name.encode())
    (tree / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tree / "empty.md").write_bytes(b"")
    (tree / "link.md").symlink_to(tree / "a.md")
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "pipe.md")
    number, told, err = ran("tree")
    assert number == 0
    assert set(door.read) == {"a.md", "b.txt", "c.html"}
    assert told["counts"] == {"skipped": 7, "done": 3}
    for name, why in (
        (".secret.md", "hidden"),
        (".hidden", "hidden"),
        ("photo.png", "PNG image"),
        ("empty.md", "empty"),
        ("link.md", "a link"),
        ("loop", "a link"),
        ("pipe.md", "not a regular file"),
    ):
        assert any(name in line and why in line for line in err.splitlines()), name


def test_a_pattern_that_the_shell_left_alone_is_carried_out(door, here, ran):
    for name in ("a.md", "b.md", "c.txt", "[x].md"):
        (here / name).write_bytes(name.encode())
    (here / "deep").mkdir()
    (here / "deep/d.md").write_bytes(b"d")
    assert ran("*.md")[0] == 0
    assert set(door.read) == {"a.md", "b.md", "[x].md"}
    assert ran("**/d.md", "[x].md")[0] == 0  # a file that has the very name is that file
    assert "d.md" in door.read


def test_each_file_is_added_once_however_often_it_is_named(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    os.link(here / "a.md", here / "same.md")
    number, told, _ = ran("a.md", ".", "*.md", str(here / "a.md"))
    assert number == 0
    assert told["counts"] == {"done": 1}


def test_the_same_bytes_under_another_name_are_told_and_left_out(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (here / "b.txt").write_bytes(TEXT)
    number, told, err = ran("a.md", "b.txt")
    assert number == 0
    assert statuses(told) == {"a.md": "done", "b.txt": "same"}
    assert "b.txt: same content as a.md" in err
    assert door.left == []


def test_a_file_that_waits_already_is_waited_for_and_not_added_a_second_time(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (here / "b.md").write_bytes(TEXT[::-1])
    worker = door.world.app.worker
    go = threading.Event()
    worker.register("file", lambda work: go.wait(60) and door._file(work))
    _, first, _ = ran("a.md", "--no-wait")  # as one that was broken off leaves it

    def release():
        until(lambda: len(door.world.app.opened.queue.jobs()) > 1)  # b.md, which comes after a.md
        go.set()

    threading.Thread(target=release, daemon=True).start()
    number, told, _ = ran(".")
    assert number == 0
    assert statuses(told) == {"a.md": "done", "b.md": "done"}
    assert told["files"][0]["job_id"] == first["files"][0]["job_id"]
    assert len(door.world.app.opened.queue.jobs()) == 2
    assert door.left == []


def test_a_file_that_waits_in_another_workspace_is_another_one(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (door.world.vault / "Captures/work").mkdir()
    for workspace in ("default", "work"):
        assert ran("a.md", "--no-wait", "--workspace", workspace)[0] == 0
    assert sorted(job.workspace for job in door.world.app.opened.queue.jobs()) == ["default", "work"]


def test_a_markdown_file_that_became_a_note_is_not_added_again_while_there_is_the_note(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    note = door.world.vault / "Captures/default/Files/a.md"

    def becomes(work):
        note.parent.mkdir(exist_ok=True)
        note.write_text(f"---\nid: {work.job.planned}\n---\n{TEXT.decode()}")
        door.world.run()
        return work.job.planned

    door.world.app.worker.register("file", becomes)
    assert statuses(ran("a.md")[1]) == {"a.md": "done"}
    number, told, err = ran("a.md")
    assert (number, statuses(told)) == (0, {"a.md": "same"})
    assert "same content as Captures/default/Files/a.md" in err
    note.unlink()
    door.world.run()
    assert statuses(ran("a.md")[1]) == {"a.md": "done"}


def test_stdin_needs_a_name_and_stands_alone(door, here, ran, monkeypatch):
    for words in (("-",), ("-", "a.md", "--name", "x.md"), ("a.md", "--name", "x.md")):
        assert ran(*words)[0] == 2

    class Stdin:
        buffer = (here / "piped").open("wb+")

    Stdin.buffer.write(b"<html><p>hi</p></html>")
    Stdin.buffer.seek(0)
    monkeypatch.setattr(sys, "stdin", Stdin)
    number, _, _ = ran("-", "--name", "page.html")
    assert number == 0
    assert door.read["page.html"][1] == b"<html><p>hi</p></html>"


def test_a_dry_run_adds_nothing(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (here / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    number, told, _ = ran(".", "--dry-run")
    assert number == 0
    assert statuses(told) == {"a.md": "found", "b.png": "skipped"}
    assert door.world.app.opened.queue.jobs() == []
    assert door.left == []


class Terminal(io.StringIO):
    """Where somebody sits."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("files", "words", "at", "code", "said"),
    [
        pytest.param(3, [], "y\n", 0, "Add 3 files (4.8 KiB)", id="yes"),
        pytest.param(3, [], "n\n", 130, "nothing was changed", id="no"),
        pytest.param(3, ["--yes"], "", 0, "adding 3 files (4.8 KiB)", id="--yes"),
        pytest.param(2, [], "", 0, "adding 2 files (3.2 KiB)", id="few"),
        pytest.param(3, [], None, 0, "adding 3 files (4.8 KiB)", id="no terminal"),
        pytest.param(3, ["--dry-run"], "", 0, "3 would be added", id="--dry-run"),
    ],
)
def test_a_folder_is_counted_before_it_is_added(door, here, capfd, monkeypatch, files, words, at, code, said):
    monkeypatch.setattr(files_command, "ASK_ABOVE", 2)
    monkeypatch.setattr("sys.stdin", io.StringIO() if at is None else Terminal(at))
    for number in range(files):
        (here / f"{number}.md").write_bytes(b"%d " % number * 820)
    assert run_command(["addfile", ".", *words]) == code
    assert said in (text := "".join(capfd.readouterr()))
    assert ("?" in text) == ("Add" in said or code != 0)
    assert len(door.read) == (0 if code or "--dry-run" in words else files)


def test_without_waiting_the_job_is_told(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    number, told, _ = ran("a.md", "--no-wait")
    assert (number, told["files"][0]["status"], len(told["files"][0]["job_id"])) == (0, "queued", 32)


WRONG = {
    "no such file": (["nothing.md"], 4, "no file or folder 'nothing.md'"),
    "a pattern that fits nothing": (["a.md", "*.nothing"], 4, "no file"),
    "no such workspace": (["a.md", "--workspace", "none"], 4, "no workspace"),
    "no such collection": (["a.md", "--collection", "memos"], 2, "documents"),
    "a namespace that leads out": (["a.md", "--namespace", "../x"], 2, "namespace"),
    "a title of two lines": (["a.md", "--title", "x\ny"], 2, "title"),
    "one title for two": (["a.md", "b.txt", "--title", "x"], 2, "--title works for one file"),
    "nothing but another type": (["b.png"], 2, "no files to add"),
}


def test_a_line_that_is_wrong_adds_nothing(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (here / "b.txt").write_bytes(b"other")
    (here / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for what, (words, number, why) in WRONG.items():
        got, _, err = ran(*words)
        assert (got, why in err) == (number, True), err
        assert door.world.app.opened.queue.jobs() == [], what
        assert door.left == [], what


def test_one_that_can_t_be_read_is_told_and_the_others_are_added(door, here, ran):
    for name in ("a.md", "bad.pdf", "c.txt"):
        (here / name).write_bytes((b"%PDF-" if name == "bad.pdf" else b"") + name.encode())
    door.reasons["bad.pdf"] = InvalidArgument("the file is damaged: it is not a readable PDF file")
    number, told, err = ran(".")
    assert number == 2
    assert statuses(told) == {"a.md": "done", "bad.pdf": "failed", "c.txt": "done"}
    assert "bad.pdf: the file is damaged" in err
    door.reasons["a.md"] = Unavailable("gone", retryable=False)
    (here / "a.md").write_bytes(b"again")
    (here / "bad.pdf").write_bytes(b"%PDF- again")
    number, told, err = ran(".")
    assert "2 of 3 files could not be added" in err


def test_an_empty_path_does_not_mean_the_current_folder(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    for words in ([""], ["a.md", ""]):
        number, told, err = ran(*words)
        assert (number, told) == (2, None)
        assert "a PATH is empty; for the current folder: memex addfile ." in err
    assert door.read == {}
    assert statuses(ran(".")[1]) == {"a.md": "done"}


def test_people_read_the_reason_for_each_file_once(door, here, capfd):
    (here / "a.md").write_bytes(TEXT)
    (here / "bad.pdf").write_bytes(b"%PDF-1")
    door.reasons["bad.pdf"] = InvalidArgument("the file is damaged")
    assert run_command(["addfile", "."]) == 2
    _, bad, end = capfd.readouterr().err.splitlines()
    assert (bad.endswith("bad.pdf: the file is damaged"), end) == (True, "memex: 1 of 2 files could not be added")
    (here / "bad.pdf").write_bytes(b"%PDF-2")
    assert run_command(["addfile", "bad.pdf"]) == 2
    assert capfd.readouterr().err == "memex: bad.pdf: the file is damaged\nmemex: 1 of 1 file could not be added\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read_is_told(door, here, ran):
    (here / "a.md").write_bytes(TEXT)
    (here / "a.md").chmod(0)
    assert ran("a.md")[0] == 3


def test_a_file_that_is_too_large_is_told_before_it_is_copied(tmp_path, here, ran):
    door = Door(tmp_path, kb=KbSettings(max_file=1_000))
    try:
        (here / "big.md").write_bytes(b"x" * 1_001)
        (here / "small.md").write_bytes(b"x" * 1_000)
        number, told, err = ran(".")
        assert (number, statuses(told)) == (6, {"big.md": "failed", "small.md": "done"})
        assert "1,001 bytes; the limit of a file is 1,000" in err
    finally:
        door.close()


def test_a_disk_without_room_stops_and_what_was_queued_is_waited_for(door, here, ran, monkeypatch):
    for name in ("a.md", "b.md", "c.md"):
        (here / name).write_bytes(name.encode())
    monkeypatch.setenv("MEMEX_KB__FREE", str(1 << 60))
    number, told, err = ran(".")
    assert (number, "almost full" in err) == (7, True)
    assert statuses(told) == {"a.md": "failed", "b.md": "skipped", "c.md": "skipped"}
    assert door.left == []


def test_a_file_whose_disk_fails_is_named_and_the_others_are_added(door, here, ran, monkeypatch):
    for name in ("a.md", "b.md", "c.md"):
        (here / name).write_bytes(name.encode())
    opened = local_files.open_file

    @contextmanager
    def failing_later(path):
        with opened(path) as file:
            yield SimpleNamespace(read=fail, fileno=file.fileno) if path.name == "b.md" and seen["b.md"] else file
            seen[path.name] = True

    def fail(_):
        raise OSError(errno.EIO, "Input/output error")

    seen = dict.fromkeys(("a.md", "b.md", "c.md"), False)
    monkeypatch.setattr(local_files, "open_file", failing_later)
    number, told, err = ran(".")
    assert (number, statuses(told)) == (3, {"a.md": "done", "b.md": "failed", "c.md": "done"})
    assert "b.md: can't read the file: Input/output error" in err
    assert door.left == []


def test_the_folder_of_an_unknown_user_is_a_wrong_path(door, here, ran):
    number, _, err = ran("~no-such-user/x")
    assert (number, "there is no file or folder '~no-such-user/x'" in err) == (4, True)


@pytest.mark.parametrize("name", ["a\nb.md", "a\u202eb.md", "caf\udce9.md"])
def test_a_name_that_hides_something_or_is_no_text_is_left_out_with_its_line(door, here, ran, name):
    (here / name).write_bytes(TEXT)
    (here / "good.md").write_bytes(b"good")
    number, told, err = ran(".")
    assert (number, told["counts"]) == (0, {"skipped": 1, "done": 1})
    assert "filename" in err
    assert "\u202e" not in err


def test_one_that_changes_while_it_is_copied_is_not_added(tmp_path):
    (tmp_path / "uploads").mkdir()
    file = tmp_path / "a.md"
    file.write_bytes(b"x" * 3_000_000)
    grown = threading.Event()

    def show(_):
        if not grown.is_set():
            grown.set()
            time.sleep(0.02)
            with file.open("ab") as more:
                more.write(b"more")

    with file.open("rb") as source, pytest.raises(Exception, match="changed while Memex read it"):
        with local_files.staged_copy(source, tmp_path, largest=1 << 30, free=0, show=show):
            pytest.fail("it was handed over")
    assert list((tmp_path / "uploads").iterdir()) == []


def test_without_a_daemon_the_file_is_queued_here(tmp_path, here, ran):
    vault, state = tmp_path / "vault", tmp_path / "state"
    vault.mkdir()
    (here / "a.md").write_bytes(TEXT)
    assert ran("a.md")[0] == 4  # not set up
    set_up_vault(settings_of(vault, state), now=1)
    number, told, _ = ran("a.md", "--no-wait")
    assert number == 0
    with App(settings_of(vault, state)) as app:
        (job,) = app.opened.queue.jobs()
        assert job.id == told["files"][0]["job_id"]
        assert app.opened.queue.staged.find(job.id).read_bytes() == TEXT
        assert list((state / "uploads").iterdir()) == []


def test_the_door_takes_no_file_but_of_its_own_folder(door, here):
    (door.world.state / "uploads" / "x").write_bytes(b"x")
    operation = door.world.app.operations["file.add"]
    given = {"workspace": "default", "name": "a.md"}
    for name in ("../key", "x", "../ledger.db", "", f"{'0' * 8}-0000-0000-0000-{'0' * 12}.file", str(here)):
        with pytest.raises(InvalidArgument):
            operation({**given, "staged": name}, lambda _: None)
    (door.world.state / "uploads" / "x").unlink()


@pytest.mark.slow
def test_files_are_read_with_a_daemon_and_without_one(tmp_path, models, bundled):
    """Processes of their own, and nothing faked: what was added is found by what it says."""
    with daemon(tmp_path, models) as memex:
        memex.run("init", "--yes", str(memex.vault))
        folder = tmp_path / "here"
        folder.mkdir()
        (folder / "one.html").write_text("<html><body><h1>Boiler</h1><p>The pressure valve hisses.</p></body></html>")
        (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (folder / "plain.md").write_text("# Kettle\n\nIt whistles.\n")
        told = memex.json("addfile", str(folder))
        assert told["counts"] == {"skipped": 1, "done": 2}
        assert "valve hisses" in memex.run("get", told["files"][1]["document_id"])
        memex.serve()
        (folder / "two.csv").write_text("part,price\ngasket,4\n")
        told = memex.json("addfile", str(folder))
        assert told["counts"] == {"skipped": 1, "same": 2, "done": 1}
        assert memex.found("gasket", mode="text") == ["Captures/default/Files/two.csv.md"]
        assert memex.json("addfile", str(folder))["counts"] == {"skipped": 1, "same": 3}
        assert (memex.vault / "Captures/default/Files/two.csv").read_text() == "part,price\ngasket,4\n"
