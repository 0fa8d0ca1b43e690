"""Write the elements of an HTML page as Markdown: headings, lists, tables, code, links and emphasis; the rest is text.

Law, tested: text of the page makes no Markdown. Elements that only group others are entered without recursion, because
real pages nest hundreds of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from index.text.link_schemes import is_allowed
from syncd.files.conversion.readers.clean_text import join_table, make_fence
from syncd.notes.inline_syntax import TAG_BEGINS

WIDEST: Final = 50  # most columns and rows that a cell of a table spans
_WIDTH: Final = 50  # most characters of a mark that continues in the next element
_BORDER: Final = None  # stands between two nodes where a block begins or ends

# Not shown by a browser, shown by other programs inside the page, controls, or the way around a site.
_DROPPED: Final = frozenset(
    ["annotation", "annotation-xml", "audio", "button", "canvas", "datalist", "embed", "head", "iframe", "input",
     "meter", "nav", "noembed", "noframes", "noscript", "object", "option", "progress", "script", "select", "style",
     "svg", "template", "textarea", "title", "video"]
)  # fmt: skip
_BLOCKS: Final = frozenset(
    ["address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
     "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "legend", "li", "main",
     "menu", "p", "search", "section", "summary", "tbody", "td", "tfoot", "th", "thead", "tr"]
)  # fmt: skip
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
_STRUCTURES: Final = frozenset({*_HEADINGS, *_LISTS, "blockquote", "hr", "listing", "pre", "table", "xmp"})
_EMPHASIS: Final = {"b": "**", "strong": "**", "i": "*", "em": "*", "s": "~~", "del": "~~", "strike": "~~"}
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})
_INLINE: Final = frozenset({*_EMPHASIS, *_CODE, "a", "br", "img", "sup"})
_LAYOUT: Final = frozenset(
    {*_HEADINGS, "hr", "listing", "pre", "table", "xmp"}
)  # a table with one of these has no rows to read

_HIDDEN: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[ \t\n\r\f]+")
_MARKS: Final = re.compile(
    rf"[\\`*<>\[\]]|(?<![\w/&]){TAG_BEGINS}|(?<![\w/])_+(?=[^\s_]|\Z)|(?<![\s_])_+(?![\w/])|~(?=~)|%(?=%)|&(?=#?\w{{1,40}};)"
)
# The end of a text that may have a meaning only with the text of the next element.
_SEAM: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:(#[0-9]*|[%~]|&#?\w{0,40})\Z)")
# What begins a block at the start of a line; the marks that are escaped everywhere are not here.
_START: Final = re.compile(
    r"^(?:([-+](?=\s|$)|#{1,6}(?=\s|$)|[-=_:|](?=[-=_:|\s]*$))|(\d{1,9})([.)](?=\s|$)))", re.MULTILINE
)
_EXPONENT: Final = re.compile(r"[-+\u2212]?\d{1,9}")
_LANGUAGE: Final = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,30})(?=\s|$)")
_PERMALINK: Final = frozenset("#¶§🔗")
_UNSAFE: Final = re.compile(r"[\s()<>\[\]|\\`*]")


def write_markdown(root: Any) -> str:
    """Return what a browser shows of the elements below `root` as Markdown. Raises RecursionError for a nesting that no page has."""
    return "\n\n".join(block for block, _ in _write_blocks(root.children)) + "\n"


def _is_shown(node: Any) -> bool:
    name: str = node.name
    if name in _DROPPED or name.startswith(("#", "!")):
        return False
    attributes = node.attrs
    if not attributes:
        return name != "dialog"
    return not (
        "hidden" in attributes
        or attributes.get("role") == "navigation"
        or _HIDDEN.search(attributes.get("style") or "")
        or (name == "dialog" and "open" not in attributes)
    )


def _flatten(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield texts, inline elements and structures in order, and a border around each block that only groups others."""
    stack: list[tuple[Iterator[Any], bool]] = [(iter(nodes), False)]
    while stack:
        children, is_block = stack[-1]
        node = next(children, None)
        if node is None:
            stack.pop()
            if is_block:
                yield _BORDER
        elif node.name == "#text":
            yield node
        elif _is_shown(node):
            if node.name in _STRUCTURES or (node.name in _INLINE and not _is_group(node)):
                yield node
                continue
            if node.name in _BLOCKS:
                yield _BORDER
            stack.append((iter(node.children), node.name in _BLOCKS))


def _is_group(node: Any) -> bool:
    """Tell whether an inline element only groups others: an anchor without a target, raised text that is no number, or emphasis around whole blocks."""
    if node.name == "sup":
        return not (len(node.children) == 1 and _EXPONENT.fullmatch((node.children[0].data or "").strip()))
    if node.name == "a":
        return not (node.attrs and node.attrs.get("href"))
    return node.name in _EMPHASIS and any(child.name in _BLOCKS or child.name in _STRUCTURES for child in node.children)


