"""Marks of emphasis: those that CommonMark pairs, and no others, in a time that grows with the text and no faster."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from index.text.emphasis import remove_emphasis

COMMONMARK = MarkdownIt("commonmark")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("*a* **b** ***c*** _d_ __e__ ~~f~~ ==g==", "a b c d e f g"),
        ("2*3 a_b_c __init__x", "2*3 a_b_c __init__x"),
        ("a*b*c a==b==c", "abc abc"),
        ("**a *b** c", "*a b c"),
        ("*a**b*", "a**b"),
        ("a == b == c ~~ d ~~ e ===f=== ~g~", "a == b == c ~~ d ~~ e ===f=== ~g~"),
        ("\\*a\\* \\\\*b*", "\\*a\\* \\\\b"),
        ("*\U000e0000* a*\U000e0000*b", "\U000e0000 a*\U000e0000*b"),
    ],
)
def test_marks_that_are_paired_are_removed(text, plain):
    assert remove_emphasis(text) == plain


@given(st.text(alphabet="ab *_.(é", max_size=24).map(lambda text: f"x{text}x"))
def test_it_agrees_with_markdown_it(text):
    tokens = COMMONMARK.parseInline(text)[0].children or ()
    assert remove_emphasis(text) == "".join(token.content for token in tokens)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["*a _b ", "_a ", "*", "* ", "a*b_", "*a**b_c__", "**a ", "a** ", "==a ", "a~~"])
def test_no_text_takes_long(piece):
    text = piece * (50_000 // len(piece))
    begun = time.process_time()
    remove_emphasis(text + "a* " * 10_000)
    assert time.process_time() - begun < 2
