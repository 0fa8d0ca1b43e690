"""The steward: what looks after the vault itself, its history, its inbox and what waits there for a person.

Law: nothing here is handed to the rim. It reads the vault proper and writes to it, which no agent may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from index.errors import MemexError, Unavailable
from syncd import consolidating
from syncd.archive import WAYS, Archive
from syncd.attention import LIMIT
from syncd.audit import Events
from syncd.carrying import KINDS, Carrying
from syncd.commits import Commits, Due, Made
from syncd.consolidation import Consolidation
from syncd.desk import Desk
from syncd.dragged import Dragged
from syncd.findings import Findings
from syncd.follow import Follow
from syncd.history import History
from syncd.journal import Journal
from syncd.marked import Marked
from syncd.merging import Merging
from syncd.opened import Opened
from syncd.place import ARCHIVE, REPORTS
from syncd.promote import WAYS as PROMOTIONS
from syncd.promote import Promotions
from syncd.proposals import Proposals
from syncd.remote import Remote
from syncd.review import Review
from syncd.strays import Strays
from syncd.sync import Sync
from syncd.undo import Undo
from syncd.vault_snapshot import Ground
from syncd.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Steward:
    """The parts, each with its own law."""

    commits: Commits
    remote: Remote
    history: History
    undo: Undo
    proposals: Proposals  # what was proposed to the vault's owner
    waiting: Waiting  # the captures that wait for a decision
    ground: Ground  # the vault, as a promotion meets it
    promotions: Promotions
    carrying: Carrying  # carries out what consolidation proposed
    marked: Marked  # the job that does what people have marked
    consolidation: Consolidation  # what looks for what needs attention, and reports
    review: Review  # the table of those, and suggestions for them
    archive: Archive  # captures that were set aside
    dragged: Dragged  # the job that finishes what people have dragged

    def settle(self) -> list[Made]:
        """Make the commits that Git did not allow when they were due; which those are."""
        return self.promotions.tend(at_once=True) + self.carrying.tend(at_once=True)

    def due(self) -> Iterator[Due]:
        """Those commits, before they are made."""
        yield from self.promotions.due()
        yield from self.carrying.due()

    def facts(self) -> dict[str, Any]:
        """How what waits for a person stands: for review, proposed by consolidation, promoted."""
        consolidation: dict[str, Any] = {}
        with suppress(Unavailable):  # of the ledger; its owner must still be able to ask what is wrong
            consolidation = self.consolidation.facts()
        promotion = self.marked.facts()
        with suppress(Unavailable):  # as above
            promotion |= self.promotions.facts()
            for name, more in self.carrying.facts().items():
                promotion[name] += more
        return {"review": self.review.summary(), "consolidation": consolidation, "promotion": promotion}

    def git_facts(self) -> dict[str, Any]:
        """How the exchange with the remote went, and what waits to be committed."""
        return {"exchange": self.remote.facts(), "commits": self.commits.facts()}


def vault_services(opened: Opened, desk: Desk, follow: Follow, stopping: Callable[[], threading.Event]) -> Steward:
    """The steward of what is open. `stopping` returns the event that ends the jobs; it changes when they are made anew."""
    captures, vault, repo, ledger = opened.captures, opened.vault, opened.repo, opened.ledger
    ground = Ground(vault, opened.sync, captures, opened.notes, opened.settings)
    journal = Journal(ledger, vault, (*PROMOTIONS, *WAYS))
    history, undo = history_services(opened, desk, journal)
    commits = _commits(opened)
    promotions, carrying = promotion_services(opened, desk, ground, journal, commits)
    proposals = Proposals(ledger, lambda: time.time_ns() // 1_000_000)
    waiting = Waiting(captures, vault)
    merging = Merging(ground, promotions, proposals)
    review = Review(ground, waiting, repo, ledger)
    carrying.register(proposals)
    united = Journal(ledger, vault, ("merge-duplicates",))
    return Steward(
        commits=commits,
        remote=_remote(opened, follow, promotions, carrying, commits),
        history=history,
        undo=undo,
        proposals=proposals,
        waiting=waiting,
        ground=ground,
        promotions=promotions,
        carrying=carrying,
        dragged=Dragged(ground, promotions, Strays(ground, ledger, opened.audit), repo),
        marked=Marked(ground, promotions, waiting, merging, repo=repo, stopping=stopping),
        consolidation=consolidation_services(opened, desk, ground, proposals, review, stopping=stopping),
        review=review,
        archive=Archive(ground, promotions, waiting, opened.audit, repo, united=united),
    )


def history_services(opened: Opened, desk: Desk, journal: Journal) -> tuple[History, Undo]:
    """What tells a note's history, and what takes back what agents wrote."""
    history = History(
        opened.audit,
        opened.vault,
        opened.past,
        opened.repo,
        lambda: [slot.index for slot in opened.shelf.slots.values()],
        journal=journal,
    )
    undo = Undo(
        opened.audit,
        opened.vault,
        history,
        inbox=opened.settings.vault.inbox,
        workspaces=desk.workspaces,
        indexed=partial(_index_now, opened.sync),
    )
    return history, undo


