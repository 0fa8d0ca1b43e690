"""Read the lines of an entity's note: which observations and relations they state, and where.

Laws, tested: one pass, in time linear in the text. An item ends before the first line that is not indented, whatever
its own lines look like, so no observation reaches into the text after it. The output of `format_observation` reads
back as it was given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from index.deferred_patterns import possessive
from syncd.notes.block_ids import BLOCK, BlockId, ends_like_block_id, find_block_ids, needs_blank_line, remove_block_ids
from syncd.notes.inline_fields import InlineField, find_fields
from syncd.notes.inline_syntax import COMMENT

LARGEST = 10**12 - 1  # ordinal

_LINES = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_ITEM = re.compile(r"( {0,3}(?:[-+*]|[0-9]{1,9}[.)]))([ \t]++|\Z)")
_RULE = re.compile(r" {0,3}([-*])" + possessive(r"[ \t]*+\1", "{2,}") + r"[ \t]*+\Z")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_UNDERLINE = re.compile(r" {0,3}(=++|--++)[ \t]*+(?:[\r\n]|\Z)")  # a single "-" is the beginning of a list
_FENCE = re.compile(r"`{3,}+(?=[^`]*\Z)|~{3,}+")
_LEADS = re.compile(possessive(r"[> \t]|(?:[-+*]|[0-9]{1,9}[.)])[ \t]", "*"))
_ARROW = re.compile("-->")


@dataclass(frozen=True, slots=True)
class Item:
    """Describes a list item of the observations, `lines[first:behind]`. An emptied item has no content."""

    first: int
    behind: int
    lead: str  # its indentation and list mark
    content: str
    mark: BlockId | None  # block id that states its ordinal
    anchor: BlockId | None  # block id that a person's links lead to
    place: int | None  # the line with `mark`, or to whose end it belongs; None: it belongs on a separate line


@dataclass(frozen=True, slots=True)
class Section:
    """Describes a heading and the lines under it, `lines[inner:behind]`."""

    level: int
    first: int
    inner: int
    behind: int


@dataclass(slots=True)
class Page:
    """Holds the parsed body of an entity's note, in order. `lines` keep their line ends."""

    lines: list[str]
    items: list[Item] = field(default_factory=list)
    fields: list[tuple[int, InlineField]] = field(default_factory=list)  # with their lines
    sections: dict[str, Section] = field(default_factory=dict)  # the first one of each name, folded


def parse_page(body: str) -> Page:
    """Parse a body. Never raises."""
    reader = _Reader(Page(_LINES.findall(body)))
    reader.run()
    return reader.page


def find_ids(page: Page) -> list[tuple[int, int]]:
    """Return the start and end of each observation's block ids in the body, including the space before each."""
    starts = [0, *accumulate(map(len, page.lines))]
    block_ids = (id for item in page.items for id in (item.mark, item.anchor) if id)
    return [(starts[id.line] + id.start - 1, starts[id.line] + id.end) for id in block_ids]


def is_underline(line: str) -> bool:
    """Return whether `line` turns the text above it into a heading."""
    return _UNDERLINE.match(line) is not None


def format_observation(lead: str, content: str, ordinal: int, anchor: BlockId | None = None) -> list[str]:
    """Return the lines (without line ends) of an observation under the list mark `lead`.

    `content` has LF line ends and no surrounding white space."""
    first, *others = content.split("\n")
    if not others and not ends_like_block_id(first):
        return [f"{lead} {first} {_format_ids(ordinal, anchor)}"]
    margin = " " * (len(lead) + 1)
    return [
        f"{lead} {first}",
        *(line and margin + line for line in others),
        *format_ids_line(lead, content, ordinal, anchor),
    ]


