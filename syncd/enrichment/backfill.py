"""Backfill summaries and tags: for one note, for all notes that lack them, and for notes whose enrichment failed.

The backfill reads every note twice: first without a vocabulary, only to learn one, then with it. Only the second result
is written, note by note, into its own lines. The backfill can therefore be interrupted at any time and started again.

Law, tested: a `summary` or `tags` that a person or an agent wrote is replaced only if the owner asks for it; a note
that is being edited is left alone and named; only these lines change; nothing is written into a node's note."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from index.errors import Conflict, InvalidArgument, MemexError, Unavailable
from index.foreground import foreground
from index.model import Document, Record
from index.text.tags import key_of
from index.timings import now_ms
from index.topics.summary_and_tags import Enrichment
from syncd.documents.capture_note import CHANGE
from syncd.documents.parser import parse
from syncd.enrichment.enricher import DefectiveNote, Enricher, TagScope, missing_properties
from syncd.indexes import note_lookup
from syncd.indexes.index_builds import ScopeIndex
from syncd.vault.vault import Vault

Progress: TypeAlias = Callable[[dict[str, Any]], None]
# Writes an enrichment into the note it was made of, unless its text has changed; the last argument: replace existing values.
Enrich: TypeAlias = Callable[[Document, Enrichment, bool], Record | None]
SHOWN: Final = 30  # most tags of the vocabulary in an answer

log = logging.getLogger(__name__)


class Backfill:
    """Runs the owner's commands on summaries and tags. One backfill at a time; captures continue beside it.

    `exists` raises NotFound for an unknown workspace. `summed` returns workspace and id of the notes that were read
    for a summary, and `record_summary` adds one to them, with its summary."""

    def __init__(
        self,
        enrich: Enrich,
        exists: Callable[[str], object],
        captures: ScopeIndex,
        vault: Vault,
        enricher: Enricher,
        *,
        inbox: str,
        summed: Callable[[], set[tuple[str, str]]],
        record_summary: Callable[[str, str, str | None], None],
    ) -> None:
        self._enrich, self._exists, self._summed, self._record_summary = enrich, exists, summed, record_summary
        self._captures, self._vault, self._enricher, self._inbox = captures, vault, enricher, inbox
        self._one = threading.Lock()
        self._stopping = threading.Event()

    def facts(self) -> dict[str, Any]:
        """Return who enriches, the current problem, how many notes lack a summary or tags, and how many wait for a retry."""
        try:
            waiting = len(self._enricher.pending_retries())
        except Unavailable:  # the ledger can't be read, which status reports
            waiting = 0
        return {
            "by": self._enricher.by,
            "problem": self._enricher.problem,
            "missing": len(self._unlabelled_paths()),
            "waiting": waiting,
        }

    def _unlabelled_paths(self, workspace: str | None = None) -> list[str]:
        """Return the notes that lack a summary or tags, except those whose first sentence serves as the summary."""
        try:
            waiting = {(workspace, id) for workspace, id, _ in self._enricher.pending_retries()}
            ids = {id for _, id in waiting}
            # The workspace "" means any: rows of older versions have none.
            summed = {
                (workspace, id)
                for workspace, id in self._summed()
                if waiting.isdisjoint([(workspace, id), ("", id)]) and (workspace or id not in ids)
            }
        except Unavailable:  # as above
            summed = set()
        return self._captures.index.catalog.unlabelled_paths(workspace, summed)

    # One note

    def enrich_note(self, arguments: Mapping[str, Any], _: Progress) -> dict[str, Any]:
        """Write the missing summary and tags of one note; with `replace`, write both again."""
        self._check_enabled()
        replace, dry = bool(arguments.get("replace")), bool(arguments.get("dry_run"))
        record = note_lookup.find_note(
            [self._captures.index], arguments["id"], workspace=arguments.get("workspace") or None
        )
        if record is None:
            raise note_lookup.missing_note([self._captures.index], arguments["id"], "to list captures: memex recent")
        if record.type == "entity":
            raise InvalidArgument("this is an entity of the graph: set its summary and tags instead")
        if record.type == CHANGE:
            raise InvalidArgument("this proposes a change of a note, which needs no summary and tags")
        document = self._read_document(record.path)
        enrichment = self._enricher.enrich(document, self._find_vocabulary(document))
        changes = missing_properties(document, enrichment, replace=replace)
        if changes and not dry:
            self._enrich(document, enrichment, replace)
            self._enricher.remove_retry(record.workspace, record.id)
        labels = {"summary": document.summary, "tags": list(document.tags)} | changes
        return {"id": record.id, "path": record.path, **labels, "changed": sorted(changes)}

    # All notes that lack something

    def enrich_all(self, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Run both passes over every note that lacks a summary or tags. Raises Unavailable when an endpoint fails."""
        self._check_enabled()
        if name := arguments.get("workspace"):
            self._exists(name)
        dry = bool(arguments.get("dry_run"))
        with self._run_alone():
            # Several defective notes in a row would end it again.
            paths = sorted(self._unlabelled_paths(name), key=self._enricher.is_defective)
            skipped: list[dict[str, str]] = []
            scopes, known = self._learn_tags(paths, skipped, progress)
            written: list[dict[str, Any]] = []
            unchanged, count = 0, len(paths)
            for n, (path, scope) in enumerate(scopes.items(), count):
                self._check_stopping(len(written))
                progress({"stage": "writing", "done": n, "total": 2 * count})
                done = self._enrich_path(path, known[scope], skipped, len(written), dry=dry)
                written += [done] if done else []
                unchanged += done is None
            progress({"stage": "writing", "done": 2 * count, "total": 2 * count})
        return {
            "enriched": len(written),
            "unchanged": unchanged,
            "skipped": skipped,
            "dry_run": dry,
            "notes": written,
            "vocabulary": {str(scope): list(tags)[:SHOWN] for scope, tags in known.items()},
        }

    def stop(self, _: Mapping[str, Any], __: Progress) -> dict[str, Any]:
        """Stop a backfill after the current note."""
        running = self._one.locked()
        if running:
            self._stopping.set()
        return {"stopping": running}

    def _learn_tags(
        self, paths: Sequence[str], skipped: list[dict[str, str]], progress: Progress
    ) -> tuple[dict[str, TagScope], dict[TagScope, dict[str, int]]]:
        """Return the scope of each note and the tags of each scope. A note that can't be read is added to `skipped`."""
        scopes: dict[str, TagScope] = {}
        learnt: dict[TagScope, Counter[str]] = {}
        for n, path in enumerate(paths):
            self._check_stopping(0)
            progress({"stage": "learning tags", "done": n, "total": 2 * len(paths)})
            if (document := self._try_read(path, skipped)) is None:
                continue
            scope = scopes[path] = self._enricher.tag_scope(document)
            if scope not in learnt:
                learnt[scope] = Counter(self._enricher.vocabulary(scope))
            with suppress(DefectiveNote):  # the second pass names it
                learnt[scope].update(self._enricher.enrich(document, {}).tags)
        return scopes, {scope: most_used_tags(tags, self._enricher.most) for scope, tags in learnt.items()}

    def _enrich_path(
        self, path: str, known: Mapping[str, int], skipped: list[dict[str, str]], done: int, *, dry: bool
    ) -> dict[str, Any] | None:
        """Write what one note lacks; None when that is nothing, or it can't be written and is added to `skipped`."""
        if (document := self._try_read(path, skipped)) is None:  # again: it may have changed since the first pass
            return None
        try:
            enrichment = self._enricher.enrich(document, known)
        except DefectiveNote as error:
            skipped.append({"path": document.path, "reason": error.message})
            return None
        except Unavailable as error:
            raise Unavailable(f"{error.message}; notes written: {done:,}; run the command again to continue") from error
        changes = missing_properties(document, enrichment)
        if not changes:
            if document.claimed_id and document.summary_derived and not dry:
                self._record_summary(document.workspace, document.claimed_id, document.summary)
            return None
        try:
            with self._enricher.isolate(document.path):
                written = dry or self._enrich(document, enrichment, False) is not None
        except MemexError as error:
            skipped.append({"path": document.path, "reason": error.message})
            return None
        return {"path": document.path, **changes} if written else None

    def _try_read(self, path: str, skipped: list[dict[str, str]]) -> Document | None:
        """Return the note at `path`; None if it can't be read and is added to `skipped`."""
        try:
            return self._read_document(path)
        except MemexError as error:
            skipped.append({"path": path, "reason": error.message})
            return None

    @contextmanager
    def _run_alone(self) -> Iterator[None]:
        if not self._one.acquire(blocking=False):
            raise Conflict("a backfill is already running")
        self._stopping.clear()
        try:
            yield
        finally:
            self._one.release()

    def _check_stopping(self, written: int) -> None:
        if self._stopping.is_set() or self._enricher.closed.is_set():
            raise Unavailable(
                f"interrupted; notes written: {written:,}; run the command again to continue with the rest"
            )
        foreground.give_way()

    # Retries

    def retry_failed(self) -> None:
        """Run the job: retry the notes whose enrichment failed, until one fails again."""
        if self._enricher.by == "off":
            return
        waiting: list[tuple[Record, tuple[str, str], int]] = []
        due = list(self._enricher.pending_retries(now_ms()))
        lacking = set(self._captures.index.catalog.unlabelled_paths()) if due else set()
        for workspace, id, failures in due:  # all of them first, so that notes that need no retry don't wait
            # Without a note there, it may have been moved.
            record = self._captures.index.record(id, workspace) or self._captures.index.record(id)
            if record is None or record.type == "entity" or record.path not in lacking:
                self._enricher.remove_retry(workspace, id)
            else:
                waiting.append((record, (workspace, id), failures))
        for record, note, failures in waiting:
            foreground.give_way()
            try:
                with self._enricher.isolate(record.path):
                    document = self._read_document(record.path)
                    enrichment = self._enricher.enrich(document, self._find_vocabulary(document))
                    self._enrich(document, enrichment, False)
            except MemexError as error:
                self._enricher.postpone_retry(*note, failures, now_ms())
                log.info("enrichment of a note is postponed: %s", error.code)
                if self._enricher.is_resting or self._enricher.closed.is_set():
                    return
            else:
                self._enricher.remove_retry(*note)
        self._enricher.forget_problem()

    def _check_enabled(self) -> None:
        if self._enricher.by == "off":
            raise InvalidArgument('enrichment is off: set enrich.by to "local" or "endpoint" first')

    def _find_vocabulary(self, document: Document) -> dict[str, int]:
        return self._enricher.vocabulary(self._enricher.tag_scope(document))

    def _read_document(self, path: str) -> Document:
        raw, stat = self._vault.read(path)
        return parse(raw, path, mtime_ms=stat.mtime_ms, inbox=self._inbox)


def most_used_tags(tags: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the most used of `tags`; variants count together, under the spelling that is used most."""
    grouped: dict[str, Counter[str]] = {}
    for tag, used in tags.items():
        grouped.setdefault(key_of(tag), Counter())[tag] += used
    spelt = {min(forms, key=lambda tag: (-forms[tag], tag)): forms.total() for forms in grouped.values()}
    return dict(sorted(spelt.items(), key=lambda pair: (-pair[1], pair[0]))[:most])
