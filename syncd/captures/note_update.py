"""Update the text, the tags or the properties of an inbox note in place: its id, its path and its creation time stay.

Laws, tested: an update is complete or did not happen; `version` and `updated_at` change only when the note changes;
text that somebody wrote meanwhile, in an editor or by another call, is never overwritten unread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted
from index.model import Document, Record
from index.scope.index import Index
from syncd.captures.automatic_values import Name, Value, file_stem
from syncd.captures.batch_writer import UNDATED, Change, NoteDrafts, write_batch
from syncd.captures.value_renewal import Renewal, renew_title, renew_values
from syncd.captures.writer import lock_workspace, record_values, require_row
from syncd.documents import entity_edits
from syncd.documents.capture_note import CHANGE, check_content, is_named_after_title
from syncd.documents.collection_membership import choose_collection, plain_tags, tag_changes
from syncd.documents.owner_marks import EDITED, properties_too_large
from syncd.notes.front_matter import FrontmatterError, PropertyValue, edit, encode, replace_body, split
from syncd.notes.tag_names import check_tags
from syncd.notes.timestamps import iso
from syncd.sync.hand_edits import visible_digest
from syncd.sync.note_adoption import UNADOPTED

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

MAX_TITLE: Final = 500  # characters
ELSEWHERE: Final = {  # types whose text can't be updated here, and how to change it instead
    "entity": "it is a node of the graph: change it with replace_observation and add_observations",
    "file": "it contains the text of a file: upload a new version of the file instead (kb_upload_start)",
    CHANGE: "it proposes a change of a note: delete it, and propose another one with propose_change",
}


@dataclass(frozen=True, slots=True)
class NoteUpdate:
    """Holds the wanted state of a note; None leaves a value unchanged. `version` is the version it must have now."""

    text: str | None
    title: str | None = None
    tags: Sequence[str] | None = None
    collection: str | None = None
    version: int | None = None


def update_note(
    inbox: Inbox,
    workspace: str,
    find: Callable[[], Record],
    update: NoteUpdate,
    progress: Callable[[int], None] | None = None,
) -> tuple[Record, bool]:
    """Change the note that `find` finds, and return its new row and whether it changed.

    Raises InvalidArgument if the text of this type can't be changed here. Raises Conflict, with the current version,
    if the note does not have the named version, or a person has just edited it."""
    if update.text is not None:
        check_content(update.text)
    title_property = _title_property(update.title)
    chosen, plain = choose_collection(update.collection, update.tags or (), inbox.collections)
    wanted = None if update.tags is None else check_tags(plain)

    def changes(front: str, _: Document) -> dict[str, PropertyValue]:
        if wanted is None and chosen is None:
            return title_property
        return title_property | tag_changes(front, plain_tags(front) if wanted is None else wanted, chosen)

    from_caller = {name for name, value in (("title", update.title), ("tags", update.tags)) if value is not None}

    def decide(_: Index) -> tuple[list[Change], Revision]:
        record = find()
        if record.type in ("entity", CHANGE) or (record.type in ELSEWHERE and update.text is not None):
            raise InvalidArgument(f"this document can't be updated here: {ELSEWHERE[record.type]}", type=record.type)
        revision = plan_changes(
            inbox, record, changes, content=update.text, version=update.version, from_caller=from_caller
        )
        return revision.changes, revision

    with lock_workspace(inbox, workspace):
        revision = write_batch(inbox, decide, progress)
        return record_revision(inbox, revision), bool(revision.changes)


def _title_property(title: str | None) -> dict[str, PropertyValue]:
    if title is None:
        return {}
    if not title.strip() or len(title) > MAX_TITLE or any(ord(c) < 32 for c in title):
        raise InvalidArgument(f"title must be one line of 1 to {MAX_TITLE} characters", field="title")
    return {"title": title}


# For all code that reads or changes notes


def unknown_document(name: str, workspace: str) -> NotFound:
    """Return the error for an id or a path that no document of the workspace has."""
    return NotFound(
        f"no document {name[:200]!r} in workspace {workspace!r}; a search returns the id and the path of each document"
    )


def set_tags(workspace: str, inbox: Inbox, id: str, tags: Sequence[str], version: int | None) -> Record:
    """Replace the tags of a note; a tag like `collection:x` puts it into that collection."""
    collection, plain = choose_collection(None, tags, inbox.collections)
    wanted = check_tags(plain)

    def decide(index: Index) -> tuple[list[Change], str]:
        record = index.record(id, workspace)
        if record is None:
            raise unknown_document(id, workspace)
        if record.type == CHANGE:
            raise InvalidArgument(f"this document can't be updated here: {ELSEWHERE[CHANGE]}", type=CHANGE)
        drafts = NoteDrafts(inbox)
        text, document = read_note(inbox, drafts, record)
        check_version(document, version)
        whole = version is not None or _differ(document, record, ("tags", "collection"))
        refuse_unread_edit(inbox, document, record, whole=whole)
        now = inbox.now()
        try:
            changes = tag_changes(split(text)[0], wanted, collection)
            if changes and document.node:
                drafts.set_text(record.path, entity_edits.set_properties(text, changes, now=now))
            elif changes:
                drafts.set_text(
                    record.path, edit(text, {"updated_at": iso(now), "version": document.version + 1, **changes})
                )
        except FrontmatterError as error:
            raise Conflict(f"its properties can't be changed: {error}; its owner must repair them") from error
        return drafts.changes(), record.path

    with lock_workspace(inbox, workspace):
        record = require_row(inbox.captures.index.record_at(write_batch(inbox, decide)))
        inbox.automatic.record(record.workspace, record.id, {}, from_caller={"tags"})
        return record


@dataclass(frozen=True, slots=True)
class Revision:
    """Holds the planned writes for a note, and what to record after them."""

    record: Record  # the row of the note before the change
    changes: list[Change]
    from_caller: Collection[str]  # names of the values that the caller set
    renewal: Renewal


def plan_changes(
    inbox: Inbox,
    record: Record,
    wanted: Callable[[str, Document], Mapping[str, PropertyValue]],
    *,
    content: str | None,
    version: int | None,
    from_caller: Collection[str],
) -> Revision:
    """Plan the writes that give the note this content (None: unchanged) and the properties of `wanted` (None: remove)."""
    drafts = NoteDrafts(inbox)
    text, document = read_note(inbox, drafts, record)
    check_version(document, version)
    if content is None:
        content = split(text)[1]
    try:
        changes = dict(wanted(split(text)[0], document))
        titled = Renewal()
        if changes.get("title", "") is None:
            titled = renew_title(record, content)
            changes |= titled.changes
        written = replace_body(edit(text, changes), content)
        if written == text:
            return Revision(record, [], from_caller, titled)
        whole = version is not None or _differ(document, record, changes)
        refuse_unread_edit(inbox, document, record, whole=whole, content=content)
        renewal = renew_values(inbox, record, document, text, after=written, from_caller={*from_caller, *titled.values})
        changes |= renewal.changes
        stamps: dict[str, PropertyValue] = {"updated_at": iso(inbox.now()), "version": document.version + 1}
        if inbox.parse_note(encode(text), record.path, mtime_ms=UNDATED).created_at == UNDATED:
            # Otherwise the creation time would follow each change of the file.
            stamps["created_at"] = iso(record.created_at)
        drafts.set_text(record.path, replace_body(edit(text, {**changes, **stamps}), content))
    except FrontmatterError as error:
        raise property_error(error) from error
    values: dict[Name, Value] = {**titled.values, **renewal.values}
    if "title" in changes and is_named_after_title(record.path, document.title):
        values["file"] = file_stem(record.path)
    return Revision(record, drafts.changes(), from_caller, replace(renewal, values=values))


def record_revision(inbox: Inbox, revision: Revision) -> Record:
    """Record which values of a changed note are automatic now, and return the note's row."""
    record = require_row(inbox.captures.index.record_at(revision.record.path))
    renewal = revision.renewal
    return record_values(inbox, record, renewal.values, retry=renewal.retry, from_caller=revision.from_caller)


