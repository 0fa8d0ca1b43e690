"""Define the form of tags, the key that variants of a tag share, and the choice of the spelling in use.

Laws, tested: `to_tag` returns "" or a tag in kebab case that Obsidian can read; `to_tag` of such a tag returns it
unchanged."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

LONGEST: Final = 40  # most characters of a tag
FEWEST, MOST = 3, 7  # tags of a note
NEAR: Final = 0.85  # least cosine similarity of two variants of a tag that share a word or a beginning

# Embeds texts: one row of unit length for each text; None = no encoder is available at the moment.
Vectors: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[float]] | None]

# Usual abbreviations in notes about work.
SHORT: Final = {
    "db": "database", "dbs": "database", "js": "javascript", "ts": "typescript", "py": "python", "k8s": "kubernetes", "kube": "kubernetes",
    "pg": "postgresql", "postgres": "postgresql", "psql": "postgresql", "repo": "repository", "config": "configuration",
    "auth": "authentication", "authn": "authentication", "authz": "authorization", "env": "environment", "app": "application",
    "infra": "infrastructure", "perf": "performance", "docs": "documentation", "doc": "documentation", "golang": "go",
    "dev": "development", "prod": "production", "admin": "administration", "org": "organization", "ml": "machine-learning",
    "ai": "artificial-intelligence", "nlp": "natural-language-processing", "llm": "large-language-model", "rag": "retrieval-augmented-generation",
    "ui": "user-interface", "ux": "user-experience", "ci": "continuous-integration", "colour": "color", "behaviour": "behavior",
}  # fmt: skip
SPELT: Final = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
ENDINGS: Final = {  # language → endings that one form of a word may have and another lack
    "en": ("s", "es"), "de": ("n", "en", "e", "er", "s", "es", "nen"), "es": ("s", "es", "e"), "pt": ("s", "es", "e"), "fr": ("s", "x"), "nl": ("en", "s"),
}  # fmt: skip

_LATIN = 0x0530  # letters below this code point lose their accents in a key; above it, an accent makes another letter
_ELIDED = re.compile(r"['’]s\b|['’]")
_APART = re.compile(r"[^\w]+|_+")
_VARYING = re.compile(r"ー(?![ァ-ヺ])")  # サーバー and サーバ are one word


def to_tag(text: str) -> str:
    """Turn `text` into a tag in kebab case; "" when it can't be one."""
    if text.isascii() and text.isalnum() and len(text) <= LONGEST:  # almost all words, in a tenth of the time
        return "" if text.isdigit() else text.lower()
    text = unicodedata.normalize("NFKC", text).strip().lower()
    text = _ELIDED.sub("", SPELT.get(text) or SPELT.get(text.lstrip("#"), text))
    kept = "".join(c if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc") else "-" for c in text)
    tag = unicodedata.normalize("NFC", "-".join(filter(None, kept.split("-"))))
    if len(tag) > LONGEST:
        tag = tag[: LONGEST + 1].rpartition("-")[0] if "-" in tag[: LONGEST + 1] else ""
    return tag if any(c.isalpha() for c in tag) and not unicodedata.category(tag[0]).startswith("M") else ""


def key_of(tag: str) -> str:
    """Return the key that variants of a tag share: it ignores case, accents, hyphens, plurals and usual abbreviations."""
    return "".join(words_of(tag))


@functools.lru_cache(8_192)  # a vocabulary is compared with each new tag
def words_of(tag: str) -> tuple[str, ...]:
    """Return the normalized words of a tag."""
    parts = [_normalize_word(part) for part in _APART.split(tag) if part]
    return tuple(word for part in parts for word in part.split("-"))


def _normalize_word(word: str) -> str:
    word = _VARYING.sub("", fold_accents(word))
    word = SHORT.get(word, word)
    if not word.isascii() or len(word) < 4 or word.endswith(("ss", "us", "is", "news")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "oes")):
        return word[:-2]
    return word.removesuffix("s")


