"""Find, remove and rename the relations that a line of a note states: inline fields with links.

A line is a field if it reads `type:: [[Target]]`, in a list or not; elsewhere in a line, `[type:: [[Target]]]` is one.

Laws, tested: time is linear in the line, whatever it holds; text outside the field stays unchanged."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from index.deferred_patterns import compile_later, possessive
from index.model import Statement
from syncd.notes.inline_syntax import scan

LONGEST = 100  # characters of a type
NESTED = 20  # most fields inside each other of which targets are removed: each costs a reading of the line
# Characters that a type can't contain, because they have another meaning.
UNTYPED = compile_later(r"::|[\[\]`]|%%|<!--|:\Z")

_MARK = r"[ \t>]*+((?:[-+*]|[0-9]{1,9}[.)])[ \t]++)?"
_LEAD = compile_later(_MARK)
_LINE = compile_later(_MARK + r"([^\[\]`]{1,300}?)::")
_INNER = possessive(r"[^\[\]]++|\[\[[^\[\]]*+\]\]", "*")
_BRACKET = compile_later(r"\[([^\[\]`]{1,300}?)::(" + _INNER + r")\]")
_BETWEEN = " \t,;、，"  # characters between the targets of a field
_SEPARATOR = compile_later(r"[ \t]*[,;、，][ \t]*|[ \t]++")


@dataclass(frozen=True, slots=True)
class FieldTarget:
    """Describes a link of a field, `line[start:end]`, and the relation that it states."""

    start: int
    end: int
    says: Statement


@dataclass(frozen=True, slots=True)
class InlineField:
    """Describes a field, `line[start:end]`; its type is `line[key[0]:key[1]]`, and its value `line[value[0]:value[1]]`."""

    start: int
    end: int
    key: tuple[int, int]
    value: tuple[int, int]
    targets: tuple[FieldTarget, ...]
    whole: bool  # the line contains nothing but the field, and its value nothing but the targets


def find_fields(line: str) -> list[InlineField]:
    """Return the fields with links of a line (without its line end), in order. Code and comments are skipped."""
    if "::" not in line or "[[" not in line:
        return []
    if brackets := list(_BRACKET.finditer(line)):
        links = _find_links(line, 0)
        if bracketed := [field for match in brackets if (field := _parse_field(line, match, links))]:
            return bracketed  # then the line itself is not a field, as in other programs that read inline fields
    match = _LINE.match(line)
    field = _parse_field(line, match, _find_links(line, match.end())) if match else None
    return [field] if field else []


def change_type(line: str, which: Callable[[Statement], bool], type: str) -> str:
    """Return `line` with the type changed of those fields whose targets are all among `which`."""
    keys = (field.key for field in find_fields(line) if all(which(target.says) for target in field.targets))
    return _replace_spans(line, [(start, end, type) for start, end in keys])


def remove_targets(line: str, gone: Callable[[Statement], bool], *, keep: bool = False) -> str | None:
    """Return `line` without the targets that are `gone`; None when nothing is left.

    If the line has other words, or with `keep`, a field without targets left loses only its type, and the links stay. Of fields
    inside each other, as in `a:: [a:: [[X]]]`, at most `NESTED` lose their targets."""
    for _ in range(NESTED):
        left = _remove_outer_targets(line, gone, keep=keep)
        if left is None or left == line:
            return left
        line = left
    return line


def _remove_outer_targets(line: str, gone: Callable[[Statement], bool], *, keep: bool) -> str | None:
    """Return `line` without the targets that it states now; a field around a removed one may state its link next."""
    changes = []
    for field in find_fields(line):
        kept = [target.start for target in field.targets if not gone(target.says)]
        if kept:
            out = (target for target in field.targets if gone(target.says))
            changes += [(*_target_span(line, target, last=kept[-1] < target.start), "") for target in out]
        elif field.whole and not keep:
            return None
        else:
            changes += [(field.start, field.value[0], ""), (field.value[1], field.end, "")]
    return _replace_spans(line, changes)


def line_prefix(line: str) -> str:
    """Return the beginning for another line of the same list or quote, without the list mark."""
    return line[: len(line) - len(line.lstrip(" \t>"))]


def is_list_item(line: str) -> bool:
    """Return whether `line` is a list item."""
    return bool((lead := _LEAD.match(line)) and lead[1])


def _parse_field(line: str, match: re.Match[str], links: list[tuple[int, int, str]]) -> InlineField | None:
    """Return the field of a match of `_LINE` or `_BRACKET`."""
    bracket = match[0].endswith("]")  # a match of `_LINE` ends in "::"
    group = 1 if bracket else 2
    start, end = match.span(group)
    key = match[group]
    type = unicodedata.normalize("NFC", key.strip())
    row = not bracket and not match[1] and type.startswith("|")  # a table row
    inside = match.end(group), match.end(2) if bracket else len(line)
    inner = links[bisect_left(links, inside[0], key=itemgetter(0)) : bisect_left(links, inside[1], key=itemgetter(0))]
    targets = tuple(FieldTarget(first, behind, Statement(type, target)) for first, behind, target in inner)
    if row or not targets or not 0 < len(type) <= LONGEST or UNTYPED.search(type):
        return None
    named = (start + len(key) - len(key.lstrip()), end - len(key) + len(key.rstrip()))
    # In `a:: b:: [[X]]` the value begins after the last `::`; otherwise removing `a::` would leave the field `b:: [[X]]`.
    first, behind = line.rindex("::", named[1], targets[0].start) + 2, inside[1]
    text = line[first:behind]
    value = first + len(text) - len(text.lstrip(" \t")), behind
    between = _replace_spans(text, [(target.start - first, target.end - first, "") for target in targets])
    plain = not between.strip(_BETWEEN)
    if not bracket:
        return InlineField(named[0], len(line), named, value, targets, plain)
    alone = _LEAD.fullmatch(line, 0, match.start()) is not None and not line[match.end() :].strip()
    return InlineField(*match.span(), named, value, targets, plain and alone)


def _find_links(line: str, start: int) -> list[tuple[int, int, str]]:
    """Return the wikilinks from `start` on: start, end and path of each."""
    links = ((start + at, link) for at, link in scan(line[start:]).links if link.kind == "wikilink" and link.target)
    return [(at, line.index("]]", at) + 2, link.target) for at, link in links]


def _target_span(line: str, target: FieldTarget, *, last: bool) -> tuple[int, int]:
    """Return the span of a target with the separator after it; with `last`, with the one before it."""
    start, end = target.start, target.end
    if not last:
        after = _SEPARATOR.match(line, end)
        return start, after.end() if after else end
    while line[start - 1] in _BETWEEN:
        start -= 1
    return start, end


def _replace_spans(line: str, changes: Sequence[tuple[int, int, str]]) -> str:
    """Return `line` with the text in these spans replaced; the spans are in order."""
    parts, at = [], 0
    for start, end, text in changes:
        parts += [line[at:start], text]
        at = end
    return "".join([*parts, line[at:]])
