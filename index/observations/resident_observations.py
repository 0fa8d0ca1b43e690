"""Keep the vectors of many observations in memory: a byte for each component, and neither words nor texts.

An `ObservationVectors` object never changes, so its holder keeps seeing one state of the store. The next object shares
its memory and writes only to places that the earlier one does not use.

Law, tested: a similarity differs by less than 0.005 from that of the stored vectors, if no component is far larger than the
others, as with the vectors of encoders."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.model import Filter
from index.storage.chunk_rows import Match, Row, VectorBatch
from index.storage.resident_rows import VectorColumns, capacity_for

Group: TypeAlias = tuple[str, str]  # workspace and perspective: each search of observations names both
SUMMED: Final = 512  # vectors that are added up at a time; more do not fit into a core's cache and take twice as long
COMPARED: Final = 10_000  # observations up to which a search compares all of a group, and of more only candidates


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """Numbers documents in the order of their appearance, so that a row holds 4 bytes for its own."""

    ids: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, doc_ids: Iterable[str]) -> NDArray[np.int32]:
        """Return the number of each of `doc_ids`; a new id gets the next number."""
        for doc_id in (doc_ids := list(doc_ids)):
            if doc_id not in self.numbers:
                self.numbers[doc_id] = len(self.ids)
                self.ids.append(doc_id)
        return np.array([self.numbers[doc_id] for doc_id in doc_ids], np.int32)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Holds the rows of one group in one state; the memory is shared with other states."""

    live: NDArray[np.bool_]  # [rows]: whether each place holds a row of this state
    vectors: VectorColumns
    numbers: NDArray[np.int32]  # [2, room]: the number of each row's document, and its `ord`
    headings: NDArray[np.int64]  # [room]: the heading of each row, an ordinal of up to 12 digits

    @classmethod
    def allocate(cls, room: int, dimensions: int) -> GroupRows:
        """Allocate memory for `room` rows, without any yet."""
        vectors = VectorColumns.allocate(room, dimensions, np.int8)
        return cls(np.zeros(0, np.bool_), vectors, np.empty((2, room), np.int32), np.empty(room, np.int64))

    def without(self, owners: NDArray[np.int32]) -> GroupRows:
        """Return the state without the rows of these documents."""
        left = replace(self, live=self.live & ~np.isin(self.numbers[0, : len(self.live)], owners))
        return left.repack(0) if len(left.live) > 2 * capacity_for(int(np.count_nonzero(left.live))) else left

    def with_rows(
        self, numbers: NDArray[np.int32], headings: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> GroupRows:
        """Return the state with more rows: `numbers` [2, n], `headings` [n] and `vectors` [n, dimensions].

        Zero vectors can't be found."""
        start, end = len(self.live), len(self.live) + len(vectors)
        if end > self.numbers.shape[1]:
            return self.repack(len(vectors)).with_rows(numbers, headings, vectors)
        self.numbers[:, start:end], self.headings[start:end] = numbers, headings
        return replace(self, live=np.concatenate([self.live, self.vectors.write(start, vectors)]))

    def repack(self, added: int) -> GroupRows:
        """Copy this state into new memory with room for at least `added` more rows."""
        kept = np.flatnonzero(self.live)
        room = capacity_for(len(kept) + added)
        copied = GroupRows(
            np.ones(len(kept), np.bool_),
            self.vectors.copy(kept, room),
            np.empty((2, room), np.int32),
            np.empty(room, np.int64),
        )
        copied.numbers[:, : len(kept)], copied.headings[: len(kept)] = self.numbers[:, kept], self.headings[kept]
        copied.centre()
        return copied

    def centre(self) -> None:
        """Compute the signs of the vectors again, about their mean."""
        self.vectors.centre_signs(np.flatnonzero(self.live))

    def add_vectors(self, totals: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        """Add each vector, of unit length, to the row of `totals` that `rows` names for its document; below 0, to none."""
        there = np.flatnonzero(self.live)
        places = there[rows[self.numbers[0, there]] >= 0]
        for start in range(0, len(places), SUMMED):
            block = places[start : start + SUMMED]
            owners = rows[self.numbers[0, block]]
            order = np.argsort(owners, kind="stable")
            starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
            totals[owners[order][starts]] += np.add.reduceat(self.vectors.to_unit(block[order]), starts, axis=0)


@dataclass(frozen=True, slots=True)
class ObservationVectors:
    """Holds the vectors of all observations of one state of the store."""

    dimensions: int
    groups: Mapping[Group, GroupRows] = field(repr=False)
    _documents: DocumentNumbers = field(repr=False)

    @classmethod
    def of(cls, batches: Iterable[VectorBatch], dimensions: int) -> ObservationVectors:
        """Create the state with the rows of these batches."""
        state = cls(dimensions, {}, DocumentNumbers())
        for batch in batches:
            state = state.with_batch(batch)
        for group in state.groups.values():
            group.centre()
        return state

    def replace(self, documents: Mapping[str, Collection[Row]]) -> ObservationVectors:
        """Return a new state in which these documents have these rows.

        If two states are made from one, only the later one may be used."""
        numbers = self._documents.numbers
        gone = np.array([numbers[doc_id] for doc_id in documents if doc_id in numbers], np.int32)
        groups = {name: group.without(gone) for name, group in self.groups.items()}
        remaining = replace(self, groups={name: group for name, group in groups.items() if group.live.any()})
        rows = [row for row in chain.from_iterable(documents.values()) if row.vector is not None]
        return remaining.with_batch(_batch_rows(rows)) if rows else remaining

    def with_batch(self, batch: VectorBatch) -> ObservationVectors:
        """Return the state with these rows too."""
        groups = dict(self.groups)
        owners = self._documents.of(batch.doc_ids)
        numbers, headings = np.array([owners, batch.ords], np.int32), np.array(batch.headings, np.int64)
        names = list(zip(batch.workspaces, batch.types, strict=True))
        for name in dict.fromkeys(names):
            at = np.array([n for n, other in enumerate(names) if other == name], np.int64)
            group = groups.get(name) or GroupRows.allocate(capacity_for(len(at)), self.dimensions)
            groups[name] = group.with_rows(numbers[:, at], headings[at], batch.vectors[at])
            if name not in self.groups:
                groups[name].centre()
        return replace(self, groups=groups)

    def nearest(self, point: NDArray[np.float32], restriction: Filter, pool: int) -> list[Match]:
        """Return the `pool` nearest observations to `point` of one group, best first; a few of the nearest may be missing.

        `restriction` names a workspace and a perspective, as `Filter.type`, and nothing else. Ties are sorted by document id."""
        names, length = list(self._names(restriction)), float(np.linalg.norm(point))
        assert len(names) <= 1, "a search names one perspective"
        if not names or not length:
            return []
        group = self.groups[names[0]]
        unit, exact = np.asarray(point / length, np.float32), len(group.live) <= COMPARED
        places, similar = group.vectors.nearest(group.live, unit, pool, exact=exact)
        ids = self._documents.ids
        (owners, ords), headings = group.numbers[:, places].tolist(), group.headings[places].tolist()
        ranked = heapq.nsmallest(
            pool, zip((-similar).tolist(), map(ids.__getitem__, owners), ords, headings, strict=True)
        )
        return [
            Match(doc_id, ord, names[0][0], str(heading), 0, "", -lowered) for lowered, doc_id, ord, heading in ranked
        ]

    def vector_sums(self, restriction: Filter) -> dict[str, NDArray[np.float32]]:
        """Return for each document the sum of its vectors, of unit length, that pass `restriction`.

        It names a workspace, and perhaps a perspective and documents."""
        ids, documents = self._documents.ids, restriction.documents
        groups = [self.groups[name] for name in self._names(replace(restriction, documents=None))]
        owners = np.unique(
            np.concatenate([np.empty(0, np.int32), *(group.numbers[0, np.flatnonzero(group.live)] for group in groups)])
        )
        wanted = [number for number in owners.tolist() if documents is None or ids[number] in documents]
        rows = np.full(int(owners.max(initial=-1)) + 1, -1, np.int64)
        rows[wanted] = np.arange(len(wanted))
        totals = np.zeros((len(wanted), self.dimensions), np.float32)
        for group in groups:
            group.add_vectors(totals, rows)
        return {ids[number]: total for number, total in zip(wanted, totals, strict=True)}

    def _names(self, restriction: Filter) -> Iterator[Group]:
        """Yield the groups that pass `restriction`."""
        workspace, perspective = restriction.workspace, restriction.type
        assert restriction == Filter(workspace=workspace, type=perspective), "only whole groups can be selected"
        return (name for name in self.groups if name[0] == workspace and perspective in (None, name[1]))


def _batch_rows(rows: Collection[Row]) -> VectorBatch:
    """Return rows with vectors by column."""
    return VectorBatch(
        [row.doc_id for row in rows],
        [row.ord for row in rows],
        [row.workspace for row in rows],
        [row.type for row in rows],
        [int(row.heading) for row in rows],
        np.array([row.vector for row in rows], np.float32),
    )
