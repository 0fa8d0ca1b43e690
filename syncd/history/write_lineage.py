"""Derive the lineage of a file's writes from the audit log: which are in force, who made them, how far undo can go.

Law, tested: a write is undone only if every later write is undone too or follows from it automatically; undo stops
at a change that a person made in between, in an editor or by a command."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from syncd.history.digest_chain import Entry

AGENTS: Final = frozenset({"mcp", "rest"})  # surfaces
WRITES: Final = frozenset({"create", "update", "delete"})  # kinds
RESTORE: Final = "restore"  # the tool of a restored version
# The daemon's writes that follow from the text of a note; it repeats them where they are missing.
FOLLOWING: Final = frozenset({"adoption", "enrichment", "review"})
# Decisions of the owner.
OWNERS: Final = frozenset({"promote", "unpromote", "review.dismiss", "unarchive", "archive", "drag"})
By: TypeAlias = Literal["agent", "owner", "memex", "hand"]
Hand: TypeAlias = Literal["hand", "key"]  # whether only people wrote a note, or an agent too
_BY: Final[Mapping[str, By]] = {"mcp": "agent", "rest": "agent", "cli": "owner", "daemon": "memex", "file": "hand"}
EDITED: Final = "it was edited manually since"
GONE: Final = "it was removed manually since"
MOVED: Final = "it was moved manually since; memex delete removes it"
PROMOTED: Final = "it was promoted since; memex unpromote returns it"
ARCHIVED: Final = "it was archived since; memex unarchive returns it"
# Tools that move a note out of its workspace.
_AWAY: Final = {"promote": PROMOTED, "drag": PROMOTED, "archive": ARCHIVED, "review.dismiss": ARCHIVED}
THERE: Final = "another file now has its name"


@dataclass(frozen=True, slots=True)
class UndoReach:
    """Says how far a file can go back: to its state before `first`, which undoes `taken` and leaves `left`, and why."""

    first: Entry | None
    taken: tuple[Entry, ...] = ()
    left: tuple[Entry, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Writer:
    """Describes who wrote something: an agent by its key, the owner by a command, Memex itself, or a person in an editor."""

    by: By
    at: int | None = None  # epoch milliseconds; None = unknown
    key: str = ""  # name of the key
    tool: str = ""


@dataclass(slots=True)
class IdHistory:
    """Holds the log entries of one of several notes that have had the same id, because agents may choose ids."""

    home: str  # current or last path
    live: bool = False
    entries: list[Entry] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)  # path → its workspace at that path

    def add(self, entry: Entry) -> None:
        """Add an entry about the note."""
        self.entries.append(entry)
        self.paths[entry.path] = entry.workspace
        if entry.after:
            self.home, self.live = entry.path, True
        elif entry.path == self.home and not is_manual_removal(entry):  # a person may have moved it
            self.live = False


def id_histories(entries: Iterable[Entry], moves: Collection[tuple[str, str]] = ()) -> list[IdHistory]:
    """Split the entries of one id into the histories of the notes that have had it, in order of creation.

    `moves`: old and new paths of the moves that Memex made of notes with this id."""
    histories: list[IdHistory] = []
    for entry in entries:
        if not entry.path:
            continue
        made = entry.kind in ("create", "kept") and not entry.undoes
        history = next((_match_new_file if made else _match_changed_file)(entry, histories[::-1], moves), None)
        if history is None:
            history = IdHistory(entry.path)
            histories.append(history)
        history.add(entry)
    return histories


def _match_new_file(
    entry: Entry, histories: Sequence[IdHistory], moves: Collection[tuple[str, str]]
) -> Iterator[IdHistory]:
    """Yield the histories that a new file may continue: moved by Memex, at the same path, or of the same workspace."""
    if entry.surface not in AGENTS:
        yield from (history for history in histories if any((path, entry.path) in moves for path in history.paths))
    yield from (history for history in histories if history.home == entry.path)
    yield from (history for history in histories if entry.workspace and history.paths[history.home] == entry.workspace)


def _match_changed_file(
    entry: Entry, histories: Sequence[IdHistory], moves: Collection[tuple[str, str]]
) -> Iterator[IdHistory]:
    """Yield the histories that a changed file may continue; a manually moved file is matched by its content."""
    yield from (
        history for history in histories if entry.undoes and any(it.seq == entry.undoes for it in history.entries)
    )
    yield from (history for history in histories if history.home == entry.path)
    yield from (history for history in histories if entry.path in history.paths)
    yield from (history for history in histories if entry.before and history.entries[-1].after == entry.before)
    yield from (history for history in histories if any((path, entry.path) in moves for path in history.paths))
    yield from (history for history in histories if entry.workspace and history.paths[history.home] == entry.workspace)
    yield from histories


def writes_in_force(entries: Sequence[Entry], taken: Collection[int] = ()) -> list[Entry]:
    """Return the entries of one file whose writes are in force: they happened and were not undone since.

    An undo in `taken`, by its number, counts like any other write."""
    void = {entry.undoes for entry in entries if entry.kind == "undone"}
    real = [entry for entry in entries if entry.kind != "undone" and entry.seq not in void]
    numbers, standing, at = [entry.seq for entry in real], list[Entry](), len(real) - 1
    while at >= 0:
        entry = real[at]
        if entry.undoes and entry.seq not in taken:
            at = bisect_left(numbers, entry.undoes)
        else:
            standing.append(entry)
        at -= 1
    return standing[::-1]


def is_follow_up(entry: Entry) -> bool:
    """Return whether the daemon made this write because of the note's text."""
    return entry.surface == "daemon" and entry.tool in FOLLOWING and entry.kind == "update"


