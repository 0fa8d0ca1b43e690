"""The roster: which background work a vault has, how often each piece is done, and what carries out the queue.

Law: each piece starts from what is on disk, so that it may be missed, repeated or cut short without harm."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial

from syncd import newnote
from syncd.audit import Author, authored
from syncd.audited import Audited
from syncd.check import DAY_S
from syncd.desk import Desk
from syncd.dropped import EVERY_S, Dropped
from syncd.jobs import Jobs
from syncd.labels import Labels
from syncd.leftovers import collect
from syncd.opened import Opened
from syncd.parts import spare
from syncd.queued import Kind
from syncd.remote import TICK_S
from syncd.runs import Runs
from syncd.steward import Steward
from syncd.tools import Tools
from syncd.uploads import Uploads
from syncd.worker import Handler, Work, Worker

log = logging.getLogger(__name__)

CONVERTERS = 2  # files that are read at a time, each in a process of its own
COMMITS_S = 10.0  # between two looks whether what was written is quiet
MINUTE_S, HOUR_S = 60.0, 3600.0
REMOTE = "remote"  # the job that pulls and pushes
TICKS_S = MINUTE_S  # between two looks at the boxes of reports: a folder is listed
MARKS_S = 2.0  # between two looks at what people have marked: a number is compared
LEAST_FREE = 16 << 20  # bytes of the vault's disk without which no note is tried
LEFT_S = 3600.0  # a half-written file so old is nobody's work any more


def background_jobs(opened: Opened, steward: Steward, *, uploads: Uploads, dropped: Dropped, labels: Labels) -> Jobs:
    """The jobs of this vault, not started.

    Jobs count their first runs from when they are made, and can't be started again once stopped. So an App makes them
    twice: for a command, which runs one by hand, and when it begins to serve."""
    settings = opened.settings
    planned = Jobs(Runs(opened.ledger))
    planned.every("listing", settings.sync.listing_s, opened.sync.list_now)
    planned.every("root", 10.0, partial(_check_root, opened))
    planned.every("maintenance", 30.0, partial(_maintain, opened))
    due_s = opened.check.due_in(time.time_ns() // 1_000_000)
    planned.every("deep check", DAY_S, partial(opened.check.run, planned.stopping), after=due_s)
    planned.every("leftovers", DAY_S, partial(_collect, opened))
    planned.every("ended jobs", HOUR_S, partial(_forget, opened))
    planned.every("dropped files", EVERY_S, dropped.look)
    planned.every("commits", COMMITS_S, steward.commits.tick)
    planned.every("uploads", MINUTE_S, uploads.collect)
    planned.every("promotion", MARKS_S, partial(_promote, opened.vault, steward))
    planned.every("ticks", TICKS_S, partial(steward.consolidation.tick, planned.stopping))
    if when := settings.consolidate.cron:
        planned.cron("consolidation", when, partial(steward.consolidation.run, planned.stopping))
    planned.every("drags", MARKS_S, steward.dragged.run)
    planned.every("what was", HOUR_S, opened.past.prune)
    planned.every(
        "archive", MINUTE_S, authored(Author("daemon", "archive"))(partial(steward.archive.run, planned.stopping))
    )
    planned.every(
        "review", MINUTE_S, authored(Author("daemon", "review"))(partial(steward.review.run, planned.stopping))
    )
    planned.every("enrichment", MINUTE_S, authored(Author("daemon", "enrichment"))(labels.pay))
    planned.every(REMOTE, TICK_S, steward.remote.tick, soon=True)
    return planned


def worker(opened: Opened, desk: Desk, tools: Tools, files: Handler) -> Worker:
    """What carries out the queue, not started. `files` makes documents of files."""

    def hindered(kind: Kind) -> str:
        if not opened.vault.present():
            return "the vault is missing"
        with suppress(OSError):  # of a vault that went away just now
            if not spare(opened.vault.root, 0, free=opened.settings.kb.free if kind == "file" else LEAST_FREE):
                return "the vault's disk is almost full"
        return "" if tools.captures.index.comparable else opened.embedder.problem or "the encoder is not ready yet"

    def note(work: Work) -> str:
        desk.workspace(work.job.workspace)  # which may have been deleted meanwhile
        return newnote.made(tools, work)

    carried = Worker(opened.queue, hindered)
    carried.on("note", note)
    carried.on("file", files, threads=CONVERTERS)
    return carried


def _promote(vault: Audited, steward: Steward) -> None:
    if vault.present():
        steward.carrying.tend()
        steward.marked.run()


def _check_root(opened: Opened) -> None:
    if not opened.vault.present():
        opened.sync.want_listing()


def _forget(opened: Opened) -> None:
    opened.queue.prune(time.time_ns() // 1_000_000 - int(opened.settings.kb.keep_days * DAY_S * 1000))


def _collect(opened: Opened) -> None:
    opened.queue.sweep(older_s=LEFT_S)
    gone = opened.vault.sweep(older_s=LEFT_S) + collect(opened.settings.state, older_s=LEFT_S)
    gone += opened.shelf.clear(older_s=DAY_S)
    if gone:
        log.info("leftovers removed: %d", len(gone))


def _maintain(opened: Opened) -> None:
    opened.audit.retry()
    opened.witness.look()
    opened.shelf.tidy()
    for slot in opened.shelf.slots.values():
        slot.index.maintain()