def fold_accents(word: str) -> str:
    """Return `word` in lower case without accents."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if folded.isascii():
        return folded
    kept, base = [], "a"
    for c in unicodedata.normalize("NFD", folded):
        if unicodedata.category(c) != "Mn":
            base = c
        elif ord(base) < _LATIN:
            continue
        kept.append(c)
    return unicodedata.normalize("NFC", "".join(kept))


def are_variants(tag: str, other: str, language: str = "en") -> bool:
    """Return whether the letters of two tags show that they are certainly variants of one tag."""
    a, b = words_of(tag), words_of(other)
    if "".join(a) == "".join(b) or (len(a) > 1 and sorted(a) == sorted(b)):
        return True
    if len(a) == len(b) and all(_are_inflections(x, y, language) for x, y in zip(a, b, strict=True)):
        return True
    return _is_acronym(tag, other) or _is_acronym(other, tag) or _is_numeronym(tag, other) or _is_numeronym(other, tag)


def _are_inflections(word: str, other: str, language: str) -> bool:
    short, long = sorted((word, other), key=len)
    if short == long:
        return True
    if language == "de":  # umlauts need no rule: Garten and Gärten are equal without accents
        return len(short) >= 5 and long.startswith(short) and long[len(short) :] in ENDINGS["de"]
    return len(short) >= 4 and long.startswith(short) and long[len(short) :] in ENDINGS.get(language, ())


def _is_acronym(short: str, long: str) -> bool:
    """Return whether `short` is an acronym of `long`, as `rrf` of reciprocal-rank-fusion; it needs three letters or more."""
    words = [word for word in long.split("-") if word]  # a person's tag may have two hyphens side by side
    return len(words) >= 3 and short.isalpha() and short == "".join(word[0] for word in words)


def _is_numeronym(short: str, long: str) -> bool:
    """Return whether `short` abbreviates `long` as `k8s` does kubernetes: by the number of letters between two letters."""
    match = re.fullmatch(r"([^\W\d_])(\d{1,2})([^\W\d_])", short)
    return bool(match and len(long) == int(match[2]) + 2 and long[0] == match[1] and long[-1] == match[3])


def may_be_variants(tag: str, other: str) -> bool:
    """Return whether two tags may be variants, so that it is worth comparing their vectors: their words begin alike.

    Their numbers must be equal: python-2 and python-3 have similar vectors, but are different tags."""
    if re.findall(r"\d+", tag) != re.findall(r"\d+", other):
        return False
    a, b = words_of(tag), words_of(other)
    if abs(len(a) - len(b)) > 1:
        return False
    left, right = [w for w in a if w not in b], [w for w in b if w not in a]
    if not left or not right:
        return False  # one contains the other: it is a narrower tag
    return all(any(x[:4] == y[:4] and min(len(x), len(y)) >= 4 for y in right) for x in left)


def unify_spelling(
    wanted: Sequence[str],
    vocabulary: Mapping[str, int],
    *,
    language: str = "en",
    vectors: Vectors | None = None,
) -> list[str]:
    """Return the `wanted` tags without repeats, each in the spelling of the vocabulary if that has a variant of it."""
    keys: dict[str, str] = {}
    for known in sorted(vocabulary, key=lambda tag: (-vocabulary[tag], tag)):
        keys.setdefault(key_of(known), known)
    chosen = {
        tag: keys.get(key_of(tag)) or next((known for known in keys.values() if are_variants(tag, known, language)), "")
        for tag in wanted
    }
    asked = {
        tag: [known for known in keys.values() if may_be_variants(tag, known)]
        for tag, known in chosen.items()
        if not known
    }
    asked = {tag: near for tag, near in asked.items() if near}
    if asked and vectors:
        texts = sorted({*asked, *(known for near in asked.values() for known in near)})
        rows = vectors([text.replace("-", " ") for text in texts])
        if rows is not None:
            at = dict(zip(texts, rows, strict=True))
            for tag, near in asked.items():
                score, best = max((_dot_product(at[tag], at[known]), known) for known in near)
                chosen[tag] = best if score >= NEAR else ""
    spellings: dict[str, str] = {}
    for tag in wanted:
        spelt = chosen[tag] or tag
        spellings.setdefault(key_of(spelt), spelt)
    return list(spellings.values())


def _dot_product(left: Sequence[float], right: Sequence[float]) -> float:
    return float(sum(x * y for x, y in zip(left, right, strict=True)))
