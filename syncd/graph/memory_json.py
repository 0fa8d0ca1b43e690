"""Read and write a graph as lines of `memory.json`, the file format of the public knowledge graph server.

    {"type": "entity", "name": …, "entityType": …, "observations": [text, …]}
    {"type": "relation", "from": …, "to": …, "relationType": …}

Other values of a node are written beside these keys, under the names of its properties; other programs skip them.
Law, tested: `parse_lines` reads back what `format_line` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from index.document_ids import ID
from index.errors import InvalidArgument, MemexError
from index.graph.vertex import Edge
from index.names import fold
from syncd.documents.capture_note import MAX_CONTENT, MAX_SOURCE, compose_note, split_metadata
from syncd.documents.entity_lines import LARGEST
from syncd.documents.entity_node import (
    MAX_KIND,
    ONE_LINE,
    OWN,
    checked_content,
    checked_kind,
    checked_name,
    checked_type,
)
from syncd.graph.node_request import SUMMARY, check_summary
from syncd.notes.front_matter import replace_undecoded
from syncd.notes.property_reader import LARGEST as LARGEST_PROPERTIES
from syncd.notes.property_reader import as_time
from syncd.notes.tag_names import check_tags

MAX_LINE: Final = 32 * 1024 * 1024  # most bytes of one line, or of a file that is one object
TIMES = ("created_at", "updated_at", "observed_at", "summary_updated_at")
_WHOLE = re.compile(rb'\s*\{\s*(?:"(?:entities|relations)"\s*:.*|\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entity:
    """Describes a node as it is in a file."""

    name: str
    entity_type: str
    observations: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()  # one for each observation; () = the file has none
    properties: Mapping[str, Any] = field(default_factory=dict)  # properties of its note, as written there


@dataclass(frozen=True, slots=True)
class Mistake:
    """Describes a value that can't be imported."""

    where: str  # "line 12", or "entities[3]" in a file that is one object
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


Record: TypeAlias = "tuple[str, Entity | Edge | None, list[Mistake]]"  # position, the valid part, and the mistakes


def format_line(record: Entity | Edge) -> str:
    """Format one line, without its end. Bytes that are not UTF-8 become U+FFFD, as they do for agents."""
    if isinstance(record, Edge):
        values: dict[str, Any] = {
            "type": "relation",
            "from": record.source,
            "to": record.target,
            "relationType": record.type,
        }
    else:
        values = {"type": "entity", "name": record.name, "entityType": record.entity_type}
        values["observations"] = list(record.observations)
        values |= {"ordinals": list(record.ordinals)} if record.ordinals else {}
        values |= record.properties
    return replace_undecoded(json.dumps(values, ensure_ascii=False, default=str))


def is_single_object(first: bytes) -> bool:
    """Return whether a file that begins with this line has the older format: one object with everything."""
    return _WHOLE.fullmatch(first.removeprefix(b"\xef\xbb\xbf").rstrip()) is not None


def parse_lines(lines: Iterable[tuple[int, bytes | None]]) -> Iterator[Record]:
    """Parse numbered lines, one record at a time; None stands for a line longer than `MAX_LINE`."""
    for number, raw in lines:
        where = f"line {number}"
        if raw is None:
            yield where, None, [Mistake(where, f"longer than {MAX_LINE:,} bytes")]
        elif raw.strip(b" \t\r\n\xef\xbb\xbf"):
            value, mistake = _load_json(raw, where)
            yield (where, None, [mistake]) if mistake else _parse_record(value, where)


def parse_object(raw: bytes) -> Iterator[Record]:
    """Parse a file in the older format, one record at a time."""
    value, mistake = _load_json(raw, "the file")
    if mistake or not isinstance(value, dict):
        yield "the file", None, [mistake or Mistake("the file", "not a JSON object")]
        return
    for key, kind in (("entities", "entity"), ("relations", "relation")):
        listed = value.get(key, [])
        if not isinstance(listed, list):
            yield key, None, [Mistake(key, "not a list")]
            continue
        for at, item in enumerate(listed):
            where = f"{key}[{at}]"
            yield _parse_record({**item, "type": kind} if isinstance(item, dict) else item, where)


