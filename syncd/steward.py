"""The steward: what looks after the vault itself, its history, its inbox and what waits there for a person.

Law: nothing here is handed to the rim. It reads the vault proper and writes to it, which no agent may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncd.remote import Remote

if TYPE_CHECKING:
    from syncd.app import App


@dataclass(frozen=True, slots=True)
class Steward:
    """The parts, each with its own law."""

    remote: Remote


def steward(app: App) -> Steward:
    """The steward of what `app` has opened."""
    own = app.settings
    remote = Remote(
        app.repo,
        own.state,
        own.git,
        inbox=own.vault.inbox,
        flush=lambda: 0,
        reserved=app.vault.reserved,
        moved=app.follow.moved,
        untied=app.follow.told,
    )
    return Steward(remote=remote)
