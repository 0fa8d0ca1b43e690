"""Make the outline of a Markdown body: blocks, headings, links, tags and tasks, and the text to search.

Laws, tested: every non-blank character of `text` lies in exactly one block; `text` is the body without its comments,
line for line; code keeps every character. The grammar is CommonMark with tables (markdown-it, blocks only) and
Obsidian's own blocks: `%%` comments, `$$` math, callouts. Reference definitions stay text, as footnotes must."""

from __future__ import annotations

import functools
import re
import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from index.model import Block, BlockKind, Defect, Heading, Link
from syncd.notes.inline_syntax import COMMENT, scan

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

DEEPEST = 60  # most nested containers; deeper text is searchable, but its links are not found
MOST_LINES = 20_000  # the grammar needs about 1 KB of memory per line
# The grammar needs about 200 bytes for each token; a list of MOST_LINES lines has 100,000, nested lists more.
MOST_TOKENS = 150_000
MANY_TOKENS = 20_000  # tokens from which only one body is parsed at a time: they take 4 MB
PARAGRAPH_LINES = 1_000  # shortest paragraph of a body with more lines: fewer blocks, of limited size
MOST_MARKS = 20_000  # most links and tags of a body; no person follows more

_large_body_turn = threading.Lock()  # it limits the memory that several callers need at once, and changes no outline
_LINE_END = re.compile(r"\r\n|\n|\r")
_BARE_CR = re.compile(r"\r(?!\n)")
_NOT_LINE_END = re.compile(r"[^\r\n]+")
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_CALLOUT = re.compile(r"\[![^\]|\r\n]+(?:\|[^\]\r\n]*)?\]")
_TASK = re.compile(r"\[.\][ \t]+")
_ADDED = "\n\nadded\n\n$$\n"  # a paragraph, and what closes math that is open
_VERBATIM = re.compile(r"\s*<(?:script|pre|style|textarea)\b", re.IGNORECASE)
_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "blockquote_open": "quote",
    "html_block": "html",
    "math": "math",
    "hr": "rule",
}


@dataclass(slots=True)
class Outline:
    """Holds the elements of a body, in order; lines are 0-based in the body, offsets are into `text`."""

    text: str
    blocks: list[Block] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # offset of each of `links` in the given body
    tags: list[str] = field(default_factory=list)
    tag_places: list[int] = field(default_factory=list)  # offset of the "#" of each of `tags` in the given body
    task_lines: list[int] = field(default_factory=list)  # of list items with a box
    defects: list[Defect] = field(default_factory=list)


def parse_outline(body: str, hidden: Sequence[tuple[int, int]] = (), front: str = "") -> Outline:
    """Parse the body; the `hidden` spans are left out of its text, like comments. Defects count the lines of `front` too.

    Never raises: a body that the grammar can't read is outlined as paragraphs."""
    reader = _Reader(body, hidden, len(_LINE_END.findall(front)) + 1)
    with ExitStack() as turn:
        try:
            tokens = _parse(body, turn) if len(reader.starts) <= MOST_LINES else None
            why = f"it has more than {MOST_LINES:,} lines"
        except _TooManyTokens:
            tokens, why = None, f"it has more than {MOST_TOKENS:,} lists, quotes and other elements"
        except (RecursionError, IndexError, RuntimeError, ValueError) as error:
            tokens, why = None, type(error).__name__
        if tokens is None:
            tokens = _parse_paragraphs(body, reader.starts)
            reader.add_defect("unread-markdown", f"Memex did not read its structure ({why}); its text is searchable")
        return reader.read(tokens)


class _TooManyTokens(Exception):
    """The body has more than `MOST_TOKENS` tokens: a line of nested lists has several for each mark."""


class _LimitedTokens(list["Token"]):
    """Holds at most `MOST_TOKENS` tokens, and after MANY_TOKENS waits for its turn.

    The tokens share one empty dictionary, because two of its own are half of a token's memory. The rules of blocks replace these
    dictionaries and never change them."""

    def __init__(self, turn: ExitStack) -> None:
        super().__init__()
        self._turn = turn
        self._shared: dict[str, Any] = {}

    def append(self, token: Token) -> None:
        if len(self) >= MOST_TOKENS:
            raise _TooManyTokens
        if len(self) == MANY_TOKENS:
            self._turn.enter_context(_large_body_turn)
        token.attrs = token.meta = self._shared
        super().append(token)


