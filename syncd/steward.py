"""The steward: what looks after the vault itself, its history, its inbox and what waits there for a person.

Law: nothing here is handed to the rim. It reads the vault proper and writes to it, which no agent may."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from index.errors import MemexError
from syncd import consolidating
from syncd.archive import WAYS, Archive
from syncd.carrying import KINDS, Carrying
from syncd.commits import Commits, Due, Made
from syncd.consolidation import Consolidation
from syncd.dragged import Dragged
from syncd.graph_proposals import graph_kinds
from syncd.history import History
from syncd.journal import Journal
from syncd.marked import Marked
from syncd.merging import Merging
from syncd.note_proposals import note_kinds
from syncd.promotable import Ground
from syncd.promote import WAYS as PROMOTIONS
from syncd.promote import Promotions
from syncd.proposals import Proposals
from syncd.remote import Remote
from syncd.review import Review
from syncd.strays import Strays
from syncd.undo import Undo
from syncd.waiting import Waiting

if TYPE_CHECKING:
    from syncd.app import App


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


def steward(app: App) -> Steward:
    """The steward of what `app` has opened."""
    own = app.settings
    journal = Journal(app.ledger, app.vault, (*PROMOTIONS, *WAYS))
    history = History(
        app.audit,
        app.vault,
        app.past,
        app.repo,
        lambda: [slot.index for slot in app.shelf.slots.values()],
        journal=journal,
    )
    undo = Undo(
        app.audit,
        app.vault,
        history,
        inbox=own.vault.inbox,
        workspaces=app.desk.workspaces,
        indexed=lambda paths: _indexed(app, paths),
    )
    commits = Commits(app.repo, app.vault, app.audit, app.ledger, own.git, state=own.state, inbox=own.vault.inbox)
    ground = Ground(app.vault, app.sync, app.shelf.slots["captures"], app.shelf.slots["vault"], own)
    promotions = Promotions(ground, journal, app.repo, commits)

    carrying = Carrying(
        ground,
        Journal(app.ledger, app.vault, KINDS),
        app.repo,
        commits,
        kinds=(*note_kinds(ground), *graph_kinds(ground, lambda name: app.desk.workspace(name).nodes)),
        indexed=lambda paths: _indexed(app, paths),
        owner=promotions.owner,
        lock=promotions.lock,
        audit=app.audit,
    )

    def flush() -> int:
        return len(promotions.tend(at_once=True) + carrying.tend(at_once=True)) + commits.flush()

    remote = Remote(
        app.repo,
        own.state,
        own.git,
        inbox=own.vault.inbox,
        flush=flush,
        reserved=app.vault.turns.reserved,
        moved=app.follow.moved,
        untied=app.follow.told,
    )
    proposals = Proposals(app.ledger, lambda: time.time_ns() // 1_000_000)
    waiting = Waiting(app.shelf.slots["captures"], app.vault)
    merging = Merging(ground, promotions, proposals)
    review = Review(ground, waiting, app.repo, app.ledger)
    carrying.register(proposals)
    return Steward(
        commits=commits,
        remote=remote,
        history=history,
        undo=undo,
        proposals=proposals,
        waiting=waiting,
        ground=ground,
        promotions=promotions,
        carrying=carrying,
        dragged=Dragged(ground, promotions, Strays(ground, app.ledger, app.audit), app.repo),
        marked=Marked(ground, promotions, waiting, merging, repo=app.repo, stopping=lambda: app.jobs.stopping),
        consolidation=Consolidation(
            ground,
            app.ledger,
            proposals,
            app.repo,
            look=lambda name: consolidating.look(app, name),
            workspaces=app.desk.workspaces,
            vertex=lambda name, node: app.desk.workspace(name).nodes.graph.get(node),
            waiting=lambda: review.summary()["waiting"],
        ),
        review=review,
        archive=Archive(
            ground,
            promotions,
            waiting,
            app.audit,
            app.repo,
            united=Journal(app.ledger, app.vault, ("merge-duplicates",)),
        ),
    )


def _indexed(app: App, paths: Collection[str]) -> None:
    """Look at what was written, now if that can be, and believe that what is gone is gone."""
    app.sync.hint(paths)
    with suppress(MemexError):  # then the pipe itself looks again
        app.sync.run(paths, accept=True)
