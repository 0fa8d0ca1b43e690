"""The command line, against a door that really answers: shapes for scripts, exit codes, what goes where."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from index.errors import CODES, NotFound
from syncd.cli import main
from syncd.cli.daemon.keys_and_config import until
from syncd.cli.framework.arguments import moment
from syncd.cli.main import EXIT, SERVE_EXIT, code, memex
from syncd.daemon.control_socket import DAEMON, ControlServer
from tests.support.command_line import HEAVY

HIT = {
    "id": "i1",
    "path": "Projects/A.md",
    "title": "A",
    "heading": "Top",
    "chunk": "some text",
    "score": 0.5,
    "scope": "vault",
    "workspace": "",
}
RECORD = {"id": "i1", "path": "Captures/default/A.md", "created_at": 0, "content_hash": "h", "chunks": 1}
STATUS = {
    "ready": True,
    "pending": 0,
    "generation": 3,
    "captures": {"documents": 1, "chunks": 1},
    "vault": {"documents": 2, "chunks": 2},
    "defects": [],
    "degraded": [],
}
REPORT = {
    "added": 1,
    "modified": 0,
    "moved": 0,
    "removed": 0,
    "unchanged": 2,
    "failed": 0,
    "chunks": 3,
    "embedded": 1,
    "reused": 2,
    "seconds": 0.5,
}


class Daemon:
    """A daemon's door with answers written by hand; it keeps what it was asked."""

    def __init__(self, state):
        self.state, self.asked = state, []
        answers = {
            "search": {"hits": [HIT | {"extra": 1}], "degraded": ["encoder: loading"], "mode": "text"},
            "capture": RECORD | {"created": True},
            "get": RECORD | {"content": "héllo\r\nno newline at the end"},
            "recent": [RECORD],
            "delete": RECORD | {"deleted": True},
            "status": STATUS | {"git": "ok"},
            "index": REPORT,
            "enrich": {"path": "Captures/default/A.md", "summary": "S.", "tags": ["a", "b"], "changed": ["summary"]},
            "enrich.backfill": {
                "enriched": 1,
                "unchanged": 0,
                "skipped": [{"path": "B.md", "reason": "it was changed a moment ago"}],
                "dry_run": True,
                "notes": [{"path": "A.md", "summary": "S."}],
            },
            "check": {"checked": 1200, "mended": 2, "failed": 1},
            "workspace.create": {"name": "work"},
            "workspace.list": [{"name": "default"}, {"name": "work"}],
            "workspace.delete": {"name": "work", "deleted": True},
            "key.create": {"name": "bot", "key": "mx_1_2"},
            "key.list": [
                {
                    "id": "1",
                    "name": "bot",
                    "scopes": ["read"],
                    "workspaces": None,
                    "revoked_at": None,
                    "expires_at": None,
                }
            ],
            "key.revoke": {"id": "1", "name": "bot"},
        }
        self.server = ControlServer(state, {name: self._answer(name, value) for name, value in answers.items()})

    def _answer(self, name, value):
        def answer(arguments, progress):
            self.asked.append((name, arguments))
            if arguments.get("id") == "missing":
                raise NotFound("no note 'missing'")
            return value

        return answer


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    (tmp_path / "vault").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path / "vault"))
    monkeypatch.setenv("MEMEX_STATE", str(tmp_path / "state"))
    running = Daemon(tmp_path / "state")
    running.server.start()
    yield running
    running.server.stop()


