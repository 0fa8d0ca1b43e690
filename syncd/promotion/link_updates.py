"""Plan the link updates that keep every link of the vault working when files move; nothing is written here.

Laws, tested: after the move and the updates, every link and card leads to the same file as before; a link that still
leads there keeps its bytes; a link that would lead to another file is updated too. A note of the inbox never learns
a folder outside its workspace. A capture whose links change gets the next version, so an agent that has read the old
links can't restore them unread."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import unquote

from index.errors import MemexError, NotFound
from index.model import Stat
from index.names import base_name, fold
from syncd.documents.parser import BAD_VERSION, parse
from syncd.links.canvas_link_positions import find_in_canvas
from syncd.links.link_resolution import Paths
from syncd.links.link_rewriting import Move, apply_edits, find_edits, rewrite_links
from syncd.links.unlinked_mentions import Names, find_mentions
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode
from syncd.vault.location import locate
from syncd.vault.obsidian_settings import ObsidianSettings
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault

_MARK: Final = re.compile(r"(\[\[|\]\(\s*+<?|\]:\s*+<?)")
_WIKI_END: Final = re.compile(r"(?<!\A)\||[#\r\n]|\]\]")
_BARE_END: Final = re.compile(r"\s")
_POINTED_END: Final = re.compile(r"[>\r\n]")
_CUT: Final = re.compile(r"[\[\]()<>#|\\'\"]")
_ESCAPE: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class LinkUpdates:
    """Holds the planned changes: for each current path, the bytes now and the bytes after the move.

    A file that moves is included if its text changes; its bytes after the move belong at its new path."""

    changes: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    # File and target of each link that breaks, because no allowed link text leads to the target.
    lost: tuple[tuple[str, str], ...] = ()
    # File, and the text in it that names a moved file without a link; only a person can change it.
    mentions: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()  # files that can't be read now, so their links are unknown


def plan_link_updates(
    vault: Vault,
    moves: Mapping[str, str],
    *,
    texts: Mapping[str, bytes] | None = None,
    inbox: str,
    moved: bool = False,
    along: Mapping[str, str] | None = None,
    within: Collection[str] | None = None,
) -> LinkUpdates:
    """Plan the changes to all notes and canvases when files are moved (old path → new path), several at once.

    `texts` replace the bytes on disk (by path before the move). With `moved`, the files are at their new paths
    already, and only broken links are repaired, because the others may have been rewritten meanwhile. The files in
    `along` are still at their old paths. Only files `within` are read; None = all."""
    going = dict(along or {}) if moved else {**moves, **(along or {})}
    came = {new: old for old, new in moves.items() if old != new} if moved else {}
    moves = {old: new for old, new in {**moves, **(along or {})}.items() if old != new}
    if not moves:
        return LinkUpdates()
    files = list(vault.walk_files())
    before = Paths(came.get(path, path) for path in files)
    after = Paths(going.get(path, path) for path in files)
    relative = ObsidianSettings(vault).uses_relative_links()
    move = Move(moves, before, after, relative, partial(_is_private, inbox=inbox), only_broken=moved)
    look = _Look(vault, texts or {}, came, going)
    return _collect_updates(vault, files if within is None else within, move, look, inbox)


def _is_private(source: str, target: str, *, inbox: str) -> bool:
    """Return whether the note at `source` may not name `target`: notes of a workspace may name only paths in it."""
    here, there = locate(source, inbox), locate(target, inbox)
    return here.scope == "captures" and (there.scope, there.workspace) != (here.scope, here.workspace)


class MoveSeries:
    """Plans several moves made one after another with a single scan of the vault.

    Each step plans what `plan_link_updates` would plan for it if nobody wrote a link since the scan; `plan_repairs`
    plans the rest."""

    def __init__(self, vault: Vault, moves: Mapping[str, str], *, inbox: str) -> None:
        files = list(vault.walk_files())
        self._vault, self._inbox, self._relative = vault, inbox, ObsidianSettings(vault).uses_relative_links()
        self._before, self._after = Paths(files), Paths(files)
        leads, names = {name_prefix(path) for path in (*moves, *moves.values())}, Names(moves)
        self._moved: dict[str, str] = {}
        self._scanned: dict[str, Stat] = {}
        self._always: set[str] = set()  # files that any step may concern
        self._led: dict[str, set[str]] = {}  # prefix of a name → the files that may link to such a name
        for path in files:
            for beginning in self._relevant_prefixes(path, leads, names):
                self._led.setdefault(beginning, set()).add(path) if beginning else self._always.add(path)

    def _relevant_prefixes(self, path: str, leads: set[str], names: Names) -> Collection[str]:
        """Return the prefixes of moving names that a file may link to; "" = it may link to any, or mentions one."""
        if not _can_hold_links(path) or self._vault.ignores(path):
            return ()
        try:
            raw, self._scanned[path] = self._vault.read(path)
        except MemexError:
            return ("",)  # each step reports it as unread
        text = decode(raw)
        if path.endswith(".canvas") or any(find_mentions(path, text, names)):
            return ("",)
        return set(_matching_prefixes(text, leads))

    def plan_step(self, moves: Mapping[str, str], texts: Mapping[str, bytes]) -> LinkUpdates:
        """Plan the changes for these moves, from the current paths.

        Nothing has moved until `record_moves` is called."""
        if gone := next((old for old in moves if self._before.exact_path(old) != old), None):
            raise NotFound(f"there was no file at {gone}")
        _move_paths(self._after, moves)
        try:
            move = Move(moves, self._before, self._after, self._relative, partial(_is_private, inbox=self._inbox))
            led = (self._led.get(name_prefix(path), ()) for path in (*moves, *moves.values()))
            files = sorted({*self._always, *self._led.get("", ()), *moves}.union(*led))
            return _collect_updates(self._vault, files, move, _Look(self._vault, texts, {}, moves), self._inbox)
        finally:
            _move_paths(self._after, {new: old for old, new in moves.items()})

    def record_moves(self, moves: Mapping[str, str]) -> None:
        """Record that these files have moved."""
        for paths in (self._before, self._after):
            _move_paths(paths, moves)
        for files in (self._always, *self._led.values()):
            for old in files & moves.keys():
                files.remove(old)
                files.add(moves[old])
        self._moved |= moves

    def plan_repairs(self) -> LinkUpdates:
        """Plan the repair of broken links to the files that have moved, in files that were written since the scan."""
        files = [path for path in self._vault.walk_files() if _can_hold_links(path)]
        written = [path for path in files if self._vault.stat(path) != self._scanned.get(path)]
        return plan_link_updates(self._vault, self._moved, inbox=self._inbox, moved=True, within=written)


def _move_paths(paths: Paths, moves: Mapping[str, str]) -> None:
    for old in moves:
        paths.remove(old)
    for new in moves.values():
        paths.add(new)


def _collect_updates(vault: Vault, files: Iterable[str], move: Move, look: _Look, inbox: str) -> LinkUpdates:
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
        may_change = old != new or path.endswith(".canvas") or next(_matching_prefixes(text, leads), None) is not None
        if path.endswith(".base") or not may_change:
            continue
        if path.endswith(".canvas"):
            spots = find_in_canvas(text)
            if spots is None:
                if names.occur_in(text):
                    mentions.append((path, "it is not a valid canvas, so Memex leaves it unchanged"))
                continue
            edits, gone = find_edits(spots, old, new, move)
            written = apply_edits(text, edits)
        else:
            written, gone = rewrite_links(text, old, new, move)
            if written != text and all(locate(at, inbox).scope == "captures" for at in (old, new)):
                written = _raise_version(written, new, inbox)
        lost += ((path, target) for target in gone)
        if written != text:
            changes[path] = (raw, encode(written))
    mentions += _find_bookmarks(vault, names)
    return LinkUpdates(changes, tuple(lost), tuple(mentions), tuple(unread))


def _raise_version(text: str, path: str, inbox: str) -> str:
    """Return the text of a capture with the next version; a note that has no id yet can't be updated by an agent.

    A value that is no version, such as `version: 1.0.3`, is a person's."""
    document = parse(encode(text), path, mtime_ms=0, inbox=inbox)
    is_ours = not any(defect.name == BAD_VERSION for defect in document.defects)
    with suppress(FrontmatterError):
        if document.writable and document.claimed_id and is_ours:
            return edit(text, {"version": document.version + 1})
    return text


