"""Read PDF files as text with PDFium; `page_layout` gets the position and letter size of each line."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import BinaryIO, Final

import pypdfium2
import pypdfium2.raw as pdfium

from syncd.files.conversion.readers.page_layout import Line, compose, is_item_mark
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, UnreadableFile

GAP: Final = 0.8  # of a letter's height: wider white space separates columns
LONG: Final = 200_000  # most characters of a page to read; no readable page has as many

_WORD: Final = re.compile(r"\S+")
_HEAVY: Final = re.compile(rb"bold|black|heavy|demi|cmbx|sfbx", re.IGNORECASE)


def read_pdf(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read the text layer of a PDF file, with the headings, lists and tables that can be detected; no pictures.

    Raises UnreadableFile."""
    try:
        document = pypdfium2.PdfDocument(file)
        document.init_forms()
        count = len(document)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise UnreadableFile("the file is protected by a password; save it without one") from error
        raise UnreadableFile("the file is damaged or incomplete: it is not a readable PDF") from error
    if count < 1:
        raise UnreadableFile("the file is damaged: it has no pages")
    pages: list[list[Line]] = []
    size, broken, shortened = 0, 0, 0
    for number in range(min(count, limits.pages)):
        if size > limits.text:
            break
        try:
            lines, is_whole = _read_lines(document, number)
            pages.append(lines)
            shortened += not is_whole
        except pypdfium2.PdfiumError:
            pages.append([])
            broken += 1
        size += sum(len(line.text) for line in pages[-1])
    if broken == len(pages):
        raise UnreadableFile("the file is damaged: none of its pages can be read")
    warnings = [f"{broken:,} pages are damaged"] * (broken > 0)
    warnings += _describe_missing_text(pages, broken)
    if shortened:
        warnings.append(f"only the first {LONG:,} characters of a page were read")
    if len(pages) < count:
        warnings.append(f"the first {len(pages):,} of {count:,} pages were read")
    is_cut = len(pages) < count or shortened > 0
    return MarkdownReading(compose(pages), pages=count, cut=is_cut, warnings=tuple(warnings))


def _describe_missing_text(pages: list[list[Line]], broken: int) -> list[str]:
    """Return the warning about pages without text; `broken` pages are empty because they are damaged."""
    empty = sum(not page for page in pages)
    if empty == len(pages):
        return ["the file contains no text: its pages are pictures, and Memex does not read text in pictures"]
    return [f"{empty - broken:,} of {len(pages):,} pages contain no text"] if empty > broken else []


def _read_lines(document: pypdfium2.PdfDocument, number: int) -> tuple[list[Line], bool]:
    """Return the lines of a page in the order in which the file draws them, and whether these are all."""
    if document.formenv:  # only then are the values of form fields part of the page
        with closing(document[number]) as page, suppress(pypdfium2.PdfiumError):
            page.flatten()
    with closing(document[number]) as page, closing(page.get_textpage()) as held:
        return list(_Page(held).lines()), held.count_chars() <= LONG


class _Page:
    """Reads the text of an open page, and the positions of its characters in points from the bottom of the page."""

    def __init__(self, held: pypdfium2.PdfTextPage) -> None:
        self._page = held.raw
        count = min(held.count_chars(), LONG)
        self._text: str = held.get_text_range(0, count) if count > 0 else ""
        self._even = count == len(self._text)  # if each character is in the text, the indexes of both are equal
        self._box, self._matrix = pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(200)

    def lines(self) -> Iterator[Line]:
        """Yield the lines that are not blank."""
        at = 0
        for text in self._text.split("\r\n"):
            if text.strip():
                yield self._make_line(text, at)
            at += len(text) + 2

    def _make_line(self, text: str, at: int) -> Line:
        """Return the line `text` that begins at index `at` of the page's text."""
        spans = [match.span() for match in _WORD.finditer(text)]
        cells: list[tuple[float, float, str]] = []
        begun = spans[0][0]
        left, low, right, high = head = self._char_box(at + begun)
        size = max(self._char_size(at + begun), self._char_size(at + spans[-1][1] - 1), 1.0)
        before = head
        for (_, end), (start, _) in itertools.pairwise([*spans, (len(text), len(text))]):
            before = self._char_box(at + end - 1)
            if start == len(text):
                break
            after = self._char_box(at + start)
            right, left = max(right, before[2], after[2]), min(left, before[0], after[0])
            apart = max(after[0] - before[2], before[0] - after[2])
            if apart > GAP * size and abs(after[1] - before[1]) < size / 2 and not is_item_mark(text[begun:end]):
                cells.append((*self._span(at + begun, at + end - 1), text[begun:end]))
                begun = start
        right, left = max(right, before[2]), min(left, before[0])
        cells.append((*self._span(at + begun, at + spans[-1][1] - 1), text[begun : spans[-1][1]]))
        bold = self._is_bold(at + spans[0][0]) and self._is_bold(at + spans[-1][1] - 1)
        return Line(text.strip(), left, right, high, min(low, before[1]), size, bold=bold, cells=tuple(cells))

    def _span(self, first: int, last: int) -> tuple[float, float]:
        start, end = self._char_box(first), self._char_box(last)
        return min(start[0], end[0]), max(start[2], end[2])

    def _char_box(self, at: int) -> tuple[float, float, float, float]:
        """Return the left, bottom, right and top edge of a character."""
        box = self._box
        if not pdfium.FPDFText_GetLooseCharBox(self._page, self._char_index(at), box):
            return 0.0, 0.0, 0.0, 0.0
        return box.left, box.bottom, box.right, box.top

    def _char_size(self, at: int) -> float:
        """Return the scaled font size of a character."""
        char = self._char_index(at)
        size = float(pdfium.FPDFText_GetFontSize(self._page, char))
        if pdfium.FPDFText_GetMatrix(self._page, char, self._matrix):
            size *= math.hypot(self._matrix.c, self._matrix.d)
        return size

    def _is_bold(self, at: int) -> bool:
        """Return whether a character's font is bold by its name; PDFium only guesses the weight."""
        length = pdfium.FPDFText_GetFontInfo(self._page, self._char_index(at), self._name, len(self._name), None)
        return 0 < length <= len(self._name) and _HEAVY.search(self._name.value) is not None

    def _char_index(self, at: int) -> int:
        return at if self._even else int(pdfium.FPDFText_GetCharIndexFromTextIndex(self._page, at))
