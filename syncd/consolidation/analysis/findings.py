"""Define the findings of consolidation as values: what each proposes, and the quotes that let a person check it.

Law, tested: the key of a finding changes only with its proposal, so that a decision about it stays valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from index.document_ids import sha256
from index.model import DocumentOverview
from syncd.graph.attention_report import Report

# merge-duplicates: the second note adds nothing to the first. relate: two entities may need a relation. tag-merge: one tag becomes another. archive: a capture is unused.
Kind: TypeAlias = Literal["merge-duplicates", "relate", "tag-merge", "archive"]

KEY: Final = 16  # hexadecimal digits of a key

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Quote:
    """Holds a sentence of a note: on one line, without secrets."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Describes a proposal.

    `ids` are in the order of its kind: kept and copy, two entities, one capture, none.

    `hashes` are the content hashes of the compared notes: they are compared again before the proposal is carried
    out."""

    kind: Kind
    key: str
    workspace: str
    ids: tuple[str, ...]
    would: tuple[str, ...]  # more values, by kind: the tag that stays and the tag that is replaced
    hashes: tuple[str, ...]
    score: float  # 0..1; the highest are shown first
    reason: str  # one sentence
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Holds captures about one topic, with a short label."""

    ids: tuple[str, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class Findings(Generic[E]):
    """Holds all findings of a workspace. Lists are cut, best first; `of` holds their full lengths by name."""

    workspace: str
    documents: int  # number of scanned notes
    duplicates: tuple[Finding, ...]  # equal words
    near: tuple[Finding, ...]  # edited, or a part of the other
    relations: tuple[Finding, ...]
    unused: tuple[Finding, ...]
    synonyms: tuple[Finding, ...]
    clusters: tuple[Group, ...]
    graph: Report[E]  # about the entities: stale summaries, relation candidates, orphans, clusters
    named: Mapping[str, DocumentOverview]  # by id: all captures in a finding or a group
    of: Mapping[str, int]
    degraded: tuple[str, ...] = ()  # why the findings are incomplete

    @property
    def proposals(self) -> tuple[Finding, ...]:
        """Return all findings that can be carried out, in the order of the report."""
        return (*self.duplicates, *self.near, *self.synonyms, *self.relations, *self.unused)


def key_of(workspace: str, kind: Kind, ids: tuple[str, ...], would: tuple[str, ...]) -> str:
    """Return the stable key of a finding."""
    text = "\0".join((workspace, kind, *ids, "", *would))
    return sha256(text.encode("utf-8", "surrogatepass"))[:KEY]
