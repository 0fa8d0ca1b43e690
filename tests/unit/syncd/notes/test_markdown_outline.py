"""The outline of a Markdown body stays cheap in memory; what it finds is tested with the parser of documents."""

from __future__ import annotations

import threading
import time
import tracemalloc

import pytest

from syncd.notes import markdown_outline
from syncd.notes.markdown_outline import LARGE_BODY, MOST_TOKENS, parse_outline

NESTED = "- > " * 14 + "a\n"
LARGE = NESTED * (LARGE_BODY // len(NESTED) + 1)


@pytest.fixture
def at_once(monkeypatch) -> list[int]:
    """How many bodies were parsed at each start of a parse; each takes a while."""
    running, counts, parse = [0], [], markdown_outline._parse

    def slow(body):
        running[0] += 1
        counts.append(running[0])
        time.sleep(0.05)
        try:
            return parse(body)
        finally:
            running[0] -= 1

    monkeypatch.setattr(markdown_outline, "_parse", slow)
    return counts


def parse_in_threads(body: str) -> None:
    threads = [threading.Thread(target=parse_outline, args=(body,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_large_bodies_are_parsed_one_at_a_time(at_once):
    parse_in_threads(LARGE)
    assert at_once == [1, 1, 1]


def test_small_bodies_do_not_wait_for_each_other(at_once):
    parse_in_threads(NESTED)
    assert max(at_once) > 1


def test_a_large_body_that_can_not_be_parsed_lets_the_next_one_through(monkeypatch):
    def fail(body):
        raise ValueError(body[:1])

    monkeypatch.setattr(markdown_outline, "_parse", fail)
    for _ in range(2):
        assert [defect.name for defect in parse_outline(LARGE).defects] == ["unread-markdown"]


@pytest.mark.parametrize(
    "line", [NESTED, "> " * 58 + "a\n\n", "- a b c\n"], ids=["lists and quotes", "quotes", "a list"]
)
def test_the_most_tokens_of_a_body_take_less_than_40_mb(line):
    markdown_outline._parse(line)
    tracemalloc.start()
    tokens = markdown_outline._parse(line * 300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(tokens) > 1_000
    assert peak / len(tokens) * MOST_TOKENS < 40 << 20