@dataclass(frozen=True, slots=True)
class _Look:
    """Reads files: the bytes on disk, or the bytes that are planned for them."""

    vault: Vault
    texts: Mapping[str, bytes]
    came: Mapping[str, str]  # new path → old path of files that have moved already
    going: Mapping[str, str]  # old path → new path of files that have not moved yet

    def read(self, path: str) -> bytes:
        text = self.texts.get(self.came.get(path, path))
        return self.vault.read(path)[0] if text is None else text


def _can_hold_links(path: str) -> bool:
    return is_note(path) or path.endswith((".canvas", ".base"))


def _find_bookmarks(vault: Vault, names: Names) -> Iterator[tuple[str, str]]:
    path = ".obsidian/bookmarks.json"
    with suppress(MemexError):
        if names.occur_in(decode(vault.read(path)[0])):
            yield path, "a bookmark"


# A quick check: whether a text may have a link to one of some names, without parsing it as Markdown


def name_prefix(path: str) -> str:
    """Return the prefix of a file's base name, folded and without `.md`: up to a character that may be escaped or end a link."""
    return _cut_prefix(fold(base_name(path)))


def _cut_prefix(name: str) -> str:
    cut = _CUT.search(name)
    name = (name[: cut.start()] if cut else name).strip()
    while name.endswith(".md"):
        name = name[:-3].strip()
    return name


def _matching_prefixes(text: str, leads: set[str]) -> Iterator[str]:
    """Yield the `leads` that a link of `text` may lead to; "" = it may lead to any.

    Takes time linear in the text: the text between two link marks is searched once."""
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
            yield ""  # inside a quoted property: only the property reader can unescape it
        if not wiki:
            target = unquote(_ESCAPE.sub("", target))
        yield from leads.intersection(_cut_prefix(part) for part in fold(target).split("/"))
