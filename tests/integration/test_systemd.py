"""The service in the hands of a real systemd: a user manager in namespaces of its own, as an ordinary user.

Needs root (to make the namespaces) and systemd; where either is missing this is skipped, and says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.daemon_process import ROOT

UID = "61234"
NAME = 'My Vault – ü 100% $HOME "q" \\t'
SYSTEMD = "/lib/systemd/systemd"
START = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/user/$UID_
chown $UID_ /run/user/$UID_
chmod 700 /run/user/$UID_
case $PREFIX in /root/*)  # where an ordinary user can't go
  mkdir /run/python
  mount --bind $PREFIX /run/python
  mount -t tmpfs -o mode=755 tmpfs /root
  mkdir -p $PREFIX
  mount --bind /run/python $PREFIX
esac
umount -R /sys/fs/cgroup || umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/$GROUP
chown -R $UID_ /sys/fs/cgroup/$GROUP
echo $$ > /sys/fs/cgroup/$GROUP/cgroup.procs
exec setpriv --reuid $UID_ --regid $UID_ --clear-groups env -i PATH=/usr/bin:/bin HOME="$HOME_" XDG_RUNTIME_DIR=/run/user/$UID_ \
  SYSTEMD_LOG_TARGET=console /lib/systemd/systemd --user
"""
MISSING = [name for name in ("unshare", "nsenter", "setpriv", "systemctl") if not shutil.which(name)]

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can make the namespaces"
    ),
    pytest.mark.skipif(bool(MISSING) or not Path(SYSTEMD).exists(), reason="systemd is not installed"),
    pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="a systemd runs this machine: not beside it"),
]


class Person:
    """A user with a home of their own and a systemd that looks after their services."""

    def __init__(self, home: Path, log: Path) -> None:
        self.home, self.log, self.group = home, log, f"memex-test-{os.getpid()}-{time.monotonic_ns()}"
        self.vault, self.state = home / NAME, home / ".local/state/memex test"
        environ = os.environ | {"UID_": UID, "GROUP": self.group, "HOME_": str(home), "PREFIX": sys.base_prefix}
        with log.open("wb") as out:
            self.manager = subprocess.Popen(["unshare", "-m", "sh", "-c", START], env=environ, stdout=out, stderr=out)
        end = time.monotonic() + 30
        while "Version" not in self.run("systemctl", "--user", "show", "--property=Version", check=False):
            if self.manager.poll() is not None or time.monotonic() > end:
                pytest.skip(f"no user manager starts in this sandbox: {log.read_text()[-300:]}")
            time.sleep(0.2)

    def run(self, *words: str, check: bool = True) -> str:
        within = [
            "nsenter",
            "-t",
            str(self.manager.pid),
            "-m",
            "setpriv",
            "--reuid",
            UID,
            "--regid",
            UID,
            "--clear-groups",
        ]
        clean = ["env", "-i", "PATH=/usr/bin:/bin", f"HOME={self.home}", f"XDG_RUNTIME_DIR=/run/user/{UID}"]
        command = [*within, *clean, f"PYTHONPATH={ROOT}", "PYTHONDONTWRITEBYTECODE=1", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, cwd="/")
        assert not check or done.returncode == 0, (
            words,
            done.returncode,
            done.stdout,
            done.stderr,
            self.log.read_text()[-2000:],
        )
        return done.stdout

    def memex(self, *words: str) -> dict:
        own = ("--vault", str(self.vault), "--state", str(self.state), "--json")
        return json.loads(self.run(sys.executable, "-m", "syncd.cli", *words, *own))

    def show(self, name: str) -> str:
        return self.run("systemctl", "--user", "show", f"--property={name}", "--value", "memex.service").strip()

    def until(self, true, within: float = 60.0) -> None:
        end = time.monotonic() + within
        while not true():
            assert time.monotonic() < end, self.log.read_text()[-3000:]
            time.sleep(0.2)

    def end(self) -> None:
        self.run("systemctl", "--user", "stop", "memex.service", check=False)
        self.manager.terminate()
        try:
            self.manager.wait(30)
        except subprocess.TimeoutExpired:
            self.manager.kill()
            self.manager.wait(30)
        for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            group = Path(root, self.group)
            for folder in sorted(group.rglob("*/"), reverse=True) if group.is_dir() else ():
                folder.rmdir()
            if group.is_dir():
                group.rmdir()


