"""Run a consolidation of the vault: report what needs attention in a note with boxes, and carry out the ticked boxes.

Laws, tested: a second run writes nothing; a report that a person has edited is never overwritten, except for the
lines that state outcomes; nothing is done without a tick, and nothing twice."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from index.document_ids import sha256
from index.errors import MemexError, NotFound, Unavailable
from index.graph.vertex import Vertex
from index.timings import now_ms
from syncd.consolidation.analysis.findings import Findings
from syncd.consolidation.finding_proposals import ShownProposal, is_complete, make_proposals, make_report
from syncd.consolidation.note_merge import missing_blocks
from syncd.consolidation.proposal_execution import KINDS
from syncd.consolidation.report_lines import ReportedProposal, read_proposals
from syncd.consolidation.report_note import ReportEntry, WorkspaceReport, compose_report, draw_clusters
from syncd.git.repository import Repository
from syncd.history.audit_log import CONSOLIDATION, acting_as
from syncd.notes.checkboxes import (
    MARKS,
    Answer,
    ProposalOutcome,
    find_checkboxes,
    mark_checkboxes,
    read_answers,
    write_outcomes,
    write_undone,
)
from syncd.notes.front_matter import decode, encode
from syncd.promotion.proposal_store import OPEN, Proposals
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.vault.location import REPORTS
from syncd.vault.vault import LOST

Progress = Callable[[int, int, str], object]
FACT: Final = "consolidation"  # named value: the facts about the last run
TABLE: Final = "Review.base"

log = logging.getLogger(__name__)


class Consolidation:
    """Scans the inbox and reports. Safe from any thread: one run, or one reading of the boxes, at a time."""

    def __init__(
        self,
        snapshot: VaultSnapshot,
        ledger: Ledger,
        proposals: Proposals,
        repo: Repository,
        *,
        look: Callable[[str], Findings[Any]],
        workspaces: Callable[[], Sequence[str]],
        vertex: Callable[[str, str], Vertex | None],
        waiting: Callable[[], int],
    ) -> None:
        self._snapshot, self._ledger, self._proposals, self._repo = snapshot, ledger, proposals, repo
        self._look, self._workspaces, self._vertex, self._waiting = look, workspaces, vertex, waiting
        self._lock = threading.RLock()
        self._seen: dict[str, object] = {}  # path of a report → its stat when its boxes were last read

    @property
    def folder(self) -> str:
        """Return the folder of the reports."""
        return f"{self._snapshot.inbox}/{REPORTS}"

    def run(
        self,
        stopping: threading.Event,
        *,
        workspace: str | None = None,
        dry: bool = False,
        again: bool = False,
        progress: Progress = lambda *_: None,
    ) -> dict[str, Any]:
        """Carry out the ticked proposals, scan all workspaces, and write a report if there is something new.

        With `dry` or a `workspace`, nothing is written, and the answer contains the report as text. With `again`,
        proposals that no report contains any more count as new."""
        dry = dry or workspace is not None
        with self._lock, acting_as(CONSOLIDATION):
            carried = {} if dry else self.carry_out_ticked(stopping)
            names = [workspace] if workspace else list(self._workspaces())
            all_findings = self._scan_workspaces(names, progress)
            offered = [list(make_proposals(findings, *self._lookups(findings))) for findings in all_findings]
            every = [offer.proposal for group in offered for offer in group]
            keys = self._proposals.waiting_keys(every) if dry else self._proposals.offer(every)
            if not dry:
                self._withdraw_outdated(all_findings, keys)
            reports = [
                self._report(findings, group, set(keys)) for findings, group in zip(all_findings, offered, strict=True)
            ]
            answer: dict[str, Any] = {
                "workspaces": [_summarize_findings(findings) for findings in all_findings],
                "proposals": len(keys),
                "new": len(set(keys) - self._open_keys() if again and not dry else self._proposals.list_unplaced(keys)),
                "report": None,
                "carried": [{"done": outcome.done, "said": outcome.said} for outcome in carried.values()],
            }
            if dry:
                return answer | {"text": compose_report(_today(), reports, waiting=self._waiting())}
            if answer["new"]:
                answer["report"] = self._write_report(reports, keys)
            self._write_facts(self._read_facts() | {"at": now_ms()})
            return answer

    def _scan_workspaces(self, names: Sequence[str], progress: Progress) -> list[Findings[Any]]:
        findings: list[Findings[Any]] = []
        for number, name in enumerate(names):
            progress(number, len(names), name)
            findings.append(self._look(name))
        progress(len(names), len(names), "reporting")
        return findings

    def carry_out_ticked(self, stopping: threading.Event | None = None) -> dict[str, ProposalOutcome]:
        """Read the boxes of changed reports, carry out the ticked proposals, and return their outcomes."""
        with self._lock, acting_as(CONSOLIDATION):
            if self._repo.busy_reason() or not self._snapshot.vault.is_present():
                return {}
            changed = self._read_changed(self._snapshot.settings.sync.adopt_s)
            try:
                texts = [decode(raw) for raw, _ in changed.values()]
                self._proposals.record_answers(read_answers(texts))
                self._reopen_unticked({box.key for text in texts for box in find_checkboxes(text) if box.mark == " "})
                return self._carry_out_accepted(changed, stopping)
            except BaseException:
                self._seen.clear()  # the next run reads their boxes again
                raise

    def answer(
        self, answers: Mapping[str, Answer], stopping: threading.Event | None = None
    ) -> dict[str, ProposalOutcome]:
        """Write the owner's answers into the boxes of the reports, carry out the accepted proposals, and return the outcomes.

        Raises NotFound if no report has a box for a proposal that waits, Conflict if a report is being edited."""
        with self._lock:
            if reason := self._repo.busy_reason():
                raise Unavailable(f"a Git operation is in progress ({reason}); answer the proposals after it")
            self._mark_boxes(answers)
            with acting_as(CONSOLIDATION):
                self._proposals.record_answers(answers)
                return self._carry_out_accepted({}, stopping)

    def _mark_boxes(self, answers: Mapping[str, Answer]) -> None:
        """Write the answers into all boxes of these proposals."""
        vault = self._snapshot.vault
        texts = {path: decode(vault.read(path)[0]) for path in vault.list_notes(self.folder).files}
        boxes = {box.key for text in texts.values() for box in find_checkboxes(text)}
        if missing := [key for key in answers if key not in boxes & self._proposals.list_in(OPEN).keys()]:
            raise NotFound(f"no report has a box for {missing[0][:40]!r}; memex consolidate --list shows the proposals")
        marks = {key: MARKS[answer] for key, answer in answers.items()}
        for path, text in texts.items():
            if (marked := mark_checkboxes(text, marks)) != text:
                vault.replace(path, encode(marked), digest=sha256(encode(text)))
                self._snapshot.sync.hint([path])

    def _carry_out_accepted(
        self, changed: dict[str, tuple[bytes, object]], stopping: threading.Event | None
    ) -> dict[str, ProposalOutcome]:
        """Carry out the accepted proposals, and write all outcomes into the changed reports and those of the proposals."""
        done = self._proposals.carry_out(stopping)
        if done:
            self._seen.clear()  # several reports may contain a proposal, and links in all of them may have been rewritten
            changed = self._read_changed(quiet_s=0)
            self._seen.clear()  # reports that were being edited still have boxes to read
        if changed:
            self._write_outcomes(changed)
        return done

    def list_proposals(self) -> list[ReportedProposal]:
        """List the proposals that wait for an answer, as the reports show them, those of the newest report first.

        Raises Unavailable while the vault is missing: its reports are not gone."""
        vault, waiting = self._snapshot.vault, self._proposals.list_in(OPEN)
        listed: dict[str, ReportedProposal] = {}
        if not vault.is_present():
            raise Unavailable(LOST)
        for path in sorted(vault.list_notes(self.folder).files, reverse=True):
            with suppress(MemexError):  # missing, or being written
                for line in read_proposals(decode(vault.read(path)[0])):
                    if line.key in waiting and line.key not in listed:
                        listed[line.key] = ReportedProposal(path, line, *waiting[line.key])
        return list(listed.values())

    def _reopen_unticked(self, keys: set[str]) -> None:
        """Reopen accepted proposals whose box is empty again, unless another report still has the tick."""
        if accepted := keys & self._proposals.list_in(["accepted"]).keys():
            vault, texts = self._snapshot.vault, []
            for path in vault.list_notes(self.folder).files:
                with suppress(NotFound):
                    texts.append(decode(vault.read(path)[0]))
            self._proposals.reopen(accepted - read_answers(texts).keys())

    def facts(self) -> dict[str, Any]:
        """Return what the owner's status page shows about consolidation."""
        known, counts = self._read_facts(), self._proposals.counts()
        return {
            "at": known.get("at"),
            "waiting": counts["open"],
            "accepted": counts["accepted"],
            "report": self._path_if_present(known.get("report", "")),
            "problem": self._proposals.problem,
        }

    def _path_if_present(self, path: str) -> str:
        with suppress(MemexError):  # the vault is unavailable, so this is unknown
            return path if path and self._snapshot.vault.stat(path) else ""
        return path

    # Boxes

    def _read_changed(self, quiet_s: float) -> dict[str, tuple[bytes, object]]:
        """Read the reports that changed since the last reading and have been quiet for `quiet_s`; with their bytes."""
        vault = self._snapshot.vault
        changed: dict[str, tuple[bytes, object]] = {}
        listed = vault.list_notes(self.folder).files
        self._seen = {path: stat for path, stat in self._seen.items() if path in listed}
        for path, stat in listed.items():
            age_s = time.time() - stat.mtime_ns / 1e9
            if self._seen.get(path) == stat or 0 <= age_s < quiet_s:
                continue
            with suppress(MemexError):  # missing, or being written: read it next time
                changed[path] = vault.read(path)
                self._seen[path] = changed[path][1]
        return changed

    def _open_keys(self) -> set[str]:
        """Return the keys of the boxes in all reports."""
        keys: set[str] = set()
        for path in self._snapshot.vault.list_notes(self.folder).files:
            with suppress(MemexError):  # missing, or being written
                keys |= {box.key for box in find_checkboxes(decode(self._snapshot.vault.read(path)[0]))}
        return keys

    def _write_outcomes(self, reports: Mapping[str, tuple[bytes, object]]) -> None:
        """Write the outcomes of proposals into their reports."""
        outcomes = self._proposals.outcomes()
        for path, (raw, _) in reports.items():
            text = write_outcomes(decode(raw), outcomes, _today())
            if (after := encode(text)) != raw:
                try:
                    self._snapshot.vault.replace(path, after, digest=sha256(raw))
                except MemexError as error:  # a person is editing it, or the disk fails: try again
                    log.info("the outcomes in %s are written later: %s", path, error.message)
                    self._seen.pop(path, None)
                self._snapshot.sync.hint([path])

    def write_undone(self, key: str, is_undone: Callable[[str], bool]) -> None:
        """Mark a proposal as undone in all reports. If another proposal has the same outcome, their lines can't be distinguished, and both stay."""
        outcomes = {other: outcome.said for other, outcome in self._proposals.outcomes().items() if outcome.done}
        message = outcomes.pop(key, None)
        if message is None or any(text == message and not is_undone(other) for other, text in outcomes.items()):
            return
        vault = self._snapshot.vault
        with self._lock, acting_as(CONSOLIDATION), suppress(Unavailable):  # the vault is missing
            for path in vault.list_notes(self.folder).files:
                with suppress(MemexError):  # a person is editing it, or the disk fails
                    raw, _ = vault.read(path)
                    if (after := encode(write_undone(decode(raw), message, _today()))) != raw:
                        vault.replace(path, after, digest=sha256(raw))
                        self._snapshot.sync.hint([path])

    # The report

    def _lookups(self, findings: Findings[Any]) -> tuple[Callable[[str], Vertex | None], Callable[[str], str | None]]:
        index, name = self._snapshot.captures.index, findings.workspace

        def path(id: str) -> str | None:
            record = index.record(id, name)
            return record.path if record else None

        return lambda node: self._vertex(name, node), path

    def _withdraw_outdated(self, all_findings: Sequence[Findings[Any]], keys: Iterable[str]) -> None:
        """Withdraw the open proposals that this scan should have found again and did not."""
        looked = {
            (findings.workspace, kind) for findings in all_findings for kind in KINDS if is_complete(findings, kind)
        }
        open_ = self._proposals.list_in(["open"])
        kept = {key for key, (kind, about) in open_.items() if (about.get("workspace"), kind) not in looked}
        self._proposals.withdraw(KINDS, kept | set(keys))

    def _report(self, findings: Findings[Any], offered: Sequence[ShownProposal], keys: set[str]) -> WorkspaceReport:
        shown = [self._with_added_text(offer.entry) for offer in offered if offer.proposal.key in keys]
        return make_report(findings, shown, *self._lookups(findings))

    def _with_added_text(self, entry: ReportEntry) -> ReportEntry:
        """Return the entry with the text that the kept note would get."""
        if entry.kind != "merge-duplicates":
            return entry
        with suppress(MemexError):
            kept, other = (decode(self._snapshot.vault.read(path)[0]) for path in entry.paths)
            return replace(entry, adds=missing_blocks(kept, other))
        return entry

    def _write_report(self, reports: Sequence[WorkspaceReport], keys: Sequence[str]) -> str:
        """Write the report, replacing an unedited one of the same day, and return its path."""
        vault, day, drawn = self._snapshot.vault, _today(), draw_clusters(reports)
        known: dict[str, list[str]] = self._read_facts().get("files", {})
        for number in range(1, 1_000):
            more = f" {number}" if number > 1 else ""
            path, canvas = f"{self.folder}/{day} Consolidation{more}.md", f"{self.folder}/{day} Clusters{more}.canvas"
            held = {file: self._read_if_present(file) for file in (path, canvas)}
            if all(raw is None or sha256(raw) in known.get(file, ()) for file, raw in held.items()):
                break
        table = f"{self._snapshot.inbox}/{TABLE}"
        text = compose_report(
            day,
            reports,
            canvas=canvas if drawn else "",
            table=table if vault.stat(table) else "",
            waiting=self._waiting(),
        )
        wanted = {canvas: drawn.encode("utf-8", "replace") if drawn else None, path: text.encode("utf-8", "replace")}
        # Recorded before the files are written, so that after a crash they are known as Memex's own.
        files = {file: [sha256(raw) for raw in (held[file], new) if raw is not None] for file, new in wanted.items()}
        self._write_facts(self._read_facts() | {"files": files, "report": path})
        for file, raw in wanted.items():
            self._write_file(file, held[file], raw)
        self._proposals.mark_placed(keys, path)
        self._snapshot.sync.hint([path])
        return path

    def _read_if_present(self, path: str) -> bytes | None:
        try:
            return self._snapshot.vault.read(path)[0]
        except NotFound:
            return None

    def _write_file(self, path: str, before: bytes | None, after: bytes | None) -> None:
        if before == after:
            return
        if before is None and after is not None:
            self._snapshot.vault.create(path, after)
        elif before is not None and after is None:
            self._snapshot.vault.remove(path, digest=sha256(before))
        elif before is not None and after is not None:
            self._snapshot.vault.replace(path, after, digest=sha256(before))

    # Stored facts

    def _read_facts(self) -> dict[str, Any]:
        return dict(json.loads(named_values.read(self._ledger, FACT) or "{}"))

    def _write_facts(self, facts: Mapping[str, Any]) -> None:
        named_values.write(self._ledger, {FACT: json.dumps(facts)})


def _summarize_findings(findings: Findings[Any]) -> dict[str, Any]:
    graph = {key: findings.graph.of[key] for key in ("stale_summaries", "orphaned_nodes")}
    return {
        "workspace": findings.workspace,
        "documents": findings.documents,
        **findings.of,
        **graph,
        "degraded": list(findings.degraded),
    }


def _today() -> str:
    return time.strftime("%Y-%m-%d")
