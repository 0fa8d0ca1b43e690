"""Find links in Markdown with schemes other than those of the web, mail and notes, and remove their targets.

Laws, tested: `drop_forbidden` does not change a text without such links; bare addresses stay. Schemes are recognized
as a browser does: entities are decoded, control characters and blanks are ignored. Code is searched like other text,
so more links are found than a click can follow."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from index.deferred_patterns import possessive
from index.model import Defect

DEFECT: Final = "unsafe-link"
ALLOWED: Final = frozenset({"http", "https", "mailto"})
NOWHERE: Final = "#"  # the replacement of a removed target: the note itself
LONGEST: Final = 250  # characters of a target within which its scheme must end
HOST: Final = "//"  # reported instead of a scheme for a link to a host or share without a scheme
UNCLEAR: Final = "?"  # reported instead of a scheme that is too long
NAME: Final = 32  # most characters of a reported scheme
MOST: Final = 10  # most schemes that are reported for one text

_BLANKS: Final = " \t\n\r\v\f"  # these end a target; other white space is part of it
_GAP: Final = r"[ \t\n\r\v\f>]*+"  # white space, also across a line end in a quote
_WORD: Final = re.compile(rf"[^ \t\n\r\v\f]{{0,{LONGEST + 1}}}")
_BRACKETED: Final = re.compile(rf"[^<>\n]{{0,{LONGEST + 1}}}")
_INLINE: Final = re.compile(rf"\]\({_GAP}(<?)")
_LABEL: Final = possessive(r"[^\[\]\\]|\\.", "{1,999}")
_DEFINITION: Final = re.compile(
    rf"^[ \t>]*+(?:(?:[-*+]|\d{{1,9}}[.)])[ \t][ \t>]*+){{0,20}}\[(?!\^){_LABEL}\]:{_GAP}(<?)",
    re.MULTILINE | re.DOTALL,
)
_AFTER_INLINE: Final = re.compile(rf"{_GAP}[)\"'(]|\Z")
_AFTER_DEFINITION: Final = re.compile(r"[ \t]*(?:[\r\n\"'(]|\Z)")
_LINKS: Final = ((_INLINE, _AFTER_INLINE), (_DEFINITION, _AFTER_DEFINITION))
_RUN: Final = re.compile(r"[^\x00-\x20>]++>?")  # an autolink has no white space
_AUTOLINK_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,31}):")
_TAG: Final = re.compile(r"[A-Za-z]")
_AUTOLINK: Final = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}):[^\x00-\x20<>]*+>")
_QUOTED_LINE: Final = re.compile(r"\n[ \t>]*")
_ATTRIBUTE: Final = re.compile(r"(?:href|src|srcset|action)[\s>]*+=[\s>]*+([\"']?)", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_HOST: Final = re.compile(
    r"\s*(?:/\s*/|\\)"
)  # a host without a scheme, or a share of Windows, to which a click logs in
# Addresses of files and commands that Obsidian follows without a link around them, in the editor and in properties.
_BARE: Final = re.compile(r"(?<![\w+.-])(file|obsidian|smb)://", re.IGNORECASE)
_SCHEME_BEGUN: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*)?(?:&[#\w]*)?")
_ESCAPE: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
# Control characters, blanks and zero-width characters: browsers ignore some of them, and no address needs one.
_IGNORED: Final = (
    "\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff"
)
_PASSED_OVER: Final = re.compile(f"[{_IGNORED}]")
# The beginning of a target that may be a scheme or a host, and the character after it. To decode the entities of whole targets
# would take seconds for a short text in which each `](` begins one, such as `](&](&`.
_DECISIVE: Final = re.compile(possessive(rf"[\w#+.\-/\\{_IGNORED}]|&[#\w]*+;?", "*") + ".?", re.DOTALL)


def is_allowed(target: str) -> bool:
    """Return whether a link may lead to `target`, given as written in Markdown or HTML."""
    return not _forbidden_scheme(target)


def find_unsafe(text: str) -> tuple[str, ...]:
    """Return the schemes of the links that are not allowed, in alphabetical order, at most MOST of them."""
    schemes = {match[1].lower() for match in _BARE.finditer(text)}
    for pattern, after in _LINKS:
        schemes.update(_forbidden_scheme(text[start:end]) for start, end in _forbidden_targets(text, pattern, after))
    schemes.update(_forbidden_scheme(_attribute_value(text, match)) for match in _ATTRIBUTE.finditer(text))
    schemes.update(match[1].lower() for match in _AUTOLINK.finditer(text))
    return tuple(sorted(schemes - ALLOWED - {""}))[:MOST]


def link_defects(text: str) -> tuple[Defect, ...]:
    """Return the defects to report to the owner of an agent's note with this text."""
    if not (schemes := find_unsafe(text)):
        return ()
    advice = "the note contains links that may open files or programs: check the target before you follow a link"
    return (Defect(DEFECT, f"{', '.join(schemes)}: {advice}"),)


