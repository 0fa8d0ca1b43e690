"""Split a note into its front matter and its body, change a property in place, and compose a new note.

Laws, tested: `front + body == text` for `front, body = split(text)`, whatever the text. An edit changes only the
lines of its keys. The results of `edit` and `compose` are read back and contain what was requested."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from index.names import fold
from syncd.notes.property_reader import (
    OWNED,
    PUBLISHING,
    PUBLISHING_PREFIX,
    FrontmatterError,
    Properties,
    PropertyKey,
    find_fences,
    is_reserved,
    read,
    scan,
)

# Names of `property_reader` that callers import from here.
__all__ = ["OWNED", "FrontmatterError", "is_reserved", "read"]

PropertyValue: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None

MERGE_CONFLICT: Final = "merge-conflict"  # the name of the defect
_MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_LINE_END = re.compile(r"\r\n|\n|\r")
_UNCLOSED = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\n|\r)\s*+[^\s:#-][^\r\n:]{0,200}:(?:\s|\Z)")
_BARE_KEY = re.compile(r"[^\W\d][\w /.()-]{0,200}")
# Text that this or another reader would not read as text (YAML 1.1 knows `no`, octal and base-60 numbers).
_MISREAD = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|[-+]?\.(?:inf|nan)|0[xob][\da-f_]+|[-+.]?\d[\d_.,:]*(?:e[-+]?\d*)?",
    re.IGNORECASE,
)
_INDICATORS = frozenset("[]{},&*!|>'\"%@`-?:#=<")
# Unicode's Default_Ignorable_Code_Point: characters that programs may ignore when they show or compare texts.
_NO_WIDTH = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def decode(raw: bytes) -> str:
    """Decode a file's bytes; bytes that are not UTF-8 become surrogates, which `encode` converts back."""
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Encode a text to bytes: the inverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def replace_undecoded(text: str) -> str:
    """Return a text from `decode` with U+FFFD for the bytes that are not UTF-8."""
    return encode(text).decode("utf-8", "replace")


def split(text: str) -> tuple[str, str]:
    """Split a note into its front matter (byte order mark, fences, the line end after them; "" = none) and its body."""
    cut = find_fences(text)[2]
    return text[:cut], text[cut:]


def replace_body(text: str, body: str) -> str:
    """Return `text` with another body. If the front matter ends without a line end, one is added."""
    front = split(text)[0]
    if front.removeprefix("\ufeff") and body and front[-1] not in "\r\n":
        front += "\r\n" if "\r\n" in front else "\n"
    return front + body


def is_unclosed(text: str) -> bool:
    """Return whether `text` begins with properties that lack their closing fence, so that they count as text."""
    return find_fences(text)[1] == 0 and _UNCLOSED.match(text) is not None


def has_merge_conflict(text: str) -> bool:
    """Return whether the text contains merge markers: lines that begin with them, in their order."""
    if _MERGE_MARKS[0] not in text:
        return False
    wanted = list(_MERGE_MARKS)
    for line in text.splitlines():
        if wanted and (line == wanted[0] or line.startswith(f"{wanted[0]} ")):
            wanted.pop(0)
    return not wanted


def read_properties(front: str) -> dict[str, Any]:
    """Return the values of a front matter: JSON-safe, text as written, the last of a repeated key.

    Raises FrontmatterError."""
    return read(front).values


def readable_properties(text: str) -> dict[str, Any]:
    """Return the values of a note's properties; none when its front matter can't be read."""
    try:
        return read_properties(split(text)[0])
    except FrontmatterError:
        return {}


def comparable_key(key: str) -> str:
    """Return a property's name as Obsidian compares it and a person reads it: without zero-width characters."""
    return fold(_NO_WIDTH.sub("", unicodedata.normalize("NFKC", key))).strip()


def is_publishing(key: str) -> bool:
    """Return whether `key`, in any spelling, decides what is published from the vault; only the owner may set it."""
    name = comparable_key(key)
    return name in PUBLISHING or name.startswith(PUBLISHING_PREFIX)


def compose(properties: Mapping[str, PropertyValue], body: str) -> str:
    """Compose a new note, as Obsidian's property editor would write it.

    Raises FrontmatterError if YAML can't express it."""
    if not properties and split(body) == ("", body):
        return body
    front = (
        "---\n"
        + "".join(_format_property(_format_key(key), value, "", "\n") for key, value in properties.items())
        + "---\n"
    )
    verify(front, dict(properties))
    return front + body


def edit(text: str, changes: Mapping[str, PropertyValue]) -> str:
    """Return `text` with properties set, or removed where the value is None; a new key goes before the closing fence.

    Keys match in any letter case, and keep theirs. Raises FrontmatterError, and nothing must be written, if the
    properties are broken, repeated, unclosed, or written so that a key has no lines of its own."""
    start, end, cut = find_fences(text)
    if is_unclosed(text):
        raise FrontmatterError("the properties have no closing `---`", defect="unclosed-frontmatter")
    current = scan(text[start:end]) if start else Properties({}, keys={})
    if current.repeated:
        raise FrontmatterError(f"the key {current.repeated[0]!r} occurs twice", defect="duplicate-keys")
    named = {spelling_of(key, current.values): value for key, value in changes.items()}
    changed = {key: value for key, value in named.items() if _differs(key, value, current.values)}
    if not changed:
        return text
    if current.flow:
        raise FrontmatterError("the properties are one `{…}` block, which can't be changed line by line")
    end_of_line = _LINE_END.search(text)
    newline = end_of_line[0] if end_of_line else "\n"
    inner = _apply_changes(text[start:end], current, changed, newline)
    front = text[:start] + inner + text[end:cut] if start else f"{text[:cut]}---{newline}{inner}---{newline}"
    expected = {key: value for key, value in {**current.values, **changed}.items() if changed.get(key, "") is not None}
    verify(front, expected)
    return front + text[cut:]