def _parse(body: str, turn: ExitStack) -> list[Token]:
    """Return the tokens of the grammar; with many tokens, other bodies wait until `turn` is closed. Raises _TooManyTokens."""
    from markdown_it.rules_core import StateCore  # noqa: PLC0415 - as in `_grammar`

    state = StateCore(body, _grammar(), {})
    state.tokens = _LimitedTokens(turn)
    state.md.core.process(state)
    return state.tokens


def is_open_ended(body: str) -> bool:
    """Return whether text added at the end of the body would be inside unclosed code, HTML or math, or a comment.

    A body whose structure was not read counts as closed."""
    outline = parse_outline(f"{body}{_ADDED}")
    names = {defect.name for defect in outline.defects}
    if "unread-markdown" in names:
        return False
    last = [outline.text[block.start : block.end] for block in outline.blocks[-2:]]
    return not names.isdisjoint(("unclosed-fence", "unclosed-comment")) or last != _ADDED.split()


def _parse_paragraphs(body: str, starts: Sequence[int]) -> list[Token]:
    """Return the tokens of a body read as paragraphs between blank lines; in very long bodies they are joined."""
    from markdown_it.token import Token  # noqa: PLC0415 - as in `_grammar`

    tokens: list[Token] = []
    first, last = 0, len(starts) - 1
    shortest = PARAGRAPH_LINES if last > MOST_LINES else 1
    for number in range(last + 1):
        if number < last and not body[starts[number] : starts[number + 1]].isspace():
            continue
        if number - first >= shortest or number == last > first:
            tokens.append(Token("paragraph_open", "p", 1, map=[first, number], block=True))
            tokens.append(Token("inline", "", 0, map=[first, number], level=1, block=True))
            first = number + 1
        elif number == first:
            first = number + 1
    return tokens