@pytest.fixture(scope="module")
def person(bundled, models):
    home = Path(tempfile.mkdtemp(prefix="memex-person-"))
    try:
        (home / NAME).mkdir()
        (home / NAME / "Heron.md").write_text("# Heron\n\nherons stand still in shallow water\n")
        (home / ".config/systemd/user/memex.service.d").mkdir(parents=True)
        # What the installed program needs nothing of: this one is a checkout. Signs of life are wanted sooner, too.
        (home / ".config/systemd/user/memex.service.d/test.conf").write_text(
            f"[Service]\nEnvironment=PYTHONPATH={ROOT} PYTHONDONTWRITEBYTECODE=1 MEMEX_SERVER__PORT=0\nWatchdogSec=8s\nRestartSec=1s\n"
            f"StandardError=append:{home}/memex.log\n"
        )
        for path in (home, *home.rglob("*")):
            os.chown(path, int(UID), int(UID))
        one = Person(home, home.with_suffix(".log"))
        try:
            one.memex("init", "--yes", "--no-welcome", str(one.vault))
            shutil.copytree(models, one.state / "models")
            one.run("chmod", "-R", "u+w", str(one.state / "models"), check=False)
            for path in [one.state / "models", *(one.state / "models").rglob("*")]:
                os.chown(path, int(UID), int(UID))
            yield one
        finally:
            one.end()
            one.log.unlink()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_it_is_installed_started_watched_and_taken_away(person):
    file = person.home / ".config/systemd/user/memex.service"
    told = person.memex("service", "install", "--now")
    assert (told["file"], told["active"], told["enabled"]) == (str(file), True, True)
    assert (person.home / ".config/systemd/user/default.target.wants/memex.service").is_symlink()
    arguments = Path(f"/proc/{told['pid']}/cmdline").read_bytes().decode().split("\0")
    assert arguments[arguments.index("--vault") + 1] == str(person.vault), "as it is written, whatever its characters"
    assert Path(f"/proc/{told['pid']}/status").read_text().count("Seccomp:\t2") == 1
    person.until(lambda: person.memex("service", "status")["says"] == "ready: 2 notes")  # and About.md
    found = person.memex("search", "still water", "--scope", "vault")
    assert found[0]["path"] == "Heron.md"

    # It is killed: it comes back by itself.
    os.kill(told["pid"], signal.SIGKILL)
    person.until(lambda: person.show("NRestarts") == "1" and person.show("ActiveState") == "active")

    # It hangs: it falls silent, is ended and says in the log where it hung, and comes back.
    pid = int(person.show("MainPID"))
    os.kill(pid, signal.SIGSTOP)
    person.until(lambda: person.show("NRestarts") == "2" and person.show("ActiveState") == "active", 120)
    assert int(person.show("MainPID")) != pid
    assert "Fatal Python error: Aborted" in (person.home / "memex.log").read_text()

    # A stop drains.
    began = time.monotonic()
    person.run("systemctl", "--user", "stop", "memex.service")
    assert time.monotonic() - began < 45
    assert (person.show("Result"), person.show("ExecMainStatus")) == ("success", "0")

    removed = person.memex("service", "uninstall")
    assert removed == {"file": str(file), "removed": True}
    assert not file.exists()
    assert person.show("LoadState") == "not-found"
    assert (person.state / "ledger.db").exists()


def test_it_runs_shut_in_where_the_system_allows_it_and_otherwise_without(person):
    told = person.memex("service", "install", "--harden")
    assert told["active"]
    drop_in = person.home / ".config/systemd/user/memex.service.d/hardening.conf"
    assert drop_in.exists() == told["hardened"]
    captured = person.memex("capture", "a thought in a narrow room")
    assert "a thought in a narrow room" in (person.vault / captured["path"]).read_text()
    if told["hardened"]:
        inside = ["nsenter", "-t", str(told["pid"]), "-U", "-m", "touch", str(person.home / "outside")]
        assert subprocess.run(inside, check=False, capture_output=True).returncode != 0
    person.memex("service", "uninstall")
    assert not drop_in.exists()
