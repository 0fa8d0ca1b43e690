"""Reuse the vectors of texts that are stored or were just computed, and embed only the other texts.

Law, tested: a text whose vector is known is not embedded again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.encoders.embedder import Embedder
from index.errors import Unavailable

LATEST: Final = 1_000  # vectors in memory: a note that was just edited is often edited again

Vector: TypeAlias = NDArray[np.floating[Any]]  # those made just now in 16 bits, as they are stored
Stored: TypeAlias = Callable[[Collection[str]], Mapping[str, Vector]]


@dataclass(frozen=True, slots=True)
class FoundVectors:
    """Holds the available vectors of texts by digest, and which of them were just computed."""

    vectors: Mapping[str, Vector]
    fresh: frozenset[str]


class Vectors:
    """Finds the vectors of texts; safe to use from any thread."""

    def __init__(self, *stored: Stored) -> None:
        self._stored = stored
        self._latest: dict[str, Vector] = {}
        self._lock = threading.Lock()

    def with_lent(self, lent: Stored) -> Vectors:
        """Return these vectors together with those that `lent` gives, for one call."""
        return Vectors(*self._stored, lent)

    def find(
        self,
        texts: Mapping[str, str],
        embedder: Embedder | None,
        *,
        urgent: bool,
        progress: Callable[[int], None] | None = None,
    ) -> FoundVectors:
        """Return the vectors of `texts`, which are given by their digests.

        Without an embedder that works, `urgent` raises Unavailable; else some are missing."""
        known = self._recall(texts)
        for stored in self._stored:
            read = stored(texts.keys() - known.keys())
            known |= read
            if urgent:
                self._remember(read)
        unknown = {digest: text for digest, text in texts.items() if digest not in known}
        if not unknown or embedder is None:
            return FoundVectors(known, frozenset())
        try:
            made = embedder.embed_documents(list(unknown.values()), urgent=urgent, progress=progress, dtype=np.float16)
        except Unavailable:
            if urgent:
                raise  # a capture is refused; a note of the vault is indexed by words until the encoder works again
            return FoundVectors(known, frozenset())
        fresh = dict(zip(unknown, made, strict=True))
        if urgent:
            self._remember(fresh)
        return FoundVectors(known | fresh, frozenset(fresh))

    def _recall(self, digests: Collection[str]) -> dict[str, Vector]:
        with self._lock:
            vectors = {digest: vector for digest in digests if (vector := self._latest.pop(digest, None)) is not None}
            self._latest |= vectors  # the latest stand last
            return vectors

    def _remember(self, fresh: Mapping[str, Vector]) -> None:
        with self._lock:
            self._latest |= {digest: vector.copy() for digest, vector in fresh.items()}
            for digest in list(self._latest)[: max(0, len(self._latest) - LATEST)]:
                del self._latest[digest]
