"""Run one index pass: find changed files, read, chunk and embed them, and commit the result to the index.

Law: a pass decides from the files alone, so a late, duplicate or wrong cause does no harm."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial

from index.document_ids import sha256
from index.errors import MemexError, NotFound, Unavailable
from index.foreground import foreground
from index.model import Document, Record, Stat
from index.names import base_name
from index.process_memory import LARGE_TEXT
from index.scope.index import Index
from index.scope.prepared_document import PreparedDocument
from syncd.documents.collection_membership import CollectionChanges
from syncd.documents.parser import parse
from syncd.indexes.index_builds import Build
from syncd.sync.change_plan import (
    WINDOW,
    AddedNote,
    ModifiedNote,
    MovedNote,
    Plan,
    ReadFile,
    RemovedNote,
    compare_stats,
    plan_changes,
    split_into_windows,
)
from syncd.sync.hand_edits import HandEdits
from syncd.sync.note_adoption import NoteAdoption, is_adoptable, list_unadopted
from syncd.sync.pending_paths import PendingPaths
from syncd.sync.removal_rules import FINAL, RemovalRules
from syncd.sync.shared_notes import SharedNotes
from syncd.vault.listing import Listing, Speller
from syncd.vault.location import locate
from syncd.vault.path_rules import is_below
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

MANY = 200  # above this number of paths, one listing of the whole vault is cheaper than checking each path
BULK = 500  # above this number of files, a pass yields to calls: nobody waits for a single file
TRIES = 5  # tries for a file that can't be read now, with growing pauses; then it waits for a listing
INNER = 2  # most passes inside another: one over a large note, and one over small notes inside that
REST_S = 2.0  # most seconds that saved notes wait for a pass around theirs, which gets as much time as theirs took
READING_S = 1.0  # seconds of reading and parsing after which saved notes are indexed in between
POISONED = 100  # notes in a row that can't be indexed, above which the notes are not the cause

Progress = Callable[[int, int, str], None]  # done, total, stage


@dataclass(slots=True)
class PassOutcome:
    """Counts what a pass did."""

    added: int = 0
    modified: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    seconds: float = 0.0

    @property
    def changes(self) -> int:
        """Return the number of changed notes."""
        return self.added + self.modified + self.moved + self.removed

    def add(self, other: PassOutcome) -> None:
        """Add the counts of `other`."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(frozen=True, slots=True)
class PassRequest:
    """Describes a pass: its build, its paths (None = everything), and which absences it may accept."""

    build: Build
    live: bool  # the build answers searches; otherwise it is being made
    under: frozenset[str] | None = None
    accept: bool = False  # accept every absence
    at_once: bool = False  # accept a small absence without waiting
    beside: Build | None = None  # while another build is made: the build that answers meanwhile, kept up to date
    large_notes: int | None = None  # how many large notes a pass inside another may index; None = all


