"""The context in a running daemon: captures reach the note by themselves, quietly, and the owner's edits stay."""

from __future__ import annotations

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
sys.argv = ["memex", "--state", sys.argv[1], "context", "--workspace", "default", "--project", "context", "--hook", "codex"]
atexit.register(lambda: print(*sorted({"syncd.cli.main", "syncd.cli.notes.context"} & sys.modules.keys()), file=sys.stderr))
import memex_vault
memex_vault.main()
"""


def test_a_hook_without_a_daemon_ends_well_and_loads_no_other_command(tmp_path):
    done = subprocess.run(
        [DAEMON_PYTHON, "-c", START, str(tmp_path / "none")],
        cwd=ROOT,
        input='{"cwd": "/"}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "syncd.cli.notes.context\n")
