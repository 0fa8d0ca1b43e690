"""Find Obsidian's inline syntax in Markdown text: links, tags and comments, but none inside code or math.

Law, tested: it makes one pass, in time linear in the text, whatever the text."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import unquote

from index.deferred_patterns import possessive
from index.model import Link

# Any punctuation ends a tag; Obsidian and the plug-ins that read its tags share this set.
_ENDS_TAG = r"\u2000-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s"
TAG = re.compile(rf"[^{_ENDS_TAG}]+")
TAG_BEGINS = rf"#(?![0-9]*+(?:[{_ENDS_TAG}]|\Z))"  # a tag is not only digits; what stands before it counts too
COMMENT = re.compile(r"(?<!%)%%(?!%)")  # exactly two percent signs

_NEXT = re.compile(r"\\(?s:.)|`+|!?\[|\]|\$|<|(?<!%)%%(?!%)|#")
_INNER = possessive(r"[^\[\]\r\n]|\[(?!\[)|\](?!\])", "+")
WIKI = re.compile(rf"\[\[({_INNER})\]\]")
_NESTED = possessive(r"[^\s()\\]|\\.", "*")
_BARE = possessive(rf"[^\s()\\<]|\\.|\({_NESTED}\)", "*")
_DESTINATION = re.compile(
    rf"""\(\s*+(?:<([^<>\r\n]*+)>|({_BARE}))"""
    r"""(?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?\s*+\)"""
)
_DEFINITION = re.compile(
    r"""^[ \t]{0,3}\[([^\[\]^\r\n][^\[\]\r\n]{0,900})\]:[ \t]++(?:<([^<>\r\n]*+)>|([^\s<]\S*+))"""
    r"""(?:[ \t]++(?:"[^"\r\n]*+"|'[^'\r\n]*+'|\([^()\r\n]*+\)))?[ \t]*+$""",
    re.MULTILINE,
)
_MATH = re.compile(r"\$\$[^$]++\$\$|\$(?![\s$])(?:\\.|[^$\r\n\\])*(?<![\s\\])\$(?!\d)")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*+>")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_NUMBER = re.compile(r"[0-9]+")
_LINE_END = re.compile(r"[\r\n]")
_MOST_OPEN = 1_000  # most nested brackets


@dataclass(frozen=True, slots=True)
class Inline:
    """Holds the inline elements of a text, in order, each with its offset. The `line` of a link is 0 here."""

    links: list[tuple[int, Link]]
    tags: list[tuple[int, str]]  # without "#"
    hidden: list[tuple[int, int]]  # comments: start and end


def scan(text: str, *, cells: bool = False, most: float = math.inf) -> Inline:
    """Scan `text` for all inline elements; with `cells` it is a table row, in which a tag may follow a bar.

    The scan ends early once it has found more than `most` links and tags."""
    scanner = _Scanner(text, cells=cells, most=most)
    scanner.run()
    return Inline(sorted(scanner.links, key=lambda pair: pair[0]), scanner.tags, scanner.hidden)


def parse_wikilink(inner: str, kind: Literal["wikilink", "embed"]) -> Link | None:
    """Return the link between `[[` and `]]`; None for an unfinished search (`[[## words]]`, `[[^^words]]`)."""
    cut = inner.find("|", 1)
    target, display = (inner[:cut].removesuffix("\\"), inner[cut + 1 :]) if cut > 0 else (inner, None)
    if target.startswith(("##", "^^")):
        return None
    return _make_link(kind, target, display)


def find_wikilinks(text: str) -> list[Link]:
    """Return the wikilinks of a property's text, with line -1."""
    links = (parse_wikilink(match[1], "wikilink") for match in WIKI.finditer(text)) if "[[" in text else ()
    return [Link(link.kind, link.target, link.subpath, link.display, -1) for link in links if link]


def is_tag(tag: str) -> bool:
    """Return whether Obsidian would read `tag` (without "#") as a tag."""
    return TAG.fullmatch(tag) is not None and not _NUMBER.fullmatch(tag)


def _make_link(kind: Literal["wikilink", "embed", "markdown"], target: str, display: str | None) -> Link:
    path, mark, subpath = target.partition("#")
    return Link(kind, path.strip(), mark + subpath, display, 0)


def _internal_link(kind: Literal["embed", "markdown"], pointed: str | None, bare: str, display: str) -> Link | None:
    """Return the link to a Markdown destination, or None if it is empty or outside the vault."""
    target = ESCAPE.sub(r"\1", bare if pointed is None else pointed)
    if not target or SCHEME.match(target):
        return None
    return _make_link(kind, unquote(target), display)


class _Scanner:
    """Scans one text once. Each step gets the span of a mark and returns where to continue."""

    def __init__(self, text: str, *, cells: bool, most: float) -> None:
        self.text, self.cells, self.most = text, cells, most
        self.links: list[tuple[int, Link]] = []
        self.tags: list[tuple[int, str]] = []
        self.hidden: list[tuple[int, int]] = []
        self.openers: deque[tuple[int, int]] = deque(maxlen=_MOST_OPEN)  # open "[" and "![" without their "]"
        self.ticks: dict[int, array[int]] | None = None  # length of a run of backticks -> starts of such runs
        self.arrows = True  # False once no "-->" is left
        self.bracket = -1  # the end of the last escaped bracket: a tag may follow it

    def run(self) -> None:
        at = 0
        while self._has_room() and (match := _NEXT.search(self.text, at)):
            at = self._steps[match[0][0]](self, *match.span())
        if "]:" in self.text:
            for match in _DEFINITION.finditer(self.text):
                if not self._has_room():
                    break
                if link := _internal_link("markdown", match[2], match[3], match[1]):
                    self.links.append((match.start(1) - 1, link))

    def _has_room(self) -> bool:
        return len(self.links) + len(self.tags) <= self.most

    def _escape(self, start: int, end: int) -> int:
        self.bracket = end if self.text[start + 1] in "[]" else self.bracket
        return end

    def _code(self, start: int, end: int) -> int:
        if self.ticks is None:
            self.ticks = {}
            for run in re.finditer("`+", self.text):
                self.ticks.setdefault(len(run[0]), array("L")).append(run.start())
        closers = self.ticks.get(end - start, ())
        later = bisect_right(closers, start)
        return closers[later] + end - start if later < len(closers) else end

    def _tag(self, start: int, end: int) -> int:
        before = self.text[start - 1 : start]
        free = not before or before.isspace() or start == self.bracket or (self.cells and before == "|")
        tag = TAG.match(self.text, end) if free else None
        if tag is None or _NUMBER.fullmatch(tag[0]):
            return end
        self.tags.append((start, tag[0]))
        return tag.end()

    def _comment(self, start: int, end: int) -> int:
        closing = COMMENT.search(self.text, end)
        if not closing or _LINE_END.search(self.text, end, closing.start()):
            return end
        inside = scan(self.text[end : closing.start()], most=self.most - len(self.links) - len(self.tags))
        self.links += [(end + at, link) for at, link in inside.links]
        self.tags += [(end + at, tag) for at, tag in inside.tags]
        self.hidden.append((start, closing.end()))
        return closing.end()

    def _markup(self, start: int, end: int) -> int:
        if self.text.startswith("<!--", start):
            arrow = self.text.find("-->", start + 4) if self.arrows else -1
            self.arrows = arrow >= 0
            if self.arrows:
                self.hidden.append((start, arrow + 3))
            return arrow + 3 if self.arrows else end
        markup = _MARKUP.match(self.text, start)
        return markup.end() if markup else end

    def _math(self, start: int, end: int) -> int:
        math = _MATH.match(self.text, start)
        return math.end() if math and "[[" not in math[0] else end

    def _open(self, start: int, end: int) -> int:
        wiki = WIKI.match(self.text, end - 1)
        if not wiki:
            self.openers.append((start, end))
            return end
        if link := parse_wikilink(wiki[1], "embed" if end - start > 1 else "wikilink"):
            self.links.append((start, link))
        return wiki.end()

    def _close(self, _: int, end: int) -> int:
        if not self.openers:
            return end
        start, inside = self.openers.pop()
        destination = _DESTINATION.match(self.text, end)
        if not destination:
            return end
        kind: Literal["embed", "markdown"] = "embed" if inside - start > 1 else "markdown"
        if link := _internal_link(kind, destination[1], destination[2], self.text[inside : end - 1]):
            self.links.append((start, link))
        return destination.end()

    _steps: ClassVar[dict[str, Callable[[_Scanner, int, int], int]]] = {
        "\\": _escape,
        "`": _code,
        "#": _tag,
        "%": _comment,
        "<": _markup,
        "$": _math,
        "[": _open,
        "!": _open,
        "]": _close,
    }
