"""Find secrets in a text by patterns, name their kinds, and redact or mask them.

Only text around long words is searched, because every secret is a long word: prose costs almost nothing. Laws,
tested: any 100 KB of text take less than a tenth of a second; no result contains a character of a secret."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from index.deferred_patterns import compile_later
from index.document_ids import sha256
from index.errors import InvalidArgument
from index.model import Defect
from syncd.notes.secret_rules.credential_formats import ASSIGNMENTS, FORMATS, CredentialFormat, compile_assignment
from syncd.notes.secret_rules.value_randomness import is_placeholder, is_sequence, looks_random
from syncd.vault.path_rules import is_note

DEFECT: Final = "secret"
ASSIGNED: Final = "assigned-secret"
_SHORTEST: Final = 12  # length from which a word may be a secret
_BEFORE: Final = 64  # characters before such a word that may name its kind
_JUDGED: Final = 256  # characters of a value that are judged
_WORD: Final = b"a" * _SHORTEST
# Characters of long words: letters, digits, and characters that join them in addresses, names and base64.
_IN_WORDS: Final = (
    bytes(97 if chr(code).isalnum() or chr(code) in "+/=_-.:~%$@!&#^*" else 32 for code in range(128)) + b" " * 128
)
_KEY_HEAD: Final = "PRIVATE KEY"
_KEY_END: Final = "-----END"
_KEY_LENGTH: Final = 32 * 1024  # most characters between the two lines of a private key
_STOPS: Final = ".:!?*_~"  # at the end of a value these belong to the sentence
_LARGEST: Final = 5_000_000  # bytes of a searched file that is not a note
_GIT_LOOKS: Final = 8_000  # bytes in which Git looks for a NUL byte
_ESCAPE: Final = compile_later(r"\\(?=[_.~+=-])")  # before a character of secrets, as Markdown editors write it
_PASSWORD_WORDS: Final = frozenset(["password", "passwd", "pass", "pwd", "secret", "token"])


class Secret(NamedTuple):
    """Describes a secret in a text: its start, its end and its kind."""

    start: int
    end: int
    kind: str


class _Rule(NamedTuple):
    """Holds the patterns of a row: its head, if it is searched on its own, and for each hint it and its body."""

    format: CredentialFormat
    head: re.Pattern[str] | None
    bodies: tuple[re.Pattern[str], ...]


def _compile_rule(row: CredentialFormat) -> _Rule:
    """Return the patterns of a row; each body begins with its hint, because `re` finds a fixed text fastest."""
    bodies = []
    for hint in map(re.escape, row.hints):
        behind = "" if row.varies else f"(?<=(?-i:{row.head}){hint})"
        bodies.append(compile_later(f"{hint}{behind}(?P<body>{row.body})", re.IGNORECASE if row.folds else 0))
    return _Rule(row, compile_later(rf"{row.head}\Z") if row.varies else None, tuple(bodies))


_RULES: Final = tuple(map(_compile_rule, FORMATS))
KINDS: Final = tuple(dict.fromkeys([row.kind for row in FORMATS] + [ASSIGNED]))


# Hints that occur in many addresses or may have capitals; all other hints are found in one search.
_OTHER_HINTS: Final = ("://", "accountkey", "sharedaccesskey")


def _match_hints(hints: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of all hints, grouped by first character: several times faster than plain alternatives."""
    by_first: dict[str, list[str]] = {}
    for hint in hints:
        by_first.setdefault(hint[0], []).append(re.escape(hint[1:]))
    return compile_later("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in by_first.items()))


_HINTS: Final = _match_hints(hint for row in FORMATS for hint in row.hints if hint not in (*_OTHER_HINTS, _KEY_HEAD))


# Ids made of a kind of lookup and a digest of at most SHA-1's length, as one word: they are not credentials.
# A longer prefix may be the name of a real key, and a longer value may be a key.
_LOOKUP_KEY: Final = compile_later(
    r"(?<![A-Za-z0-9_-])(?:sess|session|cache|dedup|idempotency)[-_]key:[0-9a-f]{12,40}\Z"
)
_LABEL: Final = 16  # characters before "key" in such an id


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the kinds of the secrets in `text`."""
    kinds = {secret.kind for secret in locate_secrets(text)}
    return tuple(kind for kind in KINDS if kind in kinds)


def is_searched(path: str, size: int) -> bool:
    """Return whether secrets are looked for in a file of `size` bytes: in every note, and in other files that are not large."""
    return is_note(path) or size <= _LARGEST


def readable_text(path: str, raw: bytes) -> str:
    """Return the text of a file in which secrets are looked for; "" = it is binary, as Git decides. A note always is a text."""
    return "" if b"\0" in raw[:_GIT_LOOKS] and not is_note(path) else raw.decode("utf-8", "replace")


def redact(text: str) -> str:
    """Return `text` with each secret replaced by the name of its kind."""
    return _replace(text, lambda secret, _: f"[{secret.kind}]")


def redact_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return JSON `values` with all texts redacted, for errors that callers see and jobs keep."""

    def redact_value(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, dict):
            return {name: redact_value(inner) for name, inner in value.items()}
        return [redact_value(inner) for inner in value] if isinstance(value, list | tuple) else value

    return {name: redact_value(value) for name, value in values.items()}


def mask(text: str) -> str:
    """Return `text` redacted, with eight digits of each secret's digest, so that two names stay different.

    The digest has no key: eight digits don't help anybody to guess a random value."""

    def label(secret: Secret, value: str) -> str:
        digest = sha256(value.encode("utf-8", "surrogatepass"))
        return f"[{secret.kind} {digest[:8]}]"

    return _replace(text, label)


def refuse_secret(field: str, name: str) -> None:
    """Raise InvalidArgument for a name that contains a secret: names reach files, Git and logs, texts do not."""
    if kinds := find_secrets(name):
        raise InvalidArgument(
            f"{field} seems to hold a secret ({kinds[0]}), and names are stored in files, Git and logs; choose another name",
            field=field,
        )


def locate_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text in order, without overlaps; overlapping ones get the kind listed first in the table.

    A secret is also found if its punctuation has Markdown escapes."""
    secrets = _locate_unescaped(text)
    escapes = [match.start() - n for n, match in enumerate(_ESCAPE.finditer(text))] if "\\" in text else []
    if escapes:
        secrets += [
            Secret(start + bisect_left(escapes, start), end + bisect_right(escapes, end - 1), kind)
            for start, end, kind in _locate_unescaped(_ESCAPE.sub("", text))
        ]
    return _join_overlaps(secrets)


def _locate_unescaped(text: str) -> list[Secret]:
    """Return the secrets of a text as it is written; they may overlap."""
    windows = list(_find_windows(text))
    if not windows and _KEY_HEAD not in text:
        return []
    near = "\n".join(text[start:end] for start, end in windows)
    low = near.lower()
    hints = {*_HINTS.findall(near), *(hint for hint in _OTHER_HINTS if hint in low), _KEY_HEAD}
    rules = [rule for rule in _RULES if not hints.isdisjoint(rule.format.hints) and rule.format.needs in text]
    secrets = [secret for rule in rules for secret in _find_format(rule, text, windows)]
    assignments = [(word, compile_assignment(word)) for word in ASSIGNMENTS if word in low]
    if assignments:
        secrets += [secret for window in windows for secret in _find_assigned(text, window, assignments)]
    return secrets


def secret_defects(text: str) -> tuple[Defect, ...]:
    """Return the defects of an agent's note with this text."""
    advice = "the note seems to hold a secret: remove it from the note, and revoke it where it is valid"
    return tuple(Defect(DEFECT, f"{rule}: {advice}") for rule in find_secrets(text))


def list_flagged(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the paths with secrets and their kinds, from all (path, defect text) pairs."""
    mark = f"{DEFECT}: "
    return [
        {"path": path, "rule": defect.removeprefix(mark).partition(":")[0]}
        for path, defect in pairs
        if defect.startswith(mark)
    ]


def _replace(text: str, label: Callable[[Secret, str], str]) -> str:
    parts, at = [], 0
    for secret in locate_secrets(text):
        parts += [text[at : secret.start], label(secret, text[secret.start : secret.end])]
        at = secret.end
    return "".join([*parts, text[at:]]) if parts else text


def _find_windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of long words with the text before them; adjacent spans are joined."""
    shape = text.encode("ascii", "replace").translate(_IN_WORDS)
    start, end = -1, -1
    at = shape.find(_WORD)
    while at >= 0:
        after = shape.find(b" ", at + _SHORTEST)
        after = len(shape) if after < 0 else after
        if end < 0 or at - _BEFORE > end:
            if end >= 0:
                yield start, end
            start = max(0, at - _BEFORE)
        end = after
        at = shape.find(_WORD, after)
    if end >= 0:
        yield start, end


def _find_format(rule: _Rule, text: str, windows: Iterable[tuple[int, int]]) -> Iterator[Secret]:
    """Yield the secrets of one row of the table, wherever one of its hints occurs."""
    if rule.format.kind == "private-key":
        yield from _find_private_keys(rule, text)
        return
    for body in rule.bodies:
        group = "value" if "value" in body.groupindex else "body"
        place = _search(rule, body, text, 0)
        for start, end in windows:
            if place and place[0].start() < start:
                place = _search(rule, body, text, start)
            while place and place[0].start() < end:
                match, head = place
                if _is_secret(rule.format, match[group][:_JUDGED]):
                    yield Secret(match.start(group) if group == "value" else head, match.end(group), rule.format.kind)
                place = _search(rule, body, text, match.end())


def _search(rule: _Rule, body: re.Pattern[str], text: str, at: int) -> tuple[re.Match[str], int] | None:
    """Return the next match of a hint with its body from `at` on, and the start of its head."""
    while match := body.search(text, at):
        start = max(0, match.start() - rule.format.before)
        if rule.head is None:
            return match, start
        if head := rule.head.search(text, start, match.start()):
            return match, head.start()
        at = match.start() + 1
    return None


def _is_secret(row: CredentialFormat, value: str) -> bool:
    if row.kind == "url-password":
        return value.lower() not in _PASSWORD_WORDS and value[0] not in "$[" and not is_placeholder(value)
    return not row.random or looks_random(value)


def _find_private_keys(rule: _Rule, text: str) -> Iterator[Secret]:
    """Yield private keys with everything between their two lines."""
    close = 0
    place = _search(rule, rule.bodies[0], text, 0)
    while place:
        match, start = place
        end = match.end()
        if close >= 0:
            close = close if close >= end else text.find(_KEY_END, end)
            if 0 <= close <= end + _KEY_LENGTH:
                line = text.find("\n", close)
                end = len(text) if line < 0 else line
        yield Secret(start, end, rule.format.kind)
        place = _search(rule, rule.bodies[0], text, end)


def _find_assigned(
    text: str, window: tuple[int, int], assignments: Iterable[tuple[str, re.Pattern[str]]]
) -> Iterator[Secret]:
    """Yield random values that a name or a header marks as secret."""
    # In lower case with equal offsets: one character would become two.
    start, low = window[0], text[slice(*window)].replace("\u0130", "i").lower()
    for word, pattern in assignments:
        at = low.find(word)
        while at >= 0:
            match = pattern.match(text, start + at)
            if match:
                value = match["value"].rstrip(_STOPS)
                if word == "key" and _LOOKUP_KEY.search(text, max(0, start + at - _LABEL), match.end("value")):
                    pass  # an id that contains a digest
                elif len(value) >= _SHORTEST and looks_random(value[:_JUDGED]) and not is_sequence(value[:_JUDGED]):
                    yield Secret(match.start("value"), match.start("value") + len(value), ASSIGNED)
            at = low.find(word, max(at + 1, match.end() - start if match else 0))


def _join_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    joined: list[Secret] = []
    for secret in sorted(secrets):
        last = joined[-1] if joined else None
        if last is None or secret.start >= last.end:
            joined.append(secret)
        else:
            kind = min(last.kind, secret.kind, key=KINDS.index)
            joined[-1] = Secret(last.start, max(last.end, secret.end), kind)
    return joined