def _write_blocks(nodes: Iterable[Any]) -> Iterator[tuple[str, bool]]:
    """Yield each block, and whether it is a list."""
    line: list[str] = []
    for node in chain(_flatten(nodes), [_BORDER]):
        if node is not _BORDER and node.name not in _STRUCTURES:
            line.append(_write_inline(node, line))
            continue
        if (text := _join(line)).strip():
            yield _START.sub(lambda mark: f"\\{mark[1]}" if mark[1] else f"{mark[2]}\\{mark[3]}", text), False
        line = []
        if node is not _BORDER:
            yield from ((text, node.name in _LISTS) for text in _write_structure(node) if text)


def _join(parts: Iterable[str]) -> str:
    """Return inline Markdown without needless white space; a line feed stands for a line break."""
    joined: list[str] = []
    for part in parts:
        if (
            joined and joined[-1].endswith("**") and part.startswith("**") and part[2:3] != "*"
        ):  # `**a****b**` is not bold
            joined[-1], part = joined[-1][:-2], part[2:]  # noqa: PLW2901 (replaces the part)
        if joined and joined[-1].endswith("!") and part.startswith("["):  # a link, which would be an embedded file
            joined[-1] = f"{joined[-1][:-1]}\\!"
        if part and joined:
            joined[-1] = _escape_end(joined[-1], part)
        if part:
            joined.append(part)
    text = re.sub(r" {2,}", " ", "".join(joined))
    return re.sub(r" ?(?:\n ?)+", "\n", text).strip(" \n")


def _escape_end(text: str, following: str) -> str:
    """Return `text` with a mark at its end escaped that has a meaning only with `following`."""
    seam = _SEAM.search(text, max(0, len(text) - _WIDTH))
    if seam and _MARKS.match(text + following[:_WIDTH], seam.start(1)):
        return f"{text[: seam.start(1)]}\\{text[seam.start(1) :]}"
    return text


def _write_parts(nodes: Iterable[Any], *, plain: bool = False) -> list[str]:
    """Return the parts of a line, structures as text; with `plain`, without links."""
    parts: list[str] = []
    for node in _flatten(nodes):
        if node is _BORDER:
            parts.append(" ")
        elif node.name in _STRUCTURES:
            parts += [" ", *_write_parts(node.children, plain=plain), " "]
        else:
            parts.append(_write_inline(node, parts, plain=plain))
    return parts


def _write_line(nodes: Iterable[Any]) -> str:
    return _join(_write_parts(nodes)).replace("\n", " ")


def _write_inline(node: Any, before: Sequence[str], *, plain: bool = False) -> str:
    """Return the Markdown of an inline element after the parts `before` of its line."""
    name = node.name
    if name == "#text":
        return _escape(node.data or "")
    if name in {"br", "sup"}:
        return "\n" if name == "br" else _write_exponent(node, before)
    if name == "img":
        return _write_image(node, plain=plain)
    if name in _CODE:
        text = _BLANKS.sub(" ", _read_text(node.children))
        code, link = _write_code(text.strip()), node.children[0] if len(node.children) == 1 else None
        if link and link.name == "a" and not plain:
            code = _write_link(code, (link.attrs or {}).get("href") or "")
        return _surround(text, code)
    parts = _write_parts(node.children, plain=plain or name == "a")
    text, core = "".join(parts), _join(parts)
    if name == "a":
        return text if plain else _surround(text, _write_link(core.replace("\n", " "), node.attrs["href"].strip()))
    mark = _EMPHASIS[name]
    return _surround(text, f"{mark}{core}{mark}" if core and not core.startswith(mark) else core)


def _write_exponent(node: Any, before: Sequence[str]) -> str:
    # Behind a blank, Obsidian takes "^1" at the end of a line for the id of the block.
    mark = "^" if before and before[-1] and not before[-1][-1].isspace() else ""
    return f"{mark}{node.children[0].data.strip()}"


def _escape(text: str) -> str:
    return _MARKS.sub(lambda marks: "".join(f"\\{mark}" for mark in marks[0]), _BLANKS.sub(" ", text))


def _surround(text: str, core: str) -> str:
    """Return `core` between the white space at the ends of `text`, which would end an emphasis."""
    if not text.strip():
        return text
    return f"{' ' if text[0].isspace() else ''}{core}{' ' if text[-1].isspace() else ''}"


def _write_link(text: str, target: str) -> str:
    if text.removeprefix("\\") in _PERMALINK and target.startswith("#"):
        return ""
    return f"[{text}]({_encode(target)})" if text and target and is_allowed(target) else text


def _encode(target: str) -> str:
    return _UNSAFE.sub(lambda mark: "".join(f"%{byte:02X}" for byte in mark[0].encode()), target)


def _write_image(node: Any, *, plain: bool) -> str:
    """Return an image as a link, so that opening the note fetches nothing."""
    attributes = node.attrs or {}
    source, text = (attributes.get("src") or "").strip(), _BLANKS.sub(" ", attributes.get("alt") or "").strip()
    if source.lower().startswith("data:") or not text:
        return ""
    return _escape(text) if plain else _write_link(_escape(text), source)


