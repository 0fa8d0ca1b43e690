"""Define the owner's operations on the graph of a workspace: nodes, their observations and their relations.

The answers have the shapes of the tool family `graph`, and more fields for a person, such as paths."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from index.errors import Conflict, InvalidArgument, NotFound
from index.graph.vertex import Edge, Vertex, name_key
from index.model import Observation, ObservationMode
from index.query import tag_key, tag_keys, tag_of
from syncd.daemon.control_socket import Arguments, Operation
from syncd.graph.node_request import NewNode
from syncd.history.audit_log import AUTHOR
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.graph.nodes import Nodes


MOST: Final = 10_000  # nodes of one answer


def operations(nodes: Callable[[str], Nodes]) -> dict[str, Operation]:
    """Return the owner's operations on the graph by name; `nodes` returns the nodes of a workspace."""
    methods = _NodeOperations(nodes)
    return {
        "node.create": methods.create,
        "node.delete": methods.delete,
        "node.open": methods.open,
        "node.list": methods.list_nodes,
        "node.names": methods.complete_names,
        "node.rename": methods.rename,
        "node.summary": methods.set_summary,
        "node.tags": methods.set_tags,
        "node.observe": methods.observe,
        "node.replace": methods.replace,
        "node.forget": methods.forget,
        "node.search": methods.search,
        "relation.create": methods.relate,
        "relation.delete": methods.unrelate,
        "relation.rename": methods.retype,
        "relation.list": methods.list_relations,
        "graph.around": methods.neighbourhood,
        "graph.whole": methods.overview,
        "graph.path": methods.find_path,
        "graph.orphans": methods.list_orphans,
    }


