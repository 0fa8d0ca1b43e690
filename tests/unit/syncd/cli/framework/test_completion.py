"""Completion in the shells themselves: bash, zsh and fish are really started."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from functools import cache

import pytest

from syncd.cli.main import run_command
from syncd.daemon.control_socket import ControlServer
from tests.support.command_line import HEAVY
from tests.support.paths import ROOT

JOBS = [{"name": "listing"}, {"name": "deep check"}]
QUEUED = [{"id": "4f0e", "status": "failed", "title": "a.pdf"}, {"id": "4a1b", "status": "done", "title": ""}]
NODES = {"default": ["Ada Lovelace", "Charles", "Hid\u202eden"], "work": ["Bernoulli"]}
KEYS = [
    {"name": "claude", "scopes": ["read"], "revoked_at": None},
    {"name": "old", "scopes": ["read"], "revoked_at": 1},
    {"name": "my $HOME key", "scopes": ["read", "write"], "revoked_at": None},
]


@pytest.fixture
def home(tmp_path):
    """A home folder with `memex` on its PATH, and a vault with two workspaces."""
    for name in ("vault/Captures/default", "vault/Captures/work", "vault/Captures/.hidden", "bin", "empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "state").mkdir(mode=0o700)
    script = tmp_path / "bin/memex"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m syncd.cli "$@"\n')
    script.chmod(0o755)
    return tmp_path


@pytest.fixture
def served(home):
    operations = {
        "workspace.list": lambda _, __: [{"name": "default"}, {"name": "work"}],
        "key.list": lambda _, __: KEYS,
        "node.names": lambda given, __: [{"name": name, "entity_type": "person"} for name in NODES[given["workspace"]]],
        "perspective.list": lambda _, __: {"perspectives": [{"name": "technical", "prompt": "how:"}]},
        "job.list": lambda _, __: JOBS,
        "queue.list": lambda given, __: {"jobs": [one for one in QUEUED if given["status"] in (None, one["status"])]},
        "recent": lambda _, __: [
            {"id": "6f1c-1", "title": "Heat pump", "path": "Captures/default/Heat pump.md"},
            {"id": "7a", "title": "", "path": "P.md"},
        ],
    }
    server = ControlServer(home / "state", operations)
    server.start()
    yield home
    server.stop()


def environ(home):
    return {
        "PATH": f"{home / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "MEMEX_VAULT": str(home / "vault"),
        "MEMEX_STATE": str(home / "state"),
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }


def shell(home, name, script):
    done = subprocess.run(
        [name, "-c", script],
        env=environ(home),
        cwd=home / "empty",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@cache
def bash_functions():
    """What `memex completion bash` prints, which is the same in every home."""
    command = [sys.executable, "-m", "syncd.cli", "completion", "bash"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout


def bash(home, *words):
    """What bash would offer for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    return shell(
        home,
        "bash",
        f"{bash_functions()}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words) - 1}\n"
        '_memex_completion memex 2>/dev/null\nprintf "%s\\n" "${COMPREPLY[@]}"',
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("memex", "sta"), ["status"]),
        (("memex", "key", "rev"), ["revoke"]),
        (("memex", "status", "--wa"), ["--watch"]),
        (("memex", "search", "--mode", "h"), ["hybrid"]),
        (("memex", "recent", "-w", ""), ["default", "work"]),
        (("memex", "recent", "-w", "wo"), ["work"]),
        (("memex", "key", "revoke", "c"), ["claude"]),
        (("memex", "key", "revoke", "my"), ["'my $HOME key'"]),
        (("memex", "get", "6"), ["6f1c-1"]),
        (("memex", "job", "run", "comp"), ["compare-notes-with-the-index"]),
        (("memex", "job", "show", "4"), ["4a1b", "4f0e"]),
        (("memex", "job", "retry", "4"), ["4f0e"]),
        (("memex", "node", "show", "Charles", ""), ["'Ada Lovelace'", "Charles"]),
        (("memex", "relation", "add", "-w", "work", ""), ["Bernoulli"]),
        (("memex", "graph", "--path", "Ada", ""), ["'Ada Lovelace'", "Charles"]),
        (("memex", "graph", "--format", "m"), ["mermaid"]),
        (("memex", "perspective", "remove", "t"), ["technical"]),
        (("memex", "search", "--collection", ""), ["documents", "memory", "workspace"]),
        (("memex", "capture", "--collection", "m"), ["memory"]),
        (("memex", "addfile", "--collection", "m"), ["memory"]),
        (("memex", "completion", "f"), ["fish"]),
        (("memex", "help", "ex"), ["exit-codes", "export"]),
        (("memex", "help", "key", "ro"), ["rotate"]),
        (("memex", "help", "files", ""), [""]),
    ],
)
def test_bash_completes_commands_options_and_names(served, words, found):
    assert bash(served, *words) == found


