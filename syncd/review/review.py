"""Keep the review up to date: the table of captures that wait for a decision, and the suggestions in each capture.

Laws, tested: a run changes nothing that an agent can read of a note; a note is written only when it is quiet, no Git
operation is under way, and its suggestions have changed; a table that a person changed is theirs."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from index.encoders.word_frequency import word_ranks
from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.model import Document, Record, Stat
from index.names import fold, stem
from index.process_memory import LARGE_TEXT, one_large_text
from index.text.hidden_characters import find_hidden
from index.text.link_schemes import find_unsafe
from index.text.runnable_code import find_runnable
from syncd.captures.writer import hold_commits
from syncd.documents.owner_marks import OwnerMarks
from syncd.git.repository import Repository
from syncd.links.link_resolution import Paths
from syncd.notes.front_matter import FrontmatterError, PropertyValue, decode, edit, encode, read_properties, split
from syncd.notes.timestamps import iso
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import WaitingCaptures
from syncd.review.bases_table import DISMISSED, NAME, compose_table
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

RUN_S: Final = 5.0  # seconds of a run, after which the next one goes on
RELEARN_S: Final = 600.0  # seconds after which the habits of a vault that changed are learnt anew
RELOOK_S: Final = 6 * 3600.0  # after which a capture is looked at again because the vault has changed
COMPARED: Final = 5  # notes whose text is compared with a capture's
LEAST_NEAR: Final = 0.4  # similarity from which that is worth it
FIRST_TAGS: Final = 4  # tags of a capture that are looked for as words
READ: Final = 100_000  # characters of a text that are compared, and in which names of notes are looked for
UNSPOKEN: Final = frozenset({"code", "html", "math"})  # blocks that name no notes
CODE: Final = re.compile(r"(`+)[^`\n]+\1")
UNLINKABLE: Final = frozenset("#^[]|")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LearntVault:
    """The vault proper at one moment: its habits, where links lead, and how often each name is there."""

    habits: VaultHabits
    paths: Paths
    generation: int
    at: float  # monotonic


class Review:
    """What waits for a person. One run at a time; what it tells may be asked from any thread."""

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
        self._looked: dict[str, tuple[str, int, float]] = {}  # path → what it said, by which habits, and when
        self._moment: object = None  # of the inbox, when nothing was left to do
        self._counted: tuple[object, dict[str, int]] = (None, {})  # the moment of the summary, and it

    # What waits

    def list_waiting(self) -> list[tuple[Record, OwnerMarks]]:
        """The captures that wait for a decision, those that are marked for promotion too, the oldest first."""
        captures = [
            (record, marks) for record, marks in self._waiting.find_captures(is_undecided) if record.type != "entity"
        ]
        return sorted(captures, key=lambda pair: (pair[0].created_at, pair[0].path))

    def summary(self) -> dict[str, int]:
        """How many captures wait, how many of them are marked for promotion, and how many can't be promoted as they are."""
        moment = self._waiting.version
        if self._counted[0] != moment:
            waiting = [marks for _, marks in self.list_waiting()]
            counts = {
                "waiting": len(waiting),
                "marked": sum(marks.promote for marks in waiting),
                "problems": sum(marks.promote_problem is not None for marks in waiting),
            }
            self._counted = moment, counts
        return dict(self._counted[1])

    def suggest(self, record: Record) -> Suggestions:
        """What may become of one capture, with what speaks for it, as things stand now."""
        raw, stat = self._vault.read(record.path)
        return self._compute_suggestions(record, self._parsed(raw, record.path, stat), self._learn_habits())

    # Keeping it

    def run(self, stopping: threading.Event | None = None) -> int:
        """The job: write the table, and suggestions where they are due; how many notes were written."""
        with self._one:
            if not self._vault.is_present() or self._repo.busy_reason():
                return 0
            self._write_table()
            return self._write_suggestions(stopping or threading.Event()) if self._settings.review.suggest else 0

    def _write_table(self) -> None:
        """Write the table if it is missing, or still as it was last written."""
        path, wanted = f"{self._inbox}/{NAME}", compose_table(self._inbox).encode()
        if not self._settings.review.table or not self._vault.list_folders(self._inbox):
            return
        try:
            there: bytes | None = self._vault.read(path)[0]
        except NotFound:
            there = None
        if there != wanted:
            if there is None:
                self._vault.create(path, wanted)
            elif _sha256(there) == named_values.read(self._ledger, NAME):
                self._vault.replace(path, wanted, digest=_sha256(there))
            else:
                return  # a person's
        if named_values.read(self._ledger, NAME) != _sha256(wanted):
            named_values.write(self._ledger, {NAME: _sha256(wanted)})

    def _write_suggestions(self, stopping: threading.Event) -> int:
        captures, proper = self._captures.index, self._proper.index
        if not (captures.is_complete and proper.is_complete):
            return 0  # else what is near would be what happens to be read already
        moment = (self._waiting.version, proper.generation, int(time.monotonic() / RELEARN_S))
        if moment == self._moment:
            return 0
        written, begun, left = 0, time.monotonic(), False
        waiting = [record for record, marks in self.list_waiting() if not marks.promote and not marks.twice]
        self._looked = {record.path: self._looked[record.path] for record in waiting if record.path in self._looked}
        for record in self._due_captures(waiting):
            if stopping.is_set() or self._repo.busy_reason():
                left = True
                break
            try:
                done = self._update_capture(record)
            except (Conflict, NotFound, Unavailable) as error:
                log.info("suggestions for a capture are put off: %s", error.message)
                done = None
            except FrontmatterError as error:  # until it is edited
                log.info("a capture can't be given suggestions: %s", error)
                done = self._remember_looked(record, self._learn_habits())
            left |= done is None
            written += bool(done)
            if time.monotonic() - begun > RUN_S:
                left = True
                break
        self._moment = None if left or written else moment
        return written

    def _due_captures(self, waiting: list[Record]) -> Iterator[Record]:
        """Those that have changed since they were looked at; then those for which the vault has."""
        if not waiting:
            return
        generation, now = self._learn_habits().generation, time.monotonic()
        later = []
        for record in waiting:
            known = self._looked.get(record.path)
            if known is None or known[0] != visible_digest(record):
                yield record
            elif known[1] != generation and now - known[2] > RELOOK_S:
                later.append(record)
        yield from later

    def _update_capture(self, record: Record) -> bool | None:
        """Write suggestions into a capture if they differ; whether it was written to, None when that can't be yet."""
        raw, stat = self._vault.read(record.path)
        if len(raw) <= LARGE_TEXT:
            return self._update_read_capture(record, raw, stat)
        if not one_large_text.acquire(blocking=False):
            return None
        try:
            return self._update_read_capture(record, raw, stat)
        finally:
            one_large_text.release()

    def _update_read_capture(self, record: Record, raw: bytes, stat: Stat) -> bool | None:
        before = self._parsed(raw, record.path, stat)
        age = time.time() - stat.mtime_ns / 1e9
        if before.digest != record.digest or 0 <= age < self._settings.sync.adopt_s or self._edits.is_pending(before):
            return None
        learnt = self._learn_habits()
        if not is_writable(before):
            return self._remember_looked(record, learnt)
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
        after = self._edit_note(text, changes, before, stat)
        if after is not None and encode(after) != raw and not self._write_note(record, before, encode(after), stat):
            return None
        self._remember_looked(record, learnt)
        return after is not None and encode(after) != raw

    def _remember_looked(self, record: Record, learnt: LearntVault) -> bool:
        """Remember that there is nothing to do for a capture until it, or the vault, has changed; False."""
        self._looked[record.path] = visible_digest(record), learnt.generation, time.monotonic()
        return False

    def _edit_note(self, text: str, changes: Mapping[str, PropertyValue], before: Document, stat: Stat) -> str | None:
        """The note with these properties; without the suggestions where an agent could tell that they are there."""
        dated: dict[str, PropertyValue] = {}
        if before.created_at == stat.mtime_ns // 1_000_000:  # else it would be that of this write
            dated = {"created_at": iso(before.created_at)}
        for wanted in (changes, {key: value for key, value in changes.items() if not value}):
            if (after := edit(text, wanted)) == text:
                return text
            after = edit(after, dated)
            if look_alike_to_agents(before, self._parsed(encode(after), before.path, stat)):
                return after
        return None

    def _write_note(self, record: Record, before: Document, raw: bytes, stat: Stat) -> bool:
        index = self._captures.index
        document = self._parsed(raw, record.path, stat)
        (ready,) = index.prepare([(document, stat)])
        with hold_commits(self._captures) as current:
            if current is not index or self._edits.is_pending(before):
                return False
            written = self._vault.replace(record.path, raw, digest=before.digest)
            index.commit([replace(ready, stat=written)])
        return True

    # What may be suggested

    def _compute_suggestions(self, record: Record, document: Document, learnt: LearntVault) -> Suggestions:
        spoken = "\n\n".join(
            document.text[block.start : block.end] for block in document.blocks if block.kind not in UNSPOKEN
        )
        spoken = CODE.sub(" ", spoken[:READ])
        words = " ".join([document.title, *document.tags[:FIRST_TAGS]])
        similar = self._proper.index.find_similar(self._captures.index.vectors_of(record), words)
        similar = [hit for hit in similar if not hit.record.path.startswith(f"{self._inbox}/")]
        linked = {
            path
            for link in document.links
            if link.line >= 0 and (path := learnt.paths.resolve(link.target, document.path))
        }
        mine, shares = shingles(document.content[:READ]), {}
        for hit in [hit for hit in similar if hit.near >= LEAST_NEAR or _has_name(hit.record, document.title)][
            :COMPARED
        ]:
            with suppress(MemexError):  # it went a moment ago
                body = split(decode(self._vault.read(hit.record.path)[0]))[1]
                shares[hit.record.path] = shared_parts(mine, shingles(body[:READ]))
        return suggest(SuggestionSubject(document.title, document.tags, spoken, linked), similar, learnt.habits, shares)

    def _link_targets(self, suggestions: Suggestions, record: Record) -> dict[str, str]:
        """How each note that was found is written in a link: by its name where no other has it."""
        paths = {*(link.what for link in suggestions.links), *(note.path for note in suggestions.similar)}
        captures, proper = self._captures.index.names, self._proper.index.names
        targets = {}
        for path in paths - {record.path}:
            name = path.rpartition("/")[2][:-3]
            target = name if captures[stem(path)] + proper[stem(path)] == 1 else path[:-3]
            if not UNLINKABLE & set(target) and path in self._proper.index.manifest:
                targets[path] = target
        return targets

    def _learn_habits(self) -> LearntVault:
        """The vault's habits; what was learnt serves for a while, however the vault changes."""
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
                files = [*index.manifest.copy(), *self._captures.index.manifest.copy()]
                known = self._learnt = LearntVault(vault_habits, Paths(files), generation, now)
            return known


def is_undecided(marks: OwnerMarks) -> bool:
    """Whether a capture with these marks waits for its owner."""
    return marks.review != DISMISSED and marks.promoted_at is None


def is_writable(document: Document) -> bool:
    """Whether a note is whole, and Memex may write into it."""
    torn = any(defect.name in UNADOPTED for defect in document.defects)
    return document.writable and document.claimed_id is not None and not torn


def look_alike_to_agents(before: Document, after: Document) -> bool:
    """Whether no agent can tell two states of a note apart."""
    return replace(after, digest=before.digest, links=before.links) == before


def _has_name(record: Record, title: str) -> bool:
    return fold(title) in {fold(name) for name in (record.title, *record.aliases)}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
