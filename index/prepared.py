"""A document on its way into an index: cut, embedded, and as the rows that it becomes.

Law: what an index holds is a function of the documents and of what `fingerprint` names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.chunk import CHUNKING, Sizes
from index.identity import path_id
from index.model import Chunk, Document, Stat
from index.query import tag_keys
from index.rows import Row

LAYOUT = 3  # grows when what is stored, or how a note is read, changes: the index is then built anew


def fingerprint(identity: str, sizes: Sizes) -> str:
    """What an index was built with: equal fingerprints give equal rows and vectors that may be compared."""
    made_by = {
        "encoder": identity,
        "sizes": [sizes.tokens, sizes.overlap, sizes.context],
        "chunking": CHUNKING,
        "layout": LAYOUT,
    }
    return hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()


def estimate(texts: Sequence[str]) -> list[int]:
    """Tokens of each text when no tokenizer is at hand: about four bytes each, one per wide character."""
    return [max(1, len(text.encode("utf-8", "replace")) // 4) for text in texts]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that is ready to be committed: cut, and embedded where an encoder was at hand."""

    document: Document
    stat: Stat
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32] | None  # [chunks, dimensions]; None = findable by words only, for now
    embedded: int  # how many of them the encoder was asked for
    reused: int  # how many were known by their digest


def rows_of(one: Prepared) -> Iterator[Row]:
    """The document's chunks as they are stored."""
    document = one.document
    tags = tag_keys(document.tags)
    for position, chunk in enumerate(one.chunks):
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
            vector=None if one.vectors is None else one.vectors[position],
        )
