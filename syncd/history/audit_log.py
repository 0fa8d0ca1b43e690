"""Keep the audit log in the ledger: one entry for each write of a note, chained by digests, on disk before the write.

Law, tested: a write whose entry cannot be saved does not happen. A read waits for an entry only where the owner has
set that reads are logged, and then it does not happen without one. An entry holds
names that Memex chose, ids, paths, sizes and digests; no text of a note, no metadata, no secret: a name that holds
one is masked before it is sealed."""

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
from syncd.history.digest_chain import COLUMNS, Entry, Head, compute_seal
from syncd.history.masked_names import FIELDS, MaskedNames
from syncd.notes.secret_patterns import mask
from syncd.state import named_values
from syncd.state.ledger import Ledger

HEAD: Final = "audit.head"  # in the state folder: where the log ended when it was last written
CAME: Final = "audit.done"  # in the state folder: which of the last entries came about, so far as the process could say
LATELY: Final = 64  # entries at the end of the log that a crash may have left without their write
TOGETHER: Final = LATELY // 2  # files that are written together
FAILS: Final = "audit: the log can't be written, so nothing is written; searches and reads go on; see memex doctor"
UNREAD: Final = "audit: the log can't be written, so nothing is written, nor read (audit.reads); see memex doctor"
DENIALS: Final = 20, 60.0  # entries at once about denied calls of one key, and seconds until one more is written
PAGE: Final = 2_000  # entries read at a time
# What is searched by; `key` is id or name.
WANTED: Final = ("since", "until", "key", "tool", "surface", "workspace", "id", "request")

log = logging.getLogger(__name__)

_INSERT: Final = "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # as COLUMNS
_FOUND: Final = """SELECT * FROM audit WHERE seq > coalesce(:after, 0)
    AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until) AND (:key IS NULL OR :key IN (key, name))
    AND (:tool IS NULL OR tool = :tool) AND (:surface IS NULL OR surface = :surface)
    AND (:workspace IS NULL OR workspace IN (:workspace, :masked_workspace)) AND (:id IS NULL OR id IN (:id, :masked_id) OR (kind = 'read' AND instr(' ' || outcome || ' ', ' ' || :masked_id || ' ')))
    AND (:request IS NULL OR request IN (:request, :masked_request))"""
_OLD: Final = """SELECT * FROM audit WHERE seq <= ?
    AND seq IN (SELECT max(seq) FROM audit WHERE path != '' GROUP BY path)"""


