"""A daemon under a service manager: what it tells, and how it stops, whatever is under way."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from syncd.daemon.control_socket import NAME, TOKEN
from tests.support.daemon_process import Memex
from tests.support.notify_socket import Ear
from tests.support.topic_notes import notes

# The daemon as it is, but for a job that never ends, or an event loop that is held up for some seconds.
HANGING = """
import sys, threading, time
from syncd.cli import main
from syncd.daemon import background_jobs
known = background_jobs.build_scheduler
def jobs(*opened, **parts):
    planned = known(*opened, **parts)
    planned.every("hanging", 3600.0, lambda: time.sleep(600), soon=True)
    return planned
background_jobs.build_scheduler = jobs
main.main(sys.argv[1:])
"""
BLOCKED = """
import sys, time
from syncd import app
from syncd.cli import main
class Blocked(app.App):
    def _vital_signs(self, loop):
        loop.call_later(4, time.sleep, 16)
        return super()._vital_signs(loop)
app.App = Blocked
main.main(sys.argv[1:])
"""


class Managed(Memex):
    """A daemon whose vault has an awkward name, and to which a service manager listens."""

    script = ""
    more: dict[str, str] = {}  # noqa: RUF012 - read, and replaced whole

    def __init__(self, folder: Path, models: Path) -> None:
        super().__init__(folder, models=models, vault=folder / "My Vault – ü")
        self.ear = Ear(folder / "notify ü")
        self.watchdog_s = 2.0

    @property
    def environ(self):
        told = {"NOTIFY_SOCKET": self.ear.supervisor.address, "WATCHDOG_USEC": str(int(self.watchdog_s * 1e6))}
        return super().environ | told | self.more

    def start(self, *words, **options):
        if not (self.script and "serve" in words):
            return super().start(*words, **options)
        own = ["--vault", str(self.vault), "--state", str(self.state)]
        return subprocess.Popen(
            [sys.executable, "-c", self.script, *words, *own], env=self.environ, cwd=self.home, **options
        )


@pytest.fixture
def memex(tmp_path, bundled, models):
    one = Managed(tmp_path, models)
    yield one
    if one.process is not None:
        one.stop(signal.SIGKILL)
    one.ear.socket.close()


@pytest.mark.slow
def test_a_manager_hears_of_its_start_its_life_and_its_end(memex):
    notes(memex, 300)
    memex.serve(wait=False)
    said = memex.ear.until("READY=1")
    assert "EXTEND_TIMEOUT_USEC" in said[0]
    assert said[-1] != "READY=1\nSTATUS=ready: 300 notes", "it does not wait for the first index"
    memex.ear.until("STATUS=indexing ")
    memex.ear.until("STATUS=ready: 300 notes", 120)
    memex.ear.until("WATCHDOG=1")
    memex.ear.until("WATCHDOG=1")
    code, seconds = memex.stop()
    assert (code, seconds < 45) == (0, True)
    assert "STATUS=stopping" in memex.ear.until("STOPPING=1")[-1]


@pytest.mark.slow
def test_a_loop_that_is_held_up_stops_the_signs_of_life(memex):
    memex.script = BLOCKED
    memex.serve(wait=False)
    memex.ear.until("STATUS=stuck: the event loop has not answered for 5 s")
    assert memex.ear.silent(4.0, "WATCHDOG")
    memex.ear.until("WATCHDOG=1", 60)
    assert memex.stop()[0] == 0
    assert "Memex sends no sign of life to the service manager" in memex.said


@pytest.mark.slow  # a capture in flight alone: test_daemon.py
def test_a_stop_drains_whatever_is_under_way(memex):
    """A bulk index of thousands of notes, captures in flight, open streams, clients that hang: at once."""
    notes(memex, 3000)
    memex.script = HANGING
    memex.more = {"MEMEX_SERVER__GRACE_S": "12"}  # captures of a busy machine take seconds
    memex.serve(wait=False)
    memex.until(lambda: memex.readyz()["pending"] > 100, 60)
    acknowledged, dying, where = {}, threading.Event(), urlsplit(memex.url)

    def capture(number):
        for turn in itertools.count():
            content = f"in flight {number} {turn} " + "waders wade " * 200
            try:
                acknowledged[memex.capture(content)] = content
            except Exception:
                if dying.is_set():
                    return
                raise

    def hanging():
        return any(one["running"] for one in memex.json("job", "list") if one["name"] == "hanging")

    threads = [threading.Thread(target=capture, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    with contextlib.ExitStack() as open_:
        head = f"Host: {where.netloc}\r\nAuthorization: Bearer {memex.key}\r\n"
        for text in (
            f"GET /sse HTTP/1.1\r\n{head}X-Memory-Workspace: default\r\nAccept: text/event-stream\r\n\r\n",
            f"POST /capture HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n" + '{"con',
            "GET /healthz HTT",
            "",
        ):
            client = open_.enter_context(socket.create_connection((where.hostname, where.port)))
            client.sendall(text.encode())
        owner = open_.enter_context(socket.socket(socket.AF_UNIX))
        with contextlib.chdir(memex.state):  # the way to its socket may be longer than an address can be
            owner.connect(NAME)
        owner.sendall((memex.state / TOKEN).read_bytes() + b'\n{"op": "sta')
        asking = memex.start("job", "run", "hanging", "--wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        indexing = memex.start("index", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        memex.until(lambda: len(acknowledged) >= 6 and hanging(), 60)
        dying.set()
        code, seconds = memex.stop()
    for thread in threads:
        thread.join()
    assert (code, seconds < 45) == (0, True), (seconds, memex.said)
    assert "Traceback" not in memex.said
    assert "jobs still running at the stop: hanging" in memex.said
    assert asking.wait(30) == 7
    assert b"stopping" in asking.communicate()[1]
    indexing.communicate(timeout=60)
    memex.script = ""
    memex.serve(wait=False)
    for id, content in acknowledged.items():
        assert memex.rest("GET", f"/thought/{id}").json()["content"] == content
    assert memex.readyz()["pending"] > 0, "the bulk index was interrupted, and goes on"


@pytest.mark.slow
def test_a_stop_that_can_not_drain_ends_in_time_all_the_same(memex):
    """The start waits for an encoder that has fallen silent, and hears no wish."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = memex.home / ".config/memex/config.toml"
        config.parent.mkdir(parents=True)
        encoder = f'kind = "endpoint"\nbase_url = "http://127.0.0.1:{silent.getsockname()[1]}/v1"\nmodel = "m"\n'
        config.write_text(f"[[embed.encoders]]\n{encoder}")
        with memex.log.open("ab") as log:
            memex.process = memex.start("serve", "--port", "0", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        peer, _ = silent.accept()
        code, seconds = memex.stop()
        peer.close()
    assert (code, 30 < seconds < 45) == (0, True), memex.said
    assert "unfinished work resumes" in memex.said


@pytest.mark.slow
def test_the_end_of_a_terminal_is_a_stop_too(memex):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what started the tests may outlive its terminal
    try:
        memex.serve(wait=False)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert memex.stop(signal.SIGHUP)[0] == 0
    assert "SIGHUP, stopping" in memex.said


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nohup"), reason="needs nohup")
def test_one_that_was_told_to_outlive_its_terminal_does(memex):
    own = ["serve", "--port", "0", "--vault", str(memex.vault), "--state", str(memex.state)]
    with memex.log.open("ab") as log:
        words = ["nohup", sys.executable, "-m", "syncd.cli", *own]
        memex.process = subprocess.Popen(
            words, env=memex.environ, cwd=memex.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    memex.until(lambda: memex._bound(memex.process), 60)
    memex.process.send_signal(signal.SIGHUP)
    for _ in range(5):
        assert memex.readyz()
    assert "SIGHUP" not in memex.said
    assert memex.stop()[0] == 0
