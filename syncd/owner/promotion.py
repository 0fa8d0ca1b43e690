"""Define the owner's operations for promotion: make captures notes of the vault, and bring them back.

Law: these operations and a person's mark are the only ways out of the inbox; no route or tool of an agent leads
here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, MemexError
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.documents.capture_note import CHANGE
from syncd.indexes import note_lookup
from syncd.promotion.plan import Plan, TakenDestination, refuse_unseen_change, reserve_paths
from syncd.promotion.promotions import Promotions
from syncd.promotion.return_to_inbox import is_promoted
from syncd.promotion.vault_snapshot import VaultSnapshot

MOST = 1_000  # captures in one call
AS_IT_IS = "this proposes a change of a note where that note is: approve it without a folder and suggestions"


def operations(promotions: Promotions, snapshot: VaultSnapshot) -> dict[str, Operation]:
    """Return the owner's operations on promotion, by name."""

    def promote(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        ids = note_lookup.drop_repeated(snapshot.captures.index, parse_ids(arguments))
        shown, dry_run = arguments.get("shown") or {}, bool(arguments.get("dry_run"))
        wanted = {"to": arguments.get("to"), "taken": _parse_taken(arguments)}
        changes = [id for id in ids if _is_change(snapshot, id)]
        plans, failed = _plan_promotions(
            promotions, snapshot, [id for id in ids if id not in changes], wanted, shown=shown
        )
        done, planned = _apply_changes(
            promotions, snapshot, changes, wanted, failed=failed, shown=shown, dry_run=dry_run
        )
        if dry_run:
            return {"promoted": [], "planned": [*(_plan_fields(plan) for _, plan in plans), *planned], "failed": failed}
        done += _carry_out_plans(promotions, plans, progress, failed)
        return {"promoted": done, "planned": [], "failed": failed}

    def unpromote(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        ids = _drop_repeated(promotions, snapshot, parse_ids(arguments))
        done, failed = run_each(ids, promotions.unpromote, progress, "bringing back")
        return {"returned": done, "failed": failed}

    def list_promoted(arguments: Arguments, _: Progress) -> list[dict[str, Any]]:
        return promotions.latest(int(arguments.get("limit") or 50))

    return {"promote": promote, "unpromote": unpromote, "promoted": list_promoted}


def parse_ids(arguments: Arguments) -> list[str]:
    """Return the ids or paths of captures that a request names, each once. Raises InvalidArgument for none, and for too many."""
    ids = list(dict.fromkeys(arguments.get("ids") or ()))
    if not 1 <= len(ids) <= MOST:
        raise InvalidArgument(f"name 1 to {MOST:,} notes by their ids or paths")
    return ids


def run_each(
    ids: Sequence[str], work: Callable[[str], dict[str, Any]], progress: Progress, stage: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Apply an operation to each id; return the results and the failures."""
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for number, id in enumerate(ids, 1):
        try:
            done.append(work(id))
        except MemexError as error:
            failed.append({"id": id, "error": error.as_dict()})
        progress({"done": number, "total": len(ids), "stage": stage})
    return done, failed


def _drop_repeated(promotions: Promotions, snapshot: VaultSnapshot, ids: Sequence[str]) -> list[str]:
    """Return the ids and paths without those that mean the same promoted note or applied change as an earlier one."""
    changes = {id: change.seq for id in ids if (change := promotions.find_applied_change(id))}
    first = {change: id for id, change in reversed(changes.items())}
    fits = partial(is_promoted, snapshot, promotions.journal)
    notes = note_lookup.drop_repeated(snapshot.notes.index, [id for id in ids if id not in changes], fits)
    return [id for id in ids if id in {*first.values(), *notes}]


def _parse_taken(arguments: Arguments) -> list[str]:
    """Return the suggested tags and links that the notes get."""
    taken = arguments.get("take") or []
    if not isinstance(taken, list) or not all(isinstance(name, str) for name in taken):
        raise InvalidArgument("take must be a list of suggested tags and links", field="take")
    return taken


def _plan_promotions(
    promotions: Promotions,
    snapshot: VaultSnapshot,
    ids: Sequence[str],
    wanted: Mapping[str, Any],
    *,
    shown: Mapping[str, str],
) -> tuple[list[tuple[str, Plan]], list[dict[str, Any]]]:
    """Plan the promotion of each note; return the plans, each with the id or path that the caller sent, and the failures.

    `wanted`: the folder and the suggestions to take. `shown`: by id, the SHA-256 of the capture that the owner saw; another one
    is a failure."""
    plans: list[tuple[str, Plan]] = []
    failed: list[dict[str, Any]] = []
    reserved: dict[str, str] = {}
    for id in ids:
        try:
            plan = promotions.make_plan(snapshot.find_capture(id), reserved=reserved, **wanted)
            refuse_unseen_change(promotions.journal, plan.source, plan.raw, shown.get(id))
        except TakenDestination as error:
            way_out = "name another folder with --to, or mark the capture (promote: true) to be asked in a note"
            failed.append({"id": id, "error": Conflict(f"{error.message}; {way_out}", target=error.target).as_dict()})
        except MemexError as error:
            failed.append({"id": id, "error": error.as_dict()})
        else:
            plans.append((id, plan))
            reserve_paths(reserved, plan)
    return plans, failed


def _carry_out_plans(
    promotions: Promotions, plans: Sequence[tuple[str, Plan]], progress: Progress, failed: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Carry out promotions; return the outcomes, and add to `failed`."""
    outcomes = promotions.carry_out(
        [plan for _, plan in plans],
        progress=lambda number, of, stage: progress({"done": number, "total": of, "stage": stage}),
    )
    done: list[dict[str, Any]] = []
    for (id, _), outcome in zip(plans, outcomes, strict=True):
        if isinstance(outcome, MemexError):
            failed.append({"id": id, "error": outcome.as_dict()})
        else:
            done.append(outcome | {"applied": False})
    return done


def _is_change(snapshot: VaultSnapshot, id: str) -> bool:
    """Return whether an id or path means a capture that proposes a change of a note."""
    with suppress(MemexError):  # planning its promotion reports it
        return snapshot.find_capture(id).type == CHANGE
    return False


def _apply_changes(
    promotions: Promotions,
    snapshot: VaultSnapshot,
    ids: Sequence[str],
    wanted: Mapping[str, Any],
    *,
    failed: list[dict[str, Any]],
    shown: Mapping[str, str],
    dry_run: bool,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Apply proposed changes of notes, or only plan them; return the outcomes and the plans, and add to `failed`."""
    done: list[dict[str, Any]] = []
    planned: list[dict[str, Any]] = []
    for id in ids:
        try:
            path = snapshot.find_capture(id).path
            if wanted["to"] is not None or wanted["taken"]:
                raise InvalidArgument(AS_IT_IS)
            raw, _ = snapshot.vault.read(path)
            refuse_unseen_change(promotions.journal, path, raw, shown.get(id))
            seen = sha256(raw) if id in shown else None
            if dry_run:
                plan = promotions.changes.plan(path, shown=seen)
                fields = {"id": plan.document_id, "source": plan.source, "target": plan.target}
                planned.append(fields | {"chosen": "change", "file": None})
            else:
                done.append(promotions.apply_change(path, shown=seen) | {"applied": True})
        except MemexError as error:
            failed.append({"id": id, "error": error.as_dict()})
    return done, planned


def _plan_fields(plan: Plan) -> dict[str, Any]:
    fields = {"id": plan.id, "source": plan.source, "target": plan.target, "chosen": plan.chosen}
    return fields | {"file": plan.stored.new if plan.stored else None}
