"""Restore a note, or a note that was deleted, as it was at a version of its history.

Laws, tested: nothing is written unless the present text stays readable, in Git or among the overwritten versions; a
note that changed after it was shown is not restored; a restore is one commit, and `Undo` undoes it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.history.audit_log import AUTHOR
from syncd.history.note_history import NoteHistory, diff_texts
from syncd.history.undo import UNHOUSED
from syncd.vault.location import locate
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault

HEAD: Final = "head"  # Git's newest commit; no name of a version begins with these letters
SHORTEST: Final = 4  # characters of a version's name
EVENTS: Final = 10_000  # most events that are searched for a version
Commit = Callable[[str, bytes, str], str | None]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Holds the text to restore, and the present one; None = the note does not exist."""

    path: str
    raw: bytes
    present: bytes | None

    @property
    def is_done(self) -> bool:
        """Return whether the note has the text already."""
        return self.raw == self.present


class NoteRestore:
    """Restores notes of one vault. `commit` commits a path with these bytes and a sentence, and returns the commit.

    It returns "" if there is nothing to commit, None if commits are off, and raises Unavailable if Git refuses."""

    def __init__(
        self,
        vault: Vault,
        history: NoteHistory,
        *,
        inbox: str,
        workspaces: Callable[[], Collection[str]],
        commit: Commit,
        indexed: Callable[[Collection[str]], object],
    ) -> None:
        self._vault, self._history, self._inbox = vault, history, inbox
        self._workspaces, self._commit, self._indexed = workspaces, commit, indexed

    def plan(self, name: str, version: str) -> RestorePlan:
        """Find a version of the note that `name` means: a commit, HEAD, or the first characters of a version's name.

        Raises NotFound for an unknown version and one that is no longer kept, InvalidArgument for an ambiguous one,
        Conflict if the note can't be written at its place."""
        log = self._history.log(name, EVENTS)
        path = str(log["path"])
        raw = self._read_head(path) if version.casefold() == HEAD else self._read_version(path, log["events"], version)
        if not is_note(path):
            raise InvalidArgument(f"{path} is not a note, and Memex keeps versions of notes only")
        where = locate(path, self._inbox)
        if where.scope == "captures" and where.workspace not in self._workspaces():
            raise Conflict(f"{path} can't be restored: {UNHOUSED}")
        return RestorePlan(path, raw, self._read_present(path))

    def carry_out(self, plan: RestorePlan, version: str, *, shown: str | None = None) -> dict[str, Any]:
        """Restore the text, and commit it; `shown`: the SHA-256 of the text that the owner saw, "" = no note.

        Raises Conflict if the note has another text now, Unavailable if its text can't be kept."""
        digest = sha256(plan.present)
        if shown is not None and shown != digest:
            raise Conflict(f"{plan.path} changed after it was shown, so it was not restored")
        result = {"path": plan.path, "version": sha256(plan.raw), "kept": "", "commit": "", "undo": None}
        if plan.is_done:
            return result
        if plan.present is None:
            self._vault.create(plan.path, plan.raw, again=True)
        else:
            result["kept"] = self._keep(plan.path, plan.present) or ""
            self._vault.replace(plan.path, plan.raw, digest=digest)
        self._indexed({plan.path})
        try:
            at = sha256(plan.raw) if version.casefold() == HEAD else version
            commit = self._commit(plan.path, plan.raw, f"Restore {plan.path} as it was at {at[:10]}")
        except Unavailable:  # the committer commits the restored text later
            commit = None
        return result | {"commit": commit or "", "undo": AUTHOR.get().request}

    def _keep(self, path: str, present: bytes) -> str | None:
        """Commit the present text, and return the commit; where Git does not have it, keep it with the overwritten versions."""
        commit = self._commit(path, present, f"Keep {path} as it is before a restore")
        self._history.overwritten.keep(present)
        if self._history.read_version(sha256(present), path) is None:
            raise Unavailable(
                f"{path} was not restored, because its present text would be lost: commit it, or set git.past_days",
                retryable=False,
            )
        return commit

    def _read_head(self, path: str) -> bytes:
        raw = self._history.read_head(path)
        if raw is None:
            raise NotFound(f"{path} is not in HEAD, the newest commit of Git: memex log -p shows its versions")
        return raw

    def _read_version(self, path: str, events: Collection[dict[str, Any]], version: str) -> bytes:
        """Return the text that the name of a version means."""
        wanted = version.casefold()
        if len(wanted) < SHORTEST:
            raise InvalidArgument(f"the name of a version has at least {SHORTEST} characters: memex log -p shows them")
        names = {(name, event["what"] == "commit") for event in events for name in self._matching_names(event, wanted)}
        if not names:
            raise NotFound(f"{path} has no version {version[:64]!r}: memex log -p shows its versions")
        texts = {self._read(path, name, is_blob=is_blob) for name, is_blob in names}
        if len(texts) > 1:
            raise InvalidArgument(f"several versions of {path} begin with {version[:64]!r}: give more characters")
        (raw,) = texts
        if raw is None:
            gone = "its text is no longer kept" if any(name for name, _ in names) else "the note did not exist then"
            raise NotFound(f"{path} can't be restored as it was at {version[:64]!r}: {gone}")
        return raw

    @staticmethod
    def _matching_names(event: dict[str, Any], wanted: str) -> set[str]:
        """Return the names of the texts of an event that `wanted` means; "" = no file."""
        names = {event[side] for side in ("before", "after") if event[side] and event[side].startswith(wanted)}
        if event["commit"] and event["commit"].startswith(wanted):
            names.add(event["after"])
        return names

    def _read(self, path: str, name: str | None, *, is_blob: bool) -> bytes | None:
        if not name:
            return None
        return self._history.read_blobs([name]).get(name) if is_blob else self._history.read_version(name, path)

    def _read_present(self, path: str) -> bytes | None:
        """Return the present bytes of the note; None if it does not exist. Raises Unavailable when that is unknown."""
        try:
            return self._vault.read(path)[0]
        except NotFound:
            return None


def describe_plan(plan: RestorePlan) -> dict[str, Any]:
    """Return a plan for the owner: the lines that would change, and the SHA-256 of the present text, "" = no note."""
    texts = (None if raw is None else raw.decode("utf-8", "backslashreplace") for raw in (plan.present, plan.raw))
    present, restored = texts
    return {
        "path": plan.path,
        "version": sha256(plan.raw),
        "now": sha256(plan.present),
        "diff": diff_texts(present or "", restored, plan.path, plan.path),
    }
