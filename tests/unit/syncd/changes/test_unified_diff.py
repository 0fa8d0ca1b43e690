"""Diffs of one note: made, read and applied, with the line ends that the note has."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.changes import unified_diff
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
        ("@@ -2 +2 @@\n-one\n+1\n", "are in more than one place"),
        ("@@ -9,0 +9 @@\n+1\n", "names no line"),
    ],
)
def test_a_patch_that_fits_nowhere_or_twice_is_refused(patch, words):
    with pytest.raises(DiffError, match=words.replace("+", r"\+")):
        apply_hunks(parse_diff(patch), "one\ntwo\none\n")


def test_a_line_added_behind_a_text_without_a_last_line_end_begins_a_line():
    assert apply_hunks(parse_diff("@@ -1 +1,2 @@\n one\n+two\n"), "one") == "one\ntwo\n"


TEXTS = st.lists(st.sampled_from(["a", "b", "", "c"]), min_size=1, max_size=30).map(lambda lines: text_of(lines, "\n"))


@given(TEXTS, TEXTS)
def test_a_diff_is_the_one_that_other_programs_make(before, after):
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    assert compose_diff(before, after, "a.md") == "".join(difflib.unified_diff(old, new, "a.md", "a.md"))


@given(LINES, LINES, st.integers(0, 30))
def test_a_diff_that_ends_its_search_early_still_gives_the_wanted_text(before, after, steps):
    old, new = text_of(before, "\n"), text_of(after, "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unified_diff, "STEPS", steps)
        diff = compose_diff(old, new, "a.md")
    assert (apply_hunks(parse_diff(diff), old) if diff else old) == new


@pytest.mark.slow
def test_the_search_for_equal_lines_ends():
    lines = [f"{number:x}\n" for number in range(4000)]
    repeated = "".join(f"{line}and\n" for line in lines) * 10
    counted = 0

    class Counting(unified_diff.LineMatcher):
        def find_longest_match(self, *arguments, **named):
            nonlocal counted
            counted += self._left > 0
            return super().find_longest_match(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unified_diff, "LineMatcher", Counting)
        diff = compose_diff("".join(lines), repeated, "a.md")
    assert apply_hunks(parse_diff(diff), "".join(lines)) == repeated
    assert 0 < counted < 1000


@pytest.mark.parametrize("lines", [["a", "a", "b", "a", "a", "a"], ["", "", "", ""], ["a"], []])
def test_the_places_of_successive_lines(lines):
    plain = unified_diff._PlainLines(lines)
    for length in (1, 2, 3):
        for wanted in (["a"] * length, [""] * length, ["b", "a", "a"][:length]):
            for least in range(len(lines) + 1):
                places = [at for at in range(least, len(lines)) if lines[at : at + length] == wanted]
                assert plain.find(wanted, least) == places[:2]
