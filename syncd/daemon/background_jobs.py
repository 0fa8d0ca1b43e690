"""List the background jobs of a vault with their intervals, and build the worker that carries out the queue.

Law: each job starts from the files on disk, so a run may be missed, repeated or cut short without harm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from index.errors import run_all
from index.timings import now_ms
from syncd.captures import queued_note
from syncd.captures.inbox import Inbox
from syncd.daemon.open_parts import OpenParts
from syncd.daemon.vault_services import VaultServices
from syncd.enrichment.backfill import Backfill
from syncd.files.inbox_file_scanner import EVERY_S, InboxFileScanner
from syncd.history.audit_log import Author, acting_as
from syncd.history.audited_vault import AuditedVault
from syncd.history.change_journal import forget_bytes
from syncd.jobs.queued_job import Kind
from syncd.jobs.run_history import RunHistory
from syncd.jobs.scheduler import Scheduler
from syncd.jobs.worker import Handler, RunningJob, Worker
from syncd.remote.branch_sync import TICK_S
from syncd.state import trusted_time
from syncd.state.folder import remove_unfinished
from syncd.sync.deep_check import DAY_S
from syncd.sync.hand_edits import LATEST_MS
from syncd.uploads.chunk_files import has_space
from syncd.uploads.upload_sessions import Uploads
from syncd.workspaces.agent_access import AgentAccess

log = logging.getLogger(__name__)

CONVERTERS = 2  # files converted at a time, each in its own process
COMMITS_S = 9.0  # interval of the check whether written files are quiet
MINUTE_S, HOUR_S = 60.0, 3600.0
NIGHT = "0 3 * * *"  # when jobs run that read all captures
REMOTE = "remote"  # the job that pulls and pushes
ROOT_S = 9.0  # interval of the check whether the vault is there
CONTEXT_S = 9.0  # interval of the check whether a context is out of date: it compares numbers and stats
TICKS_S = MINUTE_S  # interval of the check for ticked boxes in reports: it lists a folder
MARKS_S = 3.0  # interval of the check for promotion marks: it compares a number
LEAST_FREE = 16 << 20  # free bytes on the vault's disk below which no queued note is tried
LEFT_S = 3600.0  # age from which a half-written file is a leftover


def build_scheduler(
    opened: OpenParts, services: VaultServices, *, uploads: Uploads, dropped: InboxFileScanner, backfill: Backfill
) -> Scheduler:
    """Build the jobs of this vault, without starting them.

    Jobs count their first runs from when they are built, and can't be started again once stopped. An App builds them
    twice: for a command that runs one job, and when it begins to serve."""
    settings = opened.settings
    planned = Scheduler(RunHistory(opened.ledger))
    planned.every("listing", settings.sync.listing_s, opened.sync.list_now, rests=False)  # its interval is a setting
    planned.every("root", ROOT_S, partial(_check_root, opened))
    planned.every("maintenance", 30.0, partial(_maintain_indexes, opened))
    due_s = opened.check.due_in(now_ms())
    planned.every("deep check", DAY_S, partial(_check_deeply, opened, planned), after=due_s)
    planned.every("leftovers", DAY_S, partial(_remove_leftovers, opened))
    planned.every("ended jobs", HOUR_S, partial(_prune_ended_jobs, opened))
    planned.every("dropped files", EVERY_S, dropped.queue_quiet_files)
    planned.every("commits", COMMITS_S, services.commits.tick)
    planned.every("uploads", MINUTE_S, uploads.remove_stale)
    planned.every("promotion", MARKS_S, partial(_promote_marked, opened.vault, services))
    planned.every("ticked proposals", TICKS_S, partial(services.consolidation.carry_out_ticked, planned.stopping))
    if when := settings.consolidate.cron:
        planned.cron("consolidation", when, partial(services.consolidation.run, planned.stopping))
    planned.every("manual moves", MARKS_S, services.manual_moves.run)
    planned.every("old versions", HOUR_S, partial(_forget_old_versions, opened))
    for name, seconds, work in (
        ("archive", MINUTE_S, partial(services.archive.run, planned.stopping)),
        ("review", MINUTE_S, partial(services.review.run, planned.stopping)),
        ("enrichment", MINUTE_S, backfill.retry_failed),
    ):
        planned.every(name, seconds, _as_daemon(name, work))
    contexts = partial(_write_contexts, opened.vault, services)
    planned.every("context", CONTEXT_S, _as_daemon("context", contexts), rests=False)  # the watcher skips their folder
    planned.cron("suggestions", NIGHT, _as_daemon("review", partial(services.review.run_again, planned.stopping)))
    exchanges = settings.git.push or settings.git.pull_s > 0
    planned.every(REMOTE, TICK_S, services.remote.tick, soon=True, rests=not exchanges)
    return planned


def build_worker(opened: OpenParts, agent_access: AgentAccess, inbox: Inbox, files: Handler) -> Worker:
    """Build the worker of the queue, without starting it. `files` makes notes of files."""

    def find_hindrance(kind: Kind) -> str:
        if not opened.vault.is_present():
            return "the vault is missing"
        with suppress(OSError):  # the vault has just disappeared
            if not has_space(opened.vault.root, 0, free=opened.settings.kb.free if kind == "file" else LEAST_FREE):
                return "the vault's disk is almost full"
        return "" if inbox.captures.index.can_embed else opened.embedder.problem or "the encoder is not ready yet"

    def make_note(running_job: RunningJob) -> str:
        agent_access.workspace(running_job.job.workspace)  # raises if the workspace was deleted meanwhile
        return queued_note.create_document(inbox, running_job)

    carried = Worker(opened.queue, find_hindrance)
    carried.register("note", make_note)
    carried.register("file", files, threads=CONVERTERS)
    return carried


def _as_daemon(part: str, work: Callable[[], object]) -> Callable[[], object]:
    return acting_as(Author("daemon", part))(work)


def _check_deeply(opened: OpenParts, planned: Scheduler) -> None:
    opened.check.run(planned.stopping)
    planned.run_in("deep check", opened.check.due_in(now_ms()))


def _promote_marked(vault: AuditedVault, services: VaultServices) -> None:
    if vault.is_present():
        services.proposal_execution.finish_pending()
        services.marked_captures.run()


def _write_contexts(vault: AuditedVault, services: VaultServices) -> None:
    if vault.is_present():
        services.write_contexts()


def _check_root(opened: OpenParts) -> None:
    if not opened.vault.is_present():
        opened.sync.request_listing()


def _forget_old_versions(opened: OpenParts) -> None:
    git, now = opened.settings.git, trusted_time.trusted_ms(opened.ledger)
    # With 0 days nothing is kept, whatever the clock showed when it was stored.
    before = now - int(git.past_days * DAY_S * 1000) if git.past_days > 0 else LATEST_MS
    opened.overwritten.prune(before / 1000)
    forget_bytes(opened.ledger, before=before, most=git.past_mb << 20)
    trusted_time.advance(opened.ledger)  # last, because it fails on a full disk


def _prune_ended_jobs(opened: OpenParts) -> None:
    opened.queue.prune(trusted_time.trusted_ms(opened.ledger) - int(opened.settings.kb.keep_days * DAY_S * 1000))


def _remove_leftovers(opened: OpenParts) -> None:
    opened.queue.sweep(older_s=LEFT_S)
    gone = opened.vault.remove_leftovers(older_s=LEFT_S) + remove_unfinished(opened.settings.state, older_s=LEFT_S)
    gone += opened.builds.drop_unused(older_s=DAY_S)
    if opened.builds.is_complete:
        indexes = opened.builds.indexes.values()

        def known() -> set[str]:
            present = {entry.id for index in indexes for entry in list(index.manifest.values())}
            return present.union(opened.audit.ids_beginning(""))  # an undo can bring back what the log has an entry of

        opened.automatic.forget_missing(known)
        opened.contexts.uses.forget_missing(known)
    if gone:
        log.info("leftovers removed: %d", len(gone))


def _maintain_indexes(opened: OpenParts) -> None:
    opened.audit.retry()
    opened.unlogged_changes.log_hand_edits()
    opened.builds.drop_retired()
    run_all([index.maintain for index in opened.builds.indexes.values()] + [partial(_maintain_shared_index, opened)])


def _maintain_shared_index(opened: OpenParts) -> None:
    if opened.builds.shared.maintain():
        opened.sync.request_listing()  # fills it again