def _write_code(text: str) -> str:
    fence, padding = make_fence(text, 1), " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}" if text else ""


def _read_text(nodes: Iterable[Any]) -> str:
    """Return the text of the nodes as it stands, without what is not shown."""
    parts, stack = [], list(reversed(list(nodes)))
    while stack:
        node = stack.pop()
        if node.name == "#text":
            parts.append(node.data or "")
        elif node.name == "br":
            parts.append("\n")
        elif _is_shown(node):
            stack += reversed(node.children)
    return "".join(parts)


def _write_structure(node: Any) -> list[str]:
    """Return the blocks of a heading, a list, a quotation, a rule, preformatted text or a table."""
    if node.name in _HEADINGS:
        text = _write_line(node.children)
        return [f"{'#' * int(node.name[1])} {text}"] if text else []
    if node.name in _LISTS:
        return [_write_list(node)]
    if node.name == "blockquote":
        text = "\n\n".join(block for block, _ in _write_blocks(node.children))
        return ["\n".join(f"> {line}".rstrip() for line in text.split("\n"))] if text else []
    if node.name == "hr":
        return ["---"]
    return _write_table(node) if node.name == "table" else _write_preformatted(node)


def _write_preformatted(node: Any) -> list[str]:
    text = _read_text(node.children).replace("\r\n", "\n").strip("\n").rstrip()
    if not text.strip():
        return []
    named = [node, *(child for child in node.children if child.name == "code")]
    languages = (_LANGUAGE.search((each.attrs or {}).get("class") or "") for each in named)
    fence = make_fence(text, 3)
    return [f"{fence}{next((match[1] for match in languages if match), '')}\n{text}\n{fence}"]


def _write_list(node: Any) -> str:
    """Return a list; what stands between its items belongs to the item before."""
    lines: list[str] = []
    number = _read_number(node, "start", 1)
    for child in node.children:
        is_item = child.name == "li"
        number = _read_number(child, "value", number) if is_item else number
        marker = f"{number}. " if node.name == "ol" else "- "
        if text := _write_item([child], marker, is_first=is_item or not lines):
            lines.append(text)
            number += is_item
    return "\n".join(lines)


def _write_item(nodes: Iterable[Any], marker: str, *, is_first: bool) -> str:
    """Return an item of a list, its blocks indented below the first one; with `is_first` false, only blocks below."""
    text = ""
    for block, is_list in _write_blocks(nodes):
        indent = " " * (4 if is_list else len(marker))
        lines = "\n".join(indent + line if line else "" for line in block.split("\n"))
        if not text and is_first:
            text = marker + lines[len(indent) :]
        else:
            text += f"{'' if not text else chr(10) if is_list else chr(10) * 2}{lines}"
    return text


def _read_number(node: Any, name: str, default: int) -> int:
    value = (node.attrs or {}).get(name) or ""
    return int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else default


def _write_table(node: Any) -> list[str]:
    """Return a table, with its first row as the head, or the blocks of the cells where a table only places them."""
    rows, captions, names = _read_rows(node)
    is_table = "th" in names or max((len(row) for row in rows), default=0) > 1
    if not is_table or names & _LAYOUT or ("th" not in names and names & _LISTS):
        return [block for row in [captions, *rows] for block, _ in _write_blocks(row)]
    blocks = [block for block, _ in _write_blocks(captions)]
    lines = [line for line in _write_cells(rows) if any(line)]
    if not lines:
        return blocks
    return [*blocks, join_table(lines)]


def _read_rows(table: Any) -> tuple[list[list[Any]], list[Any], set[str]]:
    """Return the cells of each row, the captions, and the names of all elements below the table."""
    rows: list[list[Any]] = []
    captions: list[Any] = []
    names: set[str] = set()
    stack = list(reversed(table.children))
    while stack:
        node = stack.pop()
        if node.name == "#text" or not _is_shown(node):
            continue
        names.add(node.name)
        if node.name == "caption":
            captions.append(node)
        elif node.name == "tr":
            rows.append([])
        elif node.name in {"td", "th"} and rows:
            rows[-1].append(node)
        if node.name not in {"caption", "table"}:
            stack += reversed(node.children)
    return rows, captions, names


def _write_cells(rows: list[list[Any]]) -> Iterator[list[str]]:
    """Yield the texts of each row; a cell that spans others leaves them empty."""
    below: dict[int, int] = {}  # how many further rows a cell above still covers, by column
    for row in rows:
        line: list[str] = []
        for cell in row:
            while below.get(len(line), 0):
                below[len(line)] -= 1
                line.append("")
            text = _write_line(cell.children).strip().replace("|", "\\|")
            across, down = (min(_read_number(cell, name, 1), WIDEST) for name in ("colspan", "rowspan"))
            for column in range(len(line), len(line) + max(1, across)):
                below[column] = max(0, down - 1)
                line.append(text if column == len(line) and text else "")
                text = ""
        for column in range(len(line), max(below, default=-1) + 1):
            below[column] = max(0, below[column] - 1)
        yield line
