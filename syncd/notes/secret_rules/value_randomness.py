"""Judge the randomness of a value: whether a program generated it, or a person wrote it with words.

The judgement compares the bits of the value under two models: characters drawn from its alphabet, and words as in
prose, identifiers, file names and slugs. It has no side effects, and takes time in proportion to the value."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Final

# Bits of a letter after another one, measured on the words of this project's documents and code: 26 rows for the
# first letter, one digit for each second letter.
_BIGRAM_BITS: Final = (
    *("85449759496353959343567859", "37672887569389379447499959", "39673993594499289583599989"),
    *("37951769399698489547589969", "48436679699453957334767579", "39873499299489289364499969"),
    *("48991954399575589346499998", "27972999399768399565599978", "66444559998452469543959796"),
    *("38863788587776278748386787", "56961778399674698826586999", "38842689398389379945589959"),
    *("24772999398657339957699989", "48433639595696479733669969", "65557669696442549344454798"),
    *("39963995499399349354598969", "58777888777587888688187877", "39652769496765389544568959"),
    *("59582994496788458942496959", "39672993399689489445597959", "55553659599442749343989899"),
    *("29991899399998499899999989", "39873993399794399448899998", "46363686388668638772888777"),
    *("55764788478553438823875887", "37771777477677477766575766"),
)
_PAIRS: Final = {
    chr(97 + first) + chr(97 + second): int(digit)
    for first, row in enumerate(_BIGRAM_BITS)
    for second, digit in enumerate(row)
}
_FIRST: Final = 4.2  # bits of the first letter of a word
_CAPITAL: Final = 3.0  # extra bits when a capital begins a word inside a name: aNameLikeThis
_DIGIT, _TO_DIGIT, _FROM_DIGIT = 3.3, 5.5, 3.0
_JOINT, _SYMBOL = 3.0, 10.0  # a character that joins two words, and any other character
_ACRONYM: Final = 2.0  # extra bits for a capital after a capital, if the name has lower-case letters too
_JOINTS: Final = frozenset("-_./")
_SLACK: Final = 0.5  # bits per character by which the word model may be better for a random value
_SHANNON: Final = 2.5  # bits per character; fewer mean repetition
_PLACEHOLDER: Final = re.compile(
    r"example|sample|dummy|change_?me|placeholder|redacted|your|insert|replace|xxxx|\*\*\*|\.\.\.|\{\{|\$\{|\A\$\(|\A<|\A%\w+%\Z"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `<your-key>`, `changeme`, `${TOKEN}`."""
    return _PLACEHOLDER.search(value.lower()) is not None


def is_sequence(value: str) -> bool:
    """Return whether most characters follow their predecessor in order: `1234567890abcdef`."""
    low = value.lower()
    steps = sum(ord(second) - ord(first) in (0, 1) for first, second in pairwise(low))
    return steps * 2 > len(value)


def looks_random(value: str) -> bool:
    """Return whether a program generated the value: not a placeholder, UUID, number, words or repetition."""
    if is_placeholder(value) or _UUID.fullmatch(value.lower()):
        return False
    if sum(map(str.isalpha, value)) < 2 or shannon_bits(value) < _SHANNON:
        return False
    return word_bits(value) > random_bits(value) - _SLACK * len(value)


def shannon_bits(value: str) -> float:
    """Return the entropy of a value's characters, in bits per character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def random_bits(value: str) -> float:
    """Return the bits of the value if each character was drawn from the smallest usual alphabet with all of them."""
    if re.fullmatch(r"[0-9a-f]*|[0-9A-F]*", value):
        return 4.0 * len(value)
    kinds = ((r"[a-z]", 26), (r"[A-Z]", 26), (r"[0-9]", 10), (r"[-_]", 2), (r"[+/=]", 3), (r"[^A-Za-z0-9_+/=-]", 10))
    return math.log2(sum(size for kind, size in kinds if re.search(kind, value))) * len(value)


def word_bits(value: str) -> float:
    """Return the bits of the value if it consists of words, digits and joining characters."""
    mixed = any(map(str.islower, value))
    return sum(map(_char_bits, "/" + value, value, repeat(mixed)))


@lru_cache(maxsize=32 * 1024)  # values have a hundred different characters
def _char_bits(before: str, char: str, mixed: bool) -> float:
    if not char.isalnum():
        return _JOINT if char in _JOINTS and before.isalnum() else _SYMBOL
    if char.isdigit():
        return _DIGIT if before.isdigit() or before in _JOINTS else _TO_DIGIT + _DIGIT
    return _letter_bits(before, char, mixed=mixed)


def _letter_bits(before: str, char: str, *, mixed: bool) -> float:
    if before.isdigit():
        return _FROM_DIGIT + _FIRST
    if not before.isalpha():
        return _FIRST
    if char.isupper() and before.islower():
        return _CAPITAL + _FIRST
    acronym = _ACRONYM if mixed and char.isupper() else 0.0
    return _PAIRS.get(before.lower() + char.lower(), 9) + acronym