def state_ordinal(line: str, item: Item, ordinal: int) -> str:
    """Return `line` changed so that `item` states this `ordinal` in it; the line end stays."""
    if item.mark:
        return f"{line[: item.mark.start]}^o{ordinal}{line[item.mark.end :]}"
    if item.anchor:
        return f"{line[: item.anchor.start]}{_format_ids(ordinal, item.anchor)}{line[item.anchor.end :]}"
    text = line.rstrip("\r\n")
    end = line[len(text) :]
    if text.rstrip(" \t") == item.lead:  # another space would move the column in which the item's text begins
        text = item.lead
    return f"{text} ^o{ordinal}{end}"


def format_ids_line(lead: str, content: str, ordinal: int, anchor: BlockId | None = None) -> list[str]:
    """Return the lines that put the ids on a separate line at the end of an item."""
    return [
        *([""] if needs_blank_line(content.split("\n")) else []),
        f"{' ' * (len(lead) + 1)}{_format_ids(ordinal, anchor)}",
    ]


def _format_ids(ordinal: int, anchor: BlockId | None) -> str:
    return f"^o{ordinal} {anchor.text}" if anchor else f"^o{ordinal}"


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Describes lines to ignore: code or a comment, up to a closing mark or the end of its list or quote."""

    closing: re.Pattern[str]
    column: int
    quoted: bool


class _Reader:
    """Reads one body, line by line."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.hidden: _Hidden | None = None
        self.column = 0  # column where the text of the current list item begins; 0 = no list
        self.fresh = True  # no text directly above
        self.code = False  # inside indented code
        self.section = 0  # level of the observations' heading while under it; 0 otherwise
        self.open: dict[str, Section] = {}

    def run(self) -> None:
        lines = self.page.lines
        at = 0
        while at < len(lines):
            text = lines[at].rstrip("\r\n")
            bare = text.strip(" \t")
            at = self._read_line(at, text, bare) if bare else at + 1
            self.fresh = self.fresh if bare else True
        self._close_sections(1, len(lines))

    def _read_line(self, at: int, text: str, bare: str) -> int:
        """Read a line that is not blank, and return the number of the next line to read."""
        indent = indentation(text)
        quoted = bare.startswith(">")
        if indent < self.column:
            self.column = 0
        if self._is_hidden(bare, indent, quoted):
            self.fresh = True
            return at + 1
        top = indent <= 3 and not self.column and not quoted
        fresh, self.fresh = self.fresh, False
        if top and (heading := _match_heading(self.page.lines, at, text, fresh)):
            level, name, inner = heading
            self._begin_section(level, name, at, inner)
            self.fresh = True
            return inner
        match = _ITEM.match(text) if top else None
        if match and self.section and (item := _match_item(self.page.lines, at, text, match)):
            self.page.items.append(item)
            return item.behind
        if match and not _RULE.match(text):
            self.column = indent + 2
        self.code = indent > 3 and not self.column and (fresh or self.code)
        if not self.code and not self._begins_hidden(bare, quoted=quoted) and not self.section:
            self.page.fields += [(at, inline_field) for inline_field in find_fields(text)]
        return at + 1

    def _is_hidden(self, bare: str, indent: int, quoted: bool) -> bool:
        hidden = self.hidden
        if hidden and (indent < hidden.column or (hidden.quoted and not quoted)):
            hidden = self.hidden = None
        if hidden and hidden.closing.search(bare.lstrip("> \t") if hidden.quoted else bare):
            self.hidden = None
        return hidden is not None

    def _begins_hidden(self, bare: str, *, quoted: bool) -> bool:
        """Return whether code or a comment begins here and continues on the next line."""
        bare = _LEADS.sub("", bare, count=1)
        closing = None
        if fence := _FENCE.match(bare):
            closing = re.compile(f"\\A{fence[0][0]}{{{len(fence[0])},}}[ \\t]*\\Z")
        elif (comment := COMMENT.match(bare)) and not COMMENT.search(bare, comment.end()):
            closing = COMMENT
        elif bare.startswith("<!--") and "-->" not in bare[4:]:
            closing = _ARROW
        if closing:
            self.hidden = _Hidden(closing, self.column, quoted)
        return closing is not None

    def _begin_section(self, level: int, name: str, first: int, inner: int) -> None:
        named = name if name in ("observations", "relations") else ""
        ends = 1 if named == "relations" else level  # a relations heading ends the observations, whatever its level
        self._close_sections(ends, first)
        self.column = 0
        if self.section >= ends:
            self.section = 0
        if not named or self.section:
            return
        if named == "observations":
            self.section = level
        self.open.setdefault(named, Section(level, first, inner, len(self.page.lines)))

    def _close_sections(self, level: int, behind: int) -> None:
        """Close the sections that a heading of this level, or the end of the page, ends."""
        for name, section in list(self.open.items()):
            if level <= section.level:
                del self.open[name]
                self.page.sections.setdefault(name, Section(section.level, section.first, section.inner, behind))


