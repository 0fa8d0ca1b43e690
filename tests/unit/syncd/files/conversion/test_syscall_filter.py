"""What a parser with a bug can do from inside the sandbox: nothing, as an ordinary user and whatever the host refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from syncd.files.conversion.syscall_filter import compile_filter
from tests.support.paths import ROOT

if sys.platform != "linux":
    pytest.skip("seccomp and Landlock are means of Linux", allow_module_level=True)

from tests.support.sandbox_attempts import NO_SECCOMP, TEXT, attempts

SOMEBODY = 12345
TO = {"note": "/n", "state": "/s", "pid": 1, "abstract": "\0a", "port": 1}
NO_NAMESPACES = "unshare"  # as a unit's RestrictNamespaces= does
NO_LANDLOCK = "landlock_create_ruleset"  # as an older kernel, or a container


def attempt(folder: Path, mode: str, refused: str) -> dict[str, Any]:
    """What came of the attempts of a converter that an ordinary user runs."""
    ordinary: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv to become an ordinary user")
        # Python may lie in root's home. The one right that leads to it is given up by the child before it reads.
        right = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        ordinary = ["setpriv", *right, f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
        os.chown(folder, SOMEBODY, SOMEBODY)
        for above in (folder, *folder.parents):
            if above == Path(tempfile.gettempdir()):
                break
            above.chmod(above.stat().st_mode | 0o011)
    command = [*ordinary, sys.executable, "-P", "-m", "tests.support.sandbox_attempts", mode, str(folder), refused]
    environ = {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.defpath,
        "TMPDIR": str(folder.parent),
    }
    if ordinary:
        folder.parent.chmod(0o1777)
        trial = [*ordinary, sys.executable, "-c", "import tests.support.sandbox_attempts"]
        if subprocess.run(trial, env=environ, cwd="/", check=False, capture_output=True).returncode:
            pytest.skip("an ordinary user can't run this Python, or read this project")
    done = subprocess.run(command, env=environ, cwd="/", check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert outcome["uid"] != 0
    return outcome


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The outcomes of all attempts, by mode and what the host refuses; each is run once."""
    kept: dict[tuple[str, str], dict[str, Any]] = {}

    def of(mode: str, refused: str) -> dict[str, Any]:
        if (mode, refused) not in kept:
            folder = tmp_path_factory.mktemp("attempts") / "home"
            folder.mkdir()
            kept[mode, refused] = attempt(folder, mode, refused)
        return kept[mode, refused]

    return of


@pytest.mark.parametrize("host", ["", NO_NAMESPACES], ids=["a host with namespaces", "a host without namespaces"])
@pytest.mark.parametrize("name", list(attempts(TO)))
def test_it_is_refused(outcomes, name, host):
    assert outcomes("run", host)["came"][name] in ("EPERM", "EACCES")


@pytest.mark.slow
@pytest.mark.parametrize("host", ["", NO_NAMESPACES, NO_LANDLOCK])
def test_the_user_s_files_are_as_they_were(outcomes, host):
    after = outcomes("run", host)["after"]
    assert (after["text"], after["mode"]) == (TEXT, 0o600)
    assert after["files"] == ["note.md", "note.md.doomed", "note.md.moved", "state"]


@pytest.mark.parametrize(
    "name",
    [
        "open a file of the user",
        "open the token of the daemon",
        "list the state folder",
        "open /etc/passwd",
        "mkdir",
        "unlink",
        "truncate",
        "chmod",
        "connect to the control socket",
        "connect to an abstract socket",
        "connect to TCP on 127.0.0.1",
        "signal the daemon",
        "memfd_create",
        "start a thread",
    ],
)
def test_the_attempt_would_succeed_without_the_sandbox(outcomes, name):
    assert outcomes("free", "")["came"][name] == "done"


def test_without_seccomp_landlock_still_keeps_the_owner_s_commands_from_the_child(outcomes):
    """The socket can be reached then, and its token can't."""
    came = outcomes("run", NO_SECCOMP)["came"]
    assert came["open the token of the daemon"] == "EACCES"
    assert "PERMISSION_DENIED" in came["give the owner's command over the control socket"]
    assert "a working key" not in json.dumps(came)


def test_without_landlock_the_filter_refuses_all_but_reading(outcomes):
    came = outcomes("run", NO_LANDLOCK)["came"]
    readable = {name for name, result in came.items() if result not in ("EPERM", "EACCES")}
    assert readable <= {
        "open a file of the user",
        "open the token of the daemon",
        "list the state folder",
        "open /etc/passwd",
        "open the daemon's environment",
    }


def test_the_filter_is_made_once_and_is_a_program_of_the_kernel_s():
    program = compile_filter()
    assert program is not None
    assert len(program) % 8 == 0
    assert compile_filter() is program
