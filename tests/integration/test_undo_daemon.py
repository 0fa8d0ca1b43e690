"""Undo on a daemon of its own: stored files come back, Git has each step, and a kill in the midst leaves no half note."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.agent_writes import capture, delete, inbox, undo, update
from tests.support.daemon_process import ROOT, daemon
from tests.support.world import World


def upload(memex, name, raw):
    answer = memex.rest("POST", "/api/v1/jobs", files={"file": (name, raw)})
    assert answer.status_code in (200, 202), answer.text
    id = answer.json()["job_id"]

    def ended():
        job = memex.rest("GET", f"/api/v1/jobs/{id}").json()
        assert job["status"] != "failed", job
        return job["document_id"] if job["status"] == "done" else None

    return memex.until(ended, 60)


def files(memex):
    root = memex.vault / "Captures"
    return {str(file.relative_to(memex.vault)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_day_of_an_agent_is_taken_back_by_command(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        (memex.vault / "Captures/default").mkdir(parents=True)
        memex.write("Mine.md", "# Mine\n")
        memex.commit("begin")
        memex.serve()
        kept = memex.capture("# Kept\n\nThe keel is lead.\n")
        stored = upload(memex, "tide.csv", b"place,level\nhere,3\n")
        memex.settled()
        before = files(memex)
        assert memex.rest("PATCH", f"/api/v1/notes/{kept}", json={"text": "gone"}).status_code == 200
        for id in (stored, kept):
            assert memex.rest("DELETE", f"/thought/{id}").status_code == 200
        upload(memex, "sun.csv", b"place,sun\nhere,5\n")
        memex.settled()
        after = files(memex)
        assert memex.json("undo", "--since", "1h", "--dry-run")["skipped"] == []
        told = memex.json("undo", "--yes", stored)
        assert [one["did"] for one in told["done"]] == ["brought back", "brought back"]
        assert memex.found("tide level", scope="captures")
        for _ in range(2):
            told = memex.json("undo", "--yes", kept)
        assert [one["did"] for one in told["done"]] == ["restored"]
        (sun,) = (one for one in memex.json("recent") if one["type"] == "file" and one["id"] != stored)
        assert {one["did"] for one in memex.json("undo", "--yes", sun["id"])["done"]} == {"removed"}
        assert files(memex) == before
        assert after != before
        memex.settled()
        assert memex.json("job", "queue")["counts"].get("failed", 0) == 0
        wrote = memex.rest("GET", f"/thought/{kept}").json()
        assert (wrote["created_by"]["tool"], wrote["updated_by"]) == ("capture_thought", None)
        assert [one["what"] for one in memex.json("log", kept)["events"]][:3] == ["create", "update", "delete"]


@dataclass
class Closed:
    """A vault that nobody has open."""

    vault: Path


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.support.agent_writes import undo
from tests.support.world import World

world, left = World(Path(sys.argv[1])), int(sys.argv[2])
write = world.app.opened.vault._calls
names = ("write", "fsync", "exchange", "rename", "unlink")
def dying(real):
    def call(*given, **more):
        global left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **more)
    return call
from dataclasses import replace
world.app.opened.vault._calls = replace(write, **{name: dying(getattr(write, name)) for name in names})
undo(world)
print("done")
"""


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_kill_at_any_call_leaves_each_note_before_or_after_and_the_same_again_finishes_it(tmp_path):
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    ended, at = False, 1
    while not ended:
        folder = tmp_path / str(at)
        world = World(folder)
        first, second, third = (capture(world, f"# {name}\n\none") for name in ("a", "b", "c"))
        for record in (first, second):
            update(world, record.id, f"# {record.title}\n\ntwo")
        delete(world, third.id)
        before = inbox(world)
        told = undo(world, since=0, dry_run=True)
        assert len(told["done"]) == 2
        world.close()
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(folder), str(at)], env=environ, capture_output=True, check=False
        )
        ended = done.returncode == 0
        assert ended or done.returncode == -signal.SIGKILL, done.stderr.decode()
        now = {path: raw for path, raw in inbox(Closed(folder / "vault")).items() if "/.memex-" not in path}
        assert all(raw == before[path] for path, raw in now.items())
        world = World(folder)
        try:
            undo(world)
            assert inbox(world) == {}
            assert world.app.opened.audit.find(1)
            again = undo(world)
            assert (again["done"], again["skipped"]) == ([], [])
        finally:
            world.close()
        at += 1
    assert at > 5
