"""Draw diagrams of a part of the graph (Mermaid, Obsidian canvas, GraphML), and groups of notes as a canvas.

Law, tested: whatever characters names contain, each diagram is well formed, shows all given nodes and relations (a
Mermaid drawing those within Mermaid's limits), and is identical for an identical graph."""

from __future__ import annotations

import json
import unicodedata
import xml.etree.ElementTree as ET
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from index.deferred_patterns import compile_later
from index.document_ids import sha256
from index.graph.vertex import Edge
from index.names import base_name, fold

# Above these limits Mermaid refuses to draw (`maxEdges`, `maxTextSize`).
MERMAID_EDGES: Final = 500
MERMAID_TEXT: Final = 50_000
_MERMAID_ROOM: Final = MERMAID_TEXT - 200  # for nodes and relations; the rest is for the fence and the comments
LABEL = 80  # characters of a name, and of a relation's type, in a Mermaid drawing

WIDTH, HEIGHT, ROWS = 400, 240, 8  # size of a card in canvas units; most cards in a column
# Gaps for arrows with their types, between cards, around everything, and for the title.
ACROSS, DOWN, MARGIN, BANNER = 240, 80, 60, 40
COLOURS = ("5", "3", "6", "2", "1")  # Obsidian's colours by entity type; "4" (green) marks the requested node


@dataclass(frozen=True, slots=True)
class Card:
    """Describes a node to draw."""

    name: str
    entity_type: str
    path: str  # path from the vault's root
    summary: str | None = None
    tags: tuple[str, ...] = ()
    observations: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """Describes a drawing. The first card is its centre; relations whose ends are not both in it are left out."""

    title: str
    cards: tuple[Card, ...]
    arrows: tuple[Edge, ...]

    @property
    def inner_edges(self) -> list[Edge]:
        """Return the relations whose ends are both in the drawing."""
        names = {card.name for card in self.cards}
        return [arrow for arrow in self.arrows if arrow.source in names and arrow.target in names]


# Mermaid


def draw_mermaid(picture: Picture) -> str:
    """Draw a fenced Mermaid block; a click on a node opens its note if its name is the file's name.

    The last nodes, and relations, beyond Mermaid's size limits are left out, and comments report their numbers."""
    cards = _choose_cards(picture.cards)
    ids = {card.name: f"n{number}" for number, card in enumerate(cards)}
    lines = ["flowchart LR", *(_draw_card(number, card) for number, card in enumerate(cards))]
    linked = [ids[card.name] for card in cards if _stem(card.path) == card.name and len(card.name) <= LABEL]
    lines += [f"    class {','.join(linked)} internal-link;"] if linked else []
    room = _MERMAID_ROOM - sum(len(line) + 1 for line in lines)
    edges, drawn = picture.inner_edges, 0
    for arrow in edges:
        if drawn == MERMAID_EDGES or arrow.source not in ids or arrow.target not in ids:
            continue
        line = f'    {ids[arrow.source]} -->|"{_escape_label(arrow.type)}"| {ids[arrow.target]}'
        room -= len(line) + 1
        if room > 0:
            lines.append(line)
            drawn += 1
    left_out = {"entities": len(picture.cards) - len(cards), "relations": len(edges) - drawn}
    lines += [f"    %% {count} more {kind} are not shown" for kind, count in left_out.items() if count]
    return "\n".join(["```mermaid", *lines, "```", ""])


def _draw_card(number: int, card: Card) -> str:
    return f'    n{number}["{_escape_label(card.name)}"]'