def _apply_changes(inner: str, current: Properties, changed: Mapping[str, PropertyValue], newline: str) -> str:
    """Return the lines between the fences after the changes."""
    keys = current.keys or {}
    indent = " " * current.column
    begins = sorted(_line_start(inner, key.start) for key in keys.values())
    for name in sorted(keys.keys() & changed.keys(), key=lambda name: -keys[name].start):
        first = _line_start(inner, keys[name].start)
        following = min((at for at in begins if at > first), default=len(inner))
        last = _content_end(inner, first, following, len(inner) if keys[name].value else current.column)
        lines = "" if changed[name] is None else _replace_value(inner, keys[name], changed[name], newline)
        inner = inner[:first] + lines + inner[last:]
    new = ((name, value) for name, value in changed.items() if name not in keys and value is not None)
    return inner + "".join(
        indent + _format_property(_format_key(name), value, "", newline, indent) for name, value in new
    )


def _replace_value(inner: str, key: PropertyKey, value: PropertyValue, newline: str) -> str:
    """Return the lines of an existing key with its new value; its spelling and the comment after it stay."""
    first = _line_start(inner, key.start)
    line_end = _line_end(inner, key.end)
    if inner[first : key.start].strip(" "):  # `? key`, or two keys on a line
        raise FrontmatterError("a key does not begin its line")
    colon = inner.find(":", key.end, line_end) + 1
    if not colon:
        raise FrontmatterError("a key and its colon are on different lines")
    behind = inner[colon:line_end]
    if key.value and key.value[0] < line_end and key.value[1] > key.value[0]:
        behind = inner[key.value[1] : line_end] if key.value[1] <= line_end else ""
    comment = behind if behind[:1] in (" ", "\t") and behind.lstrip(" \t").startswith("#") else ""
    indent = inner[first : key.start]
    return indent + _format_property(inner[key.start : key.end], value, comment, newline, indent)


def _line_start(inner: str, at: int) -> int:
    return max(inner.rfind("\n", 0, at), inner.rfind("\r", 0, at)) + 1


def _line_end(inner: str, at: int) -> int:
    end = _LINE_END.search(inner, at)
    return end.start() if end else len(inner)


def _content_end(inner: str, first: int, last: int, column: int) -> int:
    """Return where the lines of a value end; blank lines and comments (indented by `column` at most) after it don't count."""
    ends = [first, *(end.end() for end in _LINE_END.finditer(inner, first, last))]
    while len(ends) > 2:  # the line of the key always belongs to it
        line = inner[ends[-2] : ends[-1]]
        text = line.lstrip(" \t")
        if text.strip() and not (text.startswith("#") and len(line) - len(text) <= column):
            break
        ends.pop()
    return ends[-1]


def spelling_of(key: str, values: Mapping[str, Any]) -> str:
    """Return `key` as it is spelled in the note: for Obsidian, keys that differ only in letter case are equal."""
    if key in values:
        return key
    return next((other for other in values if other.casefold() == key.casefold()), key)


def _differs(key: str, value: PropertyValue, values: Mapping[str, Any]) -> bool:
    if value is None or key not in values:
        return (value is None) == (key in values)
    return _canonical_json(value) != _canonical_json(values[key])


def verify(front: str, expected: Mapping[str, Any]) -> None:
    """Raise FrontmatterError for a front matter that would not be read back as intended."""
    if split(front) != (front, "") or _canonical_json(read_properties(front)) != _canonical_json(expected):
        raise FrontmatterError("the properties can't be written so that they read back the same")


def _canonical_json(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise FrontmatterError(f"not a property value: {error}") from error


def _format_property(key: str, value: PropertyValue, comment: str, newline: str, indent: str = "") -> str:
    """Format the lines of one property, without its indentation: lists in block form, deeper values as JSON."""
    if isinstance(value, (list, tuple)) and value:
        return f"{key}:{comment}{newline}" + "".join(format_list_item(part, indent + "  ", newline) for part in value)
    text = "" if value is None else " " + _format_scalar(value)
    return f"{key}:{text}{comment}{newline}"


def format_list_item(value: PropertyValue, indent: str, newline: str) -> str:
    """Format the lines of one item of a list; a mapping has a line for each of its keys."""
    if not isinstance(value, dict) or not value:
        return f"{indent}- {_format_scalar(value)}{newline}"
    lines = [
        f"{_format_key(key)}:{'' if part is None else ' ' + _format_scalar(part)}{newline}"
        for key, part in value.items()
    ]
    return f"{indent}- " + f"{indent}  ".join(lines)


def _format_key(key: str) -> str:
    bare = isinstance(key, str) and _BARE_KEY.fullmatch(key) and not key.endswith(" ") and not _MISREAD.fullmatch(key)
    return key if bare else _quote(key)


def _format_scalar(value: PropertyValue) -> str:
    if isinstance(value, str) and _needs_no_quotes(value):
        return value
    return "null" if value is None else _quote(value)


def _needs_no_quotes(text: str) -> bool:
    """Return whether `text` is read as itself without quotes."""
    return (
        bool(text)
        and text[0] not in _INDICATORS
        and text == text.strip()
        and text.replace("\u3000", "").replace("\xa0", "").isprintable()
        and ": " not in text
        and " #" not in text
        and not text.endswith(":")
        and not _MISREAD.fullmatch(text)
    )


def _quote(value: PropertyValue) -> str:
    """Format a value as JSON on one line, which is also YAML; line breaks and unprintable characters of YAML are escaped."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FrontmatterError(f"not a property value: {error}") from error
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
