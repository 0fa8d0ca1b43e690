"""Draft a node's summary: the most informative sentences of its observations, in their order.

Laws, tested: a draft is one line of at most `LONGEST` characters; every sentence of it occurs in an observation, and
only the last one may be shortened; equal observations give an equal draft."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from index.deferred_patterns import compile_later
from index.text.sentences import cut_cleaned, shorten, split_markdown
from index.text.words import Token, detect_language, tokenize

LONGEST: Final = 300  # most characters of a draft
READ: Final = 12_000  # most characters of the observations that are read
SENTENCES: Final = 200  # most sentences that are considered
SHORT: Final = 40  # free characters below which no sentence is added
OLD: Final = 0.5  # factor for a word that the draft already contains
LEAST: Final = 0.35  # least rating of a sentence, as a share of the best rating
_END = compile_later(r"[.!?。！？…]['\"”’)」』）]*\Z")
_BOX = compile_later(r"\A\[.\][ \t]+")  # the checkbox of a task
_WIDE = compile_later(r"[\u2e80-\u9fff\uff00-\uff60]\Z")
_DATED = compile_later(r"\d{4}-\d\d-\d\d")


def draft_summary(
    name: str, contents: Sequence[str], places: Mapping[str, int], clean: Callable[[str], str] = str
) -> str | None:
    """Draft the summary of a node from its observations; None if they contain no sentence.

    `contents`: the observations in order; `places`: English words by frequency rank; `clean` removes secrets."""
    sentences = _distinct_sentences(contents, clean)
    if not sentences:
        return None
    language = detect_language("\n".join(sentences), places)
    parted = [[token for token in tokenize(sentence, language) if token and token.worth] for sentence in sentences]
    name_keys = {token.key for token in tokenize(name, language) if token}
    counts = Counter(key for words in parted for key in {token.key for token in words})
    chosen: list[int] = []
    covered: set[str] = set()
    left, best = LONGEST, 0.0
    while len(chosen) < len(sentences):
        rest = [n for n in range(len(sentences)) if n not in chosen]
        rated = {n: _rate_sentence(sentences[n], parted[n], counts, name_keys, covered) * _lead_bonus(n) for n in rest}
        n = max(rest, key=lambda n: (rated[n], -n))
        best = best or rated[n]
        if chosen and (rated[n] < LEAST * best or left - len(_with_full_stop(sentences[n])) < 0):
            fitting = [n for n in rest if rated[n] >= LEAST * best and len(_with_full_stop(sentences[n])) <= left]
            if not fitting:
                break
            n = max(fitting, key=lambda n: (rated[n], -n))
        chosen.append(n)
        covered |= {token.key for token in parted[n]}
        left -= len(_with_full_stop(sentences[n])) + 1
        if left < SHORT:
            break
    return shorten(_join_sentences([sentences[n] for n in sorted(chosen)]), LONGEST) or None


def _distinct_sentences(contents: Sequence[str], clean: Callable[[str], str]) -> list[str]:
    """Return the sentences in order, without repeats."""
    sentences: dict[str, None] = {}
    left = READ
    for content in contents:
        if left <= 0 or len(sentences) >= SENTENCES:
            break
        text = cut_cleaned(_BOX.sub("", content, count=1), left, clean)
        left -= len(text)
        sentences.update(
            dict.fromkeys(sentence for sentence in split_markdown(text, clean) if not sentence.startswith("|"))
        )
    return list(sentences)[:SENTENCES]


def _rate_sentence(
    sentence: str, words: Sequence[Token], counts: Counter[str], name_keys: set[str], covered: set[str]
) -> float:
    """Rate how much a sentence says about the node that the draft does not contain yet."""
    weights = {
        token.key: token.worth * (1 + math.log(counts[token.key])) * (OLD if token.key in covered else 1.0)
        for token in words
        if token.key not in name_keys
    }
    rating = sum(weights.values()) / math.pow(len(weights) + 3, 0.75)
    rating *= 1.15 if name_keys & {token.key for token in words} else 1.0
    rating *= 0.75 if _DATED.search(sentence) else 1.0  # a single event
    rating *= 0.6 if sentence.endswith(("?", "？")) else 0.5 if sentence.endswith((":", "：")) else 1.0
    return rating * (0.85 if len(sentence) > LONGEST * 2 // 3 else 1.0)


def _lead_bonus(n: int) -> float:
    """Return the factor for the position of a sentence: the first ones usually say what the node is."""
    return 1 + 0.6 / (1 + n)


def _with_full_stop(sentence: str) -> str:
    """Return a sentence with a full stop, which facts often lack."""
    if _END.search(sentence):
        return sentence
    return sentence + ("。" if _WIDE.search(sentence) else ".")


def _join_sentences(sentences: Sequence[str]) -> str:
    text = ""
    for sentence in sentences:
        gap = "" if not text or text[-1] in "。！？」』）" else " "
        text += gap + _with_full_stop(sentence)
    return text
