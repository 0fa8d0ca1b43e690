"""Rank the results of a search by fusion of word, vector and name scores: each document by its best passage.

The score of a passage is a sum of evidence, each part 0..1 and none depending on the other hits, so that scores of
different searches compare: its BM25 score B as B / (B + 10); how near its vector is, as cosine similarity; how many
of the query's neighbouring words stand side by side in it; and how much of its title or of one of its headings the
query names. The weights are the flat top of what was measured on conversations, Japanese articles and documentation
at once (`python -m tests.bench.retrieval`). The vector counts less the more the encoder has to spell the query out
letter by letter, which is how a vocabulary shows that it does not know a language. A note whose title or alias *is*
the query stands first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from index.model import Hit
from index.names import fold, stem
from index.storage.chunk_rows import Match
from index.text.chunking import ALIAS, SEPARATOR

HALF = 10.0  # BM25 score: one of this size is evidence of one half, as the curve B / (B + HALF) has it

# Weights: what a whole piece of evidence adds to the sum, which is divided by the weights of all the evidence at hand.
# Source: `python -m tests.bench.retrieval`, the flat top of conversations, Japanese articles and documentation at once;
# half or twice of any one changes little.
WORDS_WEIGHT = 1.0  # the words of the query, by BM25: the measure of the others
NEAR_WEIGHT = 0.3  # cosine similarity, times the trust in the query's vector: decides where words are about equal
PAIRS_WEIGHT = 0.2  # neighbouring words of the query side by side: a phrase beats its words scattered
NAMES_WEIGHT = 0.2  # title, alias or heading in the words of the query: a note on a thing beats one that mentions it

# Tokens a letter that the encoder needs for the query. Source: as above. Words of a language that its vocabulary knows
# take well under the first; a text that it spells letter by letter takes one token for each.
KNOWN = 0.5  # up to here the vector counts in full
SPELT = 0.8  # from here not at all; between the two the trust falls in a straight line

NAMED = 0.9  # score: where the band of notes begins whose title or alias is the query; all others share what is below
STALE = 0.5  # factor on the score of a document that a newer one replaces: it gives way, and is still found

# Scripts that are written without spaces, and Hangul, whose particles are part of the word.
RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
HEADING = re.compile(r"\n#{1,6} +(.+?)[ #]*$", re.MULTILINE)  # "\n#" is found many times as fast as "^#"
FLAT = str.maketrans({**dict.fromkeys("!\"#$%&'()*+,.:;<=>?@[\\]^`{}~’‘“”", None), **dict.fromkeys("-_/|–—\t", " ")})

# The scaffolding of a question: an answer holds none of it.
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
JA_QUESTION = re.compile("(?:[?？]|か[。.]?)$")
JA_ASKING = re.compile(
    "とは|のは|です|でしょう|でした|ます|どこ|どの|どんな|どれ|どちら|なに|何|いつ|誰|だれ|なぜ|いくつ|いくら|どう|か?[。？?]+$|か$"
)
EDGES = re.compile(r"^\W+|(?:['’]s)?\W*$")


@dataclass(frozen=True, slots=True)
class QueryCue:
    """What of a query is looked for in a passage that was found."""

    name: str  # the whole query, as names are compared
    asked: tuple[frozenset[str], ...]  # its words, and those without a question's scaffolding where they are others
    pairs: tuple[str, ...]  # neighbours: " one two" where words are spaced, two characters where they are not


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document by its best passage."""

    doc_id: str
    ord: int
    workspace: str
    heading: str
    chunk: str
    score: float  # 0..1


def keywords(text: str) -> str:
    """What full text is asked for: `text` or, when it is a question, the words of it that an answer would hold."""
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
    """Read from a query what to look for in the passages that it finds."""
    content = list(_split_words(keywords(text)))
    spaced = [
        f" {word} {_stem(after)}" for word, after in pairwise(content) if not (RUN.match(word) or RUN.match(after))
    ]
    joined = [run[n : n + 2] for run in content if RUN.match(run) for n in range(len(run) - 1)]
    asked = dict.fromkeys((_grams(text), _grams(keywords(text))))
    return QueryCue(_name_key(text), tuple(asked), tuple(dict.fromkeys(spaced + joined)))


def vector_trust(tokens: int, text: str) -> float:
    """How far the encoder's vector of `text` can be relied on, 0..1, from the tokens that it needs for it."""
    letters = sum(not character.isspace() for character in text)
    return max(0.0, min(1.0, (SPELT - tokens / max(1, letters)) / (SPELT - KNOWN)))


