"""The outline of a Markdown body stays cheap in memory; what it finds is tested with the parser of documents."""

from __future__ import annotations

import threading
import tracemalloc
from contextlib import ExitStack

import pytest

from syncd.notes import markdown_outline
from syncd.notes.markdown_outline import MANY_TOKENS, MOST_TOKENS, parse_outline

NESTED = "- > " * 14 + "a\n"
LARGE = NESTED * (MANY_TOKENS // 70)  # each line has more than 70 tokens
MARKS = [NESTED, "> " * 58 + "a\n\n", "- a b c\n"]


def parsed_beside_a_large_body(body: str, seconds: float) -> bool:
    """Whether a body is parsed within this time while a large one is, and it is parsed afterwards in any case."""
    thread = threading.Thread(target=parse_outline, args=(body,))
    with markdown_outline._large_body_turn:
        thread.start()
        thread.join(seconds)
        is_parsed = not thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()
    return is_parsed


@pytest.mark.slow
def test_bodies_with_many_tokens_are_parsed_one_at_a_time():
    assert not parsed_beside_a_large_body(LARGE, 2)


@pytest.mark.parametrize(
    "body", [NESTED * 20, "word " * 20_000, "- a\n" * 1_000], ids=["few tokens", "prose", "a list"]
)
def test_other_bodies_wait_for_none(body):
    assert parsed_beside_a_large_body(body, 30)


@pytest.mark.slow
def test_a_large_body_with_too_many_tokens_lets_the_next_one_through():
    for _ in range(2):
        assert [defect.name for defect in parse_outline(NESTED * 2_500).defects] == ["unread-markdown"]
    assert not markdown_outline._large_body_turn.locked()


@pytest.mark.slow
@pytest.mark.parametrize("line", MARKS, ids=["lists and quotes", "quotes", "a list"])
def test_the_most_tokens_of_a_body_take_less_than_40_mb(line):
    with ExitStack() as turn:
        markdown_outline._parse(line, turn)
        tracemalloc.start()
        tokens = markdown_outline._parse(line * 250, turn)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(tokens) > 1_000
    assert peak / len(tokens) * MOST_TOKENS < 40 << 20
