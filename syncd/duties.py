"""The settings of what the daemon does to the vault by itself: commits, pulls, promotion, review, consolidation."""

from __future__ import annotations

from dataclasses import dataclass

from syncd.cron import valid
from syncd.typed import setting


@dataclass(frozen=True, slots=True)
class GitSettings:
    """How the vault's history is kept, and shared with its remote."""

    commit: bool = setting(True, "Whether what Memex writes is committed; your own edits never are.")
    quiet_s: float = setting(
        30.0, "Seconds without a further write after which what was written is committed.", least=0
    )


@dataclass(frozen=True, slots=True)
class PromoteSettings:
    """Where a promoted capture goes."""

    folder: str = setting("Notes", "The folder of the vault for captures for which no rule says another.")


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """What waits for your decision, and for how long."""

    suggest: bool = setting(True, "Whether waiting captures are given suggestions, for you alone.")


@dataclass(frozen=True, slots=True)
class ConsolidateSettings:
    """The report on what needs attention."""

    cron: str = setting(
        "0 3 * * *",
        "When the report is made, by the local time: minute, hour, day, month, weekday; empty = only by hand.",
        check=valid,
    )