def fuse(cue: QueryCue, near: Sequence[Match], words: Sequence[Match], trust: float) -> list[RankedDocument]:
    """Rank the documents of both legs, best first. A passage that only words found counts as near as the farthest of `near`."""
    similar = {(match.doc_id, match.ord): match.value for match in near}
    bm25 = {(match.doc_id, match.ord): match.value for match in words}
    farthest = min(similar.values(), default=0.0)
    near_weight = NEAR_WEIGHT * trust if near else 0.0
    full = WORDS_WEIGHT + NAMES_WEIGHT + near_weight + (PAIRS_WEIGHT if cue.pairs else 0.0)
    scored = []
    for key, match in {(match.doc_id, match.ord): match for match in (*words, *near)}.items():
        worded = max(0.0, bm25.get(key, 0.0))
        named, exact = _match_names(cue, match)
        score = WORDS_WEIGHT * worded / (worded + HALF) + NAMES_WEIGHT * named
        score += near_weight * _clamp(similar.get(key, farthest))
        if cue.pairs:
            flat = _flatten(match.text)
            score += PAIRS_WEIGHT * sum(pair in flat for pair in cue.pairs) / len(cue.pairs)
        score = _clamp(score / full)
        scored.append((NAMED + (1 - NAMED) * score if exact else NAMED * score, match))
    return _best_passages(scored)


def rank_by_vector(near: Sequence[Match]) -> list[RankedDocument]:
    """Rank the documents of the vector leg alone; the score is the cosine similarity."""
    return _best_passages((_clamp(match.value), match) for match in near)


def demote_superseded(hits: Sequence[Hit]) -> list[Hit]:
    """Sort hits, best first, so that those that a newer document replaces count less, and stand below that one."""
    scored = [replace(hit, score=hit.score * STALE) if hit.record.superseded_by is not None else hit for hit in hits]
    return place_below_successors(scored)


def place_below_successors(hits: Sequence[Hit]) -> list[Hit]:
    """Sort hits, best first; one that another of them replaces gets no higher score than that one, and follows it."""
    named: dict[str, list[Hit]] = {}
    for hit in hits:
        named.setdefault(stem(hit.record.path), []).append(hit)
    placed: list[tuple[float, int, Hit]] = []
    for hit in hits:
        score, seen, successor = hit.score, [hit], _find_successor(hit, named)
        while successor is not None and successor not in seen:
            score = min(score, successor.score)
            seen.append(successor)
            successor = _find_successor(successor, named)
        placed.append((score, len(seen), hit if score == hit.score else replace(hit, score=score)))
    return [hit for _, _, hit in sorted(placed, key=lambda place: (-place[0], place[1]))]


def _find_successor(hit: Hit, named: Mapping[str, Sequence[Hit]]) -> Hit | None:
    """The hit that replaces `hit`, if it is among those `named`: in the same workspace, or in the vault by now."""
    record = hit.record
    if record.superseded_by is None:
        return None
    alike = [
        other
        for other in named.get(stem(record.superseded_by), ())
        if other is not hit and other.record.workspace in (record.workspace, "")
    ]
    ends = fold(f"/{record.superseded_by.removesuffix('.md')}.md")  # a link may say folders too
    return next((other for other in alike if fold(f"/{other.record.path}").endswith(ends)), alike[0] if alike else None)


def _best_passages(scored: Iterable[tuple[float, Match]]) -> list[RankedDocument]:
    """Each document once, by its best passage; equals in the order of their ids, so that a search repeats itself."""
    best: dict[str, tuple[float, Match]] = {}
    for score, match in sorted(scored, key=lambda pair: (-pair[0], pair[1].doc_id, pair[1].ord)):
        best.setdefault(match.doc_id, (score, match))
    return [
        RankedDocument(match.doc_id, match.ord, match.workspace, match.heading, match.text[match.cut :], score)
        for score, match in best.values()
    ]


def _match_names(cue: QueryCue, match: Match) -> tuple[float, bool]:
    """How much of the query one of the passage's names (title, alias, heading) has at most; whether title or alias is it.

    The measure, 0..1, is the words that name and query share among those that either has."""
    title, *trail = match.text[: match.cut].strip().split(SEPARATOR)
    titles = [title, *title.split(ALIAS)] if ALIAS in title else [title]
    inside = _find_headings(match.text, match.cut) if "#" in match.text else ()
    most = 0.0
    for head in (*titles, *trail, *inside):
        grams = _grams(head)
        for asked in cue.asked:
            if shared := len(grams & asked):
                most = max(most, shared / (len(grams) + len(asked) - shared))
    return most, any(_name_key(name) == cue.name for name in titles)


def _find_headings(text: str, start: int) -> list[str]:
    """The headings from `start` on, where a line begins."""
    return HEADING.findall(text, start - 1) if start else HEADING.findall(f"\n{text}")


def _name_key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _flatten(text: str) -> str:
    """The text's words between single spaces, without letter case and most punctuation."""
    return f" {' '.join(text.casefold().translate(FLAT).split())} "


def _split_words(text: str) -> Iterator[str]:
    """The words of `text`, and each stretch in a script without spaces."""
    for word in text.casefold().translate(FLAT).split():
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
    """What two texts have in common when they mean the same: word stems, and pairs of characters where there are no words."""
    if text.isascii():
        return frozenset(map(_stem, text.casefold().translate(FLAT).split()))
    return frozenset(
        gram
        for unit in _split_words(text)
        for gram in ((unit[n : n + 2] for n in range(max(1, len(unit) - 1))) if RUN.match(unit) else (_stem(unit),))
    )


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # gas, bus


def _clamp(value: float) -> float:
    return max(0.0, min(1.0, value))