def test_search_in_json_has_exactly_the_fields_that_scripts_rely_on(daemon, capfd):
    assert code(["search", "some", "words", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out) == [HIT]
    assert "encoder: loading" in err
    name, asked = daemon.asked[0]
    assert (name, asked["query"], asked["scope"], asked["limit"]) == ("search", "some words", "all", 10)


def test_search_passes_its_filters_on(daemon):
    given = "search q -n 3 --mode text --scope captures -w work -t a -t b --type note --source s --since 1970-01-02T00:00:00Z"
    assert code(given.split()) == 0
    _, asked = daemon.asked[0]
    wanted = {"query": "q", "limit": 3, "mode": "text", "scope": "captures", "workspace": "work", "tags": ["a", "b"]}
    for name, value in (wanted | {"type": "note", "source": "s", "since": 86_400_000}).items():
        assert asked[name] == value
    assert "until" not in asked


def test_init_names_a_settings_file_so_that_a_shell_takes_it_as_one_word(tmp_path, capfd):
    for name in ("first", "My V\u00e4lt"):
        (tmp_path / name).mkdir()
        assert code(["init", str(tmp_path / name)]) == 0
    line = next(line for line in capfd.readouterr().out.splitlines() if "memex serve --config" in line)
    *_, option, file = shlex.split(line)
    assert option == "--config"
    assert Path(file).is_file()


@pytest.mark.parametrize(
    "line",
    [
        "--json status",
        "status --json",
        "key --json list",
        "key list --json",
        "--json key list",
    ],
)
def test_shared_options_go_before_or_after_the_command(daemon, capfd, line):
    assert code(line.split()) == 0
    json.loads(capfd.readouterr().out)


def test_the_state_alone_finds_the_daemon_once_it_remembers_its_vault(daemon, capfd, monkeypatch):
    monkeypatch.delenv("MEMEX_VAULT")
    monkeypatch.delenv("MEMEX_STATE")
    assert code(["status", "--state", str(daemon.state)]) == 2
    (daemon.state / "vault").write_text("/somewhere\n")
    assert code(["status", "--state", str(daemon.state)]) == 0


def test_status_is_what_the_daemon_says(daemon, capfd):
    assert code(["status", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == STATUS
    assert code(["status", "--json", "--all"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told.items() >= (STATUS | {"git": "ok"}).items()
    assert told.keys() - STATUS.keys() == {"git", "daemon", "verdict"}
    assert code(["status"]) == 0
    assert "2 notes" in capfd.readouterr().out


def test_index_prints_the_signs(daemon, capfd):
    assert code(["index", "--full"]) == 0
    assert capfd.readouterr().out.startswith("+1 ~0 -0 !0")
    assert daemon.asked == [("index", {"full": True, "accept_removals": False})]
    assert code(["index", "--accept-removals"]) == 0
    assert daemon.asked[-1] == ("index", {"full": False, "accept_removals": True})
    assert code(["index", "--check", "--full"]) == 2
    capfd.readouterr()
    assert code(["index", "--check"]) == 0
    assert daemon.asked[-1] == ("check", {})
    assert capfd.readouterr().out == "1,200 notes checked, 2 mended, 1 could not be read: memex status names them\n"
    assert code(["index", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == REPORT


def test_capture_takes_its_argument_and_its_fields(daemon, capfd):
    line = [
        "capture",
        "text",
        "-w",
        "work",
        "--title",
        "T",
        "-t",
        "a",
        "--metadata",
        '{"project": "x"}',
        "--namespace",
        "n",
    ]
    assert code(line) == 0
    assert capfd.readouterr().out == "i1  Captures/default/A.md\n"
    assert daemon.asked[0][1] == {
        "content": "text",
        "workspace": "work",
        "namespace": "n",
        "source": "cli",
        "metadata": {"project": "x", "title": "T", "tags": ["a"]},
    }


@pytest.mark.parametrize("line", [["capture"], ["capture", "-"]])
def test_capture_reads_stdin_byte_for_byte(daemon, monkeypatch, line):
    text = "héllo\r\nno newline at the end"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert code(line) == 0
    assert daemon.asked[0][1]["content"] == text


def test_capture_refuses_what_is_not_text(daemon, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\xff")))
    assert code(["capture"]) == 2
    assert "byte 1" in capfd.readouterr().err
    assert code(["capture", "x", "--metadata", "[1]"]) == 2


def test_get_prints_the_content_byte_for_byte(daemon, capfdbinary):
    assert code(["get", "i1"]) == 0
    assert capfdbinary.readouterr().out == "héllo\r\nno newline at the end".encode()


def test_recent_and_delete(daemon, capfd):
    assert code(["recent", "-w", "work"]) == 0
    assert "Captures/default/A.md" in capfd.readouterr().out
    assert code(["delete", "i1", "--yes"]) == 0
    assert capfd.readouterr().out == "deleted i1\n"


def test_workspaces_are_made_listed_and_deleted(daemon, capfd):
    assert code(["workspace", "create", "work"]) == 0
    assert code(["workspace", "list"]) == 0
    assert capfd.readouterr().out == "created work\ndefault\nwork\n"
    assert code(["workspace", "delete", "work"]) == 0


def test_a_key_in_json_is_its_name_and_secret(daemon, capfd):
    line = "key create --name bot --workspace work --scopes read,write --json"
    assert code(line.split()) == 0
    assert json.loads(capfd.readouterr().out) == {"name": "bot", "key": "mx_1_2"}
    assert daemon.asked[0][1] == {"name": "bot", "workspaces": ["work"], "scopes": ["read", "write"]}
    assert code(["key", "create", "--name", "bot", "--all-workspaces"]) == 0
    assert capfd.readouterr().out == "mx_1_2\n"
    assert "workspaces" not in daemon.asked[1][1]
    assert code(["key", "list"]) == 0
    assert "all" in capfd.readouterr().out
    assert code(["key", "revoke", "bot"]) == 0


@pytest.mark.parametrize("line", ["key create --name bot", "key create --name bot -w a --all-workspaces"])
def test_a_key_must_say_what_it_may_see(daemon, capfd, line):
    assert code(line.split()) == 2
    assert "--all-workspaces" in capfd.readouterr().err


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
    assert code(line.split()) == exit_code
    out, err = capfd.readouterr()
    assert (out == "") == (exit_code != 0)
    assert (err == "") == (exit_code == 0)


def test_every_error_code_has_an_exit_code():
    assert EXIT.keys() == SERVE_EXIT.keys() == CODES.keys()


def test_an_error_is_one_line_or_one_json_object_on_stderr(daemon, capfd):
    assert code(["get", "missing"]) == 4
    assert capfd.readouterr().err == "memex: NOT_FOUND: no note 'missing'\n"
    assert code(["get", "missing", "--json"]) == 4
    out, err = capfd.readouterr()
    assert out == ""
    assert json.loads(err) == {
        "error": {"code": "NOT_FOUND", "message": "no note 'missing'", "retryable": False, "details": {}}
    }
    assert code(["search", "--json"]) == 2
    assert json.loads(capfd.readouterr().err)["error"]["code"] == "INVALID_ARGUMENT"


def test_a_vault_that_was_never_set_up_names_the_command(tmp_path, capfd):
    (tmp_path / "v").mkdir()
    assert code(["search", "x", "--vault", str(tmp_path / "v")]) == 4
    assert f"memex init {tmp_path / 'v'}" in capfd.readouterr().err
    assert code(["search", "x"]) == 2
    assert "memex init VAULT" in capfd.readouterr().err


def test_config_shows_every_setting_and_where_it_was_set(daemon, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_SERVER__PORT", "9")
    assert code(["config", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert (rows["server.port"]["value"], rows["server.port"]["origin"]) == (9, "MEMEX_SERVER__PORT")
    assert rows["sync.quiet_s"]["origin"] == "default"
    assert code(["config"]) == 0
    assert "server.port = 9" in capfd.readouterr().out


def test_config_keeps_secrets_to_itself(daemon, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_INDEX__STORAGE_OPTIONS__SECRET_ACCESS_KEY", "hunter2")
    assert code(["config", "--json"]) == 0
    assert "hunter2" not in capfd.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(capfd, shell):
    assert code(["completion", shell]) == 0
    assert "_MEMEX_COMPLETE" in capfd.readouterr().out


def test_workspaces_are_completed_from_the_running_daemon(daemon):
    words = {"COMP_WORDS": "memex recent -w wo", "COMP_CWORD": "3", "_MEMEX_COMPLETE": "bash_complete"}
    done = run([], env=words)
    assert "plain,work" in done.stdout


def test_moments_are_dates_or_spans():
    assert moment("7d", 10**12) == 10**12 - 7 * 86_400_000
    assert moment("1970-01-01T00:00:01+00:00", 0) == 1000
    assert moment(None, 5) is None
    assert until("30d", 10**12) == 10**12 + 30 * 86_400_000
    assert until("1970-01-01T00:00:01+00:00", 0) == 1000


def test_every_command_says_what_it_does_and_takes_the_shared_options():
    seen = 0
    stack = [(name, command) for name, command in memex.commands.items()]
    while stack:
        name, command = stack.pop()
        stack += [(f"{name} {below}", inner) for below, inner in getattr(command, "commands", {}).items()]
        options = {option for param in command.params for option in param.opts}
        assert options >= {"--vault", "--state", "--config", "--json"}, name
        assert command.help, name
        names = [param.name for param in command.params]
        assert len(names) == len(set(names)), name
        assert all(param.help for param in command.params if isinstance(param, click.Option)), name
        seen += 1
    assert seen > 20


def run(arguments, *, env=None, **rest):
    return subprocess.run(
        [sys.executable, "-m", "syncd.cli", *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **rest,
    )


def test_a_command_through_the_daemon_imports_nothing_heavy(daemon):
    script = (
        "import sys\nfrom syncd.cli import main\nassert main.code(['status', '--json']) == 0\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert not HEAVY & set(eval(done.stderr))


def test_no_library_reports_to_its_maker(tmp_path):
    script = (
        "import sys\nfrom syncd.cli import main\nsys.argv[1:] = ['--version']\n"
        "try: main.main()\nexcept SystemExit: pass\n"
        "import onnxruntime\nonnxruntime.SessionOptions()\nonnxruntime.get_available_providers()\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name} | {"HOME": str(home)}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True, capture_output=True, timeout=60)
    assert not list(home.rglob("*"))


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
    assert code(["recent"]) == 1
    err = capfd.readouterr().err
    assert "INTERNAL: ZeroDivisionError" in err
    assert "Traceback" not in err
    monkeypatch.setenv("MEMEX_DEBUG", "1")
    assert code(["recent"]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_an_answer_with_a_path_that_is_not_utf8_is_still_an_answer(daemon, capfd):
    daemon.server._operations["recent"] = lambda _, __: [RECORD | {"path": "a\udcff.md"}]
    assert code(["recent", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["path"] == "a\udcff.md"


def test_the_bridge_is_told_when_no_daemon_runs(tmp_path, capfd):
    (tmp_path / "v").mkdir()
    assert code(["mcp", "--vault", str(tmp_path / "v"), "--state", str(tmp_path / "s")]) == 7
    assert "memex serve" in capfd.readouterr().err


def test_the_bridge_needs_a_key_that_can_be_read(daemon, capfd):
    (daemon.state / DAEMON).write_text('{"url": "http://127.0.0.1:1", "pid": 1, "epoch": 1}')
    assert code(["mcp"]) == 4
    assert "key file" in capfd.readouterr().err


def test_the_module_can_be_run():
    done = run(["--version"])
    assert done.stdout.startswith("memex ")
    assert main.installed() in done.stdout


def test_enrich_is_asked_for_one_note_or_for_all(daemon, capfd):
    assert code(["enrich", "i1", "--replace"]) == 0
    assert capfd.readouterr().out == "Captures/default/A.md\n  S.\n  #a #b\n"
    assert code(["enrich", "--backfill", "--workspace", "work", "--dry-run"]) == 0
    out = capfd.readouterr().out
    assert out.splitlines()[-1] == "1 note would be enriched, 1 left alone, 0 with nothing to say"
    assert "left alone: B.md: it was changed a moment ago" in out
    asked = dict(daemon.asked)
    assert (asked["enrich"]["id"], asked["enrich"]["replace"]) == ("i1", True)
    assert asked["enrich.backfill"] == {"workspace": "work", "dry_run": True}
    for wrong in (["enrich"], ["enrich", "i1", "--backfill"], ["enrich", "--backfill", "--replace"]):
        assert code(wrong) == 2
