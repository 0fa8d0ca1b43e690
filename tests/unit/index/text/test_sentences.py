"""Sentences without markup: the first one of a note, and how long any text takes."""

from __future__ import annotations

import time

import pytest

from index.text.sentences import LONGEST, first_sentence, read_prose
from syncd.documents.parser import parse


def note(text):
    return parse(text.encode(), "Captures/default/Untitled.md", mtime_ms=0)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("# Title #\n\nText.\n", "Title"),
        ("# Title  ##  \n", "Title"),
        ("# C#\n", "C#"),
        ("# A # b\n", "A # b"),
        ("Title\n  ===  \n", "Title"),
        ("# ==\n\n> [!note]\n\n```\ncode\n```\n\nThe first. The second.\n", "The first."),
        ("```\n" + "code\n" * LONGEST + "```\n\nBehind code.\n", "Behind code."),
        ("", ""),
    ],
)
def test_the_first_heading_or_sentence(text, first):
    assert first_sentence(note(text)) == first


@pytest.mark.parametrize(
    "piece", ["# ==" + " " * 3_000 + "==\n\n", "# " + "# " * 1_500 + "\n\n", "==" + "\t " * 1_500 + "#==\n\n"]
)
def test_no_text_takes_long(piece):
    document = note(piece * 10)
    begun = time.process_time()
    first_sentence(document)
    assert read_prose(document).sentences == ()
    assert time.process_time() - begun < 0.5
