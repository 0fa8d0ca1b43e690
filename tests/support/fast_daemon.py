"""A daemon in a separate process with a fake model, so that it starts fast; and unusual environments to run it in."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from index.errors import MemexError
from index.timings import now_ms
from syncd.app import App
from syncd.daemon import control_socket
from syncd.installation.vault_setup import set_up_vault
from syncd.settings.access import LimitsSettings
from syncd.settings.automation import WatchSettings
from syncd.settings.settings import ServerSettings, Settings, SyncSettings, VaultSettings
from tests.support import daemon_logs
from tests.support.fakes import fake_embedder
from tests.support.paths import ROOT
from tests.support.stop_signals import stop_on_signals
from tests.support.world import until


def serve(vault: Path, state: Path, poll_s: float) -> None:
    """Run the daemon in its own process."""
    settings = Settings(
        vault=VaultSettings(path=vault),
        state=state,
        server=ServerSettings(port=0),
        sync=SyncSettings(listing_s=3600.0),  # nothing but events, or what stands in for them, may help
        watch=WatchSettings(poll_s=poll_s),
        limits=LimitsSettings(rate=0),
    )
    set_up_vault(settings, now=now_ms())
    with App(settings, embedder=fake_embedder()) as app:
        app.serve(lambda _: None, stop_on_signals())


class Daemon:
    """One run of the daemon on a vault, queried through the control socket; `before` is a command that starts it."""

    def __init__(
        self,
        folder: Path,
        *,
        vault: Path | None = None,
        state: Path | None = None,
        poll_s: float = 15.0,
        before: Sequence[str] = (),
        program: str = "tests.support.fast_daemon",
    ):
        self.vault, self.state, self.log = vault or folder / "vault", state or folder / "state", folder / "log"
        self.vault.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*before, sys.executable, "-m", program, str(self.vault), str(self.state), str(poll_s)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )
        daemon_logs.watch(self.log, self.process)
        try:
            until(self.ready, 180)
        except BaseException:
            self.kill()
            raise
        self.took = sum(psutil.Process(self.process.pid).cpu_times()[:2])  # seconds of work until it was ready

    def ready(self) -> bool:
        assert self.process.poll() is None, (
            f"the daemon ended with {self.process.returncode} before it was ready\n{self.log.read_text()[-4000:]}"
        )
        with contextlib.suppress(MemexError, OSError, ValueError):
            bound = json.loads((self.state / "daemon.json").read_text())["pid"] == self.process.pid
            return bound and bool(self.ask("status")["ready"])
        return False

    def ask(self, operation: str, **given: Any) -> Any:
        return control_socket.call(self.state, operation, given, timeout=60)

    def status(self, *names: str) -> Any:
        """Return the owner's status, or one part of it."""
        told = self.ask("status")
        for name in names:
            told = told[name]
        return told

    def found(self, query: str) -> list[str]:
        """Return the paths of the notes that hold these words."""
        hits = self.ask("search", query=query, scope="all", mode="text", limit=50)["hits"]
        return sorted(hit["path"] for hit in hits)

    def settled(self, within: float = 60.0) -> None:
        until(lambda: self.status("pending") == 0, within)

    def write(self, path: str, text: str) -> Path:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(45)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def alone_with_limits() -> list[str]:
    """Return a command that runs another command with its own inotify limits."""
    trial = "echo 1000 > /proc/sys/user/max_inotify_watches"
    command = ["unshare", "-Ur"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*command, "sh", "-c", trial], check=False, capture_output=True).returncode
    ):
        pytest.skip("no user namespaces here: the limit of watches can't be lowered")
    return command


def somebody_else(folder: Path) -> tuple[Callable[..., subprocess.CompletedProcess[str]], Path]:
    """Return a function that runs Python as an unprivileged user, and a folder of this user."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root to become somebody else")
    root = folder / "theirs"
    root.mkdir()
    os.chown(root, 65534, 65534)
    for above in (folder, *folder.parents[:3]):
        if above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c"]
    env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*other, program, *words], cwd="/", env=env, capture_output=True, text=True, check=False)

    if run("import syncd.watch.folder_events").returncode:
        pytest.skip("another user can't run this Python, or read this project")
    return run, root


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