def _load_json(raw: bytes, where: str) -> tuple[Any, Mistake | None]:
    try:
        return json.loads(raw.decode("utf-8-sig")), None
    except UnicodeDecodeError as error:
        return None, Mistake(where, f"not UTF-8 at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return None, Mistake(where, f"invalid JSON at character {error.pos + 1}: {error.msg}")
    except (RecursionError, ValueError):  # too deep, or a number with thousands of digits
        return None, Mistake(where, "the JSON is nested too deep, or a number is too long")


def _parse_record(value: Any, where: str) -> Record:
    if not isinstance(value, dict):
        return where, None, [Mistake(where, "not a JSON object")]
    match value.get("type"):
        case "entity" | "relation" as kind:
            reading = _ObjectReader(value, where)
            record = reading.read_entity() if kind == "entity" else reading.read_relation()
            return where, record, reading.mistakes
        case other:
            problem = "the type is missing" if other is None else f"unknown type {str(other)[:40]!r}"
            return where, None, [Mistake(where, f"{problem}; use entity or relation")]


class _ObjectReader:
    """Reads one object key by key; invalid values are recorded as mistakes and left out."""

    def __init__(self, value: Mapping[str, Any], where: str) -> None:
        self._value, self._where = value, where
        self.mistakes: list[Mistake] = []

    def read_entity(self) -> Entity | None:
        name = self._read_text(checked_name, "name")
        kind = self._read_text(_check_kind, "entityType", "entity_type")
        contents = self._read_observations()
        ordinals = self._read_ordinals(contents)
        properties = self._read_properties()
        if sum(len(text.encode()) for text in contents if text) > MAX_CONTENT:
            self._add_mistake(f"its observations are longer than {MAX_CONTENT:,} bytes, the limit of a note")
            return None
        if name is None or kind is None:
            return None
        kept = [at for at, text in enumerate(contents) if text is not None]
        texts = tuple(text for text in contents if text is not None)
        return Entity(name, kind, texts, tuple(ordinals[at] for at in kept) if ordinals else (), properties)

    def read_relation(self) -> Edge | None:
        source, target = self._read_text(checked_name, "from"), self._read_text(checked_name, "to")
        kind = self._read_text(checked_type, "relationType", "relation_type")
        return None if source is None or target is None or kind is None else Edge(source, target, kind)

    def _add_mistake(self, what: str) -> None:
        self.mistakes.append(Mistake(self._where, what))

    def _read_text(self, checked: Callable[[str], str], *keys: str) -> str | None:
        value = next((self._value[key] for key in keys if key in self._value), None)
        if not isinstance(value, str):
            self._add_mistake(f"{keys[0]} is missing" if value is None else f"{keys[0]} is not text")
            return None
        return self._check(checked, value, keys[0])

    def _check(self, checked: Callable[[str], str], value: str, key: str) -> str | None:
        try:
            return checked(value)
        except MemexError as error:
            self._add_mistake(f"{key}: {error.message}")
            return None

    def _read_observations(self) -> list[str | None]:
        listed = self._value.get("observations") or []
        if not isinstance(listed, list):
            self._add_mistake("observations is not a list")
            return []
        texts: list[str | None] = []
        for at, text in enumerate(listed):
            if isinstance(text, str):
                texts.append(self._check(checked_content, text, f"observations[{at}]"))
            else:
                self._add_mistake(f"observations[{at}] is not text")
                texts.append(None)
        return texts

    def _read_ordinals(self, contents: list[str | None]) -> list[int]:
        ordinals = self._value.get("ordinals") or []
        good = isinstance(ordinals, list) and all(
            type(ordinal) is int and 1 <= ordinal <= LARGEST for ordinal in ordinals
        )
        if good and (not ordinals or (len(ordinals) == len(contents) and sorted(set(ordinals)) == ordinals)):
            return list(ordinals)
        self._add_mistake("ordinals must be increasing whole numbers, one for each observation")
        return []

    def _read_properties(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for key in _PROPERTIES:
            value = self._value.get(key)
            if value is None:
                continue
            if mistake := _find_mistake(key, value):
                self._add_mistake(mistake)
            else:
                properties[key] = value
        return properties


def importable_entity(entity: Entity) -> Entity:
    """Return an entity of the graph as an import accepts it.

    An owner can write anything into a note. A type or source of several lines becomes one line; a number, alias or
    metadata that Memex refuses is left out. Facts that are too long stay, because the import then names them."""
    properties = {key: value for key, value in entity.properties.items() if value is not None}
    if source := properties.get("source"):
        properties["source"] = _join_lines(source)
    properties["aliases"] = [name for name in properties.get("aliases", ()) if not _find_mistake("aliases", [name])]
    metadata = properties.get("metadata", {})
    if _find_mistake("metadata", metadata):
        properties["metadata"] = {
            key: value for key, value in metadata.items() if not _find_mistake("metadata", {key: value})
        }
    return Entity(
        entity.name,
        _join_lines(entity.entity_type)[:MAX_KIND].rstrip(),
        entity.observations,
        entity.ordinals if max(entity.ordinals, default=0) <= LARGEST else (),
        {
            key: value
            for key, value in properties.items()
            if value not in ("", [], {}) and (key in ("summary", "metadata") or not _find_mistake(key, value))
        },
    )


def _join_lines(text: str) -> str:
    return " ".join("".join(char if ONE_LINE.fullmatch(char) else " " for char in text).split())


def _find_mistake(key: str, value: Any) -> str:
    """Return why a property can't have this value; "" = it can."""
    fits, wanted = _PROPERTIES[key]
    try:
        return "" if fits(value) else f"{key} must be {wanted}"
    except MemexError as error:
        return f"{key}: {error.message}"


def _check_kind(text: str) -> str:
    """Check a type. "" is allowed too: the type of a node that a person wrote without one."""
    return checked_kind(text) if text else ""


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_time(value: Any) -> bool:
    """Return whether the value is a time with a zone that a note can have."""
    try:
        return (
            isinstance(value, str) and as_time(value) is not None and datetime.fromisoformat(value).tzinfo is not None
        )
    except ValueError:
        return False


def _is_summary(value: Any) -> bool:
    """Return whether the value is text. Raises InvalidArgument if it can't be a property of a note; an owner's may be longer than an agent's."""
    if not isinstance(value, str):
        return False
    text = check_summary(value, LARGEST_PROPERTIES)
    if len(text) > SUMMARY:
        compose_note({"summary": text}, "-")
    return True


def _is_metadata(value: Any) -> bool:
    """Return whether the value is an object. Raises InvalidArgument if its items can't be properties of a note."""
    if not isinstance(value, dict):
        return False
    for key in value:
        if isinstance(key, str) and (fold(key) in OWN or key in ("title", "tags")):
            raise InvalidArgument(f"metadata key {key!r} belongs to Memex and can't be set; choose another name")
    compose_note(split_metadata(value, twins=True)[0], "-")
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


# Other values of a node, by the name of the property in its note: the check, which may raise MemexError, and a description.
_PROPERTIES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "id": (lambda value: isinstance(value, str) and ID.match(value) is not None, "an id"),
    "summary": (_is_summary, "text"),
    "tags": (lambda value: _is_text_list(value) and check_tags(value) is not None, "a list of tags"),
    "aliases": (lambda value: _is_text_list(value) and all(map(checked_name, value)), "a list of names"),
    "source": (
        lambda value: (
            isinstance(value, str) and 0 < len(value.strip()) <= MAX_SOURCE and ONE_LINE.fullmatch(value) is not None
        ),
        f"one line of 1 to {MAX_SOURCE} characters",
    ),
    "collection": (lambda value: isinstance(value, str) and checked_name(value) != "", "one line of text"),
    **dict.fromkeys(TIMES, (_is_time, "a time such as 2026-11-20T14:32:05.120Z")),
    "version": (lambda value: _is_count(value) and value > 0, "a whole number from 1"),
    "last_ordinal": (_is_count, "a whole number"),
    "metadata": (_is_metadata, "an object"),
}
