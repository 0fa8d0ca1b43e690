"""Define the owner's operations for the review: waiting captures, one capture with its suggestions, and the archive.

Law: no route or tool of an agent leads to these operations, because their answers contain text of notes outside the
inbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from index.document_ids import sha256
from index.errors import InvalidArgument, MemexError, NotFound
from index.model import Record
from index.names import append_advice, did_you_mean, replace_surrogates
from index.text.hidden_characters import find_hidden
from index.text.link_schemes import find_unsafe
from index.text.runnable_code import find_runnable
from syncd.changes.change_approval import ChangePlans, WeighedChange
from syncd.changes.change_note import TARGET
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.documents.capture_note import CHANGE
from syncd.documents.owner_marks import OwnerMarks
from syncd.indexes import note_lookup
from syncd.notes.front_matter import FrontmatterError, decode, read_properties, split
from syncd.owner.promotion import parse_ids, run_each
from syncd.promotion.promoted_note import Problem, choose_folder
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.review.archive import Archive
from syncd.review.review import Review
from syncd.review.suggestions import Suggestions

LISTED = 10_000  # captures in one list
CANDIDATES = 5  # suggestions of each kind, with their reasons
EXCERPT = 400  # characters of a similar note
TEXT = 20_000  # characters of a capture
REASONS = {
    "you": "as you said",
    "rule": "by your rules",
    "setting": "the setting promote.folder",
}  # by what chose a folder
SUGGESTED = ("suggested_folder", "suggested_tags", "suggested_links", "suggested_similar")


def operations(review: Review, archive: Archive, snapshot: VaultSnapshot, changes: ChangePlans) -> dict[str, Operation]:
    """Return the owner's operations for the review, by name."""
    return {
        "review.list": partial(_list_waiting, review, snapshot),
        "review.show": partial(_show_capture, review, snapshot, changes),
        "review.dismiss": partial(_dismiss, archive, snapshot),
        "unarchive": partial(_unarchive, archive, snapshot),
        "archived": lambda arguments, _: archive.latest(int(arguments.get("limit") or 50)),
    }


def _list_waiting(review: Review, snapshot: VaultSnapshot, arguments: Arguments, _: Progress) -> dict[str, Any]:
    limit, workspace = int(arguments.get("limit") or 50), arguments.get("workspace")
    if not 1 <= limit <= LISTED:
        raise InvalidArgument(f"limit must be between 1 and {LISTED:,}")
    waiting = [(record, marks) for record, marks in review.list_waiting() if workspace in (None, record.workspace)]
    return {
        "total": len(waiting),
        "waiting": [_capture_fields(snapshot, record, marks) for record, marks in waiting[:limit]],
    }


def _show_capture(
    review: Review, snapshot: VaultSnapshot, changes: ChangePlans, arguments: Arguments, _: Progress
) -> dict[str, Any]:
    id = arguments["id"]
    waiting = {record.path: (record, marks) for record, marks in review.list_waiting()}
    match = note_lookup.find_note([snapshot.captures.index], id, lambda record: record.path in waiting)
    if match is None:
        titles = [record.title for record, _ in waiting.values()]
        near = did_you_mean(id[:200], titles)
        raise NotFound(
            f"no capture {id[:200]!r} waits for a decision{append_advice(near, 'to list those that wait: memex review --list')}"
        )
    record, marks = waiting[match.path]
    suggestions, body = review.suggest(record), _read_body(snapshot, record.path)
    return (
        _capture_fields(snapshot, record, marks)
        | (
            _change_fields(snapshot, changes, record)
            if record.type == CHANGE
            else _goal_fields(snapshot, record, marks, suggestions)
        )
        | {
            "file": str(snapshot.vault.root / record.path),
            "content": body[:TEXT],
            "more": max(0, len(body) - TEXT),
            "body": sha256(body.encode("utf-8", "replace")),
        }
        | _suggestion_fields(snapshot, suggestions)
    )


def _change_fields(snapshot: VaultSnapshot, changes: ChangePlans, record: Record) -> dict[str, Any]:
    """Return how the change that a capture proposes fits its note now, with the diff, or the problem that prevents it."""
    none = {"goal": None, "by": "", "reason": ""}
    try:
        raw, _ = snapshot.vault.read(record.path)
        weighed = changes.weigh(raw)
    except MemexError as error:
        change = {"target": str(record.metadata.get(TARGET) or ""), "reason": "", "fit": "none", "diff": "", "view": ""}
        return none | {"change": change, "problem": error.message}
    change = {"target": weighed.change.target, "reason": weighed.change.reason, "fit": weighed.fit}
    return none | {"change": change | {"diff": weighed.diff, "view": weighed.view}} | _change_warnings(raw, weighed)


