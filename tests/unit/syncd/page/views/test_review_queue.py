"""syncd/page/views/review_queue.py: the next capture, messages, and line ends."""

from __future__ import annotations

import time

import pytest

from index.errors import InvalidArgument
from syncd.page.views.review_queue import (
    DISMISS,
    PROMOTE,
    describe_done,
    describe_refusal,
    find_next,
    keep_line_ends,
    list_suggestions,
    parse_version,
)


def done(target, **more):
    return {
        "source": "Captures/x.md",
        "target": target,
        "relinked": [],
        "left_out": [],
        "unread": [],
        "lost": [],
        **more,
    }


@pytest.mark.parametrize(("path", "following"), [("a", "b"), ("b", "c"), ("c", "a"), ("gone", "a"), ("", "a")])
def test_the_queue_is_a_ring(path, following):
    assert find_next(["a", "b", "c"], path) == following


def test_each_suggestion_has_a_key_as_long_as_there_are_any():
    tags = ["heron", "pond", "heron", 3]
    card = {"suggested_tags": tags, "suggested_links": [f"[[{number}]]" for number in range(20)]}
    suggestions = list_suggestions(card)
    assert suggestions[:3] == [("a", "heron"), ("b", "pond"), ("c", "[[0]]")]
    assert len(suggestions) == 22
    assert suggestions[-1] == ("", "[[19]]")
    assert list_suggestions({"suggested_tags": None, "suggested_links": "text"}) == []


def test_nothing_follows_a_single_capture():
    assert find_next(["a"], "a") == ""
    assert find_next([], "a") == ""


def test_a_message_names_the_new_place_or_counts():
    assert describe_done(PROMOTE, [done("Birds/Heron.md")]) == "Promoted: `Birds/Heron.md`."
    assert describe_done(DISMISS, [done("a.md"), done("b.md")]) == "Dismissed 2 captures."


def test_a_message_says_which_captures_were_changes_that_are_applied_now():
    change, other, capture = done("A.md", applied=True), done("B.md", applied=True), done("C.md", applied=False)
    assert describe_done(PROMOTE, [change]) == "Applied: `A.md`."
    assert describe_done(PROMOTE, [change, other]) == "Applied 2 changes."
    assert describe_done(PROMOTE, [change, capture, other]) == "Promoted: `C.md`; Applied 2 changes."


def test_a_message_names_what_did_not_follow():
    message = describe_done(
        PROMOTE, [done("a.md", relinked=["x.md", "y.md"], left_out=["z.md"], lost=[["q.md", "[[old]]"]])]
    )
    assert message == (
        "Promoted: `a.md`; links updated in 2 notes; not committed, because you edited it: `z.md`; broken links in `q.md`."
    )


def test_a_taken_name_asks_for_another_folder():
    error = {"code": "CONFLICT", "message": "…--to…", "details": {"target": "Birds/Heron.md"}}
    assert describe_refusal({"id": "c", "error": error}) == (
        "`Birds/Heron.md` already exists, and Memex does not overwrite it: choose another folder."
    )


@pytest.mark.parametrize(
    ("before", "sent", "text"),
    [
        ("a\nb\n", "a\r\nb\r\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        ("a\nb\r\nc\n", "a\r\nb\r\nd\r\nc\r\n", "a\nb\r\nd\nc\n"),
        ("a\r\nb\nc\r\nd", "a\r\nb\r\nc\r\nd!", "a\r\nb\nc\r\nd!"),
        ("a\r\nb", "a\r\nb\r\nc", "a\r\nb\r\nc"),
        ("a\rb\r", "a\r\nc\r\nb\r\n", "a\rc\rb\r"),
        ("a\rb\nc\r", "a\r\nb\r\nd\r\nc\r\n", "a\rb\nd\rc\r"),
        ("a\rb\r\nc\n", "a\r\nb\r\nd\r\nc\r\n", "a\rb\r\nd\nc\n"),
        ("", "a\r\n", "a\n"),
    ],
)
def test_a_note_keeps_its_line_ends(before, sent, text):
    assert keep_line_ends(sent, before) == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_of_a_long_note_take_little_time(end):
    before = "- [ ]\n" * 4_000 + f"- [ ]{end}" * 4_000
    sent = "first\r\n" + "- [ ]\r\n" * 7_998 + "last\r\n"
    begun = time.process_time()
    text = keep_line_ends(sent, before)
    assert time.process_time() - begun < 5
    assert text.replace("\r\n", "\n") == sent.replace("\r\n", "\n")


def test_an_insertion_amid_many_equal_lines_keeps_their_ends():
    head, tail = "- [ ]\n" * 4_000, "- [ ]\r\n" * 4_000
    sent = f"{head}new\n{tail}".replace("\r\n", "\n").replace("\n", "\r\n")
    assert keep_line_ends(sent, head + tail) == f"{head}new\n{tail}"


@pytest.mark.parametrize("text", ["", "x", "-1", "\u00b2", "\u0661", "9" * 5_000])
def test_a_text_without_a_version_is_not_saved(text):
    with pytest.raises(InvalidArgument):
        parse_version(text)


def test_a_version_is_a_number():
    assert parse_version("12") == 12