class _NodeOperations:
    def __init__(self, nodes: Callable[[str], Nodes]) -> None:
        self._of = nodes

    def _nodes(self, arguments: Arguments, *names: str) -> Nodes:
        """Return the nodes of the workspace. Raises NotFound for a name that no node has, with a similar name as a suggestion."""
        nodes = self._of(arguments.get("workspace") or "default")
        for name in names:
            if nodes.graph.get(name) is None:
                raise NotFound(f"no entity {name[:100]!r} in workspace {nodes.workspace!r}{_closest_name(nodes, name)}")
        return nodes

    # Nodes

    def create(self, arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        try:
            made = self._nodes(arguments).create([_new_node(entity) for entity in arguments["entities"]])
        except Conflict as error:
            if "names" not in error.details:
                raise
            words = ", ".join(map(repr, error.details["names"]))
            raise Conflict(f"these entities already exist: {words}; nothing was created", **error.details) from error
        return [
            {"name": node.name, "entity_type": node.entity_type, "created_at": iso(node.created_at), "path": node.path}
            for node in made
        ]

    def delete(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, *arguments["names"])
        vertices = [vertex for name in arguments["names"] if (vertex := nodes.graph.get(name))]
        notes = {vertex.id: {"name": vertex.name, "id": vertex.id, "path": vertex.path} for vertex in vertices}
        deleted, missing = nodes.delete(arguments["names"])
        return {
            "deleted": list(deleted),
            "not_found": list(missing),
            "notes": list(notes.values()),
            "undo": AUTHOR.get().request,
        }

    def open(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, *arguments["names"])
        opened = nodes.open(arguments["names"])
        return {
            "entities": [
                node_fields(node) | {"observations": _observation_fields(facts)} for node, facts in opened.nodes
            ],
            "relations": list(map(relation_fields, opened.edges)),
        }

    def list_nodes(self, arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        """List nodes by type, tag or time of change; without a filter, all nodes."""
        nodes = self._nodes(arguments)
        kind, tag, days = arguments.get("entity_type"), arguments.get("tag"), arguments.get("days")
        vertices = nodes.recent(days, MOST) if days else nodes.graph.vertices()
        if kind:
            vertices = [node for node in vertices if name_key(node.entity_type) == name_key(kind)]
        if tag:
            vertices = [node for node in vertices if tag_key(tag_of(tag)) in tag_keys(node.tags)]
        return [
            node_fields(node) | {"relations": nodes.graph.degree(node.name)}
            for node in vertices[: arguments.get("limit") or MOST]
        ]

    def complete_names(self, arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        """Return the names that begin with `typed`, for shell completion."""
        typed = name_key(arguments.get("typed") or "")
        vertices = [node for node in self._nodes(arguments).graph.vertices() if name_key(node.name).startswith(typed)]
        return [
            {"name": node.name, "entity_type": node.entity_type} for node in vertices[: arguments.get("limit") or 50]
        ]

    def rename(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        return node_fields(nodes.rename(arguments["name"], arguments["new_name"])) | {"old_name": arguments["name"]}

    def set_summary(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        return node_fields(nodes.set_summary(arguments["name"], arguments["summary"]))

    def set_tags(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        return node_fields(nodes.set_tags(arguments["name"], arguments["tags"]))

    # Observations

    def observe(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        ((name, added),) = nodes.add_observations([(arguments["name"], arguments["contents"])])
        return {"entity_name": name, "added": _observation_fields(added or ())}

    def replace(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        number = arguments["ordinal"]
        try:
            name, old, new = nodes.replace_observation(arguments["name"], number, arguments["content"])
        except NotFound as error:
            if "ordinal" not in error.details:
                raise
            raise NotFound(
                f"this entity has no fact {number}; to list its facts: memex node show", ordinal=number
            ) from error
        return {"entity_name": name, "ordinal": number, "old_content": old, "new_content": new}

    def forget(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        ((name, gone, missing),) = nodes.remove_observations([(arguments["name"], arguments["ordinals"])])
        return {"entity_name": name, "deleted_ordinals": list(gone), "not_found_ordinals": list(missing)}

    def search(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        """Search the nodes; with `name`, search the observations of this node."""
        name, limit = arguments.get("name"), arguments.get("limit") or 10
        nodes = self._nodes(arguments, *([name] if name else []))
        mode: ObservationMode = "text" if arguments.get("mode") == "text" else "embedding"
        if name:
            answer = nodes.search_node(name, arguments["query"], mode, limit)
        else:
            answer = nodes.search(arguments["query"], limit, mode)
        hits = []
        for hit in answer.hits:
            if (node := nodes.graph.vertex_at(hit.path)) is None:
                continue  # it went while it was looked for
            shown = node_fields(node) | {"ordinal": hit.ordinal, "matched_observation": hit.content}
            hits.append(shown | {"matched_perspective": hit.perspective, "score": round(hit.score, 4)})
        return {"hits": hits, "mode": answer.mode, "degraded": list(answer.degraded)}

    # Relations

    def relate(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        edges = _parse_edges(arguments["relations"])
        nodes = self._nodes(arguments, *_edge_ends(edges))
        made = nodes.add_relations(edges)
        return {
            "created": list(map(relation_fields, made.created)),
            "already_existed": list(map(relation_fields, made.existed)),
        }

    def unrelate(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        edges = _parse_edges(arguments["relations"])
        nodes = self._nodes(arguments, *_edge_ends(edges))
        deleted, missing = nodes.remove_relations(edges)
        return {"deleted": deleted, "not_found": missing}

    def retype(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        source, target, old, new = (arguments[key] for key in ("from_entity", "to_entity", "old_type", "new_type"))
        nodes = self._nodes(arguments, source, target)
        made = nodes.retype_relation(source, target, old, new)
        return {"from_entity": made.source, "to_entity": made.target, "old_type": old, "new_type": made.type}

    def list_relations(self, arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        """List all relations; with one name, the relations of this node; with two names, the relations between both nodes."""
        names = arguments.get("names") or []
        nodes = self._nodes(arguments, *names)
        if len(names) > 2:
            raise InvalidArgument("name at most two nodes: one for its relations, two for the relations between them")
        relations = nodes.relations_between(*names) if len(names) == 2 else nodes.graph.edges(names or None)
        kind = arguments.get("relation_type")
        return [relation_fields(relation) for relation in relations if not kind or relation.type == kind]

    # The graph

    def neighbourhood(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(arguments, arguments["name"])
        neighbourhood = nodes.neighbourhood(arguments["name"], arguments.get("depth", 1), arguments.get("limit") or 100)
        return {
            "nodes": list(map(node_fields, neighbourhood.vertices)),
            "relations": list(map(relation_fields, neighbourhood.edges)),
            "truncated": neighbourhood.truncated,
        }

    def overview(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        """Return the nodes with the most relations, and the relations between these nodes."""
        graph = self._nodes(arguments).graph
        ranked = sorted(graph.vertices(), key=lambda node: (-graph.degree(node.name), name_key(node.name)))
        kept = ranked[: arguments.get("limit") or 100]
        names = {node.name for node in kept}
        edges = [relation for relation in graph.edges() if relation.source in names and relation.target in names]
        return {
            "nodes": list(map(node_fields, kept)),
            "relations": list(map(relation_fields, edges)),
            "truncated": len(kept) < len(ranked),
        }

    def find_path(self, arguments: Arguments, _: Any) -> dict[str, Any]:
        a, b = arguments["from_entity"], arguments["to_entity"]
        nodes = self._nodes(arguments, a, b)
        way = nodes.shortest_path(a, b)
        if way is None:
            return {"found": False, "path": [], "relations": [], "nodes": []}
        names = _names_along(nodes.get(a).name, way)
        return {
            "found": True,
            "path": names,
            "relations": list(map(relation_fields, way)),
            "nodes": [node_fields(nodes.get(name)) for name in names],
        }

    def list_orphans(self, arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        return list(map(node_fields, self._nodes(arguments).graph.orphans()))


def node_fields(node: Vertex) -> dict[str, Any]:
    """Return the fields of a node without its observations."""
    return {
        "name": node.name,
        "entity_type": node.entity_type,
        "summary": node.summary,
        "tags": list(node.tags),
        "aliases": list(node.aliases),
        "observation_count": node.observations,
        "created_at": iso(node.created_at),
        "updated_at": iso(node.changed_at),
        "version": node.version,
        "id": node.id,
        "path": node.path,
    }


def relation_fields(relation: Edge) -> dict[str, str]:
    """Return the fields of a relation."""
    return {"from": relation.source, "to": relation.target, "relation_type": relation.type}


def _new_node(entity: Arguments) -> NewNode:
    return NewNode(
        entity["name"],
        entity["entity_type"],
        tuple(entity.get("observations") or ()),
        entity.get("summary"),
        tuple(entity.get("tags") or ()),
    )


def _parse_edges(relations: Iterable[Arguments]) -> list[Edge]:
    return [Edge(relation["from_entity"], relation["to_entity"], relation["relation_type"]) for relation in relations]


def _edge_ends(edges: Iterable[Edge]) -> list[str]:
    return list(dict.fromkeys(name for relation in sorted(edges) for name in (relation.source, relation.target)))


def _observation_fields(facts: Iterable[Observation]) -> list[dict[str, Any]]:
    return [{"ordinal": fact.ordinal, "content": fact.content} for fact in facts]


def _names_along(start: str, way: Sequence[Edge]) -> list[str]:
    """Return the names along a path; each relation leads to the next name in either direction."""
    names = [start]
    for relation in way:
        names.append(relation.target if relation.source == names[-1] else relation.source)
    return names


def _closest_name(nodes: Nodes, name: str) -> str:
    keys = {name_key(node.name): node.name for node in nodes.graph.vertices()[:MOST] if name.strip()}
    near = difflib.get_close_matches(name_key(name), keys, n=1) or [key for key in keys if name_key(name) in key][:1]
    return f"; closest: {keys[near[0]]!r}" if near else "; `memex node list` names them"
