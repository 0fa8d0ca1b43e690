"""Plan the link updates that keep every link of the vault working when files move; nothing is written here.

Law, tested: after the move and the updates every link and card leads where it led before; a link that leads there
anyway keeps its bytes. A link that would lead to another file counts too. No note of the inbox learns a folder
outside its workspace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from index.errors import MemexError, NotFound
from index.names import fold
from syncd.links.canvas_link_positions import find_in_canvas
from syncd.links.link_resolution import Paths
from syncd.links.link_rewriting import Move, apply_edits, find_edits, rewrite_links
from syncd.links.unlinked_mentions import Names, find_mentions
from syncd.notes.front_matter import decode, encode
from syncd.vault.location import INBOX, locate
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault

_SETTINGS: Final = ".obsidian/app.json"
_MARK: Final = re.compile(r"(\[\[|\]\(\s*+<?|\]:\s*+<?)")
_WIKI_END: Final = re.compile(r"(?<!\A)\||[#\r\n]|\]\]")
_BARE_END: Final = re.compile(r"\s")
_POINTED_END: Final = re.compile(r"[>\r\n]")
_CUT: Final = re.compile(r"[\[\]()<>#|\\'\"]")
_ESCAPE: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class LinkUpdates:
    """What is to be written, by where the file is now: what it holds, and what it is to hold once all is moved.

    A file that moves itself is among them if its text changes; what it is to hold belongs to its new place."""

    changes: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    # File and target of each link that breaks, as nothing that may stand there leads on.
    lost: tuple[tuple[str, str], ...] = ()
    # File and what in it names a moved file without linking to it, which is a person's to change.
    mentions: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()  # files that can't be read now: nobody knows whether they have such links


def plan_link_updates(
    vault: Vault,
    moves: Mapping[str, str],
    *,
    texts: Mapping[str, bytes] | None = None,
    inbox: str = INBOX,
    moved: bool = False,
    along: Mapping[str, str] | None = None,
) -> LinkUpdates:
    """What changes in all notes and canvases when files are moved (old path → new path), several at once.

    `texts` are read in place of what is on disk (by path before the move). With `moved` the files lie at their new
    places already, and only links that lead nowhere now are mended: the others may have been rewritten meanwhile. What
    is to go `along` with them is at its old place still."""
    going = dict(along or {}) if moved else {**moves, **(along or {})}
    came = {new: old for old, new in moves.items() if old != new} if moved else {}
    moves = {old: new for old, new in {**moves, **(along or {})}.items() if old != new}
    if not moves:
        return LinkUpdates()
    files = list(vault.walk_files())
    before = Paths(came.get(path, path) for path in files)
    after = Paths(going.get(path, path) for path in files)

    move = Move(moves, before, after, _uses_relative_links(vault), _make_privacy_rule(inbox), only_broken=moved)
    return _collect_updates(vault, files, move, _Look(vault, texts or {}, came, going))


def _make_privacy_rule(inbox: str) -> Callable[[str, str], bool]:
    """Whether a note may not say where another one lies: those of a workspace know of their own only."""

    def is_private(source: str, target: str) -> bool:
        here, there = locate(source, inbox), locate(target, inbox)
        return here.scope == "captures" and (there.scope, there.workspace) != (here.scope, here.workspace)

    return is_private


class MoveSeries:
    """Several moves made one after another, with one look through the vault for all of them.

    What a step changes is what `plan_link_updates` would say of it alone, at that time."""

    def __init__(self, vault: Vault, moves: Mapping[str, str], *, inbox: str = INBOX) -> None:
        files = list(vault.walk_files())
        self._vault, self._inbox, self._relative = vault, inbox, _uses_relative_links(vault)
        self._before, self._after = Paths(files), Paths(files)
        leads, names = {name_prefix(path) for path in (*moves, *moves.values())}, Names(moves)
        self._always: set[str] = set()  # files that any step may concern
        self._led: dict[str, set[str]] = {}  # how a name begins → the files that may link to one
        for path in files:
            for beginning in self._relevant_prefixes(path, leads, names):
                self._led.setdefault(beginning, set()).add(path) if beginning else self._always.add(path)

    def _relevant_prefixes(self, path: str, leads: set[str], names: Names) -> Collection[str]:
        """How the names begin of those that move to which a file may link; "" = it may link to any, or name one."""
        if not _can_hold_links(path) or self._vault.ignores(path):
            return ()
        try:
            text = decode(self._vault.read(path)[0])
        except MemexError:
            return ("",)  # which each step tells
        if path.endswith(".canvas") or any(find_mentions(path, text, names)):
            return ("",)
        return set(_matching_prefixes(text, leads))

    def plan_step(self, moves: Mapping[str, str], texts: Mapping[str, bytes]) -> LinkUpdates:
        """What changes with these moves, from where the files are now. Nothing has moved until `record_moves` is called."""
        if gone := next((old for old in moves if self._before.exact_path(old) != old), None):
            raise NotFound(f"nothing was at {gone}")
        _move_paths(self._after, moves)
        try:
            move = Move(moves, self._before, self._after, self._relative, _make_privacy_rule(self._inbox))
            led = (self._led.get(name_prefix(path), ()) for path in (*moves, *moves.values()))
            files = sorted({*self._always, *self._led.get("", ()), *moves}.union(*led))
            return _collect_updates(self._vault, files, move, _Look(self._vault, texts, {}, moves))
        finally:
            _move_paths(self._after, {new: old for old, new in moves.items()})

    def record_moves(self, moves: Mapping[str, str]) -> None:
        """These files are where they were to be."""
        for paths in (self._before, self._after):
            _move_paths(paths, moves)
        for files in (self._always, *self._led.values()):
            for old in files & moves.keys():
                files.remove(old)
                files.add(moves[old])


def _move_paths(paths: Paths, moves: Mapping[str, str]) -> None:
    for old in moves:
        paths.remove(old)
    for new in moves.values():
        paths.add(new)


def _collect_updates(vault: Vault, files: Iterable[str], move: Move, look: _Look) -> LinkUpdates:
    changes: dict[str, tuple[bytes, bytes]] = {}
    lost: list[tuple[str, str]] = []
    mentions: list[tuple[str, str]] = []
    unread: list[str] = []
    touched = {*move.moved, *move.moved.values()}
    leads, names = {name_prefix(path) for path in touched}, Names(move.moved)
    for path in sorted(files):
        if not _can_hold_links(path) or vault.ignores(path):
            continue
        try:
            raw = look.read(path)
        except MemexError:
            unread.append(path)
            continue
        old = look.came.get(path, path)
        new = look.going.get(path, path)
        text = decode(raw)
        mentions += ((path, mention) for mention in find_mentions(path, text, names))
        if path.endswith(".base") or not (old != new or path.endswith(".canvas") or may_link_to(text, leads)):
            continue
        if path.endswith(".canvas"):
            spots = find_in_canvas(text)
            if spots is None:
                if names.occur_in(text):
                    mentions.append((path, "it is no valid canvas, so it is left as it is"))
                continue
            edits, gone = find_edits(spots, old, new, move)
            written = apply_edits(text, edits)
        else:
            written, gone = rewrite_links(text, old, new, move)
        lost += ((path, target) for target in gone)
        if written != text:
            changes[path] = (raw, encode(written))
    mentions += _find_bookmarks(vault, names)
    return LinkUpdates(changes, tuple(lost), tuple(mentions), tuple(unread))


@dataclass(frozen=True, slots=True)
class _Look:
    """How files are read: as they are, or as they are about to be."""

    vault: Vault
    texts: Mapping[str, bytes]
    came: Mapping[str, str]  # of what lies at its new place already: where it was
    going: Mapping[str, str]  # of what lies at its old place still: where it is to be

    def read(self, path: str) -> bytes:
        text = self.texts.get(self.came.get(path, path))
        return self.vault.read(path)[0] if text is None else text


def _can_hold_links(path: str) -> bool:
    return is_note(path) or path.endswith((".canvas", ".base"))


def _uses_relative_links(vault: Vault) -> bool:
    """Whether the vault's owner wants links to count from their note. Each link stays of its kind."""
    with suppress(MemexError, ValueError, RecursionError):
        settings = json.loads(vault.read(_SETTINGS)[0])
        return isinstance(settings, dict) and settings.get("newLinkFormat") == "relative"
    return False


