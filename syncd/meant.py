"""Which note its owner means: by a path, an id, the beginning of one, or a name. All commands ask here.

Laws, tested: an id that Memex made means the note that had it first, whatever agents have given it to since; where more
than one note may be meant none is taken, and they are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from index.errors import InvalidArgument
from index.identity import owner, path_id
from index.index import Index
from index.model import Record
from index.names import stem
from syncd.place import ARCHIVE

LEAST: Final = 4  # characters of an id that stand for it
SHOWN: Final = 10  # notes that are named where several may be meant
_MADE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")  # an id that no agent has chosen
_BEGUN: Final = re.compile(r"[0-9a-f]{4,8}(?:-[0-9a-f]{0,4}){0,3}(?:-[0-9a-f]{0,11})?\Z")  # may be the beginning of one


@dataclass(frozen=True, slots=True)
class Candidate:
    """A note that may be meant."""

    id: str  # that it says it has; else that of its path
    path: str  # where it is, or was last
    made: int  # epoch ms
    home: str = ""  # within which an id names one note: the workspace; "" = the vault proper
    record: Record | None = None  # None = it is gone


def found(
    indexes: Iterable[Index],
    given: str,
    fits: Callable[[Record], bool] = lambda _: True,
    *,
    workspace: str | None = None,
) -> Record | None:
    """The note that is meant, of those that fit, in this workspace if one is named; None when there is none.

    Raises InvalidArgument where it may be one of several."""
    one = chosen(given, candidates(indexes, given, lambda it: workspace in (None, it.workspace) and fits(it)))
    return one.record if one else None


def candidates(
    indexes: Iterable[Index], given: str, fits: Callable[[Record], bool] = lambda _: True
) -> list[Candidate]:
    """The notes there are that may be meant. Quick for a path and for a whole id, however many notes there are."""
    indexes = list(indexes)
    for index, path in ((index, path) for index in indexes for path in (given, f"{given}.md")):
        if (record := index.at(path)) and fits(record):
            entry = index.manifest.get(path)
            return [_candidate(record, entry.id if entry else record.id)]
    whole = [one for index in indexes for record, one in _claims(index, given) if fits(record)]
    if whole and not _BEGUN.match(given):
        return whole
    entries = [(index, path, entry.id) for index in indexes for path, entry in index.manifest.copy().items()]
    more = [(index.at(path), id) for index, path, id in entries if _alike(given, id, path)]
    return whole + [_candidate(record, id) for record, id in more if record is not None and fits(record)]


def chosen(given: str, notes: Collection[Candidate]) -> Candidate | None:
    """Which of these is meant, if any. Raises InvalidArgument where it may be one of several."""
    if at := [one for one in notes if one.path in (given, f"{given}.md")]:
        return min(at, key=lambda one: (one.record is None, len(one.path)))
    whole = [one for one in notes if one.id == given]
    others = [one for one in notes if one.id != given and _alike(given, one.id, one.path)]
    if whole and not (_BEGUN.match(given) and any(_MADE.match(one.id) for one in others)):
        others = []
    kept: dict[str, Candidate] = {}
    for id in dict.fromkeys(one.id for one in (*whole, *others)):
        kept |= {one.path: one for one in _first([one for one in notes if one.id == id])}
    if len(kept) > 1:
        named = "; ".join(f"{one.id} ({one.path})" for one in sorted(kept.values(), key=lambda one: one.path)[:SHOWN])
        more = f"; and {len(kept) - SHOWN} more" if len(kept) > SHOWN else ""
        raise InvalidArgument(
            f"{given[:200]!r} may be {len(kept)} notes: {named}{more}. Give its path, or more of its id",
            candidates=sorted(kept)[:SHOWN],
        )
    return next(iter(kept.values()), None)


def _alike(given: str, id: str, path: str) -> bool:
    """Whether an id begins so, or a note has this name."""
    return (len(given) >= LEAST and id.startswith(given)) or ("/" not in given and stem(path) == stem(given) != "")


def _first(same: Sequence[Candidate]) -> list[Candidate]:
    """Of notes with one id those that may be meant by it: one of each workspace, and of all if agents did not choose it."""
    homes: dict[str, list[Candidate]] = {}
    for one in same:
        homes.setdefault(one.home, []).append(one)
    kept = []
    for there in homes.values():
        live = [one for one in there if one.record] or there
        kept += [one for one in live if one.path == owner(it.path for it in live)]
    if _MADE.match(same[0].id):
        return [min(kept, key=lambda one: (one.made, one.path))]
    return [one for one in kept if one.record] or kept


def _claims(index: Index, id: str) -> Iterator[tuple[Record, Candidate]]:
    """The documents that say they have this id, or whose path gives it to them."""
    for path in index.claiming(id):
        if record := index.at(path):
            yield record, _candidate(record, id)
    record = index.record(id)
    if record is not None and path_id(record.path) == id:
        yield record, _candidate(record, id)


def _candidate(record: Record, id: str) -> Candidate:
    aside = f"/{ARCHIVE}/" in record.path and not record.workspace  # set aside, it names no note of the vault
    return Candidate(id, record.path, record.created_at, f"{ARCHIVE}/" if aside else record.workspace, record)
