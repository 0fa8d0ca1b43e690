"""syncd/page/web/passages.py: the words of a search are marked, and nothing else is markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from syncd.page.web.passages import mark_passage


@pytest.mark.parametrize(
    ("chunk", "query", "shown"),
    [
        ("The battery boxes", "battery box", "The <mark>battery</mark> <mark>boxes</mark>"),
        ("an IDEA of it", "it idea", "an <mark>IDEA</mark> of <mark>it</mark>"),
        ("item", "it", "item"),
        ("Größe", "größe", "<mark>Größe</mark>"),
        ("caf\u0065\u0301", "café", "<mark>café</mark>"),
        ("今日の会議は長い", "会議", "今日の<mark>会議</mark>は長い"),
        ("会議室", "会議室", "<mark>会議</mark>室"),
        ("<b>bold</b> & b", "bold", "&lt;b&gt;<mark>bold</mark>&lt;/b&gt; &amp; b"),
        ("a\n\n b", "", "a b"),
        ("In the inbox", "in", "<mark>In</mark> the inbox"),
        ("a.b", ".*", "a.b"),
        ("", "x", ""),
    ],
)
def test_words_are_marked(chunk, query, shown):
    assert mark_passage(chunk, query) == shown


def test_a_long_passage_is_cut_around_the_first_word():
    shown = mark_passage("word " * 200 + "heron " + "word " * 200, "heron", 100)
    assert shown.startswith("… word")
    assert shown.endswith(" …")
    assert "<mark>heron</mark>" in shown
    assert len(Markup(shown).striptags()) < 120


@pytest.mark.parametrize("between", ["会" * 400, "x/" * 200 + "a-b"])
def test_a_text_without_blanks_before_the_word_keeps_the_word(between):
    chunk = f"{between}-heron-{between} end " + "word " * 100
    assert "<mark>heron</mark>" in mark_passage(chunk.replace("会-heron", "会。heron"), "heron", 100)


def test_a_word_at_the_beginning_is_not_cut_away():
    assert mark_passage("heron " + "word " * 200, "heron", 50).startswith("<mark>heron</mark> word")


@given(st.text(max_size=200), st.text(max_size=30))
def test_only_marks_are_markup(chunk, query):
    shown = str(mark_passage(chunk, query, 80))
    rest = re.sub("</?mark>", "", shown)
    assert "<" not in rest
    assert ">" not in rest
    assert shown.count("<mark>") == shown.count("</mark>")
