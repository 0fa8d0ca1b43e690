"""Read an HTML page as Markdown: the content that a browser shows at first, without active or embedded content."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import BinaryIO, Final

from justhtml import JustHTML

from syncd.files.conversion.readers.html_markdown import write_markdown
from syncd.files.conversion.readers.plain_text import decode
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge

_CHARSET: Final = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_WIDE: Final = re.compile(rb"utf-?(?:16|32)|ucs-?[24]", re.IGNORECASE)
# Encodings that a page may state, and those that browsers read instead (https://encoding.spec.whatwg.org/#names-and-labels).
_INSTEAD: Final = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "shift_jis": "cp932", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
}  # fmt: skip
_XHTML: Final = re.compile(r"\A\s*<\?xml\s|<html\s[^>]{0,1000}\bxmlns\s*=", re.IGNORECASE)
_VOID: Final = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"  # elements without an end tag
_EMPTY_TAG: Final = re.compile(rf"""<(?!(?:{_VOID})[\s/])([a-z][\w:.-]*)(\s[^<>]*["'\s])?/>""", re.IGNORECASE)
LARGEST: Final = 64 << 20  # most bytes of HTML; its tree takes many times as much memory


def read_html(file: BinaryIO, _: ReaderLimits) -> MarkdownReading:
    """Read a page. Raises TooLarge."""
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise TooLarge(f"the page has more than {LARGEST >> 20} MiB of HTML")
    text, warnings = _decode(raw)
    if _XHTML.search(text, 0, 4096):  # as HTML, an empty tag such as <title/> would be open to the end of the page
        text = _EMPTY_TAG.sub(r"<\1\2></\1>", text)
    return MarkdownReading(convert_html(text), warnings=warnings)


def convert_html(html: str) -> str:
    """Convert HTML to Markdown. Raises RecursionError if it is nested too deeply."""
    page = JustHTML(html, sanitize=False)  # the writer names what it writes, and leaves out the rest
    return write_markdown(page.root)


def _decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a page with the encoding that it states, or else with a guessed one; return the text and warnings."""
    stated = _CHARSET.search(raw, 0, 4096)
    # A page whose statement can be read as ASCII is in no encoding of wider units.
    if stated and not _WIDE.match(stated[1]) and not raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        with suppress(LookupError):  # an unknown encoding
            name = codecs.lookup(stated[1].decode("ascii")).name
            for encoding in (_INSTEAD.get(name, name), name):  # cp1252 lacks five bytes that ISO 8859-1 has
                with suppress(ValueError):  # not the page's real one
                    return raw.decode(encoding), ()
    return decode(raw)
