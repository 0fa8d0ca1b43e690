"""The settings of what the daemon does to the vault by itself: commits, pulls, promotion, review, consolidation."""

from __future__ import annotations

from dataclasses import dataclass

from syncd.typed import setting


@dataclass(frozen=True, slots=True)
class GitSettings:
    """How the vault's history is kept, and shared with its remote."""

    commit: bool = setting(True, "Whether what Memex writes is committed; your own edits never are.")
    quiet_s: float = setting(
        30.0, "Seconds without a further write after which what was written is committed.", least=0
    )
    pull_s: float = setting(
        0.0, "Seconds between two pulls; 0 = only when you or a push to the remote ask for one.", least=0
    )
    push: bool = setting(False, "Whether commits are pushed to the branch that yours follows.")
    timeout_s: float = setting(30.0, "Seconds after which a remote that does not answer is given up.", least=1)


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

    cron: str = setting("0 3 * * *", "When the report is made: minute, hour, day, month, weekday; empty = never.")
