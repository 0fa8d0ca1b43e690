"""syncd/page/views/activity.py: how entries are described and grouped, and what a message says of an undo."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

import pytest

from index.errors import InvalidArgument
from syncd.page.views.activity import (
    count_lines,
    describe_entry,
    describe_undo,
    group_by_day,
    parse_moment,
    parse_period,
)


def local(*parts):
    return datetime(*parts).astimezone()


def entry(seq=1, at=None, **more):
    at = at or local(2026, 11, 20, 14, 32)
    fields = {"kind": "create", "surface": "mcp", "name": "claude", "key": "k1", "tool": "capture_thought"}
    rest = {"path": "Captures/default/a.md", "workspace": "default", "outcome": "done", "undoes": 0}
    return {"seq": seq, "at": int(at.timestamp() * 1000)} | fields | rest | more


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, ("created", "claude", "Captures/default/a.md", ""), id="an agent"),
        pytest.param({"name": ""}, ("created", "k1", "Captures/default/a.md", ""), id="a key without a name"),
        pytest.param(
            {"surface": "cli", "name": "", "key": "", "undoes": 7},
            ("created", "you", "Captures/default/a.md", "undoes 7"),
            id="an undo",
        ),
        pytest.param(
            {"surface": "file", "name": "", "key": "", "kind": "update"},
            ("changed", "outside Memex", "Captures/default/a.md", ""),
            id="a manual change",
        ),
        pytest.param(
            {"kind": "denied", "path": "", "outcome": "PERMISSION_DENIED"},
            ("refused", "claude", "default", "PERMISSION_DENIED"),
            id="a refused call",
        ),
        pytest.param(
            {"kind": "pruned", "surface": "cli", "name": "", "key": "", "path": "", "workspace": "", "outcome": "9:ab"},
            ("pruned", "you", "the log", ""),
            id="a prune",
        ),
    ],
)
def test_an_entry_is_described(more, expected):
    row = describe_entry(entry(**more))
    assert (row["verb"], row["who"], row["subject"], row["remark"]) == expected


def test_entries_are_grouped_by_the_local_day():
    entries = [
        entry(3, local(2026, 11, 20, 0, 1)),
        entry(2, local(2026, 11, 19, 23, 59)),
        entry(1, local(2026, 11, 17, 8, 0)),
    ]
    days = group_by_day(entries, date(2026, 11, 20))
    assert [(title, [row["seq"] for row in rows]) for title, rows in days] == [
        ("Today", [3]),
        ("Yesterday", [2]),
        ("Tuesday, 2026-11-17", [1]),
    ]


def test_added_and_removed_lines_are_counted_without_the_names_of_the_files():
    assert count_lines(["--- a.md", "+++ a.md", "@@ -1 +1,2 @@", "-old", "+new", "+--- more", " same"]) == (2, 1)
    assert count_lines([]) == (0, 0)


@pytest.mark.parametrize(
    ("done", "skipped", "expected"),
    [
        (1, [], "1 file was undone."),
        (3, [], "3 files were undone."),
        (0, [("a.md", "edited")], "Nothing was undone. 1 left alone: `a.md`: edited."),
        (
            2,
            [(f"{number}.md", "edited") for number in range(5)],
            "2 files were undone. 5 left alone: `0.md`: edited; `1.md`: edited; `2.md`: edited; and 2 more.",
        ),
    ],
)
def test_what_an_undo_did_is_one_message(done, skipped, expected):
    steps = [{"path": path, "reason": reason} for path, reason in skipped]
    assert describe_undo({"done": [{}] * done, "skipped": steps}) == expected


def test_a_time_is_local_and_anything_else_is_named():
    assert parse_moment("", "since") is None
    assert parse_moment("2026-11-20T14:32", "since") == local(2026, 11, 20, 14, 32).timestamp() * 1000
    assert parse_moment("2026-11-20T14:32+00:00", "since") == 1795185120000
    with pytest.raises(InvalidArgument, match="since is not a time"):
        parse_moment("yesterday", "since")


@pytest.mark.parametrize("end", ["", "tomorrow"])
def test_an_undo_by_time_ends_at_its_preview(end):
    until = end and (datetime.now().astimezone() + timedelta(days=1)).isoformat()
    wanted = parse_period({"key": "claude", "workspace": "", "since": "2026-11-20", "until": until})
    assert wanted["until"] <= time.time_ns() // 1_000_000 + 1
    assert (wanted["key"], wanted["workspace"]) == ("claude", None)


def test_an_undo_by_time_ends_at_an_earlier_end():
    values = {"key": "", "workspace": "", "since": "2020-11-20", "until": "2020-11-21"}
    assert parse_period(values)["until"] == parse_moment("2020-11-21", "until")
