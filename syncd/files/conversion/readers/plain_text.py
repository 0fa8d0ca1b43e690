"""Read files that are plain text already: text in any encoding, Markdown, JSON and CSV."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

import charset_normalizer

from index.deferred_patterns import possessive
from syncd.documents.file_types import guess_utf16, has_stray_nulls
from syncd.files.conversion.readers.clean_text import INVISIBLE, format_rows, make_fence, remove_invisible
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge, UnreadableFile
from syncd.notes.front_matter import FrontmatterError, read_properties, split

SAMPLE: Final = 65_536  # bytes from which the encoding is guessed
WIDEST: Final = 1_000  # most columns of a table
DEEPEST: Final = 40  # most levels of indentation
BAD: Final = "\ufffd"
SOME: Final = "some bytes are not text; Memex replaced them"
_BEYOND: Final = re.compile("[^\x00-\x7f]")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
# Common encodings of text without a mark, the likeliest first; those of Windows contain older ones. Without this list, a few German words may be guessed as Mac Icelandic.
_LIKELY: Final = [
    "cp1252", "cp1250", "cp1255", "cp1251", "cp1253", "cp1254", "cp1256", "koi8_r",
    "cp932", "euc_jp", "gb18030", "big5", "cp949",
]  # fmt: skip
_JAPANESE: Final = re.compile(rb"\x1b\$[@B]")  # begins Japanese characters in ISO-2022-JP, whose bytes are all ASCII
_STRING: Final = (
    r'"[^"\\]*+' + possessive(r'\\.[^"\\]*+', "*") + '"'
)  # a choice for each character would take 100 bytes of memory each
_TOKEN: Final = re.compile(_STRING + r'|[][{}:,]|[^\s"\][{}:,]+')
_DELIMITERS: Final = ",;\t|"
_LINE_END: Final = re.compile("\r\n|[\r\n]")


def decode(raw: bytes, *, cut: bool = False) -> tuple[str, tuple[str, ...]]:
    """Decode `raw`; return the text, and a warning if the encoding was guessed or bytes were replaced.

    With `cut`, `raw` may end inside a character, which is left out. Raises UnreadableFile if it is not text."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return _decode_as(name, raw, cut=cut), ()
    if _JAPANESE.search(raw):
        with suppress(UnicodeDecodeError):
            return _decode_as("iso2022_jp", raw, cut=cut, errors="strict"), ()
    sample = raw[:SAMPLE]
    guess = guess_utf16(sample)
    if guess is None and has_stray_nulls(sample):
        raise UnreadableFile("the file contains bytes that are not text")
    text = _decode_as("utf-8", raw, cut=cut) if guess is None else ""
    bad = text.count(BAD)
    if guess is None and bad < max(1, len(_BEYOND.findall(text)) - bad):
        return text, (SOME,) * (bad > 0)
    guess = guess or _guess_encoding(raw.replace(b"\x00", b""))
    if guess is not None:
        return _decode_as(guess, raw, cut=cut), (f"the encoding was guessed: {guess}",)
    if bad > len(text) // 20:
        raise UnreadableFile("the file contains bytes that are not text in any known encoding")
    return text, (SOME,)


def _decode_as(name: str, raw: bytes, *, cut: bool, errors: str = "replace") -> str:
    return codecs.getincrementaldecoder(name)(errors).decode(raw, final=not cut)


