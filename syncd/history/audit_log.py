"""Keep the audit log in the ledger: one entry for each write of a note, chained by digests, on disk before the write.

Laws, tested: a write whose entry cannot be saved does not happen. If the owner has enabled the log of reads, a read
whose entry cannot be saved does not happen either; otherwise reads wait for no entry. An entry contains names that
Memex chose, ids, paths, sizes and digests; no text of a note, no metadata, no secret: a name that contains a secret
is masked before it is sealed."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, NotFound, Unavailable
from index.timings import now_ms
from syncd.history.digest_chain import COLUMNS, Entry, Head, compute_seal
from syncd.history.masked_names import FIELDS, MaskedNames
from syncd.notes.secret_patterns import mask
from syncd.state import named_values
from syncd.state.ledger import Ledger

HEAD: Final = "audit.head"  # in the state folder: the end of the log when it was last written
CAME: Final = "audit.done"  # in the state folder: which of the last entries are known to be carried out
LATELY: Final = 64  # last entries whose writes a crash may have prevented
TOGETHER: Final = LATELY // 2  # most files in one commit of the log, as each may get two of the last entries
FAILS: Final = "audit: the log can't be written, so Memex refuses all writes; searches and reads work; see memex doctor"
UNREAD: Final = "audit: the log can't be written, so Memex refuses all writes and reads (audit.reads); see memex doctor"
DENIALS: Final = 20, 60.0  # most entries in a burst for denied calls of one key, and seconds until one more is allowed
PAGE: Final = 2_000  # entries read at a time
# Fields to search by; `key` is an id or a name, `id` an id or a path, `before` the number of an entry.
WANTED: Final = ("since", "until", "before", "key", "tool", "surface", "workspace", "id", "request")

log = logging.getLogger(__name__)

# In the order of COLUMNS.
_INSERT: Final = "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FOUND: Final = """SELECT * FROM audit WHERE seq > coalesce(:after, 0) AND (:before IS NULL OR seq < :before)
    AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until) AND (:key IS NULL OR :key IN (key, name))
    AND (:tool IS NULL OR tool = :tool) AND (:surface IS NULL OR surface = :surface)
    AND (:workspace IS NULL OR workspace IN (:workspace, :masked_workspace)) AND (:id IS NULL OR id IN (:id, :masked_id) OR path IN (:id, :masked_id) OR (kind = 'read' AND instr(' ' || outcome || ' ', ' ' || :masked_id || ' ')))
    AND (:request IS NULL OR request IN (:request, :masked_request))"""
_OLD: Final = """SELECT * FROM audit WHERE seq <= ?
    AND seq IN (SELECT max(seq) FROM audit WHERE path != '' GROUP BY path)"""


@dataclass(frozen=True, slots=True)
class Author:
    """Describes on whose behalf something is written: the surface of the call, and what is known of the caller."""

    surface: str  # mcp, rest, cli, daemon, file
    tool: str = ""
    key: str = ""  # public id of the key
    name: str = ""
    request: str = ""
    undoes: int = 0  # an undo restores the file's state before this entry; 0 = not an undo
    address: str = ""  # address of the client, as `client_address` finds it


@dataclass(frozen=True, slots=True)
class Change:
    """Describes the change of one file. Digests are SHA-256 in hex; "" = no file."""

    path: str
    before: str
    after: str
    bytes: int
    id: str
    type: str
    workspace: str

    @property
    def kind(self) -> str:
        """Return the kind of change as one word."""
        return "create" if not self.before else "update" if self.after else "delete"


@dataclass(frozen=True, slots=True)
class Events:
    """Counts how often nodes were created, changed and deleted since a time (epoch milliseconds)."""

    since: int
    creates: int
    updates: int
    deletes: int


DAEMON: Final = Author("daemon")
ADOPTION: Final = Author("daemon", "adoption")
CONSOLIDATION: Final = Author("daemon", "consolidation")
AUTHOR: ContextVar[Author] = ContextVar("author", default=DAEMON)
TAKING_BACK: ContextVar[bool] = ContextVar("taking back", default=False)


@contextlib.contextmanager
def acting_as(author: Author) -> Iterator[None]:
    """Attribute writes inside the block to `author`, also in threads that copy this context."""
    token = AUTHOR.set(author)
    try:
        yield
    finally:
        AUTHOR.reset(token)


def take_back(undo: Callable[[], object]) -> None:
    """Call `undo`, which takes back a failed write: its writes are logged as such, and never refused.

    A file that somebody has changed since stays as it is."""
    token = TAKING_BACK.set(True)
    try:
        with contextlib.suppress(Conflict, NotFound):
            undo()
    finally:
        TAKING_BACK.reset(token)


class AuditLog:
    """Manages the log of one ledger.

    Safe from any thread; only the process that holds the state folder's lock writes."""

    def __init__(self, ledger: Ledger, state: Path, *, reads: bool = False) -> None:
        self.reads = reads  # whether reads of notes by agents are logged too
        self.now: Callable[[], int] = now_ms
        self.problem = ""  # why the last entry could not be written, as a sentence
        self.look: Callable[[], object] = lambda: None  # called before events are counted, to log manual changes
        self._ledger = ledger
        self._names = MaskedNames(ledger)
        self._lock = threading.RLock()
        # key → entries left, time of that, and entries omitted since
        self._denials: dict[str, tuple[float, float, int]] = {}
        last = ledger.query("SELECT seq, seal FROM audit ORDER BY seq DESC LIMIT 1")
        self.head = Head(*last[0]) if last else Head()
        self._noted, self._came = (
            os.open(state / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600) for name in (HEAD, CAME)
        )
        noted = self.saved_head()
        if noted is not None and not self.holds(noted):
            log.error("the audit log is missing entry %d, which it had reached before", noted.seq)
            with contextlib.suppress(Unavailable):  # reported at the first write
                self._append([self._new_entry(AUTHOR.get(), kind="cut", outcome=str(noted))])
        self._save_head()

    def close(self) -> None:
        """Close the files beside the ledger."""
        with self._lock:
            os.close(self._noted)
            os.close(self._came)
            self._noted = self._came = -1  # other files will get these numbers, and a job may still be running

    # Writing

    def log_writes(self, changes: Sequence[Change]) -> list[int]:
        """Log writes of up to `TOGETHER` files in one commit; return the entries' numbers. Raises Unavailable.

        If somebody else changed a node since its last entry, that change gets an entry first."""
        entries: list[Entry] = []
        places: list[int] = []
        with self._lock:
            for change in changes:
                if change.type == "entity":
                    last = self.last_entry(change.path)
                    if (last.after if last else "") != change.before:
                        was = replace(change, before=last.after if last else "", after=change.before, bytes=0)
                        entries.append(self._change_entry(Author("file"), was))
                entries.append(self._change_entry(AUTHOR.get(), change))
                places.append(len(entries))
            first = self._append(entries) - len(entries)
        return [first + place for place in places]

    def mark_done(self, seq: int) -> None:
        """Record, unsynced, that the write of this entry was carried out."""
        with contextlib.suppress(OSError):  # then the file itself decides, as after a power cut
            os.pwrite(self._came, f"{seq:015}\n".encode(), seq % LATELY * 16)

    def mark_doubtful(self, path: str) -> None:
        """Record that the last write of this file is about to be taken back, so that the file itself decides."""
        # Taking back is never refused; without the record, an entry whose write was carried out and taken back counts as done.
        with contextlib.suppress(OSError, Unavailable), self._lock:
            if last := self.last_entry(path):
                os.pwrite(self._came, b" " * 16, last.seq % LATELY * 16)

    def log_undone(self, changes: Mapping[int, Change], outcome: str) -> None:
        """Log that the writes of these entries did not happen. A failure to log is reported, and stops nothing."""
        drafts = []
        for seq, change in changes.items():
            was = replace(change, before=change.after, after=change.before, bytes=0)
            drafts.append(self._change_entry(AUTHOR.get(), was, kind="undone", outcome=outcome, undoes=seq))
        with contextlib.suppress(Unavailable):
            self._append(drafts)

    def log_taken_back(self, change: Change) -> None:
        """Log a write that took back the last one of its file. A failure to log is reported, and stops nothing."""
        with contextlib.suppress(Unavailable), self._lock:
            last = self.last_entry(change.path)
            undoes = last.seq if last and last.after == change.before else 0
            self._append(
                [self._change_entry(AUTHOR.get(), change, kind="undone", outcome="UNAVAILABLE", undoes=undoes)]
            )

    def log_hand_edits(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Log manual changes, each with the kind of its entry ("" = the change's own kind)."""
        entries = [self._change_entry(Author("file"), change, kind=kind or change.kind) for kind, change in changes]
        if entries:
            self._append(entries)

    def log_denied(self, author: Author, code: str, workspace: str) -> None:
        """Log a denied write; if one key causes many, only some are logged, each with the number of omitted ones."""
        burst, every = DENIALS
        now = time.monotonic()
        with self._lock:
            left, then, more = self._denials.get(author.key, (float(burst), now, 0))
            left = min(burst, left + (now - then) / every)
            writes = left >= 1
            self._denials[author.key] = (left - writes, now, 0 if writes else more + 1)
            if writes:
                outcome = f"{code}, and {more} more like it before" if more else code
                with contextlib.suppress(Unavailable):
                    self._append([self._new_entry(author, kind="denied", outcome=outcome, workspace=workspace)])

    def log_read(self, workspace: str, ids: Collection[str]) -> None:
        """Log that text of these notes is about to be returned to a caller.

        Raises Unavailable if that fails: an unlogged read is refused."""
        try:
            self._append(
                [self._new_entry(AUTHOR.get(), kind="read", outcome=" ".join(map(mask, ids)), workspace=workspace)]
            )
        except Unavailable as error:
            raise Unavailable(
                "the audit log can't be written, so Memex refuses this read (audit.reads is on)"
            ) from error

    def _change_entry(self, author: Author, change: Change, *, kind: str = "", **more: Any) -> Entry:
        about = {name: getattr(change, name) for name in Change.__slots__}
        return self._new_entry(author, kind=kind or change.kind, **about, **more)

    def _new_entry(self, author: Author, **about: Any) -> Entry:
        values = {name: getattr(author, name) for name in Author.__slots__} | about
        texts: dict[str, Any] = {
            name: _utf8(value) if isinstance(value, str) else value for name, value in values.items()
        }
        return Entry(seq=0, at=self.now(), **texts)

    def _append(self, drafts: Sequence[Entry], gone: int = 0) -> int:
        """Append entries in one commit, which also removes those up to `gone`; return the number of the last one."""
        with self._lock:
            head, entries = self.head, []
            try:
                for draft in self._names.mask_entries(drafts):
                    entry = replace(draft, seq=head.seq + 1)
                    entry = replace(entry, seal=compute_seal(entry, head.seal))
                    head = Head(entry.seq, entry.seal)
                    entries.append(entry)
                with self._ledger.transaction():
                    for entry in entries:
                        self._ledger.execute(_INSERT, [getattr(entry, name) for name in COLUMNS])
                    if gone:
                        self._ledger.execute("DELETE FROM audit WHERE seq <= ?", (gone,))
            except Unavailable as error:
                if not self.problem:
                    log.error("the audit log can't be written: %s", error.message)  # noqa: TRY400 - the message says everything
                self.problem = UNREAD if self.reads else FAILS
                why = " (the disk is full)" if "disk is full" in error.message else ""
                if not error.retryable:  # the message names the way out
                    raise
                message = f"the audit log can't be written{why}, so nothing was changed; reads still work"
                raise Unavailable(message) from error
            self.problem = ""
            self.head = head
            self._save_head()
            return head.seq

    def retry(self) -> None:
        """Check whether the log can be written again; otherwise only the next write would find out."""
        with contextlib.suppress(Unavailable):
            if self.problem:
                with self._lock:
                    named_values.write(self._ledger, {"audit.tried": str(time.time_ns())})
                self.problem = ""

    def _save_head(self) -> None:
        """Save the head beside the ledger too. Not synced: after a power cut it may be outdated, which does no harm."""
        try:
            os.pwrite(self._noted, f"{self.head.seq:015}:{self.head.seal}\n".encode(), 0)
        except OSError as error:
            log.warning("%s can't be written: %s", HEAD, error.strerror)

    # Reading

    def saved_head(self) -> Head | None:
        """Return the head from the file beside the ledger."""
        return Head.parse(os.pread(self._noted, 200, 0).decode("ascii", "replace").partition("\n")[0])

    def done_entries(self) -> frozenset[int]:
        """Return those of the last entries that are known to be carried out."""
        words = os.pread(self._came, LATELY * 16, 0).replace(b"\0", b" ").decode("ascii", "replace").split()
        return frozenset(int(word) for word in words if word.isdigit())

    def has_created(self, id: str) -> bool:
        """Return whether a note with this id was created, whatever happened to it since."""
        ids = self._names.spellings(id)
        rows = self._ledger.query(f"SELECT seq, kind, undoes FROM audit WHERE id IN {_marks(ids)}", ids)  # noqa: S608 - question marks
        undone = {undoes for _, kind, undoes in rows if kind == "undone"}
        return any(kind in ("create", "kept") and seq not in undone for seq, kind, _ in rows)

    def holds(self, head: Head) -> bool:
        """Return whether the log contains this entry, or has pruned it."""
        if head.seq <= self.base().seq:
            return True
        rows = self._ledger.query("SELECT seal FROM audit WHERE seq = ?", (head.seq,))
        return rows == [(head.seal,)]

    def base(self) -> Head:
        """Return the last pruned entry."""
        rows = self._ledger.query("SELECT outcome FROM audit WHERE kind = 'pruned' ORDER BY seq DESC LIMIT 1")
        return (Head.parse(rows[0][0]) if rows else None) or Head()

    @property
    def count(self) -> int:
        """Return the number of entries, if none was removed."""
        return self.head.seq - self.base().seq

    def facts(self) -> dict[str, Any]:
        """Return the number of entries (None: the ledger can't be read), the end of the log, and its problem."""
        entries = None
        with contextlib.suppress(Unavailable):  # the ledger reports that itself
            entries = self.count
        return {"entries": entries, "head": str(self.head), "problem": self.problem}

    def last_entry(self, path: str) -> Entry | None:
        """Return the newest entry about the file at `path`."""
        return next(self.entries_backwards(path), None)

    def entries_backwards(self, path: str) -> Iterator[Entry]:
        """Yield all entries about the file at `path`, newest first, one page at a time."""
        last, paths = self.head.seq + 1, self._names.spellings(path)
        asked = f"SELECT * FROM audit WHERE path IN {_marks(paths)} AND seq < ? ORDER BY seq DESC LIMIT 20"  # noqa: S608 - as above
        while rows := self._ledger.query(asked, (*paths, last)):
            yield from map(self._entry, rows)
            last = rows[-1][0]

    def entries_about(self, *, id: str | None = None, path: str | None = None) -> list[Entry]:
        """Return all entries about a note at any path, and about the file at `path` with any id, in order."""
        ids, paths = (() if name is None else self._names.spellings(name) for name in (id, path))
        asked = (
            f"SELECT * FROM audit WHERE id IN {_marks(ids)} UNION"  # noqa: S608 - as above
            f" SELECT * FROM audit WHERE path IN {_marks(paths)} ORDER BY seq"
        )
        return [self._entry(row) for row in self._ledger.query(asked, (*ids, *paths))]

    def notes_from_agents(self, ids: Collection[str]) -> frozenset[tuple[str, str]]:
        """Return id and workspace of the notes that an agent has written to, or may have: of pruned entries only the last is known.

        Consolidation counts as an agent, because it moves text of agents' notes into other notes."""
        real = {shown: id for id in ids for shown in self._names.spellings(id)}
        asked = (
            f"SELECT DISTINCT id, workspace FROM audit WHERE id IN {_marks(real)}"  # noqa: S608 - as above
            " AND (kind = 'kept' OR (kind IN ('create', 'update')"
            " AND (surface IN ('mcp', 'rest') OR tool = 'consolidation')))"
        )
        return frozenset((real[id], workspace) for id, workspace in self._ledger.query(asked, tuple(real)))

    def ids_beginning(self, beginning: str) -> list[str]:
        """Return the ids of notes that begin with this text."""
        asked = "SELECT DISTINCT id FROM audit WHERE id >= ? AND id < ? ORDER BY id"
        return [id for (id,) in self._ledger.query(asked, (beginning, f"{beginning}\U0010ffff"))]

    def last_digests(self) -> dict[str, str]:
        """Return the last known digest of every file; "" = removed."""
        rows = self._ledger.query("SELECT path, after, max(seq) FROM audit WHERE path != '' GROUP BY path")
        return {self._names.reveal(path): after for path, after, _ in rows}

    def changed_paths(self, after: int, until: int) -> set[str]:
        """Return the files of the entries after `after`, up to `until`."""
        asked = "SELECT DISTINCT path FROM audit WHERE seq > ? AND seq <= ? AND path != ''"
        return {self._names.reveal(path) for (path,) in self._ledger.query(asked, (after, until))}

    def write_times(self, after: int, *, without: str) -> tuple[int, int] | None:
        """Return the times of the first and last write after an entry, ignoring writes of the daemon's tool `without`."""
        rows = self._ledger.query(
            "SELECT min(at), max(at) FROM audit WHERE seq > ? AND path != '' AND NOT (surface = 'daemon' AND tool = ?)",
            (after, without),
        )
        return None if rows[0][0] is None else (int(rows[0][0]), int(rows[0][1]))

    def latest_notes(self) -> list[tuple[str, str, str, str]]:
        """Return the last known state of each note of a workspace: id, path, digest ("" = removed) and surface."""
        rows = self._ledger.query(
            "SELECT id, path, after, surface, max(seq) FROM audit WHERE workspace != '' AND type != 'file' GROUP BY id"
        )
        reveal = self._names.reveal
        return [(reveal(id), reveal(path), after, surface) for id, path, after, surface, _ in rows]

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """Yield all entries from number `first` on, in order, as they are sealed, one page at a time."""
        while rows := self._ledger.query("SELECT * FROM audit WHERE seq >= ? ORDER BY seq LIMIT ?", (first, PAGE)):
            yield from (Entry(*row) for row in rows)
            first = rows[-1][0] + 1

    def find(self, limit: int, *, after: int | None = None, masked: bool = False, **wanted: Any) -> list[Entry]:
        """Return the newest `limit` entries that match `wanted` (the names in WANTED), oldest first.

        With `after`, return the first ones after that entry instead; with `masked`, as they are sealed."""
        order = " ORDER BY seq DESC LIMIT :limit" if after is None else " ORDER BY seq LIMIT :limit"
        values: dict[str, Any] = dict.fromkeys(WANTED) | wanted | {"after": after, "limit": limit}
        masks = {f"masked_{name}": values[name] and mask(values[name]) for name in ("workspace", "id", "request")}
        rows = self._ledger.query(_FOUND + order, values | masks)
        entries = [Entry(*row) if masked else self._entry(row) for row in rows]
        return entries[::-1] if after is None else entries

    def count_events(self, workspace: str, since: int, alive: Collection[str]) -> Events:
        """Count the events of a workspace's nodes since then.

        Of nodes that no longer exist, only the deletion counts.

        `alive`: the ids of the existing nodes."""
        self.look()
        rows = self._ledger.query(
            "SELECT seq, kind, surface, tool, id, path, undoes FROM audit"
            " WHERE type = 'entity' AND workspace IN (?, ?) AND at >= ? ORDER BY seq",
            (workspace, mask(workspace), since),
        )
        undone = {undoes for _, kind, *_, undoes in rows if kind == "undone"}
        counts = {"create": 0, "update": 0, "delete": 0}
        owner: dict[str, str] = {}  # path → the last id of the note there; entries are read backwards
        for seq, kind, surface, tool, shown_id, path, _ in reversed(rows):
            node_id = self._names.reveal(shown_id)
            if seq in undone or kind == "undone":
                continue
            if kind in ("delete", "moved"):
                owner.pop(path, None)
            else:
                owner.setdefault(path, node_id)
            if kind in counts and (surface, tool) != (
                ADOPTION.surface,
                ADOPTION.tool,
            ):  # adoption follows another write
                counts[kind] += kind == "delete" or node_id in alive or owner.get(path) in alive
        return Events(since, counts["create"], counts["update"], counts["delete"])

    def hand_edit_times(self, workspace: str, since: int) -> dict[str, int]:
        """Return the time of the last manual change of each node changed manually since then, by id."""
        self.look()
        rows = self._ledger.query(
            "SELECT id, max(at) FROM audit WHERE type = 'entity' AND workspace IN (?, ?) AND at >= ? AND surface = 'file'"
            " AND kind = 'update' GROUP BY id",
            (workspace, mask(workspace), since),
        )
        return {self._names.reveal(id): at for id, at in rows}

    def _entry(self, row: Sequence[Any]) -> Entry:
        """Return the entry of a row, with unmasked names."""
        return self._names.reveal_entry(Entry(*row))

    # Pruning

    def last_prunable(self, before: int) -> int:
        """Return the number of the last entry that may be removed: all entries up to it are older than `before`."""
        rows = self._ledger.query("SELECT min(seq) FROM audit WHERE at >= ?", (before,))
        first = rows[0][0] if rows[0][0] is not None else self.head.seq
        return max(0, min(int(first), self.head.seq) - 1)

    def prune(self, gone: int) -> int:
        """Remove the entries up to `gone`, and add an entry that continues the chain; return how many were removed.

        Files whose only entries are removed get a new entry with their state, so that nothing known about them is
        lost."""
        with self._lock:
            rows = self._ledger.query("SELECT seal FROM audit WHERE seq = ?", (gone,))
            if not rows:
                return 0
            states = self._ledger.query(_OLD, (gone,))
            now = self._new_entry(AUTHOR.get(), kind="pruned", outcome=str(Head(gone, rows[0][0])))
            kept = (replace(Entry(*row), at=now.at, kind="kept", outcome="done", undoes=0) for row in states)
            before = self.base().seq
            self._append([now, *(entry for entry in kept if entry.after)], gone)
            named = " UNION ".join(f"SELECT {field} FROM audit" for field in FIELDS)  # noqa: S608 - names of columns
            self._names.forget(name for (name,) in self._ledger.query(named))
            return gone - before


def _marks(values: Collection[str]) -> str:
    """Return a list of SQL placeholders, one for each value."""
    return f"({','.join('?' * len(values))})"


def _utf8(text: str) -> str:
    """Return `text` in a form that a database accepts: bytes of a file name that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
