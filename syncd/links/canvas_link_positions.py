"""Find the positions of links in a canvas: paths in file cards and group backgrounds, and links in the text of cards.

Law, tested: a canvas is never rewritten as a whole; a path changes in place, and every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from index.deferred_patterns import possessive
from index.model import Link
from syncd.links.note_link_positions import LinkPosition, LinkPositions, find_in_body

_CHARACTERS: Final = possessive(r'[^"\\\x00-\x1f]|\\.', "*")
_TOKEN: Final = re.compile(r'[ \t\r\n]*+(?:([{}\[\],:])|("' + _CHARACTERS + r'")|[^\s{}\[\],:"]++)')
_UNIT: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_PATHS: Final = {"file": "file", "background": "group"}  # key of a path -> the type of node with this key
_TEXT: Final = "text"
_NODE: Final = ("nodes", "")  # the containers below the root that contain a node's keys


def find_in_canvas(text: str) -> LinkPositions | None:
    """Return the positions in a canvas; None if the text is not a canvas."""
    if not text.strip():
        return LinkPositions()  # Obsidian creates empty canvas files
    try:
        board = json.loads(text)
    except (ValueError, RecursionError):
        return None
    nodes = board.get("nodes", []) if isinstance(board, dict) else None
    if not isinstance(nodes, list):
        return None
    nodes = [node for node in nodes if isinstance(node, dict)]
    positions = LinkPositions()
    for at, key, start, end in _find_strings(text):
        kind, raw = nodes[at].get("type"), text[start:end]
        if _PATHS.get(key) == kind:
            path = json.loads(raw)
            link = Link("wikilink", path, "", None, -1)
            positions.found.append(LinkPosition(link, start + 1, end - 1, _make_escaper(raw), whole=True))
        elif key == kind == _TEXT and "[" in raw:
            inner = find_in_body(json.loads(raw))
            offsets = [*(start + unit.start() for unit in _UNIT.finditer(raw, 1, len(raw) - 1)), end - 1]
            escaping = _make_escaper(raw)
            positions.found += (position.in_escaped_text(offsets, escaping) for position in inner.found)
            positions.unclear += inner.unclear
    return positions


def _make_escaper(raw: str) -> Any:
    """Return a function that escapes text like this string: with ASCII only, if the string is written that way."""
    ascii_only = "\\u" in raw and raw.isascii()
    return lambda text: json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _find_strings(text: str) -> Iterator[tuple[int, str, int, int]]:
    """Yield the strings that are direct values of nodes: number of the node, key, and span with quotes.

    If a key occurs twice, only the last one counts, as in JSON readers."""
    spans: dict[tuple[int, str], tuple[int, int]] = {}
    stack: list[str] = []  # for each open container, the key of the current value; "" in a list
    node, key, after_colon = -1, "", False
    for match in _TOKEN.finditer(text):
        mark, string = match[1], match[2]
        if mark in ("{", "["):
            stack.append(key if after_colon else "")
            if stack == ["", "nodes"]:  # if it occurs a second time, the first does not count
                node = -1
                spans.clear()
            node += mark == "{" and stack == ["", *_NODE]
            key, after_colon = "", False
        elif mark in ("}", "]"):
            stack.pop()
            after_colon = False
        elif mark == ":":
            after_colon = True
        elif mark == ",":
            after_colon = False
        elif string and not after_colon:
            key = json.loads(string)
        elif string and stack == ["", *_NODE]:
            spans[(node, key)] = match.span(2)
    for (at, name), (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        yield at, name, start, end
