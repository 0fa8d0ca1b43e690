"""The command line, against a door that really answers: shapes for scripts, and what goes where."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from index import process_memory
from syncd.cli import main
from syncd.cli.daemon.keys_and_config import parse_expiry
from syncd.cli.framework.arguments import parse_time
from syncd.cli.main import memex, run_command
from tests.support.answering_daemon import HIT, REPORT, STATUS
from tests.support.command_line import HEAVY

pytestmark = pytest.mark.usefixtures("clean")


def test_search_in_json_has_exactly_the_fields_that_scripts_rely_on(daemon, capfd):
    assert run_command(["search", "some", "words", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out) == [HIT]
    assert "encoder: loading" in err
    name, asked = daemon.asked[0]
    assert (name, asked["query"], asked["scope"], asked["limit"]) == ("search", "some words", "all", 10)


def test_search_passes_its_filters_on(daemon):
    given = "search q -n 3 --mode text --scope captures -w work -t a -t b --type note --source s --since 1970-01-02T00:00:00Z"
    assert run_command(given.split()) == 0
    _, asked = daemon.asked[0]
    wanted = {"query": "q", "limit": 3, "mode": "text", "scope": "captures", "workspace": "work", "tags": ["a", "b"]}
    for name, value in (wanted | {"type": "note", "source": "s", "since": 86_400_000}).items():
        assert asked[name] == value
    assert "until" not in asked


def test_init_names_a_settings_file_so_that_a_shell_takes_it_as_one_word(tmp_path, capfd):
    for name in ("first", "My V\u00e4lt"):
        (tmp_path / name).mkdir()
        assert run_command(["init", "--yes", str(tmp_path / name)]) == 0
    line = next(line for line in capfd.readouterr().out.splitlines() if "--config" in line and line.endswith(" serve"))
    _, option, file, _ = shlex.split(line)
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
    assert run_command(line.split()) == 0
    json.loads(capfd.readouterr().out)


def test_the_state_alone_finds_the_daemon_once_it_remembers_its_vault(daemon, capfd, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(daemon.state))
    assert run_command(["status", "--state", str(daemon.state)]) == 2
    (daemon.state / "vault").write_text("/somewhere\n")
    assert run_command(["status", "--state", str(daemon.state)]) == 0


def test_status_is_what_the_daemon_says(daemon, capfd):
    assert run_command(["status", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == STATUS
    assert run_command(["status", "--json", "--all"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told.items() >= (STATUS | {"git": "ok"}).items()
    assert told.keys() - STATUS.keys() == {"git", "daemon", "verdict"}
    assert run_command(["status"]) == 0
    assert "2 notes" in capfd.readouterr().out


def test_index_prints_the_signs(daemon, capfd):
    assert run_command(["index", "--full"]) == 0
    assert capfd.readouterr().out.startswith("+1 ~0 -0 !0")
    assert daemon.asked == [("index", {"full": True, "accept_removals": False})]
    assert run_command(["index", "--accept-removals"]) == 0
    assert daemon.asked[-1] == ("index", {"full": False, "accept_removals": True})
    assert run_command(["index", "--check", "--full"]) == 2
    capfd.readouterr()
    assert run_command(["index", "--check"]) == 0
    assert daemon.asked[-1] == ("check", {})
    assert (
        capfd.readouterr().out == "1,200 notes checked, 2 repaired, 1 could not be read; to list them: memex status\n"
    )
    assert run_command(["index", "--json"]) == 0
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
    assert run_command(line) == 0
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
    assert run_command(line) == 0
    assert daemon.asked[0][1]["content"] == text


@pytest.mark.parametrize("line", [["capture", ""], ["capture", " \t\n"], ["capture"], ["capture", "-"]])
@pytest.mark.parametrize("piped", ["", " \r\n\u00a0"])
def test_capture_refuses_a_blank_text(daemon, monkeypatch, capfd, line, piped):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    assert run_command(line) == 2
    assert capfd.readouterr().err.startswith("memex: the capture has no text, so nothing was saved: ")
    assert daemon.asked == []


def test_capture_refuses_what_is_not_text(daemon, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\xff")))
    assert run_command(["capture"]) == 2
    assert "byte 1" in capfd.readouterr().err
    assert run_command(["capture", "x", "--metadata", "[1]"]) == 2


def test_get_prints_the_content_byte_for_byte(daemon, capfdbinary):
    assert run_command(["get", "i1"]) == 0
    assert capfdbinary.readouterr().out == "héllo\r\nno newline at the end".encode()


def test_recent_and_delete(daemon, capfd):
    assert run_command(["recent", "-w", "work"]) == 0
    assert "Captures/default/A.md" in capfd.readouterr().out
    assert run_command(["delete", "i1", "--yes"]) == 0
    assert capfd.readouterr().out == "deleted Captures/default/A.md  i1\nto undo this: memex undo 0123456789abcdef\n"


DESTROYING = {  # with what the command asks first, which changes nothing and reports an unknown name
    "delete i1": ["get"],
    "node remove Heron": ["node.open"],
    "undo i1": ["undo"],
    "undo --since 1h": ["undo"],
    "workspace delete work": ["recent"],
    "key revoke bot": ["key.list"],
}


@pytest.mark.parametrize("line", [*DESTROYING, "key reset"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_destroys_is_refused_where_nobody_can_be_asked(daemon, monkeypatch, capfd, line, more):
    before = sorted(daemon.state.iterdir())
    for stdin in (io.StringIO("y\n"), None):  # a pipe that says yes is nobody either
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run_command([*line.split(), *more]) == 2
        assert "--yes" in capfd.readouterr().err
    assert [name for name, _ in daemon.asked] == DESTROYING.get(line, []) * 2
    assert all(arguments.get("dry_run") for name, arguments in daemon.asked if name == "undo")
    assert sorted(daemon.state.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "looked", "question"),
    [
        ("delete i1", "get", "Delete the capture (Captures/default/A.md)? [y/N]: "),
        ("workspace delete work", "recent", "Delete the workspace work and its perspectives? [y/N]: "),
        ("key revoke bot", "key.list", "Revoke the key bot (1) permanently? [y/N]: "),
    ],
)
def test_what_destroys_is_looked_up_and_asks_at_a_terminal(daemon, monkeypatch, capfd, line, looked, question):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert run_command(line.split()) == 130
    assert capfd.readouterr().err == f"{question}memex: nothing was changed\n\n"
    assert [name for name, _ in daemon.asked] == [looked]
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert run_command(line.split()) == 0
    assert len(daemon.asked) == 3
    assert run_command([*line.split(), "--yes"]) == 0
    assert len(daemon.asked) == 4


def test_every_command_that_takes_a_yes_refuses_without_one():
    def leaves(group, words=()):
        for name, command in group.commands.items():
            below = getattr(command, "commands", None)
            yield from leaves(command, (*words, name)) if below else [(" ".join((*words, name)), command)]

    asking = {path for path, command in leaves(memex) if any("--yes" in param.opts for param in command.params)}
    assert asking == {" ".join(line.split()[:-1]) for line in DESTROYING if "--" not in line} | {
        "key reset",
        "init",
        "searches",
        "addfile",  # asks only at a terminal, and only about many files
    }


def test_workspaces_are_made_listed_and_deleted(daemon, capfd):
    assert run_command(["workspace", "create", "work"]) == 0
    assert run_command(["workspace", "list"]) == 0
    assert capfd.readouterr().out == "created work\ndefault\nwork\n"
    assert run_command(["workspace", "delete", "--yes", "work"]) == 0


def test_a_key_in_json_is_its_name_and_secret(daemon, capfd):
    line = "key create --name bot --workspace work --scopes read,write --json"
    assert run_command(line.split()) == 0
    assert json.loads(capfd.readouterr().out) == {"name": "bot", "key": "mx_1_2"}
    assert daemon.asked[0][1] == {"name": "bot", "workspaces": ["work"], "scopes": ["read", "write"]}
    assert run_command(["key", "create", "--name", "bot", "--all-workspaces"]) == 0
    assert capfd.readouterr().out == "mx_1_2\n"
    assert "workspaces" not in daemon.asked[1][1]
    assert run_command(["key", "list"]) == 0
    assert "all" in capfd.readouterr().out
    assert run_command(["key", "revoke", "--yes", "bot"]) == 0


@pytest.mark.parametrize("line", ["key create --name bot", "key create --name bot -w a --all-workspaces"])
def test_a_key_must_say_what_it_may_see(daemon, capfd, line):
    assert run_command(line.split()) == 2
    assert "--all-workspaces" in capfd.readouterr().err


def test_config_shows_every_setting_and_where_it_was_set(daemon, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_SERVER__PORT", "9")
    assert run_command(["config", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert (rows["server.port"]["value"], rows["server.port"]["origin"]) == (9, "MEMEX_SERVER__PORT")
    assert rows["sync.quiet_s"]["origin"] == "default"
    assert run_command(["config"]) == 0
    assert "server.port = 9" in capfd.readouterr().out


def test_config_keeps_secrets_to_itself(daemon, capfd, monkeypatch):
    monkeypatch.setenv("MEMEX_INDEX__STORAGE_OPTIONS__SECRET_ACCESS_KEY", "hunter2")
    assert run_command(["config", "--json"]) == 0
    assert "hunter2" not in capfd.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(capfd, shell):
    assert run_command(["completion", shell]) == 0
    assert "_MEMEX_COMPLETE" in capfd.readouterr().out


def test_workspaces_are_completed_from_the_running_daemon(daemon):
    words = {"COMP_WORDS": "memex recent -w wo", "COMP_CWORD": "3", "_MEMEX_COMPLETE": "bash_complete"}
    done = run([], env=words)
    assert "plain,work" in done.stdout


def test_moments_are_dates_or_spans():
    assert parse_time("7d", 10**12) == 10**12 - 7 * 86_400_000
    assert parse_time("0s", 10**12) == parse_expiry("0s", 10**12) == 10**12
    assert parse_expiry("90s", 10**12) == 10**12 + 90_000
    assert parse_time("1970-01-01T00:00:01+00:00", 0) == 1000
    assert parse_time(None, 5) is None
    assert parse_expiry("30d", 10**12) == 10**12 + 30 * 86_400_000
    assert parse_expiry("1970-01-01T00:00:01+00:00", 0) == 1000


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
        "import sys\nfrom syncd.cli import main\nassert main.run_command(['status', '--json']) == 0\n"
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


def test_a_command_spends_little_time_on_garbage():
    script = (
        "import gc, sys\nfrom syncd.cli import main\nsys.argv[1:] = ['--version']\n"
        "try: main.main()\nexcept SystemExit: print(gc.get_threshold()[0], gc.get_freeze_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    threshold, frozen = map(int, done.stdout.splitlines()[-1].split())
    assert threshold == process_memory.STARTING
    assert frozen > 10_000


def test_the_module_can_be_run():
    done = run(["--version"])
    assert done.stdout.startswith("memex ")
    assert main.installed() in done.stdout


def test_enrich_is_asked_for_one_note_or_for_all(daemon, capfd):
    assert run_command(["enrich", "i1", "--replace"]) == 0
    assert capfd.readouterr().out == "Captures/default/A.md\n  S.\n  #a #b\n"
    assert run_command(["enrich", "--backfill", "--workspace", "work", "--dry-run"]) == 0
    out = capfd.readouterr().out
    assert out.splitlines()[-1] == "1 note would be enriched, 1 skipped, 0 unchanged"
    assert "skipped: B.md: it was changed a moment ago" in out
    asked = dict(daemon.asked)
    assert (asked["enrich"]["id"], asked["enrich"]["replace"]) == ("i1", True)
    assert asked["enrich.backfill"] == {"workspace": "work", "dry_run": True}
    for wrong in (["enrich"], ["enrich", "i1", "--backfill"], ["enrich", "--backfill", "--replace"]):
        assert run_command(wrong) == 2
