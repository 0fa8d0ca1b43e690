"""Choose the central sentences of a note as its summary: the most central one, or two that fit.

Law, tested: a summary is one line of at most `SUMMARY` characters, made of sentences of the note."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from index.deferred_patterns import compile_later
from index.text.sentences import ELLIPSIS, SUMMARY
from index.text.words import Token
from index.topics.asides import EXAMPLE_OPENING, REFERENCE_OPENING
from index.topics.sentence_shortening import is_balanced, lacks_main_clause, quotes_of, shorten_sentence

PAIRED: Final = 2 * SUMMARY  # least characters of a text that gets a summary of two sentences
SECOND: Final = 0.45  # least rating of the second sentence, as a share of the first one's
PLACES: Final = {0: 1.6, 1: 1.15}  # factors of the first sentences, which usually name the topic
POINTING: Final = 0.4  # factor for a sentence that points at the one before it
JOINED: Final = 0.75  # the same if a summary has room for both
BRIEF: Final = 60  # characters of a summary that is given the next sentence too, if that points at it
EXAMPLE: Final = 0.6  # factor for a sentence that is an example
INCOMPLETE: Final = 0.5  # factor for a condition without its main clause
INSIDE: Final = 0.8  # factor for a sentence that is cut within a clause
TAIL: Final = 16  # characters by which the place of a cut is found
FIRST: Final = 0.8  # factor for a first sentence that points at one before it
REFERRING: Final = 0.4  # factor for a sentence that refers to another text
LISTED: Final = 0.8  # share of meaningful words above which a sentence is only a list of them
# Words that join a sentence to the one before it, and that it loses nothing without.
_CONNECTING = compile_later(
    r"(?:(?:and|but|so|also|however|for example|for instance|therefore|thus|hence|in addition|as a result|moreover|furthermore|finally|of course|indeed|in fact|either way|likewise|"
    r"similarly|basically|actually|unfortunately|fortunately|luckily|"
    r"sin embargo|además|también|por ejemplo|por lo tanto|por tanto|por supuesto|en realidad|en particular|finalmente|de hecho|obviamente|no obstante|por ello|asimismo|"
    r"cependant|toutefois|en effet|par exemple|de plus|par ailleurs|en outre|bien entendu|bien sûr|enfin|en particulier|en pratique|par conséquent|heureusement|ainsi|néanmoins|"
    r"ici encore|en réalité|de même)(?: ?, | ?: )"
    r"|(?:and|but|so|pero|y|mais|et|or|aber) (?!that\b|when\b|que\b)|(?:please )?note that |tenga en cuenta que |note[zs]? qu(?:e |['’])|notons qu(?:e |['’])|c['’]est pourquoi "
    r"|(?:しかし|また|そして|なお|さらに|そのため|ただし|一方|したがって|よって|そこで|例えば|たとえば)、"
    r"|(?:所以|但是|但|而且|因此|此外|然后|于是|同时|不过|另外|可是|其实|当然|然而|而是|例如|比如|就像(?!.*(?:一样|那样|一般))|总之|事实上|实际上|这样一来|也就是说|换句话说|意思是说|意思是|(?:总的来说|首先|其次|最后)(?=[，,])|第[一二三四五六七八九十][，、]|即(?=对)|而(?=[通在对从当如]))[，,]?)",
    re.IGNORECASE,
)
# Words at the beginning of a sentence that points at the one before it.
_POINTING: Final = {
    "en": "to do (?:so|this|that)|this|that|these|those|it|its|he|she|they|him|her|his|their|then|next|or|otherwise|instead|in that case|additional|another|both|such|the (?:second|third|other|others|latter|former|same)|(?:when|if|as|once|because|since|although) (?:it|this|they|he|she|that)|here|above|(?:in|with|for|from|by|on|at|to) (?:th[ie]s|these|that|those|such)",
    "de": r"dies|diese[rsmn]?|das|es|sie|er|aber|und|dabei|dadurch|dazu|daher|deshalb|dann|außerdem|jedoch|allerdings|zum beispiel|beispielsweise|hierbei|hier|"
    r"dort|solche|auch|sonst|andernfalls|insbesondere|(?:mit|in|auf|bei|für|von|zu|durch|aus|an|unter) (?:dies|jen|solch)\w+",
    "es": "[eé]st[oae]s?|[eé]s[oae]s?|él|ella|ellos|ellas|ello|así|entonces|aquí|luego|a continuación|lo mismo|dich[oa]s?|como ya|(?:si|cuando|como|aunque) (?:est|es)[aeo]s?|"
    "lo que|amb[oa]s|otr[oa]s?|tal(?:es)?|el mismo|la misma|por (?:el )?otro lado|por otra parte|en nuestro caso|(?:el|la) (?:primer|segund|tercer|últim)[oa]?\\b|(?:la mayoría|una|uno|algun[oa]s|tod[oa]s|ningun[oa]) de (?:est|es|ell)[aeo]s|(?:en|de|con|para|por|a) (?:est|es)[aeo]s?",
    "fr": "d['’]autres|l['’]autre|un(?:e)? autre|un(?:e)? tel(?:le)?|de tel(?:le)?s|ceci|cela|ce|cet|cette|ces|c['’]est|celui-ci|celle-ci|il|elle|ils|elles|donc|alors|ensuite|puis|ici|on|les? premi(?:er|ère)s?|l[ae] (?:deuxième|second|seconde|dernier|dernière)|les deux|(?:un|une|la plupart|chacun|chacune) (?:de|d['’]entre) (?:ce|eux|elles)|d['’](?:une|autre) part|d['’]un autre côté|à l['’]inverse|(?:lorsqu|s|puisqu)['’](?:ils?|elles?)|(?:quand|si) (?:ils?|elles?)|(?:dans|de|à|avec|pour|par|sur) (?:ce|cet|cette|ces|cela|notre cas)",
    "it, pt": "questo|questa|isto|isso|este|mas",
}
_POINTING_WIDE: Final = "これ|それ|この|その|すなわち|つまり|彼|前者|後者|こう|同年|同|ここ|这|那|该|此|上述|前述|同样|两者|要做到|其中|他|她|它|如果说|而|反之|否则|在这|在那|对此|为此|除此|从此|[“「『][^”」』]{12}"
_DANGLING = compile_later(rf"(?:{'|'.join(_POINTING.values())})\b|(?:{_POINTING_WIDE})", re.IGNORECASE)
_REFERRED = compile_later(
    r"\b(?:see|siehe|in|im|consulte|vea|la|à la) (?:the |der |la )?(?:section|abschnitt|kapitel|sección|chapter|chapitre|capítulo) \d",
    re.IGNORECASE,
)
_WIDE = compile_later(r"[\u2e80-\u9fff\uac00-\ud7a3]")
_ENDED = compile_later(r"[.!。！][\"'”’»」』)）]*\Z")


def choose_summary(
    original: Sequence[str], parted: Sequence[Sequence[Token | None]], worth: Mapping[str, float], language: str
) -> str | None:
    """Return the most central of the sentences `original`, or two that fit; None if there are no sentences.

    `parted`: the words of each sentence; `worth`: how much a noun says about the topic, by the key of the word."""
    if not original:
        return None
    sentences = [sentence if language == "de" else _without_connection(sentence) for sentence in original]
    short = [shorten_sentence(sentence, language) for sentence in sentences]
    rated = [
        _rate_sentence(sentence, shown, words, worth)
        * PLACES.get(n, 1.0)
        * (_pointing_factor(n, sentences, short) if _DANGLING.match(sentence) else 1.0)
        * (EXAMPLE if EXAMPLE_OPENING.match(original[n]) else 1.0)
        for n, (sentence, shown, words) in enumerate(zip(sentences, short, parted, strict=True))
    ]
    best = max(range(len(rated)), key=lambda n: (rated[n], -n))
    line = short[best]
    pair = _find_pair(best, rated, sentences, short)
    if pair is not None:
        line = _join(*short[pair : pair + 2])
    elif sum(map(len, sentences)) >= PAIRED:
        fitting = [
            n for n in range(len(sentences)) if _fits(n, best, line, sentences) and rated[n] >= SECOND * rated[best]
        ]
        if fitting:
            other = max(fitting, key=lambda n: (rated[n], -n))
            line = _join(line, sentences[other]) if best < other else _join(sentences[other], line)
    return _without_open_quote(line)


def _find_pair(best: int, rated: Sequence[float], sentences: Sequence[str], short: Sequence[str]) -> int | None:
    """Return the place of the first of two sentences of which one is the best and the second points at the first."""
    if best and _DANGLING.match(sentences[best]) and _explains(best - 1, sentences, short):
        return best - 1
    pointed = best + 1 < len(short) and _DANGLING.match(sentences[best + 1]) and rated[best + 1] >= SECOND * rated[best]
    return best if pointed and len(short[best]) < BRIEF and _explains(best, sentences, short) else None


def _pointing_factor(n: int, sentences: Sequence[str], short: Sequence[str]) -> float:
    """Return the factor for a sentence that points at the one before it."""
    if not n:
        return FIRST
    return JOINED if _explains(n - 1, sentences, short) else POINTING


def _explains(n: int, sentences: Sequence[str], short: Sequence[str]) -> bool:
    """Return whether a summary has room for a sentence and the one after it, which points at it."""
    sentence, behind = short[n], short[n + 1]
    whole = bool(_ENDED.search(sentence) and _ENDED.search(behind)) and not REFERENCE_OPENING.match(sentence)
    return whole and len(sentence) + len(behind) < SUMMARY and not _DANGLING.match(sentences[n])


def _fits(n: int, best: int, line: str, sentences: Sequence[str]) -> bool:
    """Return whether a sentence may stand beside the best one: both end, and neither points at a sentence left out."""
    sentence = sentences[n]
    return (
        sentence != sentences[best]
        and len(sentence) + len(line) < SUMMARY
        and not REFERENCE_OPENING.match(sentence)
        and bool(_ENDED.search(sentence) and _ENDED.search(line))
        and (n == best + 1 or not _DANGLING.match(sentence))
        and (n > best or not _DANGLING.match(line))
    )


def _without_connection(sentence: str) -> str:
    """Return a sentence without the words that only join it to the one before it."""
    match = _CONNECTING.match(sentence)
    rest = sentence[match.end() :] if match else ""
    return rest[:1].upper() + rest[1:] if any(c.isalpha() for c in rest) else sentence


def _without_open_quote(line: str) -> str:
    """Return a summary without a quotation mark whose partner is in another sentence."""
    for left, right in (quotes_of(line), ("「", "」"), ("«", "»")):
        before, mark, behind = line.rpartition(left) if line.count(left) == line.count(right) + 1 else (line, "", "")
        line = before + behind if mark else line
    if line.count("”") == line.count("“") + 1:
        line = line.replace("”", "", 1)
    return line.strip()


def _join(first: str, second: str) -> str:
    return first + ("" if _WIDE.match(first[-2:]) or first[-1] in "。！？」』" else " ") + second


def _is_cut_inside(sentence: str, shown: str) -> bool:
    """Return whether no punctuation stands where a sentence is cut, so that a clause or a phrase is incomplete."""
    tail = shown.removesuffix(ELLIPSIS)[-TAIL:]
    return bool(tail) and sentence.partition(tail)[2][:1] == " "


def _rate_sentence(sentence: str, shown: str, words: Sequence[Token | None], worth: Mapping[str, float]) -> float:
    """Rate how central a sentence is: how much of the weight of the note's nouns it holds, for its length.

    `shown`: what a summary would show of it."""
    keys = {token.key for token in words if token and token.worth}
    rating = sum(worth.get(key, 0.0) for key in keys) / math.sqrt(len(keys) + 3)
    if len(sentence) + len(_WIDE.findall(sentence)) < 35:  # a wide character counts as two letters
        rating *= 0.6
    if shown.endswith(ELLIPSIS):
        rating *= 0.5 + 0.4 * len(shown) / len(sentence)
        rating *= INSIDE if _is_cut_inside(sentence, shown) else 1.0
        rating *= INCOMPLETE if lacks_main_clause(shown) else 1.0
    if not any(token and token.wide for token in words) and len(keys) > LISTED * sum(1 for token in words if token):
        rating *= 0.35  # a list of words without a verb
    if sentence.endswith(("?", "？")):
        rating *= 0.5
    if sentence.endswith((":", "：")):
        rating *= 0.4
    if REFERENCE_OPENING.match(sentence) or _REFERRED.search(sentence):
        rating *= REFERRING
    if not is_balanced(sentence):
        rating *= 0.5  # a part of a quotation or a remark
    return rating
