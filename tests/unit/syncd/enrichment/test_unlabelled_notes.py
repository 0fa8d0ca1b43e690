"""Which notes count as lacking a summary, by what Memex has read and what waits for a retry."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from syncd.enrichment.backfill import Backfill


@pytest.mark.parametrize(
    ("summed", "waiting", "left"),
    [
        ({("work", "a"), ("home", "a")}, ("work", "a"), {("home", "a")}),
        ({("work", "a"), ("work", "b")}, ("", "a"), {("work", "b")}),
        ({("", "a"), ("", "b")}, ("work", "a"), {("", "b")}),
        ({("", "a"), ("", "b")}, ("", "a"), {("", "b")}),
    ],
)
def test_a_note_that_waits_is_not_read_and_no_workspace_means_any(summed, waiting, left):
    asked = []
    index = SimpleNamespace(unlabelled_paths=lambda _, summed: asked.append(summed) or [])
    enricher = SimpleNamespace(by="", problem="", pending_retries=lambda: [(*waiting, 1)])
    backfill = Backfill(
        None, None, SimpleNamespace(index=index), None, enricher, inbox="", summed=lambda: summed, record_summary=None
    )
    assert (backfill.facts()["missing"], asked) == (0, [left])
