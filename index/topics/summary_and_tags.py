"""Derive a summary and tags from the words of a note: a summary of one line, and three to seven tags.

The method is extractive and deterministic. The summary is one or two central sentences. Tags are nouns and noun phrases
of the note, spelled as in the workspace's vocabulary if it has them; those of the vocabulary come first.

Laws, tested: equal notes and vocabularies give equal results; a summary is one line of at most 140 characters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from index.errors import Unavailable
from index.model import Document
from index.names import spaced_words
from index.text.sentences import SUMMARY, plain_text, read_prose, shorten
from index.text.tags import FEWEST, MOST, Vectors, are_variants, key_of, to_tag, unify_spelling
from index.text.words import SPACED, TextLanguage, Token, detect_language, tokenize
from index.topics import word_classes
from index.topics.asides import split_asides
from index.topics.central_sentences import choose_summary
from index.topics.noun_phrases import NounPhrase, marked_phrase, noun_phrases

HEADING, MARKED, LEAD = 2.2, 0.6, 1.6  # weights of a word in a heading, in bold, and in the first sentence
NAMED: Final = 1.6  # weight of a whole phrase in bold, in quotes or in a link
TITLED: Final = 1.3  # factor for a term that occurs in the title
KNOWN: Final = 2.0  # factor for a term of the vocabulary
FLOOR: Final = 0.9  # least score of a tag after the third, as a share of the first tag's score
SURE: Final = 0.55  # the same for a term that the note says at least `MANY` times
LEAST: Final = 0.3  # least score of the second and third tag, as a share of the first tag's score
THIRD: Final = 0.45  # the same for a third tag that is in doubt
ASIDE: Final = 0.4  # weight of a word in a remark, an example or an enumeration
LENGTH: Final = 900  # characters of a text for which it gets one more tag
VAGUE: Final = 0.25  # factor for a noun that names no topic
REPEATED: Final = 0.75  # the same if the note says it at least `MANY` times
MANY: Final = 3
MODIFYING: Final = 0.6  # factor for a noun that always stands before another noun
SPECIFIC: Final = 0.7  # least worth of a compound of nouns
NEARLY: Final = 0.7  # least score of a phrase that is a tag instead of a word of it, as a share of the word's score
PARTIAL: Final = 0.4  # factor for a phrase that is always a part of a longer one
_UNNAMED = re.compile(r"Capture \d{4}-\d\d-\d\d .*|\d{4}-\d\d-\d\d.*|Untitled.*|無題.*|未命名.*", re.DOTALL)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3]")


class UnusableAnswer(Unavailable):
    """Reports that an endpoint gave an answer about one note without a summary and tags that can be used."""


@dataclass(frozen=True, slots=True)
class Enrichment:
    """Holds a summary and tags; None and () if nothing was found."""

    summary: str | None
    tags: tuple[str, ...]


NOTHING: Final = Enrichment(None, ())


@dataclass(slots=True)
class _Term:
    """Counts a word or phrase of a note."""

    tag: str
    words: tuple[str, ...]
    weight: float = 0.0
    count: int = 0
    worth: float = 0.0
    first: int = 0
    headed: bool = False
    titled: bool = False
    main: str = ""  # the key of the word that the others say more about
    runs: int = 0  # number of times that no longer phrase contains it
    heads: int = 0  # number of times that no noun follows it
    forms: dict[str, int] = field(default_factory=dict)
    score: float = 0.0
    doubt: float = 1.0  # factor for a word that names a topic only in a longer phrase
    named: bool = False  # all its words have a capital somewhere, as in a name
    compound: bool = False  # all its words are nouns, or a preposition joins them


def enrich(
    document: Document,
    *,
    vocabulary: Mapping[str, int],
    places: Mapping[str, int],
    vectors: Vectors | None = None,
    clean: Callable[[str], str] = str,
) -> Enrichment:
    """Derive a summary and tags from `document`.

    `vocabulary`: the workspace's tags with their number of uses; `places`: English words by frequency rank; `clean`
    removes secrets from the text."""
    content = read_prose(document, clean)
    title = "" if _UNNAMED.fullmatch(document.title) else clean(plain_text(clean(document.title)))
    titled = title and not any(
        spaced_words(line).startswith(spaced_words(title)) for line in (*content.headings, *content.sentences[:1])
    )
    headings = ((title, *content.headings) if titled else content.headings)[:12]
    language = detect_language(" ".join((*headings, *content.sentences)), places)
    split = [split_asides(sentence) for sentence in content.sentences]
    parted = [list(tokenize(sentence, language)) for sentence in content.sentences]
    mains = [list(tokenize(main, language)) for main, _ in split]
    asides = [list(tokenize(aside, language)) for _, beside in split for aside in beside]
    headed = [list(tokenize(heading, language)) for heading in headings]
    marked = [list(tokenize(words, language)) for words in content.marked if any(words in main for main, _ in split)]
    terms = _collect_terms(headed, mains, marked, asides, language)
    worth = {term.words[0]: term.score * term.doubt for term in terms.values() if len(term.words) == 1}
    most = min(MOST, FEWEST + 1 + sum(map(len, content.sentences)) // LENGTH)
    return Enrichment(
        choose_summary(content.sentences, parted, worth, language.language)
        or shorten(" ".join(headings[:1]), SUMMARY)
        or None,
        tuple(_choose_tags(terms, vocabulary, language, vectors, most=most)),
    )


def normalize_answer(
    summary: object, tags: object, *, vocabulary: Mapping[str, int], vectors: Vectors | None = None
) -> Enrichment:
    """Normalize a summary and tags from another source, such as a language model; invalid values are dropped."""
    line = shorten(plain_text(summary), SUMMARY) if isinstance(summary, str) else ""
    wanted = [to_tag(tag) for tag in islice(tags, 50) if isinstance(tag, str)] if isinstance(tags, list) else []
    spelt = unify_spelling(list(dict.fromkeys(filter(None, wanted))), vocabulary, vectors=vectors)
    return Enrichment(line or None, tuple(spelt[:MOST]))


# Terms


def _collect_terms(
    headed: Sequence[Sequence[Token | None]],
    parted: Sequence[Sequence[Token | None]],
    marked: Sequence[Sequence[Token | None]],
    asides: Sequence[Sequence[Token | None]],
    language: TextLanguage,
) -> dict[str, _Term]:
    """Return the nouns and noun phrases of a note by key, scored."""
    terms: dict[str, _Term] = {}
    place = 0
    times = Counter(tuple(token.key for token in line if token) for line in marked)
    names = [marked_phrase(line, language, times[tuple(token.key for token in line if token)]) for line in marked]
    for name in filter(None, names):
        _count_phrase(terms, name, NAMED, 0, titled=False, headed=False)
    plain = [line for line, name in zip(marked, names, strict=True) if not name]
    for group, weight in ((headed, HEADING), (parted, 1.0), (asides, ASIDE), (plain, MARKED)):
        for n, line in enumerate(group):
            line_weight = (
                weight * (LEAD if group is parted and n == 0 else 1.0) / (1 + n * 0.3 if group is headed else 1)
            )
            for phrase in noun_phrases(line, language):
                _count_phrase(
                    terms, phrase, line_weight, place, titled=group is headed and n == 0, headed=group is headed
                )
                place += 1
    _rate_terms(terms, language, place)
    return terms


def _rate_terms(terms: Mapping[str, _Term], language: TextLanguage, places: int) -> None:
    """Set the score, the doubt and the main word of each term. `places`: the number of phrases of the note."""
    single = {term.words[0]: term for term in terms.values() if len(term.words) == 1}
    vague = word_classes.VAGUE.get(language.language, frozenset()) | word_classes.EAST_ASIAN_VAGUE
    within: dict[str, int] = {}  # word → most uses of a phrase that contains it
    named: dict[str, int] = {}  # word → most uses of a name of several words that contains it
    for term in terms.values():
        term.tag = max(term.forms, key=lambda form: (term.forms[form], -len(form)))
        term.score = _score_term(term, single, places)
        term.main = term.words[0 if language.language in SPACED else -1]
        head = term.tag.partition("-")[0] if language.language in SPACED else term.tag.rpartition("-")[2]
        if len(term.words) > 1 and head in vague and (language.language in SPACED or not term.compound):
            term.doubt = PARTIAL  # as in "número de píxeles", "brief overview"
        elif len(term.words) > 1 and _WIDE.match(term.words[0]) and term.words[0] in vague and term.count == 1:
            term.doubt = PARTIAL  # as in 整体数字
        elif len(term.words) > 1 and language.language == "de" and term.count == 1 and not _WIDE.match(term.words[0]):
            term.doubt = PARTIAL  # German writes a compound as one word
        elif len(term.words) > 1 and not (term.runs if language.language in SPACED else term.heads):
            term.doubt = PARTIAL
        elif len(term.words) > 1 and term.named:
            named |= {word: max(named.get(word, 0), term.count) for word in term.words}
        elif len(term.words) > 1 and term.compound:
            within |= {word: max(within.get(word, 0), term.count) for word in term.words}
    for word, term in single.items():
        term.doubt = 1.0 if term.tag not in vague else REPEATED if term.count >= MANY else VAGUE
        term.doubt *= 1.0 if term.heads else MODIFYING
        term.doubt *= MODIFYING if within.get(word, 0) >= term.count else 1.0
        term.doubt *= PARTIAL if named.get(word, 0) >= term.count else 1.0


def _count_phrase(
    terms: dict[str, _Term], phrase: NounPhrase, weight: float, place: int, *, titled: bool, headed: bool
) -> None:
    tokens = phrase.tokens
    tag = to_tag("".join(_shown(token, n, tokens) for n, token in enumerate(tokens)))
    words = tuple(token.key for token in tokens if not token.join)
    key = key_of(tag)
    if not tag or not key or len(set(words)) < len(words):
        return  # no term says a word twice
    term = terms.setdefault(key, _Term(tag, words, first=place))
    term.weight += weight
    term.count += 1
    term.headed |= headed
    term.titled |= titled
    term.compound = phrase.compound or any(token.join for token in tokens)
    term.named |= phrase.named
    term.runs += phrase.whole
    term.heads += phrase.head
    term.worth = max(term.worth, phrase.worth)
    term.forms[tag] = term.forms.get(tag, 0) + 1


def _shown(token: Token, n: int, tokens: Sequence[Token]) -> str:
    """Return a word as it is in the tag of its phrase: only the last word loses its plural, as in "settings-dialog"."""
    plural = token.plural and n + 1 < len(tokens) and not token.text.endswith(("s", "x", "h", "y"))
    return (token.glue if n else "") + token.text + ("s" if plural else "")


def _score_term(term: _Term, single: Mapping[str, _Term], places: int) -> float:
    # A compound may be a term even if all its words are frequent ones.
    least = SPECIFIC if len(term.words) > 1 and term.compound and term.heads else 0.0
    score = max(term.worth, least) * (0.5 + math.log1p(term.weight)) * (1.15 - 0.4 * term.first / max(places, 1))
    score *= TITLED if term.titled else 1.0
    if len(term.words) == 1:
        return score
    # A phrase is likely a term if it is repeated, fills a heading, or is a whole run between function words.
    weakest = min((single[word].worth for word in term.words if word in single), default=0.0)
    weakest = max(weakest, least)
    alone = term.runs / term.count
    if term.named:
        sure = 1.4
    elif term.count > 1:
        sure = 1.2 + 0.3 * alone
    elif term.headed:
        sure = 0.8 + 0.4 * alone
    elif term.compound:
        sure = 1.1 + 0.2 * alone
    else:
        sure = 0.4 + 0.75 * alone
    if len(term.words) > 2 and not term.named:
        sure *= 0.75 if term.count == 1 else 0.9
    return score * sure * min(1.0, 0.45 + 0.7 * weakest)


def _choose_tags(
    terms: Mapping[str, _Term],
    vocabulary: Mapping[str, int],
    language: TextLanguage,
    vectors: Vectors | None,
    *,
    most: int,
) -> list[str]:
    known = {key_of(tag): tag for tag in sorted(vocabulary, key=lambda tag: (vocabulary[tag], tag))}
    scored = {key: term.score * (KNOWN if key in known else term.doubt) for key, term in terms.items()}
    ranked = sorted(terms, key=lambda key: (-scored[key], terms[key].first, key))[:60]
    chosen: list[str] = []
    taken: list[tuple[str, ...]] = []
    while ranked and len(chosen) < most:
        key = max(ranked, key=lambda key: (_novelty(terms[key].words, taken) * scored[key], -terms[key].first, key))
        if key not in known:
            rest = {other: _novelty(terms[other].words, taken) * scored[other] for other in ranked}
            key = _more_specific(key, terms, rest)
        ranked.remove(key)
        worth = _novelty(terms[key].words, taken) * scored[key]
        new = bool(known) and key not in known
        if not worth or (chosen and worth < LEAST * scored[chosen[0]]):
            break
        if chosen and worth < _least_share(terms[key], len(chosen)) * scored[chosen[0]]:
            continue
        if new and len(chosen) >= FEWEST and any(chosen_key in known for chosen_key in chosen):
            continue  # if a tag of the vocabulary fits, new tags only fill up to FEWEST
        if any(are_variants(terms[key].tag, terms[other].tag, language.language) for other in chosen):
            continue
        chosen.append(key)
        taken.append(terms[key].words)
    return unify_spelling(
        [known.get(key, terms[key].tag) for key in chosen], vocabulary, language=language.language, vectors=vectors
    )


def _least_share(term: _Term, chosen: int) -> float:
    """Return the least score of a term that becomes a tag beside `chosen` others, as a share of the first one's."""
    if chosen < FEWEST:
        return THIRD if chosen == FEWEST - 1 and term.doubt < 1.0 else LEAST
    return SURE if term.count >= MANY else FLOOR


def _more_specific(key: str, terms: Mapping[str, _Term], rest: Mapping[str, float]) -> str:
    """Return the key of the phrase that says which one the word `key` is, if it is nearly as good a tag; else `key`.

    `rest`: the worth of the terms that may still be chosen, by key."""
    word = terms[key]
    longer = (
        other
        for other, worth in rest.items()
        if len(word.words) == 1
        and len(terms[other].words) > 1
        and terms[other].main == word.words[0]
        and terms[other].heads
        and terms[other].count * MANY >= word.count
        and worth >= NEARLY * rest[key]
    )
    return max(longer, key=lambda other: (rest[other], -terms[other].first, other), default=key)


def _novelty(words: tuple[str, ...], taken: Sequence[tuple[str, ...]]) -> float:
    """Return how much a term adds to the taken ones, as 0..1; 0 if it is part of one or contains one."""
    share = 0.0
    for other in taken:
        both = sum(word in other for word in words)
        if both == len(words) or both == len(other):
            return 0.0
        share = max(share, both / min(len(words), len(other)))
        if any(
            word in whole or whole in word
            for word in words
            for whole in other
            if _WIDE.match(word) and _WIDE.match(whole)
        ):
            share = max(share, 0.6)
    return 1.0 - 0.6 * share
