"""Detect the type of a file by its first bytes, then by its name; refuse types that Memex cannot read."""

from __future__ import annotations

import re
from typing import Final

from index.deferred_patterns import possessive
from index.errors import InvalidArgument

MARKDOWN: Final = "text/markdown"
TEXT: Final = "text/plain"
HTML: Final = "text/html"
CSV: Final = "text/csv"
JSON: Final = "application/json"
PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

STRAY_NULLS: Final = 4  # null bytes that a text may contain by mistake
HEAD: Final = 65_536  # first bytes of a file that are enough to detect its type

SUFFIXES: Final = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".txt": TEXT, ".text": TEXT, ".log": TEXT,
    ".html": HTML, ".htm": HTML, ".xhtml": HTML, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON,
    ".pdf": PDF, ".docx": DOCX, ".pptx": PPTX, ".xlsx": XLSX,
}  # fmt: skip
KNOWN: Final = frozenset(SUFFIXES)
NAMED: Final = {
    MARKDOWN: "Markdown", TEXT: "text", HTML: "HTML", CSV: "CSV", JSON: "JSON", PDF: "PDF",
    DOCX: "Word (.docx)", PPTX: "PowerPoint (.pptx)", XLSX: "Excel (.xlsx)",
}  # fmt: skip
OFFICE: Final = {DOCX: b"word/", PPTX: b"ppt/", XLSX: b"xl/"}  # the archive folder that identifies each type
TEXTUAL: Final = frozenset({MARKDOWN, TEXT, HTML, CSV, JSON})

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SEALED: Final = "EncryptedPackage".encode("utf-16-le")
_ZIPPED: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_UNICODE: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
# A comment ends at its first "-->": if it could end at later ones too, a row of comments would take exponential time.
_COMMENTS: Final = possessive(r"<!--(?:(?!-->).){0,2000}-->\s*+", "*")
_HTML: Final = re.compile(
    rb"\s*+(?:<\?xml[^>]{0,200}>\s*+)?%s<(?:!doctype\s+html|html[\s>])" % _COMMENTS.encode(), re.IGNORECASE | re.DOTALL
)
# The first bytes of unsupported files, and the names of their types.
_FOREIGN: Final = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"), (b"MM\x00*", "a TIFF image"), (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"), (b"Rar!", "a RAR archive"), (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x1f\x8b", "a gzip archive"), (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ\x00", "an xz archive"),
    (b"(\xb5/\xfd", "a Zstandard archive"), (b"\x7fELF", "a program"), (b"MZ\x90\x00", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"), (b"OggS", "a sound file"), (b"ID3", "a sound file"),
    (b"RIFF", "a sound, image or video file"),
)  # fmt: skip


def suffix(name: str) -> str:
    """Return the suffix of a file's name, with its dot and in lower case; "" if it has none."""
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else ""


def media_type_of(name: str, head: bytes) -> str:
    """Return the media type of the file `name` that begins with `head` (its first `HEAD` bytes, or all of it).

    Raises InvalidArgument, with the reason, if Memex cannot read the file."""
    named = SUFFIXES.get(suffix(name))
    if not head:
        raise InvalidArgument("the file is empty")
    if (at := head.find(b"%PDF-", 0, 1024 + 5)) >= 0 and (at == 0 or named in (PDF, None)):
        return PDF
    if head.startswith(_ZIPPED):
        return _office_type(named, head)
    if head.startswith(_OLE):
        raise InvalidArgument(_explain_ole(head))
    if (what := next((what for start, what in _FOREIGN if head.startswith(start)), None)) and named not in TEXTUAL:
        raise InvalidArgument(f"the file is {what}, which Memex does not read; {_supported_types()}")
    if has_stray_nulls(head) and not head.startswith(_UNICODE) and not guess_utf16(head):
        raise InvalidArgument(f"the file contains bytes that are not text{_name_claim(named)}; {_supported_types()}")
    if named in TEXTUAL:
        return HTML if named == TEXT and _HTML.match(head) else named
    if named is not None:
        raise InvalidArgument(f"the content of the file does not match its name: it is not {NAMED[named]}")
    if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    if not suffix(name):
        return TEXT
    raise InvalidArgument(f"Memex does not read files of this type; {_supported_types()}")


def _office_type(named: str | None, head: bytes) -> str:
    """Return the type of a ZIP archive by its parts' names, or else by the file's own name, which the reader checks.

    Raises InvalidArgument if it is no supported Office file."""
    if b"mimetypeapplication/" in head[:80]:
        raise InvalidArgument(
            "the file is an OpenDocument or EPUB file, which Memex does not read; save it as .docx, .pptx, .xlsx or .pdf"
        )
    held = [kind for kind, folder in OFFICE.items() if folder in head]
    if named in held or (named in OFFICE and not held):
        return named or ""
    if len(held) == 1:
        return held[0]
    raise InvalidArgument(
        f"the file is a ZIP archive, which Memex does not read{_name_claim(named)}; {_supported_types()}"
    )


def _explain_ole(head: bytes) -> str:
    if _SEALED in head:
        return "the file is protected by a password; save it without one"
    return "the file is of an old Office format (or protected by a password); save it as .docx, .pptx or .xlsx without a password"


def has_stray_nulls(head: bytes) -> bool:
    """Return whether `head` contains more null bytes than a text may contain by mistake."""
    return head.count(0) > STRAY_NULLS + len(head) // 1_000


def guess_utf16(head: bytes) -> str | None:
    """Guess the byte order of UTF-16 text without a byte order mark, by the null high bytes of Latin letters.

    None if the text does not look like UTF-16."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) > max(STRAY_NULLS, len(head) // 5) and min(even, odd) <= len(head) // 200:
        return "utf-16-be" if even > odd else "utf-16-le"
    return None


def _name_claim(named: str | None) -> str:
    return f", although its name says {NAMED[named]}" if named else ""


def _supported_types() -> str:
    return f"supported types: {', '.join(NAMED.values())}"