@dataclass(frozen=True, slots=True)
class Author:
    """On whose behalf something is written: the surface it came in by, and what is known of the caller."""

    surface: str  # mcp, rest, cli, daemon, file
    tool: str = ""
    key: str = ""  # its public id
    name: str = ""
    request: str = ""
    undoes: int = 0  # the entry to before which the file goes back; 0 = this is no undo
    address: str = ""  # of the client, as `client_address` finds it


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file. Digests are sha256 in hex; "" = there is no file."""

    path: str
    before: str
    after: str
    bytes: int
    id: str
    type: str
    workspace: str

    @property
    def kind(self) -> str:
        """In a word."""
        return "create" if not self.before else "update" if self.after else "delete"


@dataclass(frozen=True, slots=True)
class Events:
    """How many times nodes were created, changed and deleted since then (epoch milliseconds)."""

    since: int
    creates: int
    updates: int
    deletes: int


DAEMON: Final = Author("daemon")
ADOPTION: Final = Author("daemon", "adoption")
AUTHOR: ContextVar[Author] = ContextVar("author", default=DAEMON)
TAKING_BACK: ContextVar[bool] = ContextVar("taking back", default=False)


@contextlib.contextmanager
def acting_as(author: Author) -> Iterator[None]:
    """What is written inside is written on behalf of `author`, in threads that take this context along too."""
    token = AUTHOR.set(author)
    try:
        yield
    finally:
        AUTHOR.reset(token)


def take_back(undo: Callable[[], object]) -> None:
    """Call `undo`, which takes back a write that came to nothing: what it writes is logged as that, and is never refused.

    A file that somebody has changed since is theirs, and stays."""
    token = TAKING_BACK.set(True)
    try:
        with contextlib.suppress(Conflict, NotFound):
            undo()
    finally:
        TAKING_BACK.reset(token)


class AuditLog:
    """The log of one ledger. Safe from any thread; one process writes it, the one that holds the state folder's lock."""

    def __init__(
        self, ledger: Ledger, state: Path, *, reads: bool = False, now: Callable[[], int] | None = None
    ) -> None:
        self.reads = reads  # whether it holds, too, which notes an agent was given text of
        self.now = now or (lambda: time.time_ns() // 1_000_000)  # epoch milliseconds
        self.problem = ""  # why the last entry could not be written, in a sentence
        self.look: Callable[[], object] = lambda: None  # before events are counted: notice what was changed by hand
        self._ledger = ledger
        self._names = MaskedNames(ledger)
        self._lock = threading.RLock()
        self._denials: dict[str, tuple[float, float, int]] = {}  # key → entries left, when that was, and left out since
        last = ledger.query("SELECT seq, seal FROM audit ORDER BY seq DESC LIMIT 1")
        self.head = Head(*last[0]) if last else Head()
        self._noted, self._came = (
            os.open(state / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600) for name in (HEAD, CAME)
        )
        noted = self.saved_head()
        if noted is not None and not self.holds(noted):
            log.error("the audit log had gone on to entry %d, which is not in it", noted.seq)
            with contextlib.suppress(Unavailable):  # told at the first write
                self._append([self._new_entry(AUTHOR.get(), kind="cut", outcome=str(noted))])
        self._save_head()

    def close(self) -> None:
        """Let go of the files beside the ledger."""
        with self._lock:
            os.close(self._noted)
            os.close(self._came)
            self._noted = self._came = -1  # the numbers are other files' soon, and a job may have been left behind

    # Writing

    def log_write(self, change: Change) -> int:
        """Log what is about to be written; the entry's number, once it is on disk. Unavailable when it can't be logged."""
        return self.log_writes([change])[0]

    def log_writes(self, changes: Sequence[Change]) -> list[int]:
        """The same of changes of several files, in one commit. At most `TOGETHER`, so that a crash leaves none unexplained.

        A node that somebody else has changed since its last entry gets an entry for that first."""
        assert len(changes) <= TOGETHER, (
            "each may have two entries, and after a crash the last of the log are looked at"
        )
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
        """Note that what this entry says has been done. It is not synced: after a power cut it may be missing."""
        with contextlib.suppress(OSError):  # then only the file itself tells, as after a power cut
            os.pwrite(self._came, f"{seq:015}\n".encode(), seq % LATELY * 16)

    def mark_doubtful(self, path: str) -> None:
        """The last write of this file is about to be taken back: whether it came about is for the file to tell."""
        with self._lock:
            if last := self.last_entry(path):
                os.pwrite(self._came, b" " * 16, last.seq % LATELY * 16)

    def log_undone(self, changes: Mapping[int, Change], outcome: str) -> None:
        """Log that what these entries say did not come about. What can't be logged is told, and stops nothing."""
        entries = [
            self._change_entry(
                AUTHOR.get(),
                replace(change, before=change.after, after=change.before, bytes=0),
                kind="undone",
                outcome=outcome,
                undoes=seq,
            )
            for seq, change in changes.items()
        ]
        with contextlib.suppress(Unavailable):
            self._append(entries)

    def log_taken_back(self, change: Change) -> None:
        """Log a write that took back the last one of its file. What can't be logged is told, and stops nothing."""
        with contextlib.suppress(Unavailable), self._lock:
            last = self.last_entry(change.path)
            undoes = last.seq if last and last.after == change.before else 0
            self._append(
                [self._change_entry(AUTHOR.get(), change, kind="undone", outcome="UNAVAILABLE", undoes=undoes)]
            )

    def log_hand_edits(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Log what was changed by hand, each with the kind of its entry ("" = as it is)."""
        entries = [self._change_entry(Author("file"), change, kind=kind or change.kind) for kind, change in changes]
        if entries:
            self._append(entries)

    def log_denied(self, author: Author, code: str, workspace: str) -> None:
        """Log a write that was not allowed; of many by one key only some, each telling how many went before it."""
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
        """Log that text of these documents of a workspace is about to be given to somebody.

        Raises Unavailable when that can't be logged: what is not logged is not given."""
        try:
            self._append(
                [self._new_entry(AUTHOR.get(), kind="read", outcome=" ".join(map(mask, ids)), workspace=workspace)]
            )
        except Unavailable as error:
            raise Unavailable(
                "the audit log can't be written, and audit.reads says that no read goes unlogged"
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
        """Append entries in one commit, which also removes those up to `gone`; the number of the last."""
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
                    log.error("the audit log can't be written: %s", error.message)  # noqa: TRY400 - the words are all there is to it
                self.problem = UNREAD if self.reads else FAILS
                why = " (the disk is full)" if "disk is full" in error.message else ""
                message = f"the audit log can't be written{why}, so nothing was changed; reads go on"
                raise Unavailable(message) from error
            self.problem = ""
            self.head = head
            self._save_head()
            return head.seq

    def retry(self) -> None:
        """Find out whether what kept the log from being written is over, as else only the next write would tell."""
        with contextlib.suppress(Unavailable):
            if self.problem:
                with self._lock:
                    named_values.write(self._ledger, {"audit.tried": str(time.time_ns())})
                self.problem = ""

    def _save_head(self) -> None:
        """Keep the head beside the ledger too. It is not synced: after a power cut it may lag behind, and nothing more."""
        try:
            os.pwrite(self._noted, f"{self.head.seq:015}:{self.head.seal}\n".encode(), 0)
        except OSError as error:
            log.warning("%s can't be written: %s", HEAD, error.strerror)

    # Reading

    def saved_head(self) -> Head | None:
        """The head as the file beside the ledger tells it."""
        return Head.parse(os.pread(self._noted, 200, 0).decode("ascii", "replace").partition("\n")[0])

    def done_entries(self) -> frozenset[int]:
        """The entries that are known to have come about, of the last ones."""
        words = os.pread(self._came, LATELY * 16, 0).replace(b"\0", b" ").decode("ascii", "replace").split()
        return frozenset(int(word) for word in words if word.isdigit())

    def has_created(self, id: str) -> bool:
        """Whether a document of this id was made, whatever has become of it since."""
        ids = self._names.spellings(id)
        rows = self._ledger.query(f"SELECT seq, kind, undoes FROM audit WHERE id IN {_marks(ids)}", ids)  # noqa: S608 - question marks
        undone = {undoes for _, kind, undoes in rows if kind == "undone"}
        return any(kind in ("create", "kept") and seq not in undone for seq, kind, _ in rows)

    def holds(self, head: Head) -> bool:
        """Whether the log has this entry, or has dropped it in good order."""
        if head.seq <= self.base().seq:
            return True
        rows = self._ledger.query("SELECT seal FROM audit WHERE seq = ?", (head.seq,))
        return rows == [(head.seal,)]

    def base(self) -> Head:
        """The last of the entries that were pruned."""
        rows = self._ledger.query("SELECT outcome FROM audit WHERE kind = 'pruned' ORDER BY seq DESC LIMIT 1")
        return (Head.parse(rows[0][0]) if rows else None) or Head()

    @property
    def count(self) -> int:
        """How many entries there are, if none was taken out."""
        return self.head.seq - self.base().seq

    def facts(self) -> dict[str, Any]:
        """How many entries there are (None: the ledger can't be read), where the log ends, and why it can't be written."""
        entries = None
        with contextlib.suppress(Unavailable):  # the ledger states that itself
            entries = self.count
        return {"entries": entries, "head": str(self.head), "problem": self.problem}

    def last_entry(self, path: str) -> Entry | None:
        """The newest entry that says what the file at `path` is."""
        return next(self.entries_backwards(path), None)

    def entries_backwards(self, path: str) -> Iterator[Entry]:
        """All entries about the file at `path`, the newest first, read a page at a time."""
        last, paths = self.head.seq + 1, self._names.spellings(path)
        asked = f"SELECT * FROM audit WHERE path IN {_marks(paths)} AND seq < ? ORDER BY seq DESC LIMIT 20"  # noqa: S608 - as above
        while rows := self._ledger.query(asked, (*paths, last)):
            yield from map(self._entry, rows)
            last = rows[-1][0]

    def entries_about(self, *, id: str | None = None, path: str | None = None) -> list[Entry]:
        """All entries of a document, wherever it lay, and of the file at `path`, whatever it was; in order."""
        ids, paths = (() if name is None else self._names.spellings(name) for name in (id, path))
        asked = (
            f"SELECT * FROM audit WHERE id IN {_marks(ids)} UNION"  # noqa: S608 - as above
            f" SELECT * FROM audit WHERE path IN {_marks(paths)} ORDER BY seq"
        )
        return [self._entry(row) for row in self._ledger.query(asked, (*ids, *paths))]

    def ids_from_agents(self, ids: Collection[str]) -> frozenset[str]:
        """Which of these documents an agent has written to, or may have: of pruned entries only the last is known.

        Consolidation counts as one: it puts the words of agents' notes into others."""
        real = {shown: id for id in ids for shown in self._names.spellings(id)}
        asked = (
            f"SELECT DISTINCT id FROM audit WHERE id IN {_marks(real)}"  # noqa: S608 - as above
            " AND (kind = 'kept' OR (kind IN ('create', 'update')"
            " AND (surface IN ('mcp', 'rest') OR tool = 'consolidation')))"
        )
        return frozenset(real[id] for (id,) in self._ledger.query(asked, tuple(real)))

    def ids_beginning(self, beginning: str) -> list[str]:
        """The ids of documents that begin so."""
        asked = "SELECT DISTINCT id FROM audit WHERE id >= ? AND id < ? ORDER BY id"
        return [id for (id,) in self._ledger.query(asked, (beginning, f"{beginning}\U0010ffff"))]

    def last_digests(self) -> dict[str, str]:
        """What the log last says of every file: the digest of its bytes, "" = that it is gone."""
        rows = self._ledger.query("SELECT path, after, max(seq) FROM audit WHERE path != '' GROUP BY path")
        return {self._names.reveal(path): after for path, after, _ in rows}

    def changed_paths(self, after: int, until: int) -> set[str]:
        """The files that the entries after one number, up to another, are about."""
        asked = "SELECT DISTINCT path FROM audit WHERE seq > ? AND seq <= ? AND path != ''"
        return {self._names.reveal(path) for (path,) in self._ledger.query(asked, (after, until))}

    def write_times(self, after: int, *, without: str) -> tuple[int, int] | None:
        """When the first and the last write behind an entry was logged, those that the daemon's tool `without` made left out."""
        rows = self._ledger.query(
            "SELECT min(at), max(at) FROM audit WHERE seq > ? AND path != '' AND NOT (surface = 'daemon' AND tool = ?)",
            (after, without),
        )
        return None if rows[0][0] is None else (int(rows[0][0]), int(rows[0][1]))

    def latest_notes(self) -> list[tuple[str, str, str, str]]:
        """What the log last says of each note of a workspace: its id, path, digest ("" = it is gone) and the surface."""
        rows = self._ledger.query(
            "SELECT id, path, after, surface, max(seq) FROM audit WHERE workspace != '' AND type != 'file' GROUP BY id"
        )
        reveal = self._names.reveal
        return [(reveal(id), reveal(path), after, surface) for id, path, after, surface, _ in rows]

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All entries from the number `first` on, in order and as they are sealed, read a page at a time."""
        while rows := self._ledger.query("SELECT * FROM audit WHERE seq >= ? ORDER BY seq LIMIT ?", (first, PAGE)):
            yield from (Entry(*row) for row in rows)
            first = rows[-1][0] + 1

    def find(self, limit: int, *, after: int | None = None, masked: bool = False, **wanted: Any) -> list[Entry]:
        """The newest `limit` entries that have what is `wanted`, by the names of WANTED, oldest first.

        With `after`, the first ones behind that entry instead; `masked` as they are sealed."""
        order = " ORDER BY seq DESC LIMIT :limit" if after is None else " ORDER BY seq LIMIT :limit"
        values: dict[str, Any] = dict.fromkeys(WANTED) | wanted | {"after": after, "limit": limit}
        masks = {f"masked_{name}": values[name] and mask(values[name]) for name in ("workspace", "id", "request")}
        rows = self._ledger.query(_FOUND + order, values | masks)
        entries = [Entry(*row) if masked else self._entry(row) for row in rows]
        return entries[::-1] if after is None else entries

    def count_events(self, workspace: str, since: int, alive: Collection[str]) -> Events:
        """What became of the nodes of a workspace since then. Of those that are gone only that they were deleted counts.

        `alive`: the ids of the nodes there are."""
        self.look()
        rows = self._ledger.query(
            "SELECT seq, kind, surface, tool, id, path, undoes FROM audit"
            " WHERE type = 'entity' AND workspace IN (?, ?) AND at >= ? ORDER BY seq",
            (workspace, mask(workspace), since),
        )
        undone = {undoes for _, kind, *_, undoes in rows if kind == "undone"}
        counts = {"create": 0, "update": 0, "delete": 0}
        owner: dict[str, str] = {}  # path → the id that the note there has in the end, read backwards
        for seq, kind, surface, tool, shown_id, path, _ in reversed(rows):
            node_id = self._names.reveal(shown_id)
            if seq in undone or kind == "undone":
                continue
            if kind in ("delete", "moved"):
                owner.pop(path, None)
            else:
                owner.setdefault(path, node_id)
            if kind in counts and (surface, tool) != (ADOPTION.surface, ADOPTION.tool):  # which follows another's write
                counts[kind] += kind == "delete" or node_id in alive or owner.get(path) in alive
        return Events(since, counts["create"], counts["update"], counts["delete"])

    def hand_edit_times(self, workspace: str, since: int) -> dict[str, int]:
        """When each of the nodes of a workspace that were changed by hand since then was so last, by id."""
        self.look()
        rows = self._ledger.query(
            "SELECT id, max(at) FROM audit WHERE type = 'entity' AND workspace IN (?, ?) AND at >= ? AND surface = 'file'"
            " AND kind = 'update' GROUP BY id",
            (workspace, mask(workspace), since),
        )
        return {self._names.reveal(id): at for id, at in rows}

    def _entry(self, row: Sequence[Any]) -> Entry:
        """The entry of a row, with the names that were given."""
        return self._names.reveal_entry(Entry(*row))

    # Pruning

    def last_prunable(self, before: int) -> int:
        """The number of the last entry that may go when those older than `before` are to: all up to it are older."""
        rows = self._ledger.query("SELECT min(seq) FROM audit WHERE at >= ?", (before,))
        first = rows[0][0] if rows[0][0] is not None else self.head.seq
        return max(0, min(int(first), self.head.seq) - 1)

    def prune(self, gone: int) -> int:
        """Remove the entries up to `gone`, and say so in an entry that keeps the chain; how many went.

        What the log knows of files whose only entries go is said again, so that nothing is forgotten of what there is."""
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
    """A question mark for each value, as a list of SQL."""
    return f"({','.join('?' * len(values))})"


def _utf8(text: str) -> str:
    """`text` as a database takes it: bytes of a file's name that are not UTF-8 are spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()
