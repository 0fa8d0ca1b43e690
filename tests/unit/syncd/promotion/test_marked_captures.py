"""What the results of single captures are together: what is carried out, written down, asked about and looked at again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from syncd.promotion.marked_captures import _Batch
from syncd.promotion.plan import TakenDestination
from syncd.promotion.promoted_note import Problem

RECORD = SimpleNamespace(path="Captures/a.md")
PLAN = SimpleNamespace(moves={RECORD.path: "Notes/Wide/A.md"})


def facts(batch):
    return {
        name: value
        for name in ("plans", "taken", "problems", "reserved", "again", "unsure")
        if (value := getattr(batch, name))
    }


@pytest.mark.parametrize(
    ("add", "told"),
    [
        pytest.param(
            lambda batch: batch.add_plan(PLAN),
            {
                "plans": [PLAN],
                "reserved": {"notes": "Notes", "notes/wide": "Notes/Wide", "notes/wide/a.md": "Notes/Wide/A.md"},
            },
            id="planned",
        ),
        pytest.param(
            lambda batch: batch.add_problem(RECORD, TakenDestination("A.md")),
            {
                "taken": [(RECORD, "A.md")],
                "problems": {RECORD.path: "A.md already exists, and Memex does not overwrite it"},
            },
            id="taken",
        ),
        pytest.param(
            lambda batch: batch.add_problem(RECORD, Problem("no folder")),
            {"problems": {RECORD.path: "no folder"}},
            id="a problem",
        ),
        pytest.param(lambda batch: batch.postpone(), {"again": True, "unsure": True}, id="later"),
    ],
)
def test_a_result_adds_what_it_means_and_nothing_else(add, told):
    batch = _Batch()
    add(batch)
    assert facts(batch) == told
