"""Run the bundled model, all-MiniLM-L6-v2, with ONNX Runtime: ready in a quarter of a second, without torch.

Loading compares one vector with the original model's, so Memex does not use a runtime that computes wrong vectors on this machine."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from index.encoders import bundled_files
from index.encoders.bundled_files import GraphName
from index.encoders.bundled_tokenizer import count_tokens, load_tokenizer
from index.encoders.onnx_session import Graph, multiplies_blocks_fast
from index.encoders.settings import BUNDLED_TOKENS, SAMPLE, BundledSettings, Kind, Precision, make_identity
from index.errors import Unavailable
from index.foreground import count_cores, foreground

log = logging.getLogger(__name__)

# How an identity names a precision. The vectors of `int8` changed when the weights were rounded to fp16 (cosine .98), so an older
# index with them is built again; those of `fp32` did not (.999998).
IDENTITY_PRECISIONS: Final[dict[Precision, str]] = {"fp32": "fp32", "int8": "int8-of-fp16"}
CLOSE: Final[dict[GraphName, float]] = {"fp32": 0.9999, "blocks": 0.995, "int8": 0.95}  # minimum cosine to the original
REFERENCE: Final = (  # the vector of SAMPLE by sentence-transformers in fp32, as signed bytes in base85
    "xF_`BKr%-9Hxo4>1mW)0Gxz}$5$X{T@$u~kECbdJF%b?#-4yi-5Z>_k+Be-V*&oFJ;vm)lH{jIK0RP_=Feldo3)tB2-VyW3`2ot)"
    "_rugH{3jC@PaV<XJ?!oz^Drd~KQaOZ5y}*{1>glKC^Bv&tTO!0ND9~S;2}o<0T#*j^zYjZ?;sq!CMn<;yG95)2lo#&8XmUp5Af$1"
    "D$^nR;>R8K%=Yc7?T?rT^j<p_I_UQQBoOcn7epB(`3@BTGVRm@<Nem&;U+Z_zuNll?)w6P0w?YIo=hkJI?A^Qw(0Hv4-}IW=rR7a"
    "CEWD%8QeJ{4K^YL`o{&f+W`p6KNj6MHWCaD;s6yP3jQ$r4*;h*N9F?f^&RB^{1OZW`~)fD*vcmh!^h6p+ruy{ANZ=~;Nbcj{_?f}"
    "nH3)J7|9{K7WFid{s8#u7yPpC{^|bo+0+?L_3`vOW&27lJLgB(&|16^JrDoE4EXiI6L}isNbW!dEigP4"
)


class BundledEncoder:
    """Encodes urgent texts at once in the calling thread, which a second one may help, and a backlog on `threads` threads beside it."""

    def __init__(self, settings: BundledSettings, *, threads: int = 0) -> None:
        self.name = f"the bundled model ({settings.precision})"
        self.max_tokens = BUNDLED_TOKENS
        self._graph = _choose_graph(settings.precision)
        self.dimensions = self._graph.dimensions
        self.identity = make_identity(
            weights=bundled_files.WEIGHTS,
            pooling="mean",
            tokens=self.max_tokens,
            precision=IDENTITY_PRECISIONS[settings.precision],
            query="",
            document="",
        )
        workers = threads or min(4, count_cores())
        self.batch = 16 * workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="encoder")
        self._closed = threading.Event()

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:  # noqa: ARG002 - no prompts
        """Return one unit vector for each text; the model treats queries and documents alike."""
        try:
            if urgent:
                # In the same runs whether or not the second thread is free, because a run changes vectors slightly.
                return self._graph.compute_vectors(texts, self._share, threads=min(2, count_cores()))
            return self._graph.compute_vectors(texts, self._spread)
        except CancelledError as error:
            raise Unavailable("the encoder is closed", retryable=False) from error
        except RuntimeError as error:
            if not self._closed.is_set():
                raise
            raise Unavailable("the encoder is closed", retryable=False) from error  # a pool that is shut down

    @staticmethod
    def _share(work: Callable[[Any], Any], batches: Sequence[Any]) -> Iterable[Any]:
        """Run `work` for each batch in this thread, and in a second one if the call runs alone; the result is empty."""
        left = iter(batches)

        def work_off() -> None:
            for batch in left:  # each thread takes the next one that is left
                work(batch)

        if len(batches) > 1:
            foreground.run_both(work_off, work_off)
        else:
            work_off()
        return ()

    def _spread(self, work: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
        """Run `work` for each batch on the threads. In a bulk, each thread gives way before its next batch, because a query needs a core too."""
        is_bulk = foreground.is_bulk

        def pace_and_work(batch: Any) -> Any:
            with foreground.bulk(is_bulk):
                foreground.pace()
            return work(batch)

        return self._pool.map(pace_and_work, batches)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text without special tokens."""
        return count_tokens(texts)

    def close(self) -> None:
        """Drop the backlog; running work ends after the current batch."""
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def load_graph(name: GraphName) -> Graph:
    """Load a graph with its weights. Raises Unavailable if a file is missing or damaged."""
    file = bundled_files.find_graph(name)
    return Graph(file, load_tokenizer(), max_tokens=BUNDLED_TOKENS, tensors=bundled_files.compute_tensors(name))


def measure_agreement(graph: Graph, references: Mapping[str, str]) -> float:
    """Return the lowest cosine between the graph's vectors of some texts and the original's."""
    original = np.stack([np.frombuffer(base64.b85decode(code), np.int8) for code in references.values()])
    unit = original / np.linalg.norm(original.astype(np.float32), axis=1, keepdims=True)
    return float((graph.compute_vectors(list(references)) * unit).sum(axis=1).min())


def _choose_graph(precision: Precision) -> Graph:
    """Load the graph that is the fastest for this precision on this processor. Raises Unavailable if it gives other vectors."""
    if precision == "fp32" and multiplies_blocks_fast():
        try:
            return _load_checked("blocks")
        except Unavailable as error:
            log.warning("%s; the fp32 graph is used instead, which gives the same vectors, but is slower", error)
    return _load_checked(precision)


def _load_checked(name: GraphName) -> Graph:
    graph = load_graph(name)
    cosine = measure_agreement(graph, {SAMPLE: REFERENCE})
    if not cosine >= CLOSE[name]:
        message = f"the {name} graph does not give the model's vectors on this machine (cosine {cosine:.4f}); "
        raise Unavailable(message + "name a sentence-transformers encoder under [embed]", retryable=False)
    return graph