def indentation(text: str) -> int:
    """Return the column in which the text of a line begins."""
    if text[:1] not in (" ", "\t"):
        return 0
    lead = text[: len(text) - len(text.lstrip(" \t"))]
    return len(lead.expandtabs(4))


def item_indentation(lead: str) -> int:
    """Return the least indentation of lines that belong to an item."""
    return indentation(lead) + 2


def _match_heading(lines: list[str], at: int, text: str, fresh: bool) -> tuple[int, str, int] | None:
    """Return the level and folded text of the heading that begins in line `at`, and the number of the line after it."""
    if mark := _HEADING.match(text):
        name = text[mark.end() :].strip(" \t")
        closed = name.rstrip("#")
        name = closed if not closed or closed[-1] in " \t" else name
        return len(mark[1]), name.strip().casefold(), at + 1
    if not fresh or at + 1 == len(lines) or BLOCK.match(text):
        return None
    line = _UNDERLINE.match(lines[at + 1])
    return (1 if line[1][0] == "=" else 2, text.strip().casefold(), at + 2) if line else None


def _match_item(lines: list[str], first: int, text: str, match: re.Match[str]) -> Item | None:
    """Return the item that begins in line `first`; None for a horizontal rule, which begins like an item."""
    lead, blanks = match.groups()
    width = len((lead + blanks).expandtabs(4)) - len(lead)
    column = len(lead) + (width if match.end() < len(text) and 1 <= width <= 4 else 1)
    deep = item_indentation(lead)
    behind = at = first + 1
    inner = [text[match.end() :]]
    while at < len(lines):
        line = lines[at].rstrip("\r\n")
        at += 1
        if not line.strip(" \t"):
            continue
        if indentation(line) < deep:
            break
        inner += [_dedent(lines[n].rstrip("\r\n"), column) for n in range(behind, at)]
        behind = at
    if behind == first + 1 and _RULE.match(text):
        return None
    paragraph = _paragraph_length(inner)
    mark, anchor = find_block_ids(inner, paragraph)
    content = remove_block_ids(inner, [id for id in (mark, anchor) if id])

    def locate(id: BlockId) -> BlockId:
        before = len(lines[first + id.line].rstrip("\r\n")) - len(inner[id.line])
        return BlockId(first + id.line, before + id.start, before + id.end, id.text)

    place = mark.line if mark else anchor.line if anchor else paragraph - 1 if paragraph else None
    return Item(
        first,
        behind,
        lead,
        content,
        locate(mark) if mark else None,
        locate(anchor) if anchor else None,
        None if place is None else first + place,
    )


def _paragraph_length(inner: Sequence[str]) -> int:
    """Return how many lines the first paragraph of an item has; 0 if a longer item begins with another block."""
    if len(inner) > 1 and BLOCK.match(inner[0]):
        return 0
    behind = 1
    while behind < len(inner) and inner[behind].strip() and not BLOCK.match(inner[behind]):
        behind += 1
    return behind


def _dedent(text: str, column: int) -> str:
    """Return `text` without its indentation up to `column`."""
    at = width = 0
    while at < len(text) and width < column and text[at] in " \t":
        width = width + 1 if text[at] == " " else width // 4 * 4 + 4
        at += 1
    return text[at:]
