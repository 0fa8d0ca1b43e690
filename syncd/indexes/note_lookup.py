"""Look up the note that the owner means by a path, an id, the beginning of an id, or a name; every command asks here.

Laws, tested: an id that Memex made means the note that had it first, whatever notes agents have given it to since;
if several notes match, the lookup picks none and names them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from index.document_ids import choose_owner, path_id
from index.errors import InvalidArgument, NotFound
from index.model import Record
from index.names import append_advice, did_you_mean, fold, nearest_name, note_name, stem
from index.scope.index import Index
from index.search.successors import find_linked, follow_links
from syncd.vault.location import ARCHIVE

LEAST: Final = 4  # shortest beginning of an id that identifies a note
NEAR: Final = 0.75  # least likeness of a name that is probably misspelt, though its folder is unknown: 1 letter in 4
SHOWN: Final = 10  # most notes named when several match
_MADE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")  # an id that Memex made
# A possible beginning of such an id.
_BEGUN: Final = re.compile(r"[0-9a-f]{4,8}(?:-[0-9a-f]{0,4}){0,3}(?:-[0-9a-f]{0,11})?\Z")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Describes a note that may be meant."""

    id: str  # the id it states; else the id of its path
    path: str  # current or last path
    made: int  # epoch ms
    home: str = ""  # the scope of its id: the workspace; "" = outside the inbox
    record: Record | None = None  # None = it no longer exists


def find_note(
    indexes: Iterable[Index],
    reference: str,
    fits: Callable[[Record], bool] = lambda _: True,
    *,
    workspace: str | None = None,
) -> Record | None:
    """Find the note that is meant, among those that fit, in this workspace if given; None when there is none.

    Raises InvalidArgument when several match."""
    candidate = choose(
        reference, find_candidates(indexes, reference, lambda it: workspace in (None, it.workspace) and fits(it))
    )
    return candidate.record if candidate else None


def drop_repeated(
    index: Index, references: Iterable[str], fits: Callable[[Record], bool] = lambda _: True
) -> list[str]:
    """Return the references without those that mean the same note as an earlier one, among the notes that fit."""
    kept: dict[str, str] = {}
    for reference in references:
        try:
            record = find_note([index], reference, fits)
        except InvalidArgument:
            record = None  # several match
        kept.setdefault(record.path if record else reference, reference)
    return list(kept.values())


def spell_path(index: Index, path: str) -> str:
    """Return `path` in the Unicode form that its file has in the index; `path` itself if there is no such file."""
    if path.isascii() or path in index.manifest:
        return path
    form, paths = _compose(path), index.manifest.copy()
    return next((known for known in paths if not known.isascii() and _compose(known) == form), path)


def missing_note(indexes: Iterable[Index], reference: str, advice: str, *, kind: str = "capture") -> NotFound:
    """Return the error that no note matches `reference`, with the nearest title or path, and what to do instead."""
    indexes = list(indexes)
    if not _may_be_title(reference) and (
        paths := [path for index in indexes for path in index.paths_titled(reference)]
    ):
        return NotFound(
            f"no {kind} {reference[:200]!r}; a note with this title is at {paths[0]!r}: name it by its path"
        )
    if "/" in reference or reference.endswith(".md"):
        nearest = _nearest_path(reference[:200], [path for index in indexes for path in index.manifest.copy()])
        near = did_you_mean(nearest, [nearest])
    else:
        names = [title for index in indexes for _, title, *_ in index.note_names() if fold(title) != fold(reference)]
        near = did_you_mean(reference[:200], names)
    return NotFound(f"no {kind} {reference[:200]!r}{append_advice(near, advice)}")


def _nearest_path(wanted: str, paths: Sequence[str]) -> str:
    """Return the path that a misspelt one probably means; "" = none. Names decide first, because all paths in a folder look alike.

    If there is no such folder either, only a name that is nearly the same is meant."""
    name = nearest_name(note_name(wanted), map(note_name, paths))
    folder, _, _ = fold(wanted).rpartition("/")
    if folder and not any(fold(path).startswith(f"{folder}/") for path in paths):
        likeness = difflib.SequenceMatcher(None, fold(note_name(wanted)), fold(name)).ratio()
        name = name if likeness >= NEAR else ""
    alike = [path for path in paths if note_name(path) == name]
    return nearest_name(wanted, alike) or next(iter(alike), "")


def find_candidates(
    indexes: Iterable[Index], reference: str, fits: Callable[[Record], bool] = lambda _: True
) -> list[Candidate]:
    """Find the notes that may be meant. Fast for a path and a whole id, for any number of notes."""
    indexes = list(indexes)
    for index, name in ((index, name) for index in indexes for name in (reference, f"{reference}.md")):
        path = spell_path(index, name)
        if (record := index.record_at(path)) and fits(record):
            entry = index.manifest.get(path)
            named = _documents_titled(indexes, reference)
            titled = [candidate for other, candidate in named if fits(other) and other.path != path]
            return [_make_candidate(record, entry.id if entry else record.id), *titled]
    whole = [
        candidate for index in indexes for record, candidate in _documents_claiming(index, reference) if fits(record)
    ]
    if whole and not _BEGUN.match(reference):
        return whole
    entries = [(index, path, entry.id) for index in indexes for path, entry in index.manifest.copy().items()]
    more = [(index.record_at(path), id) for index, path, id in entries if _may_mean(reference, id, path)]
    whole += [_make_candidate(record, id) for record, id in more if record is not None and fits(record)]
    return whole + [candidate for record, candidate in _documents_titled(indexes, reference) if fits(record)]


