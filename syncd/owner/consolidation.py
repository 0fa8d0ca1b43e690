"""Define the owner's operations on consolidation: scan and report, list and answer proposals, undo those carried out.

Law: no route or tool of an agent leads to these operations, because a tick is the owner's decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from index.errors import Conflict, InvalidArgument, MemexError
from index.model import Record
from index.names import replace_surrogates
from index.timings import now_ms
from syncd.consolidation.consolidation import Consolidation
from syncd.consolidation.note_merge import missing_blocks
from syncd.consolidation.proposal_execution import ProposalExecution
from syncd.consolidation.report_lines import ReportedProposal
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.daemon.vault_services import VaultServices
from syncd.history.change_journal import FileChange
from syncd.history.note_history import diff_texts
from syncd.history.undo import Undo
from syncd.jobs.run_history import Run
from syncd.jobs.scheduler import Scheduler
from syncd.notes.checkboxes import MARKS
from syncd.notes.front_matter import decode, split
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.workspaces.agent_access import AgentAccess

JOB = "consolidation"
MOST = 1_000  # answers in one call
TEXT = 20_000  # characters of a note
CARRIED = 50  # proposals that were carried out
FILES = 50  # changed files of one of them


def operations(
    services: VaultServices, agent_access: AgentAccess, jobs: Callable[[], Scheduler]
) -> dict[str, Operation]:
    """Return the owner's operations, by name."""
    consolidation, execution = services.consolidation, services.proposal_execution
    return {
        "consolidate": partial(_run, consolidation, agent_access, jobs),
        "consolidate.list": partial(_list, services),
        "consolidate.answer": partial(_answer, consolidation, jobs),
        "consolidate.undo": partial(_undo, consolidation, execution, services.undo),
    }


def _run(
    consolidation: Consolidation,
    agent_access: AgentAccess,
    jobs: Callable[[], Scheduler],
    arguments: Arguments,
    progress: Progress,
) -> dict[str, Any]:
    """Scan and report; a run of all workspaces is recorded as a run of the job."""
    workspace = agent_access.workspace(name).name if (name := arguments.get("workspace")) else None
    dry, began, at = bool(arguments.get("dry_run")), time.monotonic(), now_ms()
    outcome = consolidation.run(
        jobs().stopping,
        workspace=workspace,
        dry=dry,
        again=True,
        progress=lambda done, total, stage: progress({"done": done, "total": total, "stage": stage}),
    )
    if not dry and workspace is None:
        jobs().record_run(JOB, Run(at, time.monotonic() - began, ""))
    return outcome


