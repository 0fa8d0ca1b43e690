"""Compose the generated note with a workspace's context, and read what its owner decided in it.

The owner decides by editing: a line that is changed, or moved below "Kept", stays as it is; a line that is deleted, or
struck through, stays out. Memex knows its own lines by their block ids.

Laws, tested: what is read from a note as Memex composed it is no decision; composing the same again gives the same
bytes; every line of the owner is in the next version of the note; text of captures appears as data (`quoted_text`)."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncd.context.note_facts import LONGEST, ContextFact
from syncd.notes.front_matter import FrontmatterError, decode, encode, has_merge_conflict, split
from syncd.notes.quoted_text import link_to, quote_inline

KEPT, CHOSEN, LEFT_OUT = "Kept", "Chosen by Memex", "Left out"
# "{}" stands for the number of tokens.
_CALLOUT: Final = (
    "> [!info] Memex writes this note from captures, and agents get its lines at the start of a session",
    f"> The lines below “{KEPT}” come first, then those that Memex chose, up to {{}} tokens. To keep a line, move it",
    f"> below “{KEPT}” or change it. To leave a line out, delete it or strike it through. Everything here may be read by the",
    "> agents of this workspace.",
)
_TOKENS: Final = re.compile(r"(?<=up to )[\d,]+(?= tokens)")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*\Z")
_TITLE: Final = re.compile(r"# What agents .* know at the start\Z")
_LINE: Final = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?P<body>.*?)(?:[ \t]+\^(?P<mark>c[0-9a-f]{10}))?[ \t]*\Z")
# What a line says, and the date, author and link after it.
_WITH_ORIGIN: Final = re.compile(r"(.*)[ \t]\(\d{4}-\d\d-\d\d.*\)[ \t]*(?:\[\[[^\[\]]*\]\]|“[^“”]*”)?\Z")
_MERGE_MARKS: Final = ("<<<<<<<", "=======", "|||||||", ">>>>>>>")
_STRUCK: Final = re.compile(r"~~(.*)~~\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NoteLine:
    """Holds one line of the note: its whole text in the file, and the id of its fact ("" for a line of the owner's own)."""

    body: str
    mark: str = ""

    @property
    def text(self) -> str:
        """Return what the line says, without the date, the author and the link after it."""
        parts = _WITH_ORIGIN.match(self.body)
        return html.unescape(parts[1] if parts else self.body)

    @property
    def struck(self) -> str | None:
        """Return the line without the marks, if the owner has struck it, or what it says, through; otherwise None."""
        if whole := _STRUCK.match(self.body):
            return whole[1]
        parts = _WITH_ORIGIN.match(self.body)
        inner = _STRUCK.match(parts[1]) if parts else None
        return inner[1] + self.body[inner.end() :] if inner else None


@dataclass(frozen=True, slots=True)
class Decisions:
    """Holds what the owner decided in the note."""

    front: str = ""  # properties that the owner gave the note
    kept: tuple[NoteLine, ...] = ()  # lines that stay as they are, in their order
    left_out: Mapping[str, NoteLine] = field(default_factory=dict)  # by mark: lines that stay out

    @property
    def decided(self) -> frozenset[str]:
        """Return the marks of the facts that are not chosen any more, because their lines are kept or left out."""
        return frozenset((*(line.mark for line in self.kept if line.mark), *(self.left_out or ())))


def line_of(fact: ContextFact) -> NoteLine:
    """Return the line of a fact in the note."""
    marks = [fact.day, quote_inline(fact.author) if fact.author else "", "out of date" if fact.stale else ""]
    marks += ["promoted"] if fact.promoted else []
    link = f"“{quote_inline(fact.title)}”" if fact.promoted else _link_to(fact.path)
    return NoteLine(f"{quote_inline(fact.text, 2 * LONGEST)} ({', '.join(filter(None, marks))}) {link}", fact.mark)


def _link_to(path: str) -> str:
    """Return a link to the note that is shown as one word, because most facts contain the note's name."""
    link = link_to(path)
    return f"{link.partition('|')[0]}|note]]" if link.startswith("[[") else link


def compose_note(workspace: str, tokens: int, facts: Sequence[ContextFact], decisions: Decisions) -> str:
    """Compose the note with these chosen facts."""
    lines = [
        f"# What agents in {quote_inline(workspace)} know at the start",
        "",
        *(line.replace("{}", f"{tokens:,}") for line in _CALLOUT),
        "",
    ]
    struck = [NoteLine(f"~~{line.body}~~", line.mark) for line in decisions.left_out.values()]
    for heading, section in ((KEPT, decisions.kept), (CHOSEN, [line_of(fact) for fact in facts]), (LEFT_OUT, struck)):
        if section or heading == CHOSEN:
            lines += [f"## {heading}", "", *map(_format_line, section), ""]
    return decisions.front + "\n".join(lines)


def has_callout(text: str) -> bool:
    """Return whether the note has the callout with which Memex begins it."""
    return _CALLOUT[0] in text.splitlines()


def read_decisions(
    text: str,
    versions: Sequence[Mapping[str, str]],
    current: Callable[[], Mapping[str, str]] | None = None,
    recorded: Decisions | None = None,
) -> Decisions:
    """Read the owner's decisions.

    `versions`: the lines that Memex wrote last, except those that stay out, by mark. There are several if it is unknown
    which of them reached the disk; a line counts as deleted only if it was in all of them. `current` returns the lines of the facts as they
    are now; they are asked for only if the text differs from the versions. A line with a mark that nobody knows is Memex's, of a fact that is
    gone or that only another device has. `recorded`: the decisions with which the last of several versions was made; what the text does not
    contradict stands."""
    front, body = split(text)
    kept: dict[str, NoteLine] = {}
    left_out: dict[str, NoteLine] = {}
    lines, present = list(_read_lines(body)), set()
    if recorded is None or len(versions) < 2:
        recorded = Decisions()
    for heading, line in lines:
        present.add(line.mark)
        if line.mark and (line.struck is not None or heading == LEFT_OUT):
            if not _is_other(left_out, line := NoteLine(line.struck or line.body, line.mark)):
                left_out[line.mark] = line
            else:
                _keep(kept, NoteLine(f"~~{line.body}~~"))
        elif heading != CHOSEN or not line.mark or line in recorded.kept or _is_changed(line, versions, current):
            _keep(kept, NoteLine(line.body) if _is_other(kept, line) else line)
    chosen = [line for heading, line in lines if heading == CHOSEN and line.mark and line.mark not in kept]
    for mark, body in _find_deleted(present, chosen, versions, current).items():
        left_out[mark] = NoteLine(body, mark)
    for mark, line in recorded.left_out.items():
        if mark not in present:
            left_out.setdefault(mark, line)
    return Decisions(front, tuple(kept.values()), left_out)


def merge_notes(ours: bytes, theirs: bytes) -> bytes | None:
    """Return `ours` with the lines that only `theirs` has, each below its heading; None if only a person can merge them.

    So the text has the decisions that were made on both devices, from which each of them composes the note again."""
    try:
        (front, body), (other_front, other_body) = split(decode(ours)), split(decode(theirs))
    except FrontmatterError:
        return None
    if any(has_merge_conflict(text) or not has_callout(text) for text in (body, other_body)):
        return None
    if front and other_front and front != other_front:
        return None
    known = {(_section_of(heading), line) for heading, line in _read_lines(body)}
    new: dict[str, list[NoteLine]] = {KEPT: [], CHOSEN: [], LEFT_OUT: []}
    for heading, line in _read_lines(other_body):
        if (_section_of(heading), line) not in known:
            new[_section_of(heading)].append(line)
    added = ["\n".join(["", f"## {name}", "", *map(_format_line, lines), ""]) for name, lines in new.items() if lines]
    return encode((front or other_front) + body + "".join(added))


def _section_of(heading: str) -> str:
    """Return the section that lines below `heading` count for."""
    return heading if heading in (CHOSEN, LEFT_OUT) else KEPT


def _is_changed(
    line: NoteLine, versions: Sequence[Mapping[str, str]], current: Callable[[], Mapping[str, str]] | None
) -> bool:
    """Return whether a line that Memex chose differs from all that is known of it."""
    bodies = {version[line.mark] for version in versions if line.mark in version}
    if line.body in bodies or (versions and not bodies):
        return False
    now = current().get(line.mark) if current else None
    return bool(bodies or now) and line.body != now


def _find_deleted(
    present: Collection[str],
    chosen: Sequence[NoteLine],
    versions: Sequence[Mapping[str, str]],
    current: Callable[[], Mapping[str, str]] | None,
) -> dict[str, str]:
    """Return the lines that the owner deleted: those of all versions that are missing, and whose facts still exist.

    A chosen line whose words are in no version shows that another device composed the text; then no line counts as deleted. Its
    link and date may differ, because the owner may have renamed or promoted the capture."""
    missing = {
        mark: body
        for mark, body in (versions[0].items() if versions else ())
        if mark not in present and all(mark in version for version in versions)
    }
    known = {(mark, NoteLine(body).text) for version in versions for mark, body in version.items()}
    if not missing or any((line.mark, line.text) not in known for line in chosen):
        return {}
    existing = current() if current else missing
    return {mark: body for mark, body in missing.items() if mark in existing}


def _is_other(known: Mapping[str, NoteLine], line: NoteLine) -> bool:
    """Return whether the mark of the line belongs to a line with another body."""
    return line.mark in known and known[line.mark].body != line.body


def _keep(kept: dict[str, NoteLine], line: NoteLine) -> None:
    kept.setdefault(line.mark or line.body, line)


def _read_lines(body: str) -> Iterator[tuple[str, NoteLine]]:
    """Yield each line of text with the heading above it; what Memex puts around the lines is left out."""
    heading, level = "", 0
    no_line = _MERGE_MARKS if has_merge_conflict(body) else ()
    for raw in body.splitlines():
        named = _HEADING.match(raw)
        if named and (not level or len(named[1]) <= level or named[2] in (KEPT, CHOSEN, LEFT_OUT)):
            heading, level = named[2], len(named[1])
        if raw.strip() and not _is_frame(raw) and not raw.startswith(no_line):
            parts = _LINE.match(raw)
            assert parts is not None, "it matches every line"
            if parts["body"]:
                yield heading, NoteLine(parts["body"], parts["mark"] or "")


def _is_frame(raw: str) -> bool:
    """Return whether Memex puts this line around those of the facts: the title, the callout and its headings."""
    named = _HEADING.match(raw)
    if named and (named[2] in (KEPT, CHOSEN, LEFT_OUT) or _TITLE.match(raw)):
        return True
    return _TOKENS.sub("{}", raw) in _CALLOUT


def _format_line(line: NoteLine) -> str:
    """Format a line as part of a list, or as it is if it is a heading or a quote of the owner's."""
    text = f"{line.body} ^{line.mark}" if line.mark else line.body
    is_alone = line.body.startswith(">") or _HEADING.match(line.body)
    return text if is_alone and not _is_frame(text) else f"- {text}"
