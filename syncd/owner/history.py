"""Define the owner's operations on history: show the history of a note, undo what agents wrote, and restore versions.

Law: every undo and every restore is logged as a write of the owner."""

from __future__ import annotations

from typing import Any

from index.errors import Conflict, InvalidArgument
from syncd.changes.change_approval import APPLY
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.history import digest_chain
from syncd.history.audit_log import AUTHOR
from syncd.history.change_journal import Entry
from syncd.history.note_history import NoteHistory
from syncd.history.note_restore import NoteRestore, describe_plan
from syncd.history.undo import Undo, UndoStep
from syncd.history.write_lineage import RESTORE
from syncd.promotion.promotions import Promotions

MOST = 10_000  # events in one answer


def operations(
    history: NoteHistory, undo: Undo, restoring: NoteRestore, promotions: Promotions
) -> dict[str, Operation]:
    """Return the owner's operations on history, by name."""

    def log(arguments: Arguments, _: Any) -> dict[str, Any]:
        limit = arguments.get("limit") or 50
        if not 1 <= limit <= MOST:
            raise InvalidArgument(f"limit must be between 1 and {MOST:,}")
        return history.log(arguments["id"], limit, patch=bool(arguments.get("patch")))

    def text_before(arguments: Arguments, _: Any) -> dict[str, Any]:
        path, raw = history.text_before(arguments["id"], int(arguments["entry"]))
        return {"path": path, "content": raw.decode("utf-8", "surrogateescape")}

    def undo_changes(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        wanted, last = _find_writes(undo, arguments)
        steps = undo.plan(wanted, last=last)
        planned = [step for step in steps if not step.reason and step.now != step.target_digest]
        if arguments.get("dry_run"):
            return _undo_result("", planned, [step for step in steps if step.reason])
        _refuse_unseen_plan(arguments, [_step_fields(step)["entries"] for step in planned])
        done, skipped = undo.carry_out(
            steps, lambda number, of, stage: progress({"done": number, "total": of, "stage": stage})
        )
        return _undo_result(AUTHOR.get().request if done else "", done, skipped)

    def restore(arguments: Arguments, _: Any) -> dict[str, Any]:
        version = str(arguments["version"]).strip()
        plan = restoring.plan(arguments["id"], version)
        if arguments.get("dry_run"):
            return describe_plan(plan)
        return restoring.carry_out(plan, version, shown=arguments.get("shown"))

    return {"log": log, "log.before": text_before, "undo": _with_changes(promotions, undo_changes), RESTORE: restore}


def _with_changes(promotions: Promotions, undo_changes: Operation) -> Operation:
    """Return the undo of writes that also undoes an applied change, if that is the last one of the named note."""

    def undo(arguments: Arguments, progress: Progress) -> Any:
        name = arguments.get("id")
        change = promotions.find_applied_change(name) if name and arguments.get("since") is None else None
        if change is None:
            return undo_changes(arguments, progress)
        _refuse_unseen_plan(arguments, [[]])
        return _undo_change(promotions, change, dry_run=bool(arguments.get("dry_run")))

    return undo


def _find_writes(undo: Undo, arguments: Arguments) -> tuple[list[digest_chain.Entry], str]:
    """Return the writes to undo, and the path of the named note; "" without one."""
    name, since = arguments.get("id") or None, arguments.get("since")
    if (name is None) == (since is None):
        raise InvalidArgument("name one note or call, or give a time with --since")
    if name is not None:
        return undo.writes_of_call(name)
    narrow = {name: arguments.get(name) for name in ("until", "key", "workspace")}
    return undo.writes_since(int(since or 0), **narrow), ""


def _refuse_unseen_plan(arguments: Arguments, entries: list[list[int]]) -> None:
    """Raise Conflict if an undo has other entries, listed by file, than the plan that the owner saw (`shown`, if any)."""
    shown = arguments.get("shown")
    if shown is not None and shown != entries:
        raise Conflict(
            "the note was written to after you were asked, so nothing was undone; to see what an undo does now: --dry-run"
        )


def _undo_change(promotions: Promotions, change: Entry, *, dry_run: bool) -> dict[str, Any]:
    """Undo an applied change of a note, or a text appended to it; the proposal or capture waits for a decision again."""
    if not dry_run:
        promotions.unpromote(change.source if change.kind == APPLY else change.target)
    step = {"id": change.document_id, "path": change.target, "entries": [], "by": [change.by], "did": "restored"}
    return {"undo": None if dry_run else AUTHOR.get().request, "done": [step], "skipped": []}


def _undo_result(call: str, done: list[UndoStep], skipped: list[UndoStep]) -> dict[str, Any]:
    return {
        "undo": call or None,
        "done": [_step_fields(step) | {"did": step.action} for step in done],
        "skipped": [_step_fields(step) | {"reason": step.reason} for step in skipped],
    }


def _step_fields(step: UndoStep) -> dict[str, Any]:
    entries = step.way.taken or step.way.left
    return {
        "id": step.id,
        "path": step.path,
        "entries": [entry.seq for entry in entries],
        "by": list(dict.fromkeys(entry.name or entry.key or entry.surface for entry in entries)),
    }
