"""A command that fails has its exit code and one sentence or one JSON object on stderr, against a door that really answers."""

from __future__ import annotations

import errno
import json
import shlex
import signal
import subprocess
import sys
import time

import pytest

from index.errors import CODES, from_os_error
from syncd.cli.framework.command_outcome import EXIT, SERVE_EXIT
from syncd.cli.main import run_command
from syncd.daemon.control_socket import DAEMON, ControlServer
from tests.support.answering_daemon import RECORD

pytestmark = pytest.mark.usefixtures("clean")


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        pytest.param("get missing", 4, id="no such note"),
        pytest.param("search", 2, id="a missing argument"),
        pytest.param("search q --limit 0", 2, id="out of range"),
        pytest.param("search q --since nonsense", 2, id="no time"),
        pytest.param("nonsense", 2, id="no such command"),
        pytest.param("status --nonsense", 2, id="no such option"),
        pytest.param("serve --nonsense", 64, id="no such option of serve"),
        pytest.param("serve --port x", 64, id="no such port"),
        pytest.param("serve --config /does/not/exist", 78, id="serve without its settings file"),
        pytest.param("", 2, id="nothing at all"),
        pytest.param("--help", 0, id="help"),
        pytest.param("--version", 0, id="version"),
    ],
)
def test_each_failure_has_its_exit_code(daemon, capfd, line, exit_code):
    assert run_command(line.split()) == exit_code
    out, err = capfd.readouterr()
    assert (out == "") == (exit_code != 0)
    assert (err == "") == (exit_code == 0)


@pytest.mark.parametrize("line", ["--json node", "node --json"])
def test_a_group_without_a_command_is_an_error_in_json_too(capfd, line):
    assert run_command(line.split()) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert json.loads(err)["error"]["message"] == "`memex node` needs a command; see `memex node --help`"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("log x --limit abc", "--limit is a whole number from 1 to 10,000, and not 'abc'; see `memex log --help`"),
        ("log x -n 0", "--limit is a whole number from 1 to 10,000, and not 0; see `memex log --help`"),
        ("audit show x", "ENTRY is a whole number of at least 1, and not 'x'; see `memex audit show --help`"),
        (
            "audit show 'x is not y'",
            "ENTRY is a whole number of at least 1, and not 'x is not y'; see `memex audit show --help`",
        ),
        ("audit show", "missing argument 'ENTRY'; see `memex audit show --help`"),
        (
            "completion",
            "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish; see `memex completion --help`",
        ),
        ("audit --before-entry x", "--before-entry is a whole number, and not 'x'; see `memex audit --help`"),
        ("log x --limit", "--limit needs a value: a whole number from 1 to 10,000; see `memex log --help`"),
        ("undo x --until", "--until needs a value: TIME; see `memex undo --help`"),
        (
            "audit --surface",
            "--surface needs a value: one of mcp, rest, cli, daemon, file; see `memex audit --help`",
        ),
        (
            "search x --mode 'is not y'",
            "--mode is one of hybrid, vector, text, and not 'is not y'; see `memex search --help`",
        ),
        (
            "log West vent",
            "too many arguments: vent; a name with blanks needs quotes; see `memex log --help`",
        ),
        ("completion tcsh", "the argument is one of bash, zsh, fish, and not 'tcsh'; see `memex completion --help`"),
        ("import ./none", "FILE: File './none' does not exist; see `memex import --help`"),
        ("--vault", "--vault needs a value: DIRECTORY; see `memex --help`"),
    ],
)
def test_a_wrong_value_is_named_with_those_that_are_allowed(capfd, line, message):
    assert run_command(shlex.split(line)) == 2
    assert capfd.readouterr().err == f"memex: {message}\n"


def test_every_error_code_has_an_exit_code():
    assert EXIT.keys() == SERVE_EXIT.keys() == CODES.keys()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "x"), "UNAVAILABLE", "the disk is full: free some space, then run the command again"),
        (
            OSError(errno.EDQUOT, "x", "/a"),
            "UNAVAILABLE",
            "the disk is full (/a): free some space, then run the command again",
        ),
        (OSError(errno.EIO, "Input/output error", "/a"), "UNAVAILABLE", "/a: Input/output error"),
        (
            OSError(errno.EACCES, "Permission denied", "/a"),
            "PERMISSION_DENIED",
            "/a can't be read or written: Permission denied",
        ),
    ],
)
def test_an_error_of_the_system_names_the_file_and_the_reason(error, code, message):
    shown = from_os_error(error)
    assert (shown.code, shown.message) == (code, message)


