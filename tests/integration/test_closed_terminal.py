"""A daemon whose terminal is closed or paused, or whose output nobody reads any more, stops as any other; and `memex stop` ends it from elsewhere."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from syncd.cli.daemon.serve import DRAIN_S
from syncd.state import process_lock
from tests.support.daemon_process import Failed, Memex
from tests.support.until import until

# A busy machine stops more slowly than a quiet one; a stop that waits for a reader lasts DRAIN_S, or for ever.
ENDS_S = DRAIN_S - 10


class Started(Memex):
    """A vault with a note, and a daemon (or a demo) of it whose output goes where a test wants it."""

    def __init__(self, folder, models):
        super().__init__(folder, models=models)
        self.write("Note.md", "# A note\n\nabout herons\n")
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.lines = ""

    @property
    def environ(self):
        return super().environ | {"TMPDIR": str(self.temporary)}

    def begin(self, *words, out=None, terminal=""):
        """Start `memex WORDS`, with what it says going to `out`, or as the leader of a terminal."""
        own = ["--vault", str(self.vault), "--state", str(self.state)] if "demo" not in words else []
        command = [sys.executable, "-m", "syncd.cli", *words, *own]
        if terminal:  # the first terminal that the leader of a session opens is its own
            command = ["sh", "-c", 'exec "$@" < "$0" > "$0" 2>&1', terminal, *command]
        before_exec = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what started the tests may outlive its terminal
        try:
            self.process = subprocess.Popen(
                command,
                env=self.environ,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        finally:
            signal.signal(signal.SIGHUP, before_exec)
        return self.process

    def on_terminal(self, *words):
        """Start it as the leader of a terminal of its own; the numbers of the terminal's ends."""
        master, slave = pty.openpty()
        self.begin(*words, terminal=os.ttyname(slave))
        return master, slave

    def read(self, number, text):
        """Read what it says until that holds `text`."""
        end = time.monotonic() + 120
        while text not in self.lines:
            assert time.monotonic() < end, self.lines
            self.lines += os.read(number, 65_536).decode("utf-8", "replace")

    def ended(self):
        """Its exit code, once it has ended by itself."""
        return self.process.wait(ENDS_S)

    def demos(self):
        """The folders of demos."""
        return list(self.temporary.glob("memex-demo-*"))


@pytest.fixture
def memex(tmp_path, bundled, models):
    one = Started(tmp_path, models)
    yield one
    if one.process is not None and one.process.poll() is None:
        one.process.kill()
        one.process.wait()


