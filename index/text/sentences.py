"""Split a document into sentences without markup.

Law, tested: no sentence contains code, tables, properties, addresses or hidden text, and each sentence is one line."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from index.deferred_patterns import compile_later
from index.model import Block, Document
from index.names import base_name
from index.text.chunking import SENTENCE, is_grapheme_boundary
from index.text.emphasis import STAND_INS, remove_emphasis
from index.text.words import languages_by_word

SUMMARY: Final = 140  # most characters of a summary
LONGEST: Final = 12_000  # first characters of a document that are read; its topic is clear by then
MARGIN: Final = 33_000  # further characters that are cleaned with a text that is cut: as many as the longest secret
WRAPPED: Final = 60  # least length of a line that an editor may have wrapped, so that it continues on the next line
ELLIPSIS: Final = "…"
SPOKEN: Final = frozenset({"paragraph", "list", "quote", "callout"})

_ITEM = compile_later(r"[ \t]*(?:[-*+]|\d{1,9}[.)]|\[\d{1,3}\])[ \t]+(?:\[.\][ \t]+)?")
_QUOTED = compile_later(r"(?:[ \t]*>[ \t]?)+")
_CALLOUT = compile_later(r"\[![\w-]{1,40}\][+-]?[ \t]*")
_FENCE = compile_later(r"[ \t]*(?:`{3,}|~{3,})")
_HEADING = compile_later(r"^[ \t]{0,3}#{1,6}[ \t]+|(?<![ \t])[ \t]+#+[ \t]*+$|\n[ \t]{0,3}(?:=+|-+)[ \t]*$")
_EMBED = compile_later(r"!\[\[[^\[\]\n]{1,500}\]\]|!\[[^\[\]\n]{0,500}\]\([^()\n]{0,1000}\)")
_WIKI = compile_later(r"\[\[([^\[\]\n|]{1,500})(?:\|([^\[\]\n]{1,500}))?\]\]")
_LINK = compile_later(r"\[([^\[\]\n]{1,500})\]\((?:[^()\n]|\([^()\n]{0,200}\)){0,1000}\)")
_ADDRESS = compile_later(
    r"<?\b(?:(?:https?|ftp|file|obsidian|mailto):|www\.)(?:[^\s<>()、。，）】」]|\([^\s<>()]{0,500}\))+>?",
    re.IGNORECASE,
)
# A link that is cut.
_TORN = compile_later(r"!?\[{1,2}[^\[\]\n]*+(?:\](?:\((?:[^()\n]*+\([^()\n]*+\)?)?[^()\n]*+)?)?\Z")
_RAISED = compile_later(r"<sup>(?=[-+\u2212]?\d+</sup>)")
_INLINE_TAGS = compile_later(
    r"</?(?:b|code|del|em|font|i|ins|kbd|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>\n]{0,500})?>", re.IGNORECASE
)
_TAGS = compile_later(r"</?[A-Za-z][^<>\n]{0,500}>")
_TEMPLATE = compile_later(r"\{\{[^{}\n]{0,500}\}\}|<%(?:[^%\n]|%(?!>)){0,500}%>")
_FOOT = compile_later(r"\(\[\^[^\[\]\s]{1,100}\]\)|\[\^[^\[\]\s]{1,100}\]:?|(?:^|[ \t])\^[\w-]{1,100}$")
_FIELD = compile_later(r"\[[\w -]{1,60}::[ \t]*([^\[\]\n]{1,300})\]")
_LINE_FIELD = compile_later(r"^[\w -]{1,60}::(?:[ \t]+|$|(?=\[\[))")
_CODE = compile_later(r"\\.|(?<!`)(`+)(?!`)(.{1,1000}?)(?<!`)\1(?!`)", re.DOTALL)
_STRONG = compile_later(
    r"`[^`\n]+`|\*\*([^*\n]{2,80})\*\*|==(?!\s)([^=\n]{2,80})(?<!\s)==|(?<![*\w])\*([^*\s][^*\n]{1,40})\*(?!\*)|\[\[([^\[\]\n|#]{2,40})\]\]|[「『《]([^「」『』《》\n]{2,20})[」』》]|[«“„] ?([^«»“”„\n]{2,30}?) ?[»”“]"
)  # code, which is no phrase; bold, highlighted or slanted text, the names of notes, and quoted names
_HASH = compile_later(r"(?<!\S)#(?=[^\s#])(?!\d+(?!\w))")  # "#12" is no tag
_ESCAPE = compile_later(r"\\([!-/:-@\[-`{-~])")
_UNSEEN = compile_later(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]|[\ud800-\udfff]|[\U000e0000-\U000e0fff]"
)
_PIECE = compile_later(r"[\U000e0000-\U000e0fff]|[^\U000e0000-\U000e0fff]+")
_LOOSE_END = compile_later(r" (\.(?=\s|\Z)|\))")
_JOINTS: Final = "–—:;, "  # marks that begin a line once the address before them is removed
_CLOSING: Final = ')]）»”"'
_PARTICLE = compile_later("[はがをにでもとの]")  # Japanese
_AND_SO_ON = compile_later(r"\b(?:etc|usw)\.$", re.IGNORECASE)
_BLANK = compile_later(r"\s+")
_WIDE = compile_later(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]")
# A full stop after these does not end a sentence: abbreviations, an initial, the day of a date.
_ABBREVIATED = compile_later(
    r"(?:\b(?:e\.g|i\.e|etc|ex|vs|cf|al|approx|no|nr|art|fig|vol|pp?|st|mr|mrs|ms|dr|prof|inc|ltd|co|bzw|ca|evtl|ggf|inkl|usw|"
    r"vgl|abs|bspw|sog|engl|max|min|allg|bzgl|tel|str|sra?|srta|ud|uds|ej|av|avda|núm|pág|aprox|m|mm|mme|jan|feb|mar|apr|jun|jul|aug|sept?|okt|oct|nov|de[cz])"
    r"|\b[^\W\d_]|(?<![\w,])\d{1,2})\.$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Prose:
    """Holds the plain text of a document, in order: its headings, its sentences, and the phrases in bold or highlighted."""

    headings: tuple[str, ...]
    sentences: tuple[str, ...]
    marked: tuple[str, ...]


def read_prose(document: Document, clean: Callable[[str], str] = str) -> Prose:
    """Read the sentences of `document`; `clean` removes secrets from the text."""
    headings: list[str] = []
    sentences: list[str] = []
    marked: list[str] = []
    left = LONGEST
    for block in document.blocks:
        if block.kind != "heading" and block.kind not in SPOKEN:
            continue
        text = _read_block(document, block, left, clean)
        if block.kind != "heading":
            marked += [phrase for match in _STRONG.finditer(text) if (phrase := next(filter(None, match.groups()), ""))]
            sentences += split_markdown(text, clean)
        elif line := _read_heading(text, clean):
            headings.append(line)
        left -= block.end - block.start
        if left <= 0:
            break
    return Prose(tuple(headings), tuple(sentences), tuple(clean(plain_text(phrase)) for phrase in marked[:100]))


def first_sentence(document: Document, clean: Callable[[str], str] = str) -> str:
    """Return the first heading or sentence of `document`, whichever comes first; "" when it begins with none."""
    left = LONGEST
    for block in document.blocks:
        if block.kind != "heading" and block.kind not in SPOKEN:
            continue
        text = _read_block(document, block, LONGEST, clean)  # whole: half a heading would be a wrong summary
        lines = [_read_heading(text, clean)] if block.kind == "heading" else split_markdown(text, clean)
        if line := next(filter(None, lines), ""):
            return line
        left -= block.end - block.start
        if left <= 0:
            break
    return ""


def _read_heading(text: str, clean: Callable[[str], str]) -> str:
    """Return the words of a heading; "" when it has only marks."""
    line = clean(plain_text(_HEADING.sub("", text)))
    return line if line.strip("*_=~#` ") else ""


def _read_block(document: Document, block: Block, most: int, clean: Callable[[str], str]) -> str:
    """Return at most `most` characters of a block, cleaned; a link that is cut at the end is left out."""
    text = cut_cleaned(document.text[block.start : min(block.end, block.start + most + MARGIN + 1)], most, clean)
    return text if block.end - block.start <= most else _TORN.sub("", text)


def cut_cleaned(text: str, most: int, clean: Callable[[str], str]) -> str:
    """Return the beginning of `text`, cleaned, in at most `most` characters.

    A secret that is cut may not be recognized, so `MARGIN` more characters are cleaned, and dropped after that."""
    cleaned = clean(text[: most + MARGIN])
    return (cleaned[:-MARGIN] if len(text) > most + MARGIN else cleaned)[:most]


def split_markdown(text: str, clean: Callable[[str], str] = str) -> list[str]:
    """Split Markdown into sentences, without code between fences; `clean` removes secrets that markup interrupts."""
    return [sentence for line in _join_lines(text) for sentence in split_line(line, clean)]


def plain_text(text: str) -> str:
    """Return `text` on one line, without Markdown, addresses and invisible characters."""
    held: list[str] = []
    text = _CODE.sub(
        lambda match: _hold(_ADDRESS.sub(" ", match[2]), held) if match[1] else match[0], _UNSEEN.sub("", text)
    )
    text = _EMBED.sub(" ", _LINE_FIELD.sub("", text))
    text = _WIKI.sub(lambda match: match[2] or _hold(_shown_name(match[1]), held), text)
    text = _LINK.sub(r"\1", text)
    text = _ADDRESS.sub(" ", text)
    text = _TAGS.sub(" ", _INLINE_TAGS.sub("", _RAISED.sub("^", _TEMPLATE.sub(" ", text))))
    text = _FOOT.sub("", text)
    text = _FIELD.sub(r"\1", text)
    text = _HASH.sub("", remove_emphasis(text))
    text = _PIECE.sub(lambda match: _restore(match[0], held), text.replace("( )", ""))
    text = _TEMPLATE.sub(" ", _EMBED.sub(" ", _UNSEEN.sub("", text)))  # in code and in names; Templater runs code, too
    return _LOOSE_END.sub(r"\1", _BLANK.sub(" ", text)).strip()


def _hold(text: str, held: list[str]) -> str:
    """Return a character that stands for `text` until `_restore`, so that marks inside it do not count as markup; `text` itself if no such character is left."""
    if len(held) == len(STAND_INS):
        return text
    held.append(text)
    return chr(STAND_INS[len(held) - 1])  # `_UNSEEN` has removed these characters from the text


def _restore(piece: str, held: list[str]) -> str:
    if ord(piece[0]) in STAND_INS:
        return held[STAND_INS.index(ord(piece))]
    return html.unescape(_ESCAPE.sub(r"\1", piece))


def _shown_name(target: str) -> str:
    """Return the text that a wikilink without an alias shows: the name of the note without its path."""
    path, _, heading = target.partition("#")
    return base_name(path).removesuffix(".md") or heading.lstrip("#^")


def _join_lines(text: str) -> Iterator[str]:
    """Yield the lines of a block without list and quote marks; lines that an editor wrapped are joined."""
    held, fenced = "", False
    for raw in text.splitlines():
        quoted = _QUOTED.match(raw)
        line = raw[quoted.end() :] if quoted else raw
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced:
            continue
        item = _ITEM.match(line)
        callout = _CALLOUT.match(line)
        line = line[item.end() :] if item else line[callout.end() :] if callout else line
        if held and (item or callout or not _is_continued(held, line.strip())):
            yield held
            held = ""
        held = _join(held, line.strip())
        if callout:
            yield held
            held = ""
    if held:
        yield held


def _is_continued(line: str, following: str) -> bool:
    """Return whether `following` continues `line`, because an editor wrapped the line there."""
    if not following or not line:
        return False
    return following[0].islower() or (len(line) >= WRAPPED and not SENTENCE.search(line[-3:] + "\n", 0, 3))


def _join(line: str, following: str) -> str:
    if not line or not following:
        return line or following
    return line + ("" if _WIDE.match(line[-1]) and _WIDE.match(following[0]) else " ") + following


def split_line(line: str, clean: Callable[[str], str] = str) -> list[str]:
    """Split a line into plain sentences; a line that contains only tags has none."""
    if all(word.startswith("#") for word in line.split()):
        return []
    line = clean(plain_text(line))
    sentences, start = [], 0
    for match in SENTENCE.finditer(line):
        end = match.end()
        behind = line[end:].lstrip()
        if match[0][0] == "." and _goes_on(line[max(start, end - 12) : end], behind):
            continue
        if match[0][-1] in _CLOSING and (behind[:1].islower() or _PARTICLE.match(behind)):
            continue  # the sentence goes on after a remark or a quotation (as here!)
        sentences.append(line[start:end])
        start = end
    return [part.strip().lstrip(_JOINTS) for part in (*sentences, line[start:]) if any(c.isalnum() for c in part)]


def _goes_on(before: str, behind: str) -> bool:
    """Return whether a sentence goes on after the full stop that `before` ends with."""
    if behind[:1].islower():
        return True
    if _AND_SO_ON.search(before):  # a function word with a capital begins a sentence
        return behind.partition(" ")[0].lower() not in languages_by_word()
    return bool(_ABBREVIATED.search(before))


def shorten(line: str, most: int) -> str:
    """Return `line`, or its beginning up to the end of a word, in at most `most` characters."""
    line = line.strip().rstrip(",;:，、；：")
    if len(line) <= most:
        return line
    room = most - len(ELLIPSIS)
    white = line.rfind(" ", room // 2, room + 1)
    at = (
        white if white > 0 else next((place for place in range(room, 0, -1) if is_grapheme_boundary(line, place)), room)
    )
    return line[:at].rstrip(" ,;:，、；：–—-(（「『《\u201c") + ELLIPSIS
