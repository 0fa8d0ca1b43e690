"""The steward: what looks after the vault itself, its history, its inbox and what waits there for a person.

Law: nothing here is handed to the rim. It reads the vault proper and writes to it, which no agent may."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncd.proposals import Proposals
from syncd.waiting import Waiting

if TYPE_CHECKING:
    from syncd.app import App


@dataclass(frozen=True, slots=True)
class Steward:
    """The parts, each with its own law."""

    proposals: Proposals  # what was proposed to the vault's owner
    waiting: Waiting  # the captures that wait for a decision


def steward(app: App) -> Steward:
    """The steward of what `app` has opened."""
    return Steward(
        proposals=Proposals(app.ledger, lambda: time.time_ns() // 1_000_000),
        waiting=Waiting(app.shelf.slots["captures"], app.vault),
    )
