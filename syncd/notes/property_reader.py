"""Read each property at the head of a note safely, whatever a person, a template or an attacker wrote there.

Law, tested: every text gives either JSON-safe values or a FrontmatterError, in bounded time and memory. Nothing is
expanded, nested or constructed before the parser's events show that it is harmless."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import frontmatter
import yaml

from index.deferred_patterns import possessive

# Prefix of the properties with suggestions that come from notes of the vault.
SUGGESTED = "suggested_"
# Properties for the person alone: no agent sets, changes or reads them.
PERSONS = frozenset(
    {
        "promote",
        "promote_to",
        "review",
        "share",
        "promote_problem",
        "promoted_at",
        "suggested_folder",
        "suggested_tags",
        "suggested_links",
        "suggested_similar",
        "superseded_by",
        "hidden_text",
        "runnable_code",
        "unsafe_links",
    }
)
# Properties that control Obsidian Publish, and the prefix of those that control Digital Garden.
PUBLISHING = frozenset({"publish", "permalink"})
PUBLISHING_PREFIX = "dg-"
OWNED = PERSONS | frozenset(
    {
        "id",
        "created_at",
        "updated_at",
        "version",
        "source",
        "collection",
        "tags",
        "summary",
        "title",
        "type",
        "relations",
    }
)

LARGEST = 65_536  # most bytes between the fences
DEEPEST = 20
MOST_NODES = 5_000  # keys count as nodes
# An agent's share of these limits: the rest is for the person's properties, whose size agents must not learn.
LARGEST_OWN, MOST_OWN = 49_152, 4_000

_OPEN = re.compile(r"\ufeff?---[ \t]*(\r\n|\n|\r)")
_CLOSE = re.compile(r"(?<=[\r\n])---[ \t]*(?:\r\n|\n|\r|\Z)")

# YAML 1.2, core schema, but only values that would be written with the same characters: `007` and `1.10` stay text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,3999}")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+][0-9]{1,3})?")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})

# Lines that YAML reads in one way only, so that they can be read without its parser.
_PLAIN = possessive(r"[\w./+@(),;!?&=%*'-]|:(?=[\w/])| (?=[\w(&])", "*")
_VALUE = rf"""(\w{_PLAIN}|"[\w !#-\[\]-~]*+")\n"""
_SIMPLE_LINE = re.compile(rf"([A-Za-z_][\w-]{{0,99}}):(?: {_VALUE}|\n)")
_SIMPLE_ITEM = re.compile(rf"( *)- {_VALUE}")
_MOST_SIMPLE = 1_000  # lines

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)
_STAMP = re.compile(r"((?:19|20|21)[0-9]{2})([0-9]{2})([0-9]{2})(?:([0-9]{2})([0-9]{2})([0-9]{2})?)?")  # 202005011011
_LONGEST_STAMP = 10**14
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = -62_135_596_800_000  # the year 1
# As a number: from 1973, so that no year is read as a time, to 9999.
_EARLIEST, _LATEST = 100_000_000_000, 253_402_300_799_999


class FrontmatterError(ValueError):
    """Reports properties that can't be read or written; `defect` is the name of the defect."""

    def __init__(self, message: str, *, defect: str = "bad-frontmatter") -> None:
        super().__init__(message)
        self.defect = defect


class PropertyKey(NamedTuple):
    """Describes the position of a top-level key between the fences, and of its value if it is in one piece."""

    start: int
    end: int
    value: tuple[int, int] | None = None  # None: a block list or mapping, or block text


@dataclass(frozen=True, slots=True)
class Properties:
    """Holds the properties: values in order, repeated keys, and the position of each key."""

    values: dict[str, Any]
    repeated: tuple[str, ...] = ()
    keys: dict[str, PropertyKey] | None = None
    column: int = 0  # the column of the keys
    flow: bool = False  # `{a: 1}`: valid, but keys have no lines of their own


def find_fences(text: str) -> tuple[int, int, int]:
    """Return the offsets where the properties begin and end and the body begins; (0, 0, cut) when there are none."""
    opening = _OPEN.match(text)
    closing = _CLOSE.search(text, opening.end()) if opening else None
    if opening and closing:
        return opening.end(), closing.start(), closing.end()
    return 0, 0, int(text.startswith("\ufeff"))


def is_for_person(key: str) -> bool:
    """Return whether `key` holds a suggestion to the person, drawn from notes that no agent sees."""
    return key.strip().casefold().startswith(SUGGESTED)


def is_reserved(key: str) -> bool:
    """Return whether `key` is in `OWNED`. Letter case does not count, as in Obsidian."""
    return key.strip().casefold() in OWNED


