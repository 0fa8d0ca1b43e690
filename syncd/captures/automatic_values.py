"""Record in the ledger which values of a note are automatic: the title, tags and summary that Memex took from its text.

The note itself does not mark automatic values, so the ledger keeps a digest of each value that Memex wrote. A value
without such a digest counts as somebody's own.

Law, tested: a value that a caller gave is not automatic, even if Memex wrote the same value before."""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal, TypeAlias

from index.document_ids import sha256
from index.errors import Unavailable
from index.names import note_name
from syncd.state.ledger import Ledger

Name: TypeAlias = Literal["title", "tags", "summary", "file"]  # "file": the file's name, when it is no longer the title
Value: TypeAlias = str | list[str] | None
Digests: TypeAlias = dict[str, list[str]]  # by Name, the latest last

KEPT: Final = 8  # digests kept for each property: an undo may restore an earlier value

log = logging.getLogger(__name__)


class AutomaticValues:
    """Keeps the record of automatic values in the ledger, by workspace and note id; safe to use from any thread.

    What an earlier version recorded has no workspace, and counts in each of them until a value is recorded there. What is
    recorded for another workspace counts unless a note has the id there now: this one may have been moved from there.
    `is_taken` answers that, for a workspace and an id."""

    def __init__(self, ledger: Ledger, is_taken: Callable[[str, str], bool] = lambda *_: True) -> None:
        self._ledger, self._is_taken = ledger, is_taken

    def digests(self, workspace: str, id: str) -> Digests:
        """Return the digests of the values that Memex wrote into the note with this id. Raises Unavailable."""
        rows = dict(self._ledger.query("SELECT workspace, digests FROM automatic WHERE id = ?", (id,)))
        moved = (other for other in sorted(rows) if other not in (workspace, "") and not self._is_taken(other, id))
        recorded = next((there for there in (workspace, "") if there in rows), None)
        source = next(moved, None) if recorded is None else recorded
        return {} if source is None else dict(json.loads(rows[source]))

    def has(self, workspace: str, id: str, name: Name, value: Value) -> bool:
        """Return whether Memex wrote this value and nobody has set another since. Raises Unavailable."""
        return digest_of(value) in self.digests(workspace, id).get(name, ())

    def record(
        self, workspace: str, id: str, values: Mapping[Name, Value], *, from_caller: Collection[str] = ()
    ) -> None:
        """Record the values that Memex wrote into a note, and the names of the values that came `from_caller`.

        If the ledger can't be written, the call does not fail: the values then count as somebody's own."""
        try:
            before = self.digests(workspace, id)
            after: Digests = {name: digests for name, digests in before.items() if name not in from_caller}
            for name, value in values.items():
                digest = digest_of(value)
                others = [other for other in after.get(name, ()) if other != digest]
                after[name] = [*others, digest][-KEPT:]
            if after != before:
                row = (workspace, id, json.dumps(after))
                self._ledger.execute_each("INSERT OR REPLACE INTO automatic VALUES (?, ?, ?)", [row])
        except Unavailable as error:
            log.warning("could not record the automatic values of a note: %s", error.message)

    def record_summary(self, workspace: str, id: str, summary: str | None) -> None:
        """Record the summary that Memex generated for a note."""
        self.record(workspace, id, {"summary": summary})

    def notes_with_summary(self) -> set[tuple[str, str]]:
        """Return workspace ("" = any) and id of the notes for which Memex has generated a summary. Raises Unavailable."""
        rows = self._ledger.query("""SELECT workspace, id FROM automatic WHERE digests LIKE '%"summary"%'""")
        return {(workspace, id) for workspace, id in rows}

    def forget_missing(self, ids: Callable[[], Collection[str]]) -> None:
        """Forget the notes that are gone for good.

        `ids` returns those that exist or can be brought back, and is called last, as new notes may appear."""
        recorded = [id for (id,) in self._ledger.query("SELECT id FROM automatic")]
        known = ids()
        gone = ((id,) for id in recorded if id not in known)
        self._ledger.execute_each("DELETE FROM automatic WHERE id = ?", gone)


def digest_of(value: Value) -> str:
    """Return a digest for comparing values; the order of tags does not count."""
    text = json.dumps(sorted(value) if isinstance(value, list) else value, ensure_ascii=False)
    return sha256(unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass"))[:16]


def file_stem(path: str) -> str:
    """Return the name of a note's file in the form in which it is compared with a title."""
    return unicodedata.normalize("NFC", note_name(path))
