"""Undo what agents, or one call of a command, wrote into the inbox: each file gets its earlier state back, or stays.

Outside the inbox, only restored versions are undone. Laws, tested: nothing that a person has written since is lost, and each file left alone is named with its reason; an
undo is logged, indexed and can itself be undone; a crash leaves each file before or after, and repeating the call
finishes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from index.errors import Conflict, MemexError, NotFound, Unavailable
from syncd.history.audit_log import AUTHOR, AuditLog, acting_as
from syncd.history.digest_chain import Entry
from syncd.history.note_history import NoteHistory
from syncd.history.write_lineage import (
    AGENTS,
    MOVED,
    WRITES,
    UndoReach,
    find_last_call,
    find_manual_moves,
    find_undo_reach,
    is_manual_arrival,
    is_manual_removal,
    is_restore,
    writes_in_force,
)
from syncd.vault.location import locate
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault

KEPT_NO_MORE: Final = "its earlier version is no longer kept (git.past_days, git.past_mb)"
OUTSIDE: Final = "it is in your own notes now, which undo does not change"
UNHOUSED: Final = "its workspace no longer exists"
UNREADABLE: Final = "it can't be read or written now"
JUST_NOW: Final = "it has just changed"
OWN_WAY: Final = "memex unpromote returns promoted notes, memex unarchive returns archived ones"
OWN_WAYS: Final = {  # of the tools that took a decision back
    "unpromote": "memex promote promotes the capture again",
    "unarchive": "memex review dismiss archives the capture again",
}
MOST_NAMES: Final = 10  # of keys, in a message

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class UndoStep:
    """Describes what to do with one file at `path`; or why nothing can be done."""

    path: str
    id: str
    way: UndoReach
    now: str = ""  # SHA-256; "" = no file
    raw: bytes | None = None  # the bytes of a note to restore
    reason: str = ""

    @property
    def target_digest(self) -> str:
        """Return the SHA-256 of the wanted content; "" = to be removed."""
        return self.way.first.before if self.way.first else self.now

    @property
    def action(self) -> str:
        """Return the action as a word."""
        return "removed" if not self.target_digest else "restored" if self.now else "brought back"

    @property
    def sort_key(self) -> int:
        """Return the order: a stored file is restored before its note, and removed after it."""
        return (0 if self.target_digest else 3) if not is_note(self.path) else (1 if self.target_digest else 2)


class Undo:
    """Undoes writes to the files of one vault. `indexed` is called with the changed paths."""

    def __init__(
        self,
        audit: AuditLog,
        vault: Vault,
        history: NoteHistory,
        *,
        inbox: str,
        workspaces: Callable[[], Collection[str]],
        indexed: Callable[[Collection[str]], object],
    ) -> None:
        self._audit, self._vault, self._history, self._inbox = audit, vault, history, inbox
        self._workspaces, self._indexed = workspaces, indexed

    # Finding the writes

    def writes_since(
        self, at: int, *, until: int | None = None, key: str | None = None, workspace: str | None = None
    ) -> list[Entry]:
        """Return the writes of agents since `at`, and before `until` (epoch milliseconds); of a key by name or id, in a workspace.

        Raises NotFound if the key has never written, with the names of those that have."""
        entries = self._audit.find(-1, since=at, until=until, key=key, workspace=workspace)
        if key is not None and not entries and not self._audit.find(1, key=key):
            writers = {entry.name or entry.key for entry in self._audit.find(-1, since=at) if entry.surface in AGENTS}
            names = ", ".join(sorted(writers - {""})[:MOST_NAMES]) or "none"
            raise NotFound(f"no key named {key!r} has written anything; keys that wrote in this time: {names}")
        return [entry for entry in entries if entry.surface in AGENTS and entry.kind in WRITES]

    def writes_of_call(self, name: str) -> tuple[list[Entry], str]:
        """Return the writes of the last call on a note (by id or path), or of a call (by its id); and the note's path.

        Raises NotFound if there is none, and Conflict if the call changed notes outside the inbox, except by a restore."""
        entries, path = self._history.entries(name)
        call = [] if entries else self._audit.find(-1, request=name)
        if call or not (entries or path):
            return self._check_inside(call, name), ""
        last = find_last_call(entries)
        if last is None:
            raise NotFound(
                "no agent and no command has written this note, or all such writes are undone; see memex log"
            )
        same = self._audit.find(-1, request=last.request) if last.request else [last]
        return self._check_inside([entry for entry in same if _caller(entry) == _caller(last)], name), last.path

    def _check_inside(self, call: Sequence[Entry], name: str) -> list[Entry]:
        """Return the writes of a call, all of which must be in workspaces or restored versions."""
        writes = [entry for entry in call if entry.kind in WRITES]
        if not writes:
            raise self._history.missing(name)
        if not all(entry.workspace or is_restore(entry) for entry in writes):
            tool = writes[0].tool
            way = OWN_WAYS.get(tool, OWN_WAY)
            raise Conflict(f"the last write was `{tool}`, which has its own command to undo it: {way}")
        return writes

    # Undoing them

    def plan(self, wanted: Sequence[Entry], *, last: str = "") -> list[UndoStep]:
        """Plan the steps that undo these writes, in order; the step for the note at `last` comes last.

        If nothing of that note can be undone, the other notes stay as they are too. Writes that are undone already need no
        step."""
        numbers = {entry.seq for entry in wanted}
        homes: dict[str, set[str]] = {}
        for path in dict.fromkeys(entry.path for entry in wanted):
            homes.setdefault(self._current_path(path, numbers), set()).add(path)
        spaces = self._workspaces()
        steps = [step for home, paths in homes.items() for step in self._plan_steps(home, paths, numbers, spaces)]
        end = self._current_path(last, numbers) if last else ""
        named = [step for step in steps if step.path == end]
        if named and all(step.reason for step in named):
            return named
        return sorted(steps, key=lambda step: (step.path == end, step.sort_key))

    def carry_out(self, steps: Sequence[UndoStep], progress: Progress) -> tuple[list[UndoStep], list[UndoStep]]:
        """Carry out the steps, and index the changed files; return the completed and the skipped steps."""
        done, skipped = list[UndoStep](), list[UndoStep]()
        try:
            for number, step in enumerate(steps):
                progress(number, len(steps), "undoing")
                ended = step if step.reason else self._try_step(step)
                if ended.reason:
                    skipped.append(ended)
                elif ended.now != ended.target_digest:
                    done.append(ended)
        finally:
            if done:
                self._indexed({step.path for step in done})
        return done, skipped

    def _try_step(self, step: UndoStep) -> UndoStep:
        """Carry out one step; return it, with the reason if that failed."""
        if step.now == step.target_digest or step.way.first is None:
            return step
        try:
            with acting_as(replace(AUTHOR.get(), undoes=step.way.first.seq)):
                self._write(step)
        except (Conflict, NotFound):
            return replace(step, reason=JUST_NOW)
        except MemexError as error:
            return replace(step, reason=f"{UNREADABLE}: {error.message}")
        return step

    def _write(self, step: UndoStep) -> None:
        vault = self._vault
        if is_note(step.path):
            if step.raw is None:
                vault.remove(step.path, digest=step.now)
            elif step.now:
                vault.replace(step.path, step.raw, digest=step.now)
            else:
                vault.create(step.path, step.raw, again=True)
        elif step.target_digest:
            with self._history.overwritten.open(step.target_digest) as source:
                if source is None:
                    raise Unavailable(KEPT_NO_MORE, retryable=False)
                vault.create_from_file(step.path, source, step.target_digest, again=True)
        else:
            vault.remove_file(step.path, digest=step.now)

    def _current_path(self, path: str, wanted: Collection[int]) -> str:
        """Return the current path of the file that was at `path`."""
        chain = writes_in_force(self._audit.entries_about(path=path), wanted)
        while chain and is_manual_removal(chain[-1]):
            chain.pop()  # or a move away
        if chain and chain[-1].after and not self._exists(path):
            return self._history.current_path(chain[-1])
        return path

    def _exists(self, path: str) -> bool:
        try:
            return self._vault.stat(path) is not None
        except MemexError:
            return True  # unknown

    def _plan_steps(
        self, home: str, paths: Collection[str], wanted: Collection[int], spaces: Collection[str]
    ) -> Iterator[UndoStep]:
        entries = sorted(
            {entry.seq: entry for path in {home, *paths} for entry in self._audit.entries_about(path=path)}.items()
        )
        chain = _without_manual_moves([entry for _, entry in entries], home)
        id = next((entry.id for entry in reversed(chain) if entry.seq in wanted), "")
        try:
            now = self._vault.digest_file(home).digest
        except NotFound:
            now = ""
        except MemexError:
            left = tuple(entry for entry in writes_in_force(chain, wanted) if entry.seq in wanted)
            yield UndoStep(home, id, UndoReach(None, left=left), reason=UNREADABLE)
            return
        reach = find_undo_reach(chain, now, wanted)
        if reach.left:
            yield UndoStep(home, id, replace(reach, first=None, taken=()), now, reason=reach.reason)
        if reach.first:
            raw, reason = self._version_before(home, reach.first, now, spaces)
            yield UndoStep(home, id, replace(reach, left=()), now, raw, reason)

    def _version_before(self, home: str, first: Entry, now: str, spaces: Collection[str]) -> tuple[bytes | None, str]:
        """Return the note before that write (None: it did not exist, or is not a note), or why it can't be restored."""
        where = locate(home, self._inbox)
        if where.scope != "captures" and not is_restore(first):
            return None, OUTSIDE
        if not first.before:
            return None, "" if first.path == home else MOVED
        if where.scope == "captures" and where.workspace not in spaces:
            return None, UNHOUSED
        if first.before == now:
            return None, ""
        if not is_note(home):
            return None, "" if self._history.overwritten.holds(first.before) else KEPT_NO_MORE
        raw = self._history.read_version(first.before, home)
        return raw, "" if raw is not None else KEPT_NO_MORE


def _without_manual_moves(entries: Sequence[Entry], home: str) -> list[Entry]:
    """Leave out that the file which is at `home` now left its earlier paths, and came to others with the same bytes."""
    left = {origin.seq for origin in find_manual_moves(entries).values()}
    kept: list[Entry] = []
    for entry in entries:
        came = bool(kept) and is_manual_arrival(entry) and entry.path != kept[-1].path
        if came and (kept[-1].id, kept[-1].after) == (entry.id, entry.after):
            continue
        if entry.seq not in left and not (is_manual_removal(entry) and entry.path != home):
            kept.append(entry)
    return kept


def _caller(entry: Entry) -> tuple[str, ...]:
    return entry.surface, entry.key, entry.tool
