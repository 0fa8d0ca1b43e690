"""Read the lines of proposals in a report back: the state of each box, what a tick does, and why, as plain text.

Law, tested: the words of a proposal are read as they were given to the report."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from syncd.notes.checkboxes import find_checkboxes

_LINK: Final = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
_BOX: Final = re.compile(r"\s*[-+*]\s+\[.\]\s*")
_KEY: Final = re.compile(r"\s*\^p-[0-9a-fA-F]{16}\s*\Z")
_DETAIL: Final = re.compile(r"\r?\n[ \t]+[-+*][ \t]+([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """Holds the line of a proposal: `mark` is the character in its box; `reason` is "" if a person removed it."""

    key: str
    mark: str
    sentence: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReportedProposal:
    """Holds a proposal with its line in the report at `report`, its kind, and what it is about."""

    report: str
    line: ProposalLine
    kind: str
    about: Mapping[str, Any]


def read_proposals(text: str) -> list[ProposalLine]:
    """Return the proposals of a report, in its order."""
    lines = []
    for box in find_checkboxes(text):
        sentence = _KEY.sub("", _BOX.sub("", text[box.start : box.end], count=1))
        detail = _DETAIL.match(text, box.end)
        lines.append(ProposalLine(box.key, box.mark, _plain(sentence), _plain(detail[1]) if detail else ""))
    return lines


def _plain(markdown: str) -> str:
    """Return the words of a line that Memex composed: links by their names, entities as characters."""
    return html.unescape(_LINK.sub(r"\1", markdown)).strip()
