"""Read an entity's note as a node of the graph, and check names, observations and relations.

Law, tested: an observation has the ordinal that its note states; where the note states none, the ordinal follows from
the order of lines."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

from index.errors import InvalidArgument
from index.model import Defect, Node, Observation, Statement
from index.names import note_name
from index.text.hidden_characters import remove_ignorable
from syncd.documents.entity_lines import LARGEST, Item, Page, parse_page
from syncd.notes.inline_fields import LONGEST, UNTYPED
from syncd.notes.property_reader import as_text, as_time

# Properties of a node, in addition to those of any note.
OWN = frozenset({"name", "entity_type", "last_ordinal", "observed_at", "summary_updated_at"})

MAX_NAME, MAX_KIND, MAX_CONTENT = 256, 100, 10_000  # characters
ONE_LINE = re.compile("[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*+")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_STRAY = re.compile(r" {0,3}(?:[-+*]|[0-9]{1,9}[.)])[ \t].*(?<=[ \t])(\^[oO][1-9][0-9]{0,11})[ \t]*(?:[\r\n]|\Z)")
_UNLINKED = re.compile(r"[\[\]|\s]+")


def checked_name(name: str) -> str:
    """Return `name` in NFC, without surrounding white space. Raises InvalidArgument if a node can't have this name."""
    return unicodedata.normalize("NFC", _check_line(name, "name", MAX_NAME))


def checked_content(text: str) -> str:
    """Return `text` with LF line ends, without surrounding white space.

    Raises InvalidArgument if it can't be an observation."""
    if not isinstance(text, str) or _NO_TEXT.search(text):
        raise InvalidArgument("an observation must be text without NUL characters or lone surrogates")
    content = _LINE_END.sub("\n", text).strip()
    if not remove_ignorable(content).strip():
        raise InvalidArgument("an observation must have at least one character besides white space")
    if len(content) > MAX_CONTENT:
        raise InvalidArgument(
            f"this observation has {len(content):,} characters, and the limit is {MAX_CONTENT:,}: split it"
        )
    return content


def checked_type(text: str) -> str:
    """Return `text` in NFC, without surrounding white space.

    Raises InvalidArgument if it can't be the type of a relation."""
    type = unicodedata.normalize("NFC", _check_line(text, "relation type", LONGEST))
    is_code = "~~~" in type and find_statements(parse_page(f"- {type}:: [[x]]")) != (Statement(type, "x"),)
    if UNTYPED.search(type) or is_code:
        raise InvalidArgument(
            f"relation type {type!r} can't be written in a note: use no [ ] ` :: %% or <!--, no ~~~ at the beginning, "
            "and no : at the end"
        )
    return type


def checked_kind(text: str) -> str:
    """Return `text` in NFC, without surrounding white space. Raises InvalidArgument if it can't be an entity type."""
    return unicodedata.normalize("NFC", _check_line(text, "entity_type", MAX_KIND))


def _check_line(text: str, what: str, most: int) -> str:
    line = text.strip() if isinstance(text, str) else ""
    if not remove_ignorable(line).strip() or len(line) > most or not ONE_LINE.fullmatch(line):
        raise InvalidArgument(f"{what} must be one line of 1 to {most} visible characters", given=line[:100])
    return line


def format_link(stem: str, name: str) -> str:
    """Return the text between `[[` and `]]` of a link to the node `name` in the file `stem`.md."""
    shown = _UNLINKED.sub(" ", name).strip()
    return stem if stem == name or not shown else f"{stem}|{shown}"


def read_node(front_values: Mapping[str, Any], body: str, path: str) -> tuple[Node, list[Defect]]:
    """Read a note as a node; return the node, and the defects that its owner may want to repair."""
    return node_of_page(front_values, parse_page(body), path)


