"""Check whether a text may be in one of some languages, by its scripts and, for Latin letters, by its function words.

A text counts as being in them if it uses their script, and is too short to tell or no function words of theirs are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from index.deferred_patterns import compile_later
from index.text.stopwords import LANGUAGES
from index.text.words import languages_by_word

ANY: Final = "all"  # stands for every language
LONGEST: Final = 2_000  # characters that are looked at
SHARE: Final = 0.2  # of the letters: a script with fewer only quotes a name
SURE: Final = 2  # function words that show a language
PROSE: Final = 12  # words from which a text in a known language has a function word
# Languages by script, with the codes of ISO 639-1. Japanese also has texts, above all names and queries, without kana.
SCRIPTS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "kana": ("\u3041-\u30ff", frozenset({"ja"})),
    "han": ("\u3400-\u9fff\uf900-\ufaff", frozenset({"zh", "ja"})),
    "hangul": ("\uac00-\ud7af\u1100-\u11ff", frozenset({"ko"})),
    "cyrillic": ("\u0400-\u052f", frozenset({"ru", "uk", "bg", "sr", "mk", "be", "kk"})),
    "greek": ("\u0370-\u03ff", frozenset({"el"})),
    "arabic": ("\u0600-\u06ff", frozenset({"ar", "fa", "ur"})),
    "hebrew": ("\u0590-\u05ff", frozenset({"he", "yi"})),
    "devanagari": ("\u0900-\u097f", frozenset({"hi", "mr", "ne"})),
    "thai": ("\u0e00-\u0e7f", frozenset({"th"})),
}
_LETTERS: Final = {name: compile_later(f"[{letters}]") for name, (letters, _) in SCRIPTS.items()}
_LATIN: Final = compile_later("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_WORD: Final = compile_later(r"[^\W\d_]+")


def may_be_in(text: str, languages: Collection[str]) -> bool:
    """Return whether `text` may be in one of `languages`, given by their codes; `all` means any."""
    if ANY in languages:
        return True
    text = text[:LONGEST]
    counts = {name: len(letters.findall(text)) for name, letters in _LETTERS.items()}
    latin = len(_LATIN.findall(text))
    letters = sum(map(str.isalpha, text))
    if counts["kana"] and counts["han"]:  # Japanese mixes both
        counts["kana"] += counts.pop("han")
    for name, count in counts.items():
        if count > SHARE * letters and SCRIPTS[name][1].isdisjoint(languages):
            return False
    if latin + sum(counts.values()) < (1 - SHARE) * letters:
        return False  # a script that is not listed
    return latin <= SHARE * letters or _may_be_latin(text, languages)


def _may_be_latin(text: str, languages: Collection[str]) -> bool:
    wanted = {language for language in languages if all(language not in known for _, known in SCRIPTS.values())}
    if not wanted:
        return False
    if not wanted <= LANGUAGES.keys():
        return True  # there is no list of function words that could tell
    words = _WORD.findall(text.lower())
    hits = Counter(language for word in words for language in languages_by_word().get(word, ()))
    best = max((hits[language] for language in wanted), default=0)
    if any(hits[language] >= SURE and hits[language] > best for language in hits.keys() - wanted):
        return False
    return bool(best) or len(words) < PROSE
