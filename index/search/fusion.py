"""Rank the results of a search by fusion of word, vector and name scores: each document by its best passage.

The score of a passage is a sum of evidence. Each part is 0..1, so that scores of different searches are comparable: its BM25
score B as B / (B + 10); the cosine similarity of its vector; the share of the query's words in it; the share of the query's
neighboring words that are side by side in it; the share of its title or of a heading that the query names; and whether the
note was created in a time that the query names, or a few days later. Only the share of words depends on the other passages:
a word that few of them have counts more. The weights
lie on the flat maximum of measurements on conversations, Japanese articles and documentation together
(`python -m tests.bench.retrieval`). The vector counts less the more the encoder has to spell the query letter by letter,
because its vocabulary then does not know the language. A note whose title or alias *is* the query comes first."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from index.deferred_patterns import compile_later
from index.document_ids import choose_owner
from index.model import Hit, Record
from index.names import fold, stem
from index.storage.chunk_rows import Match
from index.text.chunking import ALIAS, SEPARATOR

HALF = 10.0  # the BM25 score that counts as evidence of one half, by the curve B / (B + HALF)

# Weights: what full evidence of a kind adds to the sum, which is divided by the weights of all available kinds.
# Source: `python -m tests.bench.retrieval`, the flat maximum of conversations, Japanese articles and documentation together;
# half or twice a weight changes little.
WORDS_WEIGHT = 1.0  # the words of the query, by BM25: the measure of the others
NEAR_WEIGHT = 0.5  # cosine similarity, times the trust in the query's vector: decides where words are about equal
PAIRS_WEIGHT = 0.15  # neighbouring words of the query side by side: a phrase beats its words scattered
SHARE_WEIGHT = 0.1  # different words of the query: all of them once beat one of them many times
NAMES_WEIGHT = 0.2  # title, alias or heading in the words of the query: a note on a thing beats one that mentions it
# The note was created when the query says: only a boost, as people also write later about a time. Source:
# `python -m tests.bench.query_times`.
DATE_WEIGHT = 0.1

# Tokens per letter that the encoder needs for the query. Source: as above. Words of a language that its vocabulary knows
# need far less than KNOWN; a text that it spells letter by letter needs one token per letter.
KNOWN = 0.5  # up to this value the vector counts in full
SPELT = 0.8  # from this value it does not count; in between the trust falls linearly

NAMED = 0.9  # lowest score of a note whose title or alias is the query; all other scores are below
# A hit is weak if its score, its passage's similarity and the share of the query's words in the passage are all below these.
# A score alone would not do: the words of a vault with few notes are never rare. Source: `python -m tests.bench.weak_hits`.
WEAK_SCORE, WEAK_NEAR, WEAK_SHARE = 0.3, 0.4, 0.5
STALE = 0.5  # factor on the score of a document that a newer one replaces, so that it ranks lower but is still found

# Scripts that are written without spaces, and Hangul, whose particles are part of the word.
RUN = compile_later(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
HEADING = compile_later(r"\n#{1,6} +([^\n]+)")  # "\n#" is found many times as fast as "^#"
FLAT = str.maketrans({**dict.fromkeys("!\"#$%&'()*+,.:;<=>?@[\\]^`{}~’‘“”", None), **dict.fromkeys("-_/|–—\t\n", " ")})
# The same for ASCII bytes, which takes a fifth of the time.
ASCII_FLAT = bytes(ord(chr(code).casefold().translate(FLAT) or " ") for code in range(128)) + bytes(range(128, 256))
ASCII_DROPPED = bytes(code for code in range(128) if not chr(code).translate(FLAT))

# Function words of a question, which an answer does not contain.
ASKING = frozenset("what when where which who whom whose why how".split())  # noqa: SIM905 - a list of words reads so
ASKED = frozenset(
    """am is are was were be been being do does did doing has have had having
    can could will would shall should might must""".split()  # noqa: SIM905 - as above
)
POINTING = frozenset(
    """i me my you your he him his she her it its we us our they them their
    this that these those there""".split()  # noqa: SIM905 - as above
)
SCAFFOLD = ASKING | ASKED | POINTING
JA_QUESTION = compile_later("(?:[?？]|か[。.]?)$")
JA_ASKING = compile_later(
    "とは|のは|です|でしょう|でした|ます|どこ|どの|どんな|どれ|どちら|なに|何|いつ|誰|だれ|なぜ|いくつ|いくら|どう|か?[。？?]+$|か$"
)
EDGES = compile_later(r"^\W+|(?:['’]s)?\W*$")


# The score as a number below 0, so that the best is first; then document, `ord` and passage.
_Scored: TypeAlias = tuple[float, str, int, Match]


@dataclass(frozen=True, slots=True)
class QueryCue:
    """Holds the parts of a query that are compared with a found passage."""

    name: str  # the whole query, folded like a name
    asked: tuple[frozenset[str], ...]  # its units and, if they differ, those without a question's function words
    units: tuple[str, ...]  # all of these, in order: word stems, and pairs of characters in scripts without spaces
    content: dict[str, str]  # the last of `asked`, in order: as each is looked for, " word" or the characters
    pairs: tuple[str, ...]  # neighbours: " one two" where words are spaced, two characters where they are not
    # The unit of a first neighbour → its pairs: "one" and "two", or the two characters and "".
    pairs_from: dict[str, list[tuple[str, str]]]


class RankedDocument(NamedTuple):  # see `Match`
    """Describes a document by its best passage."""

    doc_id: str
    ord: int
    heading: str
    chunk: str
    score: float  # 0..1
    near: float = 0.0  # similarity of the passage, 0..1, times the trust in the query's vector


def keywords(text: str) -> str:
    """Return the words for a full-text search: `text` or, for a question, the words that an answer would contain."""
    if JA_QUESTION.search(text.rstrip()) and RUN.search(text):
        return JA_ASKING.sub(" ", text).strip() or text
    words = text.split()
    bare = [EDGES.sub("", word).casefold() for word in words]
    asks = text.rstrip().endswith("?") or (
        len(bare) > 2 and (bare[0] in ASKED or (bare[0] in ASKING and bare[1] in ASKED))  # a verb and more
    )
    if not asks:
        return text
    kept = [
        word
        for place, (word, plain) in enumerate(zip(words, bare, strict=True))
        if plain not in SCAFFOLD or (place and word[:1].isupper())  # a name: Will, WHO, US
    ]
    return " ".join(kept) or text


def make_cue(text: str) -> QueryCue:
    """Extract from a query the parts to compare with the passages that it finds."""
    content = list(_split_words(keywords(text)))
    pairs = {
        f" {word} {_stem(after)}": (_stem(word), (word, _stem(after)))
        for word, after in pairwise(content)
        if not (RUN.match(word) or RUN.match(after))
    }
    joined = [run[n : n + 2] for run in content if RUN.match(run) for n in range(len(run) - 1)]
    pairs |= {pair: (pair, (pair, "")) for pair in joined}
    pairs_from: dict[str, list[tuple[str, str]]] = {}
    for unit, pair in pairs.values():
        pairs_from.setdefault(unit, []).append(pair)
    asked = tuple(dict.fromkeys((_grams(text), _grams(keywords(text)))))
    units = tuple(sorted(frozenset[str]().union(*asked)))
    words = {gram: gram if RUN.match(gram) else f" {gram}" for gram in sorted(asked[-1])}
    return QueryCue(_name_key(text), asked, units, words, tuple(pairs), pairs_from)


def vector_trust(tokens: int, text: str) -> float:
    """Return how reliable the encoder's vector of `text` is, 0..1, from the number of its tokens."""
    letters = sum(not character.isspace() for character in text)
    return max(0.0, min(1.0, (SPELT - tokens / max(1, letters)) / (SPELT - KNOWN)))


