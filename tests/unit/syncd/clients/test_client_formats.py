"""syncd/clients/client_formats.py: each client's settings as its own documentation has them."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest

from syncd.clients.client_formats import (
    CLIENTS,
    Connection,
    connect_text,
    key_in_entry,
    merge_entries,
    paste_text,
    without_other_transport,
)
from syncd.clients.entry_editor import put_entry

CONNECTION = Connection(
    "memex", "http://127.0.0.1:8765", "mx_a_b", "my notes", ("/opt/a b/memex", "--state", "/var/s t")
)
BEARER = {"Authorization": "Bearer mx_a_b"}
AT = "http://127.0.0.1:8765/mcp/core"
STDIO = ["--state", "/var/s t", "mcp", "--workspace", "my notes", "--toolset", "core"]


def pasted(name):
    text = paste_text(CLIENTS[name], CONNECTION, "FILE")
    assert text.startswith("In FILE:\n\n")
    return text.removeprefix("In FILE:\n\n")


def test_each_settings_file_gets_the_entry_that_its_client_documents():
    assert tomllib.loads(pasted("codex")) == {"mcp_servers": {"memex": {"url": AT, "http_headers": BEARER}}}
    assert json.loads(pasted("cursor")) == {"mcpServers": {"memex": {"url": AT, "headers": BEARER}}}
    assert json.loads(pasted("gemini")) == {"mcpServers": {"memex": {"httpUrl": AT, "headers": BEARER}}}
    assert json.loads(pasted("opencode")) == {"mcp": {"memex": {"type": "remote", "url": AT, "headers": BEARER}}}
    assert json.loads(pasted("claude-desktop")) == {
        "mcpServers": {"memex": {"command": "/opt/a b/memex", "args": STDIO, "env": {"MEMEX_KEY": "mx_a_b"}}}
    }


def test_the_commands_survive_a_shell():
    words = shlex.split(paste_text(CLIENTS["claude-code"], CONNECTION, ""))
    assert words == [
        *("claude", "mcp", "add", "--transport", "http", "--scope", "user", "memex", AT),
        *("--header", "Authorization: Bearer mx_a_b"),
    ]
    words = shlex.split(paste_text(CLIENTS["vscode"], CONNECTION, ""))
    assert words[:2] == ["code", "--add-mcp"]
    assert json.loads(words[2]) == {"name": "memex", "type": "http", "url": AT, "headers": BEARER}
    other = paste_text(CLIENTS["other"], CONNECTION, "")
    stdio = next(shlex.split(line) for line in other.splitlines() if "MEMEX_KEY=" in line)
    assert stdio == ["MEMEX_KEY=mx_a_b", "/opt/a b/memex", *STDIO]
    assert f"  {AT}\n" in other


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client.file])
def test_the_key_is_found_in_an_entry_that_was_written(name):
    client = CLIENTS[name]
    assert key_in_entry(client.entry(CONNECTION)) == "mx_a_b"
    text = put_entry("", client.file.syntax, (*client.file.table, "memex"), client.entry(CONNECTION))
    assert text.count("mx_a_b") == 1


@pytest.mark.parametrize(
    "entry",
    [None, 3, [], {}, {"headers": None}, {"headers": []}, {"env": "x"}, {"headers": {"X": "y"}}, {"command": "x"}],
)
def test_an_entry_without_a_key_has_none(entry):
    assert key_in_entry(entry) == ""


def test_the_key_is_found_whatever_the_case_of_its_header():
    assert key_in_entry({"headers": {"authorization": "Bearer  x "}}) == "x"


def test_an_entry_keeps_what_the_new_one_does_not_say():
    old = {"url": "a", "trust": True, "headers": {"authorization": "x", "X-Mine": "1"}, "env": 3}
    new = {"url": "b", "headers": {"Authorization": "y"}, "env": {"K": "v"}}
    assert merge_entries(old, new) == {
        "url": "b",
        "trust": True,
        "headers": {"X-Mine": "1", "Authorization": "y"},
        "env": {"K": "v"},
    }
    assert merge_entries({}, new) == new


def test_an_entry_of_one_transport_loses_the_values_of_the_other():
    stdio = {"type": "stdio", "command": "memex", "args": ["mcp"], "cwd": "/", "env": {"K": "v"}, "trust": True}
    http = {"type": "http", "url": "a", "httpUrl": "b", "Headers": {}, "http_headers": {}, "trust": True}
    assert without_other_transport(stdio | {"url": "a"}, {"url": "b", "headers": {}}) == {"url": "a", "trust": True}
    assert without_other_transport(http, {"command": "memex", "args": [], "env": {}}) == {"trust": True}
    assert without_other_transport(stdio, {"command": "x"}) == stdio
    assert without_other_transport(http, {"url": "x"}) == http


def test_the_text_for_a_new_vault_names_every_client_and_no_key():
    text = connect_text("memex --state /s")
    assert "memex --state /s connect claude-code" in text
    assert all(name in text for name in CLIENTS)
    assert "Bearer" not in text
