"""Propose changes of shared notes: each becomes a capture that waits for the owner's decision; no agent can apply one.

Law, tested: only a note that the window shows now can be proposed a change of; for any other path the answer is the same."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Final

from index.document_ids import sha256
from index.errors import ResourceExhausted
from index.model import Record
from syncd.captures.inbox import Inbox
from syncd.captures.writer import create_note
from syncd.changes.change_note import change_properties, change_title, check_reason, compose_body
from syncd.changes.proposed_text import ChangeRequest, propose_text
from syncd.changes.unified_diff import compose_diff
from syncd.documents.capture_note import CHANGE, MAX_CONTENT
from syncd.history.audit_log import AUTHOR
from syncd.notes.front_matter import decode
from syncd.sharing.window import SharedNote, WorkspaceWindow, not_shared

LONGEST_TITLE: Final = 200  # characters


def propose_change(
    inbox: Inbox, workspace: str, window: WorkspaceWindow | None, path: str, request: ChangeRequest, *, reason: str
) -> tuple[Record, bool]:
    """Write a capture with the change of the shared note at `path`; return it, and whether it is new.

    The same change of the same version is the same capture. Raises NotFound for a note that is not shared, Unavailable
    until its last edit is indexed, and InvalidArgument or ResourceExhausted for a change that can't be proposed."""
    words = check_reason(reason)
    if window is None:
        raise not_shared(path)
    note = window.read_at(path)
    target, base, now = note.record.path, sha256(note.raw), inbox.now()
    body = _compose_proposal(note, request, words)
    if (same := _find_same(inbox, workspace, body)) is not None:
        return same
    inbox.keep_version(note.raw)  # to merge the change with what the note becomes meanwhile
    made = create_note(
        inbox,
        folder=inbox.namespace_folder(workspace, "default"),
        title=change_title(target)[:LONGEST_TITLE],
        content=body,
        properties=partial(
            change_properties,
            id=str(uuid.uuid4()),
            created_at=now,
            target=target,
            base=base,
            reason=words,
            agent=AUTHOR.get().name,
            workspace=workspace,
        ),
        now=now,
        instead=partial(_find_same, inbox, workspace, body),
    )
    return made if isinstance(made, tuple) else (made, True)


def _compose_proposal(note: SharedNote, request: ChangeRequest, reason: str) -> str:
    """Return the text of the capture that proposes a change. Raises InvalidArgument or ResourceExhausted."""
    current, target = decode(note.raw), note.record.path
    diff = compose_diff(current, propose_text(current, request), target)
    body = compose_body(target, sha256(note.raw), reason, diff)
    if len(body.encode()) > MAX_CONTENT:
        raise ResourceExhausted(
            f"the proposal would exceed {MAX_CONTENT:,} bytes: propose smaller changes one after the other",
            limit=MAX_CONTENT,
        )
    return body


def _find_same(inbox: Inbox, workspace: str, body: str) -> tuple[Record, bool] | None:
    """Return the waiting capture with this text, which names the note, its version, the reason and the change."""
    record = inbox.captures.index.catalog.find_capture(workspace, sha256(body.encode()))
    return (record, False) if record is not None and record.type == CHANGE else None
