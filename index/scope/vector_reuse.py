"""Reuse the vectors of texts that are stored or were just computed, and embed only the other texts.

Law, tested: a text whose vector is known is not embedded again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.encoders.embedder import Embedder
from index.errors import Unavailable
from index.foreground import foreground

LATEST: Final = 1_000  # vectors in memory: a note that was just edited is often edited again

Vector: TypeAlias = NDArray[np.floating[Any]]  # those made just now in 16 bits, as they are stored


class VectorSource(Protocol):
    """Describes a store of vectors by the digests of their texts."""

    def known_digests(self, digests: Collection[str]) -> set[str]:
        """Return those of `digests` that may be stored, without reading the store; no other is stored."""

    def vectors(self, digests: Collection[str]) -> Mapping[str, Vector]:
        """Return the vectors of the texts with these digests, as far as they are stored."""


class Vectors:
    """Finds the vectors of texts; safe to use from any thread."""

    def __init__(self, *sources: VectorSource) -> None:
        self._sources = sources
        self._latest: dict[str, Vector] = {}
        self._lock = threading.Lock()

    def find(
        self,
        texts: Mapping[str, str],
        embedder: Embedder | None,
        *,
        urgent: bool,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[dict[str, Vector], Collection[str]]:
        """Return the vectors of `texts`, which are given by their digests, and the digests of those that were just computed.

        Texts that no store has are embedded while the stores are read, if a second core is free. Without an embedder that
        works, `urgent` raises Unavailable; else some are missing."""
        known = self._recall(texts)
        sought = texts.keys() - known.keys()
        stored = set[str]().union(*(source.known_digests(sought) for source in self._sources))
        embed = partial(_embed, texts, embedder, urgent=urgent, progress=progress)
        fresh, read = foreground.run_both(partial(embed, sought - stored), partial(self._read, stored))
        if lost := stored - read.keys():
            done = len(fresh)
            fresh |= embed(lost, progress=(lambda count: progress(done + count)) if progress else None)
        if urgent:
            self._remember(read | fresh)
        return known | read | fresh, fresh.keys()

    def _read(self, digests: Collection[str]) -> dict[str, Vector]:
        read: dict[str, Vector] = {}
        for source in self._sources:
            if sought := digests - read.keys():
                read |= source.vectors(sought)
        return read

    def _recall(self, digests: Collection[str]) -> dict[str, Vector]:
        with self._lock:
            vectors = {digest: vector for digest in digests if (vector := self._latest.pop(digest, None)) is not None}
            self._latest |= vectors  # the latest used come last
            return vectors

    def _remember(self, fresh: Mapping[str, Vector]) -> None:
        with self._lock:
            self._latest |= {digest: vector.copy() for digest, vector in fresh.items()}
            for digest in list(self._latest)[: max(0, len(self._latest) - LATEST)]:
                del self._latest[digest]


def _embed(
    texts: Mapping[str, str],
    embedder: Embedder | None,
    wanted: Collection[str],
    *,
    urgent: bool,
    progress: Callable[[int], None] | None,
) -> dict[str, Vector]:
    """Return the vectors of the `wanted` texts; none without an embedder that works, unless `urgent` raises Unavailable."""
    unknown = [digest for digest in texts if digest in wanted]  # in the order of the texts
    if not unknown or embedder is None:
        return {}
    try:
        made = embedder.embed_documents(
            [texts[digest] for digest in unknown], urgent=urgent, progress=progress, dtype=np.float16
        )
    except Unavailable:
        if urgent:
            raise  # a capture is refused; a note of the vault is indexed by words until the encoder works again
        return {}
    return dict(zip(unknown, made, strict=True))
