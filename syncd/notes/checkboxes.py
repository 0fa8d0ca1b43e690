"""Write proposals as checkboxes in a note, and read back which ones a person ticked, however the note has changed.

Laws, tested: only the box of a list item that ends in the id of a proposal counts, never one in code, a quote or a
comment; an ambiguous line is ignored; writing the outcome changes that line and no other byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from syncd.notes.front_matter import split
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.quoted_text import quote_inline

Answer: TypeAlias = Literal["accepted", "dismissed"]

# Between two list marks, all blanks belong to the first: if they could be shared out, a row of marks would take exponential time.
_BOX: Final = re.compile(r"(?:[ \t]*+(?:[-+*]|[0-9]{1,9}[.)])[ \t]++)+\[(.)\](?=[ \t])")
_ID: Final = re.compile(r"(?<!\S)\^p-([0-9a-f]{16})(?!\S)", re.IGNORECASE)
_HIDING: Final = re.compile(r"`|%%|<!--|-->")  # delimiters of code and comments within a line
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
MARKS: Final[Mapping[Answer, str]] = {"accepted": "x", "dismissed": "-"}
_ANSWERS: Final[Mapping[str, Answer]] = {"x": "accepted", "X": "accepted", "-": "dismissed"}


@dataclass(frozen=True, slots=True)
class Checkbox:
    """Describes a box; `start` and `end` are those of its line in the note, without the line end."""

    key: str
    mark: str  # the character in the box
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ProposalOutcome:
    """Describes the outcome of a proposal: what was done, or why nothing was."""

    done: bool
    said: str
    # Another box of the question was ticked, so the outcome is written even if this box was not ticked.
    over: bool = False


def format_checkbox(text: str, key: str) -> str:
    """Format the line of a proposal; `text` is Markdown on one line."""
    return f"- [ ] {text} ^p-{key}"


def find_checkboxes(text: str) -> list[Checkbox]:
    """Return the boxes of a note, in order."""
    if "^p-" not in text and "^P-" not in text:
        return []
    checkboxes = []
    for start, end in _find_task_lines(text):
        line = text[start:end]
        box, ids = _BOX.match(line), list(_ID.finditer(line))
        if box and len({id[1].casefold() for id in ids}) == 1 and not any(_is_hidden(line, id) for id in ids):
            checkboxes.append(Checkbox(ids[0][1].casefold(), box[1], start, end))
    return checkboxes


def _find_task_lines(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each line with a task, without its line end."""
    front, body = split(text)
    starts = [0, *(end.end() for end in _LINE_END.finditer(body))]
    ends = [*(end.start() for end in _LINE_END.finditer(body)), len(body)]
    lines = sorted(set(parse_outline(body).task_lines))
    return [(len(front) + starts[number], len(front) + ends[number]) for number in lines]


def _is_hidden(line: str, id: re.Match[str]) -> bool:
    """Return whether an id may be inside code or a comment."""
    return bool(_HIDING.search(line, 0, id.start()) and _HIDING.search(line, id.end()))


def read_answers(texts: Iterable[str]) -> dict[str, Answer]:
    """Return the answers in these notes by the proposal's key; two different answers count as none."""
    by_key: dict[str, set[Answer]] = {}
    for text in texts:
        for box in find_checkboxes(text):
            if answer := _ANSWERS.get(box.mark):
                by_key.setdefault(box.key, set()).add(answer)
    return {key: choices.pop() for key, choices in by_key.items() if len(choices) == 1}


def mark_checkboxes(text: str, marks: Mapping[str, str]) -> str:
    """Return the note with these characters in the boxes of proposals, by key."""
    for box in reversed(find_checkboxes(text)):
        if mark := marks.get(box.key):
            place = box.start + _BOX.match(text[box.start : box.end]).end(1) - 1  # type: ignore[union-attr]  # a box is a match
            text = text[:place] + mark + text[place + 1 :]
    return text


def write_outcomes(text: str, outcomes: Mapping[str, ProposalOutcome], day: str) -> str:
    """Write outcomes into the lines of their proposals, in the format of the Tasks plug-in, and remove the ids there.

    Where nothing was done, only ticked boxes get the outcome, and boxes whose question was answered by another box."""
    for box in reversed(find_checkboxes(text)):
        outcome = outcomes.get(box.key)
        if outcome is None or not (outcome.done or outcome.over or _ANSWERS.get(box.mark) == "accepted"):
            continue
        line = text[box.start : box.end]
        start, end = next(_ID.finditer(line)).span()
        words = f"– {quote_inline(outcome.said, 300)} {'✅' if outcome.done else '❌'} {day}"
        line = line[:start] + words + _ID.sub("", line[end:])
        mark = _BOX.match(line).end(1)  # type: ignore[union-attr]  # a box is a match
        text = text[: box.start] + line[: mark - 1] + ("x" if outcome.done else "-") + line[mark:] + text[box.end :]
    return text


def write_undone(text: str, message: str, day: str) -> str:
    """Return the note with the done tasks whose outcome is `message` marked as undone."""
    words = f"– {quote_inline(message, 300)}"
    done = re.compile(re.escape(words) + r" ✅ [0-9]{4}-[0-9]{2}-[0-9]{2}")
    if not done.search(text):
        return text
    for start, end in reversed(_find_task_lines(text)):
        line = text[start:end]
        box, outcome = _BOX.match(line), done.search(line)
        if box and box[1] in "xX" and outcome:
            line = f"{line[: outcome.start()]}{words}, undone ❌ {day}{line[outcome.end() :]}"
            text = f"{text[:start]}{line[: box.end(1) - 1]}-{line[box.end(1) :]}{text[end:]}"
    return text
