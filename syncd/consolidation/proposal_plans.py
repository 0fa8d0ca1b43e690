"""Define how the proposals of consolidation are planned: the kinds of proposals, and the captures that a proposal changes.

Law, tested: a capture that changed after it was proposed is left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from index.errors import Conflict, NotFound
from index.model import Document, Record
from index.names import base_name
from syncd.history.change_journal import FileChange
from syncd.notes.front_matter import FrontmatterError, encode
from syncd.promotion.vault_snapshot import VaultSnapshot

Proposed: TypeAlias = Mapping[str, Any]  # what a proposal is about, and its key


@dataclass(frozen=True, slots=True)
class Plan:
    """Holds the planned file changes, the message about the outcome, and the subject of the commit."""

    steps: Sequence[FileChange]
    said: str
    subject: str
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FileKind:
    """Describes a kind of proposal that changes files: `plan` plans it from the current files."""

    name: str
    plan: Callable[[Proposed], Plan]


@dataclass(frozen=True, slots=True)
class GraphKind:
    """Describes a kind of proposal that the graph carries out, which writes its notes itself; `work` returns the outcome."""

    name: str
    work: Callable[[Proposed], str]
    subject: str  # of the commit, with a place for the outcome


@dataclass(frozen=True, slots=True)
class ReadCapture:
    """Holds a capture as it was just read."""

    record: Record
    raw: bytes
    document: Document

    @property
    def path(self) -> str:
        """Return the path of the capture."""
        return self.record.path

    @property
    def name(self) -> str:
        """Return the name of its file, without `.md`."""
        return base_name(self.path).removesuffix(".md")


def read_capture(snapshot: VaultSnapshot, record: Record) -> ReadCapture:
    """Read the capture of a record."""
    raw, stat = snapshot.vault.read(record.path)
    return ReadCapture(record, raw, snapshot.parse(raw, record.path, stat))


def read_proposed(snapshot: VaultSnapshot, proposed: Proposed) -> list[ReadCapture]:
    """Read the captures of a proposal. Raises Conflict when one has changed since, and NotFound when one is missing."""
    known = []
    for id, content in zip(proposed["ids"], proposed["hashes"], strict=True):
        record = snapshot.captures.index.record(id, proposed["workspace"])
        if record is None:
            raise NotFound("a note of this proposal no longer exists")
        capture = read_capture(snapshot, record)
        if capture.document.content_hash != content:
            raise Conflict(f"{capture.name} has changed since the proposal")
        known.append(capture)
    return known


def edit_capture(capture: ReadCapture, edit: Callable[..., str], *values: Any) -> bytes:
    """Return the bytes of a capture as `edit` makes them of `values`.

    Raises Conflict when its properties can't be changed."""
    try:
        return encode(edit(*values))
    except FrontmatterError as error:
        raise Conflict(f"the properties of {capture.name} can't be changed line by line: {error}") from error