def _choose_cards(cards: Sequence[Card]) -> Sequence[Card]:
    """Return the cards to draw: all of them or, if they exceed Mermaid's limit, the first ones in half of it.

    The other half is for relations."""
    sizes = (len(_draw_card(number, card)) + len(f"\nn{number},") for number, card in enumerate(cards))
    ends = list(accumulate(sizes))
    return cards if not ends or ends[-1] <= _MERMAID_ROOM - 50 else cards[: bisect_right(ends, _MERMAID_ROOM // 2)]


def _escape_label(text: str) -> str:
    """Escape `text` for Mermaid quotation marks, so that it is shown as written."""
    shown = text if len(text) <= LABEL else text[: LABEL - 1].rstrip() + "…"
    return _NOT_PLAIN.sub(lambda match: "".join(f"#{ord(char)};" for char in match[0]), shown)


# List marks at the start, which Mermaid refuses, and characters that end the text, begin an entity, markup or an icon
# (`fa:…`), or change the direction of text.
_NOT_PLAIN = compile_later(
    r"\A(?:[-+*]|\d+[.)])(?=\s)"
    '|["#&;<>\\[\\]{}|\\\\`%*~$@:^\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]'
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is not markup, as in `works_on`
)


def _stem(path: str) -> str:
    return unicodedata.normalize("NFC", base_name(path).removesuffix(".md"))


# Canvas


def draw_canvas(picture: Picture) -> str:
    """Draw a JSON Canvas 1.0 with a card for each note, formatted as Obsidian writes it: tabs, one item per line.

    The requested node is in the middle, its neighbours beside it, and so on to both sides."""
    if not picture.cards:
        return '{\n\t"nodes":[],\n\t"edges":[]\n}\n'
    places = lay_out(picture)
    colours = _assign_colours(picture.cards)
    cards = []
    for number, card in enumerate(picture.cards):
        x, y = places[card.name]
        node = {"id": _stable_id("node", card.path), "type": "file", "file": unicodedata.normalize("NFC", card.path)}
        cards.append(
            node
            | {"x": x, "y": y, "width": WIDTH, "height": HEIGHT, "color": "4" if not number else colours[card.name]}
        )
    ids = {card.name: node["id"] for card, node in zip(picture.cards, cards, strict=True)}
    arrows = []
    for arrow in picture.inner_edges:
        out, into = _arrow_sides(places[arrow.source], places[arrow.target])
        ends = {"fromNode": ids[arrow.source], "fromSide": out, "toNode": ids[arrow.target], "toSide": into}
        arrows.append({"id": _stable_id("edge", *ends.values(), arrow.type), **ends, "label": arrow.type})
    nodes = [_draw_frame(picture.title, list(places.values())), *cards]
    return "{\n" + ",\n".join((_format_list("nodes", nodes), _format_list("edges", arrows))) + "\n}\n"


def draw_boards(groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Draw a JSON Canvas with a card for each note of each group, given by its label and the notes' paths.

    Groups are below each other and roughly square."""
    frames, cards, top = [], [], 0
    for number, (label, paths) in enumerate(groups):
        places: list[tuple[int, int]] = []
        across = max(1, round((len(paths) * HEIGHT / WIDTH) ** 0.5))
        for at, path in enumerate(paths):
            x, y = at % across * (WIDTH + DOWN), top + at // across * (HEIGHT + DOWN)
            places.append((x, y))
            node = {"id": _stable_id("card", number, path), "type": "file", "file": unicodedata.normalize("NFC", path)}
            cards.append(node | {"x": x, "y": y, "width": WIDTH, "height": HEIGHT})
        frames.append(
            _draw_frame(label, places) | {"id": _stable_id("board", number, label), "color": COLOURS[number % 5]}
        )
        top = places[-1][1] + HEIGHT + 2 * MARGIN + BANNER + DOWN
    return "{\n" + ",\n".join((_format_list("nodes", [*frames, *cards]), _format_list("edges", []))) + "\n}\n"


def _format_list(key: str, items: Sequence[Mapping[str, Any]]) -> str:
    lines = ",\n".join("\t\t" + json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
    return f'\t"{key}":[' + (f"\n{lines}\n\t]" if lines else "]")


def _stable_id(*parts: object) -> str:
    """Return 16 hexadecimal digits derived from the parts, so that drawing again gives the same file."""
    return sha256(json.dumps(parts).encode())[:16]


def _draw_frame(title: str, places: Sequence[tuple[int, int]]) -> dict[str, Any]:
    left, top = (min(place[axis] for place in places) for axis in (0, 1))
    right, bottom = max(x for x, _ in places) + WIDTH, max(y for _, y in places) + HEIGHT
    box = {"x": left - MARGIN, "y": top - MARGIN - BANNER}
    size = {"width": right - left + 2 * MARGIN, "height": bottom - top + 2 * MARGIN + BANNER}
    return {"id": _stable_id("group", title), "type": "group", **box, **size, "label": title}


def _assign_colours(cards: Sequence[Card]) -> dict[str, str]:
    types = sorted({fold(card.entity_type) for card in cards})
    return {card.name: COLOURS[types.index(fold(card.entity_type)) % len(COLOURS)] for card in cards}


def _arrow_sides(source: tuple[int, int], target: tuple[int, int]) -> tuple[str, str]:
    """Return the sides where an arrow leaves one card and reaches the other."""
    across, down = target[0] - source[0], target[1] - source[1]
    if across:
        return ("right", "left") if across > 0 else ("left", "right")
    return ("bottom", "top") if down >= 0 else ("top", "bottom")


def lay_out(picture: Picture) -> dict[str, tuple[int, int]]:
    """Return the upper left corner of each card, by name; no two cards touch.

    Each connected part has its centre, and columns to the left and right by the number of hops."""
    places: dict[str, tuple[int, int]] = {}
    top = 0
    for columns in _connected_parts(picture):
        tallest = max(len(column) for column in columns.values())
        for number, names in columns.items():
            gap = (tallest - len(names)) * (HEIGHT + DOWN) // 2
            for row, name in enumerate(names):
                places[name] = number * (WIDTH + ACROSS), top + gap // 20 * 20 + row * (HEIGHT + DOWN)
        top += tallest * (HEIGHT + DOWN) + DOWN
    return places


def _connected_parts(picture: Picture) -> Iterator[dict[int, list[str]]]:
    """Yield the connected parts: names by column, 0 is the centre."""
    near: dict[str, list[str]] = {card.name: [] for card in picture.cards}
    for arrow in picture.inner_edges:
        near[arrow.source].append(arrow.target)
        near[arrow.target].append(arrow.source)
    alone = [name for name in near if not near[name]]
    placed: set[str] = set()
    for start, others in near.items():
        if others and start not in placed:
            hops = _group_by_hops(start, near)
            placed.update(name for hop in hops for name in hop)
            yield _arrange_columns(hops, near)
    if alone:
        wide = max(1, round(len(alone) ** 0.5))
        yield {column: alone[column::wide] for column in range(wide)}


def _group_by_hops(start: str, near: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Group the names by their distance from `start`, in the order of their neighbours."""
    hops, seen = [[start]], {start}
    while hops[-1]:
        following = []
        for name in hops[-1]:
            for other in near[name]:
                if other not in seen:
                    seen.add(other)
                    following.append(other)
        hops.append(following)
    return hops[:-1]


def _arrange_columns(hops: Sequence[Sequence[str]], near: Mapping[str, Sequence[str]]) -> dict[int, list[str]]:
    """Put half of the first hop to the right and half to the left, the rest on the side of its neighbour; split tall columns."""
    columns: dict[int, list[str]] = {0: list(hops[0])}
    sides = {name: 1 if number % 2 == 0 else -1 for number, name in enumerate(hops[1] if len(hops) > 1 else ())}
    for before, hop in pairwise(hops[1:]):
        earlier = set(before)
        sides |= {name: next(sides[other] for other in near[name] if other in earlier) for name in hop}
    for side in (1, -1):
        at = 0
        for hop in hops[1:]:
            names = [name for name in hop if sides[name] == side]
            for first in range(0, len(names), ROWS):
                at += side
                columns[at] = names[first : first + ROWS]
    return columns


# GraphML


_GRAPHML = "http://graphml.graphdrawing.org/xmlns"
_KEYS = (
    ("name", "node", "string"),
    ("entity_type", "node", "string"),
    ("summary", "node", "string"),
    ("tags", "node", "string"),
    ("path", "node", "string"),
    ("observations", "node", "int"),
    ("relation_type", "edge", "string"),
)
_NOT_XML = compile_later("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_graphml(picture: Picture) -> str:
    """Draw a GraphML document for layout programs. Characters that XML does not allow become U+FFFD."""
    root = ET.Element("graphml", {"xmlns": _GRAPHML})
    for name, domain, kind in _KEYS:
        ET.SubElement(root, "key", {"id": name, "for": domain, "attr.name": name, "attr.type": kind})
    graph = ET.SubElement(root, "graph", {"id": "memex", "edgedefault": "directed"})
    ids = {card.name: f"n{number}" for number, card in enumerate(picture.cards)}
    for card in picture.cards:
        values = {
            "name": card.name,
            "entity_type": card.entity_type,
            "summary": card.summary or "",
            "tags": ",".join(card.tags),
            "path": card.path,
            "observations": str(card.observations),
        }
        _add_data(ET.SubElement(graph, "node", {"id": ids[card.name]}), values)
    for number, arrow in enumerate(picture.inner_edges):
        ends = {"id": f"e{number}", "source": ids[arrow.source], "target": ids[arrow.target]}
        _add_data(ET.SubElement(graph, "edge", ends), {"relation_type": arrow.type})
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_data(parent: ET.Element, values: Mapping[str, str]) -> None:
    for key, value in values.items():
        if value:
            ET.SubElement(parent, "data", {"key": key}).text = _NOT_XML.sub("\ufffd", value)
