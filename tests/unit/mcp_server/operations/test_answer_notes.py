"""mcp_server/operations/answer_notes.py: which notes of an answer get a URL."""

from __future__ import annotations

import pytest

from mcp_server.operations.answer_notes import link_notes
from mcp_server.operations.wire_format import AnswerModel, NoteLink, NoteLocation, encode_payload


class Hit(NoteLocation):
    name: str


class Document(NoteLink):
    source_path: str


class Whole(NoteLocation):
    is_whole = True


class Answer(AnswerModel):
    hits: list[Hit]
    documents: list[Document]
    wholes: list[Whole]
    names: list[str]


def answer():
    return Answer(
        hits=[Hit(path="a.md", name="a"), Hit(path="", name="gone")],
        documents=[Document(source_path="b.md")],
        wholes=[Whole(path="c.md")],
        names=["x"],
    )


@pytest.mark.parametrize("every", [False, True])
def test_hits_have_one_where_every_note_has(every):
    linked = link_notes(answer(), lambda path, _: f"url of {path}", every=every)
    told = linked.model_dump()
    assert [hit.get("url") for hit in told["hits"]] == ["url of a.md" if every else None, None]
    assert told["documents"] == [{"source_path": "b.md", **({"url": "url of b.md"} if every else {})}]
    assert told["wholes"] == [{"path": "c.md", "url": "url of c.md"}]
    assert told["names"] == ["x"]


def test_an_answer_without_a_url_does_not_name_the_field():
    assert encode_payload(link_notes(answer(), lambda path, _: path, every=False))[1].count('"url"') == 1


def test_the_answer_itself_may_be_the_note():
    assert link_notes(Whole(path="c.md"), lambda path, _: path.upper(), every=False).url == "C.MD"
