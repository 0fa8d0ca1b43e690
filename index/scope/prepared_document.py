"""Prepare a document for its index: cut it into chunks, embed them, and convert them to rows.

Law: the content of an index is a function of the documents and of the inputs of `fingerprint`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.document_ids import path_id
from index.encoders.embedder import Embedder
from index.foreground import foreground
from index.model import Chunk, Document, Record, Stat
from index.observations.observation_rows import PerspectiveRow, make_facets
from index.observations.perspectives import Perspective, hash_perspectives
from index.process_memory import release_unused
from index.query import tag_keys
from index.scope.vector_reuse import Vectors
from index.storage.chunk_rows import Row
from index.text.chunking import CHUNKING, Count, Sizes, split_document

ROW_FIELDS = (
    "path", "workspace", "namespace", "collection", "type", "source", "title", "aliases", "tags", "created_at",
    "content_hash",
)  # fmt: skip
MANY = 2_000  # passages of one call above which memory is released early
LAYOUT = 4  # raise it when the stored data or the parsing of notes changes, so that the index is rebuilt


def fingerprint(identity: str, sizes: Sizes) -> str:
    """Return the fingerprint of an index: equal fingerprints mean equal rows and comparable vectors."""
    made_by = {
        "encoder": identity,
        "sizes": [sizes.tokens, sizes.overlap, sizes.context],
        "chunking": CHUNKING,
        "layout": LAYOUT,
    }
    return hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()


def has_same_rows(document: Document, record: Record) -> bool:
    """Return whether the passages of `document` would have the stored rows of `record`, so that at most other properties have changed."""
    return all(getattr(document, name) == getattr(record, name) for name in ROW_FIELDS)


def quarter_bytes(texts: Sequence[str]) -> list[int]:
    """Return a quarter of the bytes of each text, at least 1: about its tokens, for chunks that are cut without an encoder."""
    return [max(1, len(text.encode("utf-8", "replace")) // 4) for text in texts]


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """Holds a document that is ready for a commit: cut, and embedded if an encoder was available."""

    document: Document
    stat: Stat
    chunks: tuple[Chunk, ...]
    vectors: (
        NDArray[np.float16] | None
    )  # [chunks, dimensions], as they are stored; None = findable by words only, for now
    embedded: int  # number of texts that the encoder embedded
    reused: int  # number of texts whose vectors were already stored
    facets: tuple[PerspectiveRow, ...] = ()  # of a node's observations
    views: tuple[NDArray[np.floating[Any]] | None, ...] = ()  # the vector of each facet
    perspectives: str = ""  # `hash_perspectives` of the perspectives of the facets
    kept: int | None = (
        None  # how many rows are stored, all with vectors, and stay as they are; None = they are replaced
    )

    @property
    def chunk_count(self) -> int:
        """Return the number of chunks."""
        return len(self.chunks) if self.kept is None else self.kept

    @property
    def has_all_vectors(self) -> bool:
        """Return whether all chunks and facets have vectors."""
        if self.kept is not None:
            return True
        return self.vectors is not None and all(view is not None for view in self.views)

    @property
    def embedded_observations(self) -> int:
        """Return the number of observations with all their vectors."""
        lacking = {facet.ordinal for facet, view in zip(self.facets, self.views, strict=True) if view is None}
        return len({facet.ordinal for facet in self.facets} - lacking)


def prepare(
    documents: Sequence[tuple[Document, Stat]],
    *,
    sizes: Sizes,
    embedder: Embedder | None,
    vectors: Vectors,
    perspectives: Callable[[str], tuple[Perspective, ...]],
    urgent: bool,
    later: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[PreparedDocument]:
    """Cut `documents` and embed the texts without a stored vector in one call, without storing anything.

    With `later`, embed nothing."""
    count = embedder.count_tokens if embedder else quarter_bytes
    cut = list(_cut(documents, sizes, count, perspectives))
    if sum(len(pieces) for _, _, pieces, _ in cut) > MANY:
        release_unused()  # what cutting took, before the vectors need room
    node_facets = [make_facets(document, looks) for document, _, _, looks in cut]
    digests = [[chunk.digest for chunk in pieces] for _, _, pieces, _ in cut]
    known: dict[str, NDArray[np.float16]] = {}
    fresh: set[str] = set()
    for texts in _text_windows(cut, digests, node_facets):
        done = len(fresh)
        report = (lambda count, done=done: progress(done + count)) if progress else None
        by_digest, new = vectors.find(texts, None if later else embedder, urgent=urgent, progress=report)
        known |= {digest: np.asarray(vector, np.float16) for digest, vector in by_digest.items()}
        fresh.update(new)
    made = []
    for (document, stat, pieces, looks), row, seen in zip(cut, digests, node_facets, strict=True):
        views = tuple(known.get(facet.digest) for facet in seen)
        every = [*row, *(facet.digest for facet in seen)]
        embedded = sum(digest in fresh for digest in every)
        reused = sum(digest in known for digest in every) - embedded
        whole = np.array([known[digest] for digest in row], np.float16) if known.keys() >= set(row) else None
        made.append(
            PreparedDocument(document, stat, pieces, whole, embedded, reused, seen, views, hash_perspectives(looks))
        )
    return made


def _cut(
    documents: Sequence[tuple[Document, Stat]],
    sizes: Sizes,
    count: Count,
    perspectives: Callable[[str], tuple[Perspective, ...]],
) -> Iterator[tuple[Document, Stat, tuple[Chunk, ...], tuple[Perspective, ...]]]:
    """Yield each document with its passages and, of a node, the perspectives of its facts."""
    for document, stat in documents:
        foreground.pace()
        looks = perspectives(document.workspace) if document.node else ()
        yield document, stat, tuple(split_document(document, sizes, count)), looks


def _text_windows(
    cut: Sequence[tuple[Document, Stat, tuple[Chunk, ...], tuple[Perspective, ...]]],
    digests: Sequence[Sequence[str]],
    node_facets: Sequence[tuple[PerspectiveRow, ...]],
) -> Iterator[dict[str, str]]:
    """Yield the texts to embed by digest, each once and at most `MANY` at a time, because each text is composed for this."""
    taken: set[str] = set()
    texts: dict[str, str] = {}
    for (_, _, pieces, _), row, seen in zip(cut, digests, node_facets, strict=True):
        every: Iterator[tuple[str, Chunk | PerspectiveRow]] = chain(
            zip(row, pieces, strict=True), ((facet.digest, facet) for facet in seen)
        )
        for digest, piece in every:
            if digest not in taken:
                taken.add(digest)
                texts[digest] = piece.embedded
            if len(texts) == MANY:
                yield texts
                texts = {}
    if texts:
        yield texts


@dataclass(frozen=True, slots=True)
class ChunkRows(Collection[Row]):
    """Makes the stored rows of a document's chunks one by one, because all rows together may need much memory."""

    prepared: PreparedDocument

    def __len__(self) -> int:
        return len(self.prepared.chunks)

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def __iter__(self) -> Iterator[Row]:
        document, vectors = self.prepared.document, self.prepared.vectors
        tags = tag_keys(document.tags)
        for position, chunk in enumerate(self.prepared.chunks):
            text = chunk.embedded
            yield Row(
                chunk_id=f"{path_id(document.path)}-{chunk.ord}",
                doc_id=path_id(document.path),
                ord=chunk.ord,
                workspace=document.workspace,
                namespace=document.namespace,
                collection=document.collection,
                type=document.type,
                source=document.source,
                tags=tags,
                created_at=document.created_at,
                digest=chunk.digest,
                heading=" > ".join(chunk.trail),
                cut=len(text) - len(chunk.text),
                text=text,
                vector=None if vectors is None else vectors[position],
            )