class _Reader:
    """Reads one body's tokens into an outline."""

    def __init__(self, body: str, hidden: Sequence[tuple[int, int]], first_line: int) -> None:
        self.body = body
        self.first_line = first_line  # the number of the body's first line in the file
        self.starts = _line_starts(body)
        self.out = Outline(body)
        self.hidden = list(hidden)
        # Top-level: kind, first line, line after the last.
        self.pieces: list[tuple[BlockKind, int, int, Heading | None]] = []
        self.found: list[tuple[int, Link]] = []  # the links, each with its offset
        self.quotes = 0

    def read(self, tokens: list[Token]) -> Outline:  # noqa: C901 - one branch for each kind of token
        table = False
        for at, token in enumerate(tokens):
            kind = token.type
            self.quotes += (kind == "blockquote_open") - (kind == "blockquote_close")
            table = (table or kind == "table_open") and kind != "table_close"
            if token.map is None or token.nesting < 0:
                continue
            first, behind = token.map
            if kind == "inline":
                if not table:
                    self._read_text(first, behind)
            elif kind == "table_open":
                for line in range(first, behind):
                    self._read_text(line, line + 1, cells=True)
            elif kind == "html_block":
                self._hide_html_comments(token.content, first, behind)
            elif kind == "comment":
                self._hide_comment(first, behind, closed=token.hidden)
            elif kind == "fence":
                self._check_fence(token, first, behind)
            elif kind == "list_item_open" and _TASK.match(_first_line(tokens[at + 1 : at + 3])):
                self.out.task_lines.append(first)
            if token.level == 0:
                self._read_block(tokens, at, first, behind)
            elif token.level >= DEEPEST - 1 and not any(d.name == "deep-nesting" for d in self.out.defects):
                self.add_defect(
                    "deep-nesting",
                    f"line {self.first_line + first} is nested too deep: links and tags below it are not found",
                )
        self._assemble()
        return self.out

    def add_defect(self, name: str, detail: str) -> None:
        self.out.defects.append(Defect(name, detail))

    def _read_text(self, first: int, behind: int, *, cells: bool = False) -> None:
        """Scan the lines of one leaf block."""
        text = self.body[self.starts[first] : self.starts[behind]]
        if self.quotes:
            text = _QUOTE_MARKS.sub(lambda marks: " " * len(marks[0]), text)
        self._scan_inline(text, self.starts[first], cells=cells)

    def _scan_inline(self, text: str, offset: int, *, cells: bool = False) -> None:
        room = MOST_MARKS - len(self.found) - len(self.out.tags)
        inline = scan(text, cells=cells, most=room)
        if len(inline.links) + len(inline.tags) > room and not any(d.name == "many-marks" for d in self.out.defects):
            self.add_defect("many-marks", f"it has more than {MOST_MARKS:,} links and tags; the others are ignored")
        self.out.tags += [tag for _, tag in inline.tags]
        self.out.tag_places += [offset + at for at, _ in inline.tags]
        for at, link in inline.links:
            line = bisect_right(self.starts, offset + at) - 1
            self.found.append((offset + at, Link(link.kind, link.target, link.subpath, link.display, line)))
        self.hidden += [(offset + start, offset + end) for start, end in inline.hidden]

    def _hide_html_comments(self, content: str, first: int, behind: int) -> None:
        """Hide the comments of raw HTML; an unclosed one hides the rest, as in Obsidian."""
        if _VERBATIM.match(content):
            return
        at, end = self.starts[first], self.starts[behind]
        while (at := self.body.find("<!--", at, end)) >= 0:
            closing = self.body.find("-->", at + 4, end)
            if closing < 0:
                self._report_unclosed("<!--", first)
            self.hidden.append((at, closing + 3 if closing >= 0 else end))
            at = self.hidden[-1][1]

    def _hide_comment(self, first: int, behind: int, *, closed: bool) -> None:
        """Hide a `%%` block. Obsidian finds tags in it, and its links must follow moved notes, so both are read."""
        opening = COMMENT.search(self.body, self.starts[first])
        assert opening is not None
        end = self.starts[behind]
        closing = COMMENT.search(self.body, opening.end(), end) if closed else None
        if not closing:
            self._report_unclosed("%%", first)
        self._scan_inline(self.body[opening.end() : closing.start() if closing else end], opening.end())
        self.hidden.append((opening.start(), closing.end() if closing else end))
        if closing:
            self._scan_inline(self.body[closing.end() : end], closing.end())

    def _report_unclosed(self, mark: str, line: int) -> None:
        self.add_defect(
            "unclosed-comment",
            f"the comment {mark} in line {self.first_line + line} is not closed: the text after it is not searched",
        )

    def _check_fence(self, token: Token, first: int, behind: int) -> None:
        last = self.body[self.starts[behind - 1] : self.starts[behind]].rstrip()
        if behind - first == 1 or not last.endswith(token.markup) or last.lstrip(" \t>").strip(token.markup[0]):
            self.add_defect(
                "unclosed-fence",
                f"the code fence in line {self.first_line + first} is not closed: the text after it is code",
            )

    def _read_block(self, tokens: list[Token], at: int, first: int, behind: int) -> None:
        token = tokens[at]
        heading = None
        kind = _KINDS.get(token.type, "paragraph")
        if kind == "heading":
            heading = Heading(int(token.tag[1:]), _visible_text(tokens[at + 1].content), first)
            self.out.headings.append(heading)
        elif kind == "quote" and _CALLOUT.match(_first_line(tokens[at + 1 : at + 3])):
            kind = "callout"
        self.pieces.append((kind, first, behind, heading))

    def _assemble(self) -> None:
        """Remove the comments from the text, then assign every line to a block."""
        self.found.sort(key=lambda pair: pair[1].line)  # within a line, in the order in which they were found
        self.out.places, self.out.links = [at for at, _ in self.found], [link for _, link in self.found]
        self.out.text = text = _remove_hidden(self.body, self.hidden)
        starts = _line_starts(text) if self.hidden else self.starts
        # A last line with only a comment no longer exists.
        starts.extend([len(text)] * (len(self.starts) - len(starts)))
        trail: list[Heading] = []
        line = 0
        end: tuple[BlockKind, int, int, None] = ("paragraph", len(starts) - 1, len(starts) - 1, None)
        for kind, first, behind, heading in [*self.pieces, end]:
            names = tuple(each.text for each in trail if each.text)
            if first > line:
                self._add_block("paragraph", starts[line], starts[first], names)
            if heading:
                trail = [each for each in trail if each.level < heading.level]
                names = tuple(each.text for each in trail if each.text)
                trail.append(heading)
            self._add_block(kind, starts[max(line, first)], starts[max(line, behind)], names)
            line = max(line, behind)

    def _add_block(self, kind: BlockKind, start: int, end: int, trail: tuple[str, ...]) -> None:
        piece = self.out.text[start:end]
        text = piece.strip()
        if text:
            start += len(piece) - len(piece.lstrip())
            self.out.blocks.append(Block(kind, start, start + len(text), trail))


