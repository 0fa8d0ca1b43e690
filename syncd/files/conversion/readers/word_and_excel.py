"""Read Word and Excel files as Markdown."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any, BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZipFile

import mammoth
import python_calamine
from mammoth import documents, transforms

from syncd.files.conversion.readers.clean_text import escape_inline, format_rows
from syncd.files.conversion.readers.html_page import convert_html
from syncd.files.conversion.readers.office_archive import open_archive
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge, UnreadableFile
from syncd.files.conversion.readers.word_markup import rewrite_markup

BLOCK: Final = 1 << 20
CELLS: Final = 20_000_000  # most cells of one sheet, including empty ones; all are in memory at once
_STYLES: Final = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Preformatted Text'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Quotations'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
"""

_CHECKBOX: Final = re.compile(r'<input (checked="checked" )?type="checkbox" />')
# Elements that mammoth reports as left out, and whose text Word shows.
_LEFT_OUT: Final = {
    "oMath": "equations were left out",
    "oMathPara": "equations were left out",
    "altChunk": "inserted documents were left out",
    "subDoc": "inserted documents were left out",
}
# The beginning of a cell with an error, such as #DIV/0!, which calamine reads as an empty cell.
_ERROR: Final = re.compile(rb"""(<(?:[\w.-]+:)?c\s[^<>]*\bt=)(["'])e\2""")
_ELEMENT: Final = re.compile("[}: ]")  # precedes the name of the element in a message
_REFERENCE: Final = re.compile(r"\[\\\[(\d{1,6})\\\]\]\(#(?:foot|end)note-\d{1,6}\)")
# Lines and paragraphs of a note after the first are indented.
_NOTE: Final = re.compile(r"^(\d{1,6})\. (.*(?:\n+ {3}.*)*) \[↑\]\(#(?:foot|end)note-ref-\d{1,6}\)$", re.MULTILINE)


def read_docx(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read a Word file: headings, lists, tables, links and footnotes; no pictures, comments or deleted text."""
    open_archive(file, "word/", limits).close()
    file.seek(0)
    lost = set[str]()
    try:
        made = mammoth.convert_to_html(
            rewrite_markup(file),
            transform_document=partial(_drop_lost_references, warnings=lost),
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=lambda _: [],
            ignore_empty_paragraphs=True,
        )
    except RecursionError as error:
        raise TooLarge("the document is nested too deeply") from error
    html = _CHECKBOX.sub(lambda box: "☒" if box[1] else "☐", made.value)
    text = _REFERENCE.sub(r"[^\1]", convert_html(html))
    messages = [message.message for message in made.messages]
    lost |= {_LEFT_OUT[name] for message in messages if (name := _ELEMENT.split(message)[-1]) in _LEFT_OUT}
    lost |= {"symbols of unknown fonts were left out" for message in messages if message.startswith("A w:sym element")}
    return MarkdownReading(_NOTE.sub(_write_note, text), warnings=tuple(sorted(lost)))


def _drop_lost_references(document: Any, warnings: set[str]) -> Any:
    """Return the document without references to notes that the file lacks, which mammoth can't convert."""

    def is_lost(reference: Any) -> bool:
        try:
            document.notes.resolve(reference)
        except KeyError:
            return True
        return False

    if not any(map(is_lost, transforms.get_descendants_of_type(document, documents.NoteReference))):
        return document
    warnings.add("footnotes that the file lacks were left out")
    drop = transforms.element_of_type(
        documents.NoteReference, lambda reference: documents.text("") if is_lost(reference) else reference
    )
    return drop(document)


def _write_note(match: re.Match[str]) -> str:
    """Return a footnote of Markdown, whose further lines have an indentation of four blanks."""
    number, text = match[1], match[2]
    return f"[^{number}]: {text.replace(chr(10) + ' ' * (len(number) + 2), chr(10) + ' ' * 4)}"


def read_xlsx(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read an Excel file: each visible sheet as a section, each block of rows as a table, with computed values."""
    open_archive(file, "xl/", limits).close()
    file.seek(0)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(_show_errors(file))
        metadata = [sheet for sheet in book.sheets_metadata if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet]
        shown = [sheet.name for sheet in metadata if sheet.visible == python_calamine.SheetVisibleEnum.Visible]
        hidden = len(metadata) - len(shown)
        warning = "one hidden sheet was left out" if hidden == 1 else f"{hidden} hidden sheets were left out"
        warnings = (warning,) if hidden else ()
        text, size = [], 0
        for name in shown[: limits.pages]:
            if size > limits.text:
                break
            held = _format_sheet(book, name)
            if held:
                text.append(f"## {escape_inline(' '.join(name.split()))}\n\n{held}")
                size += len(text[-1])
    except python_calamine.PasswordError as error:
        raise UnreadableFile("the file is protected by a password; save it without one") from error
    except (python_calamine.CalamineError, ValueError, OSError) as error:
        raise UnreadableFile("the file is damaged: it is not a readable Excel workbook") from error
    if not text and shown:
        warnings = (*warnings, "the sheets contain no values")
    return MarkdownReading(
        "\n\n".join(text),
        pages=len(shown),
        cut=len(shown) > limits.pages or size > limits.text,
        warnings=warnings,
    )


def _show_errors(file: BinaryIO) -> BinaryIO:
    """Return the Excel file, or a copy in memory in which errors are the texts of their cells."""
    with ZipFile(file) as archive:
        parts = [name for name in archive.NameToInfo if not name.lower().startswith("xl/media/")]
        if any(_ERROR.search(piece) for name in parts for piece in _pieces(archive, name)):
            copy = io.BytesIO()
            with ZipFile(copy, "w", ZIP_DEFLATED, compresslevel=1) as rewritten:
                for name in parts:
                    with rewritten.open(name, "w", force_zip64=True) as part:
                        for piece in _pieces(archive, name):
                            part.write(_ERROR.sub(rb'\1"str"', piece))
            file = copy
    file.seek(0)
    return file


def _pieces(archive: ZipFile, name: str) -> Iterator[bytes]:
    """Yield the bytes of a part in pieces that don't end within a tag, unless one is longer than a piece."""
    rest = b""
    with archive.open(name) as part:
        while block := part.read(BLOCK):
            rest += block
            end = rest.rfind(b"<")
            end = end if end > 0 else len(rest)
            yield rest[:end]
            rest = rest[end:]
    yield rest


def _format_sheet(book: Any, name: str) -> str:
    sheet = book.get_sheet_by_name(name)
    if sheet.height * sheet.width > CELLS:
        raise TooLarge(f"a sheet has more than {CELLS:,} cells")
    return "\n\n".join(format_rows(rows) for rows in _split_into_blocks(sheet.iter_rows()))


def _split_into_blocks(rows: Iterator[list[Any]]) -> Iterator[list[list[str]]]:
    """Yield the rows of a sheet in blocks separated by empty rows."""
    values = ([_format_value(value) for value in row] for row in rows)
    for is_filled, block in groupby(values, any):
        if is_filled:
            yield _trim(list(block))


def _trim(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows without empty columns at both sides."""
    filled = {i for row in rows for i, value in enumerate(row) if value}
    first, last = min(filled), max(filled)
    return [row[first : last + 1] for row in rows]


def _format_value(value: Any) -> str:
    """Format a value as a person would read it."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
        case dt.datetime():
            whole = value.time() == dt.time()
            return value.date().isoformat() if whole else value.isoformat(" ", "seconds")
        case dt.time():
            return value.isoformat("seconds")
        case dt.timedelta():
            return str(value)
        case _:
            return " ".join(str(value).split())
