"""The steward: what looks after the vault itself, its history, its inbox and what waits there for a person.

Law: nothing here is handed to the rim. It reads the vault proper and writes to it, which no agent may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncd.commits import Commits

if TYPE_CHECKING:
    from syncd.app import App


@dataclass(frozen=True, slots=True)
class Steward:
    """The parts, each with its own law."""

    commits: Commits


def steward(app: App) -> Steward:
    """The steward of what `app` has opened."""
    own = app.settings
    return Steward(
        commits=Commits(app.repo, app.vault, app.audit, app.ledger, own.git, state=own.state, inbox=own.vault.inbox),
    )
