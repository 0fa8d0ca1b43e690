"""syncd/cli/daemon/keys_and_config.py: keys by command, over the owner's door."""

from __future__ import annotations

import io
import json
import sys

import pytest

from index.timings import now_ms
from syncd.cli.main import run_command
from tests.support.known_vault import make_default_vault
from tests.support.world import World, answering


class Terminal(io.StringIO):
    """Where somebody sits."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "state").mkdir(mode=0o700)
    opened = World(tmp_path)
    make_default_vault(monkeypatch, tmp_path / "home", opened.vault, opened.state)
    with answering(opened):
        yield opened


def test_a_workspace_that_exists_is_not_called_created(world, capfd):
    for answer in ("created work\n", "work exists already\n"):
        assert run_command(["workspace", "create", "work"]) == 0
        assert capfd.readouterr().out == answer


@pytest.mark.parametrize("line", [["key", "create", "-w", "default"], ["workspace", "create"]], ids=" ".join)
@pytest.mark.parametrize("words", [["ann"], ["--name", "ann"]], ids=" ".join)
def test_a_name_is_an_argument_or_an_option(world, capfd, line, words):
    assert run_command([*line, *words]) == 0
    assert run_command([line[0], "list"]) == 0
    assert "ann" in capfd.readouterr().out


@pytest.mark.parametrize("line", [["key", "create", "-w", "default"], ["workspace", "create"]], ids=" ".join)
@pytest.mark.parametrize("words", [[], ["ann", "--name", "bob"]], ids=" ".join)
def test_without_one_name_nothing_is_created(world, capfd, line, words):
    assert run_command([*line, *words]) == 2
    assert f"Give it once: memex {line[0]} create NAME" in capfd.readouterr().err


def test_a_revoked_key_names_the_command_that_replaces_it(world, capfd):
    for name, command in (("claude", "memex key create"), ("owner", "memex key reset")):
        made, secret = world.app.opened.keys.create(name, workspaces=None, now=1)
        if name == "owner":
            (world.state / "key").write_text(secret + "\n")
        assert run_command(["key", "revoke", "--yes", name]) == 0
        assert capfd.readouterr().out.strip() == f"revoked {name} ({made.id}); to create another: {command}"


def test_a_key_is_bound_to_a_namespace_and_the_list_says_so(world, capfd):
    words = ["key", "create", "--name", "claude", "--workspace", "default"]
    assert run_command([*words, "--namespace", "alpha"]) == 0
    secret = capfd.readouterr().out.strip()
    assert world.app.opened.keys.authenticate(secret, now=now_ms()).namespace == "alpha"
    assert run_command(["key", "list"]) == 0
    assert "default (namespace alpha)" in capfd.readouterr().out
    assert run_command(["key", "list", "--json"]) == 0
    assert [key["namespace"] for key in json.loads(capfd.readouterr().out)] == ["alpha"]
    assert run_command([*words[:3], "other", *words[4:], "--scopes", ""]) == 2
    assert "choose each scope of a key from read, write, admin" in capfd.readouterr().err
    assert run_command([*words[:3], "other", *words[4:], "--namespace", "../alpha"]) == 2
    assert run_command([*words[:3], "owner", *words[4:], "--namespace", "alpha", "--scopes", "read,admin"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("key", "revoke", "claud"), "memex: no key 'claud'. Did you mean \"claude\"? `memex key list` shows all keys\n"),
        (("workspace", "delete", "wrok"), "memex: no workspace 'wrok'. Did you mean \"work\"? `memex workspace list` names them\n"),
    ],
    ids=["a key", "a workspace"],
)  # fmt: skip
def test_what_is_unknown_is_refused_before_the_confirmation(world, monkeypatch, capfd, words, message):
    world.app.opened.keys.create("claude", workspaces=None, now=1)
    world.app.agent_access.create_workspace("work")
    for stdin in (Terminal("y\n"), io.StringIO()):  # also where nobody can be asked
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run_command(list(words)) == 4
        assert capfd.readouterr().err == message


def test_of_keys_with_one_name_the_live_one_is_revoked_at_a_terminal(world, monkeypatch, capfd):
    keys = world.app.opened.keys
    old, _ = keys.create("claude", workspaces=None, now=1)
    keys.revoke("claude", now=2)
    live, _ = keys.create("claude", workspaces=None, now=3)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert run_command(["key", "revoke", "claude"]) == 0
    out, err = capfd.readouterr()
    assert err.startswith(f"Revoke the key claude ({live.id}) permanently? [y/N]: ")
    assert out.startswith(f"revoked claude ({live.id})")
    assert {key.id: key.revoked_at is None for key in keys.list()} == {old.id: False, live.id: False}


def test_a_time_that_no_calendar_has_is_refused_before_a_key_is_made_or_changed(world, capfd):
    create = ["key", "create", "--name", "claude", "--workspace", "default"]
    assert run_command([*create, "--expires", "999999w"]) == 2
    assert "'999999w' is not a time" in capfd.readouterr().err
    assert world.app.opened.keys.list() == []
    assert run_command([*create, "--expires", "30d"]) == 0
    secret = capfd.readouterr().out.strip()
    for option in ("--overlap", "--expires"):
        assert run_command(["key", "rotate", "claude", option, "999999w"]) == 2
    assert world.app.opened.keys.authenticate(secret, now=now_ms()).old_until is None
    assert run_command(["key", "list"]) == 0
