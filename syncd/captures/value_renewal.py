"""Decide the renewal of a note's automatic values when its text changes: its title, tags and summary.

Laws, tested: values that a caller gave or a person wrote stay when the text changes; automatic values follow the
text. The file keeps its name; a title that differs from the file's name is a property, and then the name is not
searched."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from index.model import Document, Record
from syncd.captures.automatic_values import Digests, Name, Value, digest_of, file_stem
from syncd.documents.capture_note import automatic_title
from syncd.documents.collection_membership import plain_tags, tag_changes
from syncd.enrichment.enricher import written_summary
from syncd.notes.front_matter import PropertyValue, edit, encode, read_properties, split

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def filled_values(bare: Document, bare_text: str, filled: Document, text: str) -> dict[Name, Value]:
    """Return the tags and summary that a new note lacked (`bare`) and that Memex has filled."""
    values: dict[Name, Value] = {}
    if not plain_tags(split(bare_text)[0]):
        values["tags"] = plain_tags(split(text)[0])
    if bare.summary is None or bare.summary_derived:
        values["summary"] = filled.summary
    return values


@dataclass(frozen=True, slots=True)
class Renewal:
    """Holds the consequences of a new text: properties to change, and the note's new automatic values."""

    changes: Mapping[str, PropertyValue] = field(default_factory=dict)
    values: Mapping[Name, Value] = field(default_factory=dict)
    retry: bool = False  # the enrichment failed and must be retried


def renew_title(record: Record, content: str) -> Renewal:
    """Return the title that follows from `content`; it is a property only if the file has another name."""
    title = automatic_title(content, record.created_at)
    return Renewal({"title": None if title == file_stem(record.path) else title}, {"title": title})


def renew_values(
    inbox: Inbox, record: Record, before: Document, text: str, *, after: str, from_caller: Collection[str]
) -> Renewal:
    """Return the renewal for a note whose text changes from `text` (parsed: `before`) to `after`, without values `from_caller`.

    Raises Unavailable when the ledger can't be read, FrontmatterError when a property can't be changed."""
    content = split(after)[1]
    if content == before.content:
        return Renewal()
    digests, front = inbox.automatic.digests(record.workspace, record.id), split(text)[0]
    changes: dict[str, PropertyValue] = {}
    values: dict[Name, Value] = {}
    if "title" not in from_caller and _has_automatic_title(inbox, record, before, front, digests):
        titled = renew_title(record, content)
        changes, values = {**titled.changes}, {**titled.values}
    tags = "tags" not in from_caller and digest_of(plain_tags(front)) in digests.get("tags", ())
    if "summary" in digests:
        summary = before.summary_derived or digest_of(before.summary) in digests["summary"]
    else:  # the note is older than this record
        summary = not before.summary_derived and inbox.enricher.is_own_summary(before)
    if not tags and not summary:
        return Renewal(changes, values)
    front = split(after)[0]
    emptied = {**({"summary": None} if summary else {}), **(tag_changes(front, [], None) if tags else {})}
    bare = inbox.parse_note(encode(edit(after, {**changes, **emptied})), record.path, mtime_ms=record.created_at)
    result = inbox.enricher.begin(bare)()
    if summary:
        values["summary"] = result.enrichment.summary
        changes["summary"] = written_summary(bare, result.enrichment.summary)
    if tags:
        found_tags = [] if bare.tags else list(result.enrichment.tags)
        values["tags"] = found_tags
        changes |= tag_changes(front, found_tags, None)
    return Renewal(changes, values, retry=result.retry)


def _has_automatic_title(inbox: Inbox, record: Record, before: Document, front: str, digests: Digests) -> bool:
    if "title" in digests:
        return digest_of(before.title) in digests["title"]
    # The note is older than this record: a title that somebody gave is among its properties.
    stated = any(key.casefold() == "title" for key in read_properties(front))
    derived = automatic_title(before.content, record.created_at)
    return not stated and file_stem(record.path) == derived and _was_captured(inbox, record.id)


def _was_captured(inbox: Inbox, id: str) -> bool:
    """Return whether an agent or a command created the note, not a person in an editor, as far as the audit log shows."""
    first = next(iter(inbox.audit.entries_about(id=id)), None)
    return first is not None and first.kind == "create" and first.surface != "file"
