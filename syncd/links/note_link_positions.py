"""Find the position of each link's path in a note, and write another path at a position.

Law, tested: at each position the text contains the link's target, and a path written there is read back unchanged.

Links are what Obsidian reads as links: not in code, HTML comments or math. A link that cannot be located safely,
such as a destination across two lines of a quote, has no position and is listed as unclear."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import quote, unquote

from index.model import Link
from syncd.notes.inline_syntax import ESCAPE, SCHEME, WIKI, parse_wikilink, scan
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.property_reader import find_fences, find_scalars

_BLANKS: Final = re.compile(r"\s*")
_OPENING: Final = re.compile(r"\]\(\s*+(<?)|\]:[ \t]++(<?)")
_POINTED_END: Final = re.compile(r"#|>|%23")
_DEFINED_END: Final = re.compile(r"#|%23|\s|\Z")
_BARE_END: Final = re.compile(r"\\.|[()#\s]|%23|\Z", re.DOTALL)
_PLAIN: Final = re.compile(
    r"[^\s#%()<>?\\|]"
)  # characters that a Markdown destination contains unescaped, including other scripts
_WITHIN: Final = re.compile(r"[^#%<>?\\|\r\n]")  # characters that are unescaped between `<` and `>`
_DOUBLE: Final = re.compile(r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[^\r\n]|[^\\\r\n]")
_SINGLE: Final = re.compile(r"''|[^'\r\n]")


@dataclass(frozen=True, slots=True)
class LinkPosition:
    """Holds a link, the span of its path, and a function that spells another path there (None: impossible)."""

    link: Link
    start: int
    end: int
    says: Callable[[str], str | None]
    label: tuple[int, int] | None = None  # span of the text of a Markdown link
    whole: bool = False  # the path is from the root, and is not searched by name

    def in_escaped_text(self, offsets: Sequence[int], escaped: Callable[[str], str]) -> LinkPosition:
        """Return this position in escaped text: `offsets` gives the position of each character."""

        def spell_escaped(target: str) -> str | None:
            text = self.says(target)
            return None if text is None else escaped(text)

        return LinkPosition(self.link, offsets[self.start], offsets[self.end], spell_escaped, whole=self.whole)


@dataclass(slots=True)
class LinkPositions:
    """Holds the positions in a text, in order, and the links without a position."""

    found: list[LinkPosition] = field(default_factory=list)
    unclear: list[Link] = field(default_factory=list)


def find_in_note(text: str) -> LinkPositions:
    """Return the positions in a note: in its properties, then in its body."""
    start, end, cut = find_fences(text)
    positions = find_in_properties(text, start, end) if "[" in text[start:end] else LinkPositions()
    body = find_in_body(text[cut:])
    positions.found += (_shift(position, cut) for position in body.found)
    positions.unclear += body.unclear
    return positions


def _shift(position: LinkPosition, by: int) -> LinkPosition:
    label = position.label and (position.label[0] + by, position.label[1] + by)
    return LinkPosition(position.link, position.start + by, position.end + by, position.says, label)


# The body


def find_in_body(body: str) -> LinkPositions:
    """Return the positions in Markdown without properties."""
    positions = LinkPositions()
    if "[" in body:
        parsed = parse_outline(body)
        _collect_positions(body, zip(parsed.places, parsed.links, strict=True), positions)
    return positions


def _collect_positions(text: str, links: Iterable[tuple[int, Link]], positions: LinkPositions) -> None:
    for at, link in links:
        if not link.target:
            continue
        position = _wikilink_position(text, at, link) or _markdown_position(text, at, link)
        if position is None:
            positions.unclear.append(link)
        else:
            positions.found.append(position)
    positions.found.sort(key=lambda position: position.start)


def _wikilink_position(text: str, at: int, link: Link) -> LinkPosition | None:
    at += text.startswith("!", at)
    if link.kind == "markdown" or not WIKI.match(text, at):
        return None
    blanks = _BLANKS.match(text, at + 2)
    assert blanks is not None
    start = blanks.end()
    if not text.startswith(link.target, start):
        return None
    return LinkPosition(link, start, start + len(link.target), _spell_wikilink)


def _spell_wikilink(target: str) -> str | None:
    inner = WIKI.fullmatch(f"[[{target}]]")
    link = parse_wikilink(inner[1], "wikilink") if inner and not target.endswith("\\") else None
    return target if link and (link.target, link.subpath, link.display) == (target, "", None) else None


def _markdown_position(text: str, at: int, link: Link) -> LinkPosition | None:
    opened = text.find("[", at) + 1
    closed = opened + len(link.display or "")
    match = _OPENING.match(text, closed)
    if link.kind == "wikilink" or match is None:
        return None
    pointed, inline = bool(match[1] or match[2]), text.startswith("](", closed)
    if pointed:
        ending = _POINTED_END.search(text, match.end())
        end = ending.start() if ending else len(text)
    else:
        end = _bare_destination_end(text, match.end()) if inline else _definition_end(text, match.end())
    written = unquote(ESCAPE.sub(r"\1", text[match.end() : end]))
    if written != written.strip() or written != link.target:
        return None
    label = (opened, closed) if inline and link.kind == "markdown" else None
    spell = partial(_encode_destination, plain=_WITHIN if pointed else _PLAIN)
    return LinkPosition(link, match.end(), end, spell, label)


def _definition_end(text: str, at: int) -> int:
    match = _DEFINED_END.search(text, at)
    assert match is not None  # it also matches the end of the text
    return match.start()


def _bare_destination_end(text: str, at: int) -> int:
    """Return the end of a destination without `<`: white space, a subpath, or its closing bracket."""
    depth = 0
    while mark := _BARE_END.search(text, at):
        if mark[0] == "(":
            depth += 1
        elif mark[0] == ")" and depth:
            depth -= 1
        elif not mark[0].startswith("\\"):
            return mark.start()
        at = mark.end()
    return len(text)


def _encode_destination(target: str, plain: re.Pattern[str]) -> str | None:
    """Encode a path as a Markdown destination: only characters that Markdown would misread, as Obsidian does."""
    if "#" in target or target != target.strip():
        return None
    encoded = "".join(sign if plain.fullmatch(sign) else quote(sign, safe="") for sign in target)
    return encoded.replace(":", "%3A") if SCHEME.match(encoded) else encoded


# The properties


def find_in_properties(text: str, start: int, end: int) -> LinkPositions:
    """Return the positions in the properties between two offsets; none if they are not valid YAML."""
    positions = LinkPositions()
    inner = text[start:end]
    values = find_scalars(inner)
    for first, last, style, value in values or ():
        unquoted = not style and inner[first - 2 : first] == "[[" and inner[last : last + 2] == "]]"
        # YAML reads it as a list in a list, but it is meant as a link.
        span = (first - 2, last + 2) if unquoted else (first, last)
        if "[" in inner[slice(*span)]:
            _find_in_scalar(inner, span, style, value, positions)
    if values is None:
        positions.unclear += (link for match in WIKI.finditer(inner) if (link := parse_wikilink(match[1], "wikilink")))
    positions.found = [
        _shift(position, start) for position in sorted(positions.found, key=lambda position: position.start)
    ]
    return positions


def _find_in_scalar(inner: str, span: tuple[int, int], style: str | None, read: str, positions: LinkPositions) -> None:
    """Find the positions of one value, within its quotes; an unquoted value is in the text as it is read."""
    (first, last), offsets = span, None
    value = inner[first:last]
    units = _UNITS.get(style or "")
    if units and ("\\" in value or "''" in value):
        ends = [1, *(unit.end() for unit in units.finditer(value, 1, len(value) - 1))]
        if len(ends) == len(read) + 1 and ends[-1] == len(value) - 1:
            value, offsets = read, ends
    in_value = LinkPositions()
    wiki = ((match.start(), parse_wikilink(match[1], "wikilink")) for match in WIKI.finditer(value))
    _collect_positions(value, [(at, link) for at, link in wiki if link], in_value)
    taken = {position.start for position in in_value.found}
    others = LinkPositions()
    _collect_positions(value, [pair for pair in scan(value).links if pair[1].kind == "markdown"], others)
    in_value.found += (position for position in others.found if position.start not in taken)
    at = range(first, last + 1) if offsets is None else [first + offset for offset in offsets]
    positions.found += (position.in_escaped_text(at, _ESCAPED.get(style or "", str)) for position in in_value.found)
    positions.unclear += in_value.unclear


_UNITS: Final = {'"': _DOUBLE, "'": _SINGLE}
_ESCAPED: Final[dict[str, Callable[[str], str]]] = {
    '"': lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
    "'": lambda text: text.replace("'", "''"),
}
