"""Keep the rows of a store in memory, and search them by vector and by words.

A `Rows` object never changes, so its holder keeps seeing one state of the store. The next `Rows` object shares its
memory and writes only to places that the earlier one does not use. Law, tested: the same rows pass a filter as pass
the result of `chunk_rows.sql_condition`."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from index.errors import ResourceExhausted
from index.model import Filter
from index.storage.chunk_rows import EQUAL, Match, Row, to_row_filter
from index.storage.resident_words import Split, TagColumns, WordIndex

# The integer for a vector's largest component. Those of 16 bits are finer than what is stored.
LARGEST: Final = {np.dtype(kind): np.float32(np.iinfo(kind).max) for kind in (np.int8, np.int16)}
SMALLEST: Final = np.float32(2**-24)  # the smallest component above 0 that is stored
# Bytes of vectors that are converted and compared at a time. glibc would map a larger block from the system each time
# (`index.process_memory.LARGE`), which takes longer than comparing its rows.
BLOCK: Final = 96 << 10
SIGNS: Final = 2_048  # rows whose signs are compared at a time
SPARE: Final = 1_024  # extra rows of room, in addition to half of the present rows; unused room costs no memory
FEW: Final = 4  # if less than one row in so many passes a filter, the signs of only those are copied
# A search that need not be exact compares up to EXACT rows, and of more only candidates: EACH for each row that is looked for,
# and this SHARE of all, at USUAL dimensions. With fewer dimensions the sides of a vector say less. Source:
# `tests/unit/index/storage/test_resident_rows.py` and recall in `python -m tests.bench --only 100k`.
EXACT, EACH, SHARE, USUAL = 2_000, 16, 0.02, 384


@dataclass(frozen=True, slots=True)
class VectorColumns:
    """Holds vectors as rounded integers, and finds those that are nearest to a point."""

    steps: NDArray[np.int16 | np.int8]  # [room, dimensions]; undefined for a row without a vector
    scales: NDArray[np.float32]  # [room]: the factor that gives each vector unit length; 0 for a zero vector
    signs: NDArray[np.uint64]  # [dimensions / 64, room]: of each component a bit, whether it is above that of `centre`
    # [dimensions]: the mean of the vectors when this memory was filled. The vectors of some encoders lie in a narrow cone, where
    # the signs of most components are equal.
    centre: NDArray[np.float32]

    @classmethod
    def allocate(cls, room: int, dimensions: int, kind: type[np.int16 | np.int8]) -> VectorColumns:
        """Allocate memory for `room` vectors with components of this kind."""
        return cls(
            np.empty((room, dimensions), kind),
            np.zeros(room, np.float32),
            np.empty((-(-dimensions // 64), room), np.uint64),
            np.zeros(dimensions, np.float32),
        )

    def write(self, at: int, vectors: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
        """Write `vectors` [n, dimensions] from the place `at` on; return whether each can be compared."""
        end = at + len(vectors)
        steps, scales = _round(vectors, self.steps.dtype)
        self.steps[at:end], self.scales[at:end] = steps, scales
        self.signs[:, at:end] = self._signs_of(steps * scales[:, None])
        return scales > 0

    def copy(self, kept: NDArray[np.int64], room: int) -> VectorColumns:
        """Return new memory for `room` vectors that begins with those at the places `kept`; their signs are not set."""
        columns = VectorColumns.allocate(room, self.steps.shape[1], self.steps.dtype.type)
        np.take(self.steps, kept, axis=0, out=columns.steps[: len(kept)])
        columns.scales[: len(kept)] = self.scales[kept]
        return columns

    def centre_signs(self, places: NDArray[np.int64]) -> None:
        """Set the signs of the vectors at `places`, from which the centre is computed first."""
        blocks = list(_cut_blocks(places, self.steps.shape[1]))
        self.centre[:] = sum(self.to_unit(block).sum(axis=0) for block in blocks) / max(1, len(places))
        for block in blocks:
            self.signs[:, block] = self._signs_of(self.to_unit(block))

    def _signs_of(self, units: NDArray[np.float32]) -> NDArray[np.uint64]:
        """Return what `signs` holds for vectors of unit length, [n, dimensions] or one, that `_round` has rounded."""
        return _pack_signs(units - self.centre)

    def to_unit(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors at `places`, of unit length."""
        return np.asarray(self.steps[places], np.float32) * self.scales[places, None]

    def compare(self, places: NDArray[np.int64], unit: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of each vector at `places` to `unit`."""
        similar, done = np.empty(len(places), np.float32), 0
        stored = np.empty((min(_rows_in_block(len(unit)), len(places)), len(unit)), self.steps.dtype)
        vectors = np.empty(stored.shape, np.float32)
        for block in _cut_blocks(places, len(unit)):
            count = len(block)
            self.steps.take(block, axis=0, out=stored[:count], mode="clip")  # "raise" would copy it once more
            np.copyto(vectors[:count], stored[:count])
            # Not `@`: it would start one thread per core, which costs more than a comparison of this size.
            np.vecdot(vectors[:count], unit, out=similar[done : done + count])
            done += count
        similar *= self.scales[places]
        return similar

    def nearest(
        self, passing: NDArray[np.bool_], unit: NDArray[np.float32], pool: int, *, exact: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return places among `passing` and their cosine similarities to `unit`: the `pool` nearest, those equal to the last, in no order.

        Without `exact`, of many rows only candidates are compared, and a few of the nearest may be missing."""
        count = int(np.count_nonzero(passing))
        wanted = int((EACH * pool + SHARE * count) * max(1.0, USUAL / len(unit)))
        if exact or count <= max(EXACT, wanted):
            at = np.flatnonzero(passing)
        else:
            at = self.find_candidates(passing, unit, wanted)
        return _highest(at, np.maximum(self.compare(at, unit), -1.0), pool)

    def find_candidates(self, passing: NDArray[np.bool_], unit: NDArray[np.float32], number: int) -> NDArray[np.int64]:
        """Return the `number` places among `passing` whose vectors are on the same side of the centre as `unit` in the most components.

        `passing`: whether each place counts; at least one must. More are returned if some of them have equally many. The share
        of signs that differ grows with the angle between two vectors (Charikar, Similarity Estimation Techniques from Rounding
        Algorithms, 2002, section 3), so nearly all of the nearest vectors are among these."""
        steps, scales = _round(unit[None], self.steps.dtype)
        wanted, count, considered = self._signs_of(steps[0] * scales[0]), len(passing), int(np.count_nonzero(passing))
        number = min(number, considered)
        if considered * FEW < count:
            places = np.flatnonzero(passing)
            differing = _count_differing(self.signs[:, places], wanted)
            return np.asarray(places[differing <= _find_bound(differing, number)])
        differing = _count_differing(self.signs[:, :count], wanted)
        np.copyto(differing, 64 * len(wanted) + 1, where=~passing)  # more than any row can have
        return np.flatnonzero(differing <= _find_bound(differing, number))


@dataclass(frozen=True, slots=True)
class SharedRowMemory:
    """Holds the memory that successive `Rows` share. It only grows, except for rows that no visible state uses."""

    vectors: VectorColumns
    codes: NDArray[np.int32]  # [fields, room]: the number of each row's value in `values`
    created: NDArray[np.int64]  # [room]
    doc_ids: list[str]  # the document of each row
    places: dict[str, tuple[int, ...] | int]  # document → places of its rows in all states, in order; most have one
    texts: bytearray  # heading and text of each row, one after the other: as objects they took 170 bytes more a row
    starts: NDArray[np.int64]  # [room + 1]: where those of each row begin in `texts`, and the end of the last ones
    numbers: NDArray[np.int32]  # [3, room]: `ord` and `cut` of each row, and the bytes of its heading
    values: tuple[dict[str | None, int], ...]  # for each field: value → number, in the order of their appearance
    tags: TagColumns
    words: WordIndex

    @classmethod
    def allocate(cls, vectors: VectorColumns, room: int, words: WordIndex, tags: TagColumns) -> SharedRowMemory:
        """Allocate memory for `room` rows with these vectors, words and tags."""
        return cls(
            vectors,
            np.empty((len(EQUAL), room), np.int32),
            np.empty(room, np.int64),
            [],
            {},
            bytearray(),
            np.zeros(room + 1, np.int64),
            np.empty((3, room), np.int32),
            tuple({} for _ in EQUAL),
            tags,
            words,
        )

    def write_row(self, at: int, doc_id: str, row: Row) -> bool:
        """Write `row` of `doc_id` to `at`, the first free place; return whether it has a vector that can be compared.

        Strings that many rows have in common are kept once."""
        heading, text = row.heading.encode(), row.text.encode()
        self.doc_ids.append(doc_id)
        self.texts.extend(heading + text)
        self.starts[at + 1], self.numbers[:, at] = len(self.texts), (row.ord, row.cut, len(heading))
        self.words.add(at, row.text)
        for number, (name, known) in enumerate(zip(EQUAL, self.values, strict=True)):
            self.codes[number, at] = known.setdefault(getattr(row, name), len(known))
        self.tags.write(at, row.tags)
        self.created[at] = row.created_at
        if row.vector is None:
            return False
        return bool(self.vectors.write(at, row.vector[None])[0])

    def read_rows(self, places: NDArray[np.int64]) -> Iterator[tuple[str, int, str, str, int, str]]:
        """Yield document, `ord`, workspace, heading, `cut` and text of the rows at `places`."""
        workspaces, texts = list(self.values[0]), self.texts
        numbers = (*self.numbers[:, places], self.codes[0, places], self.starts[places], self.starts[places + 1])
        ids, columns = map(self.doc_ids.__getitem__, places.tolist()), [column.tolist() for column in numbers]
        for doc_id, ord, cut, heading, workspace, start, end in zip(ids, *columns, strict=True):
            middle = start + heading
            title, text = texts[start:middle].decode(), texts[middle:end].decode()
            yield doc_id, ord, workspaces[workspace] or "", title, cut, text

    def drop_from(self, at: int) -> None:
        """Forget the rows from `at` on, which no visible state uses."""
        for doc_id in set(self.doc_ids[at:]):
            self.set_places(doc_id, [place for place in self.places_of(doc_id) if place < at])
        del self.doc_ids[at:], self.texts[self.starts[at] :]
        self.words.drop_from(at)

    def places_of(self, doc_id: str) -> tuple[int, ...]:
        """Return the places of a document's rows in all states, in order."""
        places = self.places.get(doc_id, ())
        return places if isinstance(places, tuple) else (places,)

    def set_places(self, doc_id: str, places: Sequence[int]) -> None:
        """Set what `places_of` returns."""
        self.places[doc_id] = places[0] if len(places) == 1 else tuple(places)


@dataclass(frozen=True, slots=True)
class Rows:
    """Holds all rows of one state of a store."""

    dimensions: int
    live: NDArray[np.bool_]  # whether each place of the memory holds a row of this state
    near: NDArray[np.bool_]  # whether each place holds such a row with a vector
    _memory: SharedRowMemory = field(repr=False)

    @classmethod
    def of(cls, rows: Iterable[Row], count: int, dimensions: int, split: Split) -> Rows:
        """Create the state with these rows, at most `count`, in any order; of two rows of one passage, the last is used.

        `split` returns the words of a text. Raises ResourceExhausted if they have too many different words."""
        room, documents = capacity_for(count), dict[str, dict[int, int]]()
        vectors = VectorColumns.allocate(room, dimensions, np.int16)
        memory = SharedRowMemory.allocate(vectors, room, WordIndex(split, room), TagColumns(room))
        near = np.zeros(count, np.bool_)
        doc_ids = dict[str, str]()
        for at, row in enumerate(rows):
            doc_id = doc_ids.setdefault(row.doc_id, row.doc_id)
            near[at] = memory.write_row(at, doc_id, row)
            memory.words.sort_after_growth()
            if memory.words.is_full:
                raise ResourceExhausted("the rows have too many different words to be kept in memory")
            documents.setdefault(doc_id, {})[row.ord] = at
        memory.words.sort()
        memory.vectors.centre_signs(np.flatnonzero(near))
        live = np.zeros(count, np.bool_)
        for doc_id, by_ord in documents.items():
            places = [at for _, at in sorted(by_ord.items())]
            memory.set_places(doc_id, places)
            live[places] = True
        return cls(dimensions, live, near & live, memory)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.live))

    @property
    def is_full(self) -> bool:
        """Return whether the rows have too many different words to add more."""
        return self._memory.words.is_full

    def places_of(self, doc_id: str) -> list[int]:
        """Return the places of a document's rows, in order."""
        count, live = len(self.live), self.live
        return [at for at in self._memory.places_of(doc_id) if at < count and live[at]]

    def replace(self, documents: Mapping[str, Collection[Row]]) -> Rows:
        """Return a new state in which these documents have these rows; the rows of a sequence may have any order.

        If two states are made from one, only the later one may be used."""
        added = sum(map(len, documents.values()))
        if len(self.live) + added > len(self._memory.created) or len(self.live) > 2 * len(self) + SPARE:
            return self._repack(added).replace(documents)
        memory, at = self._memory, len(self.live)
        memory.drop_from(at)  # rows of a state that was never used
        memory.words.sort()
        live, near = (np.concatenate([mask, np.zeros(added, np.bool_)]) for mask in (self.live, self.near))
        for doc_id, rows in documents.items():
            gone, first = self.places_of(doc_id), at
            live[gone] = near[gone] = False
            for row in sorted(rows, key=lambda row: row.ord) if isinstance(rows, Sequence) else rows:
                near[at], live[at] = memory.write_row(at, doc_id, row), True
                at += 1
            if rows:
                memory.set_places(doc_id, (*memory.places_of(doc_id), *range(first, at)))
        return Rows(self.dimensions, live, near, memory)

    def nearest(self, point: NDArray[np.float32], restriction: Filter, pool: int, *, exact: bool = True) -> list[Match]:
        """Return the `pool` nearest rows to `point` that pass `restriction`, best first; ties are sorted by document id.

        Without `exact`, of many rows only candidates are compared, and a few of the nearest may be missing."""
        passing, length = self.passing_rows(restriction) & self.near, float(np.linalg.norm(point))
        if not length:
            return []
        unit = np.asarray(point / length, np.float32)
        return self._best(*self._memory.vectors.nearest(passing, unit, pool, exact=exact), pool)

    def with_words(self, query: str, restriction: Filter, pool: int) -> list[Match]:
        """Return the `pool` rows with the highest BM25 scores by the words of `query`, as `nearest` returns rows."""
        passing = self.passing_rows(restriction)
        scores = self._memory.words.scores(query, self._counted_rows(restriction, passing))
        at = np.flatnonzero(passing & (scores > 0))
        return self._best(at, scores[at], pool)

    def _counted_rows(self, restriction: Filter, passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each place whether its row counts when a word's rarity is computed.

        All rows count if the caller may read them. Otherwise only those of its workspace and namespace count, or those of
        the documents that are shared with it, so that a score reveals nothing of others. `passing` = `passing_rows(restriction)`."""
        if restriction.reads_all:
            return self.live
        scope = Filter(workspace=restriction.workspace, namespace=restriction.namespace)
        if scope == Filter():
            scope = Filter(documents=restriction.documents)
        return passing if restriction == scope else self.passing_rows(scope)

    def _best(self, at: NDArray[np.int64], values: NDArray[np.float32], pool: int) -> list[Match]:
        """Return the `pool` rows at these places with the highest values."""
        at, values = _highest(at, values, pool)
        memory = self._memory
        ids, ords = map(memory.doc_ids.__getitem__, at.tolist()), memory.numbers[0, at].tolist()
        rows = zip((-values).tolist(), ids, ords, at.tolist(), strict=True)
        # Sorting is faster, but not of many ties.
        ranked = heapq.nsmallest(pool, rows) if len(at) > pool else sorted(rows)
        read = memory.read_rows(np.array([place for _, _, _, place in ranked], np.int64))
        return [Match(*row, -lowered) for row, (lowered, *_) in zip(read, ranked, strict=True)]

    def similarities(self, units: NDArray[np.float32], doc_ids: Iterable[str]) -> dict[str, float]:
        """Return the similarities as `ChunkStore.similarities` does; `units` must have unit length."""
        known = [(doc_id, places) for doc_id in doc_ids if (places := self.places_of(doc_id))]
        at = np.fromiter(chain.from_iterable(places for _, places in known), np.int64)
        owners = np.repeat(np.arange(len(known)), [len(places) for _, places in known])
        near = self.near[at]
        best = np.full(len(known), -np.inf, np.float32)
        np.maximum.at(best, owners[near], self._nearest_similarities(at[near], units))
        return {doc_id: value for (doc_id, _), value in zip(known, best.tolist(), strict=True) if value >= -1.0}

    def vectors_of(self, doc_id: str, most: int | None = None) -> NDArray[np.float32]:
        """Return the vectors of a document's rows, of unit length; with `most`, so many of them, from all of it."""
        at = np.array(self.places_of(doc_id), np.int64)
        return self._memory.vectors.to_unit(spread(at[self.near[at]], most))

    def _nearest_similarities(self, at: NDArray[np.int64], units: NDArray[np.float32]) -> NDArray[np.float32]:
        blocks = _cut_blocks(at, self.dimensions)
        best = [nearest_similarities(self._memory.vectors.to_unit(block), units) for block in blocks]
        return np.concatenate(best) if best else np.empty(0, np.float32)

    def passing_rows(self, restriction: Filter) -> NDArray[np.bool_]:
        """Return for each place whether it holds a row that passes `restriction`."""
        row_filter, memory, count = to_row_filter(restriction), self._memory, len(self.live)
        passing = self.live.copy()
        for name, value in row_filter.equal.items():
            number = EQUAL.index(name)
            passing &= memory.codes[number, :count] == memory.values[number].get(value, -1)
        if row_filter.tags is not None:
            having = [memory.tags.rows_with([tag], count) for tag in row_filter.tags]
            passing &= np.logical_and.reduce(having) if having else False
        if row_filter.any_tags is not None:
            passing &= memory.tags.rows_with(row_filter.any_tags, count)
        if row_filter.since is not None:
            passing &= memory.created[:count] >= row_filter.since
        if row_filter.until is not None:
            passing &= memory.created[:count] < row_filter.until
        if row_filter.documents is not None:
            named = np.zeros(count, np.bool_)
            places = chain.from_iterable(map(memory.places_of, row_filter.documents))
            at = np.fromiter(places, np.int64)
            named[at[at < count]] = True
            passing &= named
        return passing

    def _repack(self, added: int) -> Rows:
        """Copy this state into new memory, without replaced rows and with room for at least `added` more rows."""
        kept, old = np.flatnonzero(self.live), self._memory
        count = len(kept)
        room = capacity_for(count + added)
        memory = SharedRowMemory.allocate(
            old.vectors.copy(kept, room), room, old.words.repack(kept, room), old.tags.repack(kept, room)
        )
        memory.codes[:, :count], memory.created[:count] = old.codes[:, kept], old.created[kept]
        memory.doc_ids.extend(map(old.doc_ids.__getitem__, kept.tolist()))
        memory.numbers[:, :count] = old.numbers[:, kept]
        starts, ends = old.starts[kept], old.starts[kept + 1]
        memory.starts[1 : count + 1] = np.cumsum(ends - starts)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            memory.texts.extend(old.texts[start:end])
        for new, known in zip(memory.values, old.values, strict=True):
            new.update(known)
        memory.vectors.centre_signs(np.flatnonzero(self.near[kept]))
        moved = (np.cumsum(self.live) - 1).tolist()
        for doc_id in old.places:
            if places := self.places_of(doc_id):
                memory.set_places(doc_id, [moved[at] for at in places])
        return Rows(self.dimensions, np.ones(count, np.bool_), self.near[kept], memory)


def _highest(
    places: NDArray[np.int64], values: NDArray[np.float32], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the places with the `most` highest values, and those equal to the last of these."""
    if len(places) <= most:
        return places, values
    best = values >= np.partition(values, len(places) - most)[len(places) - most]
    return places[best], values[best]


def _round(vectors: NDArray[np.floating[Any]], kind: np.dtype[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the integers by which vectors [n, dimensions] are kept, and the factors that give them unit length.

    A zero vector has the factor 0."""
    stored = vectors.astype(np.float16).astype(np.float32)  # as the table keeps them
    largest = np.abs(stored).max(axis=1, keepdims=True)
    steps = np.rint(stored * (LARGEST[kind] / np.maximum(largest, SMALLEST)))
    lengths = np.sqrt(np.vecdot(steps, steps))
    return steps, (lengths > 0) / np.maximum(lengths, np.float32(1))


def _rows_in_block(dimensions: int) -> int:
    """Return how many vectors in float32 take BLOCK bytes or less."""
    return max(1, BLOCK // (4 * dimensions))


def _cut_blocks(places: NDArray[np.int64], dimensions: int) -> Iterator[NDArray[np.int64]]:
    """Return `places` in parts of `_rows_in_block` rows; the last part may be shorter."""
    size = _rows_in_block(dimensions)
    return (places[start : start + size] for start in range(0, len(places), size))


def _count_differing(signs: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return for each row of `signs` [dimensions / 64, n] how many of its bits are not those of `wanted` [dimensions / 64]."""
    count = signs.shape[1]
    differing = np.empty(count, np.uint16)
    bits, sums = (np.empty((len(wanted), min(SIGNS, count)), kind) for kind in (np.uint64, np.uint8))
    for start in range(0, count, SIGNS):
        part = signs[:, start : start + SIGNS]
        size = part.shape[1]
        np.bitwise_xor(part, wanted[:, None], out=bits[:, :size])
        np.bitwise_count(bits[:, :size], out=sums[:, :size])
        np.add.reduce(sums[:, :size], axis=0, dtype=np.uint16, out=differing[start : start + size])
    return differing


def _find_bound(numbers: NDArray[np.uint16], count: int) -> int:
    """Return the highest of the `count` lowest numbers. They are small, so counting each takes less time than partitioning them."""
    counts = np.zeros(int(numbers.max()) + 1, np.int64)
    for start in range(0, len(numbers), SIGNS):  # numpy converts the numbers to 8 bytes each: see `BLOCK`
        counts += np.bincount(numbers[start : start + SIGNS], minlength=len(counts))
    return int(np.searchsorted(np.cumsum(counts), count))


def _pack_signs(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the sign of each component of [n, dimensions] as a bit, 1 above 0: [dimensions / 64, n]; the same for one vector."""
    size = vectors.shape[-1]
    bits = np.zeros((*vectors.shape[:-1], -(-size // 64) * 64), np.bool_)
    np.greater(vectors, 0, out=bits[..., :size])
    return np.packbits(bits, axis=-1).view(np.uint64).T


def to_unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to unit length; a zero vector stays unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), np.float32)


def nearest_similarities(vectors: NDArray[np.float32], units: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine similarity of each of `vectors` to the nearest of `units`; all must have unit length."""
    best = np.full(len(vectors), -1.0, np.float32)
    for unit in units:
        np.maximum(best, np.einsum("rd,d->r", vectors, unit), out=best)  # not `@`: see `VectorColumns.compare`
    return np.minimum(best, 1.0)


def spread(rows: NDArray[Any], most: int | None) -> NDArray[Any]:
    """Return `most` of the rows, evenly spaced from the first to the last; all of them without it, or if they are no more."""
    if most is None or len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def capacity_for(rows: int) -> int:
    """Return the number of rows to allocate for a state with `rows` rows."""
    return rows * 3 // 2 + SPARE