def _guess_encoding(raw: bytes) -> str | None:
    at = next((i for i in range(0, len(raw), SAMPLE) if not raw[i : i + SAMPLE].isascii()), 0)
    sample = raw[max(0, at - SAMPLE // 2) : at + SAMPLE]
    matches = {match.encoding: match for match in charset_normalizer.from_bytes(sample, cp_isolation=_LIKELY, steps=10)}
    rank = {name: (round(match.chaos, 2), -round(match.coherence, 2)) for name, match in matches.items()}
    return min(rank, key=lambda name: (rank[name], _LIKELY.index(name)), default=None)


def read_text(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read text unchanged."""
    text, warnings, cut = _read_decoded(file, limits)
    return MarkdownReading(remove_invisible(text), cut=cut, warnings=warnings)


def read_markdown(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read Markdown unchanged, with its front matter, from which the new note takes properties."""
    text, warnings, cut = _read_decoded(file, limits)
    front, _ = split(text := remove_invisible(text))
    if front:
        try:
            read_properties(front)
        except FrontmatterError:
            warnings = (*warnings, "the front matter is not YAML")
    return MarkdownReading(text, cut=cut, warnings=warnings)


def read_json(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read JSON, or JSON with one value per line, as an indented code block; invalid JSON stays unchanged."""
    text, warnings, cut = _read_decoded(file, limits)
    problem = "the JSON is too large to be formatted" if cut else _find_problem(text)
    body = remove_invisible(text).strip("\n") if problem else _lay_out_json(text)
    warnings = (*warnings, problem) if problem else warnings
    fence = make_fence(body, 3)
    return MarkdownReading(f"{fence}json\n{body}\n{fence}\n" if body.strip() else "", cut=cut, warnings=warnings)


def _find_problem(text: str) -> str:
    """Return why a text can't be formatted as JSON, or as JSON with one value per line; "" = it can."""
    try:
        _parse_json(text)
    except RecursionError:
        return "the JSON is nested too deeply to be formatted"
    except ValueError:
        try:
            for line in filter(str.strip, _LINE_END.split(text)):
                _parse_json(line)
        except (ValueError, RecursionError):
            return "the file is not valid JSON; Memex keeps it as text"
    return ""


def _parse_json(text: str) -> Any:
    """Parse JSON; an integer becomes a float, because Python refuses an integer of more than 4,300 digits."""
    return json.loads(text, parse_int=float)


def _lay_out_json(text: str) -> str:
    """Format valid JSON with one value per line; numbers stay as they were written, and only invisible characters are escaped."""
    parts: list[str] = []
    depth, before = 0, ""
    for word in _TOKEN.findall(text):
        closes = word in "]}"
        depth -= closes
        if before == ":":
            parts.append(" ")
        elif before and word not in ",:" and not (closes and before in "[{"):
            parts.append("\n" + " " * min(depth, DEEPEST))
        parts.append(_format_string(word) if word[0] == '"' else word)
        depth += word in "[{"
        before = word
    return "".join(parts)


def _format_string(word: str) -> str:
    # What is removed from the text later could join two runs of backticks to one that ends the code block.
    return INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], json.dumps(json.loads(word), ensure_ascii=False))


def read_csv(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read rows of values as a table; a file with a single column stays text. Raises TooLarge."""
    text, warnings, cut = _read_decoded(file, limits)
    rows = [row for row in _parse_rows(text) if any(value.strip() for value in row)]
    if rows and max(map(len, rows)) > WIDEST:
        raise TooLarge(f"a row has more than {WIDEST:,} columns")
    if rows and max(map(len, rows)) == 1:
        return MarkdownReading(text, cut=cut, warnings=warnings)
    return MarkdownReading(format_rows(rows), cut=cut, warnings=warnings)


def _parse_rows(text: str) -> Iterator[list[str]]:
    csv.field_size_limit(max(131_072, len(text)))
    lines = _LINE_END.split(text, 1)
    first = lines[0].strip().lower()
    separator = first[4] if len(first) == 5 and first.startswith("sep=") and first[4] != '"' else ""
    if separator and len(lines) == 2:
        text = lines[1]
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator or _guess_delimiter(text))


def _guess_delimiter(text: str) -> str:
    """Return the delimiter: of the usual characters, the one that gives the most rows of equal width."""

    def equal_rows(delimiter: str) -> tuple[int, int]:
        rows = itertools.islice(csv.reader(io.StringIO(text[:SAMPLE], newline=""), delimiter=delimiter), 50)
        widths = [len(row) for row in rows if row]
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=1)
        return (widths.count(usual) if usual > 1 else 0, usual)

    return max(_DELIMITERS, key=equal_rows)


def _read_decoded(file: BinaryIO, limits: ReaderLimits) -> tuple[str, tuple[str, ...], bool]:
    """Read and decode a file; return the text, warnings, and whether it was cut.

    It reads four bytes for each byte of the text limit, because an encoding takes at most four bytes per character."""
    raw = file.read(limits.text * 4 + 1)
    cut = len(raw) > limits.text * 4
    text, warnings = decode(raw, cut=cut)
    return text, warnings, cut
