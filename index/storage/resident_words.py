"""Keep the words and tags of the resident rows in memory, and score rows by the words of a query (BM25).

Both belong to the memory that successive `Rows` share: it only grows, and an earlier state sees none of the later rows.
Law, tested: the scores are those of LanceDB's word index right after it was built, so they depend on the rows and
not on the order in which they were written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

HALF = np.uint64(32)  # the bits of half a number
MOST_WORDS = 250_000  # most different words; each takes about 130 bytes
K1, B = 1.2, 0.75  # the constants of BM25 that LanceDB uses
LATE: Final = 65_536  # words that are compared one by one; with more, all words are sorted again
PIECES: Final = 20_000  # most different pieces of text whose words are remembered until all words are sorted again
PIECE: Final = 24  # characters of the longest one; a sentence without blanks would hardly come again

Split: TypeAlias = Callable[[str], Iterable[str]]  # the words of a text


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """Holds the row of every word of every text: of most words sorted by word, and of the words added last as they came."""

    starts: NDArray[np.int64]  # for each word, the position in `rows` of its first row; at the end, the number of all
    rows: NDArray[np.uint32]  # the rows of each word in ascending order, as often as they contain it
    late_words: NDArray[np.uint32]  # [room]
    late_rows: NDArray[np.uint32]  # [room], in ascending order
    late: int  # how many of these are in use

    def rows_of(self, word: int) -> NDArray[np.uint32]:
        """Return the rows that contain `word`, as often as they contain it."""
        added: NDArray[np.uint32] = self.late_rows[: self.late][self.late_words[: self.late] == word]
        if word + 1 >= len(self.starts):
            return added
        return np.concatenate([self.rows[self.starts[word] : self.starts[word + 1]], added])

    def all(self) -> NDArray[np.uint64]:
        """Return every occurrence as one number, with its word in the upper half and its row in the lower half.

        Sorting these takes a fifth of the time of sorting by two keys."""
        both = np.empty(len(self.rows) + self.late, np.uint64)
        first, last = both[: len(self.rows)], both[len(self.rows) :]
        first[:] = np.repeat(np.arange(len(self.starts) - 1, dtype=np.uint32), np.diff(self.starts))
        last[:] = self.late_words[: self.late]
        both <<= HALF
        first |= self.rows
        last |= self.late_rows[: self.late]
        return both


class _Pieces(dict[str, tuple[int, ...]]):
    """Maps a piece of text without white space to the numbers of its words, and remembers short pieces."""

    def __init__(self, split: Split, numbers: dict[str, int]) -> None:
        super().__init__()
        self._split, self._numbers = split, numbers

    def __missing__(self, piece: str) -> tuple[int, ...]:
        numbers = self._numbers
        words = tuple(numbers.setdefault(word, len(numbers)) for word in self._split(piece))
        if len(self) < PIECES and len(piece) <= PIECE:
            self[piece] = words
        return words


class WordIndex:
    """Holds the words of rows, which are numbered from 0. One thread may write while others read."""

    def __init__(self, split: Split, room: int) -> None:
        self._split = split
        self._numbers: dict[str, int] = {}  # word → number, in the order of their appearance
        self._pieces = _Pieces(split, self._numbers)
        self._lengths = np.zeros(room, np.float32)  # the number of words of each row
        self._seen = _sort(np.empty(0, np.uint64), 0)  # a reader reads this attribute only once

    @property
    def is_full(self) -> bool:
        """Return whether there are too many different words to add more."""
        return len(self._numbers) > MOST_WORDS

    def add(self, row: int, text: str) -> None:
        """Add the words of the next row."""
        words = list(chain.from_iterable(map(self._pieces.__getitem__, text.split())))  # no word crosses white space
        self._lengths[row] = len(words)
        seen, end = self._seen, self._seen.late + len(words)
        late_words, late_rows = seen.late_words, seen.late_rows
        if end > len(late_words):
            late_words, late_rows = (
                np.concatenate([part[: seen.late], np.empty(2 * end - seen.late, np.uint32)])
                for part in (late_words, late_rows)
            )
        late_words[seen.late : end], late_rows[seen.late : end] = words, row
        self._seen = _Occurrences(seen.starts, seen.rows, late_words, late_rows, end)

    def sort(self) -> None:
        """Sort all words, if LATE or more were added since the last time."""
        if self._seen.late >= LATE:
            self._seen = _sort(self._seen.all(), len(self._numbers))
            self._pieces.clear()

    def sort_after_growth(self) -> None:
        """Sort all words, if half as many as are sorted were added since: unsorted words take more memory."""
        if self._seen.late >= len(self._seen.rows) // 2:
            self.sort()

    def drop_from(self, row: int) -> None:
        """Forget the words of `row` and of all later ones, which must have been added since the last sort."""
        seen = self._seen
        end = int(np.searchsorted(seen.late_rows[: seen.late], row))
        self._seen = _Occurrences(seen.starts, seen.rows, seen.late_words, seen.late_rows, end)

    def scores(self, query: str, live: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the BM25 score of each row by the words of `query`, 0 without any, as if only the `live` rows existed."""
        seen, count = self._seen, len(live)
        scores = np.zeros(count, np.float32)
        lengths, rows = self._lengths[:count], int(np.count_nonzero(live))
        if not rows:
            return scores
        average = max(1.0, float(np.sum(lengths, where=live, dtype=np.float64)) / rows)
        for word, asked in Counter(self._split(query)).items():
            if (number := self._numbers.get(word)) is None:
                continue
            having, times = _count_equals(seen.rows_of(number))
            counted = live[having[: np.searchsorted(having, count)]]  # later states have rows after these
            having, times = having[: len(counted)][counted], times[: len(counted)][counted]
            rarity = math.log(1 + (rows - len(having) + 0.5) / (len(having) + 0.5))
            saturation = K1 * (1 - B) + K1 * B / average * lengths[having]
            scores[having] += asked * rarity * (K1 + 1) * times / (times + saturation)
        return scores

    def repack(self, kept: NDArray[np.int64], room: int) -> WordIndex:
        """Copy the words of the rows `kept`, which get the numbers from 0 on in this order, which is ascending.

        So the rows of each word stay in order, and nothing needs to be sorted: all occurrences as `_Occurrences.all` returns
        them would take several times the memory."""
        seen = self._seen
        new_rows, stays = np.zeros(len(self._lengths), np.uint32), np.zeros(len(self._lengths), np.bool_)
        new_rows[kept], stays[kept] = np.arange(len(kept), dtype=np.uint32), True
        left = stays[seen.rows]
        # For each word, how many occurrences are left before it, and at the end, how many in all.
        before = np.concatenate([np.zeros(1, np.int32), np.cumsum(left, dtype=np.int32)])[seen.starts]
        late_words, late_rows = seen.late_words[: seen.late], seen.late_rows[: seen.late]
        late = stays[late_rows]
        late_words, late_rows = late_words[late], new_rows[late_rows[late]]
        used = np.bincount(late_words, minlength=len(self._numbers)) > 0
        used[: len(before) - 1] |= np.diff(before) > 0
        packed = WordIndex(self._split, room)
        packed._numbers.update((word, n) for n, word in enumerate(compress(self._numbers, used.tolist())))
        packed._lengths[: len(kept)] = self._lengths[kept]
        packed._seen = _Occurrences(
            np.append(before[:-1][used[: len(before) - 1]], before[-1]).astype(np.int64),
            new_rows[seen.rows[left]],
            (np.cumsum(used) - 1)[late_words].astype(np.uint32),
            late_rows,
            len(late_rows),
        )
        return packed


