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
    counts.add(["a"])
    counts.add(["a", "b", "b"])
    counts.add([])
    assert (counts.read(), counts.version) == ({}, 0)
    counts.flush()
    assert (counts.read(), counts.version) == ({"a": 1.5, "b": 0.5}, 1)
    counts.flush()
    assert counts.version == 1
    counts.add(["b"])
    counts.flush()
    assert counts.read() == UseCounts(ledger).read() == {"a": 1.5, "b": 1.5}


def test_missing_notes_are_forgotten(ledger):
    counts = UseCounts(ledger)
    counts.forget_missing(lambda: pytest.fail("there is nothing to forget"))
    counts.add(["a", "b"])
    counts.flush()
    counts.forget_missing(lambda: {"b"})
    assert counts.read() == UseCounts(ledger).read() == {"b": 0.5}
