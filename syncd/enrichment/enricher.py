"""The enricher writes a summary and tags for a capture: from its own words, by a chat endpoint, or not at all.

Laws, tested: if anything fails here, the capture succeeds with these fields left empty, and failed endpoint calls
are retried later. A note that triggers a bug, or gets an unusable answer, stops the work on no other note, and status
names it."""

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
from index.text.tags import MOST
from index.topics.summary_and_tags import NOTHING, Enrichment, UnusableAnswer, enrich, normalize_answer
from syncd.documents.capture_note import CHANGE
from syncd.documents.collection_membership import tag_changes
from syncd.documents.parser import derived_summary
from syncd.indexes.index_builds import ScopeIndex
from syncd.notes.front_matter import decode, edit, encode, split
from syncd.notes.secret_patterns import redact
from syncd.settings.settings import EnrichSettings
from syncd.state.folder import read_named_file
from syncd.state.ledger import Ledger

PAUSE_S: Final = (5.0, 300.0)  # first and longest pause after a failure of the endpoint
AGAIN_MS: Final = (60_000, 6 * 3_600_000)  # first and longest wait before a note is retried
LATE_S: Final = 0.5  # how long a capture waits beyond the endpoint's own limit
LOCAL_S: Final = 5.0  # how long a capture waits for the local analysis, which takes some milliseconds
UNUSABLE: Final = 5  # notes in a row with an unusable answer after which the endpoint counts as failing
WORKERS: Final = 4
REMEMBERED: Final = 2_000  # most tags whose vectors are cached
FRESH: Final = 20  # a large vocabulary is reused for this multiple of the CPU time of reading it
LARGE_S: Final = 0.005  # CPU time from which a vocabulary is large; a smaller one is read for each capture
FAILS: Final = "enrichment: it fails at the moment; new captures get their summary and tags once it works again"
DEFECTIVE: Final = "enrichment: it fails for some captures, which have no summary and tags; memex status names them"
NAMED: Final = 5  # most failing notes that status names

if TYPE_CHECKING:
    from syncd.enrichment.chat_endpoint import ChatEndpoint

log = logging.getLogger(__name__)


class DefectiveNote(Unavailable):
    """Reports that the enrichment of one note triggers a bug in Memex, or an unusable answer of the endpoint."""

    _retryable = False


@dataclass(frozen=True, slots=True)
class EnrichmentResult:
    """Holds the enrichment of one note; `retry`: it failed and must be retried."""

    enrichment: Enrichment
    retry: bool = False


@dataclass(frozen=True, slots=True)
class TagScope:
    """Names the notes whose tags a note prefers; `namespace` None means all of the workspace."""

    workspace: str
    namespace: str | None

    def __str__(self) -> str:
        return self.workspace if self.namespace is None else f"{self.workspace}/{self.namespace}"


@dataclass(slots=True)
class _Vocabulary:
    tags: dict[str, int]
    generations: tuple[int, ...]
    fresh_until: float  # by time.monotonic()


