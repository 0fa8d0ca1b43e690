"""How captures and shared notes are joined into one list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Answer, Hit, Query, Record
from syncd.sharing.window_ranking import AHEAD, join_hits
from syncd.workspaces.window_search import search_scopes
from tests.support.example_counts import examples

RECORD = Record(**dict.fromkeys(Record.__dataclass_fields__))


def hits(kinds):
    """A hit for each letter: captured or, in capitals, shared; x and X are weak."""
    return [
        Hit(
            replace(RECORD, path=f"{n}.md", scope="vault" if kind.isupper() else "captures"),
            *(0, "", "", 1 - n / 100),
            weak=kind.lower() == "x",
        )
        for n, kind in enumerate(kinds)
    ]


def kinds(joined):
    return "".join(
        letter.upper() if hit.record.scope == "vault" else letter
        for hit in joined
        for letter in ["x" if hit.weak else "c"]
    )


@pytest.mark.parametrize(
    ("ranked", "joined"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("ccc", "ccc", id="captures alone"),
        pytest.param("CCC", "CCC", id="shared notes alone"),
        pytest.param("cCcCcC", "cCcCcC", id="in turns"),
        pytest.param("cccCCC", "cccCCC", id="captures first"),
        pytest.param("CCCCcc", "CCcCcC", id="a large vault"),
        pytest.param("CCCCxx", "CCCCxx", id="captures that do not fit wait"),
        pytest.param("CCCcx", "CCcCx", id="and those that fit do not"),
    ],
)
def test_how_hits_are_joined(ranked, joined):
    assert kinds(join_hits(hits(ranked))) == joined


@given(st.text("cCxX", max_size=12))
@examples(400)
def test_nothing_is_lost_and_no_list_changes_its_order(ranked):
    given_hits = hits(ranked)
    joined = join_hits(given_hits)
    for scope in ("captures", "vault"):
        assert [hit for hit in joined if hit.record.scope == scope] == [
            hit for hit in given_hits if hit.record.scope == scope
        ]


@given(st.text("cCxX", max_size=12))
@examples(400)
def test_no_vault_hides_a_capture_that_fits(ranked):
    joined = join_hits(hits(ranked))
    for at, hit in enumerate(joined):
        captured = sum(other.record.scope == "captures" for other in joined[:at])
        waiting = next((other for other in joined[at:] if other.record.scope == "captures"), None)
        if hit.record.scope == "vault" and waiting is not None and not waiting.weak:
            assert at - captured < captured + AHEAD


@given(st.text("cxCX", max_size=8), st.text("CX", max_size=8), st.integers(0, 8))
@examples(200)
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(ranked, more, limit):
    """The lists behind an answer to `limit` have `limit` hits of each kind."""

    def cut(which):
        counts = {"captures": 0, "vault": 0}
        for hit in which:
            counts[hit.record.scope] += 1
            if counts[hit.record.scope] <= limit:
                yield hit

    whole = hits(ranked + more)
    assert join_hits(cut(whole))[:limit] == join_hits(whole)[:limit]


def test_the_order_does_not_depend_on_the_limit_when_a_shared_note_far_below_replaces_a_capture():
    captures, shared = hits("c"), [replace(hit, score=0.3 - n / 1000) for n, hit in enumerate(hits("S" * 31))]
    captures = [replace(captures[0], record=replace(captures[0].record, path="Old.md", superseded_by="New"))]
    shared[30] = replace(shared[30], record=replace(shared[30].record, path="New.md", workspace=""))

    class Shared:
        """A window of 31 notes."""

        def search(self, query):
            return Answer(tuple(shared[: query.limit]), "hybrid")

    def order(limit):
        answer = search_scopes(Query("x", limit), "all", lambda _: Answer(tuple(captures), "hybrid"), Shared(), None)
        return [hit.record.path for hit in answer.hits]

    assert all(order(limit) == order(50)[:limit] for limit in (1, 5, 10, 20))
    assert order(50)[-2:] == ["New.md", "Old.md"], "the capture goes ahead of other shared notes, but not of this one"
