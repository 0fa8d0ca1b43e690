"""Keep a journal of changes to several files: the old and new state of each is on disk before the first one changes.

Law, tested at every call that changes the disk: after a crash or a failure, the change of all files is complete or
undone, unless another program changed one of them meanwhile. Files that another program wrote are never touched, files
that could not be rolled back are reported, and the only copy of a note or a stored file is never removed. Bytes are
certain only until the change has ended: afterwards they are kept for an undo as long as other overwritten versions, and
the digests remain."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound
from syncd.history.audit_log import take_back
from syncd.notes.front_matter import FrontmatterError, decode, read_properties, split
from syncd.notes.timestamps import DAY_MS
from syncd.state.ledger import Ledger
from syncd.vault.vault import Vault

RECENT_MS: Final = 7 * DAY_MS  # how long a missing commit is made up for
AGAIN_S: Final = 30.0  # wait before an unfinished change or its commit is tried again
State: TypeAlias = Literal["begun", "done", "undone", "torn"]
# begun: may be half done; done, undone: everything or nothing; torn: another change interfered, `about` lists what is left
# SHA-256 and path of a note → its bytes, if somebody has them.
ReadVersion: TypeAlias = Callable[[str, str], bytes | None]
# For a copy of the ledger that is kept for a long time.
FORGET_ALL: Final = (
    "UPDATE promoted_files SET before = NULL, after = NULL"
    " WHERE promotion IN (SELECT seq FROM promotions WHERE state != 'begun')"
)
_FORGETTABLE: Final = """
    SELECT seq FROM promotions JOIN (
        SELECT promotion, sum(sum(coalesce(length(before), 0) + coalesce(length(after), 0)))
            OVER (ORDER BY promotion DESC) AS size
        FROM promoted_files WHERE before IS NOT NULL OR after IS NOT NULL GROUP BY promotion
    ) ON promotion = seq
    WHERE state != 'begun' AND (at < ? OR size > ?)
"""
_ENTRIES: Final = "SELECT seq, kind, document_id, state, source, target, by, at, commit_id, about FROM promotions"


@dataclass(frozen=True, slots=True)
class FileChange:
    """Describes the change of one file: SHA-256 in hex before and after, "" = no file; and the bytes if the journal keeps them.

    A stored file has no bytes there: it is moved, and `twin` is the other path."""

    path: str
    was: str
    now: str
    before: bytes | None = None
    after: bytes | None = None
    twin: str = ""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Describes the change of several files with the move of one note."""

    kind: str  # promote, unpromote
    document_id: str
    source: str  # path of the note before
    target: str  # path of the note after
    steps: Sequence[FileChange]
    about: Mapping[str, Any]  # JSON values of the caller


@dataclass(frozen=True, slots=True)
class Entry:
    """Describes a change of several files in the journal."""

    seq: int
    kind: str
    document_id: str
    state: State
    source: str
    target: str
    by: str
    at: int  # epoch ms
    commit_id: str  # "" = not committed
    about: str  # JSON of the caller


def note_step(path: str, before: bytes | None, after: bytes | None) -> FileChange:
    """Return the step for a note."""
    return FileChange(path, sha256(before), sha256(after), before, after)


def move_steps(old: str, new: str, digest: str) -> tuple[FileChange, FileChange]:
    """Return the steps for a stored file: it is copied first, and removed from its old path last."""
    return FileChange(new, "", digest, twin=old), FileChange(old, digest, "", twin=new)


def uncommitted_paths(ledger: Ledger, since: int) -> set[str]:
    """Return the files of all changes that are under way, or were done since then and are not committed."""
    asked = (
        "SELECT DISTINCT path FROM promoted_files JOIN promotions ON promotion = seq"
        " WHERE state = 'begun' OR (state = 'done' AND commit_id = '' AND at >= ?)"
    )
    return {path for (path,) in ledger.query(asked, (since,))}


