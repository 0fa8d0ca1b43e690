"""What people read in a terminal, and what a note can't do to it."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.cli.terminal import result_text

HIT = {"path": "Captures/default/A.md", "heading": "Top > Sub", "score": 0.5, "chunk": "one\ntwo  three"}


@given(st.text())
def test_text_of_a_note_cant_steer_the_terminal(text):
    shown = result_text.sanitize(text)
    assert not {"\x1b", "\x9b", "\x07", "\r", "\u202e", "\u2066", "\U000e0041"} & set(shown)
    assert result_text.sanitize(shown) == shown


def test_emoji_and_other_scripts_stay_as_they_are():
    text = "👩‍👩‍👧 日本語 naïve\n\ttab"
    assert result_text.sanitize(text) == text


def test_what_would_be_hidden_is_shown_as_an_escape():
    assert result_text.sanitize("a\x1b[31mb\u202ec\U000e0041\rd\r\ne\x9b\f") == (
        "a\\u{1b}[31mb\\u{202e}c\\u{e0041}\\u{d}d\ne\\u{9b}\\u{c}"
    )
    assert result_text.line("one\u200b\ntwo") == "one\\u{200b} two"


@given(st.text())
def test_only_our_own_styles_pass_to_the_terminal(text):
    shown = result_text.sanitize_styled(result_text.colorize(result_text.sanitize(text), result_text.BOLD, color=True))
    rest = shown.replace(result_text.BOLD, "").replace(result_text.RESET, "")
    assert rest == result_text.sanitize(text)
    assert "\x1b" not in rest


@given(st.text(), st.integers(1, 200))
def test_a_line_is_one_line_of_at_most_its_length(text, longest):
    shown = result_text.line(text, longest)
    assert "\n" not in shown
    assert len(shown) <= longest


def test_a_hit_shows_score_path_heading_and_passage():
    assert result_text.format_hits([HIT]) == "0.50  Captures/default/A.md  # Top > Sub\n      one two three"
    assert "\x1b[1m" in result_text.format_hits([HIT], color=True)
    assert result_text.format_hits([]) == "nothing found"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "## Sub\n\n- [x] White **paint**\n- [ ] A ==second==\n\nSome text,\nwrapped",
            "White paint · A second · Some text, wrapped",
        ),
        ("# Other\nIntro\n\n## Next ##\n> quoted a__b__c\n> text", "Other · Intro · Next ## · quoted a__b__c text"),
        ("```py\na = 1\n```\n1. One\n2. Two", "a = 1 1. One 2. Two"),
        ("![[Albums.base]]\n\n# Sub", "![[Albums.base]] · Sub"),
        ("## Sub\n", ""),
        (
            "if a == b or c !== d, `x == y`, f(**kwargs) and **bold** 这是**重点**内容",
            "if a == b or c !== d, `x == y`, f(**kwargs) and bold 这是重点内容",
        ),
        (
            "```py\n# install\ndef __init__(a):\n  - a ** 2 == b ** 2\n```\n**Done**",
            "# install def __init__(a): - a ** 2 == b ** 2 Done",
        ),
        ("> ```\n> a == <b>\n> ```\n> **end**", "a == <b> end"),
        ("Calls __init__.py\n\n---\n\n| a | b |\n|---|:-:|\n| 1 | 2 |", "Calls __init__.py | a | b | | 1 | 2 |"),
    ],
)
def test_a_passage_is_one_line_without_marks_and_without_its_own_heading(text, shown):
    assert result_text.flatten_passage(text, "Top > Sub") == shown


@given(st.text(), st.text())
def test_any_passage_is_one_line(text, heading):
    assert len(result_text.flatten_passage(text, heading).splitlines()) <= 1


def test_the_passage_of_a_hit_is_indented_on_each_line_of_a_terminal():
    assert (
        result_text.format_hits([HIT], cells=14)
        == "0.50  Captures/default/A.md  # Top > Sub\n      one two\n      three"
    )
    assert result_text.format_hits([HIT], cells=1).endswith(
        "\n      on\n      e\n      tw\n      o\n      th\n      re\n      e"
    )


def test_a_hit_that_a_newer_note_replaces_says_so():
    stale = HIT | {"stale": True, "successor": "Captures/default/B.md"}
    assert "# Top > Sub  superseded by Captures/default/B.md\n" in result_text.format_hits([stale])
    assert "# Top > Sub  superseded\n" in result_text.format_hits([stale | {"successor": None}])


def test_a_weak_hit_says_so():
    assert "# Top > Sub  weak match\n" in result_text.format_hits([HIT | {"weak": True}])
    assert "weak" not in result_text.format_hits([HIT | {"weak": False}])


def test_an_escape_in_a_path_is_not_shown():
    assert "\x1b" not in result_text.format_hits([HIT | {"path": "a\x1b]0;owned\x07.md", "heading": "\x1b[31m"}])


def test_a_pass_is_told_in_signs():
    report = {"added": 2, "modified": 1, "moved": 0, "removed": 0, "unchanged": 5, "failed": 1}
    report |= {"chunks": 9, "embedded": 4, "reused": 5, "seconds": 1.25}
    assert result_text.format_index_report(report).startswith(
        "+2 ~1 -0 !1  (5 unchanged; 9 chunks, 4 embedded, 5 reused"
    )
    assert result_text.format_index_report(report | {"moved": 3}).startswith("+2 ~1 -0 !1 >3")
    assert "; 1 chunk, " in result_text.format_index_report(report | {"chunks": 1})
    assert result_text.format_check_report({"checked": 1, "mended": 0, "failed": 0}) == "1 note checked, 0 repaired"


@pytest.mark.parametrize("width", [1, 10, 40, 80, 200])
@pytest.mark.parametrize(("done", "total"), [(0, 0), (0, 10), (5, 10), (10, 10), (20, 10), (5, 0)])
def test_a_bar_fits_its_width(width, done, total):
    assert len(result_text.progress_bar("indexing", done, total, width)) <= width


def test_columns_line_up():
    assert result_text.table([("a", "bcd"), ("ab", "c")], ("x", "y")) == "x   y\na   bcd\nab  c"
    assert result_text.table([]) == ""


def test_moments_are_shown_as_people_write_them():
    assert result_text.format_time(1_763_649_125_120) == "2025-11-20 14:32"
    assert result_text.format_time(1_763_649_125_120, timespec="seconds") == "2025-11-20 14:32:05"
    assert result_text.captures_table([]) == "no captures yet"
    assert "A.md" in result_text.captures_table([{"created_at": 0, "id": "i", "path": "A.md"}])


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo"), None])
@pytest.mark.parametrize(("at", "shown"), [(-62_135_596_800_000, "0001-01-01 "), (253_402_300_799_999, "9999-12-31 ")])
def test_a_date_at_the_end_of_the_calendar_is_shown_in_every_zone(zone, at, shown):
    assert result_text.format_time(at, zone).startswith(shown)


def test_a_hit_without_a_passage_leaves_no_blank_line():
    assert result_text.format_hits([{"path": "a.md", "heading": "", "score": 0.5, "chunk": " "}]) == "0.50  a.md"
