"""Define the settings for automation: watching, commits, pulls, promotion, review and consolidation by the daemon itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from syncd.settings.cron_schedule import find_mistake
from syncd.settings.values import Tables, setting
from syncd.vault.path_rules import objection, template_objection


def _folder_objection(folder: str) -> str:
    """Explain why a folder of a setting can't hold notes; "" = it can. The root of the vault, "", always can."""
    return objection(folder, new=True) if folder else ""


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Holds the section `watch`: how Memex notices changes of the vault."""

    mode: Literal["auto", "events", "poll"] = setting(
        "auto",
        "`events` relies on notifications of the system, `poll` lists the vault regularly, `auto` adds listings where notifications are unreliable.",
    )
    poll_s: float = setting(
        15.0, "Seconds between two listings where notifications are missing or unreliable.", least=0.1
    )


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Holds the section `git`: how Memex commits its writes, and exchanges commits with the remote."""

    commit: bool = setting(
        True,
        "Whether Memex commits what it writes; your edits stay yours to commit, except those in a capture that you promote or archive.",
    )
    quiet_s: float = setting(120.0, "Seconds without further writes after which Memex commits its writes.", least=0)
    every_s: float = setting(
        900.0, "The least seconds between two of these commits; your own decisions are committed immediately.", least=0
    )
    pull_s: float = setting(
        0.0, "Seconds between two pulls; 0 = pull only when you, or a webhook after a push, request it.", least=0
    )
    push: bool = setting(False, "Whether Memex pushes commits to the upstream branch.")
    timeout_s: float = setting(
        30.0, "Seconds without progress after which Memex gives up on a transfer with a remote.", least=1
    )
    past_days: float = setting(
        30.0,
        "Days to keep versions that agents and commands overwrite or delete, for `memex undo`; 0 = keep none.",
        least=0,
    )
    past_mb: int = setting(
        256,
        "Megabytes of compressed overwritten versions to keep; the oldest are removed first.",
        least=1,
        most=1_000_000,
    )


@dataclass(frozen=True, slots=True)
class PromoteSettings:
    """Holds the section `promote`: the target folder and name of a promoted capture."""

    marks: bool = setting(
        True, "Whether Memex promotes a capture with the property `promote: true`, once it is no longer being edited."
    )
    folder: str = setting(
        "Notes",
        "The folder of the vault for captures without another target from you or a rule.",
        wrong=_folder_objection,
    )
    name: str = setting(
        "{title}",
        "The name of a promoted note, with {title}, {date}, {source} and {id} of the capture.",
        wrong=template_objection,
    )
    rules: tuple[Any, ...] = setting(
        (),
        "Rules for other target folders: the first rule whose conditions all match applies.",
        kind=Tables("syncd.promotion.promoted_note", "PromotionRule"),
    )
    attachments: str = setting(
        "", "The folder for the stored files of promoted notes; empty = beside the note.", wrong=_folder_objection
    )


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """Holds the section `review`: the review of waiting captures, and their expiry."""

    suggest: bool = setting(
        True, "Whether waiting captures get suggestions and a checkbox. Only you see them, never an agent."
    )
    table: bool = setting(True, "Whether Memex keeps `Review.base`, a table of waiting captures, in the inbox.")
    expire_days: float = setting(
        0.0,
        "Archive captures whose files you neither added nor edited after this many days without a change; 0 = never. A note's `expires` property applies either way.",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """Holds the section `context`: what agents get at the start of a session."""

    tokens: int = setting(
        1_200,
        "The most tokens of a workspace's context, counted by the bundled model's tokenizer; 0 = agents get none, and Memex writes no context.",
        least=0,
        most=10_000,
    )


@dataclass(frozen=True, slots=True)
class ConsolidateSettings:
    """Holds the section `consolidate`: the schedule of the consolidation report."""

    cron: str = setting(
        "0 3 * * *",
        "The schedule of the report in local time: minute, hour, day, month, weekday; empty = only manually.",
        wrong=find_mistake,
    )
