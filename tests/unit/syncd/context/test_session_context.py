"""Unit tests of `session_context`: the text is data in a fence, and is shortened by whole lines."""

from __future__ import annotations

import pytest

from syncd.context.session_context import SessionContext, SessionLine, frame_tokens, introduce


def context(*texts):
    return SessionContext("default", "", tuple(SessionLine(f"- {text}", ()) for text in texts), 9, 1_200)


def test_the_text_has_a_sentence_a_fence_and_the_lines():
    assert context("one", "two").text == f"{introduce('default')}\n```text\n- one\n- two\n```"
    assert context().text == ""
    assert '"a \\"b\\""' in introduce('a "b"')


def test_the_tokens_around_the_lines_are_the_most_of_the_text():
    assert frame_tokens("default", lambda texts: [len(text.split()) for text in texts]) == len(
        introduce("default").split()
    ) + len(["```text", "```", "Kept", "by", "the", "owner:", "Chosen", "by", "Memex:"])


@pytest.mark.parametrize("less", [0, 1, 6, 7, 12, 13, 500])
def test_a_shorter_text_has_fewer_whole_lines(less):
    whole = context("grün", "two", "three")
    most = len(whole.text.encode()) - less
    shorter = whole.shorten(most)
    assert len(shorter.text.encode()) <= max(0, most)
    assert shorter.lines == whole.lines[: len(shorter.lines)]
    more = SessionContext("default", "", whole.lines[: len(shorter.lines) + 1], 9, 1_200)
    assert shorter == whole or len(more.text.encode()) > most
