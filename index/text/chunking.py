"""Chunking splits a document into passages small enough to embed, at the boundaries of sections, blocks, rows and sentences.

Laws, tested: every chunk's text is `Document.text[a:b]`; chunks are in order and cover everything except white space;
no passage with its context exceeds the budget; a code block or a table row is split only if it alone exceeds the
budget, or `SECTION`. The module assumes that token counts add up over pieces separated by white space, as they do for
word-piece encoders."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TypeAlias

from index.model import Chunk, Document

Count: TypeAlias = Callable[[Sequence[str]], list[int]]

CHUNKING = 1  # increase it when documents are split differently, so that indexes are rebuilt
SEPARATOR = " > "  # between headings, and between title and headings
ALIAS = " · "  # between a title and the note's other names
MOST = 512  # most tokens of a chunk: a vector of more tokens represents each poorly, whatever the encoder accepts
OVERLAP = 64  # tokens that the next passage repeats
ENDS = 2  # special tokens that an encoder of 512 adds, so that it reads two tokens of text less

# A full stop before white space, a full stop of a script without spaces, or the end of a line. A run of marks is read once,
# whatever follows: possessive, and never from its middle.
SENTENCE = re.compile(r"(?<![.!?…‽])[.!?…‽]++[\"'”’»)\]]*+(?=\s)|[。！？｡．؟۔।॥။።‼⁇⁈⁉]+[」』】）〉》〕”’\"')\]]*|\n")
LINE = re.compile(r"\n")
HELD = re.compile(r"\S")
ROWS = frozenset({"code", "table", "math", "html"})  # not prose: split between lines, otherwise anywhere
JOINER, VIRAMA = "\u200d", 9  # the joiner of emoji, and the combining class of viramas, which join consonants
LONGEST_GRAPHEME = (
    256  # characters that are searched for a boundary; without one, a run of marks or flags is cut anyway
)
QUARTERS = 4
SECTION = 1 << 17  # characters that are split into passages at a time; each needs about 70 bytes of memory
COUNTED = 2_000  # parts whose tokens are counted at a time
TAILS = 8  # last sentences of a passage that may begin the overlap with the next passage


@dataclass(frozen=True, slots=True)
class Sizes:
    """Holds the maximum sizes of chunks, in tokens of the encoder."""

    tokens: int  # context and passage together
    overlap: int  # repeated from the end of the passage before
    context: int  # title and heading trail in front of a passage


@dataclass(frozen=True, slots=True)
class _Piece:
    """Describes a part of the text, `text[start:end]`, that is a block or a part of one."""

    kind: str
    start: int
    end: int
    trail: tuple[str, ...]
    tokens: int = -1  # -1 = not counted yet


@dataclass(slots=True)
class _Pack:
    """Collects pieces for one passage; `room`: the most tokens of the pieces; `start`: the start of the passage."""

    room: int
    pieces: list[_Piece] = field(default_factory=list)
    size: int = 0
    start: int = -1

    @property
    def end(self) -> int:
        return self.pieces[-1].end

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.size += piece.tokens


def chunk_sizes(max_tokens: int, tokens: int | None = None, overlap: int | None = None) -> Sizes:
    """Return the sizes for an encoder that reads `max_tokens`. Default: 512 with an overlap of 64, or an eighth if fewer."""
    most = max(16, min(max_tokens, tokens or MOST))
    usual = OVERLAP if MOST - ENDS <= most <= MOST else most // 8
    repeated = usual if overlap is None else max(0, min(overlap, most // 2))
    return Sizes(most, repeated, most // 8)


def split_document(document: Document, sizes: Sizes, count: Count) -> list[Chunk]:
    """Split `document` into passages, in order. A note without text gets one empty passage, so that its title is found."""
    passages, known = _find_passages(document, sizes, count)
    shorten = _make_shortener(sizes.context, count, known)
    if not passages:
        context = shorten(_context(document, (), first=True))
        return [Chunk(0, "", (), context)] if context else []
    chunks = []
    for ord_, passage in enumerate(passages):
        context = shorten(_context(document, passage.trail, first=ord_ == 0))
        chunks.append(Chunk(ord_, document.text[passage.start : passage.end], passage.trail, context))
    return chunks


def _find_passages(document: Document, sizes: Sizes, count: Count) -> tuple[list[_Piece], dict[str, int]]:
    """Return the passages, and the number of tokens of each context that was counted on the way."""
    text, blocks = document.text, _read_blocks(document)
    lines = [_context(document, trail, first=True) for trail in dict.fromkeys(block.trail for block in blocks) or [()]]
    counted = count(lines)
    budget = max(1, sizes.tokens - min(sizes.context, max(counted)))
    passages: list[_Piece] = []
    for section in _split_into_sections(text, blocks):
        passages += _cut_section(text, section, budget, sizes.overlap, count)
    return passages, dict(zip(lines, counted, strict=True))


def _cut_section(text: str, section: list[_Piece], budget: int, overlap: int, count: Count) -> list[_Piece]:
    pieces = _split_long_blocks(text, list(_count_pieces(text, section, count)), budget, count)
    packs = _fill_packs(pieces, budget, min(overlap, budget - 1))
    _set_starts(text, packs, overlap, count)
    return [_Piece("paragraph", pack.start, pack.end, _heading_trail(pack.pieces), pack.size) for pack in packs]


def _count_pieces(text: str, pieces: Iterable[_Piece], count: Count) -> Iterator[_Piece]:
    """Yield the pieces with their tokens; tokens that are not counted yet are counted in batches."""
    remaining = iter(pieces)
    while batch := list(islice(remaining, COUNTED)):
        fresh = [piece for piece in batch if piece.tokens < 0]
        counts = iter(count([text[piece.start : piece.end] for piece in fresh]) if fresh else ())
        for piece in batch:
            yield replace(piece, tokens=next(counts)) if piece.tokens < 0 else piece


def _split_into_sections(text: str, blocks: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the blocks in lists of at most `SECTION` characters; a larger block is cut at its lines."""
    section: list[_Piece] = []
    for block in blocks:
        for piece in _split_piece(text, block, _section_ends(text, block)):
            if section and piece.end - section[0].start > SECTION:
                yield section
                section = []
            section.append(piece)
    if section:
        yield section


