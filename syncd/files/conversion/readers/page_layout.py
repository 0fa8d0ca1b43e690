"""Derive headings, paragraphs, lists and tables from the layout of pages: the position and letter size of each line.

Law, tested: no word is lost, except words of repeated page headers and footers."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from syncd.files.conversion.readers.clean_text import escape_inline, escape_line, format_table


@dataclass(frozen=True, slots=True)
class Line:
    """Describes one line of a page, in points from the bottom of the page; `cells` are its parts between wide gaps."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    size: float
    bold: bool
    cells: tuple[tuple[float, float, str], ...]  # left, right, text


LEVELS: Final = 4  # most levels of headings
LARGER: Final = 1.12  # times the usual size, from which a line is a heading
AIRY: Final = 0.55  # of the letter size: wider white space between two lines separates paragraphs
SAME: Final = 0.6  # points; sizes with a smaller difference count as equal
SHORT: Final = 0.4  # of a line: if this share of its end is empty, the paragraph ends there
NEAR: Final = 4  # times the letter size: lines that begin this close together are in one column
INDENT: Final = 0.8  # of the letter size: a deeper indentation begins a paragraph
HEADING: Final = 200  # most characters of a heading
PROSE: Final = 45  # characters of an average cell, above which the cells are columns of text
CELLS: Final = 100_000  # most cells of a table, including empty ones
REPEATED: Final = 3  # pages on which a line must occur to be a page header or footer

_BULLET: Final = re.compile(r"([•◦▪▫■□●○‣⁃∙·\uf0b7\uf0a7\uf0d8–-])\s+(?=\S)")
_NUMBER: Final = re.compile(r"\(?(\d{1,3}|[a-z])[.)]\s+(?=\S)")
_MARK: Final = re.compile(r"[•◦▪▫■□●○‣⁃∙·\uf0b7\uf0a7\uf0d8–-]|\(?(?:\d{1,3}|[a-z])[.)]")
_ENDS: Final = re.compile(r"[.!?:;…。！？：；؟۔]['\"”’»)\]]*$")
LEADER: Final = " … "
_LEADER: Final = re.compile(r"\s?(?:\. ?){5,}")
_DIVIDED: Final = re.compile("(?<=\\w)\ufffe(?=[^\\W\\d_])")
_DIGITS: Final = re.compile(r"\d{1,9}")

_Key: TypeAlias = tuple[int, str, int]


def compose(pages: Sequence[Sequence[Line]]) -> str:
    """Compose Markdown from the lines of the pages."""
    lines = [[replace(held, text=_join_words(held.text)) for held in page] for page in _remove_furniture(pages)]
    usual = _usual_size(held for page in lines for held in page)
    levels = _heading_levels([held for page in lines for held in page], usual)
    blocks: list[str] = []
    paragraph: list[Line] = []

    def close() -> None:
        if paragraph:
            blocks.append(_format_paragraph(paragraph, levels, usual))
            paragraph.clear()

    for page in lines:
        at, tables, edges = 0, _find_tables(page), _column_edges(page)
        while at < len(page):
            if (end := tables.get(at)) is not None:
                close()
                blocks.append(_format_table(page[at:end]))
                at = end
                continue
            if paragraph and not _continues_paragraph(paragraph, page[at], edges[at], levels):
                close()
            paragraph.append(page[at])
            at += 1
    close()
    return _join_blocks(blocks)


def _join_words(text: str) -> str:
    """Shorten dot leaders to `LEADER` in a line, and join words where PDFium has marked a hyphenation."""
    text = _LEADER.sub(LEADER, text)
    text = _DIVIDED.sub(lambda match: "" if text[match.end()].islower() else "-", text)
    return text.replace("\ufffe", "-")


