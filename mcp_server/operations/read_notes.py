"""Name the notes whose text an answer repeats, for an audit log that is to hold what is read.

Law, tested: a tool that reads and gives text of a note away names that note here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

IDS: Final = ("document_id", "id", "memo_id")
NAMES: Final = ("name", "entity_name", "node_a", "node_b")  # of nodes, which go by their names


def find_read_notes(answer: BaseModel, request: BaseModel) -> tuple[list[str], list[str]]:
    """The ids of the documents, and the names of the nodes, that `answer` repeats text of; what says neither is of the one that was asked about."""
    parts = list(_parts(answer))
    ids, names = _values(parts, IDS), _values(parts, NAMES)
    if not ids and not names:
        ids, names = _values([request], IDS), _values([request], NAMES)
    return list(dict.fromkeys(id.partition("#")[0] for id in ids)), names  # a chunk's id is its document's and a number


def _values(parts: list[BaseModel], fields: tuple[str, ...]) -> list[str]:
    values = (getattr(part, field, None) for part in parts for field in fields)
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _parts(value: Any) -> Iterator[BaseModel]:
    """An answer and all parts of it."""
    if isinstance(value, BaseModel):
        yield value
        for part in vars(value).values():
            yield from _parts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
