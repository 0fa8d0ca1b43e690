"""Decide whether a note's metadata passes a filter.

A filter is a part of the metadata. An object matches an object with at least these keys, a list matches a list with at
least these items, and any other value matches itself. `{"contains": "x"}` matches a text, or a list with a text, that
contains x in upper or lower case. Keys and texts match in both Unicode forms, such as é in one code point or two, because
keyboards and file names write different ones. The keys of the metadata itself also match in any letter case, because they are
properties of a note, and a note has one property under all of these spellings.

Laws, tested: the JSON of metadata that passes contains each of the filter's `required_substrings`, and in lower case each of its
`required_properties`."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from index.names import fold


def passes(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether the metadata of a note has everything in `wanted`."""
    return all(
        any(matches(value, expected) for name, value in metadata.items() if _is_same_property(name, key))
        for key, expected in wanted.items()
    )


def required_properties(wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield pieces, in lower case, of compact ASCII JSON that must contain the keys of passing metadata."""
    return (f"{json.dumps(key)}:".lower() for key in wanted if key.isascii())


def matches(value: Any, wanted: Any) -> bool:
    """Return whether `value` contains everything in `wanted`."""
    if isinstance(wanted, Mapping):
        part = wanted.get("contains")
        if len(wanted) == 1 and isinstance(part, str) and not isinstance(value, Mapping):
            return _contains(value, fold(part))
        return isinstance(value, Mapping) and all(
            any(matches(inner, expected) for name, inner in value.items() if _is_same(name, key))
            for key, expected in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and _has_items(value, wanted)
    if isinstance(value, str) and isinstance(wanted, str):
        return _is_same(value, wanted)
    same = isinstance(value, bool) == isinstance(wanted, bool)  # to Python, true is 1
    return same and not isinstance(value, Mapping | list) and bool(value == wanted)


def required_substrings(wanted: Any) -> Iterator[str]:
    """Yield pieces of compact ASCII JSON that matching metadata must contain."""
    if isinstance(wanted, Mapping):
        if not (len(wanted) == 1 and isinstance(wanted.get("contains"), str)):
            for key, expected in wanted.items():
                if key.isascii():
                    yield json.dumps(key) + ":"
                yield from required_substrings(expected)
    elif isinstance(wanted, list):
        for expected in wanted:
            yield from required_substrings(expected)
    elif isinstance(wanted, str) and wanted.isascii():
        yield json.dumps(wanted)


def count_nested(wanted: Any) -> int:
    """Return how many objects and lists are inside the lists of a filter; each is compared with all items of a list."""
    nested, parts = 0, [wanted]
    while parts:
        nested += sum(isinstance(item, dict | list) for part in parts if isinstance(part, list) for item in part)
        inner = [item for part in parts for item in (part.values() if isinstance(part, dict) else part)]
        parts = [item for item in inner if isinstance(item, dict | list)]
    return nested


def _has_items(value: list[Any], wanted: list[Any]) -> bool:
    """Return whether each item of `wanted` matches an item of `value`.

    Texts, numbers and constants are looked up: thousands compared with thousands took a minute."""
    plain = {_comparable(item) for item in value if not isinstance(item, Mapping | list)}
    return all(
        any(matches(item, expected) for item in value)
        if isinstance(expected, Mapping | list)
        else _comparable(expected) in plain
        for expected in wanted
    )


def _comparable(value: Any) -> tuple[str, Any]:
    """Return what two of these values have in common if and only if one matches the other."""
    if isinstance(value, str):
        return ("ascii", value) if value.isascii() else ("text", unicodedata.normalize("NFC", value))
    return ("constant" if isinstance(value, bool) else "value", value)  # to Python, true is 1


def _is_same_property(name: str, key: str) -> bool:
    return name.isascii() == key.isascii() and fold(name) == fold(key)


def _is_same(text: str, wanted: str) -> bool:
    """Return whether the texts are equal. ASCII has one form; the signs that look like ASCII, such as K for kelvin, differ."""
    if text == wanted or wanted.isascii() or text.isascii():
        return text == wanted
    return unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", wanted)


def _contains(value: Any, part: str) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, str) and part in fold(item) for item in value)
    return isinstance(value, str) and part in fold(value)
