"""Define the owner's operations that import part of a `memory.json` into a workspace's graph, and export its nodes.

Law, tested: an import replaces nothing in an existing node; it adds what the node lacks, so a second import of one
part changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from index.errors import Conflict
from index.graph.vertex import Edge, Vertex, name_key
from index.model import COLLECTIONS, Observation, Record
from index.query import tag_of
from index.scope.index import Index
from syncd.daemon.control_socket import Arguments
from syncd.graph.memory_json import Entity, format_line, importable_entity
from syncd.graph.node_request import NewNode
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.graph.nodes import Nodes

TRIES: Final = 3  # each is lost to an agent that makes a node of that name at that moment
TOGETHER: Final = 50  # nodes that are written in one go
ANY: Final = 1_000_000  # observations, and characters of a summary: what a note can hold is limited elsewhere


def operations(nodes: Callable[[str], Nodes], index: Callable[[], Index]) -> dict[str, Callable[[Arguments, Any], Any]]:
    """Return the owner's operations by name; `index` is the index of the captures."""

    def import_graph(arguments: Arguments, _: Any) -> dict[str, Any]:
        workspace_nodes, made = nodes(arguments["workspace"]), list[str]()
        counts = dict.fromkeys(("created", "changed", "unchanged", "observations", "related", "existed"), 0)
        wanted = list(_merge_entities(arguments.get("entities") or ()).values())
        for first in range(0, len(wanted), TOGETHER):
            made += _import_entities(
                workspace_nodes, wanted[first : first + TOGETHER], counts, dry_run=bool(arguments.get("dry_run"))
            )
        _import_relations(
            workspace_nodes, arguments.get("relations") or (), counts, dry_run=bool(arguments.get("dry_run"))
        )
        return {**counts, "made": made}

    def find_unknown(arguments: Arguments, _: Any) -> list[str]:
        graph = nodes(arguments["workspace"]).graph
        return [name for name in arguments["names"] if graph.get(name) is None]

    def export_graph(arguments: Arguments, _: Any) -> dict[str, list[str]]:
        workspace_nodes = nodes(arguments["workspace"])
        opened = workspace_nodes.open(arguments["names"])
        asked = {vertex.name for vertex, _ in opened.nodes}
        return {
            "entities": [
                format_line(_to_entity(vertex, facts, index().record_at(vertex.path))) for vertex, facts in opened.nodes
            ],
            "relations": [format_line(edge) for edge in opened.edges if edge.source in asked],
        }

    return {"graph.import": import_graph, "graph.unknown": find_unknown, "graph.export": export_graph}


@dataclass(slots=True)
class _EntityRequest:
    """An entity to import, without the times in the file."""

    name: str
    entity_type: str
    observations: list[str] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)


def _merge_entities(entities: Iterable[Arguments]) -> dict[str, _EntityRequest]:
    """Merge entities of one name into the first of them. Ordinals are kept if the name has only one entity."""
    by_name: dict[str, _EntityRequest] = {}
    for entity in entities:
        key = name_key(entity["name"])
        if known := by_name.get(key):
            known.observations += [text for text in entity["observations"] if text not in known.observations]
            known.ordinals = []
            known.properties = {**entity["properties"], **known.properties}
        else:
            by_name[key] = _EntityRequest(
                entity["name"],
                entity["entity_type"],
                list(entity["observations"]),
                list(entity["ordinals"]),
                dict(entity["properties"]),
            )
    return by_name


def _import_entities(
    nodes: Nodes, wanted: Sequence[_EntityRequest], counts: dict[str, int], *, dry_run: bool
) -> list[str]:
    """Create the missing nodes, add to the existing ones, and return the names of the created nodes."""
    for left in reversed(range(TRIES)):
        known = filter(None, (nodes.graph.get(entity.name) for entity in wanted))
        there = {name_key(vertex.name): vertex.name for vertex in known}
        new = [entity for entity in wanted if name_key(entity.name) not in there]
        try:
            if new and not dry_run:
                nodes.create([_new_node(entity) for entity in new], most=ANY, longest=ANY)
            break
        except Conflict:
            if not left:
                raise
    counts["created"] += len(new)
    counts["observations"] += sum(len(entity.observations) for entity in new)
    for entity in wanted:
        if entity not in new:
            tags = list(dict.fromkeys(filter(None, map(tag_of, entity.properties.get("tags") or ()))))
            summary = str(entity.properties.get("summary") or "").strip()
            name = there[name_key(entity.name)]
            added = nodes.add_missing(name, entity.observations, tags, summary, dry_run=dry_run)
            counts["unchanged" if added is None else "changed"] += 1
            counts["observations"] += added or 0
    return [] if dry_run else [entity.name for entity in new]


def _import_relations(nodes: Nodes, relations: Iterable[Arguments], counts: dict[str, int], *, dry_run: bool) -> None:
    """Add relations; those of an entity that the import has made belong to it, and don't count as a change of it."""
    edges = {
        Edge(relation["from_entity"], relation["to_entity"], relation["relation_type"]): not relation.get("source_made")
        for relation in relations
    }
    if dry_run:
        known = set(nodes.graph.edges({edge.source for edge in edges}))
        existed = sum(_canonical_edge(nodes, edge) in known for edge in edges)
        counts["existed"] += existed
        counts["related"] += len(edges) - existed
        return
    for counted in (False, True):
        if some := [edge for edge in edges if edges[edge] is counted]:
            outcome = nodes.add_relations(some, counted=counted)
            counts["related"] += len(outcome.created)
            counts["existed"] += len(outcome.existed)


def _canonical_edge(nodes: Nodes, edge: Edge) -> Edge:
    """Return the relation with the names of its ends in the graph."""
    source, target = nodes.graph.get(edge.source), nodes.graph.get(edge.target)
    return Edge(source.name if source else edge.source, target.name if target else edge.target, edge.type)


def _new_node(wanted: _EntityRequest) -> NewNode:
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


def _to_entity(vertex: Vertex, facts: Sequence[Observation], record: Record | None) -> Entity:
    times = {
        "created_at": vertex.created_at,
        "updated_at": vertex.updated_at,
        "observed_at": vertex.observed_at,
        "summary_updated_at": vertex.summary_updated_at,
    }
    properties: dict[str, Any] = {
        "id": vertex.id,
        "summary": vertex.summary,
        "tags": list(vertex.tags),
        "aliases": [alias for alias in vertex.aliases if name_key(alias) != name_key(vertex.name)],
        **{key: iso(value) for key, value in times.items() if value is not None},
        "version": vertex.version if vertex.version > 1 else None,
        "last_ordinal": vertex.last_ordinal or None,
    }
    if record is not None:
        properties |= {
            "source": record.source,
            "collection": None if record.collection == COLLECTIONS[0] else record.collection,
            "metadata": {key: value for key, value in record.metadata.items() if key != "aliases"},
        }
    contents, ordinals = tuple(fact.content for fact in facts), tuple(fact.ordinal for fact in facts)
    return importable_entity(Entity(vertex.name, vertex.entity_type, contents, ordinals, properties))