def is_restore(entry: Entry) -> bool:
    """Return whether an entry restored a version of a note outside the inbox, or undid that."""
    return not entry.workspace and (entry.tool == RESTORE or bool(entry.undoes))


def is_manual_removal(entry: Entry) -> bool:
    """Return whether an entry says that a person removed the file or moved it away."""
    return entry.surface == "file" and bool(entry.before) and not entry.after


def is_manual_arrival(entry: Entry) -> bool:
    """Return whether an entry says that a person created the file or moved it there."""
    return entry.surface == "file" and not entry.before


def find_manual_moves(entries: Iterable[Entry]) -> dict[int, Entry]:
    """Return the manual moves among these entries: by the number of the entry about the new path, the one about the old path.

    The log may have either of the two first."""
    moves, lately = dict[int, Entry](), dict[str, int]()  # the last entry's number by path
    left, came = list[Entry](), list[Entry]()
    for entry in entries:
        others = [other for other in left if other.id == entry.id and other.path != entry.path]
        if is_manual_removal(entry):
            since = lately.get(entry.path, entry.seq)
            match = [other for other in came if other.id == entry.id and other.seq > since]
            if match:
                moves[match[-1].seq] = entry
                came.remove(match[-1])
            else:
                left.append(entry)
        elif is_manual_arrival(entry) and others:
            moves[entry.seq] = others[-1]
            left.remove(others[-1])
        elif is_manual_arrival(entry):
            came.append(entry)
        lately[entry.path] = entry.seq
    return moves


def find_additions(entries: Iterable[Entry], write: Entry) -> list[Entry]:
    """Return the daemon's writes that followed a write of the same file directly, in order."""
    additions, last = list[Entry](), write.after
    for entry in entries:
        if entry.seq <= write.seq or entry.path != write.path:
            continue
        if not is_follow_up(entry) or entry.before != last:
            break
        additions.append(entry)
        last = entry.after
    return additions


def find_undo_reach(entries: Sequence[Entry], now: str, wanted: Collection[int]) -> UndoReach:
    """Return how far the `wanted` writes of a file can be undone; `now` is its SHA-256, "" = removed."""
    chain = writes_in_force(entries, wanted)
    asked = [entry for entry in chain if entry.seq in wanted]
    if not asked:
        return UndoReach(None)
    if chain[-1].after != now:
        return UndoReach(None, (), tuple(asked), _explain_difference(chain[-1], now))
    first, reason = None, ""
    for entry, before in _iterate_backwards(chain):
        if entry.seq in wanted:
            first = entry
        elif not is_follow_up(entry):
            reason = _explain_later_write(entry)
            break
        if before is not None and before.after != entry.before:
            reason = EDITED
            break
    reached = [entry for entry in asked if first and entry.seq >= first.seq]
    return UndoReach(first, tuple(reached), tuple(entry for entry in asked if entry not in reached), reason)


def find_last_call(entries: Sequence[Entry]) -> Entry | None:
    """Return the newest write in force by an agent or a command."""
    asked = (entry for entry in reversed(writes_in_force(entries)) if entry.surface in AGENTS | {"cli"})
    return next((entry for entry in asked if entry.kind in WRITES), None)


def find_creator(entries: Sequence[Entry], at: int, *, whole: bool) -> Writer | None:
    """Return who created the note of these entries; None when the log no longer knows.

    The note says it was made `at`.

    `whole`: nothing of the log was pruned."""
    chain = writes_in_force(entries)
    if chain and chain[0].kind == "create":
        return _writer(chain[0])
    forgotten = chain and chain[0].kind == "kept"
    return None if forgotten or not whole else Writer("hand", at)


def find_last_editor(entries: Sequence[Entry], digest: str, at: int | None) -> Writer | None:
    """Return who changed the note last; None = nobody. It has the digest `digest`, and says it was changed `at`.

    Writes that show in no other answer are ignored: the owner's marks, and the actions that follow from them."""
    chain = writes_in_force(entries)
    if not chain:
        return None if at is None else Writer("hand", at)
    if chain[-1].after != digest and _is_visible_edit(chain[-1], at):
        return Writer("hand", at)
    for entry, before in _iterate_backwards(chain):
        if not is_follow_up(entry) and not (entry.tool in OWNERS and entry.surface in ("daemon", "cli")):
            if entry.kind == "kept":  # written by a prune, which knows the author, but has the time of the prune
                return replace(_writer(entry), at=at)
            return None if entry.kind == "create" else _writer(entry)
        if before is not None and before.after != entry.before and _is_visible_edit(before, at):
            return Writer("hand", at)
    return None if at is None else Writer("hand", at)


def _is_visible_edit(last: Entry, at: int | None) -> bool:
    """Return whether a manual edit after this write changed what agents read: then the note has a later time of change."""
    return at is not None and at > last.at


def _iterate_backwards(chain: Sequence[Entry]) -> Iterator[tuple[Entry, Entry | None]]:
    """Yield each entry, last first, with the one before it."""
    return zip(reversed(chain), [*reversed(chain[:-1]), None], strict=True)


def _writer(entry: Entry) -> Writer:
    return Writer(_BY.get(entry.surface, "memex"), entry.at, entry.name or entry.key, entry.tool)


def _explain_difference(last: Entry, now: str) -> str:
    if not last.after:
        return THERE
    return EDITED if now else GONE


def _explain_later_write(entry: Entry) -> str:
    """Return which write came after the writes to undo."""
    if entry.surface == "file":
        return EDITED if entry.after else GONE
    if entry.tool in _AWAY and not (entry.after and entry.workspace):  # otherwise it only changed a link in the note
        return _AWAY[entry.tool]
    who = entry.name or entry.key or {"cli": "you"}.get(entry.surface, "memex")
    return f"{entry.tool or 'something'} by {who} came after it"
