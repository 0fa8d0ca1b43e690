"""Reduce a text to a sketch, a few numbers that find the texts with common words among tens of thousands.

A sketch contains the roughly stemmed words of a text, and a sample of its runs of three words. Equal runs have equal
hashes in all texts, and the hash alone decides whether a run is sampled, so the samples of two texts can be compared
(Broder, "On the resemblance and containment of documents", 1997).

Law, tested: the overlap of two texts depends neither on other texts nor on the order of the texts."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.text.tags import fold_accents

STEM: Final = 6  # first characters of a word, with which most of its forms begin
RUN: Final = 3  # words of a run
SAMPLED: Final = 24  # least number of sampled runs of a text, if it has so many
EVERY: Final = 8  # one of so many runs is sampled
CROWD: Final = 24  # most texts with a common run that this run pairs; more frequent runs belong to templates
RARE: Final = 12  # most texts with a common word that this word pairs
FORM: Final = 4  # least number of texts with a run that belongs to a template
PAIRS: Final = 2_000_000  # most pairs that common runs, or common words, produce; the rarest come first

Words: TypeAlias = NDArray[np.uint32]
Runs: TypeAlias = NDArray[np.uint64]
Pairs: TypeAlias = NDArray[np.int64]  # [n, 2], the lower number first, in order

_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff々〆]+")
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Sketch:
    """Holds the sketch of one text."""

    words: Words  # hashes of the stems, sorted, without repeats
    runs: Runs  # hashes of the sampled runs, sorted, without repeats


def word_stems(text: str) -> list[str]:
    """List the stems of a text's words, in order; for scripts without spaces, all pairs of neighbouring characters."""
    stems = []
    for word in _WORD.findall(fold_accents(text)):
        if word.isascii() or not _WIDE.search(word):
            stems.append(word[:STEM])
            continue
        at = 0
        for wide in _WIDE.finditer(word):
            if wide.start() > at:
                stems.append(word[at : wide.start()][:STEM])
            run = wide[0]
            stems += [run[n : n + 2] for n in range(max(1, len(run) - 1))]
            at = wide.end()
        if at < len(word):
            stems.append(word[at:][:STEM])
    return stems


def make_sketch(text: str) -> Sketch:
    """Compute the sketch of `text`."""
    numbers = np.fromiter((zlib.crc32(word.encode("utf-8", "replace")) for word in word_stems(text)), np.uint32)
    return Sketch(np.unique(numbers), sample_runs(_hash_runs(numbers)))


