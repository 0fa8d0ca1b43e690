"""Find tag synonyms in a workspace: spelling variants, short forms, typos, and the last part of a nested tag.

The rules find only sure synonyms: tags that mean only nearly the same are left alone, because a merge would lose their
difference.

Laws, tested: equal tags give an equal answer in any order; a tag becomes at most one other tag, which is used more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

from index.text.tags import SHORT, fold_accents, key_of, words_of

LONG: Final = 7  # letters from which one wrong letter in a word is a typo
TYPED: Final = 2, 0.25  # highest number of uses of a typo, and its highest share of the right tag's uses
INFLECTED: Final = ("n", "en", "s", "es", "x")  # endings of inflected words that are not English
# For `heron` beside `project/heron`: notes with both tags, and their share of the notes with the short one.
TOGETHER: Final = 3, 0.6
EQUAL: Final = 5, 0.85  # for tags that always occur together: notes of each, and the share of notes with both
MANY: Final = 16  # notes with this many tags or more are no evidence that tags belong together

Uses: TypeAlias = Mapping[str, Sequence[int]]  # the notes that have each tag


@dataclass(frozen=True, slots=True)
class Synonym:
    """Names a tag to replace by another, with the reason."""

    kept: str
    merged: str
    score: float
    reason: str


def find_synonyms(uses: Uses, places: Mapping[str, int]) -> list[Synonym]:
    """Find the tags that mean the same, the surest first. `places`: frequency ranks of English words."""
    rank = {tag: (-len(set(uses[tag])), -len(tag), tag) for tag in uses}
    best: dict[str, tuple[float, str, str]] = {}
    for tag, other, score, why in sorted(set(_find_pairs(uses, places))):
        kept, merged = sorted((tag, other), key=rank.__getitem__)
        known = best.get(merged)
        if known is None or (-score, rank[kept]) < (-known[0], rank[known[1]]):
            best[merged] = (score, kept, why)
    synonyms = []
    for merged, (score, near, why) in best.items():
        kept = near
        while kept in best:  # a replacement is never replaced itself
            kept = best[kept][1]
        synonyms.append(
            Synonym(
                kept,
                merged,
                score,
                f"{why}; {_describe_count(uses[kept])} {kept}, {_describe_count(uses[merged])} {merged}",
            )
        )
    return sorted(
        synonyms, key=lambda synonym: (-synonym.score, -len(uses[synonym.merged]), synonym.kept, synonym.merged)
    )


def _describe_count(documents: Sequence[int]) -> str:
    count = len(set(documents))
    return "1 capture has" if count == 1 else f"{count} captures have"


def _find_pairs(uses: Uses, places: Mapping[str, int]) -> Iterator[tuple[str, str, float, str]]:
    yield from _pairs_of_equal_key(
        uses, lambda tag: fold_accents(tag).replace("_", "-"), 1.0, "they differ only in capitals, accents or hyphens"
    )
    yield from _pairs_of_equal_key(uses, _path_key, 0.95, "they are forms of the same words")
    yield from _pairs_of_equal_key(uses, _unordered_key, 0.85, "they have the same words in another order")
    yield from _abbreviations(uses)
    yield from _inflections(uses, places)
    yield from _typing_errors(uses, places)
    yield from _used_together(uses)


def _pairs_of_equal_key(
    uses: Uses, key: Callable[[str], str], score: float, why: str
) -> Iterator[tuple[str, str, float, str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for tag in uses:
        if known := key(tag):
            groups[known].append(tag)
    for group in groups.values():
        first = min(group, key=lambda tag: (-len(set(uses[tag])), -len(tag), tag))
        for tag in group:
            if tag != first:
                spelt = set(_split_words(tag)) ^ set(_split_words(first))
                short = sorted(part for part in spelt if part in SHORT and SHORT[part] not in part)
                yield first, tag, score, f"{short[0]} is short for {SHORT[short[0]]}" if short else why


def _path_key(tag: str) -> str:
    return "/".join(key_of(part) for part in tag.split("/"))


def _unordered_key(tag: str) -> str:
    words = words_of(tag)
    return " ".join(sorted(words)) if len(words) > 1 and "/" not in tag else ""


def _abbreviations(uses: Uses) -> Iterator[tuple[str, str, float, str]]:
    """Find abbreviations: `rrf` for reciprocal-rank-fusion, and `k8s` for kubernetes."""
    known: dict[str, list[str]] = defaultdict(list)
    for tag in uses:
        known[fold_accents(tag)].append(tag)
    for tag in uses:
        name = fold_accents(tag)
        words = [word for word in name.replace("_", "-").split("-") if word]
        if len(words) >= 3 and "/" not in name:
            for short in known.get("".join(word[0] for word in words), ()):
                yield tag, short, 0.8, f"{short} are the first letters of {tag}"
        if len(name) >= 6 and name.isalpha():
            for short in known.get(f"{name[0]}{len(name) - 2}{name[-1]}", ()):
                yield tag, short, 0.9, f"{short} is {tag} with its {len(name) - 2} middle letters counted"


def _inflections(uses: Uses, places: Mapping[str, int]) -> Iterator[tuple[str, str, float, str]]:
    """Find inflected forms: `reise` and `reisen`. English plurals are not handled here; their keys are equal."""
    known = {fold_accents(tag): tag for tag in sorted(uses)}
    for name, tag in known.items():
        if len(name) < 5 or not name.isalpha():
            continue
        for ending in INFLECTED:
            other = known.get(name + ending)
            if other and other != tag and not (name in places and name + ending in places):
                yield tag, other, 0.75, "they are forms of one word"


def _typing_errors(uses: Uses, places: Mapping[str, int]) -> Iterator[tuple[str, str, float, str]]:
    """Find pairs of tags that differ in one letter, or in two swapped neighbours, of which one is hardly used."""
    groups: dict[str, set[str]] = defaultdict(set)
    for tag in uses:
        name = fold_accents(tag)
        if len(name) >= LONG and not any(c.isdigit() for c in name):
            for place in range(1, len(name)):
                groups[name[:place] + name[place + 1 :]].add(tag)
            groups[name].add(tag)
    seen: set[tuple[str, str]] = set()
    for group in groups.values():
        for pair in combinations(sorted(group), 2):
            if pair in seen:
                continue
            seen.add(pair)
            right, wrong = sorted(pair, key=lambda tag: (-len(set(uses[tag])), tag))
            few, many = len(set(uses[wrong])), len(set(uses[right]))
            if (
                few > TYPED[0]
                or few > TYPED[1] * many
                or not _is_one_letter_off(fold_accents(right), fold_accents(wrong))
            ):
                continue
            odd = [word for word in _split_words(wrong) if word not in _split_words(right)]
            if all(len(word) >= LONG and word not in places for word in odd):
                yield right, wrong, 0.8, f"{wrong} is one letter from {right}"


def _split_words(tag: str) -> list[str]:
    return [word for part in fold_accents(tag).split("/") for word in part.replace("_", "-").split("-")]


def _is_one_letter_off(tag: str, other: str) -> bool:
    """Return whether one changed letter makes the tags equal; the last letter doesn't count, as word forms differ there."""
    short, long = sorted((tag, other), key=len)
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return at < len(short) and short[at:] == long[at + 1 :]
    turned = long[:at] + long[at + 1 : at + 2] + long[at : at + 1] + long[at + 2 :]
    return turned == short or (at < len(short) - 1 and short[at + 1 :] == long[at + 1 :])


def _used_together(uses: Uses) -> Iterator[tuple[str, str, float, str]]:
    """Find `heron` beside `project/heron`, and tags that share a word and always occur together."""
    tagged: dict[int, list[str]] = defaultdict(list)
    for tag in sorted(uses):
        for document in set(uses[tag]):
            tagged[document].append(tag)
    counts = Counter(pair for tags in tagged.values() if len(tags) < MANY for pair in combinations(tags, 2))
    for (first, second), both in counts.items():
        sizes = len(set(uses[first])), len(set(uses[second]))
        long, loose = sorted((first, second), key=lambda tag: -tag.count("/"))
        if "/" in long and _path_key(long.rpartition("/")[2]) == _path_key(loose) and "/" not in loose:
            if both >= TOGETHER[0] and both >= TOGETHER[1] * len(set(uses[loose])):
                yield long, loose, 0.6, f"{loose} occurs together with {long}, and is its last part"
        elif min(sizes) >= EQUAL[0] and both >= EQUAL[1] * (sum(sizes) - both):
            shared = set(words_of(first)) & set(words_of(second))
            if shared and "/" not in first + second:
                yield first, second, 0.55, f"they share a word, and {both} captures have both"