class IndexPass:
    """Makes passes, one at a time; other threads may commit captures in between."""

    def __init__(
        self,
        vault: Vault,
        pending_paths: PendingPaths,
        removal_rules: RemovalRules,
        edits: HandEdits,
        *,
        inbox: str,
        adopt_s: float,
        collections: Sequence[str],
        shared_notes: SharedNotes,
    ) -> None:
        self._vault, self._pending_paths, self._removal_rules, self._edits = vault, pending_paths, removal_rules, edits
        self._shared_notes = shared_notes
        self._locate = partial(locate, inbox=inbox)
        self._inbox, self._adopt_s, self._collections = inbox, adopt_s, collections
        self._filing = CollectionChanges(collections)
        self._adoption = NoteAdoption(vault, pending_paths, edits, self._filing, self._parse)
        self.failed: dict[str, str] = {}  # path → why it could not be read last time
        self.unseen = False  # some folders could not be listed last time
        # Called with each listing for the live build, and the paths it covers; must be fast and raise nothing.
        self.on_look: Callable[[Listing, Collection[str] | None], object] = lambda *_: None
        self._tries: dict[str, int] = {}  # path → how often it was postponed
        self._poisoned = 0  # notes in a row that triggered a bug
        self._inner = 0  # number of passes over saved notes that are running inside another pass
        self._next_inner = 0.0  # when the next one may begin, by the monotonic clock

    def run(self, request: PassRequest, progress: Progress | None = None) -> PassOutcome:
        """Run one pass. Raises Unavailable when a new build is being made and some notes can't be read."""
        outcome = PassOutcome()
        speller = self._vault.speller()
        if request.under is not None:  # after a change of letter case, an event may name the old name only
            request = replace(request, under=request.under.union(self._vault.spell(p, speller) for p in request.under))
        listing = self._list_notes(request.under, speller)
        if request.live:
            self.on_look(listing, request.under)
        if not request.live and (self._removal_rules.held_paths or not listing.complete):
            raise Unavailable("some notes can't be read now, so no new index is built; memex status names them")
        suspects, missing = list[str](), list[str]()
        embedding = all(index.can_embed for index in request.build.indexes.values())
        for scope, index in request.build.indexes.items():
            files = {path: stat for path, stat in listing.files.items() if self._locate(path).scope == scope}
            if request.under is None:
                index.forget_outdated(self._collections)
            comparison = compare_stats(files, index.entries(request.under), under=request.under, embedded=embedding)
            late = self._list_rewritten(request.under or (), files, comparison.suspects, index)
            if scope == "captures" and request.live:
                others = files.keys() - set(comparison.suspects) - set(late)
                late += list_unadopted(others, index, self._edits.paths)
            suspects += comparison.suspects + late
            missing += [path for path in comparison.missing if listing.is_gone(path)]
            outcome.unchanged += comparison.unchanged - len(late)
            if request.under is None:
                index.drop_orphans()
            skipped = {path: why for path, why in listing.skipped.items() if self._locate(path).scope == scope}
            self._record_skipped(request, index, skipped)
        if request.under is None:
            self._tries.clear()
        gone = self._decide_removals(request, listing, missing)
        suspects = self._choose(request.large_notes, suspects, listing.files)
        if gone and request.live and not request.accept:
            gone = self._postpone_moves(request.build, gone, suspects)
        sizes = [listing.files[path].size for path in suspects]
        self._process(request, list(split_into_windows(suspects, sizes)), gone, outcome, progress)
        if request.live:
            self._finish_live_pass(request, listing)
        return outcome

    def _finish_live_pass(self, request: PassRequest, listing: Listing) -> None:
        """Bring the index of shared notes up to date, and forget what the listing disproves."""
        vault_index, pending = request.build.indexes["vault"], self._pending_paths
        self._shared_notes.update(vault_index, listing, request.under, stopped=lambda: pending.stopped)
        looked = partial(is_below, folders=("",) if request.under is None else request.under)
        self.failed = {path: why for path, why in self.failed.items() if path in listing.files or not looked(path)}
        if request.under is None and not pending.stopped:
            self.unseen = not listing.complete
            if listing.complete:
                self._removal_rules.remember_head()
                self._edits.forget_missing(request.build.indexes["captures"].manifest)

    def _list_notes(self, under: frozenset[str] | None, speller: Speller) -> Listing:
        if under is None or len(under) > MANY:
            return self._vault.list_notes()
        looks = [self._vault.list_notes(path, speller) for path in sorted(under)]
        return Listing(
            {path: stat for look in looks for path, stat in look.files.items()},
            {path: why for look in looks for path, why in look.skipped.items()},
            all(look.complete for look in looks),
            frozenset().union(*(look.unread for look in looks)),
            {path: stat for look in looks for path, stat in look.others.items()},
        )

    def _list_rewritten(
        self, named: Collection[str], files: Mapping[str, Stat], suspects: Collection[str], index: Index
    ) -> list[str]:
        """Return the notes `named` by an event whose bytes differ from the index although their stats do not."""
        known = set(suspects)
        return sorted(path for path in named if path in files and path not in known and self._differs(path, index))

    def _differs(self, path: str, index: Index) -> bool:
        entry = index.manifest.get(path)
        with suppress(MemexError):  # it is changing and will cause an event, or it can't be read
            return entry is not None and self._vault.digest_file(path).digest != entry.digest
        return False

    def _record_skipped(self, request: PassRequest, index: Index, skipped: dict[str, str]) -> None:
        """Record the files that this listing skipped."""
        looked = partial(is_below, folders=("",) if request.under is None else request.under)
        left_out = {path: why for path, why in skipped.items() if looked(path)}
        index.replace_skipped(left_out, lambda path: self._locate(path).workspace, of=looked)

    def _stats_without(self, removed: Collection[str]) -> Callable[[str], Stat | None]:
        return partial(self._current_stat, removed=removed, speller=self._vault.speller())

    def _current_stat(self, path: str, removed: Collection[str] = (), speller: Speller | None = None) -> Stat | None:
        """Return the stat of the note at `path`; None if it is missing or too large, or `removed` by a change of letter case."""
        stat = self._vault.stat(path) if path not in removed or self._vault.spell(path, speller) == path else None
        return stat if stat is not None and stat.size <= self._vault.max_bytes else None

    def _decide_removals(self, request: PassRequest, listing: Listing, missing: list[str]) -> list[str]:
        if not request.live:
            return missing
        self._removal_rules.mark_present(listing.files)
        if request.under is None:
            self._removal_rules.keep_only(missing)
        if request.accept:
            self._removal_rules.accept(missing)
            return missing
        known = sum(len(index.manifest) for index in request.build.indexes.values())
        held = self._removal_rules.held_paths
        gone, wait = self._removal_rules.decide(
            missing, known, at_once=request.at_once, elsewhere=partial(_find_elsewhere, request.build, listing)
        )
        for path, seconds in wait.items():
            self._pending_paths.recheck(path, seconds)
        if held and not self._removal_rules.held_paths and request.under is not None:
            self._pending_paths.request_listing()  # this pass saw only some of the held paths
        return gone

    def _postpone_moves(self, build: Build, gone: Sequence[str], suspects: Sequence[str]) -> list[str]:
        """Return the removed notes but for those that may be moves: a file of that name and size is still to be processed."""
        names = set(map(base_name, gone))
        others = [path for path in self._pending_paths.paths.difference(gone, suspects) if base_name(path) in names]
        entries = {
            path: entry
            for index in build.indexes.values()
            for path in (*gone, *others)
            if (entry := index.manifest.get(path))
        }
        stats = {path: stat for path in others if (stat := self._current_stat(path))}
        # A capture that waits for its id may be indexed already, and its vectors don't matter here.
        unread = compare_stats(stats, entries, embedded=False).suspects
        waiting = {(base_name(path), stats[path].size) for path in unread}
        moves = {path for path in gone if path in entries and (base_name(path), entries[path].stat.size) in waiting}
        for path in moves:
            self._pending_paths.recheck(path, FINAL)
        return [path for path in gone if path not in moves]

    def _process(
        self,
        request: PassRequest,
        windows: Sequence[Sequence[str]],
        gone: Collection[str],
        outcome: PassOutcome,
        progress: Progress | None,
    ) -> None:
        """Process window by window; removals come last, so that their vectors can still be found by digest."""
        left, finished = set(gone), 0
        suspects = [path for window in windows for path in window]

        def meanwhile(busy: Collection[str]) -> None:
            if progress:
                progress(finished, len(suspects), "indexing")
            with foreground.bulk(False):
                self._run_urgent(request, outcome, busy)

        with self._pending_paths.processing(suspects) as done:
            for window in windows:
                if self._pending_paths.stopped:
                    return
                try:
                    with foreground.bulk(len(suspects) > BULK):
                        self._process_window(request, window, left, outcome, meanwhile)
                except BaseException:
                    for path in suspects[finished:] if request.live else ():
                        self._pending_paths.recheck(path, FINAL)  # still pending
                    raise
                done(window)
                finished += len(window)
                meanwhile(())
        self._edits.note_departures(request.build.indexes["captures"], left)
        for index in request.build.indexes.values():
            paths = [path for path in left if path in index.manifest]
            for start in range(0, len(paths), 1000):
                index.commit([], paths[start : start + 1000], fresh=self._stats_without(left))
            outcome.removed += sum(path not in index.manifest for path in paths)

    def _run_urgent(self, request: PassRequest, outcome: PassOutcome, busy: Collection[str]) -> None:
        """Index saved notes during a bulk run or a long embedding, so that they don't wait; `busy` are being processed.

        A large note is indexed between two windows, and small ones also while it is embedded."""
        answering = request.build if request.live else request.beside
        if self._inner == INNER or answering is None or time.monotonic() < self._next_inner:
            return
        large = 0 if busy or self._inner else 1
        with self._pending_paths.processing_due() as due:
            for path in (paths := frozenset(due)).intersection(busy):
                self._pending_paths.recheck(path, FINAL)
            if not (under := paths.difference(busy)):
                return
            self._inner, begun = self._inner + 1, time.monotonic()
            try:
                done = self.run(PassRequest(answering, live=True, under=under, large_notes=large))
            finally:
                self._inner, ended = self._inner - 1, time.monotonic()
                self._next_inner = ended + min(ended - begun, REST_S)
        if request.live:
            outcome.add(done)

    def _choose(self, large: int | None, suspects: Sequence[str], files: Mapping[str, Stat]) -> list[str]:
        """Order the notes of a pass: captures first, then the last saved first.

        Inside another pass, choose the first small notes, or so many `large` ones; the others wait."""
        suspects = sorted(suspects, key=lambda path: (self._locate(path).scope == "vault", -files[path].mtime_ns))
        if large is None:
            return suspects
        small = [path for path in suspects if files[path].size <= LARGE_TEXT]
        chosen = small[:WINDOW] or suspects[:large]
        for path in set(suspects).difference(chosen):
            self._pending_paths.recheck(path, FINAL)
        return chosen

    def _process_window(
        self,
        request: PassRequest,
        window: Sequence[str],
        left: set[str],
        outcome: PassOutcome,
        meanwhile: Callable[[Collection[str]], None],
    ) -> None:
        documents = dict(self._read_notes(request, window, outcome, lambda: meanwhile(window)))
        try:
            self._commit(request, documents, left, outcome, lambda _: meanwhile(window))
        except Unavailable:
            raise  # not caused by a note
        except Exception as fault:  # noqa: BLE001 - one note must not block the others
            if len(documents) == 1:
                self._record_defect(next(iter(documents)), fault, outcome)
                return
            for path in documents:  # find out which one
                self._process_window(request, [path], left, outcome, meanwhile)
        else:
            self._poisoned = 0

    def _record_defect(self, path: str, fault: Exception, outcome: PassOutcome) -> None:
        """Skip a note that triggers a bug, and record it."""
        log.error("could not index %a", path, exc_info=fault)
        outcome.failed += 1
        why = fault.message if isinstance(fault, MemexError) else f"{type(fault).__name__}, see the log"
        self.failed[path] = f"can't be indexed: {why}"
        self._poisoned += 1
        if self._poisoned > POISONED:
            self._poisoned = 0
            raise fault

    def _commit(
        self,
        request: PassRequest,
        documents: Mapping[str, tuple[Document, Stat]],
        left: set[str],
        outcome: PassOutcome,
        meanwhile: Callable[[int], None],
    ) -> None:
        for scope, index in request.build.indexes.items():
            if not (mine := {path: pair for path, pair in documents.items() if pair[0].scope == scope}):
                continue
            seen = {path: ReadFile(note.digest, note.claimed_id, stat) for path, (note, stat) in mine.items()}
            absent = {path for path in left if path in index.manifest}
            known = {path: entry for path in (*seen, *absent) if (entry := index.manifest.get(path))}
            planned = plan_changes(seen, absent, known, embedded=index.can_embed)
            moved = {change.old: change.new for change in planned.changes if isinstance(change, MovedNote)}
            changed = [change.path for change in planned.changes if not isinstance(change, MovedNote | RemovedNote)]
            aged = [path for path in planned.touched if mine[path][0].has_file_time(mine[path][1])]
            ready = index.prepare([mine[path] for path in (*moved.values(), *changed, *aged)], progress=meanwhile)
            places = {path: self._locate(path).workspace for path in (*moved, *moved.values())}
            self._edits.note_departures(index, [old for old, new in moved.items() if places[old] != places[new]])
            stale = index.commit(ready, moved.keys(), fresh=self._stats_without(moved))
            index.touch(planned.touched)
            left -= moved.keys()
            for path in stale:
                self._pending_paths.recheck(path, 0.2)
            _count_changes(outcome, planned, ready, set(stale))

    def _read_notes(
        self, request: PassRequest, paths: Iterable[str], outcome: PassOutcome, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[str, tuple[Document, Stat]]]:
        begun = time.monotonic()
        for path in paths:
            if time.monotonic() - begun > READING_S:
                meanwhile()
                begun = time.monotonic()
            foreground.pace()
            try:
                document, stat = self._read_note(request, path)
            except NotFound:
                self._pending_paths.recheck(path, FINAL)
            except Unavailable as error:
                outcome.failed += 1
                self.failed[path] = f"can't be read: {error.message.removeprefix(f'{path}: ')}"
                tries = self._tries.get(path, 0)
                if error.retryable and tries < TRIES:
                    self._tries[path] = tries + 1
                    self._pending_paths.recheck(path, FINAL * 2**tries)
            except Exception as fault:  # noqa: BLE001 - one note must not block the others
                self._record_defect(path, fault, outcome)
            else:
                self.failed.pop(path, None)
                self._tries.pop(path, None)
                if document is not None:
                    yield path, (document, stat)

    def _read_note(self, request: PassRequest, path: str) -> tuple[Document | None, Stat]:
        """Read the note at `path`; None when it must be checked again because an editor may be writing it, or never."""
        raw, stat = self._vault.read(path)
        age = time.time() - stat.mtime_ns / 1e9
        if (
            not (raw or request.accept)
            and 0 <= age < FINAL
            and path in request.build.indexes[self._locate(path).scope].manifest
        ):
            self._pending_paths.recheck(path, FINAL - age)
            return None, stat
        if len(raw) > LARGE_TEXT and self._is_as_indexed(request, raw, path, stat):
            return None, stat
        document = self._parse(raw, path, stat)
        if request.live:
            self._filing.remember(
                document, raw, partial(_known_record, document, request.build.indexes[document.scope])
            )
        known = request.build if request.live else request.beside
        edited = known is not None and self._edits.notice_edit(document, stat, known.indexes["captures"])
        if request.live and raw.strip() and (edited or is_adoptable(document)):
            if 0 <= age < self._adopt_s:
                self._pending_paths.recheck(path, self._adopt_s - age)
            else:
                return self._adoption.adopt(document, raw, stat)
        return document, stat

    def _is_as_indexed(self, request: PassRequest, raw: bytes, path: str, stat: Stat) -> bool:
        """Return whether a large note that was written or touched is already indexed; its new stat is recorded.

        Reading it again would need ten times its size in memory, beside other work on it."""
        index = request.build.indexes[self._locate(path).scope]
        entry, record = index.manifest.get(path), index.record_at(path)
        if entry is None or record is None or not entry.embedded:
            return False
        if record.scope == "captures" and list_unadopted([path], index, self._edits.paths):
            return False
        if entry.digest != sha256(raw) or record.created_at == entry.stat.mtime_ms:
            return False
        index.touch({path: stat})
        return True

    def _parse(self, raw: bytes, path: str, stat: Stat) -> Document:
        return parse(raw, path, mtime_ms=stat.mtime_ms, inbox=self._inbox, collections=self._collections)


