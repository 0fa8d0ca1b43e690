"""syncd/page/views/home.py: what waits, what agents wrote, and which jobs need a look."""

from __future__ import annotations

from syncd.page.views.home import group_by_agent, list_decisions, list_jobs


def entry(seq, path, kind="create", name="claude", surface="mcp"):
    return {"seq": seq, "at": seq * 1000, "kind": kind, "surface": surface, "name": name, "key": "k1", "path": path}


def test_writes_are_grouped_by_agent_the_latest_first():
    days = group_by_agent(
        [
            entry(1, "a.md"),
            entry(2, "b.md", name="codex"),
            entry(3, "a.md", "update"),
            entry(4, "c.md"),
            entry(5, "c.md", "delete"),
        ]
    )
    assert [(day["agent"], day["writes"], [tuple(note.values()) for note in day["notes"]]) for day in days] == [
        ("claude", 4, [("c.md", "deleted", 5000), ("a.md", "created", 3000)]),
        ("codex", 1, [("b.md", "created", 2000)]),
    ]


def test_writes_of_the_owner_and_the_daemon_and_denied_calls_are_left_out():
    assert (
        group_by_agent([entry(1, "a.md", surface="cli"), entry(2, "b.md", surface="daemon"), entry(3, "", "denied")])
        == []
    )


def test_an_agent_without_a_name_is_called_by_its_key():
    assert [day["agent"] for day in group_by_agent([entry(1, "a.md", name="")])] == ["k1"]


def test_nothing_waits_in_an_empty_status():
    assert list_decisions({}) == []


def test_what_waits_is_counted():
    rows = list_decisions(
        {
            "review": {"waiting": 3},
            "promotion": {"problems": [{}]},
            "consolidation": {"waiting": 2},
            "queue": {"jobs": {"failed": 1}},
            "removals_held": 7,
        }
    )
    assert [(row.count, row.view) for row in rows] == [
        (3, "review"),
        (1, "review"),
        (2, "reports"),
        (1, "jobs"),
        (7, ""),
    ]
    assert [row.is_urgent for row in rows] == [False, True, False, True, True]


def test_running_and_failed_jobs_are_listed_failed_ones_first():
    rows = list_jobs(
        {
            "jobs": {
                "listing": {"running": True, "started_at": 5, "error": ""},
                "review": {"running": False, "started_at": 4, "error": "no disk"},
                "root": {"running": False, "started_at": 3, "error": ""},
            }
        }
    )
    assert [(row["name"], row["running"], row["error"]) for row in rows] == [
        ("suggest folders and tags", False, "no disk"),
        ("list the vault", True, ""),
    ]
