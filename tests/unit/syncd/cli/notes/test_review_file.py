"""syncd/cli/notes/review_file.py: the waiting captures as a file, and what a saved file means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.cli.notes.review_file import Decision, compose_file, parse_file

TEXTS = st.text(max_size=40)


def capture(id="a1", title="Roof door", summary="", promote_to=None, suggested_folder=None):
    return {
        "id": id, "title": title, "summary": summary, "promote_to": promote_to, "suggested_folder": suggested_folder,
    }  # fmt: skip


WAITING = [
    capture("a1", suggested_folder="Home"),
    capture("b2", "Heat pump", "The filter is due."),
    capture("c3", "Tax"),
]
IDS = ["a1", "b2", "c3"]


def test_the_file_shows_title_summary_and_folder():
    text = compose_file(WAITING)
    assert "\nkeep a1  Roof door  -> Home\n" in text
    assert "\nkeep b2  Heat pump\n#   The filter is due.\n" in text
    assert text.startswith("# 3 captures wait")


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS | st.none()), max_size=5))
def test_a_file_that_nobody_changed_decides_nothing_whatever_the_captures_say(captures):
    waiting = [capture(f"id{n}", title, summary, None, folder) for n, (title, summary, folder) in enumerate(captures)]
    assert parse_file(compose_file(waiting), [one["id"] for one in waiting]) == []


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("approve a1  Roof door  -> Home", Decision("a1", "approve", "Home")),
        ("a a1", Decision("a1", "approve", None)),
        ("APPROVE a1 x -> Deep/Folder", Decision("a1", "approve", "Deep/Folder")),
        ("approve a1  Roof door  -> /", Decision("a1", "approve", "")),
        ("approve a1  Roof door  ->", Decision("a1", "approve", None)),
        ("d a1 whatever stands here", Decision("a1", "discard", None)),
        ("  discard a1", Decision("a1", "discard", None)),
    ],
)
def test_a_changed_line_is_a_decision(line, decision):
    assert parse_file(f"# a comment\n\n{line}\nkeep b2\n", IDS) == [decision]


def test_a_deleted_line_keeps_its_capture():
    assert parse_file("", IDS) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aprove a1 Roof", "line 1: a line begins with keep, approve or discard, and not with 'aprove a1 Roof'"),
        ("keep b2\napprove zz Roof", "line 2: no capture in this file has the id 'zz'"),
        ("approve a1\ndiscard a1", "line 2: the capture a1 has a line above already"),
        ("approve", "line 1: a line begins with"),
    ],
)
def test_a_mistake_is_named_by_its_line_and_decides_nothing(text, words):
    with pytest.raises(InvalidArgument, match="nothing was changed") as refused:
        parse_file(f"{text}\n", IDS)
    assert words in refused.value.message
