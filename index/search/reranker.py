"""The reranker reorders search results with a local model that reads query and passage together, in its own thread.

The model's score and the score of the search count half each, because the model knows neither the titles that the query
names nor the other passages. Laws, tested: a search waits for it no longer than its time limit; a failure leaves the order
as it was, and is reported; a query or a passage in another language than the model's is not judged."""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from index.encoders import model_files
from index.errors import Unavailable
from index.model import Answer, Hit, Query
from index.names import replace_surrogates
from index.search.fusion import STALE, place_below_successors
from index.search.language_check import ANY, may_be_in
from index.tracing import span

if TYPE_CHECKING:  # it imports torch
    from index.encoders.cross_encoder import RerankerModel

Load: TypeAlias = "Callable[[str, int], RerankerModel]"

OWNER: Final = "cross-encoder"  # the owner on the hub of models that are named without an owner
RUN: Final = 4  # pairs that are scored at once: larger runs pad more, and can't be cancelled in between
RETRY_S: Final = 60.0  # seconds before Memex retries a model that failed
CLOSED_S: Final = 15.0  # seconds that closing waits for the model's current work
POLL_S: Final = 0.05  # seconds between two looks at a model that is loading
SHARE: Final = 0.5  # of the model in a score; the rest is the score of the search
GOOD: Final = 0.5  # the model's score from which a hit is not weak
LOADING: Final = "reranker: still loading; until then results keep the order of the search"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Task:
    """Holds a query with its passages while a search waits for their scores."""

    query: str
    passages: Sequence[str]
    scores: list[float] | None = None
    given_up: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Reranker:
    """Manages the state and lifetime of the model; safe to call from several threads.

    The first search that needs the model loads it, but only after `start`: a command that ends at once would load it in
    vain. The model scores at most `pool` documents, each by its best passage, within `seconds`. It is asked only about queries
    and passages in its `languages`, given by their codes."""

    def __init__(
        self,
        model: str,
        pool: int,
        seconds: float,
        *,
        threads: int = 0,
        languages: Collection[str] = (ANY,),
        load: Load | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        self.model, self.pool, self.seconds = model, pool, seconds
        self.state: Literal["unused", "loading", "ready", "broken"] = "unused"
        self.problem = ""  # why it is broken
        self._languages = languages
        self._threads, self._load, self._retry_s = threads, load or load_model, retry_s
        self._judge: RerankerModel | None = None
        self._failed_at = -math.inf
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._giving = threading.Lock()  # so that nothing is given after the end
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="reranker", daemon=True)

    # lifetime

    def facts(self) -> dict[str, str]:
        """Return the state, and why the model is broken."""
        return {"state": self.state, "problem": self.problem}

    def start(self) -> None:
        """Start the thread that waits for searches; return at once."""
        self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Request loading of the model, and wait until it ends; return True when the model is ready."""
        end = time.monotonic() + timeout
        self._request_model()
        while self.state == "loading" and time.monotonic() < end:
            time.sleep(POLL_S)
        return self.state == "ready"

    def close(self) -> None:
        """Stop, and cancel running work."""
        with self._giving:
            self._closed = True
            self._tasks.put(None)
        if self._thread.ident is not None:
            self._thread.join(CLOSED_S)  # a thread that is in a library's code when the process ends aborts it

    @property
    def degraded(self) -> str:
        """Return why the model does not order results, in a sentence; "" = it does, or no search has needed it yet."""
        if self.state == "loading":
            return LOADING
        return f"reranker: {self.problem}; results keep the order of the search" if self.state == "broken" else ""

    # searching

    def search(self, query: Query, search: Callable[[Query], Answer]) -> Answer:
        """Return all results of `search` in the order of both scores; a search by words only stays unchanged.

        `search` is asked for the whole pool, so there may be more results than the limit of `query`.
        A score is 0..1, and comparable within the answer. A result that the model does not judge, because of its language or
        because it is beyond the pool, keeps its place. If the model could not work, `degraded` contains the reason."""
        if query.mode == "text" or not may_be_in(query.text, self._languages):
            return search(query)
        if self._judge is None:
            answer = search(query)
            return replace(answer, degraded=(*answer.degraded, self._request_model() or LOADING))  # ready only now
        results = search(replace(query, limit=max(query.limit, self.pool)))
        with span("rerank", documents=min(self.pool, len(results.hits))):
            hits, degraded = self._order(query.text, results.hits)
        return replace(results, hits=hits, degraded=(*results.degraded, *degraded))

    def _order(self, text: str, hits: tuple[Hit, ...]) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
        places = [place for place, hit in enumerate(hits[: self.pool]) if may_be_in(hit.chunk, self._languages)]
        if not places:
            return hits, ()
        task = _Task(text, [passage_text(hits[place]) for place in places])
        with self._giving:
            if not self._closed:
                self._tasks.put(task)
        task.done.wait(0 if self._closed else self.seconds)
        if (scores := task.scores) is None:
            task.given_up = True
            late = f"reranker: it took longer than {self.seconds:g} s; results keep the order of the search"
            return hits, (self.degraded or late,)
        blended = [_blend(hits[place], score) for place, score in zip(places, scores, strict=True)]
        blended.sort(key=lambda hit: -hit.score)
        # The hits beyond the pool stay after it, so that the order does not depend on how many there are.
        placed = place_below_successors(_put_at(hits[: self.pool], places, blended))
        return (*placed, *(replace(hit, score=min(hit.score, placed[-1].score)) for hit in hits[self.pool :])), ()

    def _request_model(self) -> str:
        """Request loading of the model if it is due; return the message for the search."""
        if self._thread.ident is None:
            return "reranker: it runs only in the daemon; results keep the order of the search"
        with self._giving:
            due = self.state == "unused" or (
                self.state == "broken" and time.monotonic() >= self._failed_at + self._retry_s
            )
            if due and not self._closed:
                self.state = "loading"
                self._tasks.put(_Task("", ()))
        return self.degraded

    # the thread

    def _run(self) -> None:
        try:
            locate_model(self.model)  # so that a missing model is reported before the first search
        except Unavailable as error:
            self._mark_broken(error.message)
        while (task := self._tasks.get()) is not None:
            try:
                self._judge_task(task)
            except Unavailable as error:
                self._mark_broken(error.message)
            except Exception as bug:  # the top of this thread's loop: a bug must not end it
                log.exception("the reranker failed unexpectedly")
                self._mark_broken(f"it failed unexpectedly ({type(bug).__name__}, see the log)")
            task.done.set()
        self._mark_broken("it is closed")

    def _judge_task(self, task: _Task) -> None:
        if self._judge is None:
            if task.passages or self._closed:
                return  # it failed a moment ago, at another search
            begun = time.monotonic()
            self._judge = self._load(self.model, self._threads)
            self.state, self.problem = "ready", ""
            log.info("the reranker was loaded in %.1f s", time.monotonic() - begun)
        scores = [0.0] * len(task.passages)
        order = sorted(range(len(scores)), key=lambda n: len(task.passages[n]))
        for start in range(0, len(order), RUN):
            if task.given_up or self._closed:
                return
            rows = order[start : start + RUN]
            for row, score in zip(rows, self._judge.score(task.query, [task.passages[n] for n in rows]), strict=True):
                scores[row] = score
        if not all(map(math.isfinite, scores)):
            raise Unavailable("the model's scores are not numbers")
        task.scores = scores

    def _mark_broken(self, problem: str) -> None:
        self._judge, self._failed_at = None, time.monotonic()
        self.state, self.problem = "broken", problem


def _blend(hit: Hit, score: float) -> Hit:
    score = score if hit.record.superseded_by is None else STALE * score
    return replace(hit, score=SHARE * score + (1 - SHARE) * hit.score, weak=hit.weak and score < GOOD)


def _put_at(hits: Sequence[Hit], places: Sequence[int], judged: Sequence[Hit]) -> list[Hit]:
    """Return `hits` with those at `places` replaced by `judged`; no score is higher than the one before it."""
    placed = list(hits)
    for place, hit in zip(places, judged, strict=True):
        placed[place] = hit
    least = accumulate((hit.score for hit in placed), min)
    return [replace(hit, score=score) for hit, score in zip(placed, least, strict=True)]


def search_reranked(reranker: Reranker | None, query: Query, search: Callable[[Query], Answer]) -> Answer:
    """Return what `search` finds, up to the limit, in the order of the reranker if there is one."""
    answer = reranker.search(query, search) if reranker else search(query)
    return replace(answer, hits=answer.hits[: query.limit])


def passage_text(hit: Hit) -> str:
    """Return the text that the model reads: the document's title, the headings above its best passage, and the passage."""
    return replace_surrogates("\n".join(filter(None, (hit.record.title, hit.heading, hit.chunk))))


def locate_model(model: str) -> Path:
    """Return the folder of the model if it can run on this machine. Raises Unavailable."""
    model_files.require_libraries(f"the reranker {Path(model).name!r}")
    try:
        return model_files.locate(model, owner=OWNER)
    except (OSError, ValueError) as error:
        log.debug("the reranker %r is not on this machine: %s", model, error)
        name = Path(model).name
        raise Unavailable(f"there is no model {name!r} on this machine; check search.reranker") from error


def load_model(model: str, threads: int) -> RerankerModel:
    """Load the model. Raises Unavailable."""
    folder = locate_model(model)
    from index.encoders import cross_encoder  # noqa: PLC0415 - it imports torch

    is_folder = os.path.isdir(os.path.expanduser(model))  # noqa: PTH111, PTH112 - Path.expanduser() fails for an unknown user
    return cross_encoder.RerankerModel(folder, folder.name if is_folder else model, threads=threads)
