"""Derive the lineage of a file's writes from the audit log: which are in force, who made them, how far undo can go.

Law, tested: a write is undone only if every later write is undone too or follows from it automatically; undo ends at
a change that a person made in between, in an editor or by a command."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from syncd.history.digest_chain import Entry

AGENTS: Final = frozenset({"mcp", "rest"})  # surfaces
WRITES: Final = frozenset({"create", "update", "delete"})  # kinds
# What the daemon writes into a note because of what the note says; it writes it again where it is owed.
FOLLOWING: Final = frozenset({"adoption", "enrichment", "review"})
OWNERS: Final = frozenset(
    {"promote", "unpromote", "review.dismiss", "unarchive", "archive", "drag"}
)  # decisions of theirs
By: TypeAlias = Literal["agent", "owner", "memex", "hand"]
Hand: TypeAlias = Literal["hand", "key"]  # whether only people wrote a note, or an agent's key did too
_BY: Final[Mapping[str, By]] = {"mcp": "agent", "rest": "agent", "cli": "owner", "daemon": "memex", "file": "hand"}
EDITED: Final = "it was changed by hand since"
GONE: Final = "it was removed by hand since"
MOVED: Final = "it was moved by hand since; memex delete removes it"
PROMOTED: Final = "it was promoted since; memex unpromote brings it back"
ARCHIVED: Final = "it was set aside since; memex unarchive brings it back"
# What takes a note out of its workspace, by its tool.
_AWAY: Final = {"promote": PROMOTED, "drag": PROMOTED, "archive": ARCHIVED, "review.dismiss": ARCHIVED}
THERE: Final = "another file has its name now"


@dataclass(frozen=True, slots=True)
class UndoReach:
    """How far back a file can go: to what it was before `first`, which takes back `taken` and leaves `left`, and why."""

    first: Entry | None
    taken: tuple[Entry, ...] = ()
    left: tuple[Entry, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote something: an agent by its key, the owner by a command, memex by itself, or somebody by hand."""

    by: By
    at: int | None = None  # epoch milliseconds; None = nobody knows
    key: str = ""  # its name
    tool: str = ""


@dataclass(slots=True)
class IdHistory:
    """What the log says of one of several notes that have had the same id, as agents may choose ids."""

    home: str  # where it lies, or lay last
    live: bool = False
    entries: list[Entry] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)  # path → the workspace that it lay in there

    def add(self, entry: Entry) -> None:
        """This was done to it."""
        self.entries.append(entry)
        self.paths[entry.path] = entry.workspace
        if entry.after:
            self.home, self.live = entry.path, True
        elif entry.path == self.home:
            self.live = False


def id_histories(entries: Iterable[Entry], moves: Collection[tuple[str, str]] = ()) -> list[IdHistory]:
    """The entries of one id as the histories of the notes that have had it, the one that was made first first.

    `moves`: from where to where Memex has moved notes of that id."""
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
    """Which of them may be the one that a new file is: moved by Memex, there again, or another of its workspace."""
    if entry.surface not in AGENTS:
        yield from (history for history in histories if any((path, entry.path) in moves for path in history.paths))
    yield from (history for history in histories if history.home == entry.path)
    yield from (history for history in histories if entry.workspace and history.paths[history.home] == entry.workspace)


def _match_changed_file(
    entry: Entry, histories: Sequence[IdHistory], moves: Collection[tuple[str, str]]
) -> Iterator[IdHistory]:
    """Which of them may be the one whose file was changed; one that was moved by hand is known by what it held."""
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
    """Those of one file's entries whose writes stand: neither came to nothing nor were taken back since.

    An undo among `taken`, by its number, counts as a write like any other."""
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
    """Whether it was written by the daemon because of what the note said."""
    return entry.surface == "daemon" and entry.tool in FOLLOWING and entry.kind == "update"


def find_undo_reach(entries: Sequence[Entry], now: str, wanted: Collection[int]) -> UndoReach:
    """How far the writes `wanted`, by their numbers, of a file can be taken back; `now` is its sha256, "" = it is gone."""
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
    """The newest write in force that an agent or a command asked for."""
    asked = (entry for entry in reversed(writes_in_force(entries)) if entry.surface in AGENTS | {"cli"})
    return next((entry for entry in asked if entry.kind in WRITES), None)


def find_creator(entries: Sequence[Entry], at: int, *, whole: bool) -> Writer | None:
    """Who made the note of these entries, which says that it was made `at`; None when the log has forgotten it.

    `whole`: nothing of the log was pruned."""
    chain = writes_in_force(entries)
    if chain and chain[0].kind == "create":
        return _writer(chain[0])
    forgotten = chain and chain[0].kind == "kept"
    return None if forgotten or not whole else Writer("hand", at)


def find_last_editor(entries: Sequence[Entry], digest: str, at: int | None) -> Writer | None:
    """Who changed the note last, which holds the bytes of `digest` and says that it was changed `at`; None = nobody did.

    What shows in no other answer is not told: that its owner has marked it, and what was done about that."""
    chain = writes_in_force(entries)
    if not chain:
        return None if at is None else Writer("hand", at)
    if chain[-1].after != digest and _is_visible_edit(chain[-1], at):
        return Writer("hand", at)
    for entry, before in _iterate_backwards(chain):
        if not is_follow_up(entry) and not (entry.tool in OWNERS and entry.surface in ("daemon", "cli")):
            if entry.kind == "kept":  # by a prune, which knows who it was, but says when it was pruned
                return replace(_writer(entry), at=at)
            return None if entry.kind == "create" else _writer(entry)
        if before is not None and before.after != entry.before and _is_visible_edit(before, at):
            return Writer("hand", at)
    return None if at is None else Writer("hand", at)


def _is_visible_edit(last: Entry, at: int | None) -> bool:
    """Whether an edit by hand after this write is one of what agents read: the note says then when it was."""
    return at is not None and at > last.at


def _iterate_backwards(chain: Sequence[Entry]) -> Iterator[tuple[Entry, Entry | None]]:
    """Each entry, the last first, with the one before it."""
    return zip(reversed(chain), [*reversed(chain[:-1]), None], strict=True)


def _writer(entry: Entry) -> Writer:
    return Writer(_BY.get(entry.surface, "memex"), entry.at, entry.name or entry.key, entry.tool)


def _explain_difference(last: Entry, now: str) -> str:
    if not last.after:
        return THERE
    return EDITED if now else GONE


def _explain_later_write(entry: Entry) -> str:
    """Which write came after those that were to be taken back."""
    if entry.surface == "file":
        return EDITED
    if entry.tool in _AWAY and not (entry.after and entry.workspace):  # else it wrote a link in it alone
        return _AWAY[entry.tool]
    who = entry.name or entry.key or {"cli": "you"}.get(entry.surface, "memex")
    return f"{entry.tool or 'something'} by {who} came after it"
