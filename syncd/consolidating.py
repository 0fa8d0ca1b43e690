"""Look through a workspace for what needs attention: values from the indexes, the decisions, and how long it may take.

Law: it reads and writes nothing else; no text of one workspace is compared with another's, and none of the vault proper."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import index.sketch as sketches
from index import similar
from index.encoders.familiar import places
from index.model import Noted
from index.names import stem
from index.sketch import Sketch
from syncd import alike, attention, consolidate
from syncd.audit import Events
from syncd.findings import Finding, Findings, key_of
from syncd.grouping import groups

if TYPE_CHECKING:
    from index.index import Index

UNUSED: Final = 10  # captures that are proposed for the archive: it is the least certain of all
EMPTY: Final = sketches.sketch("")


def found(
    index: Index,
    workspace: str,
    graph: consolidate.Report[Events],
    *,
    linked: Collection[str],
    now: int,
    go_on: attention.GoOn = lambda: None,
    limit: int = attention.LIMIT,
) -> Findings[Events]:
    """What needs attention in `workspace`. `linked`: the names of notes, as `stem` has them, to which a note links.

    Whatever `go_on` raises ends it."""
    documents = index.documents(workspace)
    captures = [one for one in documents if one.type != "entity"]
    number = {one.key: n for n, one in enumerate(captures)}

    def texts(asked: Sequence[int]) -> dict[int, str]:
        said = index.texts_of([captures[n].key for n in asked])
        return {number[key]: text for key, text in said.items()}

    made: list[Sketch] = [EMPTY] * len(captures)
    for some in index.texts(workspace):
        go_on()
        for key, text in some.items():
            if key in number:
                made[number[key]] = sketches.sketch(text)
    keys, matrix = index.directions(workspace)
    kept = [row for row, key in enumerate(keys) if key in number]
    rows, matrix = [number[keys[row]] for row in kept], matrix if len(kept) == len(keys) else matrix[kept]
    go_on()
    part = alike.part(rows, matrix)
    neighbours = similar.nearest(matrix, similar.MUTUAL, min(part.near, attention.NEAR))
    go_on()
    pairs = attention.likely(made, rows, neighbours, go_on)
    common = sketches.common(made)
    del made
    compared = attention.compared(workspace, captures, pairs, texts, places(), common=common, go_on=go_on)
    del common
    go_on()
    clusters, clustered = groups(captures, part, neighbours, texts, places(), limit=limit)
    unused = attention.unused(
        workspace, captures, linked={one.id for one in captures if stem(one.path) in linked}, found={}, now=now
    )
    synonyms = attention.vocabulary(workspace, documents, places())
    relations = _relations(index, workspace, graph)
    lists = {
        "duplicates": compared.duplicates,
        "near": compared.near,
        "supersedes": compared.supersedes,
        "relations": relations,
        "unused": unused,
        "synonyms": synonyms,
    }
    cut = {name: findings[: min(limit, UNUSED) if name == "unused" else limit] for name, findings in lists.items()}
    shown = {id for findings in cut.values() for one in findings for id in one.ids}
    shown |= {id for one in clusters for id in one.ids}
    return Findings(
        workspace=workspace,
        documents=len(documents),
        **cut,
        clusters=tuple(clusters),
        graph=graph,
        named={one.id: one for one in documents if one.id in shown},
        of={name: len(findings) for name, findings in lists.items()} | {"clusters": clustered},
        degraded=(*_partly(captures, rows, compared.left_out), *graph.degraded),
    )


def _relations(index: Index, workspace: str, graph: consolidate.Report[Events]) -> tuple[Finding, ...]:
    """The relation candidates of the graph, as proposals."""
    known = {one.name: one for one in index.graph(workspace).vertices()}
    found = []
    for one in graph.candidates:
        if one.node_a in known and one.node_b in known:
            ids = tuple(sorted((known[one.node_a].id, known[one.node_b].id)))
            key = key_of(workspace, "relate", ids, ())
            found.append(Finding("relate", key, workspace, ids, (), ("", ""), one.score, one.rationale))
    return tuple(found)


def _partly(captures: Sequence[Noted], rows: Collection[int], left_out: int) -> list[str]:
    """What kept it from being whole."""
    said = []
    if lacking := len(captures) - len(rows):
        said.append(f"{lacking} captures have no vectors yet, and are compared by their words alone")
    if left_out:
        said.append(f"{left_out} pairs of captures that share a little were not compared")
    return said
