"""The yardsticks: what this machine needs for fixed work that no change of Memex can make faster or slower.

Law: nothing here calls Memex, but for finding the bundled model's graph; texts, sizes, threads and requests are fixed for ever.
A row is a multiple of a yardstick that was measured beside it, so a slower machine or a busy neighbour cancels."""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import httpx2
import numpy as np
import onnxruntime
import psutil
from tokenizers import Tokenizer

from index.encoders import bundled_files
from tests.bench.measure import private_memory
from tests.support.paths import ROOT

# Each is one token of the bundled model, so a text of n words is n tokens.
WORDS = [
    "water",
    "time",
    "house",
    "river",
    "garden",
    "paper",
    "music",
    "winter",
    "summer",
    "market",
    "letter",
    "window",
    "number",
    "station",
    "machine",
    "mother",
    "father",
    "school",
    "street",
    "morning",
    "evening",
    "country",
    "village",
    "history",
    "language",
    "science",
    "weather",
    "doctor",
    "teacher",
    "island",
    "bridge",
    "kitchen",
    "engine",
    "forest",
    "mountain",
    "castle",
    "church",
    "hospital",
    "library",
    "museum",
]
QUERY_WORDS = (2, 3, 4, 5, 6)
RUN_TOKENS, RUN_TEXTS, THREADS = 128, 8, 4

# How many chunks of each length, in tokens from SHORTEST on, 1,000 generated notes of 300 words had at commit b1ced60.
SHORTEST = 12
COUNTS = [
    int(count)
    for count in """
    62 74 26 12 1 1 1 2 2 2 2 2 3 3 6 2 1 2 3 3 2 5 3 1 2 1 4 5 1 3 3 5 2 2 2 2 2 2 5 3 2 4 4 1 1 1 0 3 5 4 1 3 0 5
    1 5 7 3 8 8 3 6 8 11 6 3 5 14 3 5 2 3 3 8 13 8 6 8 9 13 7 9 14 8 6 12 11 18 6 10 5 10 7 6 6 8 3 5 4 6 4 5 6 11 1
    7 5 4 12 5 3 5 10 3 7 3 8 8 5 8 16 16 11 17 8 11 15 11 10 13 14 10 17 20 12 11 9 17 17 20 4 18 14 13 23 21 9 17
    15 20 16 17 16 11 17 16 15 21 13 11 15 17 12 12 17 13 19 14 13 15 16 18 12 16 16 13 24 20 19 19 9 11 17 10 11 12
    20 19 10 14 14 11 15 17 15 17 14 10 18 14 16 18 15 25 23 14 22 14 19 18 12 12 13 18 17 15 20 17 19 10 15 22 15
    18 10 11 9 15 15 16 20 11 16 17 11 9 12 9 6 4 3 7 5
    """.split()  # noqa: SIM905 - as above
]
PAUSES, PAUSE_S = 40, 0.01  # encodings that follow a pause, and the pause: about what a daemon waits for its client
BLOCKS = 8  # turns that calls and a yardstick take, so that both meet the same neighbours


@dataclass(frozen=True, slots=True)
class Child:
    """What a process of its own took, from its start to its end."""

    seconds: float
    cpu: float  # seconds of CPU


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


@dataclass(frozen=True, slots=True)
class Beside:
    """Calls, and a yardstick that took turns with them: milliseconds each."""

    calls: list[float]
    yard: list[float]
    yard_cpu: float  # milliseconds of CPU of the median one

    @property
    def unit(self) -> float:
        """The median of the yardstick, in milliseconds."""
        return median(self.yard)

    @property
    def ratios(self) -> dict[str, float]:
        """Median to median, and 95th percentile to 95th percentile: a neighbour delays both."""
        return {"p50": median(self.calls) / self.unit, "p95": _p95(self.calls) / _p95(self.yard)}


class Encoder:
    """The bundled model in fp32 on ONNX Runtime, as Memex ran it when this yardstick was fixed, but for weights that are stored in fp16."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        graph = bundled_files.find_graph("fp32")
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_str(bundled_files.read_tokenizer())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts of about the same length, in one run."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(tokens):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        vectors: np.ndarray = self._session.run(["sentence_embedding"], feed)[0]
        return vectors


@cache
def encoder() -> Encoder:
    """The one of this process."""
    return Encoder()


def query() -> None:
    """Encode one query of two to six words, in one thread: `one bare query encoding`."""
    encoder().encode([next(_QUERIES)])


def _texts(lengths: Sequence[int], seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=length)) for length in lengths]


def _endless_queries() -> Iterator[str]:
    while True:
        yield from _texts(QUERY_WORDS * 20, 11)


_QUERIES = _endless_queries()


def chunk_lengths() -> list[int]:
    """The tokens of each chunk, in the order in which they are encoded: longest first."""
    return sorted((length for length, count in enumerate(COUNTS, SHORTEST) for _ in range(count)), reverse=True)


def runs(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Texts of these lengths, longest first, cut into runs: where each begins and ends."""
    cut: list[tuple[int, int]] = []
    for at, length in enumerate(lengths):
        first, last = cut[-1] if cut else (0, 0)
        longest = (lengths[first] if cut else length) + 2
        if cut and last - first < RUN_TEXTS and longest * (last - first + 1) <= RUN_TOKENS:
            cut[-1] = (first, at + 1)
        else:
            cut.append((at, at + 1))
    return cut