def read(front: str) -> Properties:
    """Read the properties of a front matter (fences included). Raises FrontmatterError."""
    front = front.removeprefix("\ufeff")
    if not front:
        return Properties({})
    handler = _Handler()
    values, _ = frontmatter.parse(front, handler=handler)
    return Properties(values, handler.repeated)


def scan(inner: str) -> Properties:
    """Read the properties between the fences, with their positions. Raises FrontmatterError."""
    try:
        if len(inner.encode()) > LARGEST:
            raise FrontmatterError(f"the properties are larger than {LARGEST:,} bytes", defect="frontmatter-too-large")
        return _read_simple(inner) or _Reader().read(inner)
    except UnicodeEncodeError as error:
        raise FrontmatterError("the properties are not valid UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise FrontmatterError(f"line {mark.line + 2}: {problem}" if mark else problem) from error


def _read_simple(inner: str) -> Properties | None:
    """Read properties in the form in which Memex and Obsidian write most of them; None for any other form.

    Law, tested: YAML's parser, which takes four times as long, reads the same."""
    values: dict[str, Any] = {}
    keys: dict[str, PropertyKey] = {}
    at = 0
    if inner.count("\n") > _MOST_SIMPLE:
        return None
    while line := _SIMPLE_LINE.match(inner, at):
        key, text = line.groups()
        if key in values:
            return None
        colon, behind = at + len(key), line.end()
        if text is not None:
            values[key], span = _simple_value(text), (colon + 2, behind - 1)
        else:
            values[key], span = None, (colon + 1, colon + 1)
            items, behind = _read_simple_items(inner, behind)
            if items:
                values[key], span = items, None
        keys[key] = PropertyKey(at, colon, span)
        at = behind
    return Properties(values, keys=keys) if values and at == len(inner) else None


def _read_simple_items(inner: str, at: int) -> tuple[list[Any], int]:
    """Return the items of a list that begins at this offset, and the offset after them."""
    items: list[Any] = []
    indent = None
    while (line := _SIMPLE_ITEM.match(inner, at)) and indent in (None, line[1]):
        items.append(_simple_value(line[2]))
        indent, at = line[1], line.end()
    return items, at


def _simple_value(text: str) -> str | int | float | bool | None:
    return text[1:-1] if text[:1] == '"' else _plain_value(text)


def exceeds_agent_limits(inner: str) -> bool:
    """Return whether the properties, except the person's, exceed what agents may write. Raises FrontmatterError."""
    properties = scan(inner)
    begins = sorted((inner.rfind("\n", 0, key.start) + 1, name) for name, key in (properties.keys or {}).items())
    ends = [at for at, _ in begins[1:]] + [len(inner)]
    size = len(inner.encode()) - sum(
        len(inner[at:end].encode()) for (at, name), end in zip(begins, ends, strict=True) if name.casefold() in PERSONS
    )
    parts = sum(1 + _count_parts(value) for name, value in properties.values.items() if name.casefold() not in PERSONS)
    return size > LARGEST_OWN or parts > MOST_OWN


def _count_parts(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + _count_parts(part) for part in value.values())
    return 1 + sum(map(_count_parts, value)) if isinstance(value, list) else 1


def find_scalars(inner: str) -> list[tuple[int, int, str | None, str]] | None:
    """Return each scalar between the fences, keys too: start, end, quote style, text; None if it is not YAML."""
    events = _parse_events(inner)
    if events is None:
        return None
    scalar_events: list[Any] = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    return [(event.start_mark.index, event.end_mark.index, event.style, event.value) for event in scalar_events]


def read_structure(inner: str) -> list[tuple[str, str | None]] | None:
    """Return the structure of the properties without their values; None if they are not YAML."""
    events = _parse_events(inner)
    return None if events is None else [(type(event).__name__, getattr(event, "style", None)) for event in events]


def _parse_events(inner: str) -> list[Any] | None:
    events: list[Any] = []
    depth = 0
    try:
        if len(inner.encode()) > LARGEST:
            return None
        for event in yaml.parse(inner, Loader=yaml.CSafeLoader):
            events.append(event)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return None
    except (yaml.YAMLError, UnicodeEncodeError):
        return None
    return events


def as_text(value: Any) -> str | None:
    """Return a scalar's text as written; None for null, a list or a mapping."""
    if isinstance(value, str):
        return value
    return None if value is None or isinstance(value, (list, dict)) else json.dumps(value)


def as_time(value: Any) -> int | None:
    """Return the epoch milliseconds of an ISO date or time, of a stamp such as 20200501 or 202005011011, or of such a number.

    A time without a zone is in UTC."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number and not isinstance(value, str):
        return None
    text = str(value).strip() if isinstance(value, str) or 0 < value < _LONGEST_STAMP else ""
    if stamp := _STAMP.fullmatch(text):
        date, clock = "-".join(stamp.group(1, 2, 3)), ":".join(filter(None, stamp.group(4, 5, 6)))
        at = _iso_time(f"{date}T{clock}" if clock else date)
        if at is not None or not is_number:
            return at
    if is_number:
        return int(value) if _EARLIEST <= value <= _LATEST else None
    return _iso_time(text) if _DATE.fullmatch(text) else None


def _iso_time(text: str) -> int | None:
    try:
        time = datetime.fromisoformat(text)
        at = ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    except ValueError:  # 2026-13-45
        return None
    return at if _FIRST <= at <= _LATEST else None  # a zone may lead beyond the valid years


class _Handler(frontmatter.YAMLHandler):  # type: ignore[misc, name-defined]  # python-frontmatter has no types
    """Parses with python-frontmatter's YAML handler, but with Obsidian's fences, and the safe reader."""

    repeated: tuple[str, ...] = ()

    def split(self, text: str) -> tuple[str, str]:
        start, end, _ = find_fences(text)
        return text[start:end], ""

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        properties = scan(fm)
        self.repeated = properties.repeated
        return properties.values


class _Reader:
    """Builds values from YAML events of one front matter."""

    def __init__(self) -> None:
        # Open containers, each with its current key.
        self.stack: list[tuple[dict[str, Any] | list[Any], str | None]] = []
        self.root: dict[str, Any] | None = None
        self.keys: dict[str, PropertyKey] = {}
        self.repeated: list[str] = []
        self.last = ""  # the last key of the root
        self.opened: int | None = None  # start of a flow value of the root
        self.nodes = self.documents = self.column = 0
        self.flow = False

    def read(self, inner: str) -> Properties:
        event: Any  # the type stubs lack marks and tags
        for event in yaml.parse(inner, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.ScalarEvent):
                self._read_scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open_collection(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close_collection(event)
            elif isinstance(event, yaml.AliasEvent):
                raise _error_at(event, f"YAML aliases (*{event.anchor}) are not supported")
            elif isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    raise _error_at(event, "a second YAML document begins")
        return Properties(self.root or {}, tuple(dict.fromkeys(self.repeated)), self.keys, self.column, self.flow)

    def _read_scalar(self, event: Any) -> None:
        self._count_node(event)
        start, end = event.start_mark.index, event.end_mark.index
        if not self.stack:
            if event.value or event.style:
                raise _error_at(event, "a single value where `key: value` lines belong")
            return
        container, key = self.stack[-1]
        if isinstance(container, dict) and key is None:
            if container is self.root:
                if event.value in container:
                    self.repeated.append(event.value)
                self.last, self.keys[event.value] = event.value, PropertyKey(start, end)
            self.stack[-1] = (container, event.value)
            return
        if container is self.root and event.style not in ("|", ">"):
            self._set_value_span(start, end)
        self._put_value(event.value if event.style or event.tag else _plain_value(event.value))

    def _open_collection(self, event: Any) -> None:
        self._count_node(event)
        if len(self.stack) >= DEEPEST:
            raise _error_at(event, f"nested more than {DEEPEST} deep")
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if self.stack:
            container, key = self.stack[-1]
            if isinstance(container, dict) and key is None:
                raise _error_at(event, "a key must be text, not a list or mapping")
            if container is self.root:
                self.opened = event.start_mark.index if event.flow_style else None
            self._put_value(value)
        elif isinstance(value, dict):
            self.root, self.column, self.flow = value, event.start_mark.column, bool(event.flow_style)
        else:
            raise _error_at(event, "a list where `key: value` lines belong")
        self.stack.append((value, None))

    def _close_collection(self, event: Any) -> None:
        self.stack.pop()
        if len(self.stack) == 1 and self.opened is not None:
            self._set_value_span(self.opened, event.end_mark.index)

    def _put_value(self, value: Any) -> None:
        container, key = self.stack[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            assert key is not None
            container[key] = value
            self.stack[-1] = (container, None)

    def _set_value_span(self, start: int, end: int) -> None:
        key = self.keys[self.last]
        self.keys[self.last] = PropertyKey(key.start, key.end, (start, end))

    def _count_node(self, event: Any) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise FrontmatterError(
                f"the properties have more than {MOST_NODES:,} parts", defect="frontmatter-too-large"
            )
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise _error_at(event, f"YAML tags ({event.tag}) are not supported")


def _error_at(event: Any, why: str) -> FrontmatterError:
    return FrontmatterError(f"line {event.start_mark.line + 2}: {why}")


def _plain_value(text: str) -> str | int | float | bool | None:
    """Return the value of plain text: the text, unless it is a number, boolean or null in its canonical form."""
    if text in _NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    if text[-1] not in "0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text