def promotion_services(
    opened: Opened, desk: Desk, ground: Ground, journal: Journal, commits: Commits
) -> tuple[Promotions, Carrying]:
    """What moves captures into the vault proper, and what carries out what consolidation proposed."""
    promotions = Promotions(ground, journal, opened.repo, commits)
    carrying = Carrying(
        ground,
        Journal(opened.ledger, opened.vault, KINDS),
        opened.repo,
        commits,
        nodes=lambda name: desk.workspace(name).nodes,
        indexed=partial(_index_now, opened.sync),
        owner=promotions.owner,
        lock=promotions.lock,
        audit=opened.audit,
    )
    return promotions, carrying


def consolidation_services(
    opened: Opened,
    desk: Desk,
    ground: Ground,
    proposals: Proposals,
    review: Review,
    *,
    stopping: Callable[[], threading.Event],
) -> Consolidation:
    """What looks for what needs attention, and reports."""
    inbox = opened.settings.vault.inbox
    folders = [f"{inbox}/{name}" for name in (REPORTS, ARCHIVE)]

    def go_on() -> None:
        if stopping().is_set():
            raise Unavailable("consolidation was broken off, as the daemon stops; it begins anew the next time")

    def look(workspace: str, *, limit: int = LIMIT) -> Findings[Events]:
        index, graph = opened.captures.index, desk.workspace(workspace).nodes.report()
        linked = index.linked(folders) | opened.notes.index.linked(folders)
        now = time.time_ns() // 1_000_000
        return consolidating.found(index, workspace, graph, linked=linked, now=now, go_on=go_on, limit=limit)

    return Consolidation(
        ground,
        opened.ledger,
        proposals,
        opened.repo,
        look=look,
        workspaces=desk.workspaces,
        vertex=lambda name, node: desk.workspace(name).nodes.graph.get(node),
        waiting=lambda: review.summary()["waiting"],
    )


def _commits(opened: Opened) -> Commits:
    settings = opened.settings
    return Commits(
        opened.repo,
        opened.vault,
        opened.audit,
        opened.ledger,
        settings.git,
        state=settings.state,
        inbox=settings.vault.inbox,
    )


def _remote(opened: Opened, follow: Follow, promotions: Promotions, carrying: Carrying, commits: Commits) -> Remote:
    """The exchange with the remote; what is written is committed before."""
    settings = opened.settings

    def flush() -> int:
        return len(promotions.tend(at_once=True) + carrying.tend(at_once=True)) + commits.flush()

    return Remote(
        opened.repo,
        settings.state,
        settings.git,
        inbox=settings.vault.inbox,
        flush=flush,
        reserved=opened.vault.turns.reserved,
        moved=follow.moved,
        untied=follow.told,
    )


def _index_now(sync: Sync, paths: Collection[str]) -> None:
    """Look at what was written, now if that can be, and believe that what is gone is gone."""
    sync.hint(paths)
    with suppress(MemexError):  # then the pipe itself looks again
        sync.run(paths, accept=True)
