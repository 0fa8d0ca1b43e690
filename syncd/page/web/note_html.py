"""Turn the Markdown of a note into HTML that runs nothing and loads nothing: raw HTML is text, links are checked, pictures are links.

Laws, tested: every element and attribute of the result is one of a fixed list; an address leads to a note of the vault,
to a heading of the note, or by http, https or mailto out of the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from index.names import fold
from index.text.hidden_characters import escape_hidden
from syncd.page.web.templates import link

MOST: Final = 200_000  # characters of a note that are rendered
OUTSIDE: Final = ("http://", "https://", "mailto:")
REL: Final = "noopener noreferrer nofollow"
_WIKILINK: Final = re.compile(r"(!?)\[\[([^\[\]\r\n|#]*)(#[^\[\]\r\n|]*)?(?:\|([^\[\]\r\n]*))?\]\]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|\\")
_CALLOUT: Final = re.compile(r"\[!([^\]|]+)(?:\|[^\]]*)?\][+-]?[ \t]*")
_TASK: Final = re.compile(r"\[(.)\] ")
_BLOCK_ID: Final = re.compile(r"(?:\A|\s+)\^[A-Za-z0-9-]+[ \t]*\Z")
_ALIGNMENT: Final = re.compile(r"text-align:(left|right|center)")


def render_note(text: str, path: str, targets: Mapping[str, str | None], *, title: str = "") -> Markup:
    """Return the HTML of a note's body, without a first heading that repeats its title.

    `targets`: the path of the note that each link target, as written, leads to."""
    known = {fold(target): note for target, note in targets.items()}
    grammar = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    setattr(grammar, "validateLink", is_permitted)  # noqa: B010 - the library's hook, which it declares as a method
    grammar.inline.ruler.before("link", "wikilink", _read_wikilink)
    environment: MutableMapping[str, Any] = {"path": path, "known": known, "anchors": set(), "level": 1}
    tokens = grammar.parse(escape_hidden(text[:MOST]), environment)
    if len(tokens) > 2 and tokens[0].type == "heading_open" and tokens[1].content == title:
        tokens = tokens[3:]
    _rewrite(tokens, environment)
    html: str = grammar.renderer.render(tokens, grammar.options, environment)
    return Markup(html)  # noqa: S704 - the renderer escapes all text; raw HTML is off


def is_permitted(address: str) -> bool:
    """Return whether a link with this address becomes a link: one without a scheme, or one of `OUTSIDE`."""
    plain = re.sub(r"[\x00-\x20]", "", unquote(address)).casefold()
    return plain.startswith(OUTSIDE) or not _SCHEME.match(plain)


def _read_wikilink(state: StateInline, silent: bool) -> bool:
    """Read `[[Note#Heading|shown]]` as a link, as Obsidian does."""
    match = _WIKILINK.match(state.src, state.pos)
    if match is None or (not match[2].strip() and not match[3]):
        return False
    if not silent:
        target, subpath = match[2].strip(), match[3] or ""
        shown = match[4] or f"{target}{' > '.join(['', *subpath.split('#')[1:]])}".removeprefix(" > ")
        opening = state.push("link_open", "a", 1)
        opening.meta = {"target": target, "subpath": subpath}
        opening.attrs = {"class": "embed"} if match[1] else {}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _rewrite(tokens: Sequence[Token], environment: MutableMapping[str, Any]) -> None:
    """Check every link, replace pictures by links and styles by classes, and let the keyboard reach wide tables."""
    opened: list[Token] = []  # the links around the token
    for at, token in enumerate(tokens):
        if (style := token.attrs.pop("style", None)) and (aligned := _ALIGNMENT.fullmatch(str(style))):
            token.attrSet("class", f"align-{aligned[1]}")
        if token.type == "table_open":
            token.attrSet("tabindex", "0")  # a wide table scrolls, with the keyboard too
        if token.type == "heading_open" and at + 1 < len(tokens):
            anchor = heading_anchor(tokens[at + 1].content)
            if anchor not in environment["anchors"]:  # of several equal headings, a link leads to the first
                token.attrSet("id", anchor)
            environment["anchors"].add(anchor)
            environment["level"] = min(environment["level"] + 1, int(token.tag[1]) + 1, 6)
            token.tag = tokens[at + 2].tag = f"h{environment['level']}"
        if token.type == "link_open":
            opened.append(token)
        elif token.type == "link_close":
            _check_link(opened.pop(), token, environment)
        if token.children:
            _mark_task(tokens, at, token.children)
            _title_callout(tokens, at, token.children)
            _hide_block_id(tokens, at, token.children)
            token.children = _replace_pictures(token.children)
            _rewrite(token.children, environment)


def _check_link(token: Token, closing: Token, environment: Mapping[str, Any]) -> None:
    """Lead a link to a note of the vault, a heading, or out of the page; a link to nothing becomes a span."""
    address = str(token.attrs.get("href") or "")
    if address.casefold().startswith(OUTSIDE):
        token.attrs = {"href": address, "rel": REL, "class": "outside"}
        return
    target, subpath = _target_of(token, address)
    kind = str(token.attrs.get("class") or "")
    path = environment["path"] if not target else environment["known"].get(fold(target))
    if path is None:
        token.tag = closing.tag = "span"
        token.attrs = {"class": f"missing {kind}".strip(), "title": "There is no such note"}
        return
    anchor = f"#{heading_anchor(subpath.rsplit('#', 1)[-1])}" if subpath and not subpath.startswith("#^") else ""
    token.attrs = {"href": anchor if not target and anchor else link("/note", path=path) + anchor}
    if kind:
        token.attrSet("class", kind)


def _target_of(token: Token, address: str) -> tuple[str, str]:
    if "target" in token.meta:
        return token.meta["target"], token.meta["subpath"]
    parts = urlsplit(address)
    return unquote(parts.path), f"#{unquote(parts.fragment)}" if parts.fragment else ""


def _replace_pictures(children: Sequence[Token]) -> list[Token]:
    """Replace pictures by links to them, inside of a link by their text: loading one would tell its server who reads the note."""
    replaced: list[Token] = []
    depth = 0
    for token in children:
        depth += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type != "image":
            replaced.append(token)
            continue
        text = Token("text", "", 0, content=token.content or "picture")
        opening = Token("link_open", "a", 1, attrs={"href": str(token.attrs.get("src") or ""), "class": "picture"})
        replaced += [text] if depth else [opening, text, Token("link_close", "a", -1)]
    return replaced


def _mark_task(tokens: Sequence[Token], at: int, children: list[Token]) -> None:
    """Show the box of a task as a character."""
    first = children[0]
    in_item = at >= 2 and tokens[at - 2].type == "list_item_open"
    if in_item and first.type == "text" and (box := _TASK.match(first.content)):
        first.content = ("☐ " if box[1] == " " else "☑ ") + first.content[box.end() :]


def _title_callout(tokens: Sequence[Token], at: int, children: list[Token]) -> None:
    """Show the first line of a callout, `> [!warning] Title`, as its title."""
    first = children[0]
    begins = at >= 2 and tokens[at - 2].type == "blockquote_open" and first.type == "text"
    if not begins or (callout := _CALLOUT.match(first.content)) is None:
        return
    title = first.content[callout.end() :]
    ends = [number for number, child in enumerate(children) if child.type in ("softbreak", "hardbreak")]
    end = ends[0] if ends else len(children)
    first.content = f"{callout[1].strip().capitalize()}{': ' if title or end > 1 else ''}{title}"
    children[:end] = [Token("strong_open", "strong", 1), *children[:end], Token("strong_close", "strong", -1)]


def _hide_block_id(tokens: Sequence[Token], at: int, children: list[Token]) -> None:
    """Hide the block id at the end of a paragraph, such as ` ^o1` of a fact, as Obsidian's reading view does."""
    ends_in_text = at > 0 and tokens[at - 1].type == "paragraph_open" and children[-1].type == "text"
    if not ends_in_text or not _BLOCK_ID.search(tokens[at].content):  # in Markdown: `**e**^2` has none, nor has `\^2`
        return
    children[-1].content, hidden = _BLOCK_ID.subn("", children[-1].content)
    if hidden and not children[-1].content and len(children) > 1 and children[-2].type in ("softbreak", "hardbreak"):
        del children[-2:]


def heading_anchor(text: str) -> str:
    """Return the id of a heading: its words with hyphens, after a prefix that no other id of the page has."""
    words = re.findall(r"[\w]+", fold(text))
    return "h-" + "-".join(words)[:100]