def fuse(
    cue: QueryCue,
    near: Sequence[Match],
    words: Sequence[Match],
    trust: float,
    weight: float | None = None,
    *,
    farthest: float | None = None,
    dated: Collection[str] = (),
    date_weight: float = 0.0,
) -> list[RankedDocument]:
    """Rank the documents of both legs, best first. A passage that only words found counts as close as `farthest`.

    `weight` of the vector, 0..1: the trust, unless something else is given. `farthest`: the similarity of the last one of
    `near`, unless something else is given. `dated`: the documents of the times that the query names; `date_weight`: what
    that counts, 0 if it names none."""
    similar = {(match.doc_id, match.ord): match.value for match in near}
    bm25 = {(match.doc_id, match.ord): match.value for match in words}
    farthest = min(similar.values(), default=0.0) if farthest is None else farthest
    near_weight = NEAR_WEIGHT * (trust if weight is None else weight) if near else 0.0
    pairs_weight, share_weight = (PAIRS_WEIGHT if cue.pairs else 0.0), (SHARE_WEIGHT if len(cue.content) > 1 else 0.0)
    full = WORDS_WEIGHT + NAMES_WEIGHT + near_weight + pairs_weight + share_weight + date_weight
    matches = {(match.doc_id, match.ord): match for match in (*words, *near)}
    texts = [f" {_fold(match.text)}" for match in matches.values()]
    units_of = [[unit for unit in cue.units if unit in text] for text in texts]
    shares = _share_words(cue.content, texts, units_of)
    scored: list[_Scored] = []
    for (key, match), text, units, share in zip(matches.items(), texts, units_of, shares, strict=True):
        worded = max(0.0, bm25.get(key, 0.0))
        named, exact = _match_names(cue, match, units)
        score = WORDS_WEIGHT * worded / (worded + HALF) + NAMES_WEIGHT * named
        score += near_weight * _clamp(similar.get(key, farthest)) + date_weight * (match.doc_id in dated)
        if cue.pairs:
            score += pairs_weight * _count_pairs(cue, text, units) / len(cue.pairs)
        score = _clamp((score + share_weight * share) / full)
        scored.append((-(NAMED + (1 - NAMED) * score if exact else NAMED * score), *key, match))
    return _best_passages(scored, lambda match: trust * _clamp(similar.get((match.doc_id, match.ord), farthest)))


