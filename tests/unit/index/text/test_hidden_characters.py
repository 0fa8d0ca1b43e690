"""Hidden characters are named and escaped; what a script or an emoji needs is left alone."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text.hidden_characters import KINDS, escape_hidden, find_hidden, may_hide, remove_ignorable

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")
ENGLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"
CHARACTERS = st.text(
    st.one_of(
        st.sampled_from("aé ש❤\U0001f469क\U0001f3f4\ufe0f\u200d\u200c\u200e\ufeff\u00ad\x1b\u202e\U000e007f\n"),
        st.characters(exclude_categories=["Cs"]),
    )
)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("red \x1b[31mtext", ["ansi"], id="a colour"),
        pytest.param("a title \x9d0;x\x9c", ["ansi", "control"], id="C1 sequences"),
        pytest.param("a\x00b\x08c\x7f", ["control"], id="controls"),
        pytest.param("a\u202egnp.exe", ["bidi"], id="an override"),
        pytest.param("a \u2066b\u2069", ["bidi"], id="isolates"),
        pytest.param("plain \u200etext", ["bidi"], id="a mark in a Latin text"),
        pytest.param("שלום\u200f\u200f", ["bidi"], id="two marks in a row"),
        pytest.param("pro\u200bmote", ["zero-width"], id="a zero-width space"),
        pytest.param("pro\u200dmote", ["zero-width"], id="a joiner between Latin letters"),
        pytest.param("a\u2060b\u2062c\u3164", ["zero-width"], id="other characters without width"),
        pytest.param("a\ufeffb", ["zero-width"], id="a byte order mark in the text"),
        pytest.param("a\u00ad\u00adb", ["zero-width"], id="two soft hyphens"),
        pytest.param(f"hello{TAGS}", ["tag"], id="tags"),
        pytest.param(f"\U0001f3f4{TAGS}\U000e007f", ["tag"], id="tags after a flag that is none"),
        pytest.param("\U0001f600" + "\ufe00\ufe0e\ufe03", ["variation-selector"], id="a run of selectors"),
        pytest.param("a\U000e0100\U000e0155b", ["variation-selector"], id="selectors after a letter"),
        pytest.param("1\U000e0100", ["variation-selector"], id="a selector after a digit"),
        pytest.param("1\ufe0f2", ["variation-selector"], id="a digit that is no key cap"),
        pytest.param("ш\ufe00", ["variation-selector"], id="a selector after a Cyrillic letter"),
        pytest.param("ש\ufe0f", ["variation-selector"], id="a selector after a Hebrew letter"),
        pytest.param("é\U000e0101", ["variation-selector"], id="a selector after a letter with an accent"),
        pytest.param("\U0001f600\ufe03", ["variation-selector"], id="a selector that no symbol has"),
        pytest.param("\U0001f600\U000e0100", ["variation-selector"], id="a selector of ideographs after a symbol"),
        pytest.param("שלום\nplain \u200etext", ["bidi"], id="a mark in a Latin line of a Hebrew text"),
        pytest.param("שלום he\u200ello", ["bidi"], id="a mark in a Latin word beside Hebrew"),
        pytest.param("\x1b\x00\u202e\u200b\U000e0041 \ufe0f", list(KINDS), id="all of them"),
        pytest.param("tabs\tlines\r\nand pages\f end", [], id="white space"),
        pytest.param("\ufeffa file", [], id="a byte order mark at the beginning"),
        pytest.param(
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 ❤\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", [], id="emoji"
        ),
        pytest.param(f"{ENGLAND} plays", [], id="a flag that is spelled with tags"),
        pytest.param("می\u200cخواهم क्\u200dष ภาษา\u200bไทย", [], id="joiners of scripts"),
        pytest.param("שלום\u200f (hello)", [], id="a mark in a right-to-left text"),
        pytest.param("葛\U000e0100城 漢\ufe00 。\ufe01", [], id="forms of ideographs and their punctuation"),
        pytest.param("∩\ufe00 က\ufe00 ᠠ\u180b \U00013000\ufe02 “\ufe00", [], id="standardized variants"),
        pytest.param("#\ufe0f\u20e3 ©\ufe0e ‼\ufe0f", [], id="key caps and symbols"),
        pytest.param("hello\nשלום (hello)\u200e 5%\u200f\n", [], id="marks in a Hebrew line"),
        pytest.param("Donau\u00addampf", [], id="a soft hyphen"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_what_is_hidden(text, kinds):
    assert list(find_hidden(text)) == kinds


@given(st.text() | st.text(st.characters(max_codepoint=127)))
def test_what_hides_something_may_hide_something(text):
    assert may_hide(text) or find_hidden(text) == ()
    assert may_hide(text) == any(map(may_hide, text))


def test_hidden_characters_are_escaped_and_no_others():
    assert escape_hidden("a\u202eb\x1b[31m\U000e0041\n\té") == "a\\u{202e}b\\u{1b}[31m\\u{e0041}\n\té"
    assert escape_hidden("❤\ufe0f\ufe0f\u200d\U0001f525") == "❤\ufe0f\\u{fe0f}\\u{200d}\U0001f525"
    assert escape_hidden(ENGLAND) == ENGLAND


@given(CHARACTERS)
def test_an_escaped_text_hides_nothing(text):
    escaped = escape_hidden(text)
    assert find_hidden(escaped) == ()
    assert (escaped == text) == (find_hidden(text) == ())


@given(CHARACTERS)
def test_escaping_changes_no_other_character(text):
    rest = iter(escape_hidden(text))
    for character in text:
        shown = next(rest)
        if shown != character:  # then it is the beginning of the character's escape
            assert shown + "".join(next(rest) for _ in f"u{{{ord(character):x}}}") == f"\\u{{{ord(character):x}}}"
    assert next(rest, None) is None


def test_ignorable_characters_are_removed():
    assert remove_ignorable("C\u200bL\u00adA\ufe0fU\u2060D\U000e0041E\u202e") == "CLAUDE"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["❤\ufe0f" * 50_000, "\u200f" * 100_000, "a\u200b" * 50_000, "\U000e0067" * 100_000])
def test_a_long_text_takes_no_long_time(text):
    start = time.process_time()
    find_hidden(text)
    escape_hidden(text)
    assert time.process_time() - start < 2
