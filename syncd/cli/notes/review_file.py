"""Compose the review file, which lists the waiting captures for an editor, and parse what a person saved in it.

Laws, tested: a file that nobody changed decides nothing; a file with a mistake decides nothing; text of a capture can
be no line of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from index.errors import InvalidArgument
from syncd.cli.terminal import result_text

Word: TypeAlias = Literal["keep", "approve", "discard"]
WORDS: Final[tuple[Word, ...]] = ("keep", "approve", "discard")
SHORT: Final[Mapping[str, Word]] = {"k": "keep", "a": "approve", "d": "discard"}
ROOT: Final = "/"  # how the vault's own folder is written
ARROW: Final = "->"
SHOWN: Final = 5  # mistakes that are named
_LINE: Final = re.compile(r"(\S+)\s+(\S+)(?:\s(.*))?")
HEAD: Final = """\
# {count} wait for a decision. Change the first word of a line, save the file and close it:
#   keep     (k)  leave the capture waiting
#   approve  (a)  move it into your vault, into the folder after the arrow; you may change that ("/" = the vault itself)
#   discard  (d)  set it aside; `memex unarchive` brings it back
# A line that you delete leaves its capture waiting. If a line can't be read, nothing is done.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person wants of one capture; `folder`: None = as its properties, rules and settings have it."""

    id: str
    word: Word
    folder: str | None


def compose_file(waiting: Sequence[Mapping[str, Any]]) -> str:
    """The file for these captures, all of which are kept as it stands."""
    parts = [HEAD.format(count=f"{len(waiting):,} capture{'s' * (len(waiting) != 1)}")]
    for capture in waiting:
        title = result_text.line(str(capture["title"]), 70).replace(ARROW, "→")
        folder = capture["promote_to"] or capture["suggested_folder"]
        goal = f"  {ARROW} {result_text.line(str(folder), 200)}" if folder else ""
        parts.append(f"\nkeep {capture['id']}  {title}{goal}\n")
        summary = result_text.line(str(capture["summary"] or ""), 140)
        if summary and not summary.startswith(title.rstrip("…")):
            parts.append(f"#   {summary}\n")
    return "".join(parts)


def parse_file(text: str, ids: Sequence[str]) -> list[Decision]:
    """The decisions that a file of these captures holds, in its order. Raises InvalidArgument, with the lines that are wrong."""
    decisions: dict[str, Decision] = {}
    mistakes = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        word = SHORT.get(match[1].casefold(), match[1].casefold()) if match else ""
        if match is None or word not in WORDS:
            mistakes.append(f"line {number}: a line begins with keep, approve or discard, and not with {line[:20]!r}")
        elif match[2] not in ids:
            mistakes.append(f"line {number}: no capture in this file has the id {match[2][:40]!r}")
        elif match[2] in decisions:
            mistakes.append(f"line {number}: the capture {match[2]} has a line above already")
        else:
            _, arrow, folder = (match[3] or "").rpartition(ARROW)
            goal = folder.strip() if arrow and folder.strip() else None
            decisions[match[2]] = Decision(match[2], _as_word(word), "" if goal == ROOT else goal)
    if mistakes:
        more = f"; and {len(mistakes) - SHOWN} more" if len(mistakes) > SHOWN else ""
        raise InvalidArgument(f"the file can't be read, so nothing was changed: {'; '.join(mistakes[:SHOWN])}{more}")
    return [decision for decision in decisions.values() if decision.word != "keep"]


def _as_word(text: str) -> Word:
    return next(word for word in WORDS if word == text)
