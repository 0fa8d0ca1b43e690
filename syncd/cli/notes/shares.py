"""Define the command `share`: which notes of the vault agents may read; sharing is off until the owner names a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

import click

from index.names import pluralize
from syncd.cli.framework.arguments import ONE_WORKSPACE, WORKSPACE
from syncd.cli.framework.commands import Group, ask, has_color, print_answer, print_message
from syncd.cli.framework.completion import folders_outside_inbox
from syncd.cli.terminal import result_text

LATER = "memex: the daemon indexes these notes for agents in the background; without a daemon, that happens at its next start"
OFF = "nothing is shared: agents read and write captures only"
SHOWN = 20  # notes in the text of an answer; --json has them all


@click.group(cls=Group)
def share() -> None:
    """Let the agents of a workspace read folders or notes of your vault; they can change none of them.

    Without a share, agents read captures only. A note with the property `share: false` and the folders in the setting
    share.never are never shared."""


@share.command("add")
@click.argument("paths", nargs=-1, required=True, metavar="FOLDER|NOTE...", shell_complete=folders_outside_inbox)
@ONE_WORKSPACE
def share_add(paths: Sequence[str], workspace: str) -> None:
    """Share folders, with everything below them, or single notes.

    `memex share preview` lists the notes before. Hidden files and the inbox can't be shared.
    With --json: {"workspace", "entries", "shared": [path], "withheld": {path: reason}}."""
    result = ask("share.add", {"workspace": workspace, "paths": list(paths)})
    _print_preview(result)
    for entry in _empty_entries(result, paths):
        print_message(f"memex: {entry} has no note yet; check the spelling and the letter case")
    print_message(LATER)


@share.command("remove")
@click.argument("paths", nargs=-1, required=True, metavar="FOLDER|NOTE...", shell_complete=folders_outside_inbox)
@ONE_WORKSPACE
def share_remove(paths: Sequence[str], workspace: str) -> None:
    """Stop sharing folders or notes; it counts at once, and nothing of them stays in the index for agents.

    Agents may keep what they have read. With --json, as for `memex share add`."""
    _print_preview(ask("share.remove", {"workspace": workspace, "paths": list(paths)}))


@share.command("list")
@WORKSPACE
def share_list(workspace: str | None) -> None:
    """List what is shared with each workspace.

    With --json: [{"workspace", "entries": [path]}]."""
    result = ask("share.list", {"workspace": workspace})
    rows = [(row["workspace"], result_text.line(entry, 200)) for row in result for entry in row["entries"]]
    print_answer(result, lambda: result_text.table(rows, ("workspace", "shared"), color=has_color()) if rows else OFF)


@share.command("preview")
@click.argument("paths", nargs=-1, metavar="[FOLDER|NOTE]...", shell_complete=folders_outside_inbox)
@ONE_WORKSPACE
def share_preview(paths: Sequence[str], workspace: str) -> None:
    """List exactly the notes that agents could read if you shared these paths; without paths, those that they can read now.

    It changes nothing. With --json, as for `memex share add`."""
    _print_preview(ask("share.preview", {"workspace": workspace, "paths": list(paths)}))


def _empty_entries(result: dict[str, Any], paths: Sequence[str]) -> list[str]:
    """Return those of `paths` below which no note is shared or withheld, if other entries have notes."""
    notes = [normalize("NFC", f"{note}/") for note in (*result["shared"], *result["withheld"])]
    entries = [normalize("NFC", path.strip()).removesuffix("/**").rstrip("/") for path in paths]
    empty = [path for path in entries if not any(note.startswith(f"{path}/") for note in notes)]
    return [result_text.line(path, 200) for path in empty] if notes else []  # otherwise the list has this hint


def _print_preview(result: dict[str, Any]) -> None:
    print_answer(result, lambda: preview_text(result))


def preview_text(result: dict[str, Any]) -> str:
    """Format the notes that agents can read, and those that are withheld with the reasons."""
    if not result["entries"]:
        return OFF
    shared, withheld = result["shared"], result["withheld"]
    many = pluralize(len(shared), "note")
    lines = [f"agents of {result['workspace']} can read {many} in {', '.join(result['entries'])}"]
    if not shared and not withheld:
        lines.append("there is no note in it yet; check the spelling, which includes upper and lower case")
    lines += [f"  {result_text.line(path, 200)}" for path in shared[:SHOWN]]
    if withheld:
        lines.append(f"withheld: {len(withheld):,}")
        lines += [
            f"  {result_text.line(path, 200)}: {result_text.line(reason, 200)}"
            for path, reason in list(withheld.items())[:SHOWN]
        ]
    if len(shared) > SHOWN or len(withheld) > SHOWN:
        lines.append("--json lists them all")
    return "\n".join(lines)
