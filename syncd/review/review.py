"""Keep the review up to date: the table of captures that wait for a decision, and the suggestions in each capture.

Laws, tested: a run changes nothing that agents can read in a note; Memex writes to a note only if nobody is editing
it, no Git operation is in progress, and its suggestions have changed; Memex never overwrites a table that a person
changed."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from index.document_ids import sha256
from index.encoders.word_frequency import word_ranks
from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.foreground import foreground
from index.model import Document, Record, Stat
from index.names import fold, note_name, stem
from index.process_memory import LARGE_TEXT, one_large_text, release_unused
from index.text.hidden_characters import find_hidden
from index.text.link_schemes import find_unsafe
from index.text.runnable_code import find_runnable
from index.timings import now_ms
from syncd.captures.writer import hold_commits
from syncd.documents.capture_note import CHANGE
from syncd.documents.owner_marks import OwnerMarks
from syncd.git.repository import Repository
from syncd.indexes.note_links import find_paths
from syncd.notes.front_matter import FrontmatterError, PropertyValue, decode, edit, encode, read_properties, split
from syncd.notes.timestamps import iso
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import MarkedCapture, WaitingCaptures
from syncd.review.bases_table import DISMISSED, NAME, compose_table
from syncd.review.reviewed_captures import ReviewedCapture, ReviewedCaptures, shorten
from syncd.review.suggestions import (
    Suggestions,
    SuggestionSubject,
    VaultHabits,
    learn_habits,
    shared_parts,
    shingles,
    suggest,
    suggestion_properties,
)
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.sync.hand_edits import visible_digest
from syncd.sync.note_adoption import UNADOPTED
from syncd.vault.obsidian_settings import ObsidianSettings

RUN_S: Final = 300.0  # most seconds of a run; the next run continues
NIGHT_S: Final = 100.0  # most seconds of the nightly run
SLICE: Final = 50  # captures whose rows are read, and whose reviews are kept, at a time
RELEARN_S: Final = 600.0  # seconds after which the habits of a changed vault are learned again
COMPARED: Final = 5  # notes whose text is compared with a capture's
LEAST_NEAR: Final = 0.4  # the least similarity for this comparison
FIRST_TAGS: Final = 4  # tags of a capture that are used as words of the search for similar notes
READ: Final = 100_000  # first characters of a text that are compared, and searched for names of notes
NO_PROSE: Final = frozenset({"code", "html", "math"})  # kinds of blocks that are not searched for names of notes
CODE: Final = re.compile(r"(`+)[^`\n]+\1")
UNLINKABLE: Final = frozenset("#^[]|")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LearntVault:
    """Holds the vault's habits as of one generation of its index."""

    habits: VaultHabits
    generation: int
    at: float  # monotonic


