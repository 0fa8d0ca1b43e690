"""Git at work beside a daemon: after each operation the index equals the files, and no Git command is held up or failed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import pytest

from syncd.daemon import control_socket
from syncd.git import head_follower
from syncd.git.hooks import HOOKS, install
from syncd.git.repository_state import UNWELL
from tests.support.daemon_process import ROOT, daemon
from tests.support.fakes import fake_embedder
from tests.support.git_states import CASES, with_remote
from tests.support.world import World, until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

WITHIN = 15.0  # seconds after which the index must equal the files
WORD = re.compile(r"\bzq\w+x\b")


class Bench:
    """A vault with a branch of its own changes, and the operations that a person does to it."""

    def __init__(self, git, write, vault):
        self.git, self.write, self.vault = git, write, vault
        self._number = 0
        self.words = set()  # every word that some version of some note ever had

    def note(self, name, word=""):
        """Write the note anew, with a word that no other version has."""
        self._number += 1
        word = word or f"zq{self._number}x"
        self.words.add(word)
        self.write(name, f"# {name}\n\n{word} is what it says now\n")

    def begin(self):
        for name in ("a.md", "b.md", "sub/c ü.md", "sub/d.md"):
            self.note(name)
        self.git("init", "-q", "-b", "main")
        self.commit()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x")

    def steps(self):
        """One operation after the other; what is yielded is its name."""
        git = self.git
        self.note("a.md")
        self.note("new.md")
        self.commit()
        yield "commit"
        git("checkout", "-qb", "side")
        self.note("b.md")
        (self.vault / "sub/d.md").rename(self.vault / "moved.md")
        self.commit()
        yield "commit with a rename"
        git("checkout", "-q", "main")
        yield "checkout"
        git("merge", "-q", "--ff-only", "side")
        yield "merge, fast-forward"
        git("checkout", "-qb", "other", "HEAD~1")
        self.note("other.md")
        self.commit()
        git("checkout", "-q", "main")
        git("merge", "-q", "--no-edit", "other")
        yield "merge, true"
        git("checkout", "-qb", "topic", "HEAD~1")
        self.note("topic.md")
        self.commit()
        git("rebase", "-q", "main")
        yield "rebase"
        git("reset", "-q", "--hard", "HEAD~1")
        yield "reset --hard"
        self.note("a.md")
        self.note("untracked.md")
        git("stash", "-q", "--include-untracked")
        yield "stash"
        git("stash", "pop", "-q")
        yield "stash pop"
        git("checkout", "-q", "--", "a.md")
        yield "checkout of a file"
        self.commit()
        git("checkout", "-qb", "fix", "HEAD~1")
        self.note("fix.md")
        self.commit()
        fix = git("rev-parse", "HEAD").strip()
        git("checkout", "-q", "main")
        git("cherry-pick", fix)
        yield "cherry-pick"
        git("revert", "--no-edit", "HEAD")
        yield "revert"
        git("commit", "-q", "--amend", "-m", "y")
        git("branch", "-q", "-D", "fix")
        yield "amend"

    def true(self, found):
        """Whether a search for any word gives just the notes that have it now."""
        now = {word: [] for word in self.words}
        for file in self.vault.rglob("*.md"):
            for word in WORD.findall(file.read_text()):
                now[word].append(str(file.relative_to(self.vault)))
        self.wrong = {word: (found(word), paths) for word, paths in now.items() if sorted(found(word)) != sorted(paths)}
        return not self.wrong


def converges(bench, found, followed=lambda: True):
    """Go through all operations; the seconds from each one's end until it was followed and the index equalled the files."""
    took = {}
    for step in bench.steps():
        begun = time.monotonic()
        while not (followed() and bench.true(found)):
            assert time.monotonic() < begun + WITHIN, f"after {step}: {bench.wrong}"
            time.sleep(0.02)
        took[step] = time.monotonic() - begun
    return took


