"""Rewrite the links of a note after files were moved, so that each link still leads to the file that it led to.

Law, tested: every link leads to the file that it led to before; a link that still does keeps its bytes, and in other
links only the path changes: subpath, display text, size, quotes and style stay. (If the text of a Markdown link is
the old name, it becomes the new name, as in Obsidian.)"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from index.model import Link
from index.names import base_name, fold
from syncd.links.link_resolution import Paths
from syncd.links.note_link_positions import LinkPosition, LinkPositions, find_in_note
from syncd.notes.property_reader import find_fences, read_structure

# Characters in a name that have another meaning in the text of a link.
_STRANGE: Final = re.compile(r"[\[\]\\|<>`*$%!]")


@dataclass(frozen=True, slots=True)
class Move:
    """Describes moved files, and the vault's files before and after the move."""

    moved: Mapping[str, str]  # old path -> new path
    before: Paths
    after: Paths
    relative: bool = False  # Obsidian's "New link format", for links whose own form does not decide
    private: Callable[[str, str], bool] = lambda _source, _target: False  # whether the note may not name the folder
    only_broken: bool = False  # change only broken links: somebody else has repaired the others


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces a part of a text."""

    start: int
    end: int
    text: str


def rewrite_links(text: str, old: str, new: str, move: Move) -> tuple[str, list[str]]:
    """Return the new text of a note that moved from `old` to `new`, and the targets of links that could not be kept."""
    edits, lost = find_edits(find_in_note(text), old, new, move, text)
    cut = find_fences(text)[2]
    front = [edit for edit in edits if edit.start < cut]
    if front and _properties_structure(apply_edits(text[:cut], front)) != _properties_structure(text[:cut]):
        edits = edits[len(front) :]
        lost += (text[edit.start : edit.end] for edit in front)
    return apply_edits(text, edits), lost


def _properties_structure(front: str) -> list[tuple[str, str | None]] | None:
    start, end, _ = find_fences(front)
    return read_structure(front[start:end])


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with its edits, which are in order and don't overlap."""
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join(pieces) + text[done:] if pieces else text


def find_edits(
    positions: LinkPositions, old: str, new: str, move: Move, text: str = ""
) -> tuple[list[Edit], list[str]]:
    """Return the edits at these positions of a file that moved from `old` to `new`, and the targets that can't be kept."""
    edits: list[Edit] = []
    known: dict[tuple[str, bool], tuple[str, str] | None] = {}
    lost = [link.target for link in positions.unclear if _changed_destination(link, old, new, move, whole=False)]
    for position in positions.found:
        asked = (position.link.target, position.whole)
        if asked not in known:
            known[asked] = _changed_destination(position.link, old, new, move, whole=position.whole)
        destinations = known[asked]
        if destinations is None:
            continue
        led, wanted = destinations
        spelling = _choose_spelling(position, led, wanted, (old, new), move)
        if spelling is None:
            lost.append(position.link.target)
            continue
        label = _label_edit(position, led, wanted, text)
        edits += [*([label] if label else []), Edit(position.start, position.end, spelling)]
    edits.sort(key=lambda edit: edit.start)
    return edits, lost


def _changed_destination(link: Link, old: str, new: str, move: Move, *, whole: bool) -> tuple[str, str] | None:
    """Return the old and the wanted target of a link; None when it already leads there."""
    if not link.target:
        return None
    led = move.before.exact_path(link.target) if whole else move.before.resolve(link.target, old)
    if led is None:
        return None
    wanted = move.moved.get(led, led)
    leads = move.after.exact_path(link.target) if whole else move.after.resolve(link.target, new)
    if leads is not None and move.only_broken:
        return None
    if leads == wanted and not (
        not whole
        and link.target.startswith(("./", "../"))
        and move.before.resolve_relative(link.target, old) == led
        and move.after.resolve_relative(link.target, new)
        != wanted  # Obsidian finds it only by its name, which other programs may not do
    ):
        return None
    return led, wanted


def _choose_spelling(position: LinkPosition, led: str, wanted: str, source: tuple[str, str], move: Move) -> str | None:
    """Return the first spelling that leads to the target and can be written at the position."""
    if position.whole:
        return position.says(wanted)
    targets = _possible_spellings(position.link.target, led, wanted, source, move)
    if not move.private(source[1], wanted) and move.after.resolve(_without_extension(wanted), source[1]) not in {
        None,
        wanted,
    }:
        targets.append(wanted)  # its name without the ending belongs to another note: Note.md.md beside Note.md
    for target in targets:
        if move.after.resolve(target, source[1]) == wanted and (spelling := position.says(target)) is not None:
            return spelling
    return None


def _possible_spellings(target: str, led: str, wanted: str, source: tuple[str, str], move: Move) -> list[str]:
    """Return possible spellings of `wanted`, first in the style of `target`; a full path from the root always works."""
    old, new = source
    bare = not target.lower().endswith(".md")
    whole, was = (_without_extension(wanted), _without_extension(led)) if bare else (wanted, led)
    short = base_name(whole)
    if move.private(new, wanted):
        return [short]
    near = _relative_path(whole, new)
    dotted = near if near.startswith("../") else f"./{near}"
    if target.startswith("/"):
        return [f"/{whole}", whole]
    if target.startswith(("./", "../")):
        return [dotted, whole, f"/{whole}"]
    from_root, from_here = fold(target) == fold(was), fold(target) == fold(_relative_path(was, old))
    if "/" not in target and not from_here:
        first = [short]
    elif "/" not in target:
        first = [short, *([near] if move.relative else [])]
    else:
        first = [near] if from_here and (move.relative or not from_root) else []
    return [*first, *([near, dotted] if move.relative and not from_root else []), whole, f"/{whole}"]


def _without_extension(path: str) -> str:
    """Return a note's path without `.md`, as most links write it."""
    return path[:-3] if path.lower().endswith(".md") else path


def _relative_path(path: str, source: str) -> str:
    """Return `path` relative to the folder of `source`, without "./", as Obsidian writes it."""
    here, there = source.split("/")[:-1], path.split("/")
    while here and len(there) > 1 and here[0] == there[0]:
        here, there = here[1:], there[1:]
    return "/".join(("..",) * len(here) + tuple(there))


def _label_edit(position: LinkPosition, led: str, wanted: str, text: str) -> Edit | None:
    """Return the edit that replaces the old name in the text of a Markdown link."""
    if position.label is None:
        return None
    old, new = base_name(led), base_name(wanted)
    label = text[slice(*position.label)]
    if old == new or label not in (old, _without_extension(old)) or _STRANGE.search(new):
        return None
    return Edit(*position.label, new if label == old else _without_extension(new))
