"""mcp_server/operations/wire_format.py: which part of an answer is told to hide characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from index.text import hidden_characters
from mcp_server.operations.wire_format import (
    AnswerModel,
    NoteText,
    RequestModel,
    encode_payload,
    invalid_argument,
    warnings_about,
)
from mcp_server.tools.kb_schema import GetDocument
from tests.support.example_counts import examples
from tests.support.parsed_notes import parse


class Hit(NoteText):
    name: str
    tags: list[str]


class Part(RequestModel):
    name: str


class Relation(AnswerModel):
    target: str


class Answer(NoteText):
    hits: list[Hit]
    relations: list[Relation]
    by_name: dict[str, Hit]


class Sought(RequestModel):
    """A request with two arguments."""

    query: str
    limit: int = 10
    parts: list[Part] = Field(default_factory=list)


TEXTS = st.sampled_from(["plain", "", "bidi \u202e", "tag \U000e0041", "\ufeff", "esc \x1b[31m"])
HITS = st.builds(Hit, name=TEXTS, tags=st.lists(TEXTS, max_size=2))
ANSWERS = st.builds(
    Answer,
    hits=st.lists(HITS, max_size=3),
    relations=st.lists(st.builds(Relation, target=TEXTS), max_size=2),
    by_name=st.dictionaries(TEXTS, HITS, max_size=2),
)


def kinds(*texts: str) -> list[str]:
    hidden = set[str]().union(*map(hidden_characters.find_hidden, texts))
    return [kind for kind in hidden_characters.KINDS if kind in hidden]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"query": "x", "tag": "a"}, "tag: unknown argument; the arguments are query, limit, parts"),
        ({"query": "x", "parts": [{"name": "a", "tag": "b"}]}, "parts.0.tag: unknown argument"),
        ({}, "query: is required"),
    ],
)
def test_an_unknown_argument_is_answered_with_the_known_ones(sent, message):
    with pytest.raises(ValidationError) as problem:
        Sought.model_validate(sent)
    assert invalid_argument(problem.value, Sought).message == message


def test_a_writer_is_warned_of_a_tag_that_obsidian_does_not_accept():
    (warning,) = warnings_about(parse(b"---\ntags: [2026]\n---\nx\n", "Captures/default/x.md", mtime_ms=0).defects)
    assert warning.startswith("bad-tag: '2026' is not a tag in Obsidian")


def test_a_problem_of_the_arguments_together_is_named_without_a_field():
    with pytest.raises(ValidationError) as problem:
        GetDocument.model_validate({"id": "x", "source_path": "y.md"})
    assert invalid_argument(problem.value, GetDocument).message == "give either id or source_path"


@examples(200)
@given(ANSWERS)
def test_each_part_tells_what_its_own_text_hides_and_the_answer_what_all_of_it_hides(answer):
    hits = [*answer.hits, *answer.by_name.values()]
    told, _ = encode_payload(answer)
    assert [hit["suspicious"] for hit in (*told["hits"], *told["by_name"].values())] == [
        kinds(hit.name, *hit.tags) for hit in hits
    ]
    texts = [text for hit in hits for text in (hit.name, *hit.tags)]
    assert told["suspicious"] == kinds(*texts, *answer.by_name, *(relation.target for relation in answer.relations))


@pytest.mark.parametrize(("target", "looks"), [("plain", 1), ("bidi \u202e", 102)])
def test_an_answer_that_hides_nothing_is_looked_at_once(monkeypatch, target, looks):
    asked, may_hide = [], hidden_characters.may_hide
    monkeypatch.setattr(hidden_characters, "may_hide", lambda text: asked.append(text) or may_hide(text))
    hits = [Hit(name=f"{number}", tags=[]) for number in range(100)]
    encode_payload(Answer(hits=hits, relations=[Relation(target=target)], by_name={}))
    assert len(asked) == looks
