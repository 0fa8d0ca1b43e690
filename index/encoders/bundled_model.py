"""Run the bundled model, all-MiniLM-L6-v2, with ONNX Runtime: ready in a quarter of a second, without torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from index.encoders import onnx_export
from index.encoders.onnx_session import Graph
from index.encoders.settings import BUNDLED_TOKENS, BundledSettings, Kind, make_identity
from index.errors import Unavailable


class BundledEncoder:
    """Urgent texts run at once in the thread that asks; a backlog runs on `threads` threads beside them."""

    def __init__(
        self, settings: BundledSettings, *, cache: Path, threads: int = 0, installed: Path = onnx_export.INSTALLED
    ) -> None:
        self.name = f"the bundled model ({settings.precision})"
        self.max_tokens = BUNDLED_TOKENS
        graph = onnx_export.find_graph(settings.precision, cache, installed=installed)
        self._graph = Graph(graph, onnx_export.read_tokenizer(), max_tokens=self.max_tokens)
        self.dimensions = self._graph.dimensions
        self.identity = make_identity(
            weights=onnx_export.WEIGHTS,
            pooling="mean",
            tokens=self.max_tokens,
            precision=settings.precision,
            query="",
            document="",
        )
        workers = threads or min(4, _count_cores())
        self.batch = 16 * workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="encoder")
        self._closed = threading.Event()

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:  # noqa: ARG002 - no prompts
        """One unit vector a text; queries and documents are treated alike."""
        try:
            return self._graph.compute_vectors(texts, map if urgent else self._pool.map)
        except CancelledError as error:
            raise Unavailable("the encoder is closed", retryable=False) from error
        except RuntimeError as error:
            if not self._closed.is_set():
                raise
            raise Unavailable("the encoder is closed", retryable=False) from error  # a pool that is shut down

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens left out."""
        return self._graph.count_tokens(texts)

    def close(self) -> None:
        """Drop the backlog; what runs ends within one run."""
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _count_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
