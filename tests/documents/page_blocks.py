"""Read the code blocks of a page, each with its language and its mark: a comment such as `<!-- runs -->` on the line before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

_BLOCK: Final = re.compile(
    r"^(?:<!-- (?P<mark>[^>\n]+) -->\n)?(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
# A line of a shell up to its comment: a `#` in quotes, or within a word, begins none.
_COMMAND: Final = re.compile(r"""(?:\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<=\S)\#|[^\#])*""")
_KEY: Final = re.compile(r"mx_[0-9a-f]{12}_[0-9a-f]{64}")
_CHANGING: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{12,64}\b|\d+")


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `line` is that of its first line of text; `output` is the next block: right after it as `text`, or marked `prints`."""

    page: str
    line: int
    language: str
    mark: str
    text: str
    output: str = ""

    @property
    def commands(self) -> list[str]:
        """Its lines, those that end with a backslash joined, without comments."""
        lines = (line.strip() for line in self.text.replace("\\\n", " ").splitlines())
        return [line for line in map(_without_comment, lines) if line]


def pages() -> list[Path]:
    """Return the pages for users: README and everything below docs/ but the notes of the design, and what is written for agents."""
    inner = (ROOT / "docs").rglob("*.md")
    return [
        ROOT / "README.md",
        *sorted(file for file in inner if not {"design", "decisions", "skills"} & set(file.parts)),
    ]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for match, after in zip_longest(found, found[1:]):
        is_next = after and after["language"] == "text" and not text[match.end() : after.start()].strip()
        is_output = is_next or (after and after["mark"] == "prints")
        yield Block(
            page.relative_to(ROOT).as_posix(),
            text.count("\n", 0, match.start("text")) + 1,
            match["language"],
            match["mark"] or "",
            match["text"],
            after["text"] if is_output and after else "",
        )


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the lines of a shown output that a command did not print, in this order; `…` on a line of its own stands for any lines.

    Ids, digests and numbers may differ, and so may the width of blanks; a key is shown as KEY, and a `…` within a line stands for
    the rest of it."""
    rest = [_settle(line) for line in printed.splitlines()]
    missing = []
    for line in shown.splitlines():
        wanted = _settle(line).partition("…")
        if not wanted[0]:
            continue
        at = next(
            (at for at, have in enumerate(rest) if have == wanted[0] or (wanted[1] and have.startswith(wanted[0]))),
            None,
        )
        if at is None:
            missing.append(line)
        else:
            rest = rest[at + 1 :]
    return missing


def _settle(line: str) -> str:
    return " ".join(_CHANGING.sub("0", _KEY.sub("KEY", line)).split())


def _without_comment(line: str) -> str:
    match = _COMMAND.match(line)
    return match[0].rstrip() if match else line
