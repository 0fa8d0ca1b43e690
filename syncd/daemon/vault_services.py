"""Build the services for the vault itself: history, Git, promotion, review and consolidation.

Law: none of these services is handed to `mcp_server`. They read and write notes outside the inbox, which agents may
not do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from index.document_ids import sha256
from index.errors import MemexError, Unavailable
from index.foreground import foreground
from index.process_memory import release_unused
from index.timings import now_ms
from syncd.changes.change_approval import ChangePlans
from syncd.commits.commit_message import format_message
from syncd.commits.committer import Committer, DueCommit, MadeCommit
from syncd.consolidation.analysis.findings import Findings
from syncd.consolidation.consolidation import Consolidation
from syncd.consolidation.proposal_execution import KINDS, ProposalExecution
from syncd.consolidation.proposal_kinds import proposal_kinds
from syncd.context.generated_note import merge_notes
from syncd.context.note_facts import ContextFact
from syncd.daemon.open_parts import OpenParts
from syncd.documents.owner_marks import read_marks
from syncd.git.head_follower import HeadFollower
from syncd.history.audit_log import Events
from syncd.history.change_journal import ChangeJournal
from syncd.history.note_history import NoteHistory
from syncd.history.note_restore import NoteRestore
from syncd.history.undo import Undo
from syncd.history.write_lineage import RESTORE
from syncd.notes.front_matter import decode
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
from syncd.sharing.share_property import why_withheld
from syncd.sync.pipeline import Sync
from syncd.vault.location import ARCHIVE, REPORTS
from syncd.workspaces.agent_access import AgentAccess


@dataclass(frozen=True, slots=True)
class VaultServices:
    """Holds the services for the vault."""

    commits: Committer
    remote: RemoteSync
    history: NoteHistory
    undo: Undo
    restoring: NoteRestore  # restores notes as they were at a version
    proposals: Proposals  # the proposals to the vault's owner
    waiting: WaitingCaptures  # the captures that wait for the owner's decision
    snapshot: VaultSnapshot  # the vault as promotions see it
    promotions: Promotions
    proposal_execution: ProposalExecution  # carries out the accepted proposals of consolidation
    marked_captures: MarkedCaptures  # the job that promotes marked captures
    consolidation: Consolidation  # scans the inbox and writes reports
    review: Review  # the table of waiting captures, and suggestions for them
    archive: Archive  # archives captures
    manual_moves: ManualMoves  # the job that finishes manual moves
    write_contexts: Callable[[], int]  # writes the contexts that are out of date

    def make_due_commits(self) -> list[MadeCommit]:
        """Make the commits that Git did not allow earlier, and return them."""
        return self.promotions.finish_pending(at_once=True) + self.proposal_execution.finish_pending(at_once=True)

    def due_commits(self) -> Iterator[DueCommit]:
        """Yield the commits that Git did not allow earlier."""
        yield from self.promotions.due_commits()
        yield from self.proposal_execution.due_commits()

    def consolidation_facts(self) -> dict[str, Any]:
        """Return the state of consolidation."""
        with suppress(Unavailable):  # the ledger fails; the status must still work
            return self.consolidation.facts()
        return {}

    def promotion_facts(self) -> dict[str, Any]:
        """Return the state of promotions and of accepted proposals."""
        promotion = self.marked_captures.facts()
        with suppress(Unavailable):  # as above
            promotion |= self.promotions.facts()
            for name, more in self.proposal_execution.facts().items():
                promotion[name] += more
        return promotion

    def git_facts(self) -> dict[str, Any]:
        """Return the state of the exchange with the remote, and of commits."""
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
    changes = ChangePlans(vault, opened.settings.vault.inbox, history.read_version)
    promotions = Promotions(snapshot, journal, repo, commits, changes)
    proposal_execution = _build_proposal_execution(opened, agent_access, snapshot, promotions, commits)
    proposals = Proposals(ledger, now_ms)
    waiting = WaitingCaptures(captures)
    merging = DestinationConflicts(snapshot, promotions, proposals, opened.audit)
    review = Review(snapshot, waiting, repo, ledger)
    proposal_execution.register(proposals)
    united = ChangeJournal(ledger, vault, ("merge-duplicates",))
    return VaultServices(
        commits=commits,
        remote=_build_remote_sync(opened, head_follower, promotions, proposal_execution, commits),
        history=history,
        undo=undo,
        restoring=build_restore(opened, agent_access, history, commits, owner=promotions.owner),
        proposals=proposals,
        waiting=waiting,
        snapshot=snapshot,
        promotions=promotions,
        proposal_execution=proposal_execution,
        manual_moves=ManualMoves(snapshot, promotions, MovedNotes(snapshot, ledger, opened.audit), repo),
        marked_captures=MarkedCaptures(snapshot, promotions, waiting, merging, repo=repo, stopping=stopping),
        consolidation=build_consolidation(opened, agent_access, snapshot, proposals, review, stopping=stopping),
        review=review,
        write_contexts=partial(_write_contexts, opened, agent_access),
        archive=Archive(snapshot, promotions, waiting, opened.audit, repo, united=united),
    )


def build_history(opened: OpenParts, agent_access: AgentAccess, journal: ChangeJournal) -> tuple[NoteHistory, Undo]:
    """Build the note history, and the undo of agents' writes."""
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


