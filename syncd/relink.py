"""Rewrite the links of a note so that they still lead where they led, after files were moved.

Law, tested: every link leads to the same file as before; a link that does so already keeps its bytes, and of one that
does not only the path changes: subpath, display text, size, quotes and style of writing stay.

What counts as a link, and what may be rewritten, follows Obsidian: not code, not HTML comments, not math."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from index.model import Link
from syncd.inline import wikilink
from syncd.markdown import outline
from syncd.note import FrontmatterError, properties, split
from syncd.resolve import Paths

_WIKI: Final = re.compile(r"\[\[((?:[^\[\]\r\n]|\[(?!\[)|\](?!\]))++)\]\]")
_PLAIN: Final = re.compile(r"[^\s#%()<>?\\]")  # what a Markdown destination may hold as it is; other scripts do too


@dataclass(frozen=True, slots=True)
class Move:
    """What was moved, and the vault's files before and after."""

    moved: Mapping[str, str]  # old path -> new path
    before: Paths
    after: Paths


def relinked(text: str, old: str, new: str, move: Move) -> tuple[str, list[str]]:
    """The text of the note that was at `old` and is at `new` now, and the targets of links that could not be kept."""
    front, body = split(text)
    lost: list[str] = []
    aim = _aim(old, new, move, lost)
    written = _body(body, aim)
    return _front(front, aim, lost) + written, lost


def _aim(old: str, new: str, move: Move, lost: list[str]) -> Callable[[Link], str | None]:
    """What the path of a link is to be; None to leave it as it is."""

    def aim(link: Link) -> str | None:
        if not link.target:
            return None
        led = move.before.resolve(link.target, old)
        if led is None:
            return None
        wanted = move.moved.get(led, led)
        if move.after.resolve(link.target, new) == wanted:
            return None
        for target in _spellings(link.target, wanted, new):
            if move.after.resolve(target, new) == wanted:
                return target
        lost.append(link.target)
        return None

    return aim


def _spellings(target: str, wanted: str, source: str) -> list[str]:
    """How `wanted` could be written, in the manner of `target` first; a full path from the root is always understood."""
    whole = wanted if target.lower().endswith(".md") or not wanted.lower().endswith(".md") else wanted[:-3]
    if target.startswith("/"):
        return [f"/{whole}", whole]
    if target.startswith(("./", "../")):
        return [_relative(whole, source), whole, f"/{whole}"]
    short = whole.rpartition("/")[2]
    return [*([] if "/" in target else [short]), whole, f"/{whole}"]


def _relative(path: str, source: str) -> str:
    here, there = source.split("/")[:-1], path.split("/")
    while here and len(there) > 1 and here[0] == there[0]:
        here, there = here[1:], there[1:]
    return "/".join(("..",) * len(here) or (".",)) + "/" + "/".join(there)


# The body


def _body(body: str, aim: Callable[[Link], str | None]) -> str:
    found = outline(body)
    pieces, done = [], 0
    for at, link in sorted(zip(found.places, found.links, strict=True), key=lambda pair: pair[0]):
        target = aim(link)
        span = None if target is None else _span(body, at, link)
        if target is None or span is None or span[0] < done:
            continue
        start, end, pointed = span
        pieces += [body[done:start], target if link_is_wiki(body, at) else _destination(target, pointed=pointed)]
        done = end
    return "".join(pieces) + body[done:]


def link_is_wiki(body: str, at: int) -> bool:
    """Whether what begins at `at` is a wikilink or an embed of that form."""
    return body.startswith(("[[", "![["), at)


def _span(body: str, at: int, link: Link) -> tuple[int, int, bool] | None:
    """Where the path of the link that begins at `at` stands in the body, and whether it stands between `<` and `>`."""
    if link_is_wiki(body, at):
        start = body.index("[[", at) + 2
        start += len(body[start:]) - len(body[start:].lstrip()) if body[start : start + 1].isspace() else 0
        return (start, start + len(link.target), False) if body.startswith(link.target, start) else None
    opening = re.compile(r"\]\(\s*+(<?)|\]:[ \t]++(<?)")
    display = len(link.display or "")
    match = opening.match(body, body.index("[", at) + 1 + display)
    if match is None:
        return None
    pointed = bool(match[1] or match[2])
    ending = re.compile(r"[#>]" if pointed else r"[#\s]|\)").search(body, match.end())
    end = ending.start() if ending else len(body)
    if not pointed and body[match.start() : match.start() + 2] == "](":
        end = _closed(body, match.end())
    return match.end(), end, pointed


def _closed(body: str, at: int) -> int:
    """Where a destination without `<` ends: at white space, a subpath, or the bracket that closes it."""
    depth = 0
    while at < len(body):
        character = body[at]
        if character == "\\":
            at += 1
        elif character == "(":
            depth += 1
        elif character.isspace() or character == "#" or (character == ")" and not depth):
            break
        elif character == ")":
            depth -= 1
        at += 1
    return min(at, len(body))


def _destination(target: str, *, pointed: bool) -> str:
    """A path as a Markdown destination: only what Markdown would misread is encoded, as Obsidian does."""
    kept = _PLAIN if not pointed else re.compile(r"[^#%<>?\\\r\n]")
    return "".join(character if kept.fullmatch(character) else quote(character, safe="") for character in target)


# The properties


def _front(front: str, aim: Callable[[Link], str | None], lost: list[str]) -> str:
    """The properties with their links rewritten, each within its quotes; as they are where that can't be done safely."""
    if "[[" not in front:
        return front
    changes: list[tuple[int, int, str]] = []
    for match in _WIKI.finditer(front):
        link = wikilink(match[1], "wikilink")
        target = aim(link) if link else None
        if link is None or target is None:
            continue
        start = front.index(link.target, match.start(1))
        changes.append((start, start + len(link.target), _quoted(target, front, match.start())))
    if not changes:
        return front
    pieces, done = [], 0
    for start, end, target in changes:
        pieces += [front[done:start], target]
        done = end
    written = "".join(pieces) + front[done:]
    try:
        if _keys(written) == _keys(front):
            return written
    except FrontmatterError:
        pass  # they could not be read before either, or could not be after
    lost.extend(front[start:end] for start, end, _ in changes)
    return front


def _keys(front: str) -> list[str]:
    return list(properties(front))


def _quoted(target: str, front: str, at: int) -> str:
    """`target` as it stands inside the quotes that are open at `at`, if any are."""
    line = front[front.rfind("\n", 0, at) + 1 : at]
    if line.count('"') % 2:
        return target.replace("\\", "\\\\").replace('"', '\\"')
    return target.replace("'", "''") if line.count("'") % 2 else target
