"""Build the services for the vault itself: history, Git, promotion, review and consolidation.

Law: none of these services is handed to `mcp_server`. They read and write notes outside the inbox, which no agent
may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from index.errors import MemexError, Unavailable
from index.foreground import foreground
from syncd.commits.committer import Committer, DueCommit, MadeCommit
from syncd.consolidation.analysis.findings import Findings
from syncd.consolidation.consolidation import Consolidation
from syncd.consolidation.graph_proposals import graph_kinds
from syncd.consolidation.note_proposals import note_kinds
from syncd.consolidation.proposal_execution import KINDS, ProposalExecution
from syncd.daemon.open_parts import OpenParts
from syncd.git.head_follower import HeadFollower
from syncd.history.audit_log import Events
from syncd.history.change_journal import ChangeJournal
from syncd.history.note_history import NoteHistory
from syncd.history.undo import Undo
from syncd.promotion.destination_conflicts import DestinationConflicts
from syncd.promotion.manual_moves import ManualMoves
from syncd.promotion.marked_captures import MarkedCaptures
from syncd.promotion.moved_note_detection import MovedNotes
from syncd.promotion.promotions import WAYS as PROMOTIONS
from syncd.promotion.promotions import Promotions
from syncd.promotion.proposal_store import Proposals
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import WaitingCaptures
from syncd.remote.branch_sync import RemoteSync
from syncd.review.archive import WAYS, Archive
from syncd.review.review import Review
from syncd.sync.pipeline import Sync
from syncd.vault.location import ARCHIVE, REPORTS
from syncd.workspaces.agent_access import AgentAccess


@dataclass(frozen=True, slots=True)
class VaultServices:
    """The parts, each with its own law."""

    commits: Committer
    remote: RemoteSync
    history: NoteHistory
    undo: Undo
    proposals: Proposals  # what was proposed to the vault's owner
    waiting: WaitingCaptures  # the captures that wait for a decision
    snapshot: VaultSnapshot  # the vault, as a promotion meets it
    promotions: Promotions
    proposal_execution: ProposalExecution  # carries out what consolidation proposed
    marked_captures: MarkedCaptures  # the job that does what people have marked
    consolidation: Consolidation  # what looks for what needs attention, and reports
    review: Review  # the table of those, and suggestions for them
    archive: Archive  # captures that were set aside
    manual_moves: ManualMoves  # the job that finishes what people have dragged

    def make_due_commits(self) -> list[MadeCommit]:
        """Make the commits that Git did not allow when they were due; which those are."""
        return self.promotions.finish_pending(at_once=True) + self.proposal_execution.finish_pending(at_once=True)

    def due_commits(self) -> Iterator[DueCommit]:
        """Those commits, before they are made."""
        yield from self.promotions.due_commits()
        yield from self.proposal_execution.due_commits()

    def consolidation_facts(self) -> dict[str, Any]:
        """How what consolidation proposes stands."""
        with suppress(Unavailable):  # of the ledger; its owner must still be able to ask what is wrong
            return self.consolidation.facts()
        return {}

    def promotion_facts(self) -> dict[str, Any]:
        """How promotions stand, and what consolidation has carried out."""
        promotion = self.marked_captures.facts()
        with suppress(Unavailable):  # as above
            promotion |= self.promotions.facts()
            for name, more in self.proposal_execution.facts().items():
                promotion[name] += more
        return promotion

    def git_facts(self) -> dict[str, Any]:
        """How the exchange with the remote went, and what waits to be committed."""
        return {"exchange": self.remote.facts(), "commits": self.commits.facts()}


def build_services(
    opened: OpenParts, agent_access: AgentAccess, head_follower: HeadFollower, stopping: Callable[[], threading.Event]
) -> VaultServices:
    """Build the services for the open parts. `stopping` returns the event that ends the current jobs."""
    captures, vault, repo, ledger = opened.captures, opened.vault, opened.repo, opened.ledger
    snapshot = VaultSnapshot(vault, opened.sync, captures, opened.notes, opened.settings, opened.automatic)
    journal = ChangeJournal(ledger, vault, (*PROMOTIONS, *WAYS))
    history, undo = build_history(opened, agent_access, journal)
    commits = _build_committer(opened)
    promotions, proposal_execution = build_promotion(opened, agent_access, snapshot, journal, commits)
    proposals = Proposals(ledger, lambda: time.time_ns() // 1_000_000)
    waiting = WaitingCaptures(captures)
    merging = DestinationConflicts(snapshot, promotions, proposals)
    review = Review(snapshot, waiting, repo, ledger)
    proposal_execution.register(proposals)
    united = ChangeJournal(ledger, vault, ("merge-duplicates",))
    return VaultServices(
        commits=commits,
        remote=_build_remote_sync(opened, head_follower, promotions, proposal_execution, commits),
        history=history,
        undo=undo,
        proposals=proposals,
        waiting=waiting,
        snapshot=snapshot,
        promotions=promotions,
        proposal_execution=proposal_execution,
        manual_moves=ManualMoves(snapshot, promotions, MovedNotes(snapshot, ledger, opened.audit), repo),
        marked_captures=MarkedCaptures(snapshot, promotions, waiting, merging, repo=repo, stopping=stopping),
        consolidation=build_consolidation(opened, agent_access, snapshot, proposals, review, stopping=stopping),
        review=review,
        archive=Archive(snapshot, promotions, waiting, opened.audit, repo, united=united),
    )


def build_history(opened: OpenParts, agent_access: AgentAccess, journal: ChangeJournal) -> tuple[NoteHistory, Undo]:
    """What tells a note's history, and what takes back what agents wrote."""
    history = NoteHistory(
        opened.audit,
        opened.vault,
        opened.overwritten,
        opened.repo,
        lambda: [scope_index.index for scope_index in opened.builds.scopes.values()],
        journal=journal,
    )
    undo = Undo(
        opened.audit,
        opened.vault,
        history,
        inbox=opened.settings.vault.inbox,
        workspaces=agent_access.workspaces,
        indexed=partial(_index_now, opened.sync),
    )
    return history, undo


