"""Find the nouns and noun phrases of a sentence, which may be terms of its topic.

Law, tested: every phrase is a part of one run of words between punctuation, verbs and function words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from index.text.words import SPACED, TextLanguage, Token
from index.topics import word_classes
from index.topics.word_roles import LATIN, Role, word_roles

LONGEST: Final = 4  # most words of a phrase, with the prepositions
MEANINGFUL: Final = 3  # most of its words that are no prepositions

SURE: Final = 0.9  # least worth of a noun of a Romance language

_PARTICIPLE: Final = re.compile(r".{2,}(?:[aiu]d[oa]s?|ée?s?)")  # a term of a Romance language may lack it

_Run: TypeAlias = Sequence[tuple[Token, Role]]


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Holds a phrase of a sentence with what its place says about it."""

    tokens: tuple[Token, ...]
    whole: bool  # no longer phrase contains it
    head: bool  # no noun follows it, and no preposition joins it to one before it
    compound: bool  # all words are nouns
    named: bool  # all words have a capital, and no other such word is beside them
    worth: float  # mean worth of its words, without prepositions


def noun_phrases(line: Sequence[Token | None], language: TextLanguage) -> Iterator[NounPhrase]:
    """Yield the nouns and noun phrases of a sentence in order, overlapping ones too."""
    run: list[tuple[Token, Role]] = []
    for token, role in zip([*line, None], [*word_roles(line, language), Role.OTHER], strict=True):
        if token and role is not Role.OTHER:
            run.append((token, role))
        elif run:
            yield from _phrases_of_run(run, language.language)
            run = []


def marked_phrase(line: Sequence[Token | None], language: TextLanguage, times: int) -> NounPhrase | None:
    """Return a phrase that its author put in bold, in quotes or in a link, as a whole, if it is short enough for a term.

    `times`: how often it is marked; a phrase may end with a function word if it is marked again."""
    tokens = tuple(token for token in line if token)
    if not 1 < len(tokens) <= LONGEST or len(tokens) < len(line):
        return None
    roles = word_roles(line, language)
    if roles[0] is Role.OTHER or Role.NOUN not in roles or not (tokens[-1].worth or tokens[-1].part or times > 1):
        return None
    worth = _worth(list(zip(tokens, roles, strict=True)), language.language)
    return NounPhrase(tokens, whole=True, head=True, compound=True, named=False, worth=worth)


def _phrases_of_run(run: _Run, language: str) -> Iterator[NounPhrase]:
    """Yield the phrases of a run of words."""
    vague = word_classes.VAGUE.get(language, frozenset())
    nouns_first = language in SPACED  # adjectives stand after their noun, as in Spanish
    nouns = [n for n, (_, role) in enumerate(run) if role is Role.NOUN]
    if not nouns:
        return
    first, last = (nouns[0], len(run) - 1) if nouns_first else (0, nouns[-1])
    for start in range(first, last + 1):
        for end in range(start, min(last + 1, start + LONGEST)):
            phrase = run[start : end + 1]
            if not _is_phrase(phrase, nouns_first=nouns_first):
                continue
            beside_noun = end < last and run[end + 1][1] is Role.NOUN
            behind_join = start > first + 1 and run[start - 1][1] is Role.JOIN and run[start - 2][0].text not in vague
            token = phrase[-1][0]
            yield NounPhrase(
                tuple(token for token, _ in phrase),
                whole=start == first and all(_PARTICIPLE.fullmatch(token.text) for token, _ in run[end + 1 : last + 1]),
                head=not behind_join if nouns_first else token.wide or token.text[0] > LATIN or not beside_noun,
                compound=len(phrase) > 1 and all(role is Role.NOUN for _, role in phrase),
                named=language != "de" and _is_named(run, start, end),
                worth=_worth(phrase, language),
            )


def _worth(phrase: _Run, language: str) -> float:
    """Return the mean worth of the words of a phrase; a Romance noun is one by the words around it, whatever its ending."""
    sure = SURE if language in SPACED else 0.0
    worths = [
        max(token.worth, token.part, sure if role is Role.NOUN else 0.0) for token, role in phrase if not token.join
    ]
    return sum(worths) / sum(worth > 0 for worth in worths)


def _is_named(run: _Run, start: int, end: int) -> bool:
    """Return whether the words from `start` to `end` are all words of a run that have a capital, as in a name."""
    beside = (*run[max(start - 1, 0) : start], *run[end + 1 : end + 2])
    whole = end > start and all(token.capital or token.join for token, _ in run[start : end + 1])
    return whole and not any(token.capital for token, _ in beside)


def _is_phrase(phrase: _Run, *, nouns_first: bool) -> bool:
    roles = [role for _, role in phrase]
    if roles[0 if nouns_first else -1] is not Role.NOUN or Role.JOIN in (roles[0], roles[-1]):
        return False
    if len(phrase) > 1 and any(token.text[0] > LATIN and not token.wide for token, _ in phrase):
        return False  # of a language whose grammar is not known here
    if nouns_first and any(token.text in word_classes.ROMANCE_MANNERS for token, _ in phrase[1:]):
        return False  # outils de façon automatique
    return sum(role is not Role.JOIN for role in roles) <= MEANINGFUL
