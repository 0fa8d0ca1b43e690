"""A printed command acts on the vault that the command line named."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest

from syncd.cli.framework.printed_commands import FLAGS, complete_commands, way_back
from syncd.cli.main import memex, run_command

pytestmark = pytest.mark.usefixtures("clean")


def complete(text, **named):
    with click.Context(memex) as context:
        context.meta[FLAGS] = named
        return complete_commands(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("memex serve", "memex --state /s serve"),
        ("to start it: memex stop; memex serve", "to start it: memex --state /s stop; memex --state /s serve"),
        ("run `memex key create`, or see memex status", "run `memex --state /s key create`, or see memex --state /s status"),
        ("run `memex init VAULT`", "run `memex init VAULT`"),
        ("memex: 'My memex status.md' is gone, memexes too", "memex: 'My memex status.md' is gone, memexes too"),
        ("memex log.md: bad front matter", "memex log.md: bad front matter"),
        ("did you mean 'x'? memex search finds it", "did you mean 'x'? memex --state /s search finds it"),
    ],
)  # fmt: skip
def test_commands_in_a_message_get_the_options_once(text, shown):
    assert complete(text, state="/s") == shown
    assert complete(shown, state="/s") == shown
    assert complete(text) == text
    assert complete(text, **{"server.port": 1}) == text


def test_paths_are_absolute_and_quoted():
    shown = complete("memex status", **{"vault.path": "a b", "config": "c.toml"})
    assert shlex.split(shown) == ["memex", "--vault", f"{Path.cwd()}/a b", "--config", f"{Path.cwd()}/c.toml", "status"]


@pytest.mark.parametrize("by", ["an option", "a variable"])
def test_a_printed_command_acts_on_the_vault_of_the_command_that_printed_it(tmp_path, monkeypatch, capfd, by):
    for name in ("home", "first", "second"):
        (tmp_path / name).mkdir()
    for name in ("first", "second"):
        (tmp_path / name / "Note.md").write_text("about herons")
        assert run_command(["init", str(tmp_path / name)]) == 0
        assert (
            run_command(["--vault", str(tmp_path / name), "key", "create", "--name", "a@b", "--workspace", "default"])
            == 0
        )
    monkeypatch.chdir(tmp_path)
    second = str(tmp_path / "second")
    named, vault = ["--vault", second] if by == "an option" else [], f"memex --vault {second}"

    def printed(*words, code=0):
        capfd.readouterr()
        with monkeypatch.context() as variables:
            if by == "a variable":
                variables.setenv("MEMEX_VAULT", second)
            assert run_command([*named, *words]) == code or code is None
        return " ".join("".join(capfd.readouterr()).split())

    assert f"{vault} key revoke a@b" in printed("connect", "--list")
    assert json.loads(printed("connect", "--list", "--json"))[0]["revoke"] == f"{vault} key revoke a@b"
    assert f"{vault} connect gemini --write" in printed("connect", "gemini")
    assert f"to start it: {vault} serve" in printed("status")
    assert f"→ {vault} serve" in printed("doctor", code=None)
    assert f"`{vault} connect --list`" in printed("connect", code=2)
    assert "memex key revoke a@b" not in printed("connect", "--list")


def test_a_variable_that_names_the_vault_becomes_an_option_unless_a_flag_does(monkeypatch):
    monkeypatch.setenv("MEMEX_VAULT", "a b")
    monkeypatch.setenv("MEMEX_STATE", "")
    assert shlex.split(complete("memex status")) == ["memex", "--vault", f"{Path.cwd()}/a b", "status"]
    monkeypatch.setenv("MEMEX_STATE", "/s")
    monkeypatch.setenv("MEMEX_CONFIG", "/c.toml")
    assert complete("memex status", **{"vault.path": "/v"}) == "memex --vault /v --state /s --config /c.toml status"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run `memex init VAULT`", "run `memex --config /c.toml init VAULT`"),
        ("run `memex init /v --config /d.toml`, or `memex use NAME`", "run `memex init /v --config /d.toml`, or `memex use NAME`"),
        ("to change that: memex init /v --git off", "to change that: memex --config /c.toml init /v --git off"),
    ],
)  # fmt: skip
def test_a_setup_gets_the_settings_file_alone(text, shown):
    named = {"vault.path": "/v", "state": "/s", "config": "/c.toml"}
    assert complete(text, **named) == shown
    assert complete(shown, **named) == shown


def test_the_way_back_of_a_call_names_the_vault():
    with click.Context(memex) as context:
        context.meta[FLAGS] = {"vault.path": "/v"}
        assert way_back("0d43") == "to undo this: memex --vault /v undo 0d43"
        assert way_back("0d43", kept=False).endswith("if Git has the note: memex --vault /v undo 0d43")
