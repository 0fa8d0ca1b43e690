"""A remote that is down, hangs, asks or refuses costs its time and no more."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from index.errors import Conflict, Unavailable
from syncd.remote import upstream_branch
from syncd.remote.branch_sync import UNREACHED, SyncOutcome
from tests.support.git_states import run
from tests.support.remote_vault import SECRET, SyncedDevice
from tests.support.world import until

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


@pytest.mark.parametrize("planned", [False, True])
def test_a_manual_sync_of_a_vault_without_a_repository_leaves_no_problem(device, planned):
    shutil.rmtree(device.vault / ".git")
    run(device.vault.parent, "init", "-q")
    device.remote = device.made(push=planned)
    with pytest.raises(Conflict, match="the vault is a subfolder of the repository"):
        device.remote.sync()
    assert (device.remote.unwell, bool(device.remote.problem)) == (UNREACHED if planned else "", planned)


def transport(device, script):
    """Let the remote be reached by ssh, and ssh be this script."""
    program = device.state.parent / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    run(device.vault, "config", "core.sshCommand", str(program))
    run(device.vault, "remote", "set-url", "origin", f"host:{device.bare}")


def alive(word):
    """The processes of whose command line this is a part."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


SERVES = 'shift $(($# - 1)); eval "$1"'  # what the other end of ssh would do
FAILURES = {
    "it is down": ("echo 'ssh: connect to host host port 22: Connection refused' >&2; exit 255", "Connection refused"),
    "it hangs": ("sleep 86399 & echo $$ > $0.pid; wait", "made no progress for 1 s"),
    "it hangs and hears no signal": ("trap '' TERM INT HUP; sleep 86399; sleep 86399", "made no progress for 1 s"),
    "it hangs half-way": ('shift $(($# - 1)); eval "$1" | (head -c 20; sleep 86399)', "made no progress for 1 s"),
    "it asks at the terminal": ("printf 'Password: ' > /dev/tty && read secret < /dev/tty || { echo 'no terminal' >&2; exit 1; }", "no terminal"),
    "it asks on its input": ("read answer; exit 1", "made no progress for 1 s"),
    "it says a lot": ("yes 'remote: busy' | head -c 3000000 >&2; exit 1", "remote: busy"),
    "it tells a secret": (f"echo 'fatal: https://me:{SECRET}@host/ is gone' >&2; exit 1", r"https://me:\[github-token\]@host"),
}  # fmt: skip

OFTEN = ("it is down", "it hangs", "it tells a secret")


@pytest.mark.parametrize("how", [pytest.param(how, marks=() if how in OFTEN else pytest.mark.slow) for how in FAILURES])
def test_a_remote_that_fails_costs_its_time_and_no_more(tmp_path, how):
    device = SyncedDevice(tmp_path, timeout_s=1.0)
    script, says = FAILURES[how]
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    transport(device, script)
    before, began = device.files(), time.monotonic()
    with pytest.raises(Unavailable, match=says) as told:
        device.remote.sync()
    assert time.monotonic() - began < 20
    assert (SECRET not in told.value.message, len(told.value.message) < 1_000) == (True, True)
    until(lambda: not alive(b"86399"))
    assert device.files() == before
    assert device.remote.unwell == UNREACHED
    transport(device, SERVES)
    assert device.made(timeout_s=60.0).sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    device.close()


@pytest.mark.slow
def test_a_transfer_that_takes_long_is_not_ended_while_it_moves(tmp_path):
    device = SyncedDevice(tmp_path, timeout_s=3.0)
    slow = "import sys, time\nwhile b := sys.stdin.buffer.read1(8192): sys.stdout.buffer.write(b); sys.stdout.flush(); time.sleep(len(b) / 1e5)"
    device.there("theirs.bin", os.urandom(600_000))
    device.here("ours.bin", os.urandom(600_000))
    (tmp_path / "slow.py").write_text(slow)
    slowly = f"{sys.executable} -u {tmp_path}/slow.py"
    transport(device, f'shift $(($# - 1)); {slowly} | eval "$1" | {slowly}')
    began = time.monotonic()
    assert device.remote.sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert time.monotonic() - began > 10
    device.close()


@pytest.mark.parametrize("asks", ["a password", "a helper that opens a window"])
def test_nobody_is_asked_for_a_password(device, asks):
    class Closed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="vault"')
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    window = device.state.parent / "window"
    window.write_text(f"#!/bin/sh\ntouch {window}.opened\nsleep 86399\n")
    window.chmod(0o755)
    if asks != "a password":
        run(device.vault, "config", "core.askPass", str(window))
    run(device.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    try:
        with pytest.raises(Unavailable, match="terminal prompts disabled"):
            device.remote.sync()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not window.with_suffix(".opened").exists()


def test_a_credential_helper_of_git_is_asked(device):
    seen = []

    class Closed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("Authorization"))
            self.send_response(404 if seen[-1] else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="vault"')
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    run(device.vault, "config", "credential.helper", "!f() { echo username=me; echo password=it; }; f")
    run(device.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    with pytest.raises(Unavailable, match="not found"):
        device.remote.sync()
    server.shutdown()
    thread.join()
    server.server_close()
    assert seen[-1] == "Basic bWU6aXQ="


def test_a_remote_that_refuses_a_push_is_told_in_its_words_and_the_next_success_sends_all(device):
    hook = device.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'branch is frozen' >&2\nexit 1\n")
    hook.chmod(0o755)
    for name in ("a.md", "b.md"):
        device.here(name, name)
        with pytest.raises(Unavailable, match=r"refuses the commits: .*declined\); remote: branch is frozen error"):
            device.remote.sync()
    hook.unlink()
    assert device.remote.sync().sent == 2


def test_what_waits_for_the_network_ends_with_the_daemon(tmp_path):
    device = SyncedDevice(tmp_path, timeout_s=60.0)
    transport(device, FAILURES["it hangs"][0])
    failed = []

    def work():
        with pytest.raises(Unavailable, match="is stopping"):
            device.remote.sync()
        failed.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: alive(b"86399"))
    device.remote.interrupt()
    thread.join(60)
    assert failed
    until(lambda: not alive(b"86399"))
    device.close()


def test_the_persons_own_ssh_is_asked_with_its_options_and_never_for_a_password(device, monkeypatch):
    folder = device.state.parent / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\necho "$@" > {folder}/said\n{SERVES}\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "/bin/false")  # of whoever started the daemon
    run(device.vault, "config", "core.sshCommand", "ssh -i key")
    run(device.vault, "remote", "set-url", "origin", f"host:{device.bare}")
    device.remote.sync()
    words = (folder / "said").read_text()
    assert words.startswith("-i key -oBatchMode=yes -oConnectTimeout=10")
    assert "-F" not in words


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_without_root_in_its_namespace_ssh_reads_only_the_settings_of_the_person(device, monkeypatch):
    """ssh ends at a file of `/etc/ssh/ssh_config.d` that belongs to neither root nor the person."""
    folder = device.state.parent / "etc"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    monkeypatch.setattr(upstream_branch, "_SYSTEM_FOLDER", folder)
    monkeypatch.setenv("HOME", str(folder))
    for there, option in ((False, "none"), (True, f"{folder}/.ssh/config")):
        if there:
            (folder / ".ssh").mkdir()
            (folder / ".ssh/config").write_text("Host git\n")
        assert upstream_branch._silent_environ(device.repo)["GIT_SSH_COMMAND"].endswith(f" -F {option}")
    run(device.vault, "config", "core.sshCommand", "ssh -F settings")
    assert upstream_branch._silent_environ(device.repo)["GIT_SSH_COMMAND"].count("-F") == 1