def _find_elsewhere(build: Build, listing: Listing, missing: Collection[str]) -> set[str]:
    """Return which of these notes still exist under another name: as the same file, or with equal bytes."""
    entries = {path: entry for index in build.indexes.values() for path, entry in index.manifest.copy().items()}
    stats = set(listing.files.values())
    digests = {entry.digest for path, entry in entries.items() if path not in missing} - {""}
    pairs = ((path, entry) for path in missing if (entry := entries.get(path)))
    return {path for path, entry in pairs if entry.stat in stats or entry.digest in digests}


def _known_record(document: Document, index: Index) -> Record | None:
    """Return the indexed row of a note, perhaps under another path."""
    there = index.record_at(document.path)
    return there or (index.record(document.claimed_id, document.workspace) if document.claimed_id else None)


def _count_changes(
    outcome: PassOutcome, planned: Plan, ready: Sequence[PreparedDocument], stale: Collection[str]
) -> None:
    for change in planned.changes:
        path = change.new if isinstance(change, MovedNote) else change.path
        if path not in stale:
            outcome.added += isinstance(change, AddedNote)
            outcome.modified += isinstance(change, ModifiedNote)
            outcome.moved += isinstance(change, MovedNote)
    outcome.unchanged += planned.unchanged
    for prepared in ready:
        if prepared.document.path not in stale:
            outcome.chunks += prepared.chunk_count
            outcome.embedded += prepared.embedded
            outcome.reused += prepared.reused
