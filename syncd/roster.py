"""The roster: which background work a vault has, how often each piece is done, and what carries out the queue.

Law: each piece starts from what is on disk, so that it may be missed, repeated or cut short without harm."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from syncd import newnote
from syncd.audit import Author, authored
from syncd.check import DAY_S
from syncd.dropped import EVERY_S
from syncd.jobs import Jobs
from syncd.leftovers import collect
from syncd.parts import spare
from syncd.queued import Kind
from syncd.remote import TICK_S
from syncd.runs import Runs
from syncd.tools import Tools
from syncd.worker import Work, Worker

if TYPE_CHECKING:
    from syncd.app import App

log = logging.getLogger(__name__)

CONVERTERS = 2  # files that are read at a time, each in a process of its own
COMMITS_S = 10.0  # between two looks whether what was written is quiet
HOUR_S = 3600.0
REMOTE = "remote"  # the job that pulls and pushes
TICKS_S = 60.0  # between two looks at the boxes of reports: a folder is listed
MARKS_S = 2.0  # between two looks at what people have marked: a number is compared
LEAST_FREE = 16 << 20  # bytes of the vault's disk without which no note is tried
LEFT_S = 3600.0  # a half-written file so old is nobody's work any more


def jobs(app: App) -> Jobs:
    """The jobs of this vault, not started."""
    planned = Jobs(Runs(app.ledger))
    planned.every("listing", app.settings.sync.listing_s, app.sync.list_now)
    planned.every("root", 10.0, partial(_check_root, app))
    planned.every("maintenance", 30.0, partial(_maintain, app))
    due_s = app.check.due_in(time.time_ns() // 1_000_000)
    planned.every("deep check", DAY_S, partial(app.check.run, planned.stopping), after=due_s)
    planned.every("leftovers", DAY_S, partial(_collect, app))
    planned.every("ended jobs", HOUR_S, partial(_forget, app))
    planned.every("dropped files", EVERY_S, app.filing.dropped.look)
    planned.every("commits", COMMITS_S, app.steward.commits.tick)
    planned.every("uploads", 60.0, app.desk.uploads.collect)
    planned.every("promotion", MARKS_S, partial(_promote, app))
    planned.every("ticks", TICKS_S, partial(app.steward.consolidation.tick, planned.stopping))
    if when := app.settings.consolidate.cron:
        planned.cron("consolidation", when, partial(app.steward.consolidation.run, planned.stopping))
    planned.every("drags", MARKS_S, app.steward.dragged.run)
    planned.every("what was", HOUR_S, app.past.prune)
    planned.every(
        "archive", 60.0, authored(Author("daemon", "archive"))(partial(app.steward.archive.run, planned.stopping))
    )
    planned.every(
        "review", 60.0, authored(Author("daemon", "review"))(partial(app.steward.review.run, planned.stopping))
    )
    planned.every("enrichment", 60.0, authored(Author("daemon", "enrichment"))(app.labels.pay))
    planned.every(REMOTE, TICK_S, app.steward.remote.tick, soon=True)
    return planned


def worker(app: App, tools: Tools) -> Worker:
    """What carries out the queue, not started."""

    def hindered(kind: Kind) -> str:
        if not app.vault.present():
            return "the vault is missing"
        with suppress(OSError):  # of a vault that went away just now
            if not spare(app.vault.root, 0, free=app.settings.kb.free if kind == "file" else LEAST_FREE):
                return "the vault's disk is almost full"
        return "" if tools.captures.index.comparable else app.embedder.problem or "the encoder is not ready yet"

    def note(work: Work) -> str:
        app.desk.workspace(work.job.workspace)  # which may have been deleted meanwhile
        return newnote.made(tools, work)

    carried = Worker(app.queue, hindered)
    carried.on("note", note)
    carried.on("file", app.filing.handler, threads=CONVERTERS)
    return carried


def _promote(app: App) -> None:
    if app.vault.present():
        app.steward.carrying.tend()
        app.steward.marked.run()


def _check_root(app: App) -> None:
    if not app.vault.present():
        app.sync.want_listing()


def _forget(app: App) -> None:
    app.queue.prune(time.time_ns() // 1_000_000 - int(app.settings.kb.keep_days * DAY_S * 1000))


def _collect(app: App) -> None:
    app.queue.sweep(older_s=LEFT_S)
    gone = app.vault.sweep(older_s=LEFT_S) + collect(app.settings.state, older_s=LEFT_S)
    gone += app.shelf.clear(older_s=DAY_S)
    if gone:
        log.info("leftovers removed: %d", len(gone))


def _maintain(app: App) -> None:
    app.audit.retry()
    app.witness.look()
    app.shelf.tidy()
    for slot in app.shelf.slots.values():
        slot.index.maintain()
