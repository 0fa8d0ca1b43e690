"""Text out of a file is fit for a note: nothing unseen, nothing that would be read as more than text."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.files.conversion.readers import clean_text
from syncd.files.conversion.readers.clean_text import (
    escape_cell,
    escape_inline,
    escape_line,
    format_rows,
    format_table,
    remove_invisible,
    tidy,
    truncate,
)
from syncd.notes.markdown_outline import parse_outline

ANY = st.text(st.characters(), max_size=200)


@given(ANY)
def test_plain_holds_nothing_that_a_note_can_not(text):
    told = remove_invisible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]", told)
    assert remove_invisible(told) == told
    told.encode()


@given(ANY)
def test_tidy_twice_is_tidy_once(text):
    told = tidy(text)
    assert tidy(told) == told
    assert unicodedata.is_normalized("NFC", told)
    assert "\n\n\n" not in told
    assert not told or told.endswith("\n")


def test_what_is_unseen_goes_and_what_shapes_letters_stays():
    assert remove_invisible("a\r\nb\rc\x0bd\u2028e\x00\x1b[31m\ufeff\U000e0041") == "a\nb\nc\nd\ne[31m"
    assert (
        tidy("Fuß\u00adball u\u0308ber\u00a0\n\n\n\nक्\u200dष 👩\u200d🚀 می\u200cروم")
        == "Fußball über\n\nक्\u200dष 👩\u200d🚀 می\u200cروم\n"
    )
    assert tidy(" \n\t\n") == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# not a heading", "\\# not a heading"), ("> none", "\\> none"), ("- none", "\\- none"), ("+ none", "\\+ none"),
        ("12. none", "12\\. none"), ("3) none", "3\\) none"), ("---", "\\---"), ("===", "\\==="), ("```", "\\```"), ("~~~x", "\\~~~x"),
        ("1.5 metres", "1.5 metres"), ("-5 degrees", "-5 degrees"), ("a # b - c", "a # b - c"), ("C# and #1", "C# and #1"),
        ("a #tag (#other)", "a \\#tag (\\#other)"), ("see [[Note]] ![[Pic]]", "see \\[[Note]] \\!\\[[Pic]]"),
        ("<\u200bb> [\u00ad[x]] %\ufeff% !\x01[[x]]", "\\<b> \\[[x]] \\%% \\!\\[[x]]"), ("\u1fef" * 3, "\\```"),
        ("\\<b> \\\\[[x]] C:\\a", "\\\\\\<b> \\\\\\\\\\[[x]] C:\\a"),
        ("#0A #1-a #§ #12 #1, # a", "\\#0A \\#1-a \\#§ #12 #1, # a"),
        ("![](https://x)", "\\![](https://x)"), ("<b>x</b> 1 < 2", "\\<b>x\\</b> 1 < 2"), ("%%gone%%", "\\%%gone\\%%"),
    ],
)  # fmt: skip
def test_a_line_says_in_markdown_what_it_says(text, told):
    assert escape_line(text) == told


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=60))
def test_a_line_begins_no_block(text):
    told = escape_line(" ".join(remove_invisible(text).split()))
    assert {block.kind for block in parse_outline(f"{told}\n").blocks} <= {"paragraph"}


@given(st.text("\\<[!#%( a/1", max_size=12))
def test_text_without_a_mark_that_begins_markup_needs_no_search(text):
    assert escape_inline(text) == clean_text._INSIDE.sub(r"\\\g<0>", text)


def test_cells_stay_in_their_cell():
    assert escape_cell("a | b\nc") == "a \\| b c"
    assert escape_cell("a\\|b") == "a\\\\\\|b"
    assert format_table([["A", "B"], ["1"]]) == "| A | B |\n| --- | --- |\n| 1 |  |"
    assert format_table([]) == ""
    assert escape_inline("1. a") == "1. a"


def test_what_stands_alone_above_rows_is_prose():
    assert format_rows([["Title", ""], ["A", "B"], ["1", "2"]]) == "Title\n\n| A | B |\n| --- | --- |\n| 1 | 2 |"
    assert format_rows([["one"], ["two"]]) == "one\n\ntwo"
    assert format_rows([["one"], ["two"], ["three"], ["four"]]) == "| one |\n| --- |\n| two |\n| three |\n| four |"


@given(st.text(st.sampled_from("ab \nü漢`"), max_size=400), st.integers(10, 300))
def test_cut_text_is_a_beginning_of_the_text(text, most):
    told, was_cut = truncate(text, most)
    assert was_cut == (len(text.encode()) > most)
    if was_cut:
        assert len(told.encode()) <= most + 30
        assert text.startswith(re.sub(r"\n[`~]*\n\Z", "", told).rstrip())
    else:
        assert told == text


def test_a_cut_comes_at_a_paragraph_and_closes_its_fence():
    assert truncate("aaaa\n\nbbbb\n\ncccc", 12) == ("aaaa\n\nbbbb\n", True)
    assert truncate("```\n" + "x\n" * 20, 20)[0].endswith("\n```\n")
    assert truncate("````\n```\nx\n```\n" + "x\n" * 20, 30)[0].endswith("x\n````\n")
    assert truncate("````\n```\n" + "x\n" * 20, 30)[0].endswith("x\n````\n")
    assert truncate("~~~\n```\n~~~\n``` a`b\n" + "x\n" * 20, 40)[0].endswith("x\nx\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "#" * 100_000,
        "[" * 100_000,
        "<" * 100_000,
        " " * 100_000,
        "- " * 50_000,
        "\\" * 100_000,
        "a" + " " * 100_000 + "a",
        "%" * 100_000,
        "\n" * 100_000,
        "1" * 100_000,
    ],
)
@pytest.mark.parametrize("function", [remove_invisible, tidy, escape_line, escape_cell])
def test_nothing_takes_long(function, text):
    begun = time.process_time()
    function(text)
    assert time.process_time() - begun < 1
