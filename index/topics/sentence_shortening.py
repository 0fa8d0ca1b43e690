"""Shorten a long sentence: drop its remarks in parentheses, then what stands after the end of a clause or a phrase.

Law, tested: a shortened sentence has at most `SUMMARY` characters."""

from __future__ import annotations

import functools
import re
from typing import Final

from index.deferred_patterns import compile_later
from index.text.sentences import ELLIPSIS, SUMMARY, shorten

_PAIRS: Final = (("(", ")"), ("（", "）"), ("「", "」"), ("«", "»"), ("[", "]"))
_DASHED = compile_later(r" [–—-] [^–—;:.]{1,120} [–—-](?= [^\W\dA-ZÄÖÜ])")  # a remark between dashes
_COMMAS = compile_later(r",(?:\s*,)+")  # what a remark leaves in a list
_ASIDE = compile_later(r"\s?\([^()]{1,200}\)|（[^（）]{1,200}）")  # a remark in parentheses

# A remark between commas after a subject, which its verb follows: El proyecto, como concesión, ha decidido.
_APPOSITION: Final = {
    language: compile_later(rf"\A([^,;:]{{6,60}}), [^,;:]{{3,110}}, (?=(?:{verbs})\b)", re.IGNORECASE)
    for language, verbs in {
        "en": "is|are|was|were|has|have|had|can|will|may|must|should|does|do|would|could|did|cannot",
        "es": "es|son|era|fue|será|está|están|ha|han|puede|pueden|debe|deben|se|no|tiene|tienen|permite|permiten|hace|va",
        "fr": "est|sont|était|sera|a|ont|peut|peuvent|doit|doivent|ne|n|se|s|permet|permettent|fait|va",
    }.items()
}