def _remove_furniture(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Remove repeated page headers and footers; the first of each stays, unless it is only a number."""
    usual = _usual_size(held for page in pages for held in page)
    edges = [
        {at: _furniture_keys(page[at], number) for at in _edge_lines(page) if page[at].size < usual * LARGER}
        for number, page in enumerate(pages)
    ]
    often = Counter(key for held in edges for key in set().union(*held.values()))
    seen: set[_Key] = set()
    remaining = []
    for page, held in zip(pages, edges, strict=True):
        gone = set()
        for at, keys in held.items():
            furniture = {key for key in keys if often[key] >= _least_repeats(key, len(pages))}
            if furniture & seen or any(key[1] == "#" for key in furniture):
                gone.add(at)
            seen |= furniture
        remaining.append([line_ for at, line_ in enumerate(page) if at not in gone])
    return remaining


def _least_repeats(key: _Key, pages: int) -> int:
    """Return on how many pages a line must occur to be a header or footer; for page numbers, fewer are enough."""
    if key[1] == "#":
        return 2
    return REPEATED if "#" in key[1] else max(REPEATED, pages // 3)


def _edge_lines(page: Sequence[Line]) -> set[int]:
    """Return the indexes of the two highest and the two lowest lines of a page."""
    order = sorted(range(len(page)), key=lambda at: page[at].bottom)
    return {*order[:2], *order[-2:]}


def _furniture_keys(held: Line, number: int) -> set[_Key]:
    """Return keys that equal headers or footers of several pages share: height, words, and a page number as "#"."""
    height, text = round(held.bottom / 3), " ".join(held.text.split()).strip(" -–|")
    matches = list(_DIGITS.finditer(text))
    counted = {
        (height, f"{text[: match.start()]}#{text[match.end() :]}", int(match[0]) - number)
        for match in (*matches[:1], *matches[-1:])
    }
    return {(height, text, 0), *counted}


def _usual_size(lines: Iterable[Line]) -> float:
    """Return the size of most characters."""
    sizes: Counter[float] = Counter()
    for held in lines:
        sizes[round(held.size * 2) / 2] += len(held.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def _heading_levels(lines: Sequence[Line], usual: float) -> dict[float, int]:
    """Return the heading level of each size, the largest first; similar sizes share a level."""
    sizes = sorted(
        {round(held.size * 2) / 2 for held in lines if held.size >= usual * LARGER and len(held.text) <= HEADING},
        reverse=True,
    )
    levels: dict[float, int] = {}
    level, last = 0, 0.0
    for size in sizes:
        if not level or size < last * 0.95:
            level, last = level + 1, size
        levels[size] = min(level, LEVELS)
    return levels


def _continues_paragraph(paragraph: Sequence[Line], held: Line, edge: float, levels: dict[float, int]) -> bool:
    """Return whether a line belongs to the paragraph before it; `edge` is the right edge of its column."""
    last = paragraph[-1]
    if abs(held.size - last.size) > SAME or _begins_item(paragraph, held) or LEADER in last.text:
        return False
    if held.bold != last.bold and (len(paragraph) == 1 or _heading_level(last, levels)):
        return False
    ended = _ENDS.search(last.text) is not None
    if held.top > last.bottom + last.size / 2:  # the next column or page
        return not ended and held.text[:1].islower()
    if last.bottom - held.top > AIRY * held.size:
        return False
    listed = _BULLET.match(paragraph[0].text) or _NUMBER.match(paragraph[0].text)
    if ended and not listed and held.left - paragraph[-1].left > INDENT * held.size:
        return False
    free = edge - last.right
    return free < SHORT * (edge - last.left) and (free < 8 * held.size or not (ended or held.text[:1].isupper()))


def _column_edges(page: Sequence[Line]) -> list[float]:
    """Return for each line the right edge of its column; lines with a similar left edge are in this column."""
    ordered = sorted(page, key=attrgetter("left"))
    lefts = [held.left for held in ordered]
    # At n: for each line, the farthest edge of it and the next 2**n - 1 lines.
    farthest = [[held.right for held in ordered]]
    while len(farthest[-1]) > (step := 1 << (len(farthest) - 1)):
        farthest.append(list(map(max, farthest[-1], farthest[-1][step:])))
    edges = []
    for held in page:
        start = bisect_left(lefts, held.left - NEAR * held.size)
        end = bisect_right(lefts, held.left + NEAR * held.size)
        n = (end - start).bit_length() - 1
        edges.append(max(farthest[n][start], farthest[n][end - (1 << n)]))
    return edges


def _begins_item(paragraph: Sequence[Line], held: Line) -> bool:
    """Return whether a line begins a list item."""
    if _BULLET.match(held.text):
        return True
    last = paragraph[-1]
    listed = _NUMBER.match(paragraph[0].text) or _BULLET.match(paragraph[0].text)
    return _NUMBER.match(held.text) is not None and bool(listed or _ENDS.search(last.text) or last.right < held.right)


def _heading_level(held: Line, levels: dict[float, int]) -> int:
    return levels.get(round(held.size * 2) / 2, 0)


def _format_paragraph(lines: Sequence[Line], levels: dict[float, int], usual: float) -> str:
    """Format lines as a heading, a list item, or prose."""
    text = _join_lines([held.text for held in lines])
    if LEADER in text:
        return escape_line(text)
    level = _heading_level(lines[0], levels)
    if level and len(text) <= HEADING and any(char.isalpha() for char in text):
        return f"{'#' * level} {escape_inline(text)}"
    if (
        all(held.bold for held in lines)
        and len(lines) <= 2
        and len(text) <= 100
        and not _ENDS.search(text)
        and lines[0].size >= usual * 0.95
    ):
        return f"{'#' * min(6, max(levels.values(), default=0) + 1)} {escape_inline(text)}"
    if bullet := _BULLET.match(text):
        return f"- {escape_line(text[bullet.end() :])}"
    if number := _NUMBER.match(text):
        digits = number[1] if number[1].isdigit() else str(ord(number[1]) - 96)
        return f"{digits}. {escape_line(text[number.end() :])}" if number[1].isdigit() else f"- {escape_line(text)}"
    return escape_line(text)


def _join_lines(texts: Sequence[str]) -> str:
    """Join lines with spaces, but without one between characters of scripts that are written without spaces."""
    pieces = list(texts[:1])
    for before, more in itertools.pairwise(texts):
        close = _is_unspaced(before[-1:]) and _is_unspaced(more[:1])
        pieces += [more] if close else [" ", more]
    return "".join(pieces)


def _is_unspaced(char: str) -> bool:
    return "\u3000" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef"


def _join_blocks(blocks: Sequence[str]) -> str:
    """Join blocks with blank lines, but without blank lines between list items."""
    text = list(blocks[:1])
    for before, block in itertools.pairwise(blocks):
        text += ["\n" if _is_item(before) and _is_item(block) else "\n\n", block]
    return "".join(text)


def is_item_mark(text: str) -> bool:
    """Return whether `text` is the mark of a list item."""
    return _MARK.fullmatch(text) is not None


def _is_item(block: str) -> bool:
    return re.match(r"(?:-|\d{1,3}\.) ", block) is not None


def _find_tables(page: Sequence[Line]) -> dict[int, int]:
    """Return the end of each table by the line where it begins: lines below each other whose cells are in columns."""
    tables: dict[int, int] = {}
    start = 0
    for end in range(1, len(page) + 1):
        if end == len(page) or len(page[end].cells) < 2 or page[end].bottom >= page[end - 1].bottom:
            if (first := _find_table_start(page, start, end)) < end:
                tables[first] = end
            start = end
    return tables


def _find_table_start(page: Sequence[Line], start: int, end: int) -> int:
    """Return where the table begins that ends at `end`, from `start` on; `end` if there is none.

    If the cells of some lines are in columns, those of their last lines are too."""
    first = bisect_left(range(start, end - 1), True, key=lambda at: _is_in_columns(page[at:end])) + start
    cells = [len(text) for row in page[first:end] for _, _, text in row.cells]
    length, count = sum(cells), len(cells)
    for at in range(first, end - 1):
        if length <= PROSE * count:
            return at
        length -= sum(len(text) for _, _, text in page[at].cells)
        count -= len(page[at].cells)
    return end


def _is_in_columns(rows: Sequence[Line]) -> bool:
    """Return whether each row has several cells, and each of them in another column."""
    columns = _find_columns(rows)
    return len(columns) * len(rows) <= CELLS and all(
        len({_column_of(columns, cell) for cell in row.cells}) == len(row.cells) > 1 for row in rows
    )


def _find_columns(rows: Sequence[Line]) -> list[tuple[float, float]]:
    """Return the left and right edges of the columns, from left to right; cells that overlap share a column."""
    columns: list[tuple[float, float]] = []
    for left, right, _ in sorted(cell for row in rows for cell in row.cells):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _column_of(columns: Sequence[tuple[float, float]], cell: tuple[float, float, str]) -> int:
    at = bisect_left(columns, cell[0], key=itemgetter(1))
    return at if at < len(columns) and columns[at][0] <= cell[0] else 0


def _format_table(rows: Sequence[Line]) -> str:
    columns = _find_columns(rows)
    filled = []
    for row in rows:
        values = [""] * len(columns)
        for held in row.cells:
            values[_column_of(columns, held)] = held[2]
        filled.append(values)
    return format_table(filled)
