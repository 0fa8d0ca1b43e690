"""The embedder loads the configured encoders in the background, answers from one of them, and fails over.

Law, tested: an index only ever gets vectors of one identity; when no encoder of this identity is left, calls raise
Unavailable."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from index import timings
from index.encoders.settings import (
    SAMPLE,
    BundledSettings,
    Encoder,
    EncoderSettings,
    EndpointSettings,
    Kind,
    LocalSettings,
    model_name,
    without_secrets,
)
from index.errors import Unavailable
from index.foreground import foreground
from index.names import replace_surrogates
from index.tracing import span

Load: TypeAlias = Callable[[EncoderSettings, Path], Encoder]

PROBE = SAMPLE
SAME = 0.99  # minimum cosine of two encoders' vectors of PROBE at which they count as one model
WINDOW = 512  # texts that are sorted by length before they are split into batches: equal lengths need no padding
LOADED_S = 15.0  # seconds that closing waits for a running load
RETRY_S = (5.0, 60.0)  # first and longest pause before a broken encoder is tried again

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """Lists the encoders, of which the first working one is used, and the threads for a backlog (0 = one per core, at most 4)."""

    encoders: tuple[EncoderSettings, ...] = (BundledSettings(),)
    threads: int = 0
    passage: int = 0  # configured tokens of passages; an encoder that reads fewer is not used


def load_encoder(settings: EncoderSettings, cache: Path, threads: int = 0) -> Encoder:
    """Load the encoder that `settings` name. Raises Unavailable; imports only the libraries that it needs."""
    # ruff: noqa: PLC0415 - each library is imported when an encoder that needs it is configured, torch above all
    match settings:
        case BundledSettings():
            from index.encoders import bundled_model

            return bundled_model.BundledEncoder(settings, threads=threads)
        case LocalSettings():
            from index.encoders import model_files

            model_files.require_libraries(f"the sentence-transformers model {model_name(settings)!r}")
            from index.encoders import sentence_transformer

            return sentence_transformer.LocalEncoder(settings, threads=threads)
        case EndpointSettings():
            from index.encoders import embeddings_endpoint

            return embeddings_endpoint.EndpointEncoder(settings, cache=cache)


class Embedder:
    """Manages the state and lifetime of the encoders; safe to call from several threads.

    `prefer` is the identity of the existing index. Memex uses the first encoder of the settings, whatever its identity. If it
    is unavailable, only an encoder with the preferred identity replaces it, so an outage never causes a new index. An
    endpoint whose settings are the same as when the index was built (`made_with`) but that answers with another model is
    refused until `accept_new_model`, because a server may have loaded a model that its user did not intend. `begun` lists
    identities that were already accepted. Once chosen, the identity stays for the life of the process."""

    def __init__(
        self,
        settings: EmbedSettings,
        *,
        cache: Path,
        prefer: str | None = None,
        made_with: EncoderSettings | None = None,
        begun: Collection[str] = (),
        load: Load | None = None,
        retry_s: tuple[float, float] = RETRY_S,
    ) -> None:
        self.state: Literal["loading", "ready", "broken"] = "loading"
        self.problem = "the encoder is still loading; searches use words only until it is ready"
        self.identity = ""
        self.dimensions = 0
        self.max_tokens = 0
        self.queued = 0  # texts that are not finished yet
        self._settings = settings
        self._cache = cache
        self._prefer = prefer
        self._made_with, self._begun = made_with, frozenset(begun)
        self._accepted = False
        self.chosen: EncoderSettings | None = None  # the settings of the encoder in use
        self._load = load or (lambda chosen, folder: load_encoder(chosen, folder, settings.threads))
        self._retry_s = retry_s
        self._encoders: dict[int, Encoder] = {}  # loaded ones, by their place in the settings
        self._strange: set[int] = set()  # positions of encoders with another identity than the chosen one
        self._current: Encoder | None = None
        self._probe: np.ndarray | None = None  # the vector of PROBE by the first encoder of this identity
        self._counting = threading.Lock()
        self._choosing = threading.Lock()  # one thread at a time loads, probes and switches
        self._changed = threading.Condition()
        self._closed = False
        self._hurry = False  # try again now
        self._thread = threading.Thread(target=self._run, name="encoder-loader", daemon=True)

    # lifetime

    def facts(self) -> dict[str, str]:
        """Return the state, and the problem that keeps the encoder from working; loading is a state, not a problem."""
        state = "unused" if self.state == "loading" and not self.is_started else self.state
        return {"state": state, "problem": "" if self.state == "loading" else self.problem}

    @property
    def is_near(self) -> bool:
        """Return whether the encoder runs on this machine, in milliseconds, and not at an endpoint."""
        return not isinstance(self.chosen, EndpointSettings)

    @property
    def is_started(self) -> bool:
        """Return whether any caller has needed the encoder yet."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Start to load in the background; return at once."""
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Start to load if necessary, and wait until loading ends; return True when the encoder is ready."""
        with self._changed:
            if not self.is_started and self.state == "loading":
                self._thread.start()
            self._changed.wait_for(lambda: self.state != "loading" or self._closed, timeout)
            return self.state == "ready"

    def close(self) -> None:
        """Stop at once: running calls raise Unavailable before their next batch."""
        with self._changed:
            self._closed = True
            self.state, self.problem, self._current = "broken", "the encoder is closed", None
            self._changed.notify_all()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(LOADED_S)  # a thread that is in a library's code when the process ends aborts it
        for encoder in list(self._encoders.values()):
            encoder.close()

    @property
    def configured(self) -> tuple[EncoderSettings, ...]:
        """Return the settings of all encoders, in order, without their secrets."""
        return tuple(map(without_secrets, self._settings.encoders))

    def accept_new_model(self) -> None:
        """Accept the first encoder even with another model; the caller builds a new index with it."""
        with self._changed:
            self._accepted = True
            if self.state == "broken" and not self._closed:
                self.state, self._hurry = "loading", True
                self._changed.notify_all()

    def start_previous(self, settings: EncoderSettings, identity: str) -> Embedder:
        """Return another embedder, which starts to load the encoder of an earlier index."""
        other = Embedder(
            EmbedSettings((settings,), threads=1),
            cache=self._cache,
            prefer=identity,
            load=self._load,
            retry_s=self._retry_s,
        )
        other.start()
        return other

    # embedding

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a query: float32 [dimensions], unit length."""
        vector: np.ndarray = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries, in order: float32 [n, dimensions], unit length."""
        batch = self._ready_encoder().batch
        with self._count_queued(len(texts)):
            parts = [
                self._encode([replace_surrogates(text) for text in texts[start : start + batch]], "query", urgent=True)
                for start in range(0, len(texts), batch)
            ]
        return np.concatenate(parts)

    def embed_documents(
        self,
        texts: Sequence[str],
        *,
        urgent: bool = False,
        progress: Callable[[int], None] | None = None,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> np.ndarray:
        """Return the vectors of `texts`, in order: `dtype` [n, dimensions]. `progress` gets the number of finished texts.

        `urgent` is for a capture whose caller waits: it does not queue behind a backlog."""
        encoder = self._ready_encoder()
        vectors = np.empty((len(texts), self.dimensions), dtype)
        done = 0
        with self._count_queued(len(texts)):
            for start in range(0, len(texts), WINDOW):
                window = sorted(range(start, min(start + WINDOW, len(texts))), key=lambda n: -len(texts[n]))
                for first in range(0, len(window), encoder.batch):
                    rows = window[first : first + encoder.batch]
                    foreground.pace()
                    vectors[rows] = self._encode(
                        [replace_surrogates(texts[n]) for n in rows], "document", urgent=urgent
                    )
                    done += len(rows)
                    if progress is not None:
                        progress(done)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens left out."""
        return self._ready_encoder().count_tokens([replace_surrogates(text) for text in texts])

    @contextmanager
    def _count_queued(self, texts: int) -> Iterator[None]:
        with self._counting:
            self.queued += texts
        try:
            yield
        finally:
            with self._counting:
                self.queued -= texts

    # fail-over

    def _ready_encoder(self) -> Encoder:
        encoder = self._current
        if encoder is None:
            raise Unavailable(self.problem, retryable=not self._closed)
        return encoder

    def _encode(self, texts: list[str], kind: Kind, *, urgent: bool) -> np.ndarray:
        for _ in range(len(self._settings.encoders) + 1):
            encoder = self._ready_encoder()
            try:
                with span("encode", kind=kind, urgent=urgent, texts=len(texts)), timings.EMBEDDING[kind].measure():
                    return _check_vectors(encoder.encode(texts, kind=kind, urgent=urgent), len(texts), encoder)
            except Unavailable as error:
                self._fail_over(encoder, error)
        raise Unavailable(f"all encoders fail; last error: {self.problem}")

    def _fail_over(self, failed: Encoder, error: Unavailable) -> None:
        """Replace `failed` with another encoder of the same identity, or raise."""
        with self._choosing:
            if self._current is not failed:
                return  # another thread has already switched, or closed
            log.warning("%s failed: %s", failed.name, error.message)
            problems = self._choose_encoder(failed)
            if self._current is failed:
                self._mark_broken([error.message, *(line for line in problems if line != f"{failed.name} failed")])
                raise Unavailable(self.problem)

    def _run(self) -> None:
        """Run the loader's thread: load and watch the encoder; after a failure, retry with growing pauses."""
        pause = self._retry_s[0]
        while not self._closed:
            try:
                with self._choosing:
                    problems = self._choose_encoder()
                    if self._current is None:
                        self._mark_broken(problems)
            except Exception as error:  # the top of this thread's loop: a bug must not look like loading
                log.exception("loading the encoder failed")
                self._mark_broken([f"loading the encoder failed ({type(error).__name__}, see the log)"])
            with self._changed:
                if self._current is None:
                    self._changed.wait_for(lambda: self._closed or self._hurry, pause)
                    self._hurry = False
                    pause = min(pause * 2, self._retry_s[1])
                else:
                    pause = self._retry_s[0]
                    self._changed.wait_for(lambda: self._closed or self._current is None)
                    self._changed.wait_for(lambda: self._closed, pause)

    def _choose_encoder(self, failed: Encoder | None = None) -> list[str]:
        """Choose the first encoder that works and has the right identity; return the reasons if none does."""
        problems: list[str] = []
        wanted = self.identity or self._prefer
        for place, settings in enumerate(self._settings.encoders):
            if self._closed or place in self._strange:
                continue
            try:
                encoder, probe = self._try_encoder(place, settings, failed)
            except Unavailable as error:
                problems.append(error.message)
                continue
            if place == 0 and self._is_swapped(settings, encoder):
                problems.append(
                    f"{encoder.name} answers with another model than the index was built with ({encoder.dimensions} "
                    "dimensions), so Memex does not use it: load that model there again, or rebuild the index with this one: memex index --full"
                )
                self._encoders.pop(place).close()  # the endpoint may answer with another model at the next try
                continue
            # The first choice may require a new index; a later encoder, tried because the first is unavailable, may not.
            if not wanted or encoder.identity == wanted or (place == 0 and not self.identity):
                self._switch_to(settings, encoder, probe)
                break
            problems.append(f"{encoder.name} is another model than the index was built with, so Memex does not use it")
        self._drop_unusable()
        return problems

    def _is_swapped(self, settings: EncoderSettings, encoder: Encoder) -> bool:
        """Return whether an endpoint answers with another model although its settings are unchanged."""
        if self.identity or self._accepted or not self._prefer or not isinstance(settings, EndpointSettings):
            return False
        return without_secrets(settings) == self._made_with and encoder.identity not in {self._prefer, *self._begun}

    def _try_encoder(self, place: int, settings: EncoderSettings, failed: Encoder | None) -> tuple[Encoder, np.ndarray]:
        """Return the encoder at `place` and its vector of PROBE. Raises Unavailable unless it may be used."""
        encoder = self._open_encoder(place, settings)
        if encoder is failed:
            raise Unavailable(f"{encoder.name} failed")
        if self._settings.passage > encoder.max_tokens:
            raise Unavailable(
                f"{encoder.name} reads {encoder.max_tokens} tokens, and index.chunk_tokens is {self._settings.passage}: "
                f"set it to {encoder.max_tokens} or less, or leave it unset"
            )
        probe = _check_vectors(encoder.encode([PROBE], kind="document", urgent=True), 1, encoder)[0]
        if self.identity and encoder.identity != self.identity:
            raise Unavailable(
                f"{encoder.name} is another model than the index was built with, so Memex does not use it"
            )
        if self._probe is not None and float(self._probe @ probe) < SAME:
            raise Unavailable(f"{encoder.name} gives other vectors than the previous encoder, so Memex does not use it")
        return encoder, probe

    def _drop_unusable(self) -> None:
        """Close loaded encoders that can never be used with the chosen identity."""
        for place, encoder in list(self._encoders.items()):
            if self.identity and encoder.identity != self.identity:
                self._strange.add(place)
                self._encoders.pop(place).close()

    def _open_encoder(self, place: int, settings: EncoderSettings) -> Encoder:
        if place not in self._encoders:
            begun = time.monotonic()
            self._encoders[place] = self._load(settings, self._cache)
            log.info("%s loaded in %.1f s", self._encoders[place].name, time.monotonic() - begun)
        return self._encoders[place]

    def _switch_to(self, settings: EncoderSettings, encoder: Encoder, probe: np.ndarray) -> None:
        with self._changed:
            if self._closed:
                encoder.close()
                return
            if self._probe is None:
                self._probe = probe
            self.identity, self.dimensions, self.max_tokens = encoder.identity, encoder.dimensions, encoder.max_tokens
            self.chosen = without_secrets(settings)
            self._current, self.state, self.problem = encoder, "ready", ""
            self._changed.notify_all()
        log.info("embedding with %s", encoder.name)

    def _mark_broken(self, problems: list[str]) -> None:
        with self._changed:
            if self._closed:
                return
            reasons = "; ".join(dict.fromkeys(problems)) or "no encoder is configured: add one under [embed]"
            self._current, self.state, self.problem = None, "broken", reasons
            self._changed.notify_all()


def _check_vectors(vectors: np.ndarray, count: int, encoder: Encoder) -> np.ndarray:
    """Return `vectors` if the index can store them. Raises Unavailable otherwise, so that Memex switches away from a faulty encoder."""
    if vectors.shape != (count, encoder.dimensions):
        raise Unavailable(
            f"{encoder.name} gave vectors of shape {vectors.shape} instead of {(count, encoder.dimensions)}; "
            "check its model and dimensions under [embed]"
        )
    if not np.isfinite(vectors).all() or not (np.abs(np.linalg.norm(vectors, axis=1) - 1) <= 1e-2).all():
        raise Unavailable(
            f"{encoder.name} gave vectors that are not numbers of unit length; check its model and device"
        )
    return np.asarray(vectors, np.float32)
