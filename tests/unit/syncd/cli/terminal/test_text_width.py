"""Text in a terminal: how wide it stands, and where it is broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.cli.terminal.text_width import pad, width, wrap


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("abc", 3), ("日本", 4), ("ｱ", 1), ("e\u0301", 1), ("a\u200db", 2), ("Ａ", 2), ("🌱", 2)],
)
def test_a_wide_character_takes_two_cells_and_an_accent_none(text, cells):
    assert width(text) == cells
    assert width(pad(text, 10)) == 10


@given(st.text(), st.integers(2, 100))
def test_no_line_is_wider_than_asked_and_nothing_is_lost(text, cells):
    lines = wrap(text, cells)
    assert all(width(line) <= cells or line.startswith("`") for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_lines_are_broken_at_blanks():
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("a abcdefgh b", 4) == ["a", "abcd", "efgh", "b"]
    assert wrap("日本語の文", 4) == ["日本", "語の", "文"]
    assert wrap("", 4) == [""]


def test_a_command_between_backticks_is_never_broken():
    assert wrap("dead: run `rm '/my notes/.git/index.lock'`, then look", 20) == [
        "dead: run",
        "`rm '/my notes/.git/index.lock'`,",
        "then look",
    ]
    assert wrap("as in `a b` or `c", 8) == ["as in", "`a b` or", "`c"]
