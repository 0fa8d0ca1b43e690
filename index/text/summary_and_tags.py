"""Derive a summary and tags from the words of a note: a summary of one line, and three to seven tags.

The method is extractive and deterministic. The summary is the sentence with the most important words of the note, or
the beginning of that sentence. Tags are terms of the note, spelled as in the workspace's vocabulary if it has them.

Laws, tested: equal notes and vocabularies give equal results; a summary is one line of at most 140 characters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from index.model import Document
from index.text.sentences import SUMMARY, Prose, plain_text, read_prose, shorten
from index.text.tags import FEWEST, MOST, Vectors, key_of, to_tag, unify_spelling
from index.text.words import TextLanguage, Token, detect_language, tokenize

HEADING, MARKED, LEAD = 2.2, 0.6, 1.3  # weights of a word in a heading, in bold, and in the first sentence
TITLED: Final = 1.3  # factor for a term that occurs in the title
KNOWN: Final = 1.8  # factor for a term of the vocabulary
FLOOR: Final = 0.5  # least score of a tag after the third, as a share of the first tag's score
PHRASE: Final = 4  # most words of a term
_UNNAMED = re.compile(r"Capture \d{4}-\d\d-\d\d .*|\d{4}-\d\d-\d\d.*|Untitled.*|無題.*|未命名.*", re.DOTALL)
_DANGLING = re.compile(
    r"(?:this|that|these|those|it|he|she|they|but|however|and|so|also|then|diese[rs]?|das|es|sie|aber|und|esto|eso|pero|"
    r"y|ello|además|also)\b|(?:これ|それ|この|その|しかし|また|そして|这|那|但|而且|因此|所以)",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3]")


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
    runs: int = 0  # number of times that it is a whole run between words without meaning
    forms: dict[str, int] = field(default_factory=dict)
    score: float = 0.0
    compound: bool = False  # written without a gap, as in Chinese, or joined by a preposition


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
    title = "" if _UNNAMED.fullmatch(document.title) else plain_text(clean(document.title))
    titled = title and not any(
        bool(title) and line.startswith(title.rstrip("… ")) for line in (*content.headings, *content.sentences[:1])
    )
    headings = ((title, *content.headings) if titled else content.headings)[:12]
    language = detect_language(" ".join((*headings, *content.sentences)), places)
    parted = [list(tokenize(sentence, language)) for sentence in content.sentences]
    headed = [list(tokenize(heading, language)) for heading in headings]
    marked = [list(tokenize(words, language)) for words in content.marked]
    terms = _collect_terms(headed, parted, marked)
    return Enrichment(
        choose_summary(content, parted, terms, headings),
        tuple(_choose_tags(terms, vocabulary, language, vectors)),
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
) -> dict[str, _Term]:
    """Return the words and phrases of a note by key, scored."""
    terms: dict[str, _Term] = {}
    place = 0
    for group, weight in ((headed, HEADING), (parted, 1.0), (marked, MARKED)):
        for n, line in enumerate(group):
            line_weight = (
                weight * (LEAD if group is parted and n == 0 else 1.0) / (1 + n * 0.3 if group is headed else 1)
            )
            for run in _split_runs(line):
                for phrase in _list_phrases(run):
                    titled = group is headed and n == 0
                    _count_phrase(
                        terms,
                        phrase,
                        line_weight,
                        place,
                        titled=titled,
                        headed=group is headed,
                        alone=len(phrase) == len(run),
                    )
                place += len(run)
    single = {term.words[0]: term for term in terms.values() if len(term.words) == 1}
    for term in terms.values():
        term.score = _score_term(term, single, place)
        term.tag = max(term.forms, key=lambda form: (term.forms[form], -len(form)))
    return terms


def _split_runs(line: Sequence[Token | None]) -> Iterator[list[Token]]:
    """Yield the runs of meaningful words, with the prepositions between them."""
    run: list[Token] = []
    for n, token in enumerate(line):
        following = line[n + 1] if n + 1 < len(line) else None
        if token and (token.worth or (token.join and run and following and following.worth)):
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _list_phrases(run: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    for start, token in enumerate(run):
        if not token.worth:
            continue
        yield (token,)
        for end in range(start + 2, min(len(run), start + PHRASE) + 1):
            phrase = tuple(run[start:end])
            if phrase[-1].worth and phrase[-1].thing and sum(bool(word.worth) for word in phrase) <= 3:
                yield phrase


def _count_phrase(
    terms: dict[str, _Term],
    phrase: tuple[Token, ...],
    weight: float,
    place: int,
    *,
    titled: bool,
    headed: bool,
    alone: bool,
) -> None:
    text = phrase[0].text + "".join(token.glue + token.text for token in phrase[1:])
    tag = to_tag(text)
    words = tuple(token.key for token in phrase if token.worth)
    key = key_of(tag)
    if not tag or not key:
        return
    term = terms.setdefault(key, _Term(tag, words, first=place))
    term.weight += weight
    term.count += 1
    term.headed |= headed
    term.titled |= titled
    term.compound = (len(phrase) == 2 and not phrase[1].glue and all(token.thing for token in phrase)) or any(
        token.join for token in phrase
    )
    term.runs += alone
    term.worth = max(term.worth, sum(token.worth for token in phrase) / len(words))
    term.forms[tag] = term.forms.get(tag, 0) + 1


def _score_term(term: _Term, single: Mapping[str, _Term], places: int) -> float:
    score = term.worth * (1 + math.log1p(term.weight)) * (1.15 - 0.3 * term.first / max(places, 1))
    score *= TITLED if term.titled else 1.0
    if len(term.words) == 1:
        return score
    # A phrase is likely a term if it is repeated, fills a heading, or is a whole run between function words.
    weakest = min((single[word].worth for word in term.words if word in single), default=0.0)
    alone = term.runs / term.count
    if term.count > 1:
        sure = 1.2 + 0.3 * alone
    elif term.headed:
        sure = 0.8 + 0.4 * alone
    elif term.compound:
        sure = 1.1 + 0.2 * alone
    else:
        sure = 0.3 + 0.72 * alone
    if len(term.words) > 2:
        sure *= 0.75 if term.count == 1 else 0.9
    return score * sure * min(1.0, 0.45 + 0.7 * weakest)


def _choose_tags(
    terms: Mapping[str, _Term], vocabulary: Mapping[str, int], language: TextLanguage, vectors: Vectors | None
) -> list[str]:
    known = {key_of(tag): tag for tag in sorted(vocabulary, key=lambda tag: (vocabulary[tag], tag))}
    scored = {key: term.score * (KNOWN if key in known else 1.0) for key, term in terms.items()}
    ranked = sorted(terms, key=lambda key: (-scored[key], terms[key].first, key))[:60]
    chosen: list[str] = []
    taken: list[tuple[str, ...]] = []
    while ranked and len(chosen) < MOST:
        key = max(ranked, key=lambda key: (_novelty(terms[key].words, taken) * scored[key], -terms[key].first, key))
        ranked.remove(key)
        worth = _novelty(terms[key].words, taken) * scored[key]
        new = bool(known) and key not in known
        if not worth or (len(chosen) >= FEWEST and worth < FLOOR * scored[chosen[0]]):
            break
        if new and len(chosen) >= FEWEST and any(chosen_key in known for chosen_key in chosen):
            continue  # if a tag of the vocabulary fits, new tags only fill up to FEWEST
        chosen.append(key)
        taken.append(terms[key].words)
    return unify_spelling(
        [known.get(key, terms[key].tag) for key in chosen], vocabulary, language=language.language, vectors=vectors
    )


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


# The summary


def choose_summary(
    content: Prose, parted: Sequence[Sequence[Token | None]], terms: Mapping[str, _Term], headings: Sequence[str]
) -> str | None:
    """Return the most informative sentence, shortened if necessary; the first heading if there are no sentences."""
    if not content.sentences:
        return shorten(headings[0], SUMMARY) or None if headings else None
    worth = {term.words[0]: term.score for term in terms.values() if len(term.words) == 1}
    rated = [
        _rate_sentence(sentence, words, n, worth)
        for n, (sentence, words) in enumerate(zip(content.sentences, parted, strict=True))
    ]
    best = max(range(len(rated)), key=lambda n: (rated[n], -n))
    return shorten(content.sentences[best], SUMMARY) or None


def _rate_sentence(sentence: str, words: Sequence[Token | None], n: int, worth: Mapping[str, float]) -> float:
    keys = {token.key for token in words if token and token.worth}
    weight = sum(worth.get(key, 0.0) for key in keys) / math.pow(len(keys) + 3, 0.75)
    wide = len(_WIDE.findall(sentence))
    length = len(sentence) + wide  # a wide character counts as two letters
    rating = weight * (1 + 0.5 / (1 + n))
    if length < 35:
        rating *= 0.6
    if len(sentence) > SUMMARY:
        rating *= 0.9
    if sentence.endswith(("?", "？")):
        rating *= 0.7
    if sentence.endswith((":", "：")):
        rating *= 0.4
    if n and _DANGLING.match(sentence):
        rating *= 0.75
    return rating