def sample_runs(runs: Runs) -> Runs:
    """Return a sample of `runs`: those with the smallest hashes, at least SAMPLED if there are so many."""
    runs = np.unique(runs)
    few = runs[: max(SAMPLED, int(np.searchsorted(runs, np.uint64(2**64 // EVERY))))]
    return few.copy()  # a view would keep all runs in memory


def _hash_runs(numbers: Words) -> Runs:
    if not len(numbers):
        return np.empty(0, np.uint64)
    wide = np.concatenate([numbers, np.zeros(max(0, RUN - len(numbers)), np.uint32)]).astype(np.uint64)
    total = np.zeros(len(wide) - RUN + 1, np.uint64)
    for place in range(RUN):
        total = _mix(total + wide[place : len(wide) - RUN + 1 + place] + np.uint64(place + 1))
    return total


def _mix(values: Runs) -> Runs:
    """Mix the bits as splitmix64 does, so that the smallest hashes are a random sample."""
    values = values * _MIX
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def pairs_sharing_runs(sketches: Sequence[Sketch], least: float) -> Pairs:
    """Return the pairs of texts that share at least this part (0..1) of the smaller sample of runs."""
    sizes = np.array([len(sketch.runs) for sketch in sketches], np.int64)
    owners = np.repeat(np.arange(len(sketches), dtype=np.int32), sizes)
    values = np.concatenate([sketch.runs for sketch in sketches]) if sketches else np.empty(0, np.uint64)
    pairs, counts = _pairs_sharing_values(values, owners, CROWD, np.ones(CROWD + 1, np.float32))
    if not len(pairs):
        return pairs
    share = counts / np.maximum(1, np.minimum(sizes[pairs[:, 0]], sizes[pairs[:, 1]]))
    return np.asarray(pairs[(share >= least) & ((counts >= 2) | (share == 1))])


def pairs_sharing_words(sketches: Sequence[Sketch], least: float) -> Pairs:
    """Return the pairs of texts that share rare words of at least the weight `least`.

    A word that only two texts have weighs 1; more frequent words weigh less."""
    owners = np.repeat(np.arange(len(sketches), dtype=np.int32), [len(sketch.words) for sketch in sketches])
    values = np.concatenate([sketch.words for sketch in sketches]) if sketches else np.empty(0, np.uint32)
    worth = 1 / np.log2(np.maximum(2, np.arange(RARE + 1)))
    pairs, weights = _pairs_sharing_values(values, owners, RARE, worth.astype(np.float32))
    return np.asarray(pairs[weights >= least])


@dataclass(frozen=True, slots=True)
class FrequentRuns:
    """Holds the sampled runs that FORM or more texts have."""

    runs: Runs  # sorted hashes

    def is_form(self, text: str, other: str) -> bool:
        """Return whether at least half of the runs that two texts share occur in FORM or more texts, as in a template."""
        shared = np.intersect1d(make_sketch(text).runs, make_sketch(other).runs)
        often = np.count_nonzero(np.isin(shared, self.runs, assume_unique=True))
        return bool(len(shared) and often >= len(shared) / 2)


def find_frequent(sketches: Sequence[Sketch]) -> FrequentRuns:
    """Find the runs that FORM or more texts have."""
    runs = np.concatenate([np.empty(0, np.uint64), *(sketch.runs for sketch in sketches)])
    distinct, counts = np.unique(runs, return_counts=True)
    return FrequentRuns(distinct[counts >= FORM])


def word_overlap(sketches: Sequence[Sketch], pairs: Pairs) -> NDArray[np.float32]:
    """Return for each pair the share of the words of the text with fewer words that the other text has too."""
    sizes = np.array([len(sketch.words) for sketch in sketches], np.int64)
    shares = np.zeros(len(pairs), np.float32)
    for n, (a, b) in enumerate(pairs.tolist()):
        smaller, larger = (a, b) if sizes[a] <= sizes[b] else (b, a)
        if sizes[smaller]:
            words, others = sketches[smaller].words, sketches[larger].words
            at = np.minimum(np.searchsorted(others, words), len(others) - 1)
            shares[n] = np.count_nonzero(others[at] == words) / sizes[smaller]
    return shares


def rank_pairs(pairs: Pairs, share: NDArray[np.float32], least: float) -> Pairs:
    """Return the pairs with at least this share, the largest share first."""
    kept = share >= least
    pairs, share = pairs[kept], share[kept]
    return np.asarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0], -share))])


def merge_pairs(parts: Iterable[Pairs]) -> Pairs:
    """Merge these pairs, without repeats."""
    known = [part for part in parts if len(part)]
    return np.unique(np.concatenate(known), axis=0) if known else np.empty((0, 2), np.int64)


def _pairs_sharing_values(
    values: NDArray[np.uint32] | Runs, owners: NDArray[np.int32], most: int, worth: NDArray[np.float32]
) -> tuple[Pairs, NDArray[np.float32]]:
    """Return the pairs of owners with a common value that at most `most` owners have, and the total worth of these values.

    `worth`: the worth of a value by its number of owners. Each owner has a value at most once."""
    order = np.argsort(values, kind="stable")
    values, owners = values[order], owners[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else np.empty(0, int)
    sizes = np.diff(np.append(starts, len(values)))
    keys, weights, left = [], [], PAIRS
    for size in range(2, most + 1):
        groups = starts[sizes == size]
        if not len(groups) or left <= 0:
            continue
        groups = groups[: max(1, left // (size * (size - 1) // 2))]
        members = np.sort(owners[groups[:, None] + np.arange(size)], axis=1)
        a, b = np.triu_indices(size, 1)
        keys.append((members[:, a].astype(np.int64) << 32 | members[:, b]).ravel())
        weights.append(np.full(len(keys[-1]), worth[size], np.float32))
        left -= len(keys[-1])
    if not keys:
        return np.empty((0, 2), np.int64), np.empty(0, np.float32)
    codes, at = np.unique(np.concatenate(keys), return_inverse=True)
    totals = np.bincount(at, np.concatenate(weights)).astype(np.float32)
    return np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1), totals
