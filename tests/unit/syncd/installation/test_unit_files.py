"""Units and agents as text, and as systemd itself reads them."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import tempfile

import pytest

from index.errors import InvalidArgument
from syncd.installation.unit_files import hardening_drop_in, launchd_agent, quote, systemd_unit, vault_line
from tests.support.paths import ROOT

NASTY = "My Vault – ü 100% $HOME ${X} \"q\" 's' \\n \a\n\t\x01;#"
COMMAND = ["/home/you/.local/bin/memex", "serve", "--vault", "/home/you/My Vault"]
COMMAND += ["--state", "/home/you/.local/state/memex/My Vault-1a2b3c4d"]
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("/a b", True, '"/a b"'),
        ("ü –", True, '"ü –"'),
        ("100%", True, '"100%%"'),
        ("$HOME", True, '"$$HOME"'),
        ("$HOME", False, '"$HOME"'),
        ('"\\', True, '"\\"\\\\"'),
        ("a\nb\x01", True, '"a\\nb\\x01"'),
    ],
)
def test_a_word_is_escaped_as_systemd_reads_it(text, variables, expected):
    assert quote(text, variables=variables) == expected


@pytest.mark.parametrize("text", ["/caf\udce9", "/a\0b"])
def test_a_path_that_no_unit_can_hold_is_refused(text):
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        quote(text)


def test_the_unit_and_the_drop_in_of_the_project_are_what_the_program_writes():
    folder = ROOT / "systemd"
    assert (folder / "memex.service").read_text().replace("%h", "/home/you") == systemd_unit(
        "memex", COMMAND, vault=COMMAND[3]
    )
    assert (folder / "hardening.conf").read_text().replace("%h", "/home/you") == hardening_drop_in(
        [COMMAND[3], COMMAND[5]]
    )


def test_a_unit_says_whose_it_is():
    mine, other = (systemd_unit("memex", COMMAND, vault=vault) for vault in ("/a", "/b"))
    assert vault_line(mine) == 'X-MemexVault="/a"'
    assert vault_line(mine) != vault_line(other)
    assert vault_line("[Service]\nExecStart=/bin/true\n") == ""


def test_an_exit_that_a_restart_can_not_mend_is_not_restarted():
    from syncd.cli.framework.command_outcome import CONFIG, DATA, GONE, PERMISSION, USAGE

    (codes,) = re.findall(r"^RestartPreventExitStatus=(.*)$", systemd_unit("memex", COMMAND, vault="/a"), re.MULTILINE)
    assert set(map(int, codes.split())) == {USAGE, DATA, PERMISSION, CONFIG}
    assert str(GONE) not in codes.split(), "a port that is taken and a disk that is away come free"


def verified(tmp_path, name, text, drop_in=""):
    """What systemd has to say against a unit."""
    (tmp_path / name).write_text(text)
    if drop_in:
        (tmp_path / f"{name}.d").mkdir()
        (tmp_path / f"{name}.d/hardening.conf").write_text(drop_in)
    analyze = ["systemd-analyze", "--user"]
    check = [*analyze, "--man=no", "verify", str(tmp_path / name)]
    grade = [*analyze, "security", "--offline=true", "--threshold=70", str(tmp_path / name)]
    # A short path, made private: systemd looks at the sockets of other units there, whose paths must not be too long.
    with tempfile.TemporaryDirectory() as run:
        environ = os.environ | {"XDG_RUNTIME_DIR": run, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
        done = subprocess.run(check, env=environ, capture_output=True, text=True, timeout=60, check=False)
        graded = subprocess.run(grade, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr + done.stdout, done.returncode, graded.returncode


@needs_systemd
@pytest.mark.parametrize("shut_in", [False, True], ids=["as it is", "with its drop-in"])
def test_systemd_finds_no_fault_with_the_unit_whatever_the_paths(tmp_path, shut_in):
    program = tmp_path / "ü $x 5% bin" / "memex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = systemd_unit("memex", [str(program), "serve", "--vault", f"/home/{NASTY}"], vault=f"/home/{NASTY}")
    drop_in = hardening_drop_in(["/home/" + NASTY.replace("\n", ""), "/b"]) if shut_in else ""
    assert verified(tmp_path, "memex.service", text, drop_in) == ("", 0, 0)


@needs_systemd
def test_systemd_finds_fault_with_a_unit_that_has_one(tmp_path):
    text = systemd_unit("memex", ["/bin/sh"], vault="/a").replace("WatchdogSec=60s", "WatchdogSec=soon\nWatchDog=1")
    said, _, _ = verified(tmp_path, "memex.service", text)
    assert "Failed to parse" in said
    assert "WatchDog" in said


def test_the_agent_of_macos_runs_the_same_command():
    nasty = NASTY.replace("\a", "").replace("\x01", "")
    made = plistlib.loads(launchd_agent("memex-work", [*COMMAND, nasty], log="/l", environment={"A": "b"}))
    assert made["ProgramArguments"] == [*COMMAND, nasty]
    assert (made["Label"], made["RunAtLoad"], made["KeepAlive"]) == ("memex-work", True, {"SuccessfulExit": False})
    assert (made["ExitTimeOut"], made["StandardErrorPath"]) == (45, "/l")
    assert "Umask" not in made
    assert made["EnvironmentVariables"]["A"] == "b"


@pytest.mark.parametrize("path", ["/a\x01", "/caf\udce9"])
def test_a_path_that_no_agent_can_hold_is_refused(path):
    with pytest.raises(InvalidArgument, match="can't be written"):
        launchd_agent("memex", [path], log="/l", environment={})
