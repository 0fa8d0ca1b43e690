"""Rename a tag in a note, in its property and in its text, each occurrence in place.

Laws, tested: the only bytes that change are those of the tag, of a list item that would be a repeat, and of the
version. Tags in headings stay, because links lead to headings; code, addresses, YAML comments and other properties
stay too."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

from index.deferred_patterns import possessive
from index.model import Document
from index.names import fold
from syncd.documents.collection_membership import tag_texts
from syncd.notes.front_matter import FrontmatterError, edit, readable_properties, replace_body, split
from syncd.notes.inline_syntax import is_tag
from syncd.notes.list_properties import edit_items
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.property_reader import find_fences, scan

_WORD: Final = re.compile(r"(?<![^\s,\[\"'])(#?)([^\s,\[\]\"'#]+)(?![^\s,\]\"'])")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
# The pieces of a property between brackets or line ends: quoted text, a comment, anything else.
_DOUBLE: Final = possessive(r"[^\"\\]|\\.", "*")
_SINGLE: Final = possessive("[^']|''", "*")
_PIECES: Final = re.compile(rf"\"{_DOUBLE}\"|'{_SINGLE}'|(?<!\S)#[^\r\n]*+|[^\"'#]++|[\"'#]")


def rename_tag(text: str, document: Document, old: str, new: str) -> str:
    """Replace the tag `old` (and tags nested below it) by `new`. Raises FrontmatterError."""

    def rename(tag: str) -> str:
        head, rest = tag[: len(old)], tag[len(old) :]
        return new + rest if fold(head) == fold(old) and (not rest or rest[0] == "/") else tag

    if not is_tag(new):
        raise FrontmatterError(f"{new!r} is not a tag")
    done = _rename_in_property(text, rename)
    if document.type == "note":  # an entity's text consists of its facts, and a file's text belongs to its author
        done = replace_body(done, _rename_in_text(split(done)[1], rename))
    if done == text:
        return text
    return edit(done, {"version": document.version + 1})


def _rename_in_text(body: str, rename: Callable[[str], str]) -> str:
    structure = parse_outline(body)
    headings = {heading.line for heading in structure.headings}
    ends = [end.end() for end in _LINE_END.finditer(body)]
    done: list[str] = []
    at = 0
    for place, tag in sorted(zip(structure.tag_places, structure.tags, strict=True)):
        line = bisect_right(ends, place)
        if place < at or line in headings or (new_tag := rename(tag)) == tag:
            continue
        done += [body[at : place + 1], new_tag]
        at = place + 1 + len(tag)
    return "".join([*done, body[at:]])


def _rename_in_property(text: str, rename: Callable[[str], str]) -> str:
    start, end, _ = find_fences(text)
    properties = scan(text[start:end]) if start else None
    key = next((name for name in (properties.keys or {} if properties else {}) if name.casefold() == "tags"), None)
    if properties is None or key is None:
        return text
    value = properties.values[key]
    wanted = _rename_value(value, rename)
    if wanted == value:
        return text
    keys = properties.keys or {}
    first = text.index(":", start + keys[key].end) + 1
    behind = min((entry.start for entry in keys.values() if entry.start > keys[key].start), default=end - start)
    written = text[:first] + _rename_in_lines(text[first : start + behind], rename) + text[start + behind :]
    if readable_properties(written) != {**properties.values, key: wanted}:
        written = edit(text, {key: wanted})
    return _remove_duplicates(written, key, wanted)


def _rename_value(value: Any, rename: Callable[[str], str]) -> Any:
    """Return the value of the property with its tags renamed, in the form that it has."""
    if isinstance(value, list):
        return [
            _rename_value(item, rename) if isinstance(item, str) and len(tag_texts(item)) == 1 else item
            for item in value
        ]
    return _rename_words(value, rename) if isinstance(value, str) else value


def _rename_words(text: str, rename: Callable[[str], str]) -> str:
    return _WORD.sub(lambda match: match[1] + rename(match[2]), text)


def _rename_in_lines(span: str, rename: Callable[[str], str]) -> str:
    """Return the lines of the property with its tags renamed; comments stay."""
    return _PIECES.sub(lambda piece: piece[0] if piece[0][0] == "#" else _rename_words(piece[0], rename), span)


def _remove_duplicates(text: str, key: str, values: Any) -> str:
    """Return `text` without repeated tags in the list."""
    if not isinstance(values, list):
        return text
    seen: set[str] = set()
    twice = [at for at, item in enumerate(values) if isinstance(item, str) and _is_repeated(item, seen)]
    if not twice:
        return text
    kept = [item for at, item in enumerate(values) if at not in twice]
    written = edit_items(text, key, dict.fromkeys(twice)) if _has_line_items(text, key) else edit(text, {key: kept})
    return written if readable_properties(written).get(key) == kept else edit(text, {key: kept})


def _is_repeated(tag: str, seen: set[str]) -> bool:
    name = fold(tag.strip().removeprefix("#"))
    there = name in seen
    seen.add(name)
    return there


def _has_line_items(text: str, key: str) -> bool:
    """Return whether the property has one line for each item."""
    start, end, _ = find_fences(text)
    return (scan(text[start:end]).keys or {})[key].value is None