def _find_bookmarks(vault: Vault, names: Names) -> Iterator[tuple[str, str]]:
    path = ".obsidian/bookmarks.json"
    with suppress(MemexError):
        if names.occur_in(decode(vault.read(path)[0])):
            yield path, "a bookmark"


# A quick look: whether a text may have a link to one of some names, without reading it as Markdown


def name_prefix(path: str) -> str:
    """How the base name of a file begins, folded and without `.md`: up to a sign that may be escaped or end a link."""
    return _cut_prefix(fold(path.rpartition("/")[2]))


def _cut_prefix(name: str) -> str:
    cut = _CUT.search(name)
    name = (name[: cut.start()] if cut else name).strip()
    while name.endswith(".md"):
        name = name[:-3].strip()
    return name


def may_link_to(text: str, leads: set[str]) -> bool:
    """Whether a link of `text` may lead to a file whose name begins as one of `leads`. False is certain, True is not."""
    return any(True for _ in _matching_prefixes(text, leads))


def _matching_prefixes(text: str, leads: set[str]) -> Iterator[str]:
    """Those of `leads` that a link of `text` may lead to; "" = it may lead to any.

    In time linear in the text: the text between two marks of links is looked at once."""
    pieces = _MARK.split(text)
    if len(pieces) == 1:
        return
    if "" in leads:
        yield ""
    for mark, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        wiki = mark == "[["
        ending = _WIKI_END if wiki else _POINTED_END if mark.endswith("<") else _BARE_END
        end = ending.search(piece)
        target = piece[: end.start()] if end else piece
        if wiki and "\\" in target.removesuffix("\\"):
            yield ""  # in quotes of a property: what it says is for whoever reads those
        if not wiki:
            target = unquote(_ESCAPE.sub("", target))
        yield from leads.intersection(_cut_prefix(part) for part in fold(target).split("/"))
