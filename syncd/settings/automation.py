"""Define the settings for automation: commits, pulls, promotion, review and consolidation by the daemon itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncd.settings.cron_schedule import find_mistake
from syncd.settings.values import Tables, setting
from syncd.vault.path_rules import objection, template_objection


def _folder_objection(folder: str) -> str:
    """Why a folder that a setting names can't take notes; "" = it can, as the vault's root, "", can."""
    return objection(folder, new=True) if folder else ""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """How the vault's history is kept, and shared with its remote."""

    commit: bool = setting(True, "Whether what Memex writes is committed; your own edits never are.")
    quiet_s: float = setting(
        120.0, "Seconds without a further write after which what was written is committed.", least=0
    )
    every_s: float = setting(
        900.0, "Least seconds between two such commits; your own decisions are committed at once.", least=0
    )
    pull_s: float = setting(
        0.0, "Seconds between two pulls; 0 = only when you or a push to the remote ask for one.", least=0
    )
    push: bool = setting(False, "Whether commits are pushed to the branch that yours follows.")
    timeout_s: float = setting(30.0, "Seconds after which a remote that does not answer is given up.", least=1)
    past_days: float = setting(
        30.0,
        "Days for which what agents and commands overwrite or delete is kept, so that it can be put back; 0 = not at all.",
        least=0,
    )
    past_mb: int = setting(256, "Megabytes that may be kept so, packed; the oldest goes first.", least=1)


@dataclass(frozen=True, slots=True)
class PromoteSettings:
    """Where a promoted capture goes."""

    marks: bool = setting(
        True, "Whether a capture with the property `promote: true` is promoted by itself, once quiet."
    )
    folder: str = setting(
        "Notes",
        "The folder of the vault for captures for which neither you nor a rule says another.",
        wrong=_folder_objection,
    )
    name: str = setting(
        "{title}",
        "The name of a promoted note; {title}, {date}, {source} and {id} are the capture's.",
        wrong=template_objection,
    )
    rules: tuple[Any, ...] = setting(
        (),
        "Which captures go elsewhere: the first table counts of which all fits.",
        kind=Tables("syncd.promotion.promoted_note", "PromotionRule"),
    )
    attachments: str = setting(
        "", "The folder for stored files whose notes are promoted; empty = beside the note.", wrong=_folder_objection
    )


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """What waits for your decision, and for how long."""

    suggest: bool = setting(
        True, "Whether waiting captures are given suggestions and a box to tick, for you alone: no agent sees them."
    )
    table: bool = setting(True, "Whether `Review.base`, the table of waiting captures, is kept in the inbox.")
    expire_days: float = setting(
        0.0,
        "Days after which a capture that nobody changed since is archived; 0 = never. `expires` in a note counts in any case.",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class ConsolidateSettings:
    """The report on what needs attention."""

    cron: str = setting(
        "0 3 * * *",
        "When the report is made, by the local time: minute, hour, day, month, weekday; empty = only by hand.",
        wrong=find_mistake,
    )