def read_note(inbox: Inbox, drafts: NoteDrafts, record: Record) -> tuple[str, Document]:
    """Read the note from its file. Raises Conflict when it can't be written to, or not yet."""
    try:
        text = drafts.text(record.path)
    except NotFound as error:
        raise Conflict("the note's file was removed a moment ago; try again in a moment", retryable=True) from error
    document = parse_note(inbox, text, record)
    if not document.writable:
        raise Conflict(
            "the note's properties can't be read now: its owner may be editing them; try again in a moment, and if it persists, "
            "see `memex status`, which names the mistake",
            retryable=True,
        )
    if document.claimed_id is None and not any(defect.name in UNADOPTED for defect in document.defects):
        raise Conflict("a person has just added this note, and Memex gives it an id soon; search again", retryable=True)
    return text, document


def parse_note(inbox: Inbox, text: str, record: Record) -> Document:
    """Parse `text` as the note of this row."""
    return inbox.parse_note(encode(text), record.path, mtime_ms=record.created_at)


def check_version(document: Document, version: int | None) -> None:
    """Raise Conflict, with the note's version, if it is not the expected version."""
    if version is not None and version != document.version:
        raise Conflict(
            f"the note has version {document.version}, not {version}: read the note again, then repeat your change",
            version=document.version,
        )


def refuse_unread_edit(
    inbox: Inbox, document: Document, record: Record, *, whole: bool, content: str | None = None
) -> None:
    """Raise Conflict if an update would overwrite text that no agent can have read; `record` is the row it was found by.

    With `whole`, the caller named the note's version or replaces an edited property, so its properties must match the row
    too. `content` is the new text; None = the note is to be deleted."""
    edited = document.content_hash != record.content_hash and document.content != content
    if edited or inbox.edited(document) or (whole and visible_digest(document) != visible_digest(record)):
        raise Conflict(EDITED, retryable=True)


def _differ(document: Document, record: Record, names: Iterable[str]) -> bool:
    """Return whether a note differs from its row in one of these properties."""
    now, read = (
        {**note.metadata, "title": note.title, "tags": sorted(note.tags), "collection": note.collection}
        for note in (document, record)
    )
    return any(now.get(name) != read.get(name) for name in names)


def property_error(error: FrontmatterError) -> Conflict | ResourceExhausted | InvalidArgument:
    """Return the error for properties that could not be written."""
    if error.defect == "frontmatter-too-large":
        return properties_too_large()
    return InvalidArgument(f"the note's properties can't be written this way: {error}")
