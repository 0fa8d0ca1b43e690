"""Show the graph view: the entities of a workspace and their relations, the way between two, and what is missing.

The drawing is made from the lists of the page, which say the same in words."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from index.errors import MemexError, NotFound
from index.names import fold, pluralize
from syncd.page.web.templates import link
from syncd.page.web.view import View, Visit, get

DRAWN: Final = 200  # most entities in the drawing; a larger one is hard to read
FIRST: Final = 60  # entities with the most relations, before one is chosen
MOST: Final = 1_000  # most entities of one answer, as for `memex graph`
CHOICES: Final = 12  # entities found by their name or by meaning
DEPTHS: Final = ("1", "2", "3")
REPORTED: Final = 20  # rows of a report before "show all"
REPORTS: Final = {"orphans": "Without a relation", "gaps": "Gaps"}
OTHER: Final = "ellipse"  # the shape of types beyond those with a shape of their own
# Shapes, as the drawing names them, with the points of a glyph of 16 × 16.
SHAPES: Final[Mapping[str, str]] = {
    "rectangle": "2,2 14,2 14,14 2,14",
    "diamond": "8,0 16,8 8,16 0,8",
    "triangle": "8,1 15,15 1,15",
    "star": "8,0 10,6 16,6 11,9.6 13,16 8,12 3,16 5,9.6 0,6 6,6",
    "hexagon": "4,1 12,1 16,8 12,15 4,15 0,8",
    "tag": "1,3 10,3 15,8 10,13 1,13",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """Holds what is listed and drawn, and whether there is more.

    A node has its shape and the number of its relations to entities on this page; `source` and `target` of a relation are
    places in the list of nodes."""

    nodes: list[dict[str, Any]]
    relations: list[dict[str, Any]]
    is_cut: bool

    @property
    def types(self) -> list[tuple[str, str, int]]:
        """Return each type in its most frequent spelling, with its shape and number, the most frequent first."""
        counted = Counter((node["entity_type"], node["shape"]) for node in self.nodes)
        types: dict[str, tuple[str, str, int]] = {}
        for (kind, shape), count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            spelling, _, before = types.get(fold(kind), (kind, shape, 0))
            types[fold(kind)] = spelling, shape, before + count
        return sorted(types.values(), key=lambda row: (-row[2], row[0]))

    @property
    def label(self) -> str:
        """Return the text alternative of the drawing."""
        return f"Drawing: {pluralize(len(self.nodes[:DRAWN]), 'entity')} and relations. The lists on this page have the same."


@dataclass(frozen=True, slots=True)
class Place:
    """Holds what the address asks for, as text: a workspace, and an entity, the ends of a path, or a report."""

    workspace: str
    q: str
    name: str
    depth: str
    start: str
    end: str
    report: str
    most: str

    @property
    def limit(self) -> int:
        """Return the most entities to ask for."""
        first = DRAWN if self.name else FIRST
        return min(max(int(self.most), first), MOST) if self.most.isdecimal() and len(self.most) < 6 else first

    def more(self) -> str:
        """Return the address that shows more entities; "" when there is none."""
        if self.limit >= MOST:
            return ""
        limit = DRAWN if self.limit < DRAWN else self.limit + DRAWN
        return link("/graph", workspace=self.workspace, name=self.name, depth=self.depth, most=limit)


def show_graph(visit: Visit) -> Response:
    """Show the entities with the most relations, the neighbourhood of one, or the path between two."""
    place = read_place(visit)
    workspaces = [entry["name"] for entry in visit.ask("workspace.list")]
    try:
        answer, entity = _fetch(visit, place)
        mistake = ""
    except NotFound as error:  # shown beside the form, which keeps what was entered
        answer, entity, mistake = {"nodes": [], "relations": []}, None, error.message
    return visit.render(
        "graph.html",
        status=404 if mistake else 200,
        place=place,
        workspaces=workspaces,
        depths=DEPTHS,
        shapes=SHAPES,
        mistake=mistake,
        picture=make_picture(answer),
        is_path=bool(place.start and place.end),
        entity=entity,
        choices=_find_entities(visit, place),
        reports=[] if place.name or place.start or mistake else _fetch_reports(visit, place),
        drawn=DRAWN,
    )


def read_place(visit: Visit) -> Place:
    """Return what the address asks for."""
    depth, report = visit.query("depth"), visit.query("report")
    return Place(
        visit.query("workspace") or "default",
        visit.query("q"),
        visit.query("name"),
        depth if depth in DEPTHS else DEPTHS[0],
        visit.query("from"),
        visit.query("to"),
        report if report in REPORTS else "",
        visit.query("most"),
    )


def _fetch(visit: Visit, place: Place) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return what is to be drawn, and the entity that was chosen with its facts. Raises NotFound for a name of none."""
    if place.start and place.end:
        arguments = {"from_entity": place.start, "to_entity": place.end}
        return visit.ask("graph.path", workspace=place.workspace, **arguments), None
    if not place.name:
        return visit.ask("graph.whole", workspace=place.workspace, limit=place.limit), None
    around = visit.ask(
        "graph.around", workspace=place.workspace, name=place.name, depth=int(place.depth), limit=place.limit
    )
    opened = visit.ask("node.open", workspace=place.workspace, names=[place.name])
    return around, opened["entities"][0]