@pytest.mark.slow
def test_after_every_operation_the_index_equals_the_files(tmp_path, bundled, models, capsys):
    with daemon(tmp_path, models) as memex:
        bench = Bench(memex.git, memex.write, memex.vault)
        bench.begin()
        memex.serve()
        memex.json("hook", "install")

        def found(word):
            asked = {"query": word, "scope": "vault", "mode": "text"}
            return [hit["path"] for hit in control_socket.call(memex.state, "search", asked)["hits"]]

        took = converges(bench, found)
        told = memex.json("status", "--all")["git"]
        assert (told["state"], told["branch"], told["advice"], sorted(told["hooks"])) == (
            *("no-remote", "main", ""),
            sorted(HOOKS),
        )
        assert memex.git("status", "--porcelain") == ""
        # Git takes emptied folders away, the inbox's only workspace too; that is told, and nothing else is amiss.
        assert [told for told in memex.readyz()["degraded"] if not told.startswith("inbox:")] == []
    with capsys.disabled():
        sys.stderr.write(", ".join(f"{step} {seconds:.1f} s" for step, seconds in took.items()) + "\n")


@pytest.mark.slow
def test_hooks_and_the_poll_alone_keep_the_index_true_when_the_watcher_hears_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(head_follower, "POLL_S", 3.0)
    world = World(tmp_path)
    bench = Bench(world.git, world.write, world.vault)
    bench.begin()
    install(world.app.opened.repo.hooks_folder(), HOOKS, world.state)
    with world.serving():
        world.app.watch.stop()
        until(lambda: world.app.head_follower._state_read_at > 0)  # past the first check
        took = converges(
            bench,
            lambda word: world.found(word, scope="vault", mode="text", limit=50),
            lambda: world.app.head_follower._position == world.app.opened.repo.position(),
        )
    assert world.dump() == world.rebuilt(tmp_path / "again")
    world.close()
    assert len(took) == 13


