"""What the results of single captures are together: what is carried out, written down, asked about and looked at again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from syncd.promotion.marked_captures import Defect, ReadyCapture, UndecidedCapture, _Batch
from syncd.promotion.plan import TakenDestination
from syncd.promotion.promoted_note import DEFECT, Problem

RECORD = SimpleNamespace(path="Captures/a.md")
PLAN = SimpleNamespace(moves={RECORD.path: "Notes/Wide/A.md"})


def facts(batch):
    return {
        name: value
        for name in ("plans", "taken", "problems", "reserved", "again", "unsure")
        if (value := getattr(batch, name))
    }


@pytest.mark.parametrize(
    ("result", "told"),
    [
        pytest.param(
            ReadyCapture(PLAN),
            {
                "plans": [PLAN],
                "reserved": {"notes": "Notes", "notes/wide": "Notes/Wide", "notes/wide/a.md": "Notes/Wide/A.md"},
            },
            id="planned",
        ),
        pytest.param(
            TakenDestination("A.md"),
            {
                "taken": [(RECORD, "A.md")],
                "problems": {RECORD.path: "A.md already exists, and Memex does not overwrite it"},
            },
            id="taken",
        ),
        pytest.param(Problem("no folder"), {"problems": {RECORD.path: "no folder"}}, id="a problem"),
        pytest.param(UndecidedCapture(), {"again": True, "unsure": True}, id="later"),
        pytest.param(Defect(), {"problems": {RECORD.path: DEFECT}, "unsure": True}, id="a mistake of ours"),
        pytest.param(None, {}, id="nothing to do"),
    ],
)
def test_a_result_adds_what_it_means_and_nothing_else(result, told):
    batch = _Batch()
    batch.add(RECORD, result)
    assert facts(batch) == told
