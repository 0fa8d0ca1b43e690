"""Decide whether a note's metadata passes a filter.

A filter is a part of the metadata: its objects ask for these keys and perhaps others, its lists for these items and
perhaps others, any other value for itself; `{"contains": "x"}` asks for a text, or a list with a text, that holds x,
letter case aside.

Law, tested: metadata that passes holds each of the filter's `required_substrings` in its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from index.names import fold


def matches(value: Any, wanted: Any) -> bool:
    """Whether `value` is, or is more than, what is wanted."""
    if isinstance(wanted, Mapping):
        part = wanted.get("contains")
        if len(wanted) == 1 and isinstance(part, str) and not isinstance(value, Mapping):
            return _contains(value, fold(part))
        return isinstance(value, Mapping) and all(
            key in value and matches(value[key], expected) for key, expected in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(matches(item, expected) for item in value) for expected in wanted)
    same = isinstance(value, bool) == isinstance(wanted, bool)  # to Python, true is 1
    return same and not isinstance(value, Mapping | list) and bool(value == wanted)


def required_substrings(wanted: Any) -> Iterator[str]:
    """Pieces of compact ASCII JSON without which nothing that is wanted can be there."""
    if isinstance(wanted, Mapping):
        if not (len(wanted) == 1 and isinstance(wanted.get("contains"), str)):
            for key, expected in wanted.items():
                yield json.dumps(key) + ":"
                yield from required_substrings(expected)
    elif isinstance(wanted, list):
        for expected in wanted:
            yield from required_substrings(expected)
    elif isinstance(wanted, str):
        yield json.dumps(wanted)


def _contains(value: Any, part: str) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, str) and part in fold(item) for item in value)
    return isinstance(value, str) and part in fold(value)