def rank_by_vector(near: Sequence[Match]) -> list[RankedDocument]:
    """Rank the documents of the vector leg alone; the score is the cosine similarity."""
    scored = [(-_clamp(match.value), match.doc_id, match.ord, match) for match in near]
    return _best_passages(scored, lambda match: _clamp(match.value))


def is_weak(cue: QueryCue, document: RankedDocument, title: str) -> bool:
    """Return whether the document could be as good a hit if it had nothing to do with the query."""
    if document.score >= WEAK_SCORE or document.near >= WEAK_NEAR:
        return False
    text = f" {_fold(f'{title} {document.heading} {document.chunk}')}"
    return not cue.content or sum(word in text for word in cue.content.values()) < WEAK_SHARE * len(cue.content)


def demote_superseded(hits: Sequence[Hit]) -> list[Hit]:
    """Sort hits, best first; a hit that a newer document replaces counts less, and comes after that document."""
    scored = [replace(hit, score=hit.score * STALE) if hit.record.superseded_by is not None else hit for hit in hits]
    return place_below_successors(scored)


def place_below_successors(hits: Sequence[Hit]) -> list[Hit]:
    """Sort hits, best first; a hit that newer notes replace gets no higher score than the newest that is a hit, and follows it."""
    scores = {hit.record.path: hit.score for hit in hits}
    named: dict[str, list[Record]] = {}
    for hit in hits:
        named.setdefault(stem(hit.record.path), []).append(hit.record)
    placed: list[tuple[float, int, Hit]] = []
    for hit in hits:
        newer = _list_successors(hit, named)
        newest = next((scores[record.path] for record in reversed(newer) if record.path in scores), hit.score)
        score = min(hit.score, newest)
        placed.append((score, len(newer), hit if score == hit.score else replace(hit, score=score)))
    return [hit for _, _, hit in sorted(placed, key=lambda place: (-place[0], place[1]))]


def _list_successors(hit: Hit, named: Mapping[str, Sequence[Record]]) -> list[Record]:
    """Return the notes that replace `hit`, the nearest first: those of its index, then the hits of others that they link to."""
    chain = [hit.record, *hit.newer]
    while (newer := _find_successor(chain[-1], named)) is not None and newer not in chain:
        chain.append(newer)
    return chain[1:]


def _find_successor(record: Record, named: Mapping[str, Sequence[Record]]) -> Record | None:
    """Return the hit among `named` that replaces `record`: in the same workspace, or in the vault after its promotion."""
    if record.superseded_by is None:
        return None
    alike = {
        other.path: other
        for other in named.get(stem(record.superseded_by), ())
        if other.path != record.path and other.workspace in (record.workspace, "")
    }
    return alike.get(choose_linked(record.superseded_by, alike) or "")


def choose_linked(link: str, paths: Collection[str]) -> str | None:
    """Choose the path that a link means, which may contain folders, among the notes of its name; None if there are none."""
    ends = f"{fold(f'/{link}').removesuffix('.md')}.md"
    meant = [path for path in paths if fold(f"/{path}").endswith(ends)] or paths
    return choose_owner(meant) if meant else None


def _best_passages(scored: Iterable[_Scored], similarity: Callable[[Match], float]) -> list[RankedDocument]:
    """Return each document once, by its best passage; equal scores are ordered by id, so that a search is repeatable."""
    best: dict[str, tuple[float, Match]] = {}
    for lowered, doc_id, _, match in sorted(scored):
        best.setdefault(doc_id, (-lowered, match))
    return [
        RankedDocument(
            *(match.doc_id, match.ord, match.heading, match.text[match.cut :]),
            score,
            similarity(match),
        )
        for score, match in best.values()
    ]


