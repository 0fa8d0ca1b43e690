"""Stand-ins, written by hand, for what tests must not depend on: the model and the remote endpoint."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from index.encoders import Bundled, EncoderSettings, Kind

if TYPE_CHECKING:
    from index.embed import Embedder

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


def words(text: str) -> list[str]:
    """The words of `text`, each CJK character one word: what FakeEncoder takes for tokens."""
    return _WORD.findall(text.casefold())


@functools.lru_cache(maxsize=100_000)
def _direction(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


class FakeEncoder:
    """Texts that share words have similar vectors; deterministic, about 50,000 short texts a second."""

    def __init__(self, dimensions: int = 64, *, max_tokens: int = 256, identity: str = "fake", batch: int = 64) -> None:
        self.name = f"{identity} encoder"
        self.dimensions = dimensions
        self.max_tokens = max_tokens
        self.batch = batch
        self.identity = identity
        self.calls: list[tuple[Kind, bool, int]] = []  # (kind, urgent, number of texts) of every encode
        self.closed = False

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        self.calls.append((kind, urgent, len(texts)))
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in words(text)[: self.max_tokens]:
                vectors[row] += _direction(word, self.dimensions)
            if not vectors[row].any():
                vectors[row, 0] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(words(text)) for text in texts]

    def close(self) -> None:
        self.closed = True


def fake_embedder(encoder: FakeEncoder | None = None) -> Embedder:
    """A real Embedder, ready at once, over `encoder` (a FakeEncoder of 64 dimensions if left out)."""
    from index.embed import Embedder, EmbedSettings  # noqa: PLC0415 - importing the fakes stays cheap

    chosen = encoder or FakeEncoder()

    def load(_settings: EncoderSettings, _cache: Path) -> FakeEncoder:
        return chosen

    embedder = Embedder(EmbedSettings(encoders=(Bundled(),)), cache=Path("unused"), load=load)
    embedder.start()
    assert embedder.wait(5), embedder.problem
    return embedder