def _list(services: VaultServices, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """List the proposals that wait, and those carried out last, `carried` at most, with their files; `patch`: and differences."""
    consolidation, patch = services.consolidation, bool(arguments.get("patch"))
    carried = services.proposal_execution.latest(min(int(arguments.get("carried") or CARRIED), CARRIED))
    return {
        "proposals": [_proposal_fields(services.snapshot, proposal) for proposal in consolidation.list_proposals()],
        "carried": [row | _change_fields(services, row["key"], patch=patch) for row in carried],
        **consolidation.facts(),
    }


def _change_fields(services: VaultServices, key: str, *, patch: bool) -> dict[str, Any]:
    """Return the files that a proposal changed, and how many more there are."""
    steps = services.proposal_execution.changes_of(key)
    files = []
    for step in steps[:FILES]:
        fields: dict[str, Any] = {"path": step.path, "did": _describe_step(step)}
        if patch and fields["did"] == "changed":
            fields["diff"] = _diff_step(services, step)
        files.append(fields)
    return {"files": files, "more": max(0, len(steps) - FILES)}


def _describe_step(step: FileChange) -> str:
    return "removed" if not step.now else "changed" if step.was else "added"


def _diff_step(services: VaultServices, step: FileChange) -> list[str] | None:
    """Return the differing lines of a changed note; None if a text is no longer kept. The graph's changes keep one text."""
    before = step.before if step.before is not None else services.history.read_version(step.was, step.path)
    if before is None:
        return None
    after = step.after if step.after is not None else services.history.read_version(step.now, step.path)
    if after is None:
        return None
    was, now = (raw.decode("utf-8", "backslashreplace") for raw in (before, after))
    return diff_texts(was, now, step.path, step.path)


def _answer(
    consolidation: Consolidation, jobs: Callable[[], Scheduler], arguments: Arguments, _: Progress
) -> dict[str, Any]:
    answers = dict(arguments.get("answers") or {})
    if not 1 <= len(answers) <= MOST or not MARKS.keys() >= set(answers.values()):
        raise InvalidArgument(f"answer 1 to {MOST:,} proposals by their keys, each with {' or '.join(MARKS)}")
    outcomes = consolidation.answer(answers, jobs().stopping)
    return {
        "dismissed": sum(answer == "dismissed" for answer in answers.values()),
        "carried": [{"key": key, "done": outcome.done, "said": outcome.said} for key, outcome in outcomes.items()],
        "problem": consolidation.facts()["problem"],
    }


def _undo(
    consolidation: Consolidation,
    execution: ProposalExecution,
    undo: Undo,
    arguments: Arguments,
    progress: Progress,
) -> dict[str, Any]:
    """Undo a proposal that was carried out, and mark it in its report."""
    key = str(arguments["key"])
    changed = _undo_in_graph(key, execution, undo, progress) if execution.is_by_graph(key) else execution.undo(key)
    consolidation.write_undone(key, execution.is_undone)
    return {"key": key, "changed": changed}


def _undo_in_graph(key: str, execution: ProposalExecution, undo: Undo, progress: Progress) -> list[str]:
    """Undo what the graph wrote, as the writes of one call; return the changed files."""
    steps = undo.plan(undo.writes_of_call(key)[0])
    done, skipped = undo.carry_out(
        steps, lambda number, of, stage: progress({"done": number, "total": of, "stage": stage})
    )
    if skipped:
        raise Conflict(f"{skipped[0].path} is as before the undo: {skipped[0].reason}")
    execution.mark_undone(key)
    return [step.path for step in done]


def _proposal_fields(snapshot: VaultSnapshot, proposal: ReportedProposal) -> dict[str, Any]:
    """Return a proposal with the texts of its notes as they are now."""
    about, line = proposal.about, proposal.line
    hashes = dict(zip(about.get("ids", ()), about.get("hashes", ()), strict=False))
    notes, raws = [], []
    for id in about.get("ids", ()):
        record = snapshot.captures.index.record(id, about.get("workspace"))
        if record is not None:
            fields, raw = _note_fields(snapshot, record, hashes.get(id))
            notes.append(fields)
            raws.append(raw)
    merges = proposal.kind == "merge-duplicates" and len(raws) == 2
    return {
        "key": line.key,
        "report": proposal.report,
        "ticked": line.mark in "xX",
        "kind": proposal.kind,
        "workspace": about.get("workspace"),
        "sentence": line.sentence.removeprefix(f"{about.get('workspace')}: "),
        "reason": line.reason,
        "would": list(about.get("would", ())),
        "adds": missing_blocks(*raws)[:TEXT] if merges else "",
        "notes": notes,
    }


def _note_fields(snapshot: VaultSnapshot, record: Record, proposed: str | None) -> tuple[dict[str, Any], str]:
    """Return a note of a proposal, and its whole text. `proposed`: the digest of its text when it was proposed."""
    text, changed = "", False
    try:
        raw, stat = snapshot.vault.read(record.path)
        text = replace_surrogates(decode(raw))
        changed = proposed is not None and snapshot.parse(raw, record.path, stat).content_hash != proposed
    except MemexError:  # the note was removed a moment ago
        pass
    fields = {"id": record.id, "path": record.path, "title": record.title, "created_at": record.created_at}
    body = split(text)[1]
    more = max(0, len(body) - TEXT)
    return fields | {"source": record.source, "text": body[:TEXT], "more": more, "changed": changed}, text
