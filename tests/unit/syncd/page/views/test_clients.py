"""syncd/page/views/clients.py: keys by what they are for, workspaces with their clients, settings by section."""

from __future__ import annotations

from syncd.page.views.clients import count_clients, group_settings, sort_keys

NOW = 1_790_000_000_000


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


def test_a_key_without_workspaces_sees_every_workspace():
    clients = [key("all"), key("one", workspaces=["work"])]
    assert count_clients([{"name": "default"}, {"name": "work"}], clients) == [("default", 1), ("work", 2)]


def test_settings_are_grouped_by_section():
    rows = [
        {"name": name, "value": value} for name, value in (("state", None), ("page.port", 1), ("page.always", False))
    ]
    grouped = group_settings(rows)
    assert [(section, [row["shown"] for row in each]) for section, each in grouped.items()] == [
        ("", [""]),
        ("page", ["1", "false"]),
    ]