# The words that begin a clause after a comma, a clause without one, and a phrase: the later a sentence is cut the
# better, but a cut before a clause leaves more of its sense than one before a phrase.
_CLAUSES: Final = {
    "en": "but|although|though|whereas|while|so|which|who|whose|because|where|when|as|since|until|unless|even|if|and|or|causing|allowing|making|using|including|such|rather|without|"
    "instead|especially|depending|provided|regardless",
    "de": "aber|sondern|jedoch|denn|damit|sodass|so dass|wobei|obwohl|um|indem|was|weil|da|falls|wenn|während|sobald|bis|bevor|nachdem|ohne|statt|anstatt|wie|als|wodurch|weshalb|"
    "der|die|das|dem|den|deren|dessen|welche|welcher|welches|welchem|welchen|in|mit|auf|für|an|aus|bei|zu",
    "es": "pero|sino|aunque|por|mientras|lo|así|y|o|e|ya|puesto|para|porque|como|cuando|donde|si|el|la|los|las|cuyo|cuya|cuyos|cuyas|incluyendo|incluso|excepto|salvo|"
    "que|aun|con|sin|de manera|de modo|tal|tanto|gracias|especialmente|según",
    "fr": "mais|car|alors|bien|tandis|ce|pour|afin|donc|puis|où|dont|lequel|laquelle|lesquels|lesquelles|sans|sauf|grâce|notamment|comme|si|s'il|lorsque|lorsqu|quand|en|et|ou|"
    "puisque|puisqu|parce|qui|que|avec|même|voire|ainsi|tout|soit|y compris|selon|à moins",
    "it": "ma|che|e|o|perché|mentre|quando|se|come|dove|anche|oppure|così|poiché|cui|il quale|la quale",
    "pt": "mas|que|e|ou|porque|enquanto|quando|se|como|onde|assim|pois|embora|para",
}
_OPEN_CLAUSES: Final = {
    "en": "because|before|after|when|while|until|unless|if|since|so that|in order|by \\w+ing|without|using|where|which|even|through|during|depending|instead|rather|whenever|"
    "as if|as well as|even though|although|and (?:then|the|a|an|it|you|we|they|he|she|I|to|that|will|can)",
    "es": "porque|antes|después|cuando|mientras|hasta que|salvo|si|para que|para|sin|donde|durante|según|mediante|aunque|ya que|puesto que|pero|sino|así como|en lugar|gracias|"
    "y (?:el|la|los|las|un|una|se|que|no|en|así)|debido|dependiendo|usando|utilizando",
    "fr": "pour|afin|lorsque|lorsqu['’]|quand|si|s['’]ils?|car|parce|puisque|puisqu['’]|sans|avant|après|pendant|dont|où|lequel|laquelle|lesquels|lesquelles|tout en|en \\w+ant|grâce|"
    "selon|depuis|jusqu['’]|ainsi que|tandis|alors que|au lieu|plutôt|tel(?:le)?s? que|comme|qui|mais|même|lors|durant|via|"
    "et (?:le|la|les|un|une|il|elle|on|se|que|ne|en|vous|nous|de|des|ainsi|donc)",
    "it": "perché|prima|dopo|quando|mentre|se|per|senza|dove|durante|che|ma|e (?:il|la|lo|i|le|gli|un|una)",
    "pt": "porque|antes|depois|quando|enquanto|se|para|sem|onde|durante|que|mas|e (?:o|a|os|as|um|uma)",
}
_PHRASES: Final = {
    "en": "and|or|with|from|in|on|at|into|between|through|for|under|over|within|across|against|like|via|about|to|of",
    "de": "und|oder|von|vom|für|mit|in|im|auf|an|am|bei|aus|nach|über|unter|zur|zum|durch|gegen|zwischen",
    "es": "y|o|e|u|en|con|por|desde|entre|sobre|como|bajo|contra|hacia|a|al|de|del",
    "fr": "et|ou|dans|par|sur|avec|entre|vers|sous|chez|contre|en|à|au|aux|de|d['’]|du|des",
    "it": "e|o|in|con|su|da|tra|fra|nel|nella|a|al|di|del|della",
    "pt": "e|ou|em|com|por|entre|no|na|a|ao|de|do|da",
}
# Words after which nothing may be left out; a phrase needs what they announce.
_ANNOUNCING: Final = compile_later(
    r"(?:[(\[«“„‘,:–—-]\s?|\b(?:d['’]|de |à |pour |et |para |a |y |que )\w+(?:[aeio]r|[dt]re)|\b(?:toujours|souvent|également|always|often|siempre|también|the|a|an|this|that|these|those|my|your|his|her|its|our|their|of|to|in|on|at|by|for|with|from|except|example|instance|as|than|and|or|but|if|is|are|was|were|be|been|not|no|only|just|"
    r"even|very|more|most|such|any|all|every|some|into|onto|upon|through|because|when|while|where|before|after|until|unless|since|whether|without|within|using|including|against|during|per|like|over|under|which|who|whose|will|would|can|could|should|may|might|must|do|does|did|has|have|had|you|we|they|he|she|it|both|either|between|so|also|how|what|when|where|"
    r"excepto|salvo|según|hacia|desde|sobre|mediante|bajo|sin|contra|porque|aunque|mientras|cuando|donde|pero|sino|ni|tan|excepción|el|la|los|las|un|una|unos|unas|de|del|al|en|con|por|para|que|se|no|su|sus|es|son|está|están|ser|estar|siendo|estando|sido|muy|más|como|lo|este|esta|estos|estas|ese|esa|otro|otra|otros|otras|cada|ya|"
    r"aquel|aquellos|entre|tanto|solo|sólo|y|o|a|hay|puede|pueden|debe|deben|"
    r"exemple|ejemplo|compris|sauf|hormis|sous|vers|chez|sans|selon|contre|dès|lors|depuis|pendant|parce|puisque|car|mais|donc|où|comme|le|les|une|des|du|d|au|aux|à|dans|avec|pour|sur|qui|ne|pas|plus|ce|cet|cette|ces|celui|celle|ceux|celles|son|sa|ses|leur|leurs|votre|vos|notre|nos|est|sont|être|étant|été|très|il|elle|"
    r"ils|elles|vous|nous|on|je|peut|peuvent|doit|doivent|faut|permet|permettent|même|entre|aussi|bien|et|ou|tout|toute|tous|toutes|chaque|quelques|autre|autres|si|lorsque|quand|dont|"
    r"ein|eine|einer|einen|einem|eines|der|die|das|dem|den|und|oder|von|zu|mit|bei|für|auf|aus|nach|ist|sind|wird|werden|nicht|so|wie|als|dass|wenn|weil|falls|obwohl|sowie|bzw|ob|sie|er|es|man|kann|können|beginnen|beginnt|ermöglicht|ermöglichen|darin|dazu|damit|daran|darauf|entscheidet|falle?|rahmen|nur|erst|noch|auch|gleiche|gleichen|haben|hat|sowohl|weder|vor|über|unter|durch|gegen|ohne|um|bis|zwischen|neben|seit|während|am|im|ins|zum|zur|vom|beim|versucht|versuchen|see|means|says|ensure|sure)|['’])\Z",
    re.IGNORECASE,
)  # fmt: skip
_PAIRED: Final = compile_later(
    r"\b(?:between|both|either|neither|entre|tanto|tant|soit|zwischen|sowohl)\b", re.IGNORECASE
)
# Words that announce a second half, and those that begin it.
_FIRST_HALF: Final = compile_later(
    r"\b(?:not only|nicht nur|no s[oó]lo|non seulement)\b(?!.*\b(?:but|sondern|sino|mais)\b)", re.IGNORECASE
)
_ANDS: Final = frozenset({"and", "or", "y", "o", "e", "et", "ou", "und", "oder"})
_CONDITIONAL = compile_later(
    r"(?:if|when|while|although|though|unless|once|as|since|because|after|before|whenever|in order|wenn|falls|sobald|da|weil|obwohl|während|nachdem|"
    r"in|on|at|by|with|from|to|for|unlike|despite|due|instead|regardless|even|given|"
    r"bevor|um|seit|solange|ist|sind|si|cuando|aunque|mientras|para|como|al|quand|lorsque|lorsqu|s|pour|bien que|comme|après|avant|plutôt|en|dans|avec|par|sur|contrairement|outre|grâce|puisque|con|desde|según|debido|gracias|dado|dependiendo|independientemente|aparte|además de|por|sin|una vez|tras|antes|después|quando)\b",
    re.IGNORECASE,
)
# The same, of words that mean something else in another language.
_CONDITIONAL_ONLY: Final = {
    language: compile_later(rf"(?:{words})\b", re.IGNORECASE)
    for language, words in {"es": "a", "it": "a|se", "pt": "a|se"}.items()
}
# Words of English, Spanish and French that begin a phrase without which the main clause is still true.
_SETTING = compile_later(
    r"(?:in|on|at|with|for|from|like|as|due|thanks|given|besides|pour|dans|avec|en|comme|grâce|outre|depuis|para|con|como|debido|gracias|dado|desde|además|aparte|independientemente|although|though|while|aunque|si bien|bien que)\b",
    re.IGNORECASE,
)
# Words of the same languages that begin a clause which is no sentence without its main clause.
_SUBORDINATE = compile_later(
    r"(?:although|though|while|if|when|aunque|si|cuando|para \w+r|bien que|quand|lorsqu\w*|pour \w+re?)\b",
    re.IGNORECASE,
)
_SETTINGS: Final = frozenset({"en", "es", "fr"})
_LOOSE: Final = " ,;:、，；："  # no summary ends with these
SHORTEST: Final = 40  # least characters of a main clause that stands alone
MAIN: Final = 12  # least characters of a main clause after a condition
# least characters that are left, and how many characters later another kind of cut has to be to be better
_KINDS: Final = ((40, 0), (40, 5), (40, 25), (55, 25), (55, 50), (80, 80))


