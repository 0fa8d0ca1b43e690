"""The enricher finds a summary and tags for a capture: in its own words, from a chat endpoint, or not at all.

Laws, tested: whatever fails here, the capture succeeds with these fields left empty; what an endpoint could not do is
remembered and done later. A note that shows a defect stops the work on no other note, and status names it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from index import timings
from index.encoders.embedder import Embedder
from index.encoders.word_frequency import word_ranks
from index.errors import InvalidArgument, MemexError, Unavailable
from index.model import Document
from index.text.sentences import SUMMARY, plain_text, read_prose, shorten
from index.text.summary_and_tags import NOTHING, Enrichment, enrich, normalize_answer
from index.text.tags import MOST
from syncd.documents.collection_membership import tag_changes
from syncd.documents.parser import derived_summary
from syncd.indexes.index_builds import ScopeIndex
from syncd.notes.front_matter import decode, edit, encode, split
from syncd.notes.secret_patterns import redact
from syncd.settings.settings import EnrichSettings
from syncd.state.ledger import Ledger

PAUSE_S: Final = (5.0, 300.0)  # first and longest time for which an endpoint that failed is left alone
AGAIN_MS: Final = (60_000, 6 * 3_600_000)  # first and longest time until a note is tried again
LATE_S: Final = 0.5  # what a capture waits beyond the endpoint's own limit
LOCAL_S: Final = 5.0  # what a capture waits for our own reading, which takes some milliseconds
WORKERS: Final = 4
REMEMBERED: Final = 2_000  # tags whose vectors are kept
FRESH: Final = 20  # a large vocabulary is used for so many times the CPU time that it takes to read
LARGE_S: Final = 0.005  # of CPU time to read it; a smaller one is read for each capture
FAILS: Final = "enrichment: it fails just now; new captures have no summary and tags until it works, and get them then"
DEFECTIVE: Final = "enrichment: it fails for some captures, which have no summary and tags; memex status names them"
NAMED: Final = 5  # notes with a defect that status names

if TYPE_CHECKING:
    from syncd.enrichment.chat_endpoint import ChatEndpoint

log = logging.getLogger(__name__)


class DefectiveNote(Unavailable):
    """The enrichment of one note meets a defect of Memex that this note shows."""

    _retryable = False


@dataclass(frozen=True, slots=True)
class EnrichmentResult:
    """What was found for one note; `owed`: it failed, and is to be tried again."""

    enrichment: Enrichment
    owed: bool = False


@dataclass(slots=True)
class _Vocabulary:
    tags: dict[str, int]
    generations: tuple[int, ...]
    fresh_until: float  # by time.monotonic()


class Enricher:
    """Holds the threads, the endpoint and the list of what is owed; safe to use from any thread.

    `vault`: the index of the owner's notes, whose tags captures prefer too where the owner's setting allows it."""

    def __init__(
        self,
        settings: EnrichSettings,
        *,
        captures: ScopeIndex,
        embedder: Embedder,
        ledger: Ledger,
        vault: ScopeIndex | None = None,
    ) -> None:
        self._vault = vault if settings.vault_tags else None
        self.by = settings.by
        self._problem = ""
        self._defective: dict[str, str] = {}  # by path: which exception its enrichment raised last
        self.most = settings.vocabulary
        self._settings, self._captures, self._embedder, self._ledger = settings, captures, embedder, ledger
        self._chat = _make_endpoint(settings) if settings.by == "endpoint" else None
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="enrich")
        self._vectors: dict[str, Any] = {}
        self._vocabularies: dict[str, _Vocabulary] = {}
        self._lock = threading.Lock()
        self._pause, self._resting_until = PAUSE_S[0], 0.0
        self.closed = threading.Event()

    def close(self) -> None:
        """Stop; what is under way is given up."""
        self.closed.set()
        if self._chat:
            self._chat.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def degraded(self) -> str:
        """That it does not work, in a sentence that says nothing of notes or the endpoint; "" when it works."""
        return FAILS if self._problem else DEFECTIVE if self._defective_paths() else ""

    @property
    def problem(self) -> str:
        """What does not work, for the owner: the paths of notes are named; "" when all works."""
        paths = self._defective_paths()
        if self._problem or not paths:
            return self._problem
        named = ", ".join(f"{path} ({self._defective[path]})" for path in paths[:NAMED])
        more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
        return f"no summary and tags could be found for {named}{more}: the log says why; Memex tries again later"

    def _defective_paths(self) -> list[str]:
        """The notes that showed a defect and still lack a summary or tags."""
        if not self._defective:
            return []
        lacking = set(self._captures.index.unlabelled_paths())
        return sorted(path for path in list(self._defective) if path in lacking)

    # For a capture

    def begin(self, document: Document) -> Callable[[], EnrichmentResult]:
        """Begin to read `document`, beside whatever the caller does. The answer is had by a call, which never raises."""
        if self.by == "off" or (stated_summary(document) and document.tags):
            return lambda: EnrichmentResult(NOTHING)
        try:
            future = self._pool.submit(self.enrich, document, self.vocabulary(document.workspace))
        except (MemexError, RuntimeError) as error:  # the catalog fails, or the pool is closed
            log.warning("enrichment could not begin: %s", error)
            return lambda: EnrichmentResult(NOTHING, owed=True)
        return partial(self._wait_for, future)

    def _wait_for(self, future: Future[Enrichment]) -> EnrichmentResult:
        try:
            return EnrichmentResult(future.result((self._settings.timeout_s + LATE_S) if self._chat else LOCAL_S))
        except Unavailable as error:
            log.info("a capture has no summary and tags yet: %s", error.message)
        except CancelledError:
            log.info("a capture has no summary and tags yet: Memex is stopping")
        except TooLate:
            self._note_failure(f"enrichment takes longer than {self._settings.timeout_s:g} s")
        return EnrichmentResult(NOTHING, owed=True)

    # For whoever may fail

    def enrich(self, document: Document, vocabulary: Mapping[str, int]) -> Enrichment:
        """What `document` is about, by whoever is set. Raises Unavailable while an endpoint is away, or DefectiveNote."""
        with self.isolate(document.path), timings.ENRICHMENT.measure():
            return self._find(document, vocabulary)

    @contextmanager
    def isolate(self, path: str) -> Iterator[None]:
        """Turn a defect that the note at `path` shows into an error of this note alone."""
        try:
            yield
        except MemexError:
            raise
        except Exception as error:  # the top of the work on one note: a defect may cost it its tags, and no other note
            log.exception("the note %s can't be enriched", path)
            self._defective[path] = type(error).__name__
            raise DefectiveNote(f"its enrichment failed ({type(error).__name__}); the log says more") from error
        self._defective.pop(path, None)

    def _find(self, document: Document, vocabulary: Mapping[str, int]) -> Enrichment:
        if self._chat is None:
            enrichment = enrich(
                document, vocabulary=vocabulary, places=word_ranks(), vectors=self._tag_vectors, clean=redact
            )
            self._problem = ""
            return enrichment
        if self.is_resting:
            raise Unavailable(self._problem or "the endpoint is left alone for a moment")
        parts = read_prose(document, redact)
        text = "\n".join((*parts.headings, *parts.sentences))
        if not text.strip():
            return NOTHING
        try:
            known = [tag for tag in vocabulary if redact(tag) == tag]
            summary, tags = self._chat.ask(shorten(plain_text(redact(document.title)), SUMMARY), text, known)
            answer = normalize_answer(summary, tags, vocabulary=vocabulary, vectors=self._tag_vectors)
            if not answer.summary or not answer.tags:
                raise Unavailable(f"{self._chat.name} gives no summary or no tags that can be used")  # noqa: TRY301 - as all its failures
        except Unavailable as error:
            self._note_failure(error.message)
            raise
        self._pause, self._resting_until, self._problem = PAUSE_S[0], 0.0, ""
        return answer

    @property
    def is_resting(self) -> bool:
        """Whether the endpoint failed a moment ago and is left alone."""
        return time.monotonic() < self._resting_until

    def _note_failure(self, problem: str) -> None:
        with self._lock:
            if not self.is_resting:
                log.warning("enrichment: %s", problem)
                self._resting_until = time.monotonic() + self._pause
                self._pause = min(self._pause * 2, PAUSE_S[1])
            self._problem = problem

    def forget_problem(self) -> None:
        """Drop the last failure unless a note still waits because of it: nothing else would show that it is over."""
        if not self.is_resting and not self.pending_retries():
            self._problem = ""

    def vocabulary(self, workspace: str) -> dict[str, int]:
        """The tags most used in `workspace`, and in the vault where that is set. A large one is read again only now and then."""
        known, index = self._vocabularies.get(workspace), self._captures.index
        vault = self._vault.index if self._vault else None
        generations = (index.generation, vault.generation) if vault else (index.generation,)
        now = time.monotonic()
        if known and (known.generations == generations or now < known.fresh_until):
            return known.tags
        begun = time.thread_time()
        tags = Counter(dict(index.vocabulary(workspace, self._settings.vocabulary)))
        if vault:
            tags.update(dict(vault.vocabulary("", self._settings.vocabulary)))
        took = time.thread_time() - begun  # not by the clock: a busy machine makes no vocabulary large
        self._vocabularies[workspace] = _Vocabulary(tags, generations, now + (took * FRESH if took >= LARGE_S else 0.0))
        return tags

    def _tag_vectors(self, texts: Sequence[str]) -> list[Any] | None:
        """The vectors of some tags; None while there is no encoder."""
        unknown = [text for text in texts if text not in self._vectors]
        if unknown:
            try:
                made = self._embedder.embed_documents(unknown, urgent=True)
            except Unavailable:
                return None
            if len(self._vectors) > REMEMBERED:
                self._vectors = {}
            self._vectors.update(zip(unknown, made, strict=True))
        kept = self._vectors
        return [kept[text] for text in texts] if all(text in kept for text in texts) else None

    def is_own_summary(self, document: Document) -> bool:
        """Whether a note's summary is our own reading of its text, as far as that can be read again."""
        if self.by != "local" or not document.summary:
            return False
        return self.begin(replace(document, summary=None))().enrichment.summary == document.summary

    # What is owed

    def add_retry(self, id: str, now: int) -> None:
        """Remember that the note of this id is to be tried again. A ledger that can't be written is no reason to fail."""
        try:
            with self._ledger.transaction():
                self._ledger.execute("INSERT OR IGNORE INTO enrichment VALUES (?, 0, ?)", (id, now + AGAIN_MS[0]))
        except Unavailable as error:
            log.warning("what enrichment owes could not be remembered: %s", error.message)

    def pending_retries(self, now: int | None = None) -> list[tuple[str, int]]:
        """The ids of notes that wait, with how often each failed since; with `now`, those whose time has come."""
        if now is None:
            return [(id, failures) for id, failures in self._ledger.query("SELECT id, failures FROM enrichment")]
        return [
            (id, failures)
            for id, failures in self._ledger.query(
                "SELECT id, failures FROM enrichment WHERE due_at <= ? ORDER BY due_at, id", (now,)
            )
        ]

    def remove_retry(self, id: str) -> None:
        """The note of this id is owed nothing any more."""
        with self._ledger.transaction():
            self._ledger.execute("DELETE FROM enrichment WHERE id = ?", (id,))

    def postpone_retry(self, id: str, failures: int, now: int) -> None:
        """Try the note of this id later, and later each time."""
        due = now + min(AGAIN_MS[0] * 2 ** min(failures + 1, 20), AGAIN_MS[1])
        with self._ledger.transaction():
            self._ledger.execute("UPDATE enrichment SET failures = ?, due_at = ? WHERE id = ?", (failures + 1, due, id))


