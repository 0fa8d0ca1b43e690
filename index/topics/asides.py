"""Tell the asides of a sentence from its main part: references, remarks, examples and enumerations.

Law, tested: the main part and the asides hold all words of a sentence without references, each once."""

from __future__ import annotations

import re
from typing import Final

from index.deferred_patterns import compile_later

REFERENCE_OPENING = compile_later(
    r"(?:(?:the|la|le|el|der|die|das|im|in) )?(?:section|chapter|table|figure|see|abschnitt|kapitel|tabelle|abbildung|siehe|sección|capítulo|tabla|figura|"
    r"consulte|véase|vea|para (?:más|obtener)|chapitre|tableau|voir|voyez|consultez|reportez|pour plus|pour en savoir|for (?:more|further|details)|more information|informationen hierzu|weitere informationen|mehr (?:informationen|dazu|über))\b",
    re.IGNORECASE,
)  # the beginning of a sentence that refers to another text
EXAMPLE_OPENING = compile_later(
    r"for example|for instance|por ejemplo|par exemple|zum beispiel|beispielsweise|例えば|たとえば|例如|比如|譬如|(?:in this|en este|dans cet|in diesem) (?:example|ejemplo|exemple|beispiel)\b",
    re.IGNORECASE,
)  # the beginning of a sentence that is an example
ITEMS: Final = 4  # least items of an enumeration

_REMARK = compile_later(r"\([^()]{1,300}\)|（[^（）]{1,300}）")
_ONE_WORD = compile_later(r"\W*\w+\W*")  # a remark of one word may be another name of what stands before it
_REFERENCE = compile_later(
    r"(?:section|chapter|sección|capítulo|chapitre|abschnitt|kapitel|第) ?\d[\d.]*(?: ?[节章節])?,? ?[“«„\"][^”»“\"]{1,100}[”»“\"]",
    re.IGNORECASE,
)  # to a part of a document, with its title
_EXAMPLE = compile_later(
    r"(?<=\W)(?:for example|for instance|e\. ?g\.|such as|por ejemplo|par exemple|tel(?:le)?s? que|zum Beispiel|z\. ?B\.|beispielsweise"
    r"|例如|比如|譬如|たとえば|例えば)[^.,;:、，。；：！？]*",
    re.IGNORECASE,
)
_WORD: Final = r"[^\s,;:.()\u2e80-\u9fff]+"
_ITEM: Final = rf"{_WORD}(?: {_WORD}){{0,2}}"  # at most three words
_LAST: Final = rf"(?:[^\W\d]{{1,3}} )?{_WORD}"  # perhaps after an article
_WIDE_ITEM: Final = r"[^\s\u3000-\u309f，；：（）]{1,6}"  # without hiragana, which show that a clause ends
_LIST = compile_later(
    rf"(?<!\S){_WORD}(?:, {_ITEM}){{{ITEMS - 2},}},? (?:and|or|y|o|u|et|ou|und|oder|e) {_LAST}"
    rf"|(?<!\S){_WORD}(?:, {_ITEM}){{{ITEMS - 1},}}|{_WIDE_ITEM}(?:、{_WIDE_ITEM}){{{ITEMS - 1},}}"
)
MOST: Final = 2 / 3  # share of a sentence above which an aside is what the sentence is about


def split_asides(sentence: str) -> tuple[str, list[str]]:
    """Return the main part of a sentence, and its remarks, examples and enumerations; references are left out.

    A sentence that is an example, or that only refers to another text, has no main part."""
    sentence = _REFERENCE.sub(", ", sentence)
    if REFERENCE_OPENING.match(sentence) or EXAMPLE_OPENING.match(sentence):
        return "", [sentence]
    asides: list[str] = []

    def leave_out(match: re.Match[str]) -> str:
        if len(match[0]) > MOST * len(sentence) or _ONE_WORD.fullmatch(match[0]):
            return match[0]
        asides.append(match[0])
        return ", "

    main = sentence
    for pattern in (_REMARK, _EXAMPLE, _LIST):
        main = pattern.sub(leave_out, main)
    return main, asides