def _line_starts(text: str) -> array[int]:
    """Return the offset of each line and the end of the text; a last line without a line end counts as one."""
    starts = array("I", (0,))  # four bytes a line, of which a large body has a million
    starts.extend(end.end() for end in _LINE_END.finditer(text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def _remove_hidden(text: str, hidden: list[tuple[int, int]]) -> str:
    """Return `text` without the hidden spans except their line ends, so that the number of lines stays equal."""
    blank = " " if hidden and _BARE_CR.search(text) else ""  # so that a CR and an LF don't merge into one line end
    parts, at = [], 0
    for start, end in sorted(hidden):
        if end > at:
            parts += [text[at : max(at, start)], _NOT_LINE_END.sub(blank, text[max(at, start) : end])]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def _visible_text(text: str) -> str:
    """Return a heading's text on one line, without comments."""
    if "%%" in text or "<!--" in text:
        text = _remove_hidden(text, scan(text).hidden)
    return " ".join(text.split())


def _first_line(inner: list[Token]) -> str:
    """Return the first line of a container that begins with a paragraph."""
    if len(inner) > 1 and inner[1].type == "inline" and inner[0].type == "paragraph_open":
        return inner[1].content.partition("\n")[0]
    return ""


def _find_closing_line(state: StateBlock, mark: re.Pattern[str], line: int, end_line: int) -> int | None:
    """Return the line with the next `mark` that closes a block opened in `line`; None: not in this container."""
    closing = mark.search(state.src, state.eMarks[line])
    last = bisect_right(state.bMarks, closing.start(), lo=line) - 1 if closing else end_line
    if last >= end_line:
        return None
    inside = range(line + 1, last + 1)
    return last if all(state.sCount[at] >= state.blkIndent or state.isEmpty(at) for at in inside) else None


def _comment_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Parse a block from a line that begins with `%%` to the line with the next `%%`; at the top level, or to the end."""
    begin, end = state.bMarks[start_line] + state.tShift[start_line], state.eMarks[start_line]
    if not state.src.startswith("%%", begin) or state.is_code_block(start_line):
        return False
    opening = COMMENT.match(state.src, begin)
    if not opening or COMMENT.search(state.src, opening.end(), end):
        return False
    last = _find_closing_line(state, COMMENT, start_line, end_line)
    if last is None and (state.level or state.blkIndent):
        return False
    if not silent:
        state.line = end_line if last is None else last + 1
        token = state.push("comment", "", 0)
        token.map, token.hidden = [start_line, state.line], last is not None
    return True


_DOLLARS = re.compile(r"\$\$")


def _math_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Parse a block from a line that begins with `$$` to the line with the next `$$`, which may be the same line."""
    begin, end = state.bMarks[start_line] + state.tShift[start_line], state.eMarks[start_line]
    if not state.src.startswith("$$", begin) or state.is_code_block(start_line):
        return False
    closing = _DOLLARS.search(state.src, begin + 2, end)
    if closing and state.src[closing.end() : end].strip():
        return False  # a line of text that begins with math
    last = start_line if closing else _find_closing_line(state, _DOLLARS, start_line, end_line)
    if last is None:
        return False
    if not silent:
        state.line = last + 1
        state.push("math", "", 0).map = [start_line, state.line]
    return True


class _TokensWithoutCells(list["Token"]):
    """Keeps of a table's tokens only those of the table itself: a cell needs about 2 KB, and a row may have 100,000."""

    def append(self, token: Token) -> None:
        if token.type in ("table_open", "table_close"):
            super().append(token)


def _table_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Parse a table as the grammar does, without tokens for its cells, which are read from the table's lines."""
    from markdown_it.rules_block import table  # noqa: PLC0415 - as in `_grammar`

    outside, state.tokens = state.tokens, _TokensWithoutCells()
    try:
        return table(state, start_line, end_line, silent)
    finally:
        outside.extend(state.tokens)
        state.tokens = outside


@functools.cache
def _grammar() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a command that reads no note does not need the grammar

    grammar = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable("table").disable("reference")
    grammar.block.ruler.at("table", _table_block, {"alt": ["paragraph", "reference"]})
    ends: Any = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    grammar.block.ruler.before("fence", "comment", _comment_block, ends)
    grammar.block.ruler.before("fence", "math", _math_block, ends)
    grammar.core.ruler.enableOnly(["normalize", "block"])
    return grammar