def _change_warnings(raw: bytes, weighed: WeighedChange) -> dict[str, list[str]]:
    """Return the warnings about a proposal with those about the note after it: a diff need not show where code begins."""
    text, after = decode(raw), decode(weighed.after)
    added = "\n".join(line.text for hunk in weighed.change.hunks for line in hunk.lines if line.kind == "+")
    return {
        "runs": sorted({*find_runnable(text), *find_runnable(after)}),
        "unsafe_links": sorted({*find_unsafe(text), *find_unsafe(added)}),
    }


def _suggestion_fields(snapshot: VaultSnapshot, suggestions: Suggestions) -> dict[str, Any]:
    """Return the suggested folders and similar notes for a capture, with the reason for each."""
    return {
        "folders": [
            {"folder": folder.what, "score": folder.score, "reason": folder.reason}
            for folder in suggestions.folders[:CANDIDATES]
        ],
        "similar": [
            {"path": note.path, "kind": note.kind, "score": note.score, "excerpt": _excerpt(snapshot, note.path)}
            for note in suggestions.similar[:CANDIDATES]
        ],
    }


def _dismiss(archive: Archive, snapshot: VaultSnapshot, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    shown: Mapping[str, str] = arguments.get("shown") or {}
    ids = note_lookup.drop_repeated(snapshot.captures.index, parse_ids(arguments))
    done, failed = run_each(ids, lambda path: archive.dismiss(path, shown=shown.get(path)), progress, "dismissing")
    return {"archived": done, "failed": failed}


def _unarchive(archive: Archive, snapshot: VaultSnapshot, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    index, ids = snapshot.notes.index, parse_ids(arguments)
    ids = note_lookup.drop_repeated(index, ids, lambda record: snapshot.is_archived(record.path))
    done, failed = run_each(ids, archive.bring_back, progress, "bringing back")
    return {"returned": done, "failed": failed}


def _capture_fields(snapshot: VaultSnapshot, record: Record, marks: OwnerMarks) -> dict[str, Any]:
    """Return the fields of a waiting capture, with the suggestions in its properties, and the SHA-256 of its bytes."""
    values: dict[str, Any] = {}
    text, digest = "", record.digest
    try:
        raw, _ = snapshot.vault.read(record.path)
        digest, text = sha256(raw), decode(raw)
        front = split(text)[0]
        values = {key.casefold(): value for key, value in read_properties(front).items()}
    except (MemexError, FrontmatterError):
        pass  # the note was removed a moment ago, or is being edited
    return {
        "id": record.id,
        "path": record.path,
        "digest": digest,
        "type": record.type,
        "workspace": record.workspace,
        "title": record.title,
        "summary": record.summary,
        "tags": list(record.tags),
        "source": record.source,
        "created_at": record.created_at,
        "promote": marks.promote,
        "promote_to": marks.promote_to,
        **_find_goal(snapshot, record, marks),
        "suspicious": list(find_hidden(text)),
        "runs": list(find_runnable(text)),
        "unsafe_links": list(find_unsafe(text)),
        **{name: values.get(name) for name in SUGGESTED},
    }


def _find_goal(snapshot: VaultSnapshot, record: Record, marks: OwnerMarks) -> dict[str, Any]:
    """Return the folder into which an approval moves a capture, and what chose it; None for a change, or with the problem that prevents it."""
    promotion, problem = snapshot.settings.promote, marks.promote_problem
    if record.type == CHANGE:
        return {"goal": None, "by": "", "problem": problem}
    try:
        folder, by, _ = choose_folder(record, marks, promotion.rules, folder=promotion.folder, inbox=snapshot.inbox)
    except Problem as error:
        return {"goal": None, "by": "", "problem": problem or error.message}
    return {"goal": folder, "by": by, "problem": problem}


def _goal_fields(
    snapshot: VaultSnapshot, record: Record, marks: OwnerMarks, suggestions: Suggestions
) -> dict[str, Any]:
    """Return the target folder of a promotion, what chose it, and why; or the problem that prevents the promotion."""
    promotion = snapshot.settings.promote
    raw, stat = snapshot.vault.read(record.path)
    document = snapshot.parse(raw, record.path, stat)
    try:
        goal, by, _ = choose_folder(document, marks, promotion.rules, folder=promotion.folder, inbox=snapshot.inbox)
    except Problem as error:
        return {"goal": None, "by": "", "reason": "", "problem": error.message, "change": None}
    suggested = next((folder.reason for folder in suggestions.folders if folder.what == goal), "suggested")
    return {"goal": goal, "by": by, "reason": REASONS.get(by, suggested), "change": None}


def _excerpt(snapshot: VaultSnapshot, path: str) -> str:
    try:
        return " ".join(_read_body(snapshot, path).split())[:EXCERPT]
    except MemexError:  # the note was removed a moment ago
        return ""


def _read_body(snapshot: VaultSnapshot, path: str) -> str:
    """Return the text of a note without its properties, valid for JSON."""
    return replace_surrogates(split(decode(snapshot.vault.read(path)[0]))[1])