def choose(reference: str, notes: Collection[Candidate]) -> Candidate | None:
    """Choose which of these is meant, if any. Raises InvalidArgument when several match."""
    titled = [note for note in notes if _is_titled(note, reference)]
    path = _compose(reference)
    if at := [note for note in notes if _compose(note.path) in (path, f"{path}.md")]:
        first = min(at, key=lambda note: (note.record is None, len(note.path)))
        if _compose(first.path) == path or "/" in reference or not titled:
            return first
        notes = [first, *titled]
    whole = [note for note in notes if note.id == reference]
    others = [note for note in notes if note.id != reference and _may_mean(reference, note.id, note.path)] + titled
    if whole and not (_BEGUN.match(reference) and any(_MADE.match(note.id) for note in others)):
        others = []
    kept: dict[str, Candidate] = {}
    for id in dict.fromkeys(note.id for note in (*whole, *others)):
        kept |= {note.path: note for note in _rightful_owners([note for note in notes if note.id == id])}
    if len(kept) > 1:
        named = "; ".join(
            f"{note.id} ({note.path})" for note in sorted(kept.values(), key=lambda note: note.path)[:SHOWN]
        )
        more = f"; and {len(kept) - SHOWN} more" if len(kept) > SHOWN else ""
        raise InvalidArgument(
            f"{reference[:200]!r} matches {len(kept)} notes: {named}{more}. Use the path, or more characters of the id",
            candidates=sorted(kept)[:SHOWN],
        )
    return next(iter(kept.values()), None)


def find_successor(captures: Index, record: Record, *, vault: Index | None = None) -> Record | None:
    """Find the note that replaces the capture `record`, at the end of a chain of existing notes; None when there is none.

    Captures of its workspace count first, then the notes of `vault` if it is given."""

    def newer_note(older: Record) -> Record | None:
        newer = find_linked(captures.catalog, older, record.workspace)
        return find_linked(vault.catalog, older, "") if newer is None and vault is not None else newer

    chain = follow_links(record, newer_note)
    return chain[-1] if chain else None


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _may_mean(reference: str, id: str, path: str) -> bool:
    """Return whether an id begins with the reference, or a note has this name."""
    return (len(reference) >= LEAST and id.startswith(reference)) or (
        "/" not in reference and stem(path) == stem(reference) != ""
    )


def _is_titled(note: Candidate, reference: str) -> bool:
    """Return whether a note has this title, and a file name that does not say it."""
    if not _may_be_title(reference):
        return False
    wanted = fold(reference)
    return note.record is not None and fold(note.record.title) == wanted != stem(note.path)


def _may_be_title(reference: str) -> bool:
    """Return whether a reference is neither a path nor the beginning of an id that Memex made: agents choose titles."""
    return not ("/" in reference or reference.endswith(".md") or _BEGUN.match(reference) or _MADE.match(reference))


def _documents_titled(indexes: Iterable[Index], title: str) -> Iterator[tuple[Record, Candidate]]:
    """Yield the notes with this title whose file name does not say it."""
    for index in indexes if _may_be_title(title) else ():
        for path in index.paths_titled(title):
            if (entry := index.manifest.get(path)) and (record := index.record_at(path)):
                candidate = _make_candidate(record, entry.id)
                if _is_titled(candidate, title):
                    yield record, candidate


def _rightful_owners(same: Sequence[Candidate]) -> list[Candidate]:
    """Return which notes with one id it may mean: one of each workspace, or a single one if Memex made the id."""
    homes: dict[str, list[Candidate]] = {}
    for note in same:
        homes.setdefault(note.home, []).append(note)
    kept = []
    for there in homes.values():
        live = [note for note in there if note.record] or there
        kept += [note for note in live if note.path == choose_owner(it.path for it in live)]
    if _MADE.match(same[0].id):
        return [min(kept, key=lambda note: (note.made, note.path))]
    return [note for note in kept if note.record] or kept


def _documents_claiming(index: Index, id: str) -> Iterator[tuple[Record, Candidate]]:
    """Yield the notes that state this id, or whose path gives it to them."""
    for path in index.paths_claiming_id(id):
        if record := index.record_at(path):
            yield record, _make_candidate(record, id)
    record = index.record(id)
    if record is not None and path_id(record.path) == id:
        yield record, _make_candidate(record, id)


def _make_candidate(record: Record, id: str) -> Candidate:
    # An archived note does not count as a note of the vault.
    aside = f"/{ARCHIVE}/" in record.path and not record.workspace
    return Candidate(id, record.path, record.created_at, f"{ARCHIVE}/" if aside else record.workspace, record)