def shorten_sentence(sentence: str, language: str, most: int = SUMMARY) -> str:
    """Return a sentence in at most `most` characters: without remarks, and up to the best place for a cut."""
    if len(sentence) <= most:
        return _without_announcement(sentence)
    bare = _COMMAS.sub(",", _DASHED.sub("", _ASIDE.sub("", sentence))).strip() or sentence
    if len(bare) <= most:
        return _without_announcement(bare)
    if language in _APPOSITION and not _is_conditional(bare, 0, language):
        bare = _APPOSITION[language].sub(r"\1 ", bare)
        if len(bare) <= most:
            return bare
    end = _best_end(bare, language, most)
    main = bare.partition(", ")[2] if not end and language in _SETTINGS and _SETTING.match(bare) else ""
    if len(main) >= SHORTEST:
        bare = main[:1].upper() + main[1:]
        end = len(bare) if len(bare) <= most else _best_end(bare, language, most)
    if end == len(bare):
        return bare
    if end:
        return bare[:end].rstrip(_LOOSE + ".–—-…") + ELLIPSIS
    return _without_last_words(shorten(bare, most).removesuffix(ELLIPSIS)) + ELLIPSIS


def _without_announcement(sentence: str) -> str:
    """Return a sentence without the words at its end that announce a list, as in "a menu with:"."""
    rest = sentence.rstrip(_LOOSE)
    if rest == sentence:
        return sentence
    shown = _without_last_words(rest)
    return rest if shown == rest else shown + ELLIPSIS


