"""Name the notes whose text an answer contains, for an audit log that records reads.

Law, tested: for every reading tool, this finds each note whose text the tool returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

IDS: Final = ("document_id", "id", "memo_id")
PLAIN: Final = (str, int, float, type(None))  # what most values are: the check for a model is slow
NAMES: Final = ("name", "entity_name", "node_a", "node_b")  # of entities, which are identified by name


def find_read_notes(answer: BaseModel, request: BaseModel) -> tuple[list[str], list[str]]:
    """Return the document ids and entity names in `answer`; for an answer without any, those in the request."""
    parts = list(_parts(answer))
    ids, names = _values(parts, IDS), _values(parts, NAMES)
    if not ids and not names:
        ids, names = _values([request], IDS), _values([request], NAMES)
    return list(
        dict.fromkeys(id.partition("#")[0] for id in ids)
    ), names  # a chunk's id is its document's id with a number


def _values(parts: list[BaseModel], fields: tuple[str, ...]) -> list[str]:
    values = (vars(part).get(field) for part in parts for field in fields)
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _parts(value: Any) -> Iterator[BaseModel]:
    """Yield an answer and all its parts."""
    if isinstance(value, BaseModel):
        yield value
        for part in vars(value).values():
            if not isinstance(part, PLAIN):
                yield from _parts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
