"""Find the notes of an answer: add the URL at which the owner's Obsidian opens each, and name those whose text it contains.

A note that is read or written alone always has a URL. In lists the URL costs a model more than it helps, so hits have it
only over REST and when the request asks for whole texts.

Law, tested: for every reading tool, this names each note whose text the tool returns, for an audit log that records reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from mcp_server.operations.wire_format import NoteLink

T = TypeVar("T", bound=BaseModel)

IDS: Final = ("document_id", "id", "memo_id")
PLAIN: Final = (str, int, float, type(None))  # what most values are: the check for a model is slow
NAMES: Final = ("name", "entity_name", "node_a", "node_b")  # of entities, which are identified by name


def link_notes(answer: T, url: Callable[[str, bool], str], *, every: bool) -> T:
    """Add URLs to the answer, made by `url` from each note's path and whether it is shared; with `every`, also to hits."""
    changed: dict[str, Any] = {}
    for name, part in vars(answer).items():
        if isinstance(part, list) and part and isinstance(part[0], BaseModel):
            changed[name] = [link_notes(item, url, every=every) for item in part]
    if isinstance(answer, NoteLink) and (every or answer.is_whole) and (path := answer.place()):
        changed["url"] = url(path, getattr(answer, "scope", None) is not None)
    return answer.model_copy(update=changed) if changed else answer


def find_read_notes(answer: BaseModel, request: BaseModel) -> tuple[list[str], list[str]]:
    """Return the document ids and entity names in `answer`; for an answer without any, those in the request."""
    parts = list(_parts(answer))
    ids, names = _values(parts, IDS), _values(parts, NAMES)
    if not ids and not names:
        ids, names = _values([request], IDS), _values([request], NAMES)
    documents = dict.fromkeys(id.partition("#")[0] for id in ids)  # a chunk's id is its document's id with a number
    return list(documents), names


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