def _section_ends(text: str, piece: _Piece) -> Iterator[int]:
    at = piece.start
    while piece.end - at > SECTION:
        line_end = text.rfind("\n", at, at + SECTION) + 1
        at = min(piece.end, line_end or _safe_cut(text, at, at + SECTION))
        yield at


def _read_blocks(document: Document) -> list[_Piece]:
    """Return the document's blocks; text outside the blocks becomes paragraphs, so that nothing is lost."""
    pieces: list[_Piece] = []
    at: int = 0
    trail: tuple[str, ...] = ()
    for block in document.blocks:
        pieces += _trim_piece(document.text, "paragraph", at, block.start, trail)
        pieces += _trim_piece(document.text, block.kind, max(at, block.start), block.end, block.trail)
        at, trail = max(at, block.end), block.trail
    pieces += _trim_piece(document.text, "paragraph", at, len(document.text), trail)
    return pieces


def _trim_piece(text: str, kind: str, start: int, end: int, trail: tuple[str, ...]) -> Iterator[_Piece]:
    """Yield the piece without white space around it, but with its first line's indentation; nothing if it is all white."""
    if not (held := HELD.search(text, start, end)):
        return
    first = held.start()
    line = text.rfind("\n", start, first) + 1 or (start if start == 0 or text[start - 1] == "\n" else first)
    while text[end - 1].isspace():
        end -= 1
    yield _Piece(kind, line, end, trail)


def _context(document: Document, trail: tuple[str, ...], *, first: bool) -> str:
    """Return the context of a passage: the note's title, its aliases if it is the first passage, and the headings above."""
    title = document.title.strip()
    names = [name for name in document.aliases if name.strip() and name.casefold() != title.casefold()] if first else []
    head = ALIAS.join((title, *names))
    if trail and trail[0].strip().casefold() == title.casefold():
        trail = trail[1:]
    return unicodedata.normalize(
        "NFC", SEPARATOR.join(" ".join(part.split()) for part in (head, *trail) if part.strip())
    )


