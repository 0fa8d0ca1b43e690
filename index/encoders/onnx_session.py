"""Run a built ONNX graph: a tokenizer and an ONNX Runtime session, each used by several threads at once.

A session of one intra-op thread runs in the thread that calls it, so one session, with one copy of the weights,
serves queries and a backlog side by side. The embeddings are mapped, not read. A process with an Embedder holds 77 MB
of its own when ready and 138 MB while two threads work on a backlog (fp32; blocks: 48 and 116, int8: 46 and 112). The
memory arena stays on: without it no figure is lower. Texts that share a run are padded to the longest: beyond
RUN_TOKENS that costs more than it saves."""

from __future__ import annotations

from index.encoders import settings  # noqa: F401 - first: it sets what the libraries read when they are loaded

# isort: split
import logging
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as failures

from index.encoders.bundled_tokenizer import Tokenizer
from index.errors import Unavailable

log = logging.getLogger(__name__)

RUN_TOKENS = 128  # texts share a run while its padded tokens stay below this number
RUN_TEXTS = 8
SLOW = ["SkipLayerNormFusion"]  # optimizers of ONNX Runtime to leave out: the fused norm makes `blocks.onnx` slower
FAST = {"avx_vnni", "avx512_vnni", "asimddp"}  # what Linux calls the instructions for dot products of 8-bit numbers

FAILURES = tuple(  # ONNX Runtime's errors have no class in common but Exception
    kind for kind in vars(failures).values() if isinstance(kind, type) and issubclass(kind, Exception)
)

Each = Callable[[Callable[[list[int]], None], list[list[int]]], Iterable[None]]  # `map`, or that of a pool


def multiplies_blocks_fast(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether ONNX Runtime runs `blocks.onnx` at least as fast as `fp32.onnx` on this processor. An unknown processor counts as slow.

    Its kernels for MatMulNBits (onnxruntime 1.31: core/mlas/lib/platform.cpp chooses them, qnbitgemm.cpp calls them) pay where the processor
    has dot products of 8-bit numbers: AVX-VNNI, AVX-512 VNNI, or ASIMDDP, which all processors of Apple for Macs have. With AVX2 or AVX-512
    alone, batches take 1.2 to 1.5 times as long as in fp32; without both, a query takes 2.6 times as long. ARM is not measured."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    try:
        features = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo.read_text("utf-8"), re.MULTILINE)
    except OSError:
        return False
    return features is not None and not FAST.isdisjoint(features[1].split())


class Graph:
    """Holds a graph with its tokenizer; it never changes after its creation, so threads share it."""

    def __init__(
        self, graph: Path, tokenizer: Tokenizer, *, max_tokens: int, tensors: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Load the graph. `tensors` are those of its tensors that are in no file, by name; the session copies them."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            if tensors:
                values = [onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
                options.add_external_initializers(list(tensors), values)
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOW
            )
        except FAILURES as error:
            log.warning("loading the graph failed: %s", error)
            raise Unavailable("the bundled model can't be loaded (see the log); reinstall Memex") from error
        self._tokenizer = tokenizer
        self.dimensions = int(self._session.get_outputs()[0].shape[-1])
        self._max_tokens = max_tokens

    def compute_vectors(self, texts: Sequence[str], each: Each = map, *, threads: int = 1) -> np.ndarray:
        """Return one unit vector for each text; `each` distributes the runs, longest first, over threads.

        Texts that could share one run are divided among `threads`, if they are as many."""
        tokens = [self._tokenizer.encode(text, self._max_tokens) for text in texts]
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def run(rows: list[int]) -> None:
            ids = np.zeros((len(rows), max(len(tokens[row]) for row in rows)), np.int64)
            mask = np.zeros_like(ids)
            for place, row in enumerate(rows):
                ids[place, : len(tokens[row])] = tokens[row]
                mask[place, : len(tokens[row])] = 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            try:
                vectors[rows] = self._session.run(["sentence_embedding"], feed)[0]
            except FAILURES as error:
                log.warning("running the graph failed: %s", error)
                raise Unavailable("the bundled model failed (see the log); check the free memory") from error

        for _ in each(run, split_into_runs([len(ids) for ids in tokens], threads)):
            pass
        return vectors


def split_into_runs(lengths: Sequence[int], threads: int = 1) -> list[list[int]]:
    """Return the row numbers of texts with these lengths, grouped into runs: the longest first, and short ones together."""
    cut: list[list[int]] = []
    most = min(RUN_TEXTS, -(-len(lengths) // threads))
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        last = cut[-1] if cut else []
        if last and len(last) < most and lengths[last[0]] * (len(last) + 1) <= RUN_TOKENS:
            last.append(row)
        else:
            cut.append([row])
    return cut