def build_restore(
    opened: OpenParts,
    agent_access: AgentAccess,
    history: NoteHistory,
    commits: Committer,
    *,
    owner: Callable[[], str],
) -> NoteRestore:
    """Build the restore of versions, each of which is a commit that names the owner."""

    def commit(path: str, raw: bytes, sentence: str) -> str | None:
        message = format_message(sentence, [], [("Approved-By", owner()), ("Memex-Tool", RESTORE)])
        made = commits.commit({path: sha256(raw)}, message, approved={path})
        if made is None and commits.is_on and commits.problem:
            raise Unavailable(commits.problem)
        return made

    return NoteRestore(
        opened.vault,
        history,
        inbox=opened.settings.vault.inbox,
        workspaces=agent_access.workspaces,
        commit=commit,
        indexed=partial(_index_now, opened.sync),
    )


def _build_proposal_execution(
    opened: OpenParts, agent_access: AgentAccess, snapshot: VaultSnapshot, promotions: Promotions, commits: Committer
) -> ProposalExecution:
    """Build the service that carries out proposals."""
    return ProposalExecution(
        snapshot,
        ChangeJournal(opened.ledger, opened.vault, KINDS),
        opened.repo,
        commits,
        kinds=proposal_kinds(snapshot, lambda name: agent_access.workspace(name).nodes),
        indexed=partial(_index_now, opened.sync),
        owner=promotions.owner,
        lock=promotions.lock,
        audit=opened.audit,
        read_version=promotions.changes.read_version,
    )


def build_consolidation(
    opened: OpenParts,
    agent_access: AgentAccess,
    snapshot: VaultSnapshot,
    proposals: Proposals,
    review: Review,
    *,
    stopping: Callable[[], threading.Event],
) -> Consolidation:
    """Build the service that scans the inbox and reports."""
    inbox = opened.settings.vault.inbox
    folders = [f"{inbox}/{name}" for name in (REPORTS, ARCHIVE)]

    def go_on() -> None:
        foreground.give_way()
        release_unused()  # LanceDB's answers leave hundreds of MB of free memory otherwise
        if stopping().is_set():
            raise Unavailable("consolidation was interrupted because the daemon is stopping; the next run starts again")

    def scan_workspace(workspace: str, **limits: int) -> Findings[Events]:
        from syncd.consolidation import workspace_scan  # noqa: PLC0415 - its rules take long to compile, and the job is rare

        index, graph = opened.captures.index, agent_access.workspace(workspace).nodes.report()
        linked = index.catalog.linked_names(folders) | opened.notes.index.catalog.linked_names(folders)
        now = now_ms()
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
    """Build the exchange with the remote; it commits Memex's changes first."""
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
        merge_note=merge_notes,
        flush=flush,
        reserved=opened.vault.reservations.reserve,
        moved=head_follower.notify_head_moved,
        untied=head_follower.notify_change,
    )


def _write_contexts(opened: OpenParts, agent_access: AgentAccess) -> int:
    """Write the contexts that are out of date, while all notes are indexed and no Git operation is in progress; return their number."""
    journal = ChangeJournal(opened.ledger, opened.vault, ("promote",))
    return opened.contexts.run(
        agent_access.workspaces(),
        is_promoted=partial(_is_promoted, opened, journal),
        quiet_s=opened.settings.sync.adopt_s,
        vault_version=opened.notes.index.generation,
        may_write=lambda: opened.builds.is_complete and not opened.repo.busy_reason(),
    )


def _is_promoted(opened: OpenParts, journal: ChangeJournal, fact: ContextFact) -> bool:
    """Return whether the capture of a fact is now a note outside the inbox, and agents may know its line."""
    moves = [
        entry for entry in journal.entries_named([fact.path]) if (entry.source, entry.state) == (fact.path, "done")
    ]
    record = opened.notes.index.record(moves[-1].document_id if moves else fact.id)
    inbox = f"{opened.settings.vault.inbox}/"
    if record is None or record.path.startswith(inbox):  # an archived capture is in the inbox
        return False
    try:
        text = decode(opened.vault.read(record.path)[0])
    except MemexError:  # it was just removed, or can't be read
        return False
    if opened.shares.rules.why_excluded(record.path) or why_withheld(text):
        return False
    if fact.promoted:
        return True
    # An agent can give the id and the path of a promoted note to another capture.
    entries = list(opened.audit.entries_backwards(fact.path))
    written_at = next((entry.at for entry in entries if entry.after), 0)
    if moves:
        return written_at <= moves[-1].at
    # A person has just moved the file, or another device may have promoted it, as only the note says.
    last = entries[0].after if entries else None
    is_promoted = not journal.entries_of(fact.id) and written_at <= (read_marks(text).promoted_at or 0)
    return last == record.digest or (last != "" and is_promoted)


def _index_now(sync: Sync, paths: Collection[str]) -> None:
    """Index written files now if possible, and accept that missing files are removed."""
    sync.hint(paths)
    with suppress(MemexError):  # then the pipeline itself tries again
        sync.run(paths, accept=True)
