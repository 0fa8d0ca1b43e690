"""The tasks by which the toolset `core` is judged: enough, for every tool, and without the answer in the question."""

from __future__ import annotations

from collections import Counter

import pytest

from mcp_server.tools.families import CORE
from tests.bench.tool_choice import WANTED, questions, read_answers, score, tasks


def test_there_are_forty_tasks_and_each_tool_has_some():
    counted = Counter(row["tool"] for row in tasks())
    assert set(counted) == set(CORE)
    assert sum(counted.values()) == 40
    assert min(counted.values()) >= 2
    assert len({row["task"] for row in tasks()}) == 40


def test_no_task_gives_its_tool_away():
    for row in tasks():
        assert row["tool"] not in row["task"]
        assert not any(name in row["task"].lower().replace(" ", "_") for name in CORE)


def test_the_reader_sees_every_tool_and_no_answer():
    text = questions()
    assert all(f'"name": "{name}"' in text for name in CORE)
    assert text.rstrip().endswith(tasks()[-1]["task"])
    assert '"tool"' not in text


def test_answers_are_counted():
    right = [row["tool"] for row in tasks()]
    assert score(right) == (40, [])
    count, wrong = score(["kb_get", *right[1:]])
    assert count == 39
    assert wrong == [f"1. {tasks()[0]['task']} capture_thought, not kb_get"]
    with pytest.raises(ValueError, match="39 answers"):
        score(right[1:])
    assert (
        read_answers("1. `kb_get`\n\nopen_nodes\n")
        == read_answers('["kb_get", "open_nodes"]')
        == ["kb_get", "open_nodes"]
    )
    assert WANTED == 36