class Enricher:
    """Holds the threads, the endpoint and the list of retries; safe to use from any thread.

    `vault`: the index of the owner's notes, whose tags captures prefer too if the owner's setting allows it. `is_bound`
    says whether a key is bound to a namespace of a workspace."""

    def __init__(
        self,
        settings: EnrichSettings,
        *,
        captures: ScopeIndex,
        embedder: Embedder,
        ledger: Ledger,
        vault: ScopeIndex | None = None,
        is_bound: Callable[[str, str], bool],
    ) -> None:
        self._vault, self._is_bound = vault if settings.vault_tags else None, is_bound
        self.by = settings.by
        self._problem = ""
        self._defective: dict[str, str] = {}  # by path: why its enrichment failed last
        self._unusable: set[str] = set()  # paths of the notes with an unusable answer since the last good one
        self.most = settings.vocabulary
        self._settings, self._captures, self._embedder, self._ledger = settings, captures, embedder, ledger
        self._chat = _make_endpoint(settings) if settings.by == "endpoint" else None
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="enrich")
        self._vectors: dict[str, Any] = {}
        self._vocabularies: dict[TagScope, _Vocabulary] = {}
        self._lock = threading.Lock()
        self._pause, self._resting_until = PAUSE_S[0], 0.0
        self.closed = threading.Event()

    def close(self) -> None:
        """Stop, and abandon the current work."""
        self.closed.set()
        if self._chat:
            self._chat.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def degraded(self) -> str:
        """Return a sentence if enrichment fails, without notes or the endpoint; "" when it works."""
        return FAILS if self._problem else DEFECTIVE if self._defective_paths() else ""

    @property
    def problem(self) -> str:
        """Return the problem for the owner, with the paths of notes; "" when everything works."""
        paths = self._defective_paths()
        if self._problem or not paths:
            return self._problem
        named = ", ".join(f"{path} ({self._defective[path]})" for path in paths[:NAMED])
        more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
        return f"Memex could not write a summary and tags for {named}{more}; see the log; Memex tries again later"

    def is_defective(self, path: str) -> bool:
        """Return whether the last enrichment of the note at `path` failed because of this note."""
        return path in self._defective

    def _defective_paths(self) -> list[str]:
        """Return the notes whose enrichment failed because of the note, and that still lack a summary or tags."""
        if not self._defective:
            return []
        lacking = set(self._captures.index.catalog.unlabelled_paths())
        return sorted(path for path in list(self._defective) if path in lacking)

    # For a capture

    def begin(self, document: Document) -> Callable[[], EnrichmentResult]:
        """Start to enrich `document` in the background. Call the returned function for the result; it never raises."""
        if self.by == "off" or document.type == CHANGE or (stated_summary(document) and document.tags):
            return lambda: EnrichmentResult(NOTHING)
        try:
            future = self._pool.submit(self.enrich, document, self.vocabulary(self.tag_scope(document)))
        except (MemexError, RuntimeError) as error:  # the catalog fails, or the pool is closed
            log.warning("could not start enrichment: %s", error)
            return lambda: EnrichmentResult(NOTHING, retry=True)
        return partial(self._wait_for, future)

    def _wait_for(self, future: Future[Enrichment]) -> EnrichmentResult:
        limit, late = (self._settings.timeout_s, LATE_S) if self._chat else (LOCAL_S, 0.0)
        try:
            return EnrichmentResult(future.result(limit + late))
        except MemexError as error:
            log.info("a capture has no summary and tags yet: %s", error.message)
        except CancelledError:
            log.info("a capture has no summary and tags yet: Memex is stopping")
        except TooLate:
            self._note_failure(f"enrichment takes longer than {limit:g} s")
        return EnrichmentResult(NOTHING, retry=True)

    # For callers that handle failures

    def enrich(self, document: Document, vocabulary: Mapping[str, int]) -> Enrichment:
        """Return the summary and tags of `document`. Raises Unavailable while an endpoint fails, or DefectiveNote."""
        with self.isolate(document.path), timings.ENRICHMENT.measure():
            return self._find(document, vocabulary)

    @contextmanager
    def isolate(self, path: str) -> Iterator[None]:
        """Turn a bug that the note at `path` triggers into an error of this note alone."""
        try:
            yield
        except MemexError:
            raise
        except Exception as error:  # top of the work on one note: a bug may cost this note its tags, but no other note
            log.exception("could not enrich the note %s", path)
            self._defective[path] = type(error).__name__
            raise DefectiveNote(f"its enrichment failed ({type(error).__name__}); see the log") from error
        self._defective.pop(path, None)

    def _find(self, document: Document, vocabulary: Mapping[str, int]) -> Enrichment:
        if self._chat is None:
            enrichment = enrich(
                document, vocabulary=vocabulary, places=word_ranks(), vectors=self._tag_vectors, clean=redact
            )
            self._problem = ""
            return enrichment
        if self.is_resting:
            raise Unavailable(self._problem or "the endpoint failed a moment ago; Memex tries again soon")
        parts = read_prose(document, redact)
        text = "\n".join((*parts.headings, *parts.sentences))
        if not text.strip():
            return NOTHING
        try:
            known = [tag for tag in vocabulary if redact(tag) == tag]
            title = redact(plain_text(redact(document.title)))
            summary, tags = self._chat.ask(shorten(title, SUMMARY), text, known)
            answer = normalize_answer(summary, tags, vocabulary=vocabulary, vectors=self._tag_vectors)
            if not answer.summary or not answer.tags:
                raise UnusableAnswer(f"{self._chat.name} returns no usable summary or tags")  # noqa: TRY301 - handled like its other failures
        except UnusableAnswer as error:
            self._defective[document.path] = error.message
            self._unusable.add(document.path)
            if len(self._unusable) < UNUSABLE:
                log.warning("could not enrich the note %s: %s", document.path, error.message)
                raise DefectiveNote(error.message) from error
            self._note_failure(error.message)
            raise
        except Unavailable as error:
            self._note_failure(error.message)
            raise
        self._unusable.clear()
        self._pause, self._resting_until, self._problem = PAUSE_S[0], 0.0, ""
        return answer

    @property
    def is_resting(self) -> bool:
        """Return whether the endpoint failed a moment ago and is paused."""
        return time.monotonic() < self._resting_until

    def _note_failure(self, problem: str) -> None:
        with self._lock:
            if not self.is_resting:
                log.warning("enrichment: %s", problem)
                self._resting_until = time.monotonic() + self._pause
                self._pause = min(self._pause * 2, PAUSE_S[1])
            self._problem = problem

    def forget_problem(self) -> None:
        """Clear the last failure unless a note still waits for a retry: nothing else would show that it is over."""
        if not self.is_resting and not self.pending_retries():
            self._problem = ""

    def tag_scope(self, note: Document) -> TagScope:
        """Return where a note finds the tags that it prefers: its workspace, or its namespace alone if a key is bound to that.

        The tags of other namespaces would reveal their notes to that key."""
        namespace = note.namespace if self._is_bound(note.workspace, note.namespace) else None
        return TagScope(note.workspace, namespace)

    def vocabulary(self, scope: TagScope) -> dict[str, int]:
        """Return the most used tags of `scope`, and of the vault if that is set.

        A large one is cached for a while."""
        known, index = self._vocabularies.get(scope), self._captures.index
        vault = self._vault.index if self._vault else None
        generations = (index.generation, vault.generation) if vault else (index.generation,)
        now = time.monotonic()
        if known and (known.generations == generations or now < known.fresh_until):
            return known.tags
        begun = time.thread_time()
        tags = Counter(dict(index.catalog.vocabulary(scope.workspace, self._settings.vocabulary, scope.namespace)))
        if vault:
            tags.update(dict(vault.catalog.vocabulary("", self._settings.vocabulary)))
        took = time.thread_time() - begun  # CPU time, not clock time: on a busy machine a vocabulary is not larger
        self._vocabularies[scope] = _Vocabulary(tags, generations, now + (took * FRESH if took >= LARGE_S else 0.0))
        return tags

    def _tag_vectors(self, texts: Sequence[str]) -> list[Any] | None:
        """Return the vectors of some tags; None while there is no encoder."""
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
        """Return whether a note's summary is the one that Memex derives from its text, as far as it can be derived again."""
        if self.by != "local" or not document.summary:
            return False
        return self.begin(replace(document, summary=None))().enrichment.summary == document.summary

    # Retries

    def add_retry(self, workspace: str, id: str, now: int) -> None:
        """Remember to retry the note of a workspace with this id. If the ledger can't be written, the call does not fail."""
        try:
            with self._ledger.transaction():
                self._ledger.execute(
                    "INSERT OR IGNORE INTO enrichment VALUES (?, ?, 0, ?)", (workspace, id, now + AGAIN_MS[0])
                )
        except Unavailable as error:
            log.warning("could not record an enrichment to retry: %s", error.message)

    def pending_retries(self, now: int | None = None) -> list[tuple[str, str, int]]:
        """Return workspace ("" = any), id and number of failures of the waiting notes; with `now`, only of those that are due."""
        due = "? IS NULL OR due_at <= ? OR due_at > ? + ?"  # further away than any wait: the clock was set back
        asked = f"SELECT workspace, id, failures FROM enrichment WHERE {due} ORDER BY due_at, id"  # noqa: S608 - words of ours
        rows = self._ledger.query(asked, (now, now, now, AGAIN_MS[1]))
        return [(workspace, id, failures) for workspace, id, failures in rows]

    def remove_retry(self, workspace: str, id: str) -> None:
        """Remove the note of a workspace with this id from the retries."""
        with self._ledger.transaction():
            self._ledger.execute("DELETE FROM enrichment WHERE id = ? AND workspace IN (?, '')", (id, workspace))

    def postpone_retry(self, workspace: str, id: str, failures: int, now: int) -> None:
        """Retry the note of a workspace with this id later, with a growing wait."""
        due = now + min(AGAIN_MS[0] * 2 ** min(failures + 1, 20), AGAIN_MS[1])
        with self._ledger.transaction():
            self._ledger.execute(
                "UPDATE enrichment SET failures = ?, due_at = ? WHERE workspace = ? AND id = ?",
                (failures + 1, due, workspace, id),
            )