def _make_shortener(most: int, count: Count, known: dict[str, int]) -> Callable[[str], str]:
    """Return a function that shortens a context to `most` tokens, and remembers the counts in `known`."""

    def shorten(line: str) -> str:
        while line and (tokens := known[line] if line in known else known.setdefault(line, count([line])[0])) > most:
            at = min(len(line) - 1, len(line) * most // tokens)
            space = line.rfind(" ", at // 2, at + 1)
            line = line[: space if space > 0 else min(at, _safe_cut(line, 0, at))].rstrip()
        return line

    return shorten


def _split_long_blocks(text: str, blocks: list[_Piece], budget: int, count: Count) -> list[_Piece]:
    """Split the blocks that exceed `budget` into lines, then sentences, then parts of a line; the others stay."""

    def split_long(split: Callable[[_Piece], Iterable[int]], pieces: list[_Piece]) -> tuple[list[_Piece], bool]:
        parts = chain.from_iterable(parts_of(p, split) if p.tokens > budget else (p,) for p in pieces)
        counted = list(_count_pieces(text, parts, count))
        return counted, len(counted) > len(pieces)

    def parts_of(piece: _Piece, split: Callable[[_Piece], Iterable[int]]) -> Iterable[_Piece]:
        parts = _split_piece(text, piece, split(piece))
        first = list(islice(parts, 2))
        return chain(first, parts) if len(first) > 1 else (piece,)

    pieces, _ = split_long(lambda p: () if p.kind == "paragraph" else _match_ends(LINE, text, p), blocks)
    pieces, _ = split_long(lambda p: () if p.kind in ROWS else _match_ends(SENTENCE, text, p), pieces)
    more = True
    while more:
        pieces, more = split_long(lambda p: _cut_points(text, p.start, p.end, p.tokens // budget + 1), pieces)
    return pieces


def _split_piece(text: str, piece: _Piece, at: Iterable[int]) -> Iterator[_Piece]:
    start = piece.start
    for end in chain(at, (piece.end,)):
        yield from _trim_piece(text, piece.kind, start, end, piece.trail)
        start = end


def _match_ends(pattern: re.Pattern[str], text: str, piece: _Piece) -> Iterator[int]:
    return (match.end() for match in pattern.finditer(text, piece.start, piece.end))


def _cut_points(text: str, start: int, end: int, parts: int) -> list[int]:
    """Return where to cut `text[start:end]` into about `parts` equal parts: at near white space, or between graphemes."""
    step = max(1, (end - start) // parts)
    cuts = [start]
    for aim in range(start + step, end, step):
        white = max((at for at in range(max(aim - step // 4, cuts[-1]) + 1, aim + 1) if text[at].isspace()), default=0)
        at = white or _safe_cut(text, cuts[-1], aim)
        if cuts[-1] < at < end:
            cuts.append(at)
    return cuts[1:]


def _safe_cut(text: str, start: int, at: int) -> int:
    """Return the nearest grapheme boundary at or before `at`; after `at` if there is none between `start` and `at`.

    A run of LONGEST_GRAPHEME characters without a boundary is cut at `at`: to read all of a longer one, again for each
    cut, would take minutes for a large note."""
    first, last = max(start, at - LONGEST_GRAPHEME), min(len(text), at + LONGEST_GRAPHEME)
    if back := next((place for place in range(at, first, -1) if is_grapheme_boundary(text, place)), None):
        return back
    if at - start >= LONGEST_GRAPHEME:
        return at
    return next((place for place in range(at, last) if is_grapheme_boundary(text, place)), last)


def is_grapheme_boundary(text: str, at: int) -> bool:
    """Return whether the characters before and after `at` certainly belong to two graphemes."""
    before, after = text[at - 1], text[at]
    if after.isascii() and after != "\n":
        return True
    flags = "\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"
    return not (
        unicodedata.category(after) in ("Mn", "Mc", "Me")
        or JOINER in (before, after)
        or unicodedata.combining(before) == VIRAMA
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # a skin tone
        or "\U000e0020" <= after <= "\U000e007f"  # a tag of a flag
        or "\u1160" <= after <= "\u11ff"  # a Hangul vowel or final
        or (before == "\r" and after == "\n")
        or flags
    )


def _fill_packs(pieces: list[_Piece], budget: int, overlap: int) -> list[_Pack]:
    """Distribute the pieces over packs that fill their room; a heading starts a new pack if the last one is full enough."""
    pack = _Pack(budget)
    packs = [pack]
    whole = sum(piece.tokens for piece in pieces) <= budget
    section = 0  # tokens from the latest heading to the next
    for i, piece in enumerate(pieces):
        new = piece.kind == "heading" and not whole
        if new:
            section = piece.tokens
            for at in range(i + 1, len(pieces)):  # no copy of the rest for each heading
                later = pieces[at]
                if later.kind == "heading" or section > budget:
                    break
                section += later.tokens
        fits = pack.size + piece.tokens <= pack.room
        full = new and pack.size >= pack.room // (2 if pack.size + section <= pack.room else 4)
        if pack.pieces and (not fits or full):
            pack = _next_pack(pack, piece, budget, overlap)
            packs.append(pack)
        pack.add(piece)
    return [pack for pack in packs if pack.pieces]


def _next_pack(pack: _Pack, piece: _Piece, budget: int, overlap: int) -> _Pack:
    """Return the next pack, for `piece`: it takes over headings at the end of `pack`, or leaves room for the overlap."""
    body = len(pack.pieces)
    while body > 0 and pack.pieces[body - 1].kind == "heading":
        body -= 1
    heads = pack.pieces[body:]
    taken = sum(head.tokens for head in heads)
    if heads and body and taken + piece.tokens <= budget:
        del pack.pieces[body:]
        pack.size -= taken
        return _Pack(budget, heads, taken)
    goes_on = piece.kind != "heading" and pack.pieces[-1].trail == piece.trail and not heads
    return _Pack(budget - overlap if goes_on and piece.tokens <= budget - overlap else budget)


def _set_starts(text: str, packs: list[_Pack], overlap: int, count: Count) -> None:
    """Set the start of each passage: its first piece or, if it has room for an overlap, earlier pieces or sentences."""
    asked: list[tuple[_Pack, list[int], int]] = []  # a pack, the possible starts, and the end of the overlap
    budget = packs[0].room if packs else 0
    for before, pack in zip([None, *packs], packs, strict=False):
        pack.start = pack.pieces[0].start
        if before is None or pack.room == budget:
            continue
        size, back = 0, before.pieces[-1]
        for piece in reversed(before.pieces[1:]):  # never repeat the whole passage before
            size += piece.tokens
            if size > overlap or piece.trail != pack.pieces[0].trail or piece.kind == "heading":
                break
            pack.start = piece.start
        if pack.start == pack.pieces[0].start and back.kind not in ROWS and back.kind != "heading":
            starts = [*_match_ends(SENTENCE, text, back)][-TAILS:]
            part = (back.end - back.start) * overlap // max(overlap + 1, back.tokens)
            words = _cut_points(text, back.end - part, back.end, QUARTERS)[:2] if part > QUARTERS else []
            asked.append((pack, [s for s in starts if text[s : back.end].strip()] + words, back.end))
    counts = iter(count([text[start:end] for _, starts, end in asked for start in starts]) if asked else [])
    for pack, starts, end in asked:
        for start in [start for start in starts if next(counts) <= overlap][:1]:
            pack.start = next(_trim_piece(text, "paragraph", start, end, ())).start


def _heading_trail(pieces: list[_Piece]) -> tuple[str, ...]:
    """Return the headings above a passage; if it starts with a heading, only the headings above all of its pieces."""
    if pieces[0].kind != "heading":
        return pieces[0].trail
    trails = [piece.trail for piece in pieces if piece.kind != "heading"] or [pieces[0].trail]
    same = 0
    while all(len(trail) > same and trail[same] == trails[0][same] for trail in trails):
        same += 1
    return trails[0][:same]
