"""Unit tests of `use_counts`: an answer counts once, shared by its notes, and counts outlive a restart."""

from __future__ import annotations

import contextlib

import pytest

from syncd.context.use_counts import UseCounts
from syncd.state.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    tmp_path.chmod(0o700)
    with contextlib.closing(Ledger.open(tmp_path / "ledger.db")) as opened:
        yield opened


def test_an_answer_is_shared_by_its_notes(ledger):
    counts = UseCounts(ledger)
    counts.add("w", ["a"])
    counts.add("w", ["a", "b", "b"])
    counts.add("w", [])
    assert (counts.read("w"), counts.version) == ({}, 0)
    counts.flush()
    assert (counts.read("w"), counts.version) == ({"a": 1.5, "b": 0.5}, 1)
    counts.flush()
    assert counts.version == 1
    counts.add("w", ["b"])
    counts.flush()
    assert counts.read("w") == UseCounts(ledger).read("w") == {"a": 1.5, "b": 1.5}


def test_each_workspace_has_its_own_note_of_an_id(ledger):
    counts = UseCounts(ledger)
    for workspace in ("w", "w", "x"):
        counts.add(workspace, ["standup"])
    counts.flush()
    assert [counts.read(workspace) for workspace in ("w", "x", "y")] == [{"standup": 2.0}, {"standup": 1.0}, {}]


def test_missing_notes_are_forgotten(ledger):
    counts = UseCounts(ledger)
    counts.forget_missing(lambda: pytest.fail("there is nothing to forget"))
    counts.add("w", ["a", "b"])
    counts.flush()
    counts.forget_missing(lambda: {"b"})
    assert counts.read("w") == UseCounts(ledger).read("w") == {"b": 0.5}