def build_promotion(
    opened: OpenParts, agent_access: AgentAccess, snapshot: VaultSnapshot, journal: ChangeJournal, commits: Committer
) -> tuple[Promotions, ProposalExecution]:
    """What moves captures into the vault proper, and what carries out what consolidation proposed."""
    promotions = Promotions(snapshot, journal, opened.repo, commits)
    proposal_execution = ProposalExecution(
        snapshot,
        ChangeJournal(opened.ledger, opened.vault, KINDS),
        opened.repo,
        commits,
        kinds=(*note_kinds(snapshot), *graph_kinds(snapshot, lambda name: agent_access.workspace(name).nodes)),
        indexed=partial(_index_now, opened.sync),
        owner=promotions.owner,
        lock=promotions.lock,
        audit=opened.audit,
    )
    return promotions, proposal_execution


def build_consolidation(
    opened: OpenParts,
    agent_access: AgentAccess,
    snapshot: VaultSnapshot,
    proposals: Proposals,
    review: Review,
    *,
    stopping: Callable[[], threading.Event],
) -> Consolidation:
    """What looks for what needs attention, and reports."""
    inbox = opened.settings.vault.inbox
    folders = [f"{inbox}/{name}" for name in (REPORTS, ARCHIVE)]

    def go_on() -> None:
        foreground.give_way()
        if stopping().is_set():
            raise Unavailable("consolidation was broken off, as the daemon stops; it begins anew the next time")

    def scan_workspace(workspace: str, **limits: int) -> Findings[Events]:
        from syncd.consolidation import workspace_scan  # noqa: PLC0415 - its rules take long to compile, for a rare job

        index, graph = opened.captures.index, agent_access.workspace(workspace).nodes.report()
        linked = index.linked_names(folders) | opened.notes.index.linked_names(folders)
        now = time.time_ns() // 1_000_000
        return workspace_scan.scan_workspace(index, workspace, graph, linked=linked, now=now, go_on=go_on, **limits)

    return Consolidation(
        snapshot,
        opened.ledger,
        proposals,
        opened.repo,
        look=scan_workspace,
        workspaces=agent_access.workspaces,
        vertex=lambda name, node: agent_access.workspace(name).nodes.graph.get(node),
        waiting=lambda: review.summary()["waiting"],
    )


def _build_committer(opened: OpenParts) -> Committer:
    settings = opened.settings
    return Committer(
        opened.repo,
        opened.vault,
        opened.audit,
        opened.ledger,
        settings.git,
        state=settings.state,
        inbox=settings.vault.inbox,
    )


def _build_remote_sync(
    opened: OpenParts,
    head_follower: HeadFollower,
    promotions: Promotions,
    proposal_execution: ProposalExecution,
    commits: Committer,
) -> RemoteSync:
    """The exchange with the remote; what is written is committed before."""
    settings = opened.settings

    def flush() -> int:
        return (
            len(promotions.finish_pending(at_once=True) + proposal_execution.finish_pending(at_once=True))
            + commits.flush()
        )

    return RemoteSync(
        opened.repo,
        settings.state,
        settings.git,
        inbox=settings.vault.inbox,
        flush=flush,
        reserved=opened.vault.reservations.reserve,
        moved=head_follower.notify_head_moved,
        untied=head_follower.notify_change,
    )


def _index_now(sync: Sync, paths: Collection[str]) -> None:
    """Look at what was written, now if that can be, and believe that what is gone is gone."""
    sync.hint(paths)
    with suppress(MemexError):  # then the pipe itself looks again
        sync.run(paths, accept=True)