def test_an_error_is_one_line_or_one_json_object_on_stderr(daemon, capfd):
    assert run_command(["get", "missing"]) == 4
    assert capfd.readouterr().err == "memex: no note 'missing'\n"
    assert run_command(["get", "missing", "--json"]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert json.loads(err) == {
        "error": {"code": "NOT_FOUND", "message": "no note 'missing'", "retryable": False, "details": {}}
    }
    assert run_command(["search", "--json"]) == 2
    assert json.loads(capfd.readouterr().err)["error"]["code"] == "INVALID_ARGUMENT"


def test_a_vault_that_was_never_set_up_names_the_command(tmp_path, capfd):
    (tmp_path / "v").mkdir()
    assert run_command(["search", "x", "--vault", str(tmp_path / "v")]) == 4
    assert f"memex init {tmp_path / 'v'}" in capfd.readouterr().err
    assert run_command(["search", "x"]) == 2
    assert "memex init VAULT" in capfd.readouterr().err


def test_a_closed_pipe_is_quiet(daemon):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.quote(sys.executable)} -m syncd.cli config | true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        ("capture <&-", 2),
        ("capture - <&- >&- 2>&-", 2),
        ("review <&-", 2),
        ("delete i1 <&-", 2),
        ("updatenote i1 <&-", 2),
        ("search beta >&-", 0),
        ("search beta --json >&-", 0),
        ("search beta 2>&-", 0),
    ],
)
def test_a_closed_stream_is_an_empty_one(daemon, line, exit_code):
    start = shlex.join([sys.executable, "-c", "from memex_vault import main; main()"])
    command = ["bash", "-c", f"exec {start} {line}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "internal error" in done.stderr) == (exit_code, False), done.stderr


def test_an_interrupt_of_the_imports_prints_nothing():
    code = f"""
import os, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), {signal.SIGINT:d})
sys.meta_path.insert(0, Interrupt())
from memex_vault import main
main()
"""
    for name, words in (("syncd.cli.main", []), ("syncd.cli.notes.context", ["context"])):
        command = [sys.executable, "-c", code, name, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_ends_with_130(tmp_path):
    (tmp_path / "v").mkdir()
    server = ControlServer(tmp_path, {"status": lambda _, __: time.sleep(5)})
    server.start()
    process = subprocess.Popen(
        [sys.executable, "-m", "syncd.cli", "status", "--vault", str(tmp_path / "v"), "--state", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 20
    while not server._busy and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    server.stop(grace=0)
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_a_bug_is_a_sentence_and_the_trace_on_request(daemon, capfd, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("x")

    monkeypatch.setattr("syncd.cli.notes.notes.ask", broken)
    assert run_command(["recent"]) == 1
    err = capfd.readouterr().err
    assert "internal error: ZeroDivisionError" in err
    assert "Traceback" not in err
    monkeypatch.setenv("MEMEX_DEBUG", "1")
    assert run_command(["recent"]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_an_answer_with_a_path_that_is_not_utf8_is_still_an_answer(daemon, capfd):
    daemon.server._operations["recent"] = lambda _, __: [RECORD | {"path": "a\udcff.md"}]
    assert run_command(["recent", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["path"] == "a\udcff.md"


def test_the_bridge_is_told_when_no_daemon_runs(tmp_path, capfd):
    (tmp_path / "v").mkdir()
    assert run_command(["mcp", "--vault", str(tmp_path / "v"), "--state", str(tmp_path / "s")]) == 7
    assert f"`memex --vault {tmp_path / 'v'} --state {tmp_path / 's'} serve`" in capfd.readouterr().err


def test_the_bridge_warns_when_it_takes_the_owners_key(daemon, capfd, monkeypatch, tmp_path):
    (daemon.state / DAEMON).write_text('{"url": "http://127.0.0.1:1", "pid": 1, "epoch": 1}')
    (daemon.state / "key").write_text("mx_the_owners\n")
    (tmp_path / "given").write_text("mx_given\n")
    monkeypatch.setattr("sys.stdin", (tmp_path / "given").open())
    for given, words, warns in (("", [], True), (" ", [], True), ("mx_one", [], False), ("", ["given"], False)):
        monkeypatch.setenv("MEMEX_KEY", given)
        run_command(["mcp", *(f"--key-file={tmp_path / name}" for name in words)])
        assert ("memex connect" in capfd.readouterr().err) == warns


def test_a_key_file_of_the_bridge_that_holds_no_key_is_named(daemon, capfd, tmp_path):
    (daemon.state / DAEMON).write_text('{"url": "http://127.0.0.1:1", "pid": 1, "epoch": 1}')
    (tmp_path / "empty").write_text("\n")
    assert run_command(["mcp", "--key-file", str(tmp_path / "empty")]) == 2
    assert str(tmp_path / "empty") in capfd.readouterr().err
    assert run_command(["mcp", "--key-file", str(tmp_path / "none")]) == 4
    assert "key file" in capfd.readouterr().err
