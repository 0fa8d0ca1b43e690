"""The command `context`: what it prints for people and scripts, and what a host's hook gets from it in every case."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from syncd.cli.main import run_command
from syncd.cli.notes.context import LONGEST, envelope, format_context
from syncd.daemon.control_socket import NAME, TOKEN
from syncd.state.hook_log import read_runs
from tests.support.paths import ROOT
from tests.support.world import World, answering

TEXT = "The filter of the heat pump is due in May"


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "state").mkdir(mode=0o700)
    made = World(tmp_path)
    with answering(made):
        made.run()
        made.app.agent_access.workspace("default").capture(TEXT, source="claude-code")
        monkeypatch.setenv("MEMEX_VAULT", str(made.vault))
        monkeypatch.setenv("MEMEX_STATE", str(made.state))
        yield made


@pytest.fixture
def host():
    """A host that starts the hook in a folder and writes its input to stdin."""
    kept = os.dup(0)

    def write(payload):
        reader, writer = os.pipe()
        os.write(writer, payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        os.close(writer)
        os.dup2(reader, 0)
        os.close(reader)

    yield write
    os.dup2(kept, 0)
    os.close(kept)


def run_hook(capfd, client="claude-code", *more):
    assert run_command(["context", "--hook", client, *more]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def test_a_person_sees_the_text_and_the_reasons(world, capfd):
    assert run_command(["context"]) == 0
    out = capfd.readouterr().out
    assert f"- {TEXT} (2" in out
    assert out.endswith(" of 1,200 tokens\n")
    assert run_command(["context", "--explain"]) == 0
    assert "    because it is among the newest; no line above speaks of " in capfd.readouterr().out
    assert run_command(["context", "--workspace", "nowhere"]) == 4


def test_a_script_gets_every_field(world, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_command(["context", "--json", "--project", "."]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown.keys() == {"workspace", "project", "text", "tokens", "most", "left_out", "lines"}
    (line,) = shown["lines"]
    assert line.keys() == {
        *("line", "reasons", "id", "path", "title", "at", "author", "kept", "stale", "promoted"),
    }


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ({"most": 0}, "agents get no context: context.tokens is 0 in the settings"),
        ({"most": 9, "lines": [], "workspace": "a\x1b"}, "the workspace a\\u{1b} has no facts yet"),
        (
            {"most": 9, "lines": [1], "text": "x", "tokens": 3, "left_out": 1},
            "x\n\n3 of 9 tokens; 1 line that you keep did not fit",
        ),
    ],
)
def test_what_a_person_is_told(shown, text):
    assert format_context(shown, explain=False) == text


# What each host writes to stdin, as its documentation shows it.
CLAUDE_CODE = {
    "session_id": "abc123",
    "transcript_path": "/home/ada/.claude/projects/x/00893aaf.jsonl",
    "cwd": "/nowhere/heron",
    "hook_event_name": "SessionStart",
    "source": "startup",
    "model": "claude-opus",
}
CODEX = {
    "session_id": "0199",
    "transcript_path": None,
    "cwd": "/nowhere/heron",
    "hook_event_name": "SessionStart",
    "model": "gpt",
    "permission_mode": "default",
    "source": "startup",
}


@pytest.mark.parametrize(("client", "payload"), [("claude-code", CLAUDE_CODE), ("codex", CODEX)])
def test_a_host_gets_its_envelope_for_the_project_of_its_folder(world, host, capfd, client, payload):
    host(payload)
    answer = json.loads(run_hook(capfd, client))
    assert answer == envelope(answer["hookSpecificOutput"]["additionalContext"])
    assert answer["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert TEXT in answer["hookSpecificOutput"]["additionalContext"]
    (run,) = read_runs(world.state)
    assert (run.client, run.outcome, run.tokens > 0) == (client, "served", True)
    assert "heron" in {key[1] for key in world.app.opened.contexts._served}


@pytest.mark.slow
def test_a_text_stays_below_the_hosts_limits(world, host, capfd):
    space = world.app.agent_access.workspace("default")
    for number in range(120):
        space.capture(f"Nummer {number} größer schöner " + "日本語" * 20)
    world.app.opened.contexts._tokens = 10_000
    space.context()  # so that the hook finds it made, however busy the machine is
    host(CLAUDE_CODE)
    text = json.loads(run_hook(capfd))["hookSpecificOutput"]["additionalContext"]
    assert len(text.encode()) <= LONGEST
    assert text.endswith("\n```")


@pytest.mark.parametrize("payload", [b"", b"no json", b"[]", b'{"cwd": 3}', b'{"cwd": "\\u0000"}'])
def test_a_strange_input_costs_nothing(world, host, capfd, payload):
    host(payload)
    run_hook(capfd)
    assert len(read_runs(world.state)) == 1


def test_an_empty_workspace_prints_nothing(world, host, capfd):
    world.app.agent_access.create_workspace("empty")
    host(CLAUDE_CODE)
    assert run_hook(capfd, "codex", "--workspace", "empty") == ""
    assert [run.outcome for run in read_runs(world.state)] == ["empty"]


def test_a_missing_workspace_is_logged_and_prints_nothing(world, host, capfd):
    host(CLAUDE_CODE)
    assert run_hook(capfd, "codex", "--workspace", "nowhere") == ""
    assert [(run.outcome, run.problem) for run in read_runs(world.state)] == [("failed", "NOT_FOUND")]


def test_a_dead_daemon_costs_nothing(tmp_path, host, monkeypatch, capfd):
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("MEMEX_STATE", str(tmp_path / "state"))
    host(CLAUDE_CODE)
    assert run_hook(capfd) == ""
    assert [run.outcome for run in read_runs(tmp_path / "state")] == ["no-daemon"]


def test_a_silent_daemon_is_not_waited_for(tmp_path, host, monkeypatch, capfd):
    state = tmp_path / "state"
    state.mkdir()
    (state / TOKEN).write_text("token")
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("MEMEX_STATE", str(state))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(state / NAME))
        silent.listen(1)
        host(CLAUDE_CODE)
        assert run_hook(capfd) == ""
    (run,) = read_runs(state)
    assert run.outcome == "slow"


def test_settings_that_can_not_be_read_cost_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("MEMEX_CONFIG", str(tmp_path / "missing.toml"))
    assert run_hook(capfd) == ""


def test_the_command_loads_nothing_heavy():
    code = "import sys, syncd.cli.notes.context; sys.exit(bool({'numpy', 'git', 'sqlite3'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
