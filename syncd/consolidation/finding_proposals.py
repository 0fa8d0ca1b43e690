"""Turn the findings of a workspace into proposals to the owner, and into the lines of the consolidation report.

Law, tested: a finding that recurs is one proposal as long as the notes say what they said; each line shows the key
of its own proposal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.graph.vertex import Vertex
from syncd.consolidation.analysis.findings import Finding, Findings
from syncd.consolidation.report_note import ReportEntry, WorkspaceReport
from syncd.promotion.proposal_store import Proposal

RELATED: Final = "related_to"  # what a relation is called until its owner calls it otherwise
OBJECTS: Final[
    Mapping[str, frozenset[str]]
] = {  # types of documents that a kind is for; of files and nodes other things hang
    "merge-duplicates": frozenset({"note"}),
    "archive": frozenset({"note"}),
    "supersede": frozenset({"note", "file"}),
}
LISTS: Final[Mapping[str, tuple[str, ...]]] = {  # by kind: the lists of findings that it comes from
    "supersede": ("supersedes",),
    "merge-duplicates": ("duplicates", "near"),
    "tag-merge": ("synonyms",),
    "relate": ("relations",),
    "archive": ("unused",),
}


@dataclass(frozen=True, slots=True)
class ShownProposal:
    """A proposal, and how it is shown."""

    proposal: Proposal
    entry: ReportEntry


def offers(
    found: Findings[Any], vertex: Callable[[str], Vertex | None], path: Callable[[str], str | None]
) -> Iterator[ShownProposal]:
    """All that can be proposed, in the order in which it is shown. `vertex` by name, `path` of a document by id."""
    for one in found.proposals:
        wanted = OBJECTS.get(one.kind)
        if wanted is None or all(id in found.named and found.named[id].type in wanted for id in one.ids):
            paths = {id: where for id in one.ids if (where := path(id))}
            if len(paths) == len(one.ids):
                yield _offer(one, paths)
    for stale in found.graph.stale:
        node = vertex(stale.name)
        if node is not None and stale.draft:
            yield _summary(found.workspace, node, stale.draft)


def sheet(
    found: Findings[Any],
    shown: Sequence[ReportEntry],
    vertex: Callable[[str], Vertex | None],
    path: Callable[[str], str | None],
) -> WorkspaceReport:
    """What the report says of a workspace, with these proposals."""
    clusters = [(one.label or "alike", tuple(filter(None, map(path, one.ids)))) for one in found.clusters]
    nodes = [
        (one.label or "alike", tuple(node.path for name in one.names if (node := vertex(name))))
        for one in found.graph.clusters
    ]
    return WorkspaceReport(
        workspace=found.workspace,
        entries=tuple(shown),
        clusters=tuple((label, paths) for label, paths in (*clusters, *nodes) if paths),
        orphans=tuple(one.path for one in found.graph.orphans),
        more={kind: left for kind in LISTS if (left := _left(found, kind)) > 0},
        degraded=found.degraded,
    )


def whole(found: Findings[Any], kind: str) -> bool:
    """Whether all that there is of a kind was found, so that what was not is no longer so."""
    if found.degraded:
        return False
    if kind == "summary":
        return found.graph.of["stale_summaries"] <= len(found.graph.stale)
    return _left(found, kind) <= 0


def _left(found: Findings[Any], kind: str) -> int:
    """How many there are that are not shown yet."""
    return sum(found.of.get(name, 0) - len(getattr(found, name)) for name in LISTS[kind])


def _offer(one: Finding, paths: Mapping[str, str]) -> ShownProposal:
    would = one.would or ((RELATED,) if one.kind == "relate" else ())
    hashes = one.hashes if one.kind in OBJECTS else ()
    about = {"workspace": one.workspace, "ids": list(one.ids), "would": list(would), "hashes": list(hashes)}
    proposal = Proposal(one.kind, (one.key,), about)
    quotes = tuple((paths[quote.id], quote.text) for quote in one.quotes if quote.id in paths)
    where = tuple(paths[id] for id in one.ids)
    return ShownProposal(proposal, ReportEntry(proposal.key, one.kind, one.workspace, where, would, one.reason, quotes))


def _summary(workspace: str, node: Vertex, draft: str) -> ShownProposal:
    about = {"workspace": workspace, "ids": [node.id], "would": [draft], "hashes": [], "changed_at": node.changed_at}
    subject = (workspace, node.id, hashlib.sha256(draft.encode("utf-8", "surrogatepass")).hexdigest())
    proposal = Proposal("summary", subject, about)
    count = f"{node.observations:,} observation{'' if node.observations == 1 else 's'}"
    since = "and no summary since the last" if node.summary else "and no summary"
    entry = ReportEntry(proposal.key, "summary", workspace, (node.path,), (draft,), f"It has {count} {since}.")
    return ShownProposal(proposal, entry)
