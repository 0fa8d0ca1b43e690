"""Set or remove one member of a JSON file that may have comments and trailing commas (JSONC).

Law, tested: every comment and every other value stays unchanged, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

DEEPEST: Final = 100  # most levels of nested values
_BLANK: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


@dataclass(frozen=True, slots=True)
class _Value:
    """Holds a value and its position in the text; `members`: the members of an object, in order."""

    start: int
    end: int
    data: Any
    members: tuple[_Member, ...] = ()


@dataclass(frozen=True, slots=True)
class _Member:
    """Holds a member of an object: its key, the position of the key, and its value."""

    key: str
    start: int
    value: _Value


def read_jsonc(text: str) -> Any:
    """Parse the text; `{}` for a text without a value. Raises ValueError for malformed text."""
    return _read_root(text).data if _skip(text, 0) < len(text) else {}


def read_value_text(text: str, path: Sequence[str]) -> str | None:
    """Return the text of the value at `path` with its comments; None when there is none. Raises ValueError for malformed text."""
    if _skip(text, 0) == len(text):
        return None
    here = _read_root(text)
    for key in path:
        member = _find(here, key)
        if member is None:
            return None
        here = member.value
    return text[here.start : here.end]


def set_member(text: str, path: Sequence[str], data: Any) -> str:
    """Return the text with `data` at `path`, creating missing objects. Raises ValueError for text that can't be edited."""
    if _skip(text, 0) == len(text):  # a line comment at the end of the text needs a line end before the object
        line_end = _line_end(text)
        text += (line_end if text and not text.endswith("\n") else "") + "{}" + line_end
    here = _read_root(text)
    for depth, key in enumerate(path):
        if not isinstance(here.data, dict):
            raise ValueError(f"the parent of {key!r} is not an object")  # noqa: TRY004 - as every other text that can't be edited
        member = _find(here, key)
        if member is None:
            for outer in reversed(path[depth + 1 :]):
                data = {outer: data}
            return _insert(text, here, key, data)
        here = member.value
    return text[: here.start] + _write(text, data, _indent_at(text, here.start)) + text[here.end :]


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, including duplicates. Raises ValueError for malformed text."""
    while True:
        here = _read_root(text)
        for key in path[:-1]:
            member = _find(here, key)
            if member is None:
                return text
            here = member.value
        if _find(here, path[-1]) is None:
            return text
        text = _cut(text, here, path[-1])


def _find(value: _Value, key: str) -> _Member | None:
    """Return the last member with this key; in JSON the last of several members counts."""
    return next((member for member in reversed(value.members) if member.key == key), None)


def _insert(text: str, holder: _Value, key: str, data: Any) -> str:
    """Return the text with a new last member in the object `holder`."""
    line_end, outer = _line_end(text), _indent_at(text, holder.start)
    close = holder.end - 1
    if holder.members:
        last, first = holder.members[-1].value, holder.members[0]
        indent = _own_line(text, first.start)
        comma = _skip(text, last.end)
        trailing = text[comma] == ","
        gap = text[last.end : close] if trailing else "," + text[last.end : close]
        start = last.end
    else:
        indent, trailing, gap, start = None, False, text[holder.start + 1 : close], holder.start + 1
    indent = outer + "  " if indent is None else indent
    kept = gap.rstrip(" \t\r\n")
    tail = gap[len(kept) :]
    member = f"{line_end}{indent}{json.dumps(key, ensure_ascii=False)}: {_write(text, data, indent)}"
    tail = tail if "\n" in tail else line_end + outer
    return text[:start] + kept + member + ("," if trailing else "") + tail + text[close:]


def _cut(text: str, holder: _Value, key: str) -> str:
    """Return the text without one member of `holder`; comments beside it stay."""
    at = max(place for place, member in enumerate(holder.members) if member.key == key)
    member = holder.members[at]
    end, after = member.value.end, _skip(text, member.value.end)
    ranges = [(member.start, end)]
    if text[after] == ",":
        ranges.append((after, after + 1))
    elif at:
        comma = _skip(text, holder.members[at - 1].value.end)
        ranges.insert(0, (comma, comma + 1))
    for begin, finish in reversed(ranges):
        text = text[:begin] + text[finish:]
    at_key = member.start - (1 if len(ranges) == 2 and ranges[0][0] < member.start else 0)
    return _drop_empty_line(text, at_key)


def _drop_empty_line(text: str, at: int) -> str:
    """Return the text without the line at the position `at` if that line is blank, otherwise the text."""
    begin = text.rfind("\n", 0, at) + 1
    finish = text.find("\n", at)
    return text if finish < 0 or text[begin:finish].strip() else text[:begin] + text[finish + 1 :]


def _write(text: str, data: Any, indent: str) -> str:
    """Format `data` in the style of this text, as the value of a key with this indentation."""
    lines = json.dumps(data, indent="\t" if "\t" in indent else 2, ensure_ascii=False)
    # Half of a surrogate pair is no UTF-8. Its escape in Python is also its escape in JSON.
    lines = lines.encode(errors="backslashreplace").decode()
    return lines.replace("\n", _line_end(text) + indent)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, at: int) -> str:
    """Return the indentation of the line at the position `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _own_line(text: str, at: int) -> str | None:
    """Return the blanks before the position `at` if its line has nothing else before it and is not the first line."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin:at] if begin and not text[begin:at].strip(" \t") else None


def _read_root(text: str) -> _Value:
    root = _read_value(text, _skip(text, 0), 0)
    if (rest := _skip(text, root.end)) != len(text):
        raise _malformed(text, rest)
    if not isinstance(root.data, dict):
        raise ValueError("it does not contain an object")  # noqa: TRY004 - as every other text that can't be edited
    return root


def _skip(text: str, at: int) -> int:
    """Return the end of the blanks and comments that begin at `at`."""
    blank = _BLANK.match(text, at)
    assert blank is not None, "it matches nothing too"
    return blank.end()


def _read_value(text: str, at: int, depth: int) -> _Value:
    if depth > DEEPEST:
        raise ValueError(f"its values are nested more than {DEEPEST} deep")
    if text[at : at + 1] == "{":
        return _read_object(text, at, depth)
    if text[at : at + 1] == "[":
        return _read_array(text, at, depth)
    word = _STRING.match(text, at) or _SCALAR.match(text, at)
    if word is None:
        raise _malformed(text, at)
    return _Value(at, word.end(), json.loads(word[0]))


def _read_object(text: str, start: int, depth: int) -> _Value:
    members: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        colon = _skip(text, key.end()) if key else at
        if key is None or text[colon : colon + 1] != ":":
            raise _malformed(text, colon)
        value = _read_value(text, _skip(text, colon + 1), depth + 1)
        members.append(_Member(json.loads(key[0]), at, value))
        at = _end_of_item(text, value.end, "}")
    return _Value(start, at + 1, {member.key: member.value.data for member in members}, tuple(members))


def _read_array(text: str, start: int, depth: int) -> _Value:
    items: list[Any] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        value = _read_value(text, at, depth + 1)
        items.append(value.data)
        at = _end_of_item(text, value.end, "]")
    return _Value(start, at + 1, items)


def _end_of_item(text: str, end: int, close: str) -> int:
    """Return the position of the next item, or of the closing bracket."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != close:
        raise _malformed(text, at)
    return at


def _malformed(text: str, at: int) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1} is not JSON")
