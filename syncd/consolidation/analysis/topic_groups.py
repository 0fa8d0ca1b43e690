"""Group the captures of a workspace by topic, and label each group in a few words.

Law, tested: the label of a group consists of words that its captures share, or is empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from index.model import DocumentOverview
from index.search.vector_similarity import Neighbours
from index.text.key_terms import Reader, choose_label
from syncd.consolidation.analysis.findings import Group
from syncd.graph.similar_nodes import ComparedNodes
from syncd.notes.secret_patterns import redact

SMALLEST: Final = 3  # captures of a group; two similar captures are reported as a pair, if at all

Texts: TypeAlias = Callable[[Sequence[int]], Mapping[int, str]]


def find_groups(
    captures: Sequence[DocumentOverview],
    part: ComparedNodes,
    neighbours: Neighbours,
    texts: Texts,
    places: Mapping[str, int],
    *,
    limit: int,
) -> tuple[list[Group], int]:
    """Return the `limit` largest groups, and the number of all groups. `part` has the captures by their numbers."""
    clusters = [group for group in part.find_clusters(neighbours) if len(group) >= SMALLEST]
    shown = [sorted(group) for group in clusters[:limit]]
    members = sorted({n for group in shown for n in group})
    reader, contents = Reader(places, redact), texts(members)
    note_texts = {n: (captures[n].title, contents.get(n, "")) for n in members}
    terms = {n: reader.terms(note_texts[n][0], note_texts[n][1:])[1] for n in members}
    holders: dict[str, list[int]] = defaultdict(list)
    for n in members:
        for key in terms[n]:
            holders[key].append(n)
    return [
        Group(
            tuple(captures[n].id for n in group),
            choose_label(
                [terms[n] for n in group],
                holders,
                len(members),
                tags=[captures[n].tags for n in group],
                phrases=[reader.phrases(note_texts[n]) for n in group],
                reader=reader,
            ),
        )
        for group in shown
    ], len(clusters)
