"""syncd/page/views/clients.py: workspaces with their clients and shares, settings by section."""

from __future__ import annotations

from syncd.page.views.clients import describe_workspaces, group_settings


def test_a_workspace_has_the_clients_that_see_it_and_what_is_shared_with_it():
    rows = [{"name": "default", "notes": 3}, {"name": "work", "notes": 0}]
    clients = [{"workspaces": None}, {"workspaces": ["work"]}]
    described = describe_workspaces(rows, clients, [{"workspace": "work", "entries": ["Plans/**"]}])
    assert [(row["clients"], row["entries"]) for row in described] == [(1, []), (2, ["Plans/**"])]
    assert [row["notes"] for row in described] == [3, 0]


def test_settings_are_grouped_by_section():
    rows = [
        {"name": name, "value": value} for name, value in (("state", None), ("page.port", 1), ("page.always", False))
    ]
    grouped = group_settings(rows)
    assert [(section, [row["shown"] for row in each]) for section, each in grouped.items()] == [
        ("", [""]),
        ("page", ["1", "false"]),
    ]
