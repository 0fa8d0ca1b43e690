"""Choose the central sentences of a note as its summary: the most central one, or two that fit.

Laws, tested: a summary is one line of at most `SUMMARY` characters. Only a sentence that is longer is cut: where the
part before it is a sentence of its own, or else at the end of a word."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from index.text.sentences import ELLIPSIS, SUMMARY, shorten
from index.text.words import Token

PAIRED: Final = 2 * SUMMARY  # least characters of a text that gets a summary of two sentences
SECOND: Final = 0.45  # least rating of the second sentence, as a share of the first one's
LISTED: Final = 0.8  # share of meaningful words above which a sentence is only a list of them
_PAIRS: Final = ("()", "（）", "「」", "“”", "«»", "[]")
# Words at the beginning of a sentence that points at the one before it.
_POINTING: Final = {
    "en": "this|that|these|those|it|its|he|she|they|but|however|and|so|also|then|or|otherwise|instead|therefore|thus|hence|for example|for instance|"
    "in addition|as a result|similarly|likewise|moreover|furthermore|in that case|here|note that|above|(?:in|with|for|from|by|on|at) (?:th[ie]s|these|that|those|such)",
    "de": r"dies|diese[rsmn]?|das|es|sie|er|aber|und|dabei|dadurch|dazu|daher|deshalb|dann|außerdem|jedoch|allerdings|zum beispiel|beispielsweise|hierbei|hier|"
    r"dort|solche|auch|sonst|andernfalls|insbesondere|(?:mit|in|auf|bei|für|von|zu|durch|aus|an|unter) (?:dies|jen|solch)\w+",
    "es": "est[oae]s?|es[oae]s?|él|ella|ellos|ellas|pero|y|ello|además|también|sin embargo|por ejemplo|por lo tanto|así|entonces|aquí|luego|por ello|"
    "lo que|(?:en|de|con|para|por|a) (?:est|es)[aeo]s?",
    "fr": "ceci|cela|ce|cet|cette|ces|c['’]est|celui-ci|celle-ci|il|elle|ils|elles|mais|et|donc|ainsi|alors|cependant|toutefois|en effet|par exemple|de plus|"
    "par ailleurs|en outre|ici|(?:dans|de|à|avec|pour|par|sur) (?:ce|cet|cette|ces|cela|notre cas)",
    "it, pt": "questo|questa|isto|isso|este|mas",
}
_POINTING_WIDE: Final = (
    "これ|それ|この|その|しかし|また|そして|なお|さらに|そのため|ただし|一方|すなわち|つまり|したがって|よって|例えば|たとえば|そこで|彼|前者|後者|こう|同年|同|ここ|"
    "这|那|但|而且|因此|所以|此外|然后|于是|其中|同时|比如|例如|就像|他|她|它|当然|不过|如果说|另外|可是|而"
)
_DANGLING = re.compile(rf"(?:{'|'.join(_POINTING.values())})\b|(?:{_POINTING_WIDE})", re.IGNORECASE)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3]")
_ASIDE = re.compile(r"\s?\([^()]{1,200}\)|（[^（）]{1,200}）")  # a remark in parentheses
# The part of a long sentence that is a sentence of its own: up to a semicolon, a colon or a conjunction of
# main clauses, and up to a clause that says why or what for. A sentence that begins with "if" has no such part.
_HALF = re.compile(
    r".{40,138}(?=[;；：]|: |, (?:but|although|whereas|which|so|aber|sondern|jedoch|denn|damit|sodass|wobei|"
    r"obwohl|um|indem|was|pero|sino|aunque|por lo que|mientras que|lo que|así|mais|car|alors que|bien que|tandis que|ce qui|pour|"
    r"ma|mas)\b|,? (?:so that|because|weil|so dass|porque|ya que|puesto que|para que|parce que|puisque|afin d[e']|perché)\b)"
)
_CONDITIONAL = re.compile(
    r"(?:if|when|while|although|though|unless|once|as|since|because|after|before|whenever|wenn|falls|sobald|da|weil|obwohl|während|nachdem|"
    r"bevor|um|seit|solange|ist|sind|si|cuando|aunque|mientras|para|como|al|quand|lorsque|lorsqu|s|pour|bien que|comme|après|avant|se|quando)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!。！][\"'”’»」』)）]*\Z")


def choose_summary(
    sentences: Sequence[str], parted: Sequence[Sequence[Token | None]], worth: Mapping[str, float]
) -> str | None:
    """Return the most central sentence, or two that fit; None if there are no sentences.

    `parted`: the words of each sentence; `worth`: how much a noun says about the topic, by the key of the word."""
    if not sentences:
        return None
    rated = [
        _rate_sentence(sentence, words, n, worth)
        for n, (sentence, words) in enumerate(zip(sentences, parted, strict=True))
    ]
    best = max(range(len(rated)), key=lambda n: (rated[n], -n))
    line = _shorten_sentence(sentences[best])
    if sum(map(len, sentences)) >= PAIRED:
        fitting = [
            n for n in range(len(sentences)) if _fits(n, best, line, sentences) and rated[n] >= SECOND * rated[best]
        ]
        if fitting:
            other = max(fitting, key=lambda n: (rated[n], -n))
            line = _join(line, sentences[other]) if best < other else _join(sentences[other], line)
    return shorten(line, SUMMARY) or None


def _fits(n: int, best: int, line: str, sentences: Sequence[str]) -> bool:
    """Return whether a sentence may stand beside the best one: both end, and neither points at a sentence left out."""
    sentence = sentences[n]
    return (
        sentence != sentences[best]
        and len(sentence) + len(line) < SUMMARY
        and bool(_ENDED.search(sentence) and _ENDED.search(line))
        and (n == best + 1 or not _DANGLING.match(sentence))
        and (n > best or not _DANGLING.match(line))
    )


def _join(first: str, second: str) -> str:
    return first + ("" if _WIDE.match(first[-2:]) or first[-1] in "。！？」』" else " ") + second


def _shorten_sentence(sentence: str) -> str:
    """Return a sentence, without its remarks in parentheses or the clauses behind its main clause if it is too long."""
    if len(sentence) <= SUMMARY:
        return sentence
    bare = _ASIDE.sub("", sentence).strip() or sentence
    half = None if len(bare) <= SUMMARY or _CONDITIONAL.match(bare) else _HALF.match(bare)
    return half[0].rstrip(" ,") + ELLIPSIS if half and _is_balanced(half[0]) else bare


def _is_balanced(sentence: str) -> bool:
    """Return whether all quotations and remarks that begin in a sentence end in it."""
    return all(sentence.count(left) == sentence.count(right) for left, right in _PAIRS)


def _rate_sentence(sentence: str, words: Sequence[Token | None], n: int, worth: Mapping[str, float]) -> float:
    """Rate how central a sentence is: how much of the weight of the note's nouns it holds, for its length."""
    keys = {token.key for token in words if token and token.worth}
    rating = sum(worth.get(key, 0.0) for key in keys) / math.sqrt(len(keys) + 3)
    rating *= {0: 1.6, 1: 1.15}.get(n, 1.0)  # the first sentences usually name the topic
    length = len(sentence) + len(_WIDE.findall(sentence))  # a wide character counts as two letters
    if length < 35:
        rating *= 0.6
    shown = _shorten_sentence(sentence)
    if len(shown) > SUMMARY:
        rating *= 0.4 if _CONDITIONAL.match(shown) else 0.6
    elif shown.endswith(ELLIPSIS):
        rating *= 0.9
    if not any(token and token.wide for token in words) and len(keys) > LISTED * sum(1 for token in words if token):
        rating *= 0.35  # a list of words without a verb
    if sentence.endswith(("?", "？")):
        rating *= 0.7
    if sentence.endswith((":", "：")):
        rating *= 0.4
    if _DANGLING.match(sentence):
        rating *= 0.6 if n else 0.85
    if not _is_balanced(sentence):
        rating *= 0.5  # a part of a quotation or a remark
    return rating
