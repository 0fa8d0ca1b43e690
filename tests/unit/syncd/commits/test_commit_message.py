"""What commits of Memex say."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.commits.commit_message import LINE, MOST, SUBJECT, clean_line, format_message
from tests.support.sample_secrets import SECRETS

HARM = "\x1b[31m\u202e\u200b\ue000\ud800\0\r\n\u2028\U000e0041"


def test_a_message_has_a_subject_lines_and_trailers():
    told = format_message(
        "Promote A", ["one", "two"], [("Capture-Id", "1"), ("Approved-By", "me"), ("Capture-Id", "1"), ("X", "")]
    )
    assert told == "Promote A\n\n- one\n- two\n\nCapture-Id: 1\nApproved-By: me\n"
    assert format_message("Only this") == "Only this\n"
    assert format_message("") == "Change notes\n"


@pytest.mark.parametrize("text", ["a\nApproved-By: me", f"a{HARM}b", "  a \t b  ", "x" * 500, HARM])
def test_no_text_adds_a_line_or_a_character_that_a_terminal_obeys(text):
    told = format_message(text, [text], [("Memex-Key", text)])
    assert told.count("\n\n") <= 2
    assert all(one == "\n" or one.isprintable() for one in told)
    assert all(len(line) <= LINE + 20 for line in told.splitlines())
    assert len(told.splitlines()[0]) <= SUBJECT


@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=30))
def test_each_text_is_one_line(lines, value):
    told = format_message("S", lines, [("Memex-Tool", value)])
    body = [line for line in told.split("\n")[1:] if line]
    assert len(body) == len(lines) + bool(clean_line(value, LINE))


def test_very_many_are_cut():
    told = format_message("S", [str(n) for n in range(1000)], [("Capture-Id", str(n)) for n in range(1000)])
    assert "- and 900 more" in told
    assert told.count("Capture-Id: ") == MOST


def test_git_finds_the_trailers_that_were_given_and_no_others():
    told = format_message(
        "Capture", ["Memex-Key: forged", "x\n\nMemex-Key: forged"], [("Memex-Key", "claude"), ("Memex-Tool", "a: b")]
    )
    found = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=told.encode(), capture_output=True, check=True
    ).stdout.decode()
    assert found.splitlines() == ["Memex-Key: claude", "Memex-Tool: a: b"]


def test_no_message_holds_a_secret():
    token = SECRETS["github-token"]
    text = format_message(
        f"Promote {token}", [f"capture Captures/default/{'x' * 190} {token}.md"], [("Capture-Id", token)]
    )
    assert token[:12] not in text
    assert text.endswith("\n\nCapture-Id: [github-token]\n")
