"""A daemon in a separate process, which tests drive only from outside: files, the command line, REST."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from syncd.daemon import control_socket
from tests.support import daemon_logs
from tests.support.paths import DAEMON_PYTHON, ROOT
from tests.support.until import PATIENCE, until

FAST = {"MEMEX_LIMITS__RATE": "0"}


class Failed(Exception):
    """A command ended with another exit code than 0."""

    def __init__(self, code: int, out: str, err: str) -> None:
        super().__init__(f"exit code {code}\n{out}\n{err}")
        self.code, self.out, self.err = code, out, err


class Memex:
    """A vault, a state folder and an empty home; `models` is a folder of encoder files to copy."""

    def __init__(self, folder: Path, *, models: Path | None = None, vault: Path | None = None) -> None:
        self.folder = folder
        self.vault, self.state, self.home = vault or folder / "vault", folder / "state", folder / "home"
        for made in (self.vault, self.home, self.state):
            made.mkdir(parents=True, exist_ok=True)
        self.state.chmod(0o700)
        if models is not None:
            shutil.copytree(models, self.state / "models")
        self.log = folder / "serve.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.client = httpx2.Client(timeout=120, trust_env=False)

    # Commands, each a process of its own

    @property
    def environ(self) -> dict[str, str]:
        """Return an environment with default settings, except for higher request limits."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        return kept | {"HOME": str(self.home), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | FAST

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start `memex WORDS`."""
        command = [DAEMON_PYTHON, "-m", "syncd.cli", *words, "--vault", self.vault, "--state", self.state]
        return subprocess.Popen(command, env=self.environ, cwd=self.home, **options)

    def run(self, *words: str, stdin: bytes = b"") -> str:
        """Run `memex WORDS` and return its output. Raises Failed."""
        pipe = subprocess.PIPE
        with self.start(*words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            out, err = (text.decode() for text in process.communicate(stdin, timeout=300))
        if process.returncode:
            raise Failed(process.returncode, out, err)
        return out

    def json(self, *words: str) -> Any:
        """Run `memex WORDS --json` and return the parsed answer."""
        return json.loads(self.run(*words, "--json"))

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Return the daemon's answer to an operation of the owner, without the process of a command."""
        return control_socket.call(self.state, operation, arguments, timeout=60)

    def found(self, query: str, *, scope: str = "all", **given: Any) -> list[str]:
        """Return the paths that an owner's search finds in the running daemon, best first."""
        return [hit["path"] for hit in self.ask("search", query=query, scope=scope, **given)["hits"]]

    # The daemon

    def serve(self, *options: str, wait: bool = True) -> float:
        """Start the daemon, and return the seconds until it was ready (without `wait`: until it answered)."""
        begun = time.monotonic()
        self.client = httpx2.Client(timeout=120, trust_env=False)
        with self.log.open("ab") as log:
            self.process = self.start(
                "serve", "--port", "0", *options, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        daemon_logs.watch(self.log, self.process)
        self.until(lambda: self._bound(self.process), 180)
        if wait:
            self.settled(900)
        return time.monotonic() - begun

    def _bound(self, process: subprocess.Popen[bytes] | None) -> bool:
        assert process is not None
        assert process.poll() is None, f"the daemon ended with {process.returncode} before it listened\n{self.said}"
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((self.state / "daemon.json").read_text())
            self.url = told["url"] if told["pid"] == process.pid else ""
        return bool(self.url)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Signal the daemon, and return its exit code and the seconds until its end."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.process, self.url = None, ""
        return code, time.monotonic() - begun

    @property
    def said(self) -> str:
        """Return the daemon's whole output."""
        return self.log.read_text()

    @property
    def key(self) -> str:
        return (self.state / "key").read_text().strip()

    def rest(self, method: str, path: str, *, workspace: str = "default", **options: Any) -> httpx2.Response:
        """Send one request of an agent."""
        headers = {"authorization": f"Bearer {self.key}", "x-memory-workspace": workspace}
        return self.client.request(method, self.url + path, headers=headers, **options)

    def capture(self, content: str, **more: Any) -> str:
        """Capture a note, and return its id."""
        answer = self.rest("POST", "/capture", json={"content": content, **more})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["id"])

    def readyz(self) -> dict[str, Any]:
        return dict(self.rest("GET", "/readyz").json())

    def settled(self, within: float = PATIENCE) -> None:
        """Wait until the daemon is ready and has indexed all known changes."""

        def calm() -> bool:
            state = self.readyz()
            return bool(state["ready"]) and state["pending"] == 0

        self.until(calm, within)

    def until(self, holds: Callable[[], Any], within: float = PATIENCE) -> Any:
        """Wait until `holds` returns a true value, and return the value."""
        return until(holds, within, pause=0.05)

    # The person's side

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def git(self, *words: str) -> str:
        name = ("-c", "user.name=Tester", "-c", "user.email=t@example.org", "-c", "core.quotepath=off")
        command = ["git", *name, "-c", "commit.gpgsign=false", *words]
        environ = self.environ | {"GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(command, cwd=self.vault, env=environ, check=True, capture_output=True, text=True).stdout

    def commit(self, message: str) -> str:
        """Commit everything, and return the commit."""
        if not (self.vault / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()


class ChangedPython(Memex):
    """Memex on a Python that runs `at_start` first."""

    at_start: str

    @property
    def environ(self) -> dict[str, str]:
        environ, folder = super().environ, self.folder / "at-start"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(self.at_start)
        return environ | {"PYTHONPATH": f"{folder}:{environ['PYTHONPATH']}"}


@contextmanager
def daemon(folder: Path, models: Path, *, vault: Path | None = None) -> Iterator[Memex]:
    """Yield a Memex, and stop its daemon at the end."""
    memex = Memex(folder, models=models, vault=vault)
    try:
        yield memex
    finally:
        if memex.process is not None:
            memex.stop(signal.SIGKILL)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file and folder below `folder`: size and time of change."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    }
