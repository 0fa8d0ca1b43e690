"""Diffs of one note: made, read and applied, with the line ends that the note has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.changes.unified_diff import DiffError, apply_hunks, compose_diff, parse_diff

LINES = st.lists(st.sampled_from(["", "a", "b", "c", " - x", "+", "\\", "@@ -1 +1 @@", "--- a", "```"]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])


def text_of(lines, end, *, ended=True):
    return end.join(lines) + (end if ended and lines else "")


@given(LINES, LINES, ENDS, st.booleans(), st.booleans())
def test_a_diff_applied_to_its_text_gives_the_wanted_text(before, after, end, first, second):
    old, new = text_of(before, end, ended=first), text_of(after, end, ended=second)
    diff = compose_diff(old, new, "a.md")
    assert bool(diff) == (old != new)
    if diff:
        assert apply_hunks(parse_diff(diff), old) == (
            new if "\r\n" in old or "\n" not in new else new.replace("\r\n", "\n")
        )


def test_lines_that_a_diff_does_not_name_keep_their_ends():
    text = "one\r\ntwo\nthree\r\nfour\nfive\n"
    diff = compose_diff(text, text.replace("three", "3"), "a.md")
    assert apply_hunks(parse_diff(diff), text) == "one\r\ntwo\n3\nfour\nfive\n"


def test_line_ends_alone_are_no_change():
    assert compose_diff("a\r\nb\r\n", "a\nb\n", "a.md") == ""


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param("@@ -9,1 +9,1 @@\n-two\n+2\n", "one\n2\nthree\n", id="a wrong line number"),
        pytest.param(
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2",
            "one\n2\nthree\n",
            id="names of files, no last line end",
        ),
        pytest.param(
            "diff --git a b\nindex 1..2\n@@ -3 +3,2 @@\n three\n+four\n", "one\ntwo\nthree\nfour\n", id="of Git"
        ),
        pytest.param("@@ -0,0 +1 @@\n+zero\n", "zero\none\ntwo\nthree\n", id="before the first line"),
        pytest.param("@@ -1 +0,0 @@\n-one\n@@ -3 +2 @@\n-three\n+3\n", "two\n3\n", id="two parts"),
    ],
)
def test_a_patch_is_applied_where_its_lines_are(patch, result):
    assert apply_hunks(parse_diff(patch), "one\ntwo\nthree\n") == result


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "begins with `@@`"),
        ("change two to 2", "must begin with"),
        ("@@ -1 +1 @@\n one\n", "`+` or `-`"),
        ("@@ -1 +1 @@\none\n", "none of the characters"),
        ("@@ -1 +1 @@\n-One\n+1\n", "are not in the text"),
        ("@@ -2 +2 @@\n-one\n+1\n", "are in 2 places"),
        ("@@ -9,0 +9 @@\n+1\n", "names no line"),
    ],
)
def test_a_patch_that_fits_nowhere_or_twice_is_refused(patch, words):
    with pytest.raises(DiffError, match=words.replace("+", r"\+")):
        apply_hunks(parse_diff(patch), "one\ntwo\none\n")


def test_a_line_added_behind_a_text_without_a_last_line_end_begins_a_line():
    assert apply_hunks(parse_diff("@@ -1 +1,2 @@\n one\n+two\n"), "one") == "one\ntwo\n"
