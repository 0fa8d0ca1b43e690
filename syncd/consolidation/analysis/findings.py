"""Define the findings of consolidation as values: what each proposes, and the quotes that let a person check it.

Law, tested: the key of a finding changes only with its proposal, so that a decision about it stays valid."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from index.model import DocumentOverview
from syncd.graph.attention_report import Report

# merge-duplicates: the second says nothing that the first does not. supersede: the first, newer, takes the second's place.
# relate: two nodes may deserve a relation. tag-merge: one tag becomes another. archive: a capture that nobody uses.
Kind: TypeAlias = Literal["merge-duplicates", "supersede", "relate", "tag-merge", "archive"]

KEY: Final = 16  # hexadecimal digits of a key

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a document: on one line, without secrets."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A proposal. `ids` in the order of its kind: kept and copy, newer and older, the two nodes, the one capture, or none.

    `hashes` are the content hashes of those documents as they were compared: whoever carries it out compares them again."""

    kind: Kind
    key: str
    workspace: str
    ids: tuple[str, ...]
    would: tuple[str, ...]  # what else it would do, by kind: the tag that stays and the one that becomes it
    hashes: tuple[str, ...]
    score: float  # 0..1; the highest are shown first
    reason: str  # one sentence
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Captures that are about one thing, and what that is in a few words."""

    number: int  # from 1, the largest first
    ids: tuple[str, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class Findings(Generic[E]):
    """All of a workspace. Lists are cut, best first; `of` counts by name what there was before."""

    workspace: str
    documents: int  # that were looked at
    duplicates: tuple[Finding, ...]  # the same words
    near: tuple[Finding, ...]  # the same said with small differences
    supersedes: tuple[Finding, ...]
    relations: tuple[Finding, ...]
    unused: tuple[Finding, ...]
    synonyms: tuple[Finding, ...]
    clusters: tuple[Group, ...]
    graph: Report[E]  # of the nodes: stale summaries, relation candidates, orphans, clusters
    named: Mapping[str, DocumentOverview]  # by id: all captures that a finding or a group speaks of
    of: Mapping[str, int]
    degraded: tuple[str, ...] = ()  # what kept it from being whole

    @property
    def proposals(self) -> tuple[Finding, ...]:
        """All that can be carried out, in the order in which it is shown."""
        return (*self.supersedes, *self.duplicates, *self.near, *self.synonyms, *self.relations, *self.unused)


def key_of(workspace: str, kind: Kind, ids: tuple[str, ...], would: tuple[str, ...]) -> str:
    """The stable key of a finding."""
    text = "\0".join((workspace, kind, *ids, "", *would))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY]
