"""The owner's operations that bring a part of a memory.json into a workspace's graph, and its nodes out as lines.

Law, tested: of a node that is there nothing is replaced; what it lacks is added, so the same part again changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from index.errors import Conflict
from index.index import Index
from index.model import COLLECTIONS, Observation, Record
from index.vertex import Edge, Vertex, name_key
from syncd.exchange import Entity, written
from syncd.newnode import NewNode
from syncd.tag_names import tag_of
from syncd.timestamps import iso

if TYPE_CHECKING:
    from syncd.nodes import Nodes

Arguments: TypeAlias = Mapping[str, Any]
TRIES: Final = 3  # each is lost to an agent that makes a node of that name at that moment
TOGETHER: Final = 50  # nodes that are written in one go
ANY: Final = 1_000_000  # observations: how many a note can hold is limited elsewhere


def operations(nodes: Callable[[str], Nodes], index: Callable[[], Index]) -> dict[str, Callable[[Arguments, Any], Any]]:
    """What the owner may ask; `index` is that of the captures."""

    def bring(given: Arguments, _: Any) -> dict[str, Any]:
        own, made = nodes(given["workspace"]), list[str]()
        told = dict.fromkeys(("created", "changed", "unchanged", "observations", "related", "existed"), 0)
        wanted = list(_merged(given.get("entities") or ()).values())
        for first in range(0, len(wanted), TOGETHER):
            made += _entities(own, wanted[first : first + TOGETHER], told, dry_run=bool(given.get("dry_run")))
        _relations(own, given.get("relations") or (), told, dry_run=bool(given.get("dry_run")))
        stamps = [
            (one["name"], {key: one[key] for key in ("updated_at", "version")}) for one in given.get("stamps") or ()
        ]
        for first in range(0, len(stamps), TOGETHER):
            own.stamp(stamps[first : first + TOGETHER])
        return {**told, "made": made}

    def unknown(given: Arguments, _: Any) -> list[str]:
        graph = nodes(given["workspace"]).graph
        return [name for name in given["names"] if graph.get(name) is None]

    def export(given: Arguments, _: Any) -> dict[str, list[str]]:
        own = nodes(given["workspace"])
        opened = own.open(given["names"])
        asked = {one.name for one, _ in opened.nodes}
        return {
            "entities": [written(_entity(one, facts, index().at(one.path))) for one, facts in opened.nodes],
            "relations": [written(edge) for edge in opened.edges if edge.source in asked],
        }

    return {"graph.import": bring, "graph.unknown": unknown, "graph.export": export}


@dataclass(slots=True)
class _Wanted:
    """An entity to bring in, whatever times a file tells of it."""

    name: str
    entity_type: str
    observations: list[str] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)


def _merged(entities: Iterable[Arguments]) -> dict[str, _Wanted]:
    """By name; what a second entity of a name adds is added to the first, and ordinals count as long as there is one."""
    found: dict[str, _Wanted] = {}
    for one in entities:
        key = name_key(one["name"])
        if known := found.get(key):
            known.observations += [text for text in one["observations"] if text not in known.observations]
            known.ordinals = []
            known.properties = {**one["properties"], **known.properties}
        else:
            found[key] = _Wanted(
                one["name"],
                one["entity_type"],
                list(one["observations"]),
                list(one["ordinals"]),
                dict(one["properties"]),
            )
    return found


def _entities(nodes: Nodes, wanted: Sequence[_Wanted], told: dict[str, int], *, dry_run: bool) -> list[str]:
    """Make the nodes that are not there, and add to the others. The names of those that were made."""
    for left in reversed(range(TRIES)):
        there = {name_key(one.name): (one, facts) for one, facts in nodes.open([one.name for one in wanted]).nodes}
        new = [one for one in wanted if name_key(one.name) not in there]
        try:
            if new and not dry_run:
                nodes.create([_new(one) for one in new], most=ANY)
            break
        except Conflict:
            if not left:
                raise
    told["created"] += len(new)
    told["observations"] += sum(len(one.observations) for one in new)
    for one in wanted:
        if one not in new:
            added = _added(nodes, one, *there[name_key(one.name)], dry_run=dry_run)
            told["unchanged" if added is None else "changed"] += 1
            told["observations"] += added or 0
    return [] if dry_run else [one.name for one in new]


def _added(nodes: Nodes, wanted: _Wanted, vertex: Vertex, facts: Sequence[Observation], *, dry_run: bool) -> int | None:
    """How many observations the node got; None when it lacked nothing."""
    known = {fact.content for fact in facts}
    contents = [text for text in dict.fromkeys(wanted.observations) if text not in known]
    tags = dict.fromkeys(filter(None, map(tag_of, wanted.properties.get("tags") or ())))
    missing = [tag for tag in tags if name_key(tag) not in {name_key(own) for own in vertex.tags}]
    summary = "" if vertex.summary else str(wanted.properties.get("summary") or "").strip()
    if not dry_run:
        if contents:
            nodes.add([(vertex.name, contents)], most=ANY)
        if missing:
            nodes.set_tags(vertex.name, [*vertex.tags, *missing])
        if summary:
            nodes.set_summary(vertex.name, summary)
    return len(contents) if contents or missing or summary else None


def _relations(nodes: Nodes, relations: Iterable[Arguments], told: dict[str, int], *, dry_run: bool) -> None:
    edges = list(dict.fromkeys(Edge(one["from_entity"], one["to_entity"], one["relation_type"]) for one in relations))
    if not edges:
        return
    if dry_run:
        known = set(nodes.graph.edges({edge.source for edge in edges}))
        existed = sum(_canonical(nodes, edge) in known for edge in edges)
        told["existed"] += existed
        told["related"] += len(edges) - existed
        return
    made = nodes.relate(edges)
    told["related"] += len(made.created)
    told["existed"] += len(made.existed)


def _canonical(nodes: Nodes, edge: Edge) -> Edge:
    """The relation by the names that its ends have in the graph."""
    source, target = nodes.graph.get(edge.source), nodes.graph.get(edge.target)
    return Edge(source.name if source else edge.source, target.name if target else edge.target, edge.type)


def _new(wanted: _Wanted) -> NewNode:
    properties = dict(wanted.properties)
    metadata = properties.pop("metadata", {})
    summary, tags = properties.pop("summary", None), properties.pop("tags", ())
    if "created_at" in properties:  # it was a node of Memex: a time that is not told there has never been known
        properties = dict.fromkeys(("observed_at", "summary_updated_at")) | properties
    return NewNode(
        wanted.name,
        wanted.entity_type or None,
        tuple(wanted.observations),
        summary,
        tuple(tags),
        ordinals=tuple(wanted.ordinals),
        properties={**metadata, **properties},
    )


def _entity(vertex: Vertex, facts: Sequence[Observation], record: Record | None) -> Entity:
    times = {
        "created_at": vertex.created_at,
        "updated_at": vertex.updated_at,
        "observed_at": vertex.observed_at,
        "summary_updated_at": vertex.summary_updated_at,
    }
    own: dict[str, Any] = {
        "id": vertex.id,
        "summary": vertex.summary,
        "tags": list(vertex.tags),
        "aliases": [alias for alias in vertex.aliases if name_key(alias) != name_key(vertex.name)],
        **{key: iso(value) for key, value in times.items() if value is not None},
        "version": vertex.version if vertex.version > 1 else None,
        "last_ordinal": vertex.last_ordinal or None,
    }
    if record is not None:
        own |= {
            "source": record.source,
            "collection": None if record.collection == COLLECTIONS[0] else record.collection,
            "metadata": {key: value for key, value in record.metadata.items() if key != "aliases"},
        }
    return Entity(
        vertex.name,
        vertex.entity_type,
        tuple(fact.content for fact in facts),
        tuple(fact.ordinal for fact in facts),
        {key: value for key, value in own.items() if value not in (None, "", [], {})},
    )