def batches(every: int = 1) -> float:
    """Encode the chunks of 1,000 notes, or every so many of them, on all cores, four at most: the seconds of `the bare batches`."""
    lengths = chunk_lengths()[::every]
    texts = _texts(lengths, 7)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(THREADS, cores)) as pool:
        begun = time.perf_counter()
        for _ in pool.map(lambda run: encoder().encode(texts[slice(*run)]), runs(lengths)):
            pass
        return time.perf_counter() - begun


def child(*command: str, environ: Mapping[str, str] | None = None) -> Child:
    """Run a command to its end. Its output is thrown away; it must succeed."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environ)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Child(seconds, used.ru_utime + used.ru_stime)


IMPORTS = "import lancedb, onnxruntime, mcp"  # what the daemon can't do without


def imports() -> Child:
    """Import three libraries in a process of its own: `the imports`."""
    return child(sys.executable, "-c", IMPORTS)


@cache
def imports_memory() -> tuple[float, float]:
    """Resident memory of a process that did nothing but import them, and its private part, in MB: `the memory of the imports`."""
    command, pipe = [sys.executable, "-c", f"{IMPORTS}; print(flush=True); input()"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        resident, private = psutil.Process(process.pid).memory_info().rss / 1e6, private_memory(process.pid)
        process.communicate("\n")
    return resident, private


def interpreter() -> Child:
    """Start Python with the parts of its library that any client needs: `a bare Python`."""
    return child(sys.executable, "-I", "-c", "import argparse, asyncio, http.client, json, sqlite3, ssl")


@cache
def _scratch_name(parent: Path) -> Path:
    return parent / f"yard-{secrets.token_hex(4)}"


def _scratch(parent: Path) -> Path:
    """A folder of this process in `parent`, which a measurement that is repeated may have removed."""
    folder = _scratch_name(parent)
    if not folder.is_dir():  # creating it anyway would count: one fsync takes 160 µs
        folder.mkdir()
    return folder


def fsync(folder: Path) -> None:
    """Append 4 KiB to a file of `folder` and bring them to the disk: `one fsync`."""
    with (_scratch(folder) / "synced").open("ab") as file:
        file.write(b"x" * 4096)
        file.flush()
        os.fsync(file.fileno())


def git_status(folder: Path, files: int = 1_000) -> None:
    """Ask Git what has changed among 1,000 files, of which none has: `one git status`."""
    root = _scratch(folder) / "repository"
    if not root.is_dir():
        root.mkdir()
        for number in range(files):
            (root / f"{number}.md").write_text(f"note {number}\n", "utf-8")
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", str(root), *words], check=True)
    subprocess.run(["git", "-C", str(root), "status", "--porcelain"], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def echo() -> Iterator[Callable[[], None]]:
    """A server that does nothing but answer, on uvicorn as Memex's; what is yielded asks it once: `one echo`."""
    command = [sys.executable, "-m", "tests.bench.echo"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"limit": 1}},
        }
        with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
            yield lambda: client.post("/mcp", json=body).raise_for_status() and None
    finally:
        serving.terminate()
        serving.wait(30)


def unit(yardstick: Callable[[], object] = query, times: int = 30) -> float:
    """The median of a yardstick on its own, in milliseconds, for what can't take turns with it."""
    return beside([lambda: None] * times, yardstick, 1).unit


def unit_after_pauses() -> float:
    """The median of `one query encoding` in milliseconds if the process waits before each: the caches have lost the weights."""
    return beside([lambda: time.sleep(PAUSE_S)] * PAUSES, query, PAUSES).unit


def page_reads(pages: int = 1_000, pause_s: float = 3.0) -> tuple[float, float]:
    """Return the microseconds to read one number of a page of memory: at once again, and after a pause.

    On a virtual machine whose host looks at which memory is used, the second is thousands of times the first. An idle
    daemon wakes after pauses, so there it takes many times the CPU that it takes on other machines."""
    numbers = np.ones(300 << 17)  # 300 MB
    on_each = np.random.default_rng(1).permutation(len(numbers) // 512)[:pages] * 512

    def read() -> float:
        begun = time.thread_time_ns()
        numbers[on_each].sum()
        return (time.thread_time_ns() - begun) / 1000 / pages

    again = median(read() for _ in range(30))
    after = []
    for _ in range(3):
        time.sleep(pause_s)
        after.append(read())
    return again, median(after)


def beside(calls: Sequence[Callable[[], object]], yardstick: Callable[[], object], blocks: int = BLOCKS) -> Beside:
    """Make the calls and measure the yardstick as often, in turns of a few each."""
    spent: list[float] = []
    yard: list[float] = []
    cpu: list[float] = []
    yardstick()
    size = max(1, -(-len(calls) // blocks))
    for start in range(0, len(calls), size):
        block = calls[start : start + size]
        for call in block:
            begun = time.perf_counter()
            call()
            spent.append((time.perf_counter() - begun) * 1000)
        for _ in block:
            begun, used = time.perf_counter(), time.thread_time()
            yardstick()
            yard.append((time.perf_counter() - begun) * 1000)
            cpu.append((time.thread_time() - used) * 1000)
    return Beside(spent, yard, median(cpu))
