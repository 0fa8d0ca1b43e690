"""Measure the baseline of similarity that a prompt adds to all texts, so that perspectives can be compared.

A prompt is a part of every text under its perspective, so all similarities rise with its length. Without a correction, the
longest prompt would be the best perspective of every observation. The correction is the average increase of similarity
between the query and unrelated plain sentences that the prompt causes.

Law, tested: under one perspective the correction keeps the order, and without a prompt the score is the cosine similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from index.observations.perspectives import Perspective, query_text

if TYPE_CHECKING:  # it loads libraries that only its owner needs
    from index.encoders.embedder import Embedder

Point: TypeAlias = tuple[Perspective, np.ndarray, float]  # of a query, and what the prompt adds to similarities with it

PLAIN: Final = Perspective("plain", "")
SENTENCES: Final = (
    "It is raining.",
    "The weather was mild.",
    "It is stored in a table.",
    "She called him later.",
    "Prices rose again.",
    "The file is large.",
    "We will meet there.",
    "Music played all night.",
)


class SimilarityBaselines:
    """Measures what each prompt adds to similarities with each encoder, at the first use."""

    def __init__(self) -> None:
        self._centres: dict[tuple[str, str], np.ndarray] = {}  # by encoder and prompt

    def query_points(self, query: str, perspectives: Sequence[Perspective], embedder: Embedder) -> list[Point]:
        """Return the query under each perspective."""
        texts = dict.fromkeys(query_text(perspective, query) for perspective in (PLAIN, *perspectives))
        vectors = dict(zip(texts, embedder.embed_queries(list(texts)), strict=True))
        centres = self._measure((PLAIN, *perspectives), embedder)

        def baseline(perspective: Perspective) -> float:
            return float(vectors[query_text(perspective, query)] @ centres[perspective.prompt])

        return [
            (perspective, vectors[query_text(perspective, query)], baseline(perspective) - baseline(PLAIN))
            for perspective in perspectives
        ]

    def _measure(self, perspectives: Sequence[Perspective], embedder: Embedder) -> Mapping[str, np.ndarray]:
        known, encoder = self._centres, embedder.identity
        new = {
            perspective.prompt: perspective
            for perspective in perspectives
            if (encoder, perspective.prompt) not in known
        }
        if new:
            made = embedder.embed_documents(
                [query_text(perspective, text) for perspective in new.values() for text in SENTENCES], urgent=True
            )
            means = made.reshape(len(new), len(SENTENCES), -1).mean(axis=1)
            known.update({(encoder, prompt): mean for prompt, mean in zip(new, means, strict=True)})
        return {perspective.prompt: known[encoder, perspective.prompt] for perspective in perspectives}
