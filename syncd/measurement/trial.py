"""Run a trial: index notes with one setup of search in a temporary folder, ask all questions, and record ranks, times and memory.

Law, tested: a trial writes only into its folder; the notes, the state folder and the index in use stay as they are."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from index.encoders.embedder import Embedder, EmbedSettings, Load
from index.errors import Unavailable
from index.model import Answer, Document, Query, Stat
from index.scope.index import Index
from index.scope.prepared_document import fingerprint
from index.search.reranker import Reranker, search_reranked
from index.text.chunking import chunk_sizes
from syncd.measurement.known_items import Question
from syncd.measurement.rank_figures import Rank
from syncd.settings.settings import SearchSettings

Progress: TypeAlias = Callable[[dict[str, Any]], None]

DEEP: Final = 20  # hits of a search; a note after them counts as not found
TOP: Final = 5  # hits of a recorded query that are compared
WINDOW: Final = 48  # notes between two commits
WARM: Final = 2  # texts that are embedded before the speed is measured
LOADING_S: Final = 1_800.0  # longest wait for an encoder or a reranker, which may have to be downloaded


@dataclass(frozen=True, slots=True)
class SearchSetup:
    """Holds the settings that decide what a search finds."""

    embed: EmbedSettings
    search: SearchSettings
    tokens: int | None = None
    overlap: int | None = None


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Holds what a setup found, in the order of the questions, and what it took."""

    ranks: tuple[Rank, ...]  # of searches as the setup makes them
    near_ranks: tuple[Rank, ...]  # of searches by meaning alone, without a reranker
    tops: tuple[tuple[str, ...], ...]  # paths of the first hits of each recorded query
    passages: int
    load_s: float
    index_s: float
    p50_ms: float
    p95_ms: float
    memory_mb: float  # most memory of the process
    degraded: int  # questions that a part of the search could not work on
    reason: str  # why the first of them was degraded


def measure_speed(setup: SearchSetup, texts: Sequence[str], work: Path, load: Load | None = None) -> float:
    """Return how many characters the setup's encoder embeds in a second. Raises Unavailable when it can't be loaded."""
    with _open_embedder(setup, work, load) as embedder:
        embedder.embed_documents(texts[:WARM])
        begun = time.perf_counter()
        embedder.embed_documents(texts)
        return sum(map(len, texts)) / (time.perf_counter() - begun)


def run_trial(
    setup: SearchSetup,
    documents: Sequence[Document],
    questions: Sequence[Question],
    searches: Sequence[str],
    work: Path,
    *,
    progress: Progress,
    load: Load | None = None,
) -> TrialResult:
    """Index `documents`, ask the questions and the recorded `searches`. `work` is an empty folder, or that of another trial.

    A second trial with the same encoder and sizes uses the index of the first. Raises Unavailable when a model can't be loaded."""
    begun = time.perf_counter()
    with ExitStack() as stack:
        embedder = stack.enter_context(_open_embedder(setup, work, load))
        loaded = time.perf_counter()
        index = stack.enter_context(closing(_open_index(setup, embedder, work)))
        _fill_index(index, documents, progress)
        indexed = time.perf_counter()
        search = _make_search(setup, index, stack)
        asked = [_ask(question, search, index) for question in _report(questions, progress)]
        tops = tuple(tuple(hit.record.path for hit in search(text).hits[:TOP]) for text in searches)
        times = sorted(result.milliseconds for result in asked)
        troubles = [result.trouble for result in asked if result.trouble]
        return TrialResult(
            ranks=tuple(result.rank for result in asked),
            near_ranks=tuple(result.near_rank for result in asked),
            tops=tops,
            passages=index.counts[1],
            load_s=loaded - begun,
            index_s=indexed - loaded,
            p50_ms=times[len(times) // 2],
            p95_ms=times[len(times) * 95 // 100],
            memory_mb=_peak_memory_mb(),
            degraded=len(troubles),
            reason=next(iter(troubles), ""),
        )


@dataclass(frozen=True, slots=True)
class _QuestionResult:
    """Holds what one question found, and what it took."""

    rank: Rank
    near_rank: Rank
    milliseconds: float
    trouble: str  # why a part of the search could not work; "" = all worked


def _ask(question: Question, search: Callable[[str], Answer], index: Index) -> _QuestionResult:
    begun = time.perf_counter()
    answer = search(question.text)
    milliseconds = 1_000 * (time.perf_counter() - begun)
    near = index.search(Query(question.text, DEEP, "vector"))
    return _QuestionResult(
        _find_rank(answer, question), _find_rank(near, question), milliseconds, next(iter(answer.degraded), "")
    )


def _report(questions: Sequence[Question], progress: Progress) -> Iterator[Question]:
    for done, question in enumerate(questions):
        progress({"stage": "asking questions", "done": done, "total": len(questions)})
        yield question


def _open_embedder(setup: SearchSetup, work: Path, load: Load | None) -> closing[Embedder]:
    """Return the embedder with the setup's first encoder, loaded. Raises Unavailable."""
    only = replace(setup.embed, encoders=setup.embed.encoders[:1])  # another encoder must not be measured in its place
    embedder = Embedder(only, cache=work / "models", load=load)
    if not embedder.wait(LOADING_S):
        problem = embedder.problem
        embedder.close()
        raise Unavailable(problem, retryable=False)
    return closing(embedder)


def _open_index(setup: SearchSetup, embedder: Embedder, work: Path) -> Index:
    sizes = chunk_sizes(embedder.max_tokens, setup.tokens, setup.overlap)
    made_by = fingerprint(embedder.identity, sizes)
    folder = work / made_by[:16]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Index(
        "vault",
        folder,
        uri=str(folder),
        options={},
        dimensions=embedder.dimensions,
        embedder=embedder,
        sizes=sizes,
        made_by=made_by,
    )


def _fill_index(index: Index, documents: Sequence[Document], progress: Progress) -> None:
    for start in range(0, len(documents), WINDOW):
        progress({"stage": "indexing", "done": start, "total": len(documents)})
        window = documents[start : start + WINDOW]
        index.commit(index.prepare([(document, Stat(len(document.text), 0, 0)) for document in window]))
    index.maintain(force=True)
    if index.words_only_paths():
        raise Unavailable(
            "the encoder failed while it embedded the notes; for the reason, see the log of the encoder's server"
        )


def _open_reranker(setup: SearchSetup, stack: ExitStack) -> Reranker | None:
    """Return the setup's reranker with its model loaded; None if it has none. Raises Unavailable when that fails."""
    search = setup.search
    if not search.reranker:
        return None
    reranker = Reranker(
        *(search.reranker, search.rerank_pool, search.rerank_s),
        threads=setup.embed.threads,
        languages=search.rerank_languages,
    )
    stack.callback(reranker.close)
    reranker.start()
    if not reranker.wait(LOADING_S):
        raise Unavailable(reranker.degraded or "the reranker did not load in time", retryable=False)
    return reranker


def _make_search(setup: SearchSetup, index: Index, stack: ExitStack) -> Callable[[str], Answer]:
    """Return the search of the setup. Raises Unavailable when its reranker can't be loaded."""
    reranker = _open_reranker(setup, stack)
    return lambda text: search_reranked(reranker, Query(text, DEEP, setup.search.mode), index.search)


def _find_rank(answer: Answer, question: Question) -> Rank:
    paths: Iterator[str] = (hit.record.path for hit in answer.hits if hit.record.path not in question.without)
    return next((place for place, path in enumerate(paths, 1) if path == question.target), None)


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # macOS counts bytes, Linux KiB
