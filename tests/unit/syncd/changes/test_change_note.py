"""The capture that holds a proposed change: what was composed reads back, whatever the texts are."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.changes.change_note import change_properties, change_title, check_reason, compose_body, read_change
from syncd.changes.unified_diff import compose_diff, parse_diff
from syncd.documents.capture_note import before_diff, compose_note
from tests.support.parsed_notes import parse

BASE = "a" * 64
WORDS = st.text(st.sampled_from("ab`~#[]()>-+ \n"), max_size=40)


def note_of(target, reason, diff):
    properties = change_properties(
        id="x", created_at=0, target=target, base=BASE, reason=reason, agent="claude", workspace="work"
    )
    return compose_note(properties, compose_body(target, BASE, reason, diff))


@given(WORDS, WORDS, WORDS)
def test_what_was_composed_reads_back(before, after, reason):
    diff = compose_diff(f"{before}\n", f"{after}!\n", "Refs/a.md")
    words = check_reason(f"r {reason}")
    change = read_change(note_of("Refs/a.md", words, diff))
    assert (change.target, change.base, change.reason) == ("Refs/a.md", BASE, words)
    assert change.hunks == parse_diff(diff)


def test_agents_read_the_reason_and_never_the_diff():
    text = note_of("Refs/a.md", "```diff", compose_diff("secret\n", "open\n", "Refs/a.md"))
    document = parse(text.encode(), "Captures/work/x.md", mtime_ms=0)
    assert document.type == "change"
    assert "secret" not in document.content + document.text
    assert "> &#96;&#96;&#96;diff" in document.content  # quoted, so that it opens no block
    assert [link.target for link in document.links] == ["Refs/a"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("---\n", "---\nb: [\n", id="properties that can't be read"),
        pytest.param("---\n", "---\n<<<<<<< a\nb: 1\n=======\nb: 2\n>>>>>>> c\n", id="an unfinished merge"),
        pytest.param("---\n", "<<<<<<< a\n---\nb: 1\n=======\n---\n>>>>>>> c\n", id="a merge from the first line on"),
        pytest.param("---\n> ", "> ", id="properties without an end"),
        pytest.param("type: change", "type: Change", id="another letter case"),
        pytest.param("type: change", "type:\n  - change", id="a list"),
        pytest.param("type: change", 'TYPE: " change "', id="quotes and blanks"),
    ],
)
def test_agents_read_no_diff_of_a_damaged_proposal(old, new):
    text = note_of("Refs/a.md", "shorter", compose_diff("secret\n", "open\n", "Refs/a.md"))
    assert old in text
    document = parse(text.replace(old, new, 1).encode(), "Captures/work/x.md", mtime_ms=0)
    assert document.type == "change"
    assert "secret" not in document.content + document.text


@pytest.mark.parametrize(
    "reason", ["no %% longer", "<!-- hidden", "![[Secret]]", "#tag", "`$= app`", "$$x", "[!info]- box", "a:: b"]
)
def test_no_reason_is_read_as_markup_that_hides_the_diff_or_runs(reason):
    text = note_of("Refs/a.md", check_reason(reason), compose_diff("a\n", "b\n", "Refs/a.md"))
    quoted = text.partition("\n> ")[2].partition("\n")[0]
    assert html.unescape(quoted) == reason
    assert reason not in quoted
    assert read_change(text).reason == reason


def test_a_capture_with_a_diff_is_no_proposal():
    text = "---\nid: x\n---\nSee:\n\n```diff\n-a\n+b\n```\n"
    for whole in (text, text.replace("id: x\n", ""), text.partition("---\nS")[2]):
        document = parse(whole.encode(), "Captures/work/x.md", mtime_ms=0)
        assert (document.type, "+b" in document.content) == ("note", True)
    broken = parse(text.replace("id: x", "id: [").encode(), "Notes/x.md", mtime_ms=0)
    assert (broken.type, "+b" in broken.content) == ("note", True)


def test_a_note_without_the_block_shows_agents_nothing():
    assert before_diff("> reason\n\n-secret\n") == ""
    document = parse(b"---\ntype: change\ntarget: a.md\n---\n-secret\n", "Captures/work/x.md", mtime_ms=0)
    assert document.content == document.text == ""


def test_a_note_of_the_vault_with_this_type_is_an_ordinary_note():
    document = parse(b"---\ntype: change\n---\nMy text.\n", "Notes/x.md", mtime_ms=0)
    assert (document.type, document.content) == ("note", "My text.\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\ntype: change\n---\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n", "no property `target`"),
        ("---\ntarget: a.md\n---\nno block\n", "no block"),
        ("---\ntarget: a.md\n---\n```diff\n@@ -1 +1 @@\n-a\n+b\n", "has no end"),
        ("---\ntarget: a.md\n---\n```diff\nnonsense\n```\n", "can't be read"),
        ("---\ntarget: [\n---\n", "can't be read"),
    ],
)
def test_a_damaged_proposal_is_refused_with_the_reason(text, words):
    with pytest.raises(InvalidArgument, match=words):
        read_change(text)


def test_line_ends_of_windows_are_read():
    change = read_change(note_of("a.md", "r", "@@ -1 +1 @@\n-a\n+b\n").replace("\n", "\r\n"))
    assert [line.text for line in change.hunks[0].lines] == ["a", "b"]


@pytest.mark.parametrize("reason", ["", " \n ", "x" * 501, "a\x07b"])
def test_a_reason_is_one_readable_sentence(reason):
    with pytest.raises(InvalidArgument, match="reason must be"):
        check_reason(reason)


def test_a_title_names_the_note():
    assert change_title("References/Postgres tuning.md") == "Change of Postgres tuning"
    assert "`a#b.md`" in compose_body("a#b.md", BASE, "r", "")
