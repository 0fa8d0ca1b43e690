r"""Find characters that readers do not see, or that change what readers see, name their kinds, and escape them.

Laws, tested: an escaped text has no hidden characters, and escaping changes no other character. Characters that a
script or an emoji needs are not hidden: joiners between its letters, one selector after a character with variants,
direction marks in a line with right-to-left letters, and the tags of the three flags that consist of tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias, get_args

from index.deferred_patterns import compile_later
from index.model import Defect

Kind: TypeAlias = Literal["ansi", "control", "bidi", "zero-width", "tag", "variation-selector"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DEFECT: Final = "hidden-text"

_KIND_BY_GROUP: Final[dict[str, Kind]] = {kind.replace("-", "_"): kind for kind in KINDS} | {"mark": "bidi"}

# Contents of character classes. Letters shaped by joiners: Arabic, Syriac, Indic, Thai, Tibetan, Burmese, Khmer, Mongolian.
_SHAPED: Final = "\u0600-\u1099\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff"
_SYMBOLS: Final = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_EMOJI: Final = f"{_SYMBOLS}\ufe0f\U000e007f"
_IDEOGRAPHS: Final = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Characters with standardized variants: also mathematical symbols, quotation marks, CJK punctuation, Myanmar, Phags-pa, Manichaean.
_VARIED: Final = f"{_IDEOGRAPHS}\u2018-\u201d\u2190-\u2bff\u3001\u3002\uff01-\uff1f\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877\U00010ac0-\U00010aff"
_RIGHT_TO_LEFT: Final = compile_later(
    "[\u05d0-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_MARKS: Final = "\u061c\u200e\u200f"  # direction marks; a single one is common in right-to-left text
_KNOWN_VARIANTS: Final = (  # each a selector, with the characters before it that have such a variant
    rf"[\u180b-\u180d\u180f](?<=[\u1820-\u18aa].)|[\ufe00-\ufe02](?<=[{_VARIED}].)|[\ufe00-\ufe06](?<=[\U00013000-\U000143ff].)"
    rf"|[\ufe0e\ufe0f](?<=[{_SYMBOLS}].)|\ufe0f(?<=[0-9#*].)(?=\u20e3)|[\U000e0100-\U000e01ef](?<=[{_IDEOGRAPHS}].)"
)
_SELECTORS: Final = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Unicode's Default_Ignorable_Code_Point without selectors, tags, joiners and characters of the kind "bidi".
_INVISIBLE: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180e\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
# Each pattern begins with the hidden character, which the much faster `_CANDIDATE` finds first.
_PATTERNS: Final[dict[str, str]] = {
    "flag": (  # the flags of England, Scotland and Wales: not hidden
        "\U000e0067(?<=\U0001f3f4.)\U000e0062"
        "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
    ),
    "ansi": "[\x1b\x90\x98\x9b\x9d-\x9f]",  # begins a control sequence of a terminal
    "control": "[\0-\x08\x0b\x0e-\x1f\x7f-\x9f]",  # the other controls, except a form feed, which ends a page
    "bidi": f"[\u202a-\u202e\u2066-\u2069]|[{_MARKS}](?:(?=[{_MARKS}])|(?<=[A-Za-z].)(?=[A-Za-z]))",
    "mark": f"[{_MARKS}]",
    "zero_width": (
        f"[{_INVISIBLE}]|\ufeff(?<=..)|[\u200b\u200c](?<![{_SHAPED}].)|\u200d(?<![{_SHAPED}{_EMOJI}].)"
        r"|"
        "\u00ad"
        r"(?:(?<!\w.)|(?!\w))"  # a soft hyphen is not hidden inside a word, where it marks a possible break
    ),
    "tag": "[\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]",
    "variation_selector": f"(?!{_KNOWN_VARIANTS})[{_SELECTORS}]",
}
_HIDDEN: Final = compile_later("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()), re.DOTALL)
_IGNORABLE_CLASS: Final = (
    f"\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff{_MARKS}{_SELECTORS}{_INVISIBLE}"
)
_IGNORABLE: Final = compile_later(f"[{_IGNORABLE_CLASS}]")
# Every character that can be hidden in some context; most texts contain none of them.
_CANDIDATE: Final = compile_later(f"[\0-\x08\x0b\x0e-\x1f\x7f-\x9f{_IGNORABLE_CLASS}]")

_NEVER_HIDDEN: Final = bytes(code for code in range(128) if not _CANDIDATE.match(chr(code)))


def may_hide(text: str) -> bool:
    """Return whether `text` has a character that is hidden in some context; False for most texts."""
    if text.isascii():
        return bool(text.encode().translate(None, _NEVER_HIDDEN))  # many times as fast as the pattern
    return _CANDIDATE.search(text) is not None


def find_hidden(text: str) -> tuple[Kind, ...]:
    """Return the kinds of hidden characters in `text`, in the order of `KINDS`."""
    kinds: set[Kind] = set()
    for kind, _ in _find_matches(text):
        kinds.add(kind)
        if len(kinds) == len(KINDS):
            break
    return tuple(kind for kind in KINDS if kind in kinds)


def hidden_defects(text: str) -> tuple[Defect, ...]:
    """Return the defects of an agent's note with this text."""
    if not (kinds := find_hidden(text)):
        return ()
    advice = "the note has characters that its readers don't see; `memex get` in a terminal shows them as \\u{…}"
    return (Defect(DEFECT, f"{', '.join(kinds)}: {advice}"),)


def format_escape(character: str) -> str:
    r"""Return one character in the form ``\u{202e}``."""
    return f"\\u{{{ord(character):x}}}"


def escape_hidden(text: str, escape: Callable[[str], str] = format_escape) -> str:
    r"""Replace each hidden character of `text` with the result of `escape`, by default in the form ``\u{202e}``."""
    # Repeat it, because a joiner becomes hidden when the character before it is escaped.
    while spots := [spot for _, spot in _find_matches(text)]:
        parts, at = [], 0
        for spot in spots:
            parts += [text[at:spot], escape(text[spot])]
            at = spot + 1
        text = "".join([*parts, text[at:]])
    return text


def remove_ignorable(text: str) -> str:
    """Remove the characters that programs may ignore, according to Unicode, when they compare or display text."""
    return _IGNORABLE.sub("", text)


def _find_matches(text: str) -> Iterator[tuple[Kind, int]]:
    """Yield the kind and the position of each hidden character."""
    at, line_end, right_to_left = 0, 0, False
    while candidate := _CANDIDATE.search(text, at):
        match = _HIDDEN.match(text, candidate.start())
        at = match.end() if match else candidate.end()
        if match is None or match.lastgroup == "flag":
            continue
        if match.lastgroup == "mark":
            if match.start() >= line_end:
                line = text.rfind("\n", 0, match.start()) + 1
                line_end = text.find("\n", match.end())
                line_end = len(text) if line_end < 0 else line_end
                right_to_left = _RIGHT_TO_LEFT.search(text, line, line_end) is not None
            if right_to_left:
                continue
        yield _KIND_BY_GROUP[match.lastgroup or ""], match.start()
