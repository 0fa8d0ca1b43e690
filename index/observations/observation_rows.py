"""Convert an observation under a perspective to its row in the store, and back; only this module defines the columns.

    doc_id      the key of the node's path; the rows of a node are replaced together
    ord         the observation's place in its node * 32 + the perspective's place in the table
    heading     the observation's ordinal
    type        the perspective's name, because this column has an index for few values and is otherwise unused
    text, cut   the node's name and the observation, under the first perspective only, so that words are indexed once
    digest      of the embedded text, for finding its vector again

Law, tested: `to_observation` reads what `facet_rows` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from index.document_ids import path_id, sha256
from index.model import Document
from index.observations.perspectives import MOST, Perspective, observation_text
from index.storage.chunk_rows import Match, Row

PLACES: Final = MOST


@dataclass(frozen=True, slots=True)
class PerspectiveRow:
    """Describes one observation under one perspective."""

    ord: int
    ordinal: int
    perspective: str
    embedded: str  # the text that is embedded
    digest: str  # of the embedded text


@dataclass(frozen=True, slots=True)
class FoundObservation:
    """Describes an observation that a search found."""

    key: str  # of its node's path
    place: int  # in its node
    ordinal: int
    perspective: str | None  # None: by its words
    score: float


def make_facets(document: Document, perspectives: Sequence[Perspective]) -> tuple[PerspectiveRow, ...]:
    """Return every observation of the node that `document` is, under each of `perspectives`; none for any other note."""
    if document.node is None:
        return ()
    facets = []
    for place, observation in enumerate(document.node.observations):
        for n, perspective in enumerate(perspectives):
            text = observation_text(perspective, document.node.name, observation.content)
            digest = sha256(text.encode("utf-8", "surrogatepass"))
            facets.append(PerspectiveRow(place * PLACES + n, observation.ordinal, perspective.name, text, digest))
    return tuple(facets)


def facet_rows(
    document: Document, facets: Sequence[PerspectiveRow], vectors: Sequence[np.ndarray | None]
) -> Iterator[Row]:
    """Yield the facets of a document as they are stored."""
    if document.node is None:
        return
    key = path_id(document.path)
    for facet, vector in zip(facets, vectors, strict=True):
        place, perspective = divmod(facet.ord, PLACES)  # the row of the first perspective indexes the words
        lead = "" if perspective else f"{document.node.name}\n"
        content = "" if perspective else document.node.observations[place].content
        yield Row(
            chunk_id=f"{key}-{facet.ord}",
            doc_id=key,
            ord=facet.ord,
            workspace=document.workspace,
            namespace=document.namespace,
            collection=document.collection,
            type=facet.perspective,
            source=None,
            tags=(),
            created_at=document.created_at,
            digest=facet.digest,
            heading=str(facet.ordinal),
            cut=len(lead),
            text=lead + content,
            vector=vector,
        )


def to_observation(match: Match | Row, perspective: str | None, score: float) -> FoundObservation:
    """Return the observation that a row stands for."""
    return FoundObservation(match.doc_id, match.ord // PLACES, int(match.heading), perspective, score)