@pytest.mark.slow
def test_captures_and_searches_work_in_every_state_and_the_owner_is_told_the_way_out(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for number, case in enumerate(CASES):
        make, state, operation, _ = case.values
        folder = tmp_path / str(number)
        folder.mkdir()
        make(with_remote(folder, "vault"))
        world = World(folder)
        with world.serving():
            captured = world.app.agent_access.workspace("default").capture(f"zq{number}x was thought of")
            assert captured.created
            assert world.found(f"zq{number}x", mode="text") == [captured.record.path]
            told = world.app.health.facts()["git"]
            assert (told["state"], told["operation"]) == (state, operation)
            assert re.search(r"`[^`]+`", told["advice"]), state
            until(lambda world=world, state=state: world.app.head_follower.unwell == UNWELL.get(state, ""))
            assert world.app.health.degraded() == ([UNWELL[state]] if state in UNWELL else [])
        world.close()


@pytest.mark.slow
def test_a_lock_held_for_a_while_loses_no_capture_and_the_index_catches_up(tmp_path, monkeypatch):
    monkeypatch.setattr(head_follower, "PATIENCE_S", 3.0)
    monkeypatch.setattr(head_follower, "POLL_S", 0.5)
    root = with_remote(tmp_path, "vault")
    world = World(tmp_path)
    with world.serving():
        world.app.watch.stop()
        until(lambda: world.app.head_follower._state_read_at > 0)  # past the first check
        world.write("n.md", "zq1x is new\n")
        world.git("commit", "-qam", "x")
        lock = root / ".git" / "index.lock"
        lock.write_bytes(b"")
        captured = world.app.agent_access.workspace("default").capture("zq2x was thought of meanwhile")
        assert world.found("zq2x", mode="text") == [captured.record.path]
        assert world.app.health.facts()["git"]["state"] == "locked"
        until(lambda: world.found("zq1x", mode="text") == ["n.md"])  # it does not wait for ever
        assert lock.exists()
        lock.unlink()
        world.write("n.md", "zq3x is newer\n")
        world.git("commit", "-qam", "y")
        until(lambda: world.found("zq3x", mode="text") == ["n.md"])
    world.close()


def added(memex, count=25):
    """What the hooks add to a commit, in milliseconds: the median of commits with them less that of those without."""
    took = {"core.hooksPath=/dev/null": [], "core.abbrev=auto": []}
    for _ in range(count):
        for option, seconds in took.items():  # in turns, so that a busy machine is busy for both
            begun = time.perf_counter()
            memex.git("-c", option, "commit", "-q", "--allow-empty", "-m", "x")
            seconds.append((time.perf_counter() - begun) * 1000)
    without, with_hooks = map(statistics.median, took.values())
    return with_hooks - without


@pytest.mark.slow
def test_a_hook_costs_the_same_whether_the_daemon_is_up_down_or_hung(tmp_path, bundled, models, capsys):
    """Printed: what the hooks add to a commit beside a daemon in each state."""
    with daemon(tmp_path, models) as memex:
        memex.write("n.md", "x\n")
        memex.commit("Begin")
        memex.run("index")  # which sets the vault up
        memex.json("hook", "install")
        took = {"down": added(memex)}
        memex.serve()
        took["up"] = added(memex)
        memex.process.send_signal(signal.SIGSTOP)
        took["hung"] = added(memex)
        memex.process.send_signal(signal.SIGCONT)
        memex.settled()
        assert memex.stop()[0] == 0
    with capsys.disabled():
        sys.stderr.write("the hooks add: " + ", ".join(f"{how} {ms:+.1f} ms" for how, ms in took.items()) + "\n")
    assert max(took.values()) < 100


@pytest.mark.slow
def test_adding_everything_while_captures_are_written_does_not_fail(tmp_path):
    """Without the line that `memex hook install` puts into info/exclude, about every second of these fails."""
    world = World(tmp_path, embedder=fake_embedder())
    world.git("init", "-q", "-b", "main")
    command = [sys.executable, "-m", "syncd.cli", "hook", "install", "--vault", str(world.vault)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--state", str(world.state)], env=environ, check=True, capture_output=True)
    stop, vault, written = threading.Event(), world.app.opened.vault, [0]

    def work():
        while not stop.is_set():
            vault.create(f"Captures/default/n{written[0]}.md", b"x" * 2000)
            written[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        failed = 0
        for added in range(3_000):
            if added >= 150 and written[0] > 150:
                break
            done = subprocess.run(["git", "-C", str(world.vault), "add", "-A"], capture_output=True, check=False)
            failed += done.returncode != 0
    finally:
        stop.set()
        thread.join()
    assert (failed, written[0] > 150) == (0, True)
    world.close()


@pytest.mark.slow
def test_with_a_usual_umask_notes_and_commits_are_as_open_as_a_person_s_and_the_state_is_private(tmp_path, models):
    before = os.umask(0o022)
    try:
        with daemon(tmp_path, models) as memex:
            memex.write("mine.md", "a text\n")
            memex.commit("mine")
            mine = set((memex.vault / ".git").rglob("*"))
            memex.state.chmod(0o755)
            memex.serve()
            memex.capture("herons nest in the reeds")
            memex.run("commit")
            made = set(memex.vault.rglob("*")) - mine
            modes = {(path.is_dir(), oct(path.stat().st_mode & 0o777)) for path in made if ".git" not in path.parts}
            objects = {path for path in made if path.parent.parent.name == "objects" and path.is_file()}
            assert modes == {(True, "0o755"), (False, "0o644")}
            assert {oct(path.stat().st_mode & 0o777) for path in objects} == {"0o444"}
            assert oct(memex.state.stat().st_mode & 0o777) == "0o700"
            secret = [memex.state / name for name in ("key", "ledger.db", "control.token")]
            assert {oct(path.stat().st_mode & 0o777) for path in secret if path.exists()} == {"0o600"}
    finally:
        os.umask(before)
