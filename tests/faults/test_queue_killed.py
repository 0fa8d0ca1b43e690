"""Each queued note becomes one document, wherever the daemon is killed and whatever its owner does before the next start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from syncd.history.audit_log import Author
from tests.support.fast_daemon import ROOT, Daemon
from tests.support.world import World, settings_of, until

# Where a job may be when its process dies. `written`: the file is there and the index does not know it.
PLACES = ("queued", "running", "logged", "written", "indexed", "tagged")
AFTER = ("deleted", "moved", "promoted")  # what the owner does to the note before the next start, if it is there
CASES = [*((place, "nothing") for place in PLACES), *((place, after) for place in PLACES[3:] for after in AFTER)]
TEXT = "a note of the killed oystercatcher"


class Died(BaseException):
    """The process has come to an end, as far as what runs in it can tell."""


def die_at(app, place, die):
    """Have `die` called when a job of this App reaches the place."""

    def before(owner, name):
        real = getattr(owner, name)

        def patched(*given, **more):
            die()
            return real(*given, **more)

        setattr(owner, name, patched)

    def after(owner, name):
        real = getattr(owner, name)

        def patched(*given, **more):
            result = real(*given, **more)
            die()
            return result

        setattr(owner, name, patched)

    index = app.opened.builds.scopes["captures"].index
    match place:
        case "queued":
            before(app.opened.queue, "begin")
        case "running":
            after(app.opened.queue, "begin")
        case "logged":
            after(app.opened.audit, "log_writes")
        case "written":
            before(index, "commit")
        case "indexed":
            after(index, "commit")
        case "tagged":
            before(app.opened.queue, "finish")


# In this process


def abandoned(world):
    """Leave the App as kill -9 would, but for what the system frees: no outcome is written down any more."""
    world.app.opened.queue.requeue = lambda _: None
    world.app.opened.audit.log_undone = world.app.opened.audit.log_taken_back = lambda *_: None


@pytest.mark.parametrize(("place", "after"), CASES)
def test_a_note_whose_process_died_is_made_once(tmp_path, monkeypatch, place, after):
    monkeypatch.setattr("syncd.jobs.queue.BACKOFF_S", (0.01, 0.02))
    world = World(tmp_path)
    try:
        job = world.app.agent_access.workspace("default").add_note(TEXT, key="k", tags=["x"])
        abandoned(world)

        def die():
            raise Died

        monkeypatch.setattr("syncd.captures.writer.undo_on_failure", lambda _: nullcontext())
        die_at(world.app, place, die)
        with pytest.raises(Died):
            world.app.worker.drain([job.id], lambda _: None)
        monkeypatch.undo()
        monkeypatch.setattr("syncd.jobs.queue.BACKOFF_S", (0.01, 0.02))
        world.app.close()
        there = disturbed(world.vault, after)
        world.app = world._open()
        with world.serving():
            until(lambda: world.app.opened.queue.job(job.id).status == "done")
            world.settled()
        checked(world.vault, job.planned, there, after)
        assert world.app.opened.queue.job(job.id).document_id == job.planned
        assert world.dump() == world.rebuilt(tmp_path / "other")
    finally:
        world.close()


def notes(vault: Path) -> list[Path]:
    return [path for path in vault.rglob("*.md") if TEXT in path.read_text()]


def disturbed(vault: Path, after: str) -> bool:
    """Do to the note what its owner may, before the daemon starts again; whether there was one."""
    found = notes(vault)
    for path in found:
        match after:
            case "deleted":
                path.unlink()
            case "moved":
                (vault / "Captures/default/shore").mkdir()
                path.rename(vault / "Captures/default/shore/Renamed.md")
            case "promoted":
                path.rename(vault / "Mine.md")
    return bool(found)


def checked(vault: Path, planned: str, there: bool, after: str) -> None:
    found = notes(vault)
    assert len(found) == (0 if there and after == "deleted" else 1), found
    for path in found:
        assert f"id: {planned}\n" in path.read_text()
        if there and after == "promoted":
            assert path.parent == vault


# Killed for good


def doomed(vault: Path, state: Path, place: str) -> None:
    """The process that is killed: it queues a note, says so, and dies at the place."""
    import signal

    from syncd.app import App
    from syncd.history.audit_log import acting_as
    from tests.support.fakes import fake_embedder

    app = App(settings_of(vault, state), embedder=fake_embedder())
    app.opened.sync.run(accept=True)
    with acting_as(Author("mcp", "kb_addnote", "k", "claude")):
        job = app.agent_access.workspace("default").add_note(TEXT, key="k", tags=["x"])
    sys.stdout.write(json.dumps({"id": job.id, "planned": job.planned}) + "\n")
    sys.stdout.flush()
    die_at(app, place, lambda: os.kill(os.getpid(), signal.SIGKILL))
    app.worker.start()
    threading.Event().wait(60)


@pytest.mark.faults
@pytest.mark.parametrize(("place", "after"), CASES)
def test_a_note_whose_daemon_was_killed_is_made_once(tmp_path, place, after):
    vault, state = tmp_path / "vault", tmp_path / "state"
    (vault / "Captures/default").mkdir(parents=True)
    state.mkdir(mode=0o700)
    command = [sys.executable, "-m", "tests.faults.test_queue_killed", str(vault), str(state), place]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr
    told = json.loads(done.stdout)
    there = disturbed(vault, after)
    with Daemon(tmp_path) as daemon:
        until(lambda: daemon.ask("queue.show", id=told["id"])["status"] == "done", 60)
        daemon.settled()
        assert daemon.ask("queue.show", id=told["id"])["document_id"] == told["planned"]
        log = daemon.ask("audit.verify")
        assert not log["breaks"]
    checked(vault, told["planned"], there, after)


if __name__ == "__main__":
    doomed(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