def missing_properties(document: Document, enrichment: Enrichment, *, replace: bool = False) -> dict[str, Any]:
    """Return the properties that `enrichment` gives a note: only those that it lacks, unless they are to be replaced.

    A summary that repeats the note's first sentence is not written: the note is known by that sentence without it."""
    changes: dict[str, Any] = {}
    if enrichment.tags and (replace or not document.tags):
        changes["tags"] = list(enrichment.tags[:MOST])
    stated = stated_summary(document)
    if enrichment.summary and (replace or not stated):
        summary = written_summary(document, enrichment.summary)
        changes |= {"summary": summary} if summary or stated else {}
    return changes


def stated_summary(document: Document) -> str | None:
    """The summary that a note's properties state."""
    return None if document.summary_derived else document.summary


def written_summary(document: Document, summary: str | None) -> str | None:
    """What the properties of a note say so that it has this summary: nothing where that is its first sentence.

    The text of a file is not its writer's own words to the reader, so its note states a summary in any case."""
    return None if document.type == "note" and summary == derived_summary(document) else summary


def fill_missing(
    raw: bytes, document: Document, enrichment: Enrichment, *, read: Callable[..., Document], replace: bool = False
) -> tuple[bytes, Document] | None:
    """Write what a note lacks into lines of its own; None when it lacks nothing. Raises FrontmatterError.

    `read` makes a document of bytes, path and `mtime_ms`. What names the note's collection stays as it is."""
    changes = missing_properties(document, enrichment, replace=replace)
    if not changes:
        return None
    text = decode(raw)
    if tags := changes.pop("tags", None):
        changes = {**tag_changes(split(text)[0], tags, None), **changes}
    raw = encode(edit(text, changes))
    del text  # one copy less of a large one, while it is parsed
    return raw, read(raw, document.path, mtime_ms=document.created_at)


def _make_endpoint(settings: EnrichSettings) -> ChatEndpoint:
    if not settings.base_url or not settings.model:
        raise InvalidArgument(
            'enrich.by = "endpoint" needs enrich.base_url and enrich.model; or set enrich.by = "local"'
        )
    from syncd.enrichment.chat_endpoint import ChatEndpoint  # noqa: PLC0415 - it imports an HTTP client, which few need

    return ChatEndpoint(settings.base_url, settings.model, key=_read_api_key(settings), timeout_s=settings.timeout_s)


def _read_api_key(settings: EnrichSettings) -> str:
    if settings.api_key_env:
        key = os.environ.get(settings.api_key_env, "").strip()
        if not key:
            raise InvalidArgument(
                f"enrich.api_key_env names {settings.api_key_env}, which is not set in the environment"
            )
        return key
    if settings.api_key_file:
        try:
            return settings.api_key_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"enrich.api_key_file {settings.api_key_file} can't be read") from error
    return ""