def _match_names(cue: QueryCue, match: Match, units: Sequence[str]) -> tuple[float, bool]:
    """Return the best overlap of the query with a name of the passage (title, alias, heading), and whether the title or an alias is the query.

    The overlap, 0..1, is the share of common words among all words of both. `units`: those of the query in the passage."""
    title, *trail = match.text[: match.cut].strip().split(SEPARATOR)
    titles = [title, *title.split(ALIAS)] if ALIAS in title else [title]
    exact = any(_is_name(name, cue.name) for name in titles) or _has_compound_name(match.text[: match.cut], cue.name)
    if not units:
        return 0.0, exact  # the names are parts of the text
    inside = _find_headings(match.text, match.cut) if "#" in match.text else []
    names = _fold(" ".join([match.text[: match.cut], *inside]))
    if not any(map(names.__contains__, units)):
        return 0.0, exact  # as for most passages: no name has a unit in common with the query
    most = 0.0
    for head in (*titles, *trail, *inside):
        grams = _grams(head)
        for asked in cue.asked:
            if shared := len(grams & asked):
                most = max(most, shared / (len(grams) + len(asked) - shared))
    return most, exact


def _is_name(name: str, key: str) -> bool:
    """Return whether `name` has the key `key`; an ASCII name that is shorter, as most are, has not."""
    return not (len(name) < len(key) and name.isascii()) and _name_key(name) == key


def _has_compound_name(context: str, key: str) -> bool:
    """Return whether a title or an alias of this context, with a separator in it, has the key `key`."""
    if SEPARATOR not in key and ALIAS not in key:
        return False  # as nearly all queries
    names = f"{ALIAS}{_name_key(context)}{SEPARATOR}"
    return f"{ALIAS}{key}{ALIAS}" in names or f"{ALIAS}{key}{SEPARATOR}" in names


def _share_words(content: Mapping[str, str], texts: Sequence[str], units_of: Sequence[Sequence[str]]) -> list[float]:
    """Return for each folded text the share of the words `content` that it has; a word counts more, the fewer texts have it.

    `units_of`: the units of the query in each text. A word can only be where its unit is."""
    rows = [
        [unit for unit in units if (word := content.get(unit)) and word in text]
        for text, units in zip(texts, units_of, strict=True)
    ]
    counts = Counter(chain.from_iterable(rows))
    rarity = {unit: math.log(1 + (len(texts) - counts[unit] + 0.5) / (counts[unit] + 0.5)) for unit in content}
    whole = sum(rarity.values()) or 1.0
    return [sum(map(rarity.__getitem__, row)) / whole for row in rows]


def _count_pairs(cue: QueryCue, folded: str, units: Sequence[str]) -> int:
    """Count the pairs of neighbours in a folded text that has these units of the query."""
    pairs = [pair for unit in units for pair in cue.pairs_from.get(unit, ())]
    return sum(not last or (last in units and _are_neighbours(folded, first, last)) for first, last in pairs)


def _are_neighbours(folded: str, first: str, last: str) -> bool:
    """Return whether only white space is between the word `first` and one that begins with `last`, somewhere in a folded text."""
    at = folded.find(first, 1)  # the text begins with a blank
    while at >= 0:
        rest = folded[at + len(first) :]
        if folded[at - 1].isspace() and rest[:1].isspace() and rest.lstrip().startswith(last):
            return True
        at = folded.find(first, at + 1)
    return False


def _find_headings(text: str, start: int) -> list[str]:
    """Return the headings from `start` on; `start` is at the beginning of a line."""
    lines = HEADING.findall(text, start - 1) if start else HEADING.findall(f"\n{text}")
    return [line.rstrip(" #") or line[0] for line in lines]


def _name_key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _fold(text: str) -> str:
    """Return `text` without letter case and most punctuation."""
    if text.isascii():
        return text.encode().translate(ASCII_FLAT, ASCII_DROPPED).decode()
    return text.casefold().translate(FLAT)


def _split_words(text: str) -> Iterator[str]:
    """Yield the words of `text`, and each stretch in a script without spaces."""
    for word in _fold(text).split():
        at = 0
        for run in RUN.finditer(word):
            if run.start() > at:
                yield word[at : run.start()]
            yield run[0]
            at = run.end()
        if at < len(word):
            yield word[at:]


@lru_cache(maxsize=1_024)  # the headings of a note come back with each of its passages
def _grams(text: str) -> frozenset[str]:
    """Return the units by which two texts are compared: word stems, and pairs of characters in scripts without words."""
    if text.isascii():
        return frozenset(map(_stem, _fold(text).split()))
    return frozenset(
        gram
        for unit in _split_words(text)
        for gram in ((unit[n : n + 2] for n in range(max(1, len(unit) - 1))) if RUN.match(unit) else (_stem(unit),))
    )


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # gas, bus


def _clamp(value: float) -> float:
    return 0.0 if value < 0.0 else min(value, 1.0)
