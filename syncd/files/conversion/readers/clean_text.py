"""Clean the text of a file for a note: remove invisible characters, and escape what Markdown would misread.

Laws, tested: `remove_invisible` leaves no character that a note cannot hold; a second run of `remove_invisible` or
`tidy` changes nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from syncd.notes.inline_syntax import TAG_BEGINS

PROSE: Final = 3  # most rows of one column that count as prose and not as a table
_LINE_END: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Control characters, lone surrogates, noncharacters, byte order marks, and tag characters, which can hide text.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)
INVISIBLE: Final = re.compile(f"{_LINE_END.pattern}|{_UNSEEN.pattern}")  # what `remove_invisible` changes
# Soft hyphens and marks for line breaks, which would disturb a search.
_SOFT: Final = re.compile("[\u00ad\u200b\u2060]")
_BLANKS: Final = re.compile("(?<![ \t\u00a0\u2007\u202f])[ \t\u00a0\u2007\u202f]++$", re.MULTILINE)
_HOLES: Final = re.compile(r"\n{3,}")
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)(.*)", re.MULTILINE)
# Beginnings of a line that start a Markdown block.
_START: Final = re.compile(
    r"^(\s{0,3})(?:(#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|[-=_*~`|:](?=[-=_*~`|:\s]*$)|`{3}|~{3})|(\d{1,9})([.)](?=\s|$)))"
)
# Markup that has a meaning anywhere in a line: escapes, HTML, links between notes, embedded files, tags, comments.
_INSIDE: Final = re.compile(
    rf"\\(?=[!-/:-@\[-`{{-~])|<(?=[A-Za-z/!?])|\[(?=\[)|!(?=\[)|(?:(?<=\s)|(?<=^)|(?<=\()){TAG_BEGINS}|%(?=%)"
)
_MARKS: Final = frozenset("\\<[!#%")  # with one of these begins each such markup; most cells of a table have none


def remove_invisible(text: str) -> str:
    """Return `text` with LF line ends and without invisible characters."""
    return _UNSEEN.sub("", _LINE_END.sub("\n", text))


def tidy(text: str) -> str:
    """Clean converted text: apply `remove_invisible` and NFC, then remove soft breaks and needless white space.

    Needless white space is white space at line ends, and repeated blank lines."""
    text = _normalize(text)
    text = _HOLES.sub("\n\n", _BLANKS.sub("", text)).strip("\n")
    return f"{text}\n" if text.strip() else ""


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", _SOFT.sub("", remove_invisible(text)))


def escape_inline(text: str) -> str:
    """Escape plain text for use inside a line of Markdown, where no block begins; a line end becomes a blank."""
    if not (text.isascii() and text.isprintable()):  # what `tidy` removes later may separate the characters of a markup
        text = _normalize(text).replace("\n", " ")
    return text if _MARKS.isdisjoint(text) else _INSIDE.sub(r"\\\g<0>", text)


def escape_line(text: str) -> str:
    """Escape one line of plain text as a line of Markdown."""
    return escape_start(escape_inline(text))


def escape_start(text: str) -> str:
    """Escape what begins a block at the start of a line of Markdown."""
    return _START.sub(
        lambda match: f"{match[1]}\\{match[2]}" if match[2] else f"{match[1]}{match[3]}\\{match[4]}", text
    )


def escape_cell(text: str) -> str:
    """Escape plain text as one cell of a table."""
    return escape_inline(" ".join(text.split())).replace("|", "\\|")


def format_table(rows: list[list[str]]) -> str:
    """Format rows of plain text cells as a Markdown table, with the first row as its head; "" if there are no rows."""
    return join_table([[escape_cell(text) for text in row] for row in rows]) if rows else ""


def join_table(rows: list[list[str]]) -> str:
    """Join cells of Markdown to a table, with the first row as its head."""
    width = max(len(row) for row in rows)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def make_fence(text: str, least: int) -> str:
    """Return a fence of backticks that is longer than any run of them in `text`."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


def format_rows(rows: list[list[str]]) -> str:
    """Format the rows of a sheet: leading rows with one value, or one short column, as prose; the others as a table."""
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
    """Cut `text` to about `most` bytes at the end of a paragraph, line or word; return it and whether it was cut."""
    if len(text) <= most // 4 or len(raw := text.encode()) <= most:
        return text, False
    head = raw[:most].decode("utf-8", "ignore")
    for joint in ("\n\n", "\n", " "):
        if (at := head.rfind(joint, len(head) // 2)) > 0:
            head = head[:at]
            break
    fence = _open_fence(head)
    return head.rstrip() + (f"\n{fence}" if fence else "") + "\n", True


def _open_fence(text: str) -> str:
    """Return the fence of the code block in which `text` ends; "" if it ends in none."""
    fence = ""
    for mark, after in _FENCE.findall(text):
        if not fence:
            fence = "" if mark[0] == "`" and "`" in after else mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not after.strip():
            fence = ""
    return fence
