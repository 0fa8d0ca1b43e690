"""Keep a journal of changes to several files: the old and new state of each is on disk before the first one changes.

Law, tested at every call that changes the disk: after a crash or a failure the change of all files is complete or
undone, unless another program changed one of them meanwhile; what this program wrote is never touched, and files
left as they are get reported."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from index.errors import Conflict, NotFound
from syncd.history.audit_log import take_back
from syncd.state.ledger import Ledger
from syncd.vault.vault import Vault

RECENT_MS: Final = 7 * 24 * 3600 * 1000  # so long a commit that Git did not allow is made up for
State: TypeAlias = Literal["begun", "done", "undone", "torn"]
# begun: it may be half done; done, undone: all of it or nothing; torn: somebody came in between, `about` says what is left
_ENTRIES: Final = "SELECT seq, kind, document_id, state, source, target, by, at, commit_id, about FROM promotions"


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of one file: sha256 in hex before and after, "" = no file; and the bytes, where the journal keeps them.

    A stored file has none there: it is moved, and `twin` is the other end of its way."""

    path: str
    was: str
    now: str
    before: bytes | None = None
    after: bytes | None = None
    twin: str = ""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What is to become of several files, as the way of one note."""

    kind: str  # promote, unpromote
    document_id: str
    source: str  # where the note is
    target: str  # where it is to be
    steps: Sequence[FileChange]
    about: Mapping[str, Any]  # JSON values, of whoever made it


@dataclass(frozen=True, slots=True)
class Entry:
    """One such change of several files, as the journal has it."""

    seq: int
    kind: str
    document_id: str
    state: State
    source: str
    target: str
    by: str
    at: int  # epoch ms
    commit_id: str  # "" = not committed
    about: str  # JSON, of whoever made it


def note_step(path: str, before: bytes | None, after: bytes | None) -> FileChange:
    """The step of a note."""
    return FileChange(path, sha256(before), sha256(after), before, after)


def move_steps(old: str, new: str, digest: str) -> tuple[FileChange, FileChange]:
    """The steps of a stored file: it is copied, and goes from its old place last."""
    return FileChange(new, "", digest, twin=old), FileChange(old, digest, "", twin=new)


def sha256(raw: bytes | None) -> str:
    """The digest of a file with these bytes; "" = of none."""
    return "" if raw is None else hashlib.sha256(raw).hexdigest()


def uncommitted_paths(ledger: Ledger, since: int) -> set[str]:
    """The files of all changes that are under way, or were done since then and are in no commit yet."""
    asked = (
        "SELECT DISTINCT path FROM promoted_files JOIN promotions ON promotion = seq"
        " WHERE state = 'begun' OR (state = 'done' AND commit_id = '' AND at >= ?)"
    )
    return {path for (path,) in ledger.query(asked, (since,))}


def document_ids(ledger: Ledger) -> set[str]:
    """The ids of the documents that any change is about."""
    return {id for (id,) in ledger.query("SELECT DISTINCT document_id FROM promotions")}


class ChangeJournal:
    """The changes of some kinds in the journal of a ledger, and the vault that it is about. One change at a time is carried out, by its caller."""

    def __init__(self, ledger: Ledger, vault: Vault, kinds: Collection[str]) -> None:
        self._ledger, self._vault, self._kinds = ledger, vault, kinds

    # What is noted

    def begin(self, plan: MovePlan, *, by: str, at: int) -> Entry:
        """Note what is about to be done; on disk when it returns."""
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
        """Note what has become of it."""
        with self._ledger.transaction():
            self._ledger.execute(
                "UPDATE promotions SET state = ?, commit_id = coalesce(?, commit_id), about = coalesce(?, about)"
                " WHERE seq = ?",
                (state, commit_id, about, seq),
            )

    def steps(self, seq: int) -> list[FileChange]:
        """What becomes of each file, in order."""
        rows = self._ledger.query(
            "SELECT path, was, now, before, after, twin FROM promoted_files WHERE promotion = ? ORDER BY place", (seq,)
        )
        return [
            FileChange(path, was, now, _decompress(before), _decompress(after), twin)
            for path, was, now, before, after, twin in rows
        ]

    def unfinished(self) -> list[Entry]:
        """What may be half done."""
        return self._entries("state = 'begun'")

    def uncommitted(self, since: int) -> list[Entry]:
        """What was done since then, and is in no commit yet."""
        return self._entries("state = 'done' AND commit_id = '' AND at >= ?", since)

    def entries_of(self, document_id: str) -> list[Entry]:
        """All that became of a document, the newest last."""
        return self._entries("document_id = ?", document_id)

    def entries_about(self, id: str) -> list[Entry]:
        """All whose `about` has this text, the newest last."""
        return self._entries("instr(about, ?)", json.dumps(id))

    def latest_entries(self, limit: int) -> list[Entry]:
        """The newest, the newest last."""
        return self._entries("seq > (SELECT coalesce(max(seq), 0) FROM promotions) - ?", limit)

    def _entries(self, where: str, *arguments: object) -> list[Entry]:
        rows = self._ledger.query(f"{_ENTRIES} WHERE {where} ORDER BY seq", arguments)
        return [entry for row in rows if (entry := Entry(*row)).kind in self._kinds]

    # What is done

    def current_digest(self, step: FileChange) -> str:
        """What the file of a step holds now: its digest, "" = no file. Raises Unavailable when nobody can tell."""
        try:
            return self._vault.digest_file(step.path).digest
        except NotFound:
            if self._vault.exists(step.path):
                return "?"  # a folder or a link, which is somebody else's
            return ""

    def find_conflicts(self, steps: Iterable[FileChange]) -> set[str]:
        """The files that are neither as they were nor as they are to be."""
        return {step.path for step in steps if self.current_digest(step) not in (step.was, step.now)}

    def roll_forward(self, steps: Iterable[FileChange], *, without: Collection[str] = ()) -> None:
        """Do what is not done yet, `without` some files. Raises Conflict when one is neither as it was nor as it is to be."""
        for step in steps:
            here = self.current_digest(step)
            if here == step.now or step.path in without:
                continue
            if here != step.was:
                raise Conflict(f"{step.path} has been changed meanwhile")
            self._write(step.path, step.was, step.now, step.after, step.twin)

    def roll_back(self, steps: Sequence[FileChange]) -> list[str]:
        """Take back what was done; the files that were not as they were left, which stay as they are."""
        left = []
        for step in reversed(steps):
            here = self.current_digest(step)
            if here == step.was:
                continue
            if here != step.now:
                left.append(step.path)
                continue
            take_back(partial(self._write, step.path, step.now, step.was, step.before, step.twin))
        return left

    def _write(self, path: str, was: str, now: str, raw: bytes | None, twin: str) -> None:
        """Let a file hold `now`, if it still holds `was`."""
        vault = self._vault
        if twin and now:
            if vault.stat(twin) is None:
                raise NotFound(f"nothing is at {twin}")
            vault.create_from_file(path, vault.root / twin, now)
        elif twin:
            current = vault.digest_file(path)
            if current.digest != was:
                raise Conflict(f"{path} has been changed meanwhile")
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
