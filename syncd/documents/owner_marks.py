"""Read the owner's marks in the properties of a capture: promote it, promote it to a folder, keep or dismiss it.

Law, tested: only a property that the owner's editor reads as one counts: `promote: true`, and no text that looks
like it. If a key occurs twice, or the properties cannot be read, nothing is marked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from index.errors import Conflict, InvalidArgument, ResourceExhausted
from index.names import fold
from syncd.notes.front_matter import FrontmatterError, comparable_key, is_unclosed, read, split
from syncd.notes.property_reader import (
    LARGEST_OWN,
    MOST_OWN,
    PERSONS,
    as_text,
    as_time,
    exceeds_agent_limits,
    find_fences,
)

EDITED: Final = "a person has just edited the note; read it again in a moment"
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})  # values of a key that was left empty
# Front matter that contains none of these words has no owner's keys, so it is not parsed.
_WORDS: Final = (
    *("promote", "review", "share", "expires", "suggested_", "superseded_by"),
    *("hidden_text", "runnable_code", "unsafe_links"),
)


@dataclass(frozen=True, slots=True)
class OwnerMarks:
    """Holds the owner's keys of one note; None = the key is missing, or its value has the wrong type."""

    promote: bool = False  # only YAML's true counts
    promote_to: str | None = None
    review: str | None = None  # in lower case
    expires: int | None = None  # epoch ms
    promote_problem: str | None = None
    promoted_at: int | None = None  # epoch ms
    suggested_folder: str | None = None
    superseded_by: str | None = None
    twice: tuple[str, ...] = ()  # keys that occur in two spellings, so neither counts
    unclear: tuple[str, ...] = ()  # which of `promote` and `promote_to` have a value of the wrong type

    @property
    def may_be_promotion(self) -> bool:
        """Return whether the note is marked for promotion, or somebody may have meant to mark it."""
        return self.promote or "promote" in self.unclear


_NO_MARKS: Final = OwnerMarks()


def read_marks(text: str) -> OwnerMarks:
    """Return the marks of a note with this text."""
    front = split(text)[0]
    lower = front.casefold()
    if not any(word in lower for word in _WORDS) or is_unclosed(text):
        return OwnerMarks()
    try:
        properties = read(front)
    except FrontmatterError:
        return OwnerMarks()
    owner_marks = marks_of(properties.values)
    if not properties.repeated:
        return owner_marks
    wished = (
        owner_marks.promote or owner_marks.unclear or any(key.casefold() == "promote" for key in properties.repeated)
    )
    return OwnerMarks(unclear=("promote",) if wished else ())


def marks_of(values: Mapping[str, Any]) -> OwnerMarks:
    """Return the marks among these properties.

    Obsidian treats keys that differ in letter case as one, so if both occur, neither counts."""
    named: dict[str, list[Any]] = {}
    for key, value in values.items():
        named.setdefault(key.casefold(), []).append(value)

    def value_of(name: str) -> Any:
        return named[name][0] if len(named.get(name, ())) == 1 else None

    def text_of(name: str) -> str | None:
        return (as_text(value_of(name)) or "").strip() or None

    review = text_of("review")
    return OwnerMarks(
        promote=value_of("promote") is True,
        promote_to=text_of("promote_to"),
        review=fold(review) if review else None,
        expires=as_time(value_of("expires")),
        promote_problem=text_of("promote_problem"),
        promoted_at=as_time(value_of("promoted_at")),
        suggested_folder=text_of("suggested_folder"),
        superseded_by=text_of("superseded_by"),
        twice=tuple(name for name, entries in named.items() if len(entries) > 1 and name in {*PERSONS, "expires"}),
        unclear=tuple(_find_unclear(named)),
    )


def encode_marks(owner_marks: OwnerMarks) -> str:
    """Encode the marks as text, "" for none; documents and their rows store this text."""
    stated = {
        field.name: value
        for field in fields(OwnerMarks)
        if (value := getattr(owner_marks, field.name)) != field.default
    }
    return json.dumps(stated, separators=(",", ":")) if stated else ""


def decode_marks(text: str) -> OwnerMarks:
    """Return the marks that `encode_marks` was given."""
    if not text:
        return _NO_MARKS
    stated = json.loads(text)
    return OwnerMarks(**stated | {name: tuple(stated[name]) for name in ("twice", "unclear") if name in stated})


def _find_unclear(named: Mapping[str, list[Any]]) -> Iterator[str]:
    ticks = named.get("promote", ())
    if len(ticks) > 1 or any(value not in _NOTHING and not isinstance(value, bool) for value in ticks):
        yield "promote"
    if any(value and isinstance(value, (list, dict)) for value in named.get("promote_to", ())):
        yield "promote_to"


def read_owner_keys(front: str) -> dict[str, list[Any]]:
    """Return the owner's keys of a front matter, in every spelling that a program may accept.

    Raises FrontmatterError."""
    by_name: dict[str, list[Any]] = {}
    for key, value in read(front).values.items():
        if (name := comparable_key(key)) in PERSONS:
            by_name.setdefault(name, []).append(value)
    return by_name


LEAST_FILLED: Final = 4_000  # bytes of front matter below which no limit is checked


class MarkedByOwner(Conflict):
    """The owner has marked the note for promotion, or is editing it, so agents can't change it."""


def find_overreach(
    was: str | None, now: str | None, *, is_node: Callable[[], bool]
) -> MarkedByOwner | InvalidArgument | ResourceExhausted | None:
    """Return the error for an agent's change of a note's text from `was` to `now`; None if the change is allowed.

    None as text means no note. A node is never promoted, so a promotion mark does not protect it from changes; few notes have
    one, so only they are asked."""
    if was is not None and read_marks(was).promote and not is_node():
        return MarkedByOwner(EDITED, retryable=True)
    if now is None:
        return None
    try:
        before, after = (_owner_keys_of(text) for text in (was, now))
    except FrontmatterError as error:
        if error.defect == "frontmatter-too-large":
            return properties_too_large()
        return MarkedByOwner(EDITED, retryable=True)  # the owner's keys can't be read
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if changed:
        return InvalidArgument(f"the property {changed[0]!r} can only be set by the owner, not by an agent")
    return properties_too_large() if _is_full(now) and not _is_full(was) else None


def properties_too_large() -> ResourceExhausted:
    """Return the error for an agent that gives a note too many or too large properties."""
    return ResourceExhausted(
        f"the note's properties would be too many or too large: the limits are {LARGEST_OWN:,} bytes and {MOST_OWN:,} parts",
        limit=LARGEST_OWN,
    )


def _is_full(text: str | None) -> bool:
    start, end, _ = find_fences(text or "")
    try:
        return exceeds_agent_limits((text or "")[start:end]) if end - start > LEAST_FILLED else False
    except FrontmatterError:
        return False  # reported elsewhere


def _owner_keys_of(text: str | None) -> dict[str, list[Any]]:
    front = split(text or "")[0]
    lower = comparable_key(front)
    return read_owner_keys(front) if any(word in lower for word in _WORDS) or "\\" in front else {}
