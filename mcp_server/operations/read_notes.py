"""Name the notes whose text an answer repeats, for an audit log that is to hold what is read.

Law, tested: every tool that gives text of a note away names it here, as its answer is a `NoteText` or holds one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from mcp_server.operations.wire_format import NoteText

IDS: Final = ("document_id", "id", "memo_id")
NAMES: Final = ("name", "entity_name", "node_a", "node_b")  # of nodes, which go by their names


def find_read_notes(answer: BaseModel, request: BaseModel) -> tuple[list[str], list[str]]:
    """The ids of the documents, and the names of the nodes, that `answer` repeats text of; what says neither is of the one that was asked about."""
    parts = list(_text_parts(answer))
    if not parts:
        return [], []
    ids, names = _values(parts, IDS), _values(parts, NAMES)
    if not ids and not names:
        ids, names = _values([request], IDS), _values([request], NAMES)
    return list(dict.fromkeys(id.partition("#")[0] for id in ids)), names  # a chunk's id is its document's and a number


def _values(parts: list[BaseModel], fields: tuple[str, ...]) -> list[str]:
    values = (getattr(part, field, None) for part in parts for field in fields)
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _text_parts(value: Any, inside: bool = False) -> Iterator[BaseModel]:
    """The parts of an answer that hold text of notes."""
    if isinstance(value, BaseModel):
        inside = inside or isinstance(value, NoteText)
        if inside:
            yield value
        for part in vars(value).values():
            yield from _text_parts(part, inside)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _text_parts(part, inside)
