"""`memex status` whatever the daemon does: it runs, starts, hangs, is of another version, or is not there."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager

import pytest

from syncd.cli.main import run_command
from syncd.version import installed
from tests.support.answering_daemon import STATUS
from tests.support.answering_daemon import Daemon as AnsweringDaemon
from tests.support.daemon_process import Failed, daemon
from tests.support.local_daemon import local_daemon
from tests.support.until import until


@contextmanager
def made(folder, models):
    with daemon(folder, models) as memex:
        memex.write("A.md", "some words")
        memex.write("Big.md", b"x" * 6_000_000)
        yield memex


@pytest.fixture
def memex(tmp_path, models):
    with made(tmp_path, models) as memex:
        yield memex


@pytest.fixture(scope="module")
def served(tmp_path_factory, models):
    with made(tmp_path_factory.mktemp("served"), models) as memex:
        memex.serve()
        yield memex


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with local_daemon(tmp_path_factory.mktemp("local")) as memex:
        memex.write("A.md", "some words")
        memex.until(lambda: memex.found("some words"))
        yield memex


@pytest.mark.slow
def test_a_daemon_that_is_well_says_so_first(served):
    served.until(lambda: served.run("status").startswith("● all is well"))
    text = served.run("status")
    assert "notes      1 of 2 files indexed" in text
    assert "skipped    Big.md is too large" in text
    assert f"process {served.process.pid}" in text
    assert served.url in text
    assert "\x1b" not in text
    told = served.json("status", "--all")
    assert told["verdict"] == {"is": "well", "says": "all is well", "problems": []}
    assert told["daemon"]["state"] == "running"
    assert told["coverage"]["vault"]["of"] == 2
    assert "coverage" not in served.json("status")
    served.run("status", "--exit-code")


@pytest.mark.slow
def test_without_a_daemon_it_says_so_and_what_to_do(memex):
    memex.run("init", "--yes", "--no-welcome")
    (memex.vault / "Captures/About.md").unlink()
    memex.run("index")
    text = memex.run("status")
    assert text.startswith("▲ no daemon is running, so changes are not indexed; to start it: memex --vault ")
    assert "1 of 2 files indexed" in text
    with pytest.raises(Failed) as failed:
        memex.run("status", "--exit-code")
    assert failed.value.code == 7
    assert memex.json("status", "--all")["daemon"] == {"state": "down"}


def test_the_daemons_version_is_told_beside_that_of_the_command(tmp_path, monkeypatch, capfd):
    (tmp_path / "vault").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    for name, value in (("HOME", "home"), ("MEMEX_VAULT", "vault"), ("MEMEX_STATE", "state")):
        monkeypatch.setenv(name, str(tmp_path / value))
    answering = AnsweringDaemon(tmp_path / "state", status=STATUS | {"version": "0.0.1"})
    answering.server.start()
    try:
        assert run_command(["status", "--json", "--all"]) == 0
    finally:
        answering.server.stop()
    told = json.loads(capfd.readouterr().out)
    assert (told["daemon"]["version"], told["daemon"]["command_version"]) == ("0.0.1", installed())
    assert told["verdict"]["problems"] == [
        f"daemon: it has version 0.0.1, and this command version {installed()}; restart the daemon"
    ]


@pytest.mark.slow
def test_a_daemon_that_hangs_is_named(served):
    served.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(Failed) as failed:
            served.run("status")
    finally:
        served.process.send_signal(signal.SIGCONT)
    assert failed.value.code == 7
    assert f"process {served.process.pid}" in str(failed.value)
    assert re.search(r"restart it: memex --vault .* stop; memex --vault .* serve", str(failed.value))


@pytest.mark.slow
def test_a_process_that_does_not_listen_yet_is_named(memex):
    memex.run("init", "--yes")
    with (memex.state / "lock").open("w+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{9:<20} {os.getpid():<10}\n".encode())
        held.flush()
        with pytest.raises(Failed) as failed:
            memex.run("status")
    assert failed.value.code == 7
    assert f"another process (process {os.getpid()}) holds the vault" in str(failed.value)


def test_watching_in_json_is_an_object_a_line(local):
    with local.start("status", "--watch", "0.2", "--json", stdout=subprocess.PIPE) as watching:
        told = [json.loads(watching.stdout.readline()) for _ in range(3)]
        watching.send_signal(signal.SIGINT)
    assert all(one["ready"] for one in told)


def test_looking_changes_nothing(local):
    [catalog] = local.state.glob("index/*/vault.db")
    with closing(sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)) as database:
        # The note is written to its store a second or more after it was indexed.
        until(lambda: database.execute("select count(*) from unsettled").fetchone() == (0,))
    folders = [path for path in local.state.rglob("*.lance") if path.is_dir()]
    before = {path: path.stat().st_mtime_ns for path in folders}
    began = time.monotonic()
    local.run("status")
    assert time.monotonic() - began < 60
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_watching_shows_it_again_and_again_until_it_is_interrupted(served):
    """Last of the shared daemon, which it stops."""
    with served.start("status", "--watch", "0.2", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        seen = b""
        while len(re.findall("^● all is well".encode(), seen, re.MULTILINE)) < 2:
            seen += watching.stdout.readline()
        served.stop()
        while b"no daemon is running" not in seen:
            seen += watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert watching.returncode == 130
