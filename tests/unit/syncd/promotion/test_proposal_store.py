"""Proposals: kept over restarts, carried out once, and never anything that was not proposed."""

from __future__ import annotations

import threading

import pytest

from index.errors import Conflict, NotFound, Unavailable
from syncd.notes.checkboxes import ProposalOutcome
from syncd.promotion.proposal_store import GONE, Proposal, Proposals
from syncd.state.ledger import Ledger

RELATE = Proposal("relate", ("a", "b"), {"source": "Ada", "target": "Bab"})
MERGE = Proposal("merge", ("1", "2"), {"keep": "1", "digest": "d1"})
LATER = Proposal("merge", ("1", "2"), {"keep": "1", "digest": "d2"})


class Doing:
    """Work that is counted, and may fail."""

    def __init__(self, *failures):
        self.given, self.failures = [], list(failures)

    def __call__(self, given):
        self.given.append(given)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return f"did {given['keep']}"


@pytest.fixture
def proposals(ledger):
    return Proposals(ledger, lambda: 1)


def test_a_key_names_just_this_change():
    assert MERGE.key == Proposal("merge", ("x",), {"digest": "d1", "keep": "1"}).key
    assert len({MERGE.key, LATER.key, Proposal("relate", ("1", "2"), MERGE.about).key}) == 3
    assert MERGE.key == MERGE.key.lower()
    assert len(MERGE.key) == 16


def test_what_is_accepted_is_carried_out_once(proposals):
    done = Doing()
    proposals.register("merge", done)
    assert proposals.offer([MERGE, RELATE, MERGE]) == [MERGE.key, RELATE.key]
    assert proposals.carry_out() == {}
    assert proposals.record_answers({MERGE.key: "accepted", "f" * 16: "accepted"}) == [MERGE.key]
    assert proposals.record_answers({MERGE.key: "accepted"}) == []
    assert proposals.record_answers({MERGE.key: "dismissed"}) == [], "it is under way"
    assert proposals.carry_out() == {MERGE.key: ProposalOutcome(True, "did 1")}
    assert proposals.carry_out() == {}
    assert done.given == [{"keep": "1", "digest": "d1", "key": MERGE.key}]
    assert proposals.offer([MERGE, RELATE]) == [RELATE.key], "nor is it proposed again"
    assert proposals.record_answers({MERGE.key: "accepted"}) == []


def test_what_is_dismissed_is_never_proposed_again_whatever_the_notes_say_by_then(proposals):
    proposals.offer([MERGE])
    proposals.record_answers({MERGE.key: "dismissed"})
    assert proposals.offer([MERGE, LATER]) == []
    assert proposals.record_answers({LATER.key: "accepted"}) == []
    assert proposals.counts()["dismissed"] == 1


def test_what_is_not_found_any_more_is_stale_and_may_come_back(proposals):
    proposals.offer([MERGE, RELATE])
    proposals.mark_placed([MERGE.key, RELATE.key], "Captures/Reports/a.md")
    proposals.withdraw(["merge"], [])
    assert proposals.record_answers({MERGE.key: "accepted"}) == []
    assert proposals.outcomes() == {MERGE.key: ProposalOutcome(False, GONE)}
    assert proposals.list_unplaced([MERGE.key, RELATE.key]) == []
    assert proposals.offer([MERGE]) == [MERGE.key]
    assert proposals.list_unplaced([MERGE.key, RELATE.key]) == [MERGE.key], "it is shown anew"
    assert proposals.list_in(["open"]) == {one.key: (one.kind, dict(one.about)) for one in (MERGE, RELATE)}


@pytest.mark.parametrize("error", [Conflict("it has changed"), NotFound("it has gone")])
def test_what_no_longer_fits_is_stale_and_told(proposals, error):
    proposals.register("merge", Doing(error))
    proposals.offer([MERGE])
    proposals.record_answers({MERGE.key: "accepted"})
    assert proposals.carry_out() == {MERGE.key: ProposalOutcome(False, error.message)}
    assert proposals.carry_out() == {}
    assert proposals.counts()["stale"] == 1


@pytest.mark.parametrize(
    "error", [Unavailable("the disk is full"), Conflict("just being edited", retryable=True), ValueError("a bug")]
)
def test_what_can_not_be_done_just_now_is_done_later_and_delays_no_other(proposals, error):
    proposals.register("merge", Doing(error))
    proposals.register("relate", lambda _: "related")
    proposals.offer([MERGE, RELATE])
    proposals.record_answers({MERGE.key: "accepted", RELATE.key: "accepted"})
    assert proposals.carry_out() == {RELATE.key: ProposalOutcome(True, "related")}
    assert proposals.problem
    assert proposals.carry_out() == {MERGE.key: ProposalOutcome(True, "did 1")}
    assert proposals.problem == ""


def test_what_nobody_here_carries_out_waits(proposals):
    proposals.offer([MERGE])
    proposals.record_answers({MERGE.key: "accepted"})
    assert proposals.carry_out() == {}
    assert "merge" in proposals.problem


def test_proposals_outlive_the_process(ledger):
    first = Proposals(ledger, lambda: 1)
    first.offer([MERGE, RELATE])
    first.record_answers({MERGE.key: "accepted"})
    again = Proposals(Ledger.open(ledger.path), lambda: 2)
    again.register("merge", Doing())
    assert list(again.carry_out()) == [MERGE.key]
    assert again.counts() == {"open": 1, "accepted": 0, "carried": 1, "dismissed": 0, "stale": 0}


def test_a_stop_leaves_the_rest_for_the_next_time(proposals):
    stopping = threading.Event()
    proposals.register("merge", lambda _: stopping.set() or "done")
    proposals.register("relate", lambda _: "related")
    proposals.offer([MERGE])
    proposals.offer([RELATE])
    proposals.record_answers({MERGE.key: "accepted", RELATE.key: "accepted"})
    assert len(proposals.carry_out(stopping)) == 1
    assert proposals.counts()["accepted"] == 1