class Review:
    """Reviews the waiting captures. Only one run executes at a time; reading is safe from any thread."""

    def __init__(self, snapshot: VaultSnapshot, waiting: WaitingCaptures, repo: Repository, ledger: Ledger) -> None:
        self._captures, self._proper, self._vault, self._waiting = (
            snapshot.captures,
            snapshot.notes,
            snapshot.vault,
            waiting,
        )
        self._edits, self._repo, self._ledger, self._settings = snapshot.sync.edits, repo, ledger, snapshot.settings
        self._inbox, self._parsed = snapshot.inbox, snapshot.parse
        self._one, self._learning = threading.Lock(), threading.Lock()
        self._learnt: LearntVault | None = None
        self._reviewed = ReviewedCaptures(ledger)
        self._moment: object = None  # the state of the inbox when nothing was left to do
        self._counted: tuple[object, dict[str, int]] = (None, {})  # the last summary, after the state it was made for

    # Reading

    def list_waiting(self) -> list[tuple[Record, OwnerMarks]]:
        """List the captures that wait for a decision, including those marked for promotion, the oldest first."""
        captures = [
            (record, marks) for record, marks in self._waiting.find_captures(is_undecided) if record.type != "entity"
        ]
        return sorted(captures, key=lambda pair: (pair[0].created_at, pair[0].path))

    def summary(self) -> dict[str, int]:
        """Count the waiting captures, those marked for promotion, and those that can't be promoted yet."""
        moment = self._waiting.version
        if self._counted[0] != moment:
            waiting = [(marks, count) for kind, marks, count in self._waiting.count() if _waits(kind, marks)]
            counts = {
                "waiting": sum(count for _, count in waiting),
                "marked": sum(count for marks, count in waiting if marks.promote),
                "problems": sum(count for marks, count in waiting if marks.promote_problem is not None),
            }
            self._counted = moment, counts
        return dict(self._counted[1])

    def suggest(self, record: Record) -> Suggestions:
        """Compute the suggestions for one capture now, with the reasons."""
        raw, stat = self._vault.read(record.path)
        return self._compute_suggestions(record, self._parsed(raw, record.path, stat), self._learn_habits())

    # Writing

    def run(self, stopping: threading.Event | None = None) -> int:
        """Write suggestions into changed captures, and the table; return the number of written notes."""
        with self._one:
            if not self._can_write():
                return 0
            written = self._write_suggestions(stopping or threading.Event())
            self._write_table()  # last, because a folder or another program may be in its way
            return written

    def _write_suggestions(self, stopping: threading.Event) -> int:
        moment = self._waiting.version
        if not self._may_suggest() or moment == self._moment:
            return 0
        due = self._reviewed.find_due({path: capture.digest for path, capture in self._find_suggestible().items()})
        written, left = self._review_captures(due, stopping, RUN_S)
        self._moment = None if left or written else moment
        return written

    def run_again(self, stopping: threading.Event | None = None) -> int:
        """Renew suggestions that are older than the vault, as the nightly job; return the number of written notes.

        The oldest come first; the remaining ones wait for the next night."""
        with self._one:
            if not self._can_write() or not self._may_suggest():
                return 0
            reviewed, suggestible = self._reviewed.read(), self._find_suggestible()
            self._reviewed.forget(reviewed.keys() - suggestible.keys())
            generation = self._proper.index.generation
            due = [path for path in suggestible.keys() & reviewed.keys() if reviewed[path].generation != generation]
            due.sort(key=lambda path: (reviewed[path].at, path))
            return self._review_captures(dict.fromkeys(due), stopping or threading.Event(), NIGHT_S)[0]

    def _can_write(self) -> bool:
        return self._vault.is_present() and not self._repo.busy_reason()

    def _may_suggest(self) -> bool:
        """Return whether suggestions are enabled and all notes are indexed: a partial index gives wrong nearest notes."""
        return self._settings.review.suggest and self._captures.index.is_complete and self._proper.index.is_complete

    def _has_workspaces(self) -> bool:
        try:
            return bool(self._vault.list_folders(self._inbox))
        except NotFound:  # a link or a file is in its place, as the status says
            return False

    def _write_table(self) -> None:
        """Write the table if it is missing, or unchanged since Memex wrote it."""
        path, wanted = f"{self._inbox}/{NAME}", compose_table(self._inbox).encode()
        if not self._settings.review.table or not self._has_workspaces():
            return
        try:
            there: bytes | None = self._vault.read(path)[0]
        except NotFound:
            there = None
        if there != wanted:
            if there is None:
                self._vault.create(path, wanted)
            elif sha256(there) == named_values.read(self._ledger, NAME):
                self._vault.replace(path, wanted, digest=sha256(there))
            else:
                return  # a person has changed it
        if named_values.read(self._ledger, NAME) != sha256(wanted):
            named_values.write(self._ledger, {NAME: sha256(wanted)})

    def _find_suggestible(self) -> dict[str, MarkedCapture]:
        """Return the captures that wait for suggestions or have them, by path."""
        return {
            path: capture
            for path, capture in self._waiting.marked().items()
            if _waits(capture.type, capture.marks) and not capture.marks.promote and not capture.marks.twice
        }

    def _review_captures(
        self, due: Mapping[str, ReviewedCapture | None], stopping: threading.Event, seconds: float
    ) -> tuple[int, bool]:
        """Review these captures for at most `seconds`; return the number of written notes, and whether captures are left.

        `due`: by path, the earlier review, or None to compute suggestions in any case. If the part that agents can
        read is unchanged since that review, as after a mark of the owner, the capture keeps its suggestions."""
        written, left, over, end, remaining = 0, False, False, time.monotonic() + seconds, iter(due)
        while slice_paths := list(islice(remaining, SLICE)):
            records, done = self._captures.index.records_at(slice_paths), dict[str, ReviewedCapture]()
            for path, record in records.items():
                foreground.give_way()
                if over or stopping.is_set() or self._repo.busy_reason():
                    self._reviewed.keep(done)
                    return written, True
                over = time.monotonic() > end
                before, visible = due[path], visible_digest(record)
                if before is not None and before.visible == visible:
                    done[path] = replace(before, digest=shorten(record.digest))
                    continue
                outcome = self._try_update(record)
                if outcome is None:
                    left = True
                else:
                    digest, generation = outcome
                    written += digest != record.digest
                    done[path] = ReviewedCapture(shorten(digest), visible, generation, now_ms())
            self._reviewed.keep(done)
        return written, left

    def _try_update(self, record: Record) -> tuple[str, int] | None:
        """Update a capture, and return its new digest and the vault's generation; None if it must be tried later."""
        try:
            digest = self._update_capture(record)
        except (Conflict, NotFound, Unavailable) as error:
            log.info("suggestions for a capture are postponed: %s", error.message)
            return None
        except FrontmatterError as error:  # not tried again until the capture changes
            log.info("a capture can't get suggestions: %s", error)
            digest = record.digest
        return None if digest is None else (digest, self._learn_habits().generation)

    def _update_capture(self, record: Record) -> str | None:
        """Write suggestions into a capture if they differ, and return its new digest; None if it must be tried later."""
        raw, stat = self._vault.read(record.path)
        if len(raw) <= LARGE_TEXT:
            return self._update_read_capture(record, raw, stat)
        if not one_large_text.acquire(blocking=False):
            return None
        try:
            return self._update_read_capture(record, raw, stat)
        finally:
            one_large_text.release()
            release_unused()

    def _update_read_capture(self, record: Record, raw: bytes, stat: Stat) -> str | None:
        before = self._parsed(raw, record.path, stat)
        age = time.time() - stat.mtime_ns / 1e9
        if before.digest != record.digest or 0 <= age < self._settings.sync.adopt_s or self._edits.is_pending(before):
            return None
        learnt = self._learn_habits()
        if not is_writable(before):
            return record.digest
        text = decode(raw)
        values = {key.casefold(): value for key, value in read_properties(split(text)[0]).items()}
        suggestions = self._compute_suggestions(record, before, learnt)
        changes: dict[str, PropertyValue] = suggestion_properties(
            suggestions, values, self._link_targets(suggestions, record)
        )
        changes["hidden_text"] = list(find_hidden(text)) or None
        changes["runnable_code"] = list(find_runnable(text)) or None
        changes["unsafe_links"] = list(find_unsafe(text)) or None
        if "promote" not in values:
            changes = {"promote": False} | changes
        edited = self._edit_note(text, changes, before, stat)
        if edited is None:
            return record.digest
        after, document = edited
        return document.digest if self._write_note(before, after, document, stat) else None

    def _edit_note(
        self, text: str, changes: Mapping[str, PropertyValue], before: Document, stat: Stat
    ) -> tuple[bytes, Document] | None:
        """Return the note with these properties, or without the suggestions if an agent could see that they are there.

        Returns None if nothing changes, or an agent could see that change too."""
        dated: dict[str, PropertyValue] = {}
        if before.has_file_time(stat):  # otherwise this write would change the creation time
            dated = {"created_at": iso(before.created_at)}
        for wanted in (changes, {key: value for key, value in changes.items() if not value}):
            if (after := edit(text, wanted)) == text:
                return None
            raw = encode(edit(after, dated))
            if look_alike_to_agents(before, document := self._parsed(raw, before.path, stat)):
                return raw, document
        return None

    def _write_note(self, before: Document, raw: bytes, document: Document, stat: Stat) -> bool:
        index = self._captures.index
        (ready,) = index.prepare([(document, stat)])
        with hold_commits(self._captures) as current:
            if current is not index or self._edits.is_pending(before):
                return False
            written = self._vault.replace(before.path, raw, digest=before.digest)
            index.commit([replace(ready, stat=written)])
        return True

    # Computing suggestions

    def _compute_suggestions(self, record: Record, document: Document, learnt: LearntVault) -> Suggestions:
        if document.type == CHANGE:  # it says itself which note it belongs to
            return Suggestions()
        prose = "\n\n".join(
            document.text[block.start : block.end] for block in document.blocks if block.kind not in NO_PROSE
        )
        prose = CODE.sub(" ", prose[:READ])
        words = " ".join([document.title, *document.tags[:FIRST_TAGS]])
        similar = self._proper.index.find_similar(self._captures.index.sample_vectors(record), words)
        similar = [hit for hit in similar if not hit.record.path.startswith(f"{self._inbox}/")]
        targets = {link.target for link in document.links if link.line >= 0}
        paths = find_paths((self._proper.index, self._captures.index), targets)
        linked = {path for target in targets if (path := paths.resolve(target, document.path))}
        mine, shares = shingles(document.content[:READ]), {}
        for hit in [hit for hit in similar if hit.near >= LEAST_NEAR or _has_name(hit.record, document.title)][
            :COMPARED
        ]:
            with suppress(MemexError):  # the note was removed a moment ago
                body = split(decode(self._vault.read(hit.record.path)[0]))[1]
                shares[hit.record.path] = shared_parts(mine, shingles(body[:READ]))
        return suggest(SuggestionSubject(document.title, document.tags, prose, linked), similar, learnt.habits, shares)

    def _link_targets(self, suggestions: Suggestions, record: Record) -> dict[str, str]:
        """Return the link target of each suggested note, by path: its name if that is unique, otherwise its path.

        Notes that no link can name are left out."""
        paths = {*(link.what for link in suggestions.links), *(note.path for note in suggestions.similar)}
        indexes = (self._proper.index, self._captures.index)
        files = {f"{stem(path)}.md" for path in paths}
        alike = Counter(stem(path) for index in indexes for path in index.paths_named(files))
        targets = {}
        for path in paths - {record.path}:
            name = note_name(path)
            target = name if alike[stem(path)] == 1 else path[:-3]
            if not UNLINKABLE & set(target) and path in self._proper.index.manifest:
                targets[path] = target
        return targets

    def _learn_habits(self) -> LearntVault:
        """Return the vault's habits; after a change of the vault they are learned again, at most every RELEARN_S."""
        with self._learning:
            index, now = self._proper.index, time.monotonic()
            known = self._learnt
            if known is None or (known.generation != index.generation and now - known.at > RELEARN_S):
                generation = index.generation
                vault_habits = learn_habits(
                    index.note_names(),
                    inbox=self._inbox,
                    aside=ObsidianSettings(self._vault).special_folders(),
                    ordinary=word_ranks(),
                )
                known = self._learnt = LearntVault(vault_habits, generation, now)
            return known


def _waits(kind: str, marks: OwnerMarks) -> bool:
    return kind != "entity" and is_undecided(marks)


def is_undecided(marks: OwnerMarks) -> bool:
    """Check whether a capture with these marks waits for a decision."""
    return marks.review != DISMISSED and marks.promoted_at is None


def is_writable(document: Document) -> bool:
    """Check whether a note is complete, and Memex may write to it."""
    torn = any(defect.name in UNADOPTED for defect in document.defects)
    return document.writable and document.claimed_id is not None and not torn


def look_alike_to_agents(before: Document, after: Document) -> bool:
    """Check whether two states of a note look the same to every agent."""
    return replace(after, digest=before.digest, links=before.links, owner_marks=before.owner_marks) == before


def _has_name(record: Record, title: str) -> bool:
    return fold(title) in {fold(name) for name in (record.title, *record.aliases)}