def is_free(url):
    """Whether the port of an address can be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((urlsplit(url).hostname, urlsplit(url).port))
        except OSError:
            return False
    return True


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "0"),
        pytest.param(("serve", "--port", "0", "--connect"), marks=pytest.mark.slow),
        pytest.param(("demo", "--port", "0"), marks=pytest.mark.slow),  # as a demo whose output nobody reads
    ],
)
def test_closing_the_terminal_ends_the_daemon(memex, words):
    master, slave = memex.on_terminal(*words)
    memex.read(master, "To stop the daemon" if words != ("serve", "--port", "0") else "memex: ready")
    state = memex.state if "serve" in words else memex.demos()[0] / "state"
    url = json.loads((state / "daemon.json").read_text())["url"]
    os.close(slave)
    os.close(master)
    assert memex.ended() == 0
    assert (process_lock.holder_pid(state), is_free(url), memex.demos()) == (None, True, [])


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),  # as a terminal that is closed
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_daemon_whose_output_nobody_reads(memex, number):
    reader, writer = os.pipe()
    memex.begin("demo", "--port", "0", out=writer)
    os.close(writer)
    memex.read(reader, "memex: opening")
    os.close(reader)  # as `| head` does once it has its lines
    until(lambda: [folder for folder in memex.demos() if (folder / "state/daemon.json").exists()], 120)
    time.sleep(1.0)  # what it would print is written meanwhile, in vain
    assert memex.process.poll() is None
    memex.process.send_signal(number)
    assert memex.ended() == 0
    assert memex.demos() == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("serve", "--port", "0"), marks=pytest.mark.slow),  # as a terminal whose output nobody reads
        pytest.param(("demo", "--port", "0"), marks=pytest.mark.slow),  # its text for a person goes to stdout
    ],
)
def test_a_paused_terminal_delays_no_request_and_no_stop(memex, words):
    master, slave = memex.on_terminal(*words)
    memex.read(master, "memex: ready" if "serve" in words else "memex: opening")
    os.write(master, b"\x13")  # Ctrl-S
    state = memex.state if "serve" in words else memex.demos()[0] / "state"
    until(lambda: (state / "daemon.json").exists() and (state / "key").exists(), 120)
    url, key = json.loads((state / "daemon.json").read_text())["url"], (state / "key").read_text().strip()
    for _ in range(3):
        answer = memex.client.get(f"{url}/thoughts", headers={"authorization": f"Bearer {key}"}, timeout=30)
        assert answer.status_code == 200
    memex.process.send_signal(signal.SIGTERM)
    assert memex.ended() == 0
    assert (process_lock.holder_pid(state), memex.demos()) == (None, [])
    os.close(slave)
    os.close(master)


@pytest.mark.slow
def test_a_stop_while_it_is_being_opened_and_nobody_reads(memex):
    reader, writer = os.pipe()
    memex.begin("serve", "--port", "0", out=writer)
    os.close(writer)
    memex.read(reader, "memex: opening")
    os.close(reader)
    memex.process.send_signal(signal.SIGTERM)
    assert memex.ended() == 0
    assert process_lock.holder_pid(memex.state) is None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_demo_is_set_up_leaves_no_folder(memex, number):
    memex.begin("demo", "--port", "0", out=subprocess.DEVNULL)
    until(lambda: [folder for folder in memex.demos() if (folder / "lock").exists()], 60)
    memex.process.send_signal(number)
    assert memex.ended() in (130, 0)  # 0 if it serves already
    assert memex.demos() == []


@pytest.mark.slow
def test_a_demo_that_was_killed_leaves_nothing_and_its_lines_still_lead_to_the_next(memex):
    noted = memex.home / ".local/state/memex/demo.json"

    def said():
        """The address of the demo, and the key of its client."""
        folder = memex.demos()[-1]
        return json.loads((folder / "state/daemon.json").read_text())["url"], json.loads(noted.read_text())["key"]

    memex.begin("demo")
    until(lambda: [folder for folder in memex.demos() if (folder / "state/daemon.json").exists()], 120)
    until(noted.exists, 120)  # before, nobody has lines that the next could break
    first, [left] = said(), memex.demos()
    memex.process.kill()
    memex.process.wait()
    assert noted.stat().st_mode & 0o777 == 0o600
    with socket.socket() as other:  # another program has the port for a while
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", urlsplit(first[0]).port))
        other.listen()
        memex.begin("demo")
        until(lambda: [f for f in memex.demos() if (f / "state/daemon.json").exists() and f != left], 120)
        assert said()[1] == first[1] and said()[0] != first[0]
        memex.process.send_signal(signal.SIGTERM)
        assert memex.ended() == 0
    memex.begin("demo")
    until(
        lambda: [folder for folder in memex.demos() if (folder / "state/daemon.json").exists() and folder != left], 120
    )
    assert left not in memex.demos()
    assert said() == first
    memex.state = memex.demos()[0] / "state"
    answer = memex.client.get(f"{first[0]}/thoughts", headers={"authorization": f"Bearer {first[1]}"})
    assert answer.status_code == 200
    assert memex.run("stop").startswith(f"process {memex.process.pid} ended on request")
    assert memex.process.poll() == 0
    assert memex.demos() == []


@pytest.mark.slow
def test_stop_ends_the_daemon_and_comes_back_when_it_has_ended(memex):
    with pytest.raises(Failed) as failed:
        memex.run("stop")
    assert failed.value.code == 4, "it was never set up"
    memex.serve()
    process, memex.process = memex.process, None
    assert memex.json("stop") == {"stopped": True, "pid": process.pid, "by": "request", "page": None}
    assert (process.poll(), process_lock.holder_pid(memex.state)) == (0, None)
    assert memex.run("stop") == f"no daemon runs for {memex.vault}\n"


@pytest.mark.slow
def test_stop_ends_one_that_does_not_answer_by_a_signal(memex):
    memex.serve(wait=False)
    process = memex.process
    (memex.state / "control.sock").unlink()
    memex.process = None
    assert memex.json("stop") == {"stopped": True, "pid": process.pid, "by": "signal", "page": None}
    assert process.poll() == 0


@pytest.mark.slow
def test_stop_says_when_a_daemon_does_not_end_in_time(memex):
    memex.serve(wait=False)
    memex.process.send_signal(signal.SIGSTOP)
    with pytest.raises(Failed) as failed:
        memex.run("stop", "--timeout", "1")
    assert failed.value.code == 7
    assert f"kill -9 {memex.process.pid}" in failed.value.err
    memex.process.send_signal(signal.SIGCONT)
    assert memex.process.wait(30) == 0
    memex.process = None


@pytest.mark.slow
def test_the_usual_port_gives_way_and_a_named_one_does_not(memex):
    with socket.socket() as other:
        try:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", 8765))
            other.listen()
        except OSError:
            pass  # somebody else has it: as good
        reader, writer = os.pipe()
        memex.begin("serve", "--any-port", out=writer)
        os.close(writer)
        memex.read(reader, "memex: serving")
        assert "memex: port 8765 is taken, so this daemon uses port" in memex.lines
        memex.run("stop")
        named = memex.start("serve", "--any-port", "--port", "8765", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert b"8765" in named.communicate(timeout=60)[1]
        assert named.returncode == 69
