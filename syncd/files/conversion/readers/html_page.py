"""Read an HTML page as Markdown: the content that a browser shows at first, without active or embedded content."""

from __future__ import annotations

import re
from typing import BinaryIO, Final

import html_to_markdown

from index.text.link_schemes import is_allowed
from syncd.files.conversion.readers.plain_text import decode
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge, UnreadableFile

_CHARSET: Final = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_OPTIONS: Final = html_to_markdown.ConversionOptions(
    bullets="-", compact_tables=True, escape_misc=True, escape_asterisks=True, inline_data_media="drop_element",
    hidden_content="drop", extract_metadata=True, autolinks=False, list_indent_width=4,
    exclude_selectors=["iframe", "object", "embed", "audio", "video", "canvas", "svg"],
    preprocessing=html_to_markdown.PreprocessingOptions(enabled=True, remove_navigation=True, remove_forms=True),
)  # fmt: skip
LARGEST: Final = 64 << 20  # most bytes of HTML; its tree takes many times as much memory

_FENCE: Final = re.compile(r" {0,12}(`{3,}|~{3,})")
_CODE: Final = re.compile(r"(`+)(?!`)[^\n]{1,4000}?(?<!`)\1(?!`)")
_LEAD: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(?:\\[-+=~#]|\d{1,9}\\[.)](?=\s|$))?")
# Escapes that the converter adds everywhere, but that only the start of a line needs.
_NEEDLESS: Final = re.compile(r"\\(?:(\\)|([-.=+&~(){}!]))")
_HASH: Final = re.compile(r"(?<=[\w/&])\\#|\\#(?=[\d\s]|$)")
_IMAGE: Final = re.compile(r"!\[([^\[\]\n]{0,1000})\]\(([^()\s]{0,2000})(?:\s+\"[^\"\n]{0,1000}\")?\)")
_LINK: Final = re.compile(
    r"\[([^\[\]\n]{0,1000})\]\(<?\s*([^()\s][^()\n]{0,4000}(?:\([^()\n]{0,2000}\)[^()\n]{0,2000})*)\)"
)


def read_html(file: BinaryIO, _: ReaderLimits) -> MarkdownReading:
    """Read a page; its title is the document's title. Raises TooLarge or UnreadableFile."""
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise TooLarge(f"the page has more than {LARGEST >> 20} MiB of HTML")
    text, warnings = _decode(raw)
    markdown_, title = convert_html(text)
    return MarkdownReading(markdown_, title=title, warnings=warnings)


def convert_html(html: str) -> tuple[str, str | None]:
    """Convert HTML to Markdown; return it and the title that the HTML states. Raises UnreadableFile."""
    try:
        made = html_to_markdown.convert(html, _OPTIONS)
    except (html_to_markdown.ConversionError, ValueError, RuntimeError) as error:
        raise UnreadableFile("the HTML can't be read") from error
    text = made.content or ""
    document = made.metadata.document if made.metadata else None
    title = document.title if document else None
    if text.startswith("---\n") and (end := text.find("\n---\n", 3)) > 0:  # metadata from the page's head
        text = text[end + 5 :]
    return _simplify(text.lstrip("\n")), " ".join(title.split()) if title and title.strip() else None


def _decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a page with the encoding that it states, or else with a guessed one; return the text and warnings."""
    if (stated := _CHARSET.search(raw, 0, 4096)) and not raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode(stated[1].decode("ascii")), ()
        except (LookupError, ValueError):
            pass  # an unknown encoding, or not the page's real one
    return decode(raw)


def _simplify(text: str) -> str:
    """Remove needless escapes from Markdown, turn images into links, and forbidden links into their text."""
    lines, fence = [], ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match and (not fence or (match[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else match[1]
        elif line and not fence:
            line = _simplify_line(line)  # noqa: PLW2901 (replaces the line)
        lines.append(line)
    return "\n".join(lines)


def _simplify_line(line: str) -> str:
    """Remove needless escapes from a line, except at its start and in code; handle images and links as `_simplify`."""
    match = _LEAD.match(line)
    at = match.end() if match else 0
    parts, last = [line[:at]], at
    for code in _CODE.finditer(line, at):
        parts += [_simplify_prose(line[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, _simplify_prose(line[last:])])


def _simplify_prose(text: str) -> str:
    text = _NEEDLESS.sub(lambda match: "\\\\" if match[1] else match[2], text)
    text = _HASH.sub("#", text)
    text = _IMAGE.sub(lambda match: f"[{match[1]}]({match[2]})" if match[1].strip() and match[2] else match[1], text)
    return _LINK.sub(lambda match: match[0] if is_allowed(match[2]) else match[1], text)