class TagColumns:
    """Holds the tags of rows, which are numbered from 0. One thread may write while others read.

    A tag is held as Python's hash of it, 8 bytes, because most captures have tags that no other has. Two tags with one hash would
    count as one tag, which 100,000 different tags have with a probability of 3 in 10 billion, and Python chooses the hashes at random."""

    def __init__(self, room: int) -> None:
        # The tags of each row, one after the other, in an array that is replaced when it is full; and where those of each row
        # begin, and the end of the last ones.
        self._tags, self._starts = np.empty(room, np.int64), np.zeros(room + 1, np.int64)

    def write(self, row: int, tags: Sequence[str]) -> None:
        """Write the tags of `row`, which comes after the last row that is still in use."""
        begin = int(self._starts[row])
        end = begin + len(tags)
        if end > len(self._tags):
            self._tags = np.concatenate([self._tags[:begin], np.empty(end * 3 // 2 - begin, np.int64)])
        self._tags[begin:end] = list(map(hash, tags))
        self._starts[row + 1] = end

    def rows_with(self, tags: Iterable[str], count: int) -> NDArray[np.bool_]:
        """Return for each of the first `count` rows whether it has one of these tags."""
        ends, rows = self._starts[1 : count + 1], np.zeros(count, np.bool_)
        if count:
            having = np.flatnonzero(np.isin(self._tags[: ends[-1]], list(map(hash, tags))))
            rows[np.searchsorted(ends, having, side="right")] = True
        return rows

    def repack(self, kept: NDArray[np.int64], room: int) -> TagColumns:
        """Copy the tags of the rows `kept`, which get the numbers from 0 on in this order."""
        begins, counts = self._starts[kept], self._starts[kept + 1] - self._starts[kept]
        ends = np.cumsum(counts)
        packed = TagColumns(room)
        packed._tags = self._tags[np.repeat(begins - ends + counts, counts) + np.arange(counts.sum())]
        packed._starts[1 : len(kept) + 1] = ends
        return packed


def _count_equals(ascending: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return each different number of `ascending` once, and how often it is in it."""
    first = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(ascending)])
    return ascending[first], np.diff(first, append=len(ascending)).astype(np.float32)


def _sort(both: NDArray[np.uint64], count: int) -> _Occurrences:
    """Sort occurrences of `count` different words, as `_Occurrences.all` returns them, in place."""
    both.sort()
    starts = np.searchsorted(both, np.arange(count + 1, dtype=np.uint64) << HALF)
    empty = np.empty(0, np.uint32)
    return _Occurrences(starts, both.astype(np.uint32), empty, empty, 0)  # cut to the lower halves
