"""Scan a workspace for findings: read its indexes, run the analysis, and stop when the daemon stops.

Law: the scan reads only these indexes and writes nothing; it never compares texts of two workspaces, nor notes of
the vault outside the inbox."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import index.text.similarity_sketch as sketches
from index.encoders.word_frequency import word_ranks
from index.graph.graph import Graph
from index.model import DocumentOverview
from index.names import pluralize, stem
from index.search import vector_similarity
from index.search.vector_similarity import Neighbours
from index.text.similarity_sketch import Sketch
from syncd.consolidation.analysis import capture_attention
from syncd.consolidation.analysis.findings import Finding, Findings, key_of
from syncd.consolidation.analysis.topic_groups import find_groups
from syncd.documents.capture_note import CHANGE
from syncd.graph import attention_report, similar_nodes
from syncd.history.audit_log import Events

if TYPE_CHECKING:
    from index.scope.index import Index

MOST: Final = {"unused": 10}  # by list: fewer proposals to archive, because they are the least certain
EMPTY: Final = sketches.make_sketch("")
AT_ONCE: Final = 512  # captures whose texts are read at a time


def scan_workspace(
    index: Index,
    workspace: str,
    graph: attention_report.Report[Events],
    *,
    linked: Collection[str],
    now: int,
    go_on: capture_attention.GoOn = lambda: None,
    limit: int = capture_attention.LIMIT,
) -> Findings[Events]:
    """Find what needs attention in `workspace`.

    `linked`: names (as `stem` makes them) of notes that a note links to. If `go_on` raises, the scan stops with that error."""
    captured = _read_captures(index, workspace, go_on)
    compared = _compare_captures(captured, go_on)
    go_on()
    captures, texts = captured.captures, captured.texts
    clusters, clustered = find_groups(captures, captured.part, captured.neighbours, texts, word_ranks(), limit=limit)
    go_on()
    linked_ids = {capture.id for capture in captures if stem(capture.path) in linked}
    lists: dict[str, tuple[Finding, ...]] = {
        "duplicates": compared.duplicates,
        "near": compared.near,
        "relations": _find_relations(index.graph(workspace), workspace, graph),
        "unused": capture_attention.find_unused(workspace, captures, linked=linked_ids, now=now),
        "synonyms": capture_attention.find_tag_synonyms(workspace, captured.documents, word_ranks()),
    }
    cut = {name: findings[: min(limit, MOST.get(name, limit))] for name, findings in lists.items()}
    shown = {id for findings in cut.values() for finding in findings for id in finding.ids}
    shown |= {id for cluster in clusters for id in cluster.ids}
    return Findings(
        workspace=workspace,
        documents=len(captured.documents),
        **cut,
        clusters=tuple(clusters),
        graph=graph,
        named={document.id: document for document in captured.documents if document.id in shown},
        of={name: len(findings) for name, findings in lists.items()} | {"clusters": clustered},
        degraded=(*_incomplete_reasons(captures, captured.part.numbers, compared.left_out), *graph.degraded),
    )


@dataclass(frozen=True, slots=True)
class _WorkspaceCaptures:
    """Holds the indexed notes of a workspace, and which captures are near each other in meaning."""

    index: Index
    workspace: str
    documents: Sequence[DocumentOverview]
    captures: Sequence[DocumentOverview]
    number: Mapping[str, int]  # by key: its position in `captures`
    part: similar_nodes.ComparedNodes  # the captures that have vectors, by their numbers
    neighbours: Neighbours
    go_on: capture_attention.GoOn

    def texts(self, asked: Sequence[int]) -> dict[int, str]:
        """Return the texts of captures by their numbers."""
        texts = dict[int, str]()
        for start in range(0, len(asked), AT_ONCE):
            if start:
                self.go_on()
            part = self.index.texts_of([self.captures[n].key for n in asked[start : start + AT_ONCE]])
            texts |= {self.number[key]: text for key, text in part.items()}
        return texts


def _read_captures(index: Index, workspace: str, go_on: capture_attention.GoOn) -> _WorkspaceCaptures:
    documents = index.catalog.list_documents(workspace)
    captures = [document for document in documents if document.type not in ("entity", CHANGE)]
    number = {capture.key: n for n, capture in enumerate(captures)}
    keys, matrix = index.document_vectors(workspace)
    kept = [row for row, key in enumerate(keys) if key in number]
    part = similar_nodes.make_group(
        [number[keys[row]] for row in kept], matrix if len(kept) == len(keys) else matrix[kept]
    )
    go_on()
    neighbours = vector_similarity.nearest(
        part.matrix, vector_similarity.MUTUAL, min(part.threshold, capture_attention.NEAR)
    )
    return _WorkspaceCaptures(index, workspace, documents, captures, number, part, neighbours, go_on)


def _compare_captures(
    captured: _WorkspaceCaptures, go_on: capture_attention.GoOn
) -> capture_attention.ComparisonResult:
    """Compare the sentences of the captures that are worth comparing."""
    drawn: list[Sketch] = [EMPTY] * len(captured.captures)
    for batch in captured.index.texts(captured.workspace):
        go_on()
        for key, text in batch.items():
            if key in captured.number:
                drawn[captured.number[key]] = sketches.make_sketch(text)
    go_on()
    pairs = capture_attention.choose_pairs(drawn, captured.part.numbers, captured.neighbours, go_on)
    common = sketches.find_frequent(drawn)
    del drawn  # frees much memory for a large inbox
    return capture_attention.compare_pairs(
        captured.workspace, captured.captures, pairs, captured.texts, common=common, go_on=go_on
    )


def _find_relations(graph: Graph, workspace: str, report: attention_report.Report[Events]) -> tuple[Finding, ...]:
    """Return the relation candidates of a report on the graph as findings."""
    known = {vertex.name: vertex for vertex in graph.vertices()}
    findings = []
    for candidate in report.candidates:
        if candidate.node_a in known and candidate.node_b in known:
            ids = tuple(sorted((known[candidate.node_a].id, known[candidate.node_b].id)))
            key = key_of(workspace, "relate", ids, ())
            findings.append(Finding("relate", key, workspace, ids, (), ("", ""), candidate.score, candidate.rationale))
    return tuple(findings)


def _incomplete_reasons(captures: Sequence[DocumentOverview], rows: Collection[int], left_out: int) -> list[str]:
    """Return the reasons why the findings are incomplete."""
    reasons = []
    if lacking := len(captures) - len(rows):
        reasons.append(f"{pluralize(lacking, 'capture')} without vectors yet: Memex compared only the words")
    if left_out:
        reasons.append(f"Memex did not compare {pluralize(left_out, 'pair')} of captures that share only a few words")
    return reasons
