"""Sentences without markup: the first one of a note, and how long any text takes."""

from __future__ import annotations

import time

import pytest

from index.text.sentences import LONGEST, first_sentence, plain_text, read_prose
from syncd.notes.secret_patterns import redact
from tests.support.parsed_notes import parse


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
        ("pH > 7 is required.\n", "pH > 7 is required."),
        ("CPU > 90 % means trouble.\n", "CPU > 90 % means trouble."),
        ("A -> B at noon.\n", "A -> B at noon."),
        ("<b>Warm</b> days.\n", "Warm days."),
        (">> deep quote\n", "deep quote"),
        ("1. Item\n    > - 5 > 3\n", "Item"),
        ("   > - 5 > 3\n", "5 > 3"),
        ("", ""),
    ],
)
def test_the_first_heading_or_sentence(text, first):
    assert first_sentence(note(text)) == first


IMAGES = [f"![IMG {n}](https://images.example/holiday/{'a' * 50}/{n}.jpg)" for n in range(300)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("\n\n".join([*IMAGES[:140], "# Holiday"]), ("", "Holiday")),
        ("\n\n".join([*IMAGES, "# Holiday"]), ("",)),
        (" ".join(IMAGES), ("",)),
        ("x" * (LONGEST + 1), ("x" * LONGEST,)),
    ],
)
def test_a_link_that_is_cut_is_no_sentence(text, first):
    assert first_sentence(note(text)) in first


@pytest.mark.parametrize("margin", range(0, 60, 7))
@pytest.mark.parametrize("before", ["", "# Title\n\n"])
def test_a_secret_where_the_text_is_cut_is_not_read(margin, before):
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6"
    document = note(f"{before}{'! ' * ((LONGEST - len(before) - margin) // 2)}{token} {'! ' * LONGEST}")
    assert "aB3" not in first_sentence(document, redact)
    assert "aB3" not in "".join(read_prose(document, redact).sentences)


TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6"


@pytest.mark.parametrize("joint", ["\\_", "&#95;", "_\u200b", "_\u00ad", "_&shy;"])
@pytest.mark.parametrize(
    "text", ["The deployment uses {} for staging.", "# {}", "- Use **{}** first", "- **{}**\n- more"]
)
def test_a_secret_that_markup_hides_is_not_read(text, joint):
    document = note(text.format(TOKEN.replace("_", joint)))
    prose = read_prose(document, redact)
    assert TOKEN not in first_sentence(document, redact)
    assert not any(TOKEN in line for line in (*prose.headings, *prose.sentences, *prose.marked))


@pytest.mark.parametrize(
    "piece", ["# ==" + " " * 3_000 + "==\n\n", "# " + "# " * 1_500 + "\n\n", "==" + "\t " * 1_500 + "#==\n\n"]
)
def test_no_text_takes_long(piece):
    document = note(piece * 10)
    begun = time.process_time()
    first_sentence(document)
    assert read_prose(document).sentences == ()
    assert time.process_time() - begun < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[](", "![[a", "[a](b(c)", "[](a(b", "[](((", "![](" + "a" * 500, "[a] ("])
def test_no_link_that_is_cut_takes_long(piece):
    document = note(piece * (4 * LONGEST // len(piece)))
    begun = time.process_time()
    first_sentence(document)
    read_prose(document)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2*3 is 6", "2*3 is 6"),
        ("a ** b, x==y, a == b, x ~~ y", "a ** b, x==y, a == b, x ~~ y"),
        ("`__init__` and `**kwargs` of `<b>` and `main()`", "__init__ and **kwargs of <b> and main()"),
        ("`` a`b `` and `\\_` but \\`*c*\\`", "a`b and \\_ but `c`"),
        ("**bold `**` text** and `one", "bold ** text and `one"),
        ("call `curl https://x.example` or close() (<br>)", "call curl or close()"),
        ("It is there (https://x.example/a_(b)) now.", "It is there now."),
        ("He wrote (www.x.example/a) it.", "He wrote it."),
        ("We saw it (at <https://x.example/a>).", "We saw it (at)."),
        ("[[__init__]], [[a/__main__.md]] and [[a|__b__]]", "__init__, __main__ and b"),
        ("std::vector and a::b", "std::vector and a::b"),
        ("state:: open", "open"),
        ("state::[[Open]] now", "Open now"),
        ("A [state:: open] door", "A open door"),
        ("10<sup>6</sup>, 1<sup>st</sup>, H<sub>2</sub>O, W<b>ar</b>m", "10^6, 1st, H2O, Warm"),
        ("Issue #12 of #project, seen[^1] ([^2])", "Issue #12 of project, seen"),
    ],
)
def test_only_markup_is_removed(text, plain):
    assert plain_text(text) == plain


@pytest.mark.parametrize(
    "code", ["<% tp.file.title %>", "<%* tR += 7 % 2 %>", "{{secret}}", "![[Diary]]", "![a](b.png)"]
)
@pytest.mark.parametrize("text", ["`{}`", "``{}``", "[[{}]]", "<b>{}</b>"])
def test_no_template_or_embed_stays_in_code(code, text):
    if text != "[[{}]]" or "[" not in code:
        assert plain_text(f"It is described in {text.format(code)} here.") == "It is described in here."


def test_no_escaped_template_becomes_one():
    assert plain_text("A <\\% x %> and &lt;% x %&gt; and !\\[\\[Diary]] here.") == "A and and here."


def test_more_code_than_is_set_aside_keeps_its_text():
    assert plain_text("`a` " * 5_000) == ("a " * 4_096 + "a " * 904).strip()


def test_code_is_no_phrase_in_bold():
    assert read_prose(note("A **bold `word`** and `**kwargs` or `**options`, a ==x y== and a == b == c.\n")).marked == (
        "bold word",
        "x y",
    )
