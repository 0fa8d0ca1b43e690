"""Read and write the relations that a memo states in its property `relations`.

Law, tested: an entry that cannot be read is a defect and stays unchanged in the note when other entries are saved or
deleted."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from index.document_ids import ID
from index.errors import InvalidArgument
from index.model import Defect, MemoRelation
from syncd.notes.front_matter import PropertyValue, read, spelling_of, split
from syncd.notes.inline_syntax import find_wikilinks
from syncd.notes.list_properties import edit_items
from syncd.notes.property_reader import as_time
from syncd.notes.timestamps import iso_or_none

PROPERTY: Final = "relations"
TAG: Final = 64  # characters
REASON: Final = 1_000
DEFECT: Final = "bad-relation"


def read_relations(value: Any) -> tuple[tuple[MemoRelation, ...], list[Defect]]:
    """Read the property's value; return its relations and its defects."""
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), [Defect(DEFECT, "`relations` is not a list")]
    by_key: dict[tuple[str, str], MemoRelation] = {}
    defects = []
    for number, entry in enumerate(value, 1):
        parsed = _parse_entry(entry)
        if isinstance(parsed, str):
            defects.append(Defect(DEFECT, f"Memex ignores entry {number} of `relations`: {parsed}"))
        elif by_key.setdefault((parsed.target or f"[[{parsed.link}]]", parsed.tag), parsed) is not parsed:
            defects.append(
                Defect(DEFECT, f"entry {number} of `relations` repeats an earlier entry, so Memex ignores it")
            )
    return tuple(by_key.values()), defects


def save_relation(text: str, relation: MemoRelation, same: Callable[[MemoRelation], bool]) -> str:
    """Return the note's text with this relation added, or replacing the first one for which `same` is true.

    Raises FrontmatterError."""
    entries = _read_entries(text)
    at = next((at for at, entry in entries.items() if same(entry)), None)
    written = _entry_properties(relation)
    if at is None:
        return edit_items(text, PROPERTY, {}, [{key: part for key, part in written.items() if part is not None}])
    if entries[at].link == relation.link:
        del written["target"]  # the existing link may contain more than its target
    return edit_items(text, PROPERTY, {at: written})


def drop_relations(text: str, gone: Callable[[MemoRelation], bool]) -> str:
    """Return the note's text without the relations for which `gone` is true. Raises FrontmatterError."""
    leaving = {at: None for at, relation in _read_entries(text).items() if gone(relation)}
    return edit_items(text, PROPERTY, leaving) if leaving else text


def checked_tag(tag: str) -> str:
    """Return `tag` in NFC, without surrounding white space. Raises InvalidArgument if it can't be a relation's tag."""
    plain = unicodedata.normalize("NFC", tag).strip()
    if not 1 <= len(plain) <= TAG or any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in plain):
        raise InvalidArgument(f"tag must be one line of 1 to {TAG} characters", field="tag")
    return plain


def round_weight(weight: float) -> float:
    """Round `weight` to two decimals; -0.0 becomes 0.0."""
    return float(Decimal(str(weight)).quantize(Decimal("0.01"), ROUND_HALF_UP)) + 0.0


def _read_entries(text: str) -> dict[int, MemoRelation]:
    """Return the readable entries by index, including repeats."""
    values = read(split(text)[0]).values
    value = values.get(spelling_of(PROPERTY, values))
    entries = enumerate(value) if isinstance(value, list) else ()
    return {at: relation for at, entry in entries if isinstance(relation := _parse_entry(entry), MemoRelation)}


def _entry_properties(relation: MemoRelation) -> dict[str, PropertyValue]:
    times = {"created_at": relation.created_at, "updated_at": relation.updated_at}
    return {
        "target": f"[[{relation.link}]]",
        "id": relation.target,
        "tag": relation.tag,
        "weight": relation.weight,
        "reason": relation.reason,
        "version": relation.version,
        **{name: iso_or_none(time) for name, time in times.items()},
    }


def _parse_entry(entry: Any) -> MemoRelation | str:
    """Parse an entry; return the relation, or the reason why it can't be read."""
    if not isinstance(entry, Mapping):
        return "it has no `target` and no `tag`"
    try:
        return MemoRelation(
            *_parse_target(entry),
            _parse_tag(entry),
            _parse_weight(entry.get("weight")),
            _parse_reason(entry.get("reason")),
            _parse_version(entry.get("version")),
            _parse_time(entry, "created_at"),
            _parse_time(entry, "updated_at"),
        )
    except ValueError as error:
        return str(error)


def _parse_target(entry: Mapping[str, Any]) -> tuple[str | None, str]:
    id, target = entry.get("id"), entry.get("target")
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if id is not None and not (isinstance(id, str) and ID.match(id)):
        raise ValueError("its `id` is invalid")
    links = list(find_wikilinks(target)) if isinstance(target, str) else []
    link = links[0].target if links else target.strip() if isinstance(target, str) else ""
    if not id and not link:
        raise ValueError("it has no target: set `target` to a link to the other note, or `id` to its id")
    return id, link


def _parse_tag(entry: Mapping[str, Any]) -> str:
    tag = entry.get("tag")
    try:
        return checked_tag(tag if isinstance(tag, str) else "" if tag is None else str(tag))
    except InvalidArgument as error:
        raise ValueError(f"its {error.message}") from error


def _parse_weight(weight: Any) -> float:
    if weight is None:
        return 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise ValueError("its weight must be a number from 0 to 1")
    return round_weight(weight)


def _parse_reason(reason: Any) -> str | None:
    if reason is None or isinstance(reason, str):
        return reason or None
    raise ValueError("its reason must be text")


def _parse_version(version: Any) -> int:
    if version is None:
        return 1
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < 2**53:
        raise ValueError("its version must be a whole number from 1")
    return version


def _parse_time(entry: Mapping[str, Any], name: str) -> int | None:
    if entry.get(name) is None:
        return None
    time = as_time(entry[name])
    if time is None:
        raise ValueError(f"its {name} is not a valid date")
    return time