@pytest.mark.slow
def test_a_folder_to_promote_into_is_outside_the_inbox(home):
    for folder in ("Captures/default", "Capturesque", "Notes"):
        (home / "vault" / folder).mkdir(parents=True, exist_ok=True)
    for words in (("promote", "c", "--to"), ("review", "approve", "c", "--to"), ("share", "add")):
        assert bash(home, "memex", *words, "Cap") == ["Capturesque"]
    assert bash(home, "memex", "promote", "c", "--to", "Captures/") == [""]
    assert bash(home, "memex", "search", "--folder", "Cap") == ["Captures", "Capturesque"]


@pytest.mark.slow
def test_files_to_be_added_are_left_to_the_shell(home):
    asked = "COMP_WORDS='memex addfile a re' COMP_CWORD=3 _MEMEX_COMPLETE=bash_complete memex"
    assert shell(home, "bash", asked) == ["file,re"]


@pytest.mark.slow
def test_without_a_daemon_workspaces_are_the_folders(home):
    assert bash(home, "memex", "recent", "-w", "") == ["default", "work"]
    assert bash(home, "memex", "key", "revoke", "") == [""]
    shutil.rmtree(home / "vault")
    assert bash(home, "memex", "recent", "-w", "") == [""]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("memex sta", ["status"]),
        ("memex recent -w ", ["default", "work"]),
        ("memex get 6", ["6f1c-1"]),
        ("memex get hea", ["Heat pump"]),
    ],
)
def test_fish_completes_them(served, line, found):
    offered = shell(served, "fish", f"memex completion fish | source\ncomplete -C '{line}'")
    assert [word.split("\t")[0] for word in offered] == found


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("memex sta", "memex status "),
        ("memex recent -w wo", "memex recent -w work "),
        ("memex key revoke my", r"memex key revoke my\ \$HOME\ key "),
    ],
)
def test_zsh_completes_them(served, line, completed):
    """Zsh completes only where somebody types, so it is given a terminal."""
    start = "autoload -Uz compinit; compinit -u -D; PS1='> '; unsetopt zle_bracketed_paste\n"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(shutil.which("zsh"), ["zsh", "-f", "-i"], environ(served) | {"TERM": "vt100", "COLUMNS": "200"})
    try:
        told = type_in(terminal, start + 'eval "$(memex completion zsh)"; echo rea""dy\n', until="ready")
        told = type_in(terminal, line + "\t", until=completed.strip())
        assert completed.strip() in told
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def type_in(terminal, text, *, until, within=30.0):
    """What a terminal shows after `text` was typed, once `until` is in it."""
    os.write(terminal, text.encode())
    told, end = "", time.monotonic() + within
    while until not in told:
        assert time.monotonic() < end, told
        if select.select([terminal], [], [], 0.2)[0]:
            told += os.read(terminal, 4096).decode(errors="replace")
    return told


def test_a_key_press_imports_nothing_heavy(served):
    words = {"COMP_WORDS": "memex recent -w wo", "COMP_CWORD": "3", "_MEMEX_COMPLETE": "bash_complete"}
    script = (
        "import sys\nfrom syncd.cli import main\ntry: main.run_command([])\nexcept SystemExit: pass\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ(served) | words,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "plain,work\n"
    assert not HEAVY & set(ast.literal_eval(done.stderr))


@pytest.mark.parametrize(("shell", "kept"), [("bash", "memex"), ("zsh", "_memex"), ("fish", "memex.fish")])
def test_the_line_that_keeps_the_script_works_in_an_empty_home(tmp_path, capfd, shell, kept):
    assert run_command(["completion", shell]) == 0
    script = capfd.readouterr().out
    (line,) = re.findall(r"^# To keep it: (.*?)(?:   .*)?$", script, re.MULTILINE)
    (tmp_path / "memex").write_text("#!/bin/sh\necho script\n")
    (tmp_path / "memex").chmod(0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", line], check=True, env=environ)
    assert [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()] == [kept]
    assert run_command(["completion", shell, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"shell": shell, "script": script.removesuffix("\n")}