def node_of_page(front_values: Mapping[str, Any], page: Page, path: str) -> tuple[Node, list[Defect]]:
    """Read a note with a parsed body as a node; return the node and its defects."""
    defects: list[Defect] = []
    properties = NodeProperties(front_values, defects)
    numbered = NumberedObservations(page, properties.last_ordinal())
    if numbered.repeated:
        named = ", ".join(f"^o{ordinal}" for ordinal in numbered.repeated)
        defects.append(
            Defect("repeated-ordinal", f"more than one observation is marked {named}; the first keeps the ordinal")
        )
    if "observations" not in page.sections and (stray := [at for at in map(_STRAY.match, page.lines) if at]):
        named = ", ".join(at[1] for at in stray[:5])
        defects.append(
            Defect("stray-ordinals", f"{named} are not under a heading `Observations`, so Memex ignores them")
        )
    if numbered.highest > LARGEST:
        defects.append(Defect("ordinals-spent", f"the largest ordinal is {LARGEST:,}: lower `last_ordinal` or the ids"))
    entity = Node(
        name=properties.name(path),
        entity_type=(properties.text("entity_type") or "").strip(),
        observations=numbered.observations,
        relations=find_statements(numbered.page),
        last_ordinal=numbered.highest,
        unsettled=numbered.unsettled,
        summary_updated_at=properties.time("summary_updated_at"),
        observed_at=properties.time("observed_at"),
    )
    return entity, defects


class NoteProperties:
    """Reads properties, each as its type; a value of another type is a defect.

    A key matches in any letter case, an exact match first, because Obsidian treats all spellings as one property."""

    def __init__(self, values: Mapping[str, Any], defects: list[Defect]) -> None:
        self.values, self.defects = values, defects
        self._by_name = {key.casefold(): value for key, value in reversed(list(values.items()))} | dict(values)

    def get(self, name: str) -> Any:
        """Return the value of a property; None if it is missing."""
        return self._by_name.get(name)

    def text(self, name: str) -> str | None:
        """Return a scalar's text as it is written; None for a missing value, a list or a mapping."""
        return as_text(self.get(name))

    def time(self, name: str) -> int | None:
        """Return a time in epoch milliseconds; None if it is missing or unreadable."""
        value = self.get(name)
        time = None if value is None else as_time(value)
        if value is not None and time is None:
            self.add_defect("bad-date", f"`{name}` is not a valid date, such as 2026-11-20T14:32:05Z")
        return time

    def add_defect(self, name: str, detail: str) -> None:
        """Record a defect of the note."""
        self.defects.append(Defect(name, detail))


class NodeProperties(NoteProperties):
    """Reads the properties of a node."""

    def name(self, path: str) -> str:
        """Return the node's name: the property `name`, or else the file's name."""
        if self.get("name") is not None:
            try:
                return checked_name(self.text("name") or "")
            except InvalidArgument:
                self.add_defect(
                    "bad-name", f"`name` must be one line of 1 to {MAX_NAME} characters; Memex uses the file's name"
                )
        return unicodedata.normalize("NFC", note_name(path)).strip()

    def last_ordinal(self) -> int:
        """Return the recorded highest ordinal; 0 if there is none."""
        value = self.get("last_ordinal")
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
            return value
        if value is not None:
            self.add_defect("bad-last-ordinal", "`last_ordinal` is not a whole number; Memex uses only the ids")
        return 0


class NumberedObservations:
    """Holds the observations of a page with their ordinals: stated ones, else the next numbers in line order."""

    def __init__(self, page: Page, last: int) -> None:
        self.page = page
        marks = [item.mark.ordinal for item in page.items if item.mark]
        self.highest = max([last, *marks])
        self.repeated = sorted(ordinal for ordinal, count in Counter(marks).items() if count > 1)
        self.items: dict[int, Item] = {}  # by ordinal
        new = []
        for item in page.items:
            if item.content and (item.mark is None or item.mark.ordinal in self.items):
                new.append(item)
            elif item.content and item.mark:
                self.items[item.mark.ordinal] = item
        self.given = dict(enumerate(new, self.highest + 1))  # items whose ordinal the file does not state
        self.items |= self.given
        self.highest += len(new)
        self.unsettled = self.highest > last

    @property
    def observations(self) -> tuple[Observation, ...]:
        """Return the observations in order of their ordinals."""
        return tuple(Observation(ordinal, self.items[ordinal].content) for ordinal in sorted(self.items))


def find_statements(page: Page) -> tuple[Statement, ...]:
    """Return the relations that a page states, without repeats."""
    return tuple(dict.fromkeys(target.says for _, field in page.fields for target in field.targets))
