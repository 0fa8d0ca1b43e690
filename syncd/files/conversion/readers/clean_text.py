"""Clean the text of a file for a note: remove invisible characters, and escape what Markdown would misread.

Laws, tested: `remove_invisible` leaves no character that a note cannot hold; a second run of `remove_invisible` or `tidy` changes nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

PROSE: Final = 3  # rows of one column that are no table yet
_LINE_END: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Controls, lone surrogates, characters that are none, byte order marks, and the tags that hide text in text.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)
_SOFT: Final = re.compile("[\u00ad\u200b\u2060]")  # where a line may or may not be broken: of no use to a search
_BLANKS: Final = re.compile("[ \t\u00a0\u2007\u202f]+$", re.MULTILINE)
_HOLES: Final = re.compile(r"\n{3,}")
# What begins a block of Markdown when a line begins with it.
_START: Final = re.compile(
    r"^(\s{0,3})(?:(#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|[-=_*~`|:](?=[-=_*~`|:\s]*$)|`{3}|~{3})|(\d{1,9})([.)](?=\s|$)))"
)
# What means more than itself anywhere in a line: HTML, links between notes, embedded files, tags, comments.
_INSIDE: Final = re.compile(r"<(?=[A-Za-z/!?])|\[(?=\[)|!(?=\[)|(?:(?<=\s)|(?<=^)|(?<=\())#(?=\w*[^\W\d])|%(?=%)")


def remove_invisible(text: str) -> str:
    """`text` with line ends as LF and without what can't be seen."""
    return _UNSEEN.sub("", _LINE_END.sub("\n", text))


def tidy(text: str) -> str:
    """Converted text: `remove_invisible`, composed (NFC), without soft breaks, white space at line ends and holes between blocks."""
    text = unicodedata.normalize("NFC", _SOFT.sub("", remove_invisible(text)))
    text = _HOLES.sub("\n\n", _BLANKS.sub("", text)).strip("\n")
    return f"{text}\n" if text.strip() else ""


def escape_inline(text: str) -> str:
    """Plain text as Markdown that says the same, for where no block begins."""
    return _INSIDE.sub(r"\\\g<0>", text)


def escape_line(text: str) -> str:
    """One line of plain text as Markdown that says the same."""
    text = escape_inline(text)
    return _START.sub(
        lambda match: f"{match[1]}\\{match[2]}" if match[2] else f"{match[1]}{match[3]}\\{match[4]}", text
    )


def escape_cell(text: str) -> str:
    """Plain text as one cell of a table."""
    return escape_inline(" ".join(text.split())).replace("|", "\\|")


def format_table(rows: list[list[str]]) -> str:
    """Rows of cells of plain text as a Markdown table, whose first row is the head; "" if there are none."""
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    lines = [f"| {' | '.join(escape_cell(text) for text in [*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def format_rows(rows: list[list[str]]) -> str:
    """The rows of a sheet: what stands alone above the others is prose, and so is one short column; a table below."""
    alone = next((at for at, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    if alone == len(rows) and alone > PROSE:
        alone = 0
    return "\n\n".join(
        [
            *(escape_line(" ".join(" ".join(row).split())) for row in rows[:alone]),
            *filter(None, [format_table(rows[alone:])]),
        ]
    )


def truncate(text: str, most: int) -> tuple[str, bool]:
    """`text`, and whether it was cut: what exceeds `most` bytes is left out from the last paragraph, line or word on."""
    if len(text) <= most // 4 or len(raw := text.encode()) <= most:
        return text, False
    head = raw[:most].decode("utf-8", "ignore")
    for joint in ("\n\n", "\n", " "):
        if (at := head.rfind(joint, len(head) // 2)) > 0:
            head = head[:at]
            break
    fence = re.findall(r"^ {0,3}(`{3,}|~{3,})", head, re.MULTILINE)
    return head.rstrip() + (f"\n{fence[-1]}" if len(fence) % 2 else "") + "\n", True
