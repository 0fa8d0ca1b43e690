"""The context in a running daemon: captures reach the note by themselves, quietly, and the owner's edits stay."""

from __future__ import annotations

import json
import subprocess

import pytest

from syncd.context import contexts
from syncd.daemon import background_jobs
from tests.support.paths import DAEMON_PYTHON, ROOT
from tests.support.until import until
from tests.support.world import World


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(contexts, "QUIET_S", 0.0)
    monkeypatch.setattr(background_jobs, "CONTEXT_S", 0.1)
    made = World(tmp_path)
    with made.serving():
        yield made
    made.close()


def test_captures_reach_the_note_and_a_struck_line_stays_out(world):
    note = world.vault / "Captures/Context/default.md"
    workspace = world.app.agent_access.workspace("default")
    workspace.capture("The filter of the heat pump is due in May")
    until(note.is_file)
    first = note.read_text()
    workspace.capture("Ada prefers tabs in every Makefile")
    until(lambda: "Makefile" in note.read_text())
    (line,) = [line for line in note.read_text().splitlines() if "heat pump" in line]
    note.write_text(note.read_text().replace(f"{line}\n", ""))
    until(lambda: "## Left out" in note.read_text())
    assert "heat pump" in first
    assert "heat pump" not in workspace.context().text
    stat, before = note.stat(), world.app.jobs.states()["context"]
    until(lambda: world.app.jobs.states()["context"].runs > before.runs + 2)
    assert note.stat().st_mtime_ns == stat.st_mtime_ns


START = """
import atexit, sys
sys.argv[0] = "memex"
atexit.register(lambda: print(*sorted({"syncd.cli.main", "syncd.cli.notes.context"} & sys.modules.keys()), file=sys.stderr))
import memex_vault
memex_vault.main()
"""


def memex(*words, text=""):
    words = [DAEMON_PYTHON, "-c", START, *words]
    return subprocess.run(words, cwd=ROOT, input=text, capture_output=True, text=True, check=False)


def test_a_hook_without_a_daemon_ends_well_and_loads_no_other_command(tmp_path):
    words = ("context", "--workspace", "default", "--project", "context", "--hook", "codex")
    done = memex("--state", str(tmp_path / "none"), *words, text='{"cwd": "/"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "syncd.cli.notes.context\n")


def test_the_command_loads_no_other_one_and_reports_a_failure_as_each_does(tmp_path):
    done = memex("context", "--state", str(tmp_path / "none"), "--vault", str(tmp_path / "none"), "--json")
    error, loaded = done.stderr.splitlines()
    assert (done.returncode, done.stdout, loaded) == (4, "", "syncd.cli.notes.context")
    assert json.loads(error)["error"]["code"] == "NOT_FOUND"
    done = memex("context", "--nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("memex: no option '--nonsense' in `memex context`; see `memex context --help`\n")