def document_ids(ledger: Ledger) -> set[str]:
    """Return the ids of the notes in any change."""
    return {id for (id,) in ledger.query("SELECT DISTINCT document_id FROM promotions")}


def forget_bytes(ledger: Ledger, *, before: int, most: int) -> int:
    """Remove the bytes of ended changes that were made before then (epoch ms), and of the oldest ones beyond `most` bytes.

    Returns the number of changes. Their digests stay; nothing else of the bytes is left on the disk."""
    if seqs := ledger.query(_FORGETTABLE, (before, most)):
        ledger.execute_each("UPDATE promoted_files SET before = NULL, after = NULL WHERE promotion = ?", seqs)
        ledger.empty_log()
    return len(seqs)


def require_bytes(raw: bytes | None, path: str) -> bytes:
    """Return the bytes of a step. Raises NotFound if nobody has them any more."""
    if raw is None:
        raise NotFound(
            f"the earlier text of {path} is no longer kept (git.past_days, git.past_mb) and Git does not have it, "
            "so this can't be undone"
        )
    return raw


class UnfinishedChanges:
    """Knows whether changes may be unfinished or uncommitted, and when to try them again. The caller locks it."""

    def __init__(self) -> None:
        self._may_be_unfinished = True  # a crash may have interrupted a change before the start
        self._not_before = float("-inf")  # earliest time of the next try

    def are_due(self, *, at_once: bool) -> bool:
        """Return whether changes may be unfinished, and the wait after a failure is over or `at_once` is set."""
        return self._may_be_unfinished and (at_once or not self.are_delayed())

    def are_delayed(self) -> bool:
        """Return whether the next try waits after a failure."""
        return self._not_before > time.monotonic()

    def expect(self) -> None:
        """Record that a change may be unfinished from now on."""
        self._may_be_unfinished = True

    def delay(self) -> None:
        """Record that a change is unfinished, and wait before the next try."""
        self._may_be_unfinished, self._not_before = True, time.monotonic() + AGAIN_S

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Expect that the block finishes all changes; after an error, such as of the ledger, they are tried again later."""
        self._may_be_unfinished, self._not_before = False, float("-inf")
        try:
            yield
        except BaseException:
            self.delay()
            raise


class ChangeJournal:
    """Manages some kinds of changes in the journal of a ledger. The caller carries out one change at a time."""

    def __init__(self, ledger: Ledger, vault: Vault, kinds: Collection[str]) -> None:
        self._ledger, self._vault, self._kinds = ledger, vault, kinds

    # Entries

    def begin(self, plan: MovePlan, *, by: str, at: int) -> Entry:
        """Record a change that is about to be made; it is on disk when this returns."""
        about = json.dumps(dict(plan.about))
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT INTO promotions (kind, document_id, state, source, target, by, at, commit_id, about)"
                " VALUES (?, ?, 'begun', ?, ?, ?, ?, '', ?)",
                (plan.kind, plan.document_id, plan.source, plan.target, by, at, about),
            )
            ((seq,),) = self._ledger.query("SELECT max(seq) FROM promotions")
            for place, step in enumerate(plan.steps):
                kept = (None if raw is None else zlib.compress(raw) for raw in (step.before, step.after))
                self._ledger.execute(
                    "INSERT INTO promoted_files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (seq, place, step.path, *kept, step.was, step.now, step.twin),
                )
        return Entry(seq, plan.kind, plan.document_id, "begun", plan.source, plan.target, by, at, "", about)

    def set_state(self, seq: int, state: State, *, commit_id: str | None = None, about: str | None = None) -> None:
        """Record the state of a change."""
        self._ledger.execute_each(
            "UPDATE promotions SET state = ?, commit_id = coalesce(?, commit_id), about = coalesce(?, about)"
            " WHERE seq = ?",
            [(state, commit_id, about, seq)],
        )

    def steps(self, seq: int) -> list[FileChange]:
        """Return the file changes, in order."""
        rows = self._ledger.query(
            "SELECT path, was, now, before, after, twin FROM promoted_files WHERE promotion = ? ORDER BY place", (seq,)
        )
        return [
            FileChange(path, was, now, _decompress(before), _decompress(after), twin)
            for path, was, now, before, after, twin in rows
        ]

    def complete_steps(
        self, seq: int, read_version: ReadVersion, *, paths: Collection[str] | None = None
    ) -> list[FileChange]:
        """Return the file changes, in order. Bytes that the journal no longer keeps come from elsewhere, if possible.

        `paths`: the only files whose bytes are looked for, as that takes a command of Git for each; None = all."""

        def find(digest: str, path: str) -> bytes | None:
            with suppress(MemexError):  # the file is missing
                raw, _ = self._vault.read(path)
                if sha256(raw) == digest:
                    return raw
            return read_version(digest, path)

        steps = []
        for step in self.steps(seq):
            before, after = step.before, step.after
            if not step.twin and (paths is None or step.path in paths):
                before = find(step.was, step.path) if before is None and step.was else before
                after = find(step.now, step.path) if after is None and step.now else after
            steps.append(replace(step, before=before, after=after))
        return steps

    def unfinished(self) -> list[Entry]:
        """Return the changes that may be half done."""
        return self._entries("state = 'begun'")

    def uncommitted(self, since: int) -> list[Entry]:
        """Return the changes made since then that are not committed."""
        return self._entries("state = 'done' AND commit_id = '' AND at >= ?", since)

    def entries_of(self, document_id: str) -> list[Entry]:
        """Return all changes of a note, newest last."""
        return self._entries("document_id = ?", document_id)

    def entries_named(self, names: Collection[str]) -> list[Entry]:
        """Return all changes of the notes with these ids or paths, newest last."""
        marks = ", ".join("?" * len(names))
        return self._entries(
            " OR ".join(f"{column} IN ({marks})" for column in ("document_id", "source", "target")),
            *names,
            *names,
            *names,
        )

    def entries_about(self, id: str) -> list[Entry]:
        """Return all changes whose `about` contains this text, newest last."""
        return self._entries("instr(about, ?)", json.dumps(id))

    def latest_entries(self, limit: int) -> list[Entry]:
        """Return the newest changes, newest last."""
        return self._entries("seq > (SELECT coalesce(max(seq), 0) FROM promotions) - ?", limit)

    def newest_changes_below(self, folder: str) -> dict[str, int]:
        """Return the files below `folder` that a change of any kind created, each with the number of the newest such change."""
        asked = (
            "SELECT path, max(promotion) FROM promoted_files JOIN promotions ON promotion = seq"
            " WHERE state = 'done' AND was = '' AND now != '' AND substr(path, 1, length(?)) = ? GROUP BY path"
        )
        return dict(self._ledger.query(asked, (folder, folder)))

    def has_relinked(self, path: str, was: str, now: str) -> bool:
        """Return whether only updates of links, after moves of other notes, led from one digest of a note to another."""
        asked = (
            "SELECT was, now, kind FROM promoted_files JOIN promotions ON promotion = seq"
            " WHERE path = ? AND state = 'done' AND path NOT IN (source, target) AND was != '' AND now != ''"
        )
        updates = [(before, after) for before, after, kind in self._ledger.query(asked, (path,)) if kind in self._kinds]
        reached = {was}
        while more := {after for before, after in updates if before in reached} - reached:
            reached |= more
        return now in reached

    def _entries(self, where: str, *arguments: object) -> list[Entry]:
        rows = self._ledger.query(f"{_ENTRIES} WHERE {where} ORDER BY seq", arguments)
        return [entry for row in rows if (entry := Entry(*row)).kind in self._kinds]

    # Files

    def current_digest(self, step: FileChange) -> str:
        """Return the current digest of a step's file, "" = no file. Raises Unavailable when that is unknown."""
        return self._digest(step.path)

    def _digest(self, path: str) -> str:
        if self._vault.stat(path) is None:
            return "?" if self._vault.exists(path) else ""  # ?: a folder or a link of somebody else
        with suppress(NotFound):
            return self._vault.digest_file(path).digest
        return ""

    def find_conflicts(self, steps: Iterable[FileChange]) -> set[str]:
        """Return the files that have neither their old nor their new state, and a stored file that is at neither of its paths."""
        digests = {step.path: self.current_digest(step) for step in steps}
        return {
            step.path
            for step in steps
            if digests[step.path] not in (step.was, step.now)
            or (step.twin and step.now and not digests[step.path] and not digests.get(step.twin))
        }

    def has_note(self, path: str, id: object) -> bool:
        """Return whether the file at `path` is a note with this id."""
        with suppress(MemexError, FrontmatterError):
            return _note_id(self._vault.read(path)[0]) == id
        return False

    def has_old_note(self, step: FileChange) -> bool:
        """Return whether the note that a step removes is still at its path, perhaps edited; False if another file is."""
        with suppress(FrontmatterError):
            return self.has_note(step.path, _note_id(step.before or b""))
        return False

    def roll_forward(self, steps: Iterable[FileChange], *, without: Collection[str] = ()) -> None:
        """Make the changes that are not made yet, `without` some files.

        Raises Conflict when a file has another state."""
        for step in steps:
            here = self.current_digest(step)
            if here == step.now or step.path in without:
                continue
            if here != step.was:
                raise Conflict(f"{step.path} has changed meanwhile")
            self._write(step.path, step.was, step.now, step.after, step.twin)

    def roll_back(self, steps: Sequence[FileChange], *, resumed: bool = False) -> list[str]:
        """Undo the changes; return the files that somebody else has changed, and those that can't be restored; all stay as they are.

        A new file stays too if what it was made from can't be restored: it may be the only copy. `resumed`: the changes were
        interrupted, so a note may be gone although there is a file at its path."""
        left: list[str] = []
        kept: set[str] = set()
        # Without a removal, a new note was made from one that was changed.
        removes = any(not step.now and not step.twin for step in steps)
        for step in reversed(steps):
            here = self.current_digest(step)
            if here == step.was:
                continue
            if here == step.now and step.path not in kept:
                take_back(partial(self._write, step.path, step.now, step.was, step.before, step.twin))
                if self.current_digest(step) == step.was:
                    continue
            left.append(step.path)
            is_source = not step.twin and (not step.now if removes else resumed)
            if is_source and (not here or (resumed and not (removes and self.has_old_note(step)))):
                kept |= {other.path for other in steps if not other.was}
        return left

    def _write(self, path: str, was: str, now: str, raw: bytes | None, twin: str) -> None:
        """Change the content of a file to `now`, if it still is `was`."""
        vault = self._vault
        if twin and now:
            if vault.stat(twin) is None:
                raise NotFound(f"there is no file at {twin}")
            vault.create_from_file(path, vault.root / twin, now, again=True)
        elif twin:
            current = vault.digest_file(path)
            if current.digest != was:
                raise Conflict(f"{path} has changed meanwhile")
            if self._digest(twin) != was:  # last, because reading a large file takes seconds
                raise Conflict(f"{twin} is not the copy of {path}, so {path} may be the only one")
            with vault.removing(path, current):
                pass
        elif not now:
            vault.remove(path, digest=was)
        elif was:
            assert raw is not None, "the journal keeps the bytes of notes"
            vault.replace(path, raw, digest=was)
        else:
            assert raw is not None, "as above"
            vault.create(path, raw, again=True)


def _decompress(raw: bytes | None) -> bytes | None:
    return None if raw is None else zlib.decompress(raw)


def _note_id(raw: bytes) -> object:
    """Return the `id` property of a note; None if it has none."""
    values = read_properties(split(decode(raw))[0])
    return next((value for key, value in values.items() if key.casefold() == "id"), None)