def missing_properties(document: Document, enrichment: Enrichment, *, replace: bool = False) -> dict[str, Any]:
    """Return the properties that `enrichment` adds to a note: only missing ones, unless they are to be replaced.

    A summary that equals the note's first sentence is not written, because Memex derives it anyway."""
    changes: dict[str, Any] = {}
    if enrichment.tags and (replace or not document.tags):
        changes["tags"] = list(enrichment.tags[:MOST])
    stated = stated_summary(document)
    if enrichment.summary and (replace or not stated):
        summary = written_summary(document, enrichment.summary)
        changes |= {"summary": summary} if summary or stated else {}
    return changes


def stated_summary(document: Document) -> str | None:
    """Return the summary in a note's properties."""
    return None if document.summary_derived else document.summary


def written_summary(document: Document, summary: str | None) -> str | None:
    """Return the summary to write into a note's properties: None if it equals the first sentence of the text.

    The text of a file is not written for the reader of the note, so its note always states a summary."""
    return None if document.type == "note" and summary == derived_summary(document) else summary


def fill_missing(
    raw: bytes, document: Document, enrichment: Enrichment, *, read: Callable[..., Document], replace: bool = False
) -> tuple[bytes, Document] | None:
    """Write what a note lacks into its own lines; None when it lacks nothing. Raises FrontmatterError.

    `read` makes a document of bytes, path and `mtime_ms`. Tags that name the note's collection stay."""
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
    from syncd.enrichment.chat_endpoint import ChatEndpoint  # noqa: PLC0415 - it imports an HTTP client, which few users need

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
            return read_named_file(settings.api_key_file).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"enrich.api_key_file {settings.api_key_file} can't be read") from error
    return ""
