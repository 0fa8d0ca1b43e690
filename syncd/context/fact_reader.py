"""Read the facts of a workspace from the index of captures, weighed for the choice, and cache them by note.

Law: it reads the index of captures and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Final

from index.document_ids import path_id
from index.encoders.word_frequency import word_ranks
from index.model import DocumentOverview, Record
from index.text.similarity_sketch import word_stems
from index.text.words import detect_language, tokenize
from syncd.context.note_facts import ContextFact, LineWords, WeighedFact, facts_of_entity, facts_of_note, project_key
from syncd.context.session_context import Count
from syncd.documents.capture_note import CHANGE
from syncd.indexes.index_builds import ScopeIndex

CONSIDERED: Final = 1_000  # newest notes of a workspace, used notes, and notes of a project, each
ENTITY: Final = "entity"


@dataclass(frozen=True, slots=True)
class _ReadNote:
    """Holds the facts of one note, and the state of the note that they were read from."""

    state: tuple[object, ...]
    facts: tuple[WeighedFact, ...]


class FactReader:
    """Reads facts; safe from any thread. The cache holds the notes that were read last for each workspace."""

    def __init__(self, captures: ScopeIndex, count: Count) -> None:
        self._captures, self._count = captures, count
        self._lock = threading.Lock()
        self._read: dict[str, dict[str, _ReadNote]] = {}  # by workspace and path

    def read(self, workspace: str, used: Collection[str], project: str = "") -> list[WeighedFact]:
        """Return the facts of the newest notes, the notes with `used` ids, and those of `project`."""
        index = self._captures.index
        among = index.catalog.newest_paths(workspace, CONSIDERED, used, without=CHANGE) if used else []
        if project:
            among += _paths_of_project(index.catalog.list_documents(workspace), project)
        paths = list(dict.fromkeys((*index.catalog.newest_paths(workspace, CONSIDERED, without=CHANGE), *among)))
        records = index.records_at(paths)
        with self._lock:
            known = self._read.get(workspace, {})
        stale = [record for record in records.values() if _differs(known.get(record.path), record)]
        read = dict(zip([record.path for record in stale], self._weigh(stale), strict=True))
        current = {path: read.get(path) or known[path] for path in records}
        with self._lock:
            self._read[workspace] = current
        return [fact for note in current.values() for fact in note.facts]

    def weigh(self, facts: Sequence[ContextFact]) -> list[WeighedFact]:
        """Return the facts with their words and the tokens of their lines."""
        counts = self._count([fact.line for fact in facts])
        return [WeighedFact(fact, tokens, words_of(fact.text)) for fact, tokens in zip(facts, counts, strict=True)]

    def _weigh(self, records: Sequence[Record]) -> list[_ReadNote]:
        index = self._captures.index
        texts = index.texts_of([path_id(record.path) for record in records if record.type != ENTITY])
        observations = index.catalog.observations([record.path for record in records if record.type == ENTITY])
        notes = []
        for record in records:
            if record.type == ENTITY:
                facts = facts_of_entity(record, observations.get(record.path, ()))
            else:
                facts = facts_of_note(record, texts.get(path_id(record.path), ""))
            notes.append(_ReadNote(_state_of(record), tuple(self.weigh(facts))))
        return notes


def words_of(text: str) -> LineWords:
    """Return the words of a line."""
    words: dict[str, float] = {}
    for token in tokenize(text, detect_language(text, word_ranks())):
        if token and token.worth:
            words[intern(token.key)] = max(words.get(token.key, 0.0), token.worth)
    return LineWords(words, tuple(dict.fromkeys(map(intern, word_stems(text)))))


def _paths_of_project(documents: Iterable[DocumentOverview], project: str) -> list[str]:
    """Return the paths of the newest notes of a project."""
    notes = [note for note in documents if note.type != CHANGE and project in _places_of(note)]
    notes.sort(key=lambda note: (-(note.updated_at or note.created_at), note.id))
    return [note.path for note in notes[:CONSIDERED]]


def _places_of(note: DocumentOverview) -> set[str]:
    """Return the keys of the folders and tags of a note, which may name its project."""
    folders = note.path.split("/")[:-1]
    return {project_key(name) for name in (*folders, *(tag.rpartition("/")[2] for tag in note.tags))}


def _state_of(record: Record) -> tuple[object, ...]:
    return record.id, record.digest, record.superseded_by


def _differs(note: _ReadNote | None, record: Record) -> bool:
    return note is None or note.state != _state_of(record)
