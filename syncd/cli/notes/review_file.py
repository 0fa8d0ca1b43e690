"""Compose the review file, which lists the waiting captures for an editor, and parse the saved file.

Laws, tested: an unchanged file decides nothing; a file with a mistake decides nothing; text of a capture can't be read
as a line with a decision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from index.errors import InvalidArgument
from syncd.cli.terminal import result_text

Word: TypeAlias = Literal["keep", "approve", "dismiss"]
WORDS: Final[tuple[Word, ...]] = ("keep", "approve", "dismiss")
OTHER_WORDS: Final[Mapping[str, Word]] = {"k": "keep", "a": "approve", "d": "dismiss"}
ROOT: Final = "/"  # stands for the root of the vault in the file
CHANGE: Final = "change"  # the type of a capture that proposes a change of a note
ARROW: Final = "->"
TAKE: Final = "+"  # begins a line with a suggestion that the note gets
LONGEST: Final = 300  # most characters of a suggestion
SHOWN: Final = 5  # most mistakes in one message
_LINE: Final = re.compile(r"(\S+)\s+(\S+)(?:\s(.*))?")
HEAD: Final = """\
# {count} wait for a decision. Change the first word of a line, save the file and close it:
#   keep     (k)  leave the capture waiting
#   approve  (a)  move it into your vault, into the folder after the arrow; you may change that ("/" = the vault itself)
#   dismiss  (d)  move it to the archive; `memex unarchive` brings it back
# To add a suggested tag or link to the note of a line with "approve", remove the "#" before its "+".
# A line that you delete leaves its capture waiting. If Memex can't read a line, it changes nothing.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """Describes the decision on one capture; `folder`: None = its properties, the rules or the settings decide."""

    path: str
    word: Word
    folder: str | None
    taken: tuple[str, ...] = ()  # suggested tags and links that the note gets


def compose_file(waiting: Sequence[Mapping[str, Any]]) -> str:
    """Compose the file for these captures, with the decision `keep` for each."""
    parts = [HEAD.format(count=f"{len(waiting):,} capture{'s' * (len(waiting) != 1)}")]
    for name, capture in _by_name(waiting).items():
        title = _title(capture)
        parts.append(f"\nkeep {name}  {_text(capture)}\n")
        summary = result_text.line(str(capture["summary"] or ""), 140)
        if summary and not summary.startswith(title.rstrip("…")):
            parts.append(f"#   {summary}\n")
        if capture["type"] == CHANGE:
            parts.append("#   an agent proposes a change of a note: approve applies it, and `memex review` shows it\n")
        if problem := result_text.line(str(capture["problem"] or ""), 200):
            parts.append(f"#   problem: {problem}\n")
        parts += [f"#   {TAKE} {shown}\n" for shown in _by_text(capture)]
    return "".join(parts)


def _by_name(waiting: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the captures by their names in the file: the id, with a number if another capture has the same id."""
    seen: Counter[str] = Counter()
    named = {}
    for capture in waiting:
        seen[capture["id"]] += 1
        number = seen[capture["id"]]
        named[capture["id"] if number == 1 else f"{capture['id']}/{number}"] = capture
    return named


def _text(capture: Mapping[str, Any]) -> str:
    """Return the text after the name of a capture: its title, and the whole folder, so that a person can edit it."""
    folder = _folder(capture)
    shown = " ".join(result_text.sanitize(folder).splitlines())
    return _title(capture) + (f"  {ARROW} {shown}" if folder else "")


def _title(capture: Mapping[str, Any]) -> str:
    return result_text.line(str(capture["title"]), 70).replace(ARROW, "→")


def _folder(capture: Mapping[str, Any]) -> str:
    return capture["goal"] or ""


def list_suggestions(capture: Mapping[str, Any]) -> list[str]:
    """Return the suggested tags and links of a capture."""
    lists = [values for kind in ("tags", "links") if isinstance(values := capture[f"suggested_{kind}"], list)]
    return [str(name) for values in lists for name in values]


def _by_text(capture: Mapping[str, Any]) -> dict[str, str]:
    """Return the suggestions of a capture by their texts in the file."""
    return {result_text.line(name, LONGEST): name for name in list_suggestions(capture)}


def parse_file(text: str, waiting: Sequence[Mapping[str, Any]]) -> list[Decision]:
    """Return the decisions in a file with these captures, in its order, without `keep`.

    Raises InvalidArgument that names the lines with mistakes."""
    captures, decisions, mistakes, last = _by_name(waiting), dict[str, Decision](), list[str](), ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith(TAKE):
            mistake = _take(line.removeprefix(TAKE).strip(), last, captures, decisions)
        else:
            last, mistake = _decide(line, captures, decisions)
        mistakes += [f"line {number}: {mistake}"] if mistake else []
    if mistakes:
        more = f"; and {len(mistakes) - SHOWN} more" if len(mistakes) > SHOWN else ""
        raise InvalidArgument(f"the file can't be read, so nothing was changed: {'; '.join(mistakes[:SHOWN])}{more}")
    return [decision for decision in decisions.values() if decision.word != "keep"]


def _decide(line: str, captures: Mapping[str, Mapping[str, Any]], decisions: dict[str, Decision]) -> tuple[str, str]:
    """Read a line with a decision; return the name of its capture, "" for none, and what is wrong with it, "" for nothing."""
    match = _LINE.fullmatch(line)
    text = match[1].casefold() if match else ""
    word = next((known for known in WORDS if known == OTHER_WORDS.get(text, text)), None)
    if match is None or word is None:
        return "", f"a line begins with keep, approve or dismiss, and not with {line[:20]!r}"
    name = match[2]
    if name not in captures:
        return "", f"no capture in this file has the id {name[:40]!r}"
    if name in decisions:
        return "", f"the capture {name} has a line above already"
    capture, rest = captures[name], (match[3] or "").strip()
    _, _, changed = rest.partition(ARROW)
    if rest == _text(capture).strip():
        folder = "" if capture["by"] == "rule" else _folder(capture)  # a rule may also choose the name
    else:
        folder = changed.strip()
    decisions[name] = Decision(capture["path"], word, "" if folder == ROOT else folder or None)
    return name, ""


def _take(text: str, name: str, captures: Mapping[str, Mapping[str, Any]], decisions: dict[str, Decision]) -> str:
    """Add a suggestion to the decision on the capture above its line, `name`; return what is wrong with it, "" for nothing."""
    suggestion = _by_text(captures[name]).get(text) if name else None
    if suggestion is None:
        return f"the capture above has no suggestion {text[:40]!r}"
    decision = decisions[name]
    if decision.word != "approve":
        return f"only a capture with approve gets {text[:40]!r}"
    decisions[name] = replace(decision, taken=(*decision.taken, suggestion))
    return ""
