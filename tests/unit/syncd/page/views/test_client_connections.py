"""syncd/page/views/client_connections.py: keys by what they are for, and refusals with a way out of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.errors import InvalidArgument
from syncd.clients.client_file import ClientFile
from syncd.clients.client_formats import CLIENTS
from syncd.clients.connections import ConnectionRequest, ForeignEntry, KeyInUse, WrittenEntry
from syncd.page.views.client_connections import describe_refusal, describe_written, sort_keys

NOW = 1_790_000_000_000
FILE = ClientFile(Path("/home/robin"), ".codex/config.toml")
REQUEST = ConnectionRequest("codex", CLIENTS["codex"], "memex", "work", FILE, renew=False, command=("memex",))


def key(name, *, scopes=("read",), workspaces=None, used=None, expires=None, revoked=None):
    return {
        "name": name, "id": name, "scopes": list(scopes), "workspaces": workspaces, "last_used_at": used,
        "expires_at": expires, "revoked_at": revoked, "old_until": None,
    }  # fmt: skip


def test_keys_are_sorted_by_what_they_are_for_and_when_they_were_seen():
    keys = [
        key("never"),
        key("early", used=1),
        key("late", used=2),
        key("mine", scopes=("read", "admin")),
        key("gone", revoked=5),
        key("old", expires=NOW),
    ]
    clients, ended, owners = sort_keys(keys, NOW)
    assert [row["name"] for row in clients] == ["late", "early", "never"]
    assert [(row["name"], row["state"].split()[0]) for row in ended] == [("gone", "revoked"), ("old", "expired")]
    assert [row["name"] for row in owners] == ["mine"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyInUse("It is used"), "tick the box"),
        (ForeignEntry("It is there"), "tick the box"),
        (InvalidArgument("No"), "No"),
    ],
)
def test_a_refusal_names_a_way_out(error, says):
    sentence = describe_refusal(error)
    assert sentence.startswith(error.message)
    assert says in sentence
    assert "--" not in sentence


def test_a_written_file_is_named_with_its_backup_and_what_to_do():
    written = describe_written(REQUEST, FILE, WrittenEntry(Path("/home/robin/old"), changed=True, ends=None))
    assert "`/home/robin/.codex/config.toml`; the old file is `/home/robin/old`" in written
    assert "sees the workspace work" in written
    assert written.endswith("Then start Codex again.")
    notices = ("the key mine is still valid; to revoke it: memex key revoke 1",)
    written = describe_written(REQUEST, FILE, WrittenEntry(None, changed=True, ends=None, notices=notices))
    assert " The key mine is still valid; to revoke it: memex key revoke 1. Then" in written
    same = describe_written(REQUEST, FILE, WrittenEntry(None, changed=False, ends=NOW))
    assert "nothing was changed" in same
    assert "valid until" in same