def drop_forbidden(text: str) -> str:
    """Replace the forbidden targets in `text` with NOWHERE, and escape the `<` of forbidden tags and autolinks.

    Nothing else changes, so the structure of the lines stays."""
    for pattern, after in _LINKS:
        parts, at = [], 0
        for start, end in _forbidden_targets(text, pattern, after):
            parts += [text[at:start], NOWHERE]
            at = end
        text = "".join([*parts, text[at:]])
    tags = any(not is_allowed(_attribute_value(text, match)) for match in _ATTRIBUTE.finditer(text))
    return _RUN.sub(lambda match: _escape_openings(match[0], tags=tags) if "<" in match[0] else match[0], text)


def _forbidden_scheme(target: str) -> str:
    """Return the forbidden scheme of `target`; "" when a link may lead there."""
    if _HOST.match(target) is None and ":" not in target and "&" not in target and len(target) <= LONGEST:
        return ""
    decisive = _DECISIVE.match(target, 0, LONGEST)
    assert decisive is not None, "it matches any text"
    plain = _PASSED_OVER.sub("", _ESCAPE.sub("", html.unescape(decisive[0])))
    if _HOST.match(plain):
        return HOST
    if scheme := _SCHEME.match(plain):
        name = scheme[1].lower()
        return "" if name in ALLOWED else name if len(name) <= NAME else UNCLEAR
    is_cut = len(target) > LONGEST == decisive.end()
    return UNCLEAR if is_cut and _SCHEME_BEGUN.fullmatch(plain) else ""


def _forbidden_targets(text: str, pattern: re.Pattern[str], after: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each forbidden target that follows a match of `pattern`."""
    behind = 0
    for match in pattern.finditer(text):
        start, bracketed = match.end(), bool(match[1])
        longest = (_BRACKETED if bracketed else _WORD).match(text, start)
        if start < behind or longest is None or is_allowed(longest[0]):
            continue
        end = _target_end(text, start, bracketed=bracketed)
        whole = end - start <= LONGEST
        if is_allowed(text[start:end]) or (whole and not bracketed and not after.match(text, end)):
            continue  # allowed, or text that only begins like a link, such as `run[i](x: int)`
        yield start, end
        behind = end


def _target_end(text: str, start: int, *, bracketed: bool) -> int:
    """Return the end of the target that begins at `start`: its bracket, or white space or the link's closing parenthesis."""
    depth, at = 0, start
    while at < len(text) and at - start <= LONGEST:
        character = text[at]
        if character == "\\":
            at += 1
        elif bracketed:
            if character in "<>\n":
                break
        elif character in _BLANKS or (character == ")" and not depth):
            break
        depth += (character == "(") - (character == ")")
        at += 1
    return min(at, len(text))


def _attribute_value(text: str, match: re.Match[str]) -> str:
    """Return the value of an attribute, quoted or not; it is too long if the end of the value is unclear."""
    value = _QUOTED_LINE.sub("", text[match.end() : match.end() + 2 * LONGEST])
    return value.partition(match[1])[0] if match[1] else re.split(r"[\s>]", value, maxsplit=1)[0]


def _escape_openings(run: str, *, tags: bool) -> str:
    """Escape each `<` of a text without blanks that begins an autolink with a forbidden scheme and, with `tags`, any tag.

    An autolink contains no `<`, so that one before it becomes an autolink when the `<` of this one is escaped."""
    pieces = run.split("<")
    is_open = run.endswith(">")
    for at in range(len(pieces) - 1, 0, -1):
        scheme = _AUTOLINK_SCHEME.match(pieces[at]) if is_open else None
        escaped = scheme[1].lower() not in ALLOWED if scheme else tags and _TAG.match(pieces[at]) is not None
        is_open = is_open and escaped
        pieces[at] = ("&lt;" if escaped else "<") + pieces[at]
    return "".join(pieces)
