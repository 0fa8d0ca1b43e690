"""Turn the findings of a workspace into proposals to the owner, and into the lines of the consolidation report.

Laws, tested: a recurring finding stays one proposal while its notes are unchanged; each line shows the key of its
own proposal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import sha256
from index.graph.vertex import Vertex
from index.names import pluralize
from syncd.consolidation.analysis.findings import Finding, Findings
from syncd.consolidation.report_note import ReportEntry, WorkspaceReport
from syncd.promotion.proposal_store import Proposal

RELATED: Final = "related_to"  # default type of a proposed relation; the owner can rename it
OBJECTS: Final[
    Mapping[str, frozenset[str]]
] = {  # types of notes that a kind applies to; other data depends on files and entities
    "merge-duplicates": frozenset({"note"}),
    "archive": frozenset({"note"}),
}
LISTS: Final[Mapping[str, tuple[str, ...]]] = {  # by kind: the lists of findings it is made from
    "merge-duplicates": ("duplicates", "near"),
    "tag-merge": ("synonyms",),
    "relate": ("relations",),
    "archive": ("unused",),
}


@dataclass(frozen=True, slots=True)
class ShownProposal:
    """Holds a proposal and its entry in the report."""

    proposal: Proposal
    entry: ReportEntry


def make_proposals(
    findings: Findings[Any], vertex: Callable[[str], Vertex | None], path: Callable[[str], str | None]
) -> Iterator[ShownProposal]:
    """Make all proposals, in the order of the report. `vertex` finds an entity by name, `path` a note's path by id."""
    for finding in findings.proposals:
        wanted = OBJECTS.get(finding.kind)
        if wanted is None or all(id in findings.named and findings.named[id].type in wanted for id in finding.ids):
            paths = {id: where for id in finding.ids if (where := path(id))}
            if len(paths) == len(finding.ids):
                yield _propose_finding(finding, paths)
    for stale in findings.graph.stale:
        node = vertex(stale.name)
        if node is not None and stale.draft:
            yield _propose_summary(findings.workspace, node, stale.draft)


def make_report(
    findings: Findings[Any],
    shown: Sequence[ReportEntry],
    vertex: Callable[[str], Vertex | None],
    path: Callable[[str], str | None],
) -> WorkspaceReport:
    """Make the report of a workspace with these proposals."""
    clusters = [(group.label or "alike", tuple(filter(None, map(path, group.ids)))) for group in findings.clusters]
    nodes = [
        (cluster.label or "alike", tuple(node.path for name in cluster.names if (node := vertex(name))))
        for cluster in findings.graph.clusters
    ]
    return WorkspaceReport(
        workspace=findings.workspace,
        entries=tuple(shown),
        clusters=tuple((label, paths) for label, paths in (*clusters, *nodes) if paths),
        orphans=tuple(orphan.path for orphan in findings.graph.orphans),
        more={kind: left for kind in LISTS if (left := _count_unshown(findings, kind)) > 0},
        degraded=findings.degraded,
    )


def is_complete(findings: Findings[Any], kind: str) -> bool:
    """Return whether the scan found everything of a kind, so that a proposal it did not find no longer applies."""
    if findings.degraded:
        return False
    if kind == "summary":
        return findings.graph.of["stale_summaries"] <= len(findings.graph.stale)
    return _count_unshown(findings, kind) <= 0


def _count_unshown(findings: Findings[Any], kind: str) -> int:
    """Count the findings of a kind that are not shown."""
    return sum(findings.of.get(name, 0) - len(getattr(findings, name)) for name in LISTS[kind])


def _propose_finding(finding: Finding, paths: Mapping[str, str]) -> ShownProposal:
    would = finding.would or ((RELATED,) if finding.kind == "relate" else ())
    hashes = finding.hashes if finding.kind in OBJECTS else ()
    about = {"workspace": finding.workspace, "ids": list(finding.ids), "would": list(would), "hashes": list(hashes)}
    proposal = Proposal(finding.kind, (finding.key,), about)
    quotes = tuple((paths[quote.id], quote.text) for quote in finding.quotes if quote.id in paths)
    where = tuple(paths[id] for id in finding.ids)
    return ShownProposal(
        proposal, ReportEntry(proposal.key, finding.kind, finding.workspace, where, would, finding.reason, quotes)
    )


def _propose_summary(workspace: str, node: Vertex, draft: str) -> ShownProposal:
    about = {"workspace": workspace, "ids": [node.id], "would": [draft], "hashes": [], "changed_at": node.changed_at}
    subject = (workspace, node.id, sha256(draft.encode("utf-8", "surrogatepass")))
    proposal = Proposal("summary", subject, about)
    count = pluralize(node.observations, "fact")
    since = "and an outdated summary" if node.summary else "and no summary"
    entry = ReportEntry(proposal.key, "summary", workspace, (node.path,), (draft,), f"It has {count} {since}.")
    return ShownProposal(proposal, entry)