def _find_entities(visit: Visit, place: Place) -> list[dict[str, str]]:
    """Return the entities whose names begin with what was entered, then those that the search finds by their facts."""
    if not place.q:
        return []
    named = visit.ask("node.names", workspace=place.workspace, typed=place.q, limit=CHOICES)
    hits = visit.ask("node.search", workspace=place.workspace, query=place.q, limit=CHOICES)["hits"]
    choices = {
        entry["name"]: {
            "name": entry["name"],
            "type": entry["entity_type"],
            "fact": entry.get("matched_observation", ""),
        }
        for entry in [*hits, *named]
    }
    order = dict.fromkeys([entry["name"] for entry in [*named, *hits]])
    return [choices[name] for name in order][:CHOICES]


def _fetch_reports(visit: Visit, place: Place) -> list[dict[str, Any]]:
    """Return the rows of each report: names and a sentence. A report that fails says why, and the others still show."""
    shown = []
    for name, title in REPORTS.items():
        rows, problem = [], ""
        try:
            rows = visit.ask(f"graph.{name}", workspace=place.workspace, limit=MOST + 1)
        except MemexError as error:
            problem = error.message
        listed = rows[: MOST if place.report == name else REPORTED]
        count = f"{len(rows):,}" if len(rows) <= MOST else f"more than {MOST:,}"
        is_cut = len(listed) < min(len(rows), MOST)
        shown.append({"name": name, "title": title, "rows": listed, "count": count, "is_cut": is_cut, "error": problem})
    return shown


def make_picture(answer: Mapping[str, Any]) -> Picture:
    """Return what the operation answered as rows: relations lead to places in the list of nodes."""
    places = {node["name"]: place for place, node in enumerate(answer["nodes"])}
    relations = [
        {"source": places[row["from"]], "target": places[row["to"]], "type": row["relation_type"]}
        for row in answer["relations"]
        if row["from"] in places and row["to"] in places
    ]
    degrees = Counter(end for row in relations for end in {row["source"], row["target"]})
    shapes = choose_shapes(node["entity_type"] for node in answer["nodes"])
    nodes = [
        {**node, "shape": shapes[fold(node["entity_type"])], "relations": degrees[place]}
        for place, node in enumerate(answer["nodes"])
    ]
    return Picture(nodes, relations, bool(answer.get("truncated")))


def choose_shapes(types: Iterable[str]) -> dict[str, str]:
    """Return the shape of each type, by its folded name: types that differ in letter case are one to a reader.

    A type prefers the shape that its name hashes to, so that it mostly keeps it from one neighbourhood to the next.
    Frequent types choose first, and types without a free shape share one."""
    shapes: dict[str, str] = {}
    free = list(SHAPES)
    for kind, _ in sorted(Counter(map(fold, types)).items(), key=lambda item: (-item[1], item[0])):
        first = zlib.crc32(kind.encode("utf-8", "surrogateescape")) % len(SHAPES)
        preferred = [*SHAPES][first:] + [*SHAPES][:first]
        shapes[kind] = next((shape for shape in preferred if shape in free), OTHER)
        if shapes[kind] in free:
            free.remove(shapes[kind])
    return shapes


VIEW: Final = View("graph", "Graph", "/graph", "g", (get("/graph", show_graph),))