def _without_last_words(text: str) -> str:
    """Return a text without the words at its end that announce another."""
    while " " in text and _ANNOUNCING.search(text):
        text = text.rpartition(" ")[0].rstrip(_LOOSE)
    return text


def lacks_main_clause(shown: str) -> bool:
    """Return whether a sentence was cut before the main clause that its condition needs."""
    return shown.endswith(ELLIPSIS) and "," not in shown and bool(_SUBORDINATE.match(shown))


def is_balanced(sentence: str) -> bool:
    """Return whether all quotations and remarks that begin in a sentence end in it."""
    return all(sentence.count(left) == sentence.count(right) for left, right in (quotes_of(sentence), *_PAIRS))


def quotes_of(sentence: str) -> tuple[str, str]:
    """Return the two quotation marks of a sentence: a German one ends with the mark that begins an English one."""
    return ("„", "“") if "„" in sentence else ("“", "”")


def _best_end(sentence: str, language: str, most: int) -> int:
    """Return the place where a sentence of more than `most` characters is cut best; 0 if there is none."""
    least = 0
    if _is_conditional(sentence, 0, language):
        comma = sentence.find(",", 0, most - MAIN)
        while comma > 0 and _is_conditional(sentence, comma + 2, language):
            comma = sentence.find(",", comma + 1)
        if comma < 0 and _SUBORDINATE.match(sentence):
            return 0  # the main clause follows too late
        least = comma + MAIN
    ends = (
        (match.start() - later, match.start())
        for pattern, (shortest, later) in zip(_patterns(language), _KINDS, strict=True)
        if shortest < most
        for match in pattern.finditer(sentence, max(min(shortest, most // 2), least), most + 12)
        if match.start() < most and _may_end(sentence[: match.start()], match[0])
    )
    return max(ends, default=(0, 0))[1]


def _is_conditional(sentence: str, start: int, language: str) -> bool:
    """Return whether a condition or a setting begins at `start`, after which the main clause follows."""
    pattern = _CONDITIONAL_ONLY.get(language)
    return bool(_CONDITIONAL.match(sentence, start) or (pattern and pattern.match(sentence, start)))


@functools.cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the places where a sentence may be cut, the best kind first."""
    clauses, open_clauses, phrases = (words.get(language, r"(?!)") for words in (_CLAUSES, _OPEN_CLAUSES, _PHRASES))
    return tuple(
        compile_later(pattern, re.IGNORECASE)
        for pattern in (
            r"[;；]| [–—-] ",
            r" ?: ",
            rf", (?:{clauses})\b",
            rf" (?:{open_clauses})\b",
            r"(?!)" if language == "de" else r"[:：，]|, ",  # a comma may stand before the verb of a German clause
            rf" (?:{phrases})\b",
        )
    )


def _may_end(left: str, mark: str) -> bool:
    """Return whether a sentence may end with `left`; `mark` is what stands after it."""
    if left.count('"') % 2 or not is_balanced(left) or _FIRST_HALF.search(left):
        return False
    return not _ANNOUNCING.search(left) and not (_PAIRED.search(left) and mark.strip(", ") in _ANDS)
