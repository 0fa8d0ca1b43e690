"""Jobs as people see them."""

from __future__ import annotations

import json
from datetime import UTC

import click
import pytest

from syncd.cli.daemon.jobs import jobs_table, runs, span
from syncd.cli.framework.completion import jobs as names
from syncd.cli.main import code
from syncd.daemon.control_socket import ControlServer

JOB = {
    "name": "listing",
    "every_s": 600.0,
    "running": False,
    "started_at": 1_800_000_000_000,
    "seconds": 1.25,
    "error": "",
    "runs": 3,
    "failures": 0,
    "next_run_at": 1_800_000_090_000,
    "too_long": False,
}
NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.4 s"),
        (12.3, "12 s"),
        (60, "1 min"),
        (90, "1.5 min"),
        (600, "10 min"),
        (86_400, "1 d"),
        (5400, "1.5 h"),
    ],
)
def test_a_length_of_time_is_short_to_read(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "listing  10 min  well  2027-01-15 08:00  1.2 s  in 1.5 min"),
        (
            {"started_at": None, "seconds": None, "next_run_at": None},
            "listing  10 min         never               when the daemon runs",
        ),
        ({"cron": "0 3 * * *"}, "listing  0 3 * * *  well  2027-01-15 08:00  1.2 s  in 1.5 min"),
        ({"running": True}, "listing  10 min  running  2027-01-15 08:00  1.2 s  in 1.5 min"),
        ({"running": True, "too_long": True}, "listing  10 min  running too long  2027-01-15 08:00  1.2 s  in 1.5 min"),
    ],
)
def test_a_job_is_one_line(change, words):
    _, row = jobs_table([JOB | change], NOW, UTC, color=False).splitlines()
    assert row.split() == words.split()


def test_why_a_job_failed_stands_below_and_steers_no_terminal():
    lines = jobs_table([JOB | {"error": "the disk\x1b[31m is full"}], NOW, UTC, color=False).splitlines()
    assert "failed" in lines[1]
    assert lines[2] == "listing: the disk[31m is full"


def test_the_last_runs_of_a_job():
    past = [
        {"started_at": NOW, "seconds": 2.0, "error": ""},
        {"started_at": NOW - 600_000, "seconds": 0.5, "error": "no disk"},
    ]
    assert [line.split()[-1] for line in runs(past, UTC, color=False).splitlines()] == ["went", "well", "disk"]
    assert runs([], UTC, color=False) == "it has not run yet"


@pytest.fixture
def door(tmp_path, monkeypatch):
    """A daemon's door with answers written by hand."""
    asked = []

    def run(given, _):
        asked.append(given)
        if given["name"] == "shaky":
            return {"name": "shaky", "ended": True, "started_at": NOW, "seconds": 1.0, "error": "the disk is full"}
        return {
            "name": given["name"],
            "ended": bool(given["wait"]),
            **({"started_at": NOW, "seconds": 1.0, "error": ""} if given["wait"] else {}),
        }

    operations = {
        "job.list": lambda *_: [JOB, JOB | {"name": "deep check"}],
        "job.history": lambda *_: [{"started_at": NOW, "seconds": 1.0, "error": ""}],
        "job.run": run,
    }
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    server = ControlServer(state, operations)
    server.start()
    monkeypatch.setenv("MEMEX_STATE", str(state))
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    yield asked
    server.stop()


def test_the_commands_and_their_exit_codes(door, capfd):
    assert code(["job", "list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capfd.readouterr().out)] == ["listing", "deep check"]
    assert code(["job", "list", "listing"]) == 0
    assert "well" in capfd.readouterr().out
    assert code(["job", "run", "listing"]) == 0
    assert capfd.readouterr().out == "listing was started\n"
    assert code(["job", "run", "listing", "--wait"]) == 0
    assert capfd.readouterr().out == "listing took 1 s\n"
    assert code(["job", "run", "shaky", "--wait"]) == 7
    assert "the disk is full" in capfd.readouterr().err
    assert [given["wait"] for given in door] == [False, True, True]


def test_names_are_completed_as_one_word_while_a_daemon_runs(door):
    context = click.Context(click.Command("run"))
    assert [item.value for item in names(context, context.command, "d")] == ["deep-check"]
    assert len(names(context, context.command, "")) == 2


def test_nothing_is_completed_without_a_daemon(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    context = click.Context(click.Command("run"))
    assert names(context, context.command, "") == []
