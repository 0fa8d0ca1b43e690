"""The owner's operations on the graph of a workspace: its nodes, their observations, the relations between them.

The shapes are those of the tools of family `graph`; what a person needs beside them, such as paths, is added."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from index.errors import InvalidArgument, NotFound
from index.model import Observation, ObservationMode
from index.vertex import Edge, Vertex, name_key, order
from syncd.newnode import NewNode
from syncd.timestamps import iso

if TYPE_CHECKING:
    from syncd.nodes import Nodes

Arguments: TypeAlias = Mapping[str, Any]
Operation: TypeAlias = Callable[[Arguments, Any], Any]

EVER: Final = 1_000_000  # days
MOST: Final = 10_000  # nodes of one answer


def operations(nodes: Callable[[str], Nodes]) -> dict[str, Operation]:
    """What the owner may ask of the graph, by name; `nodes` gives those of a workspace."""
    asked = _Asked(nodes)
    return {
        "node.create": asked.create,
        "node.delete": asked.delete,
        "node.open": asked.open,
        "node.list": asked.listed,
        "node.names": asked.names,
        "node.rename": asked.rename,
        "node.summary": asked.summary,
        "node.tags": asked.tags,
        "node.observe": asked.observe,
        "node.replace": asked.replace,
        "node.forget": asked.forget,
        "node.search": asked.search,
        "relation.create": asked.relate,
        "relation.delete": asked.unrelate,
        "relation.rename": asked.retype,
        "relation.list": asked.relations,
        "graph.around": asked.around,
        "graph.whole": asked.whole,
        "graph.path": asked.path,
        "graph.orphans": asked.orphans,
    }


class _Asked:
    def __init__(self, nodes: Callable[[str], Nodes]) -> None:
        self._of = nodes

    def _nodes(self, given: Arguments) -> Nodes:
        return self._of(given.get("workspace") or "default")

    def _known(self, nodes: Nodes, *names: str) -> None:
        """Raises NotFound for a name that no node has, with one that is much like it."""
        for name in names:
            if nodes.graph.get(name) is None:
                raise NotFound(f"no node {name[:100]!r} in workspace {nodes.workspace!r}{_closest(nodes, name)}")

    # Nodes

    def create(self, given: Arguments, _: Any) -> list[dict[str, Any]]:
        made = self._nodes(given).create([_new(one) for one in given["entities"]])
        return [
            {"name": one.name, "entity_type": one.entity_type, "created_at": iso(one.created_at), "path": one.path}
            for one in made
        ]

    def delete(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, *given["names"])
        deleted, missing = nodes.delete(given["names"])
        return {"deleted": list(deleted), "not_found": list(missing)}

    def open(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, *given["names"])
        opened = nodes.open(given["names"])
        return {
            "entities": [vertex(one) | {"observations": _observations(facts)} for one, facts in opened.nodes],
            "relations": list(map(edge, opened.edges)),
        }

    def listed(self, given: Arguments, _: Any) -> list[dict[str, Any]]:
        """Nodes by type, tag or time of change; all of them without either."""
        nodes = self._nodes(given)
        kind, tag, days = given.get("entity_type"), given.get("tag"), given.get("days")
        found = nodes.recent(days, MOST) if days else nodes.graph.vertices()
        if kind:
            found = [one for one in found if name_key(one.entity_type) == name_key(kind)]
        if tag:
            found = [one for one in found if any(_tagged(own, tag) for own in one.tags)]
        return [
            vertex(one) | {"relations": nodes.graph.degree(one.name)} for one in found[: given.get("limit") or MOST]
        ]

    def names(self, given: Arguments, _: Any) -> list[dict[str, Any]]:
        """Names that begin with `typed`, for a shell to offer."""
        typed = name_key(given.get("typed") or "")
        found = [one for one in self._nodes(given).graph.vertices() if name_key(one.name).startswith(typed)]
        return [{"name": one.name, "entity_type": one.entity_type} for one in found[: given.get("limit") or 50]]

    def rename(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        return vertex(nodes.rename(given["name"], given["new_name"])) | {"old_name": given["name"]}

    def summary(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        return vertex(nodes.set_summary(given["name"], given["summary"]))

    def tags(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        return vertex(nodes.set_tags(given["name"], given["tags"]))

    # Observations

    def observe(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        ((name, added),) = nodes.add([(given["name"], given["contents"])])
        return {"entity_name": name, "added": _observations(added or ())}

    def replace(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        name, old, new = nodes.replace(given["name"], given["ordinal"], given["content"])
        return {"entity_name": name, "ordinal": given["ordinal"], "old_content": old, "new_content": new}

    def forget(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        ((name, gone, missing),) = nodes.remove([(given["name"], given["ordinals"])])
        return {"entity_name": name, "deleted_ordinals": list(gone), "not_found_ordinals": list(missing)}

    def search(self, given: Arguments, _: Any) -> dict[str, Any]:
        """The nodes that a query finds; with `name`, the observations of that one."""
        nodes, limit = self._nodes(given), given.get("limit") or 10
        mode: ObservationMode = "text" if given.get("mode") == "text" else "embedding"
        if name := given.get("name"):
            self._known(nodes, name)
            found = nodes.query(name, given["query"], mode, limit)
        else:
            found = nodes.search(given["query"], limit, mode)
        hits = []
        for hit in found.hits:
            if (one := nodes.graph.at(hit.path)) is None:
                continue  # it went while it was looked for
            told = vertex(one) | {"ordinal": hit.ordinal, "matched_observation": hit.content}
            hits.append(told | {"matched_perspective": hit.perspective, "score": round(hit.score, 4)})
        return {"hits": hits, "mode": found.mode, "degraded": list(found.degraded)}

    # Relations

    def relate(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes, edges = self._nodes(given), _edges(given["relations"])
        self._known(nodes, *_ends(edges))
        made = nodes.relate(edges)
        return {"created": list(map(edge, made.created)), "already_existed": list(map(edge, made.existed))}

    def unrelate(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes, edges = self._nodes(given), _edges(given["relations"])
        self._known(nodes, *_ends(edges))
        deleted, missing = nodes.unrelate(edges)
        return {"deleted": deleted, "not_found": missing}

    def retype(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        source, target, old, new = (given[key] for key in ("from_entity", "to_entity", "old_type", "new_type"))
        self._known(nodes, source, target)
        made = nodes.retype(source, target, old, new)
        return {"from_entity": made.source, "to_entity": made.target, "old_type": old, "new_type": made.type}

    def relations(self, given: Arguments, _: Any) -> list[dict[str, Any]]:
        """All relations; with one name those at either end of it, with two those between them."""
        nodes, names = self._nodes(given), given.get("names") or []
        self._known(nodes, *names)
        if len(names) > 2:
            raise InvalidArgument("relations are listed of one node, or between two")
        found = nodes.between(*names) if len(names) == 2 else nodes.graph.edges(names or None)
        kind = given.get("relation_type")
        return [edge(one) for one in found if not kind or one.type == kind]

    # The graph

    def around(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes = self._nodes(given)
        self._known(nodes, given["name"])
        found = nodes.neighbourhood(given["name"], given.get("depth", 1), given.get("limit") or 100)
        return {
            "nodes": list(map(vertex, found.vertices)),
            "relations": list(map(edge, found.edges)),
            "truncated": found.truncated,
        }

    def whole(self, given: Arguments, _: Any) -> dict[str, Any]:
        """The nodes with the most relations, and the relations between them."""
        graph = self._nodes(given).graph
        ranked = sorted(graph.vertices(), key=lambda one: (-graph.degree(one.name), name_key(one.name)))
        kept = ranked[: given.get("limit") or 100]
        names = {one.name for one in kept}
        edges = [one for one in graph.edges() if one.source in names and one.target in names]
        return {
            "nodes": list(map(vertex, kept)),
            "relations": list(map(edge, edges)),
            "truncated": len(kept) < len(ranked),
        }

    def path(self, given: Arguments, _: Any) -> dict[str, Any]:
        nodes, (a, b) = self._nodes(given), (given["from_entity"], given["to_entity"])
        self._known(nodes, a, b)
        way = nodes.path(a, b)
        if way is None:
            return {"found": False, "path": [], "relations": [], "nodes": []}
        names = _names_along(nodes.get(a).name, way)
        return {
            "found": True,
            "path": names,
            "relations": list(map(edge, way)),
            "nodes": [vertex(nodes.get(name)) for name in names],
        }

    def orphans(self, given: Arguments, _: Any) -> list[dict[str, Any]]:
        return list(map(vertex, self._nodes(given).orphans()))


def vertex(one: Vertex) -> dict[str, Any]:
    """A node without its observations."""
    return {
        "name": one.name,
        "entity_type": one.entity_type,
        "summary": one.summary,
        "tags": list(one.tags),
        "aliases": list(one.aliases),
        "observation_count": one.observations,
        "created_at": iso(one.created_at),
        "updated_at": iso(one.changed_at),
        "version": one.version,
        "id": one.id,
        "path": one.path,
    }


def edge(one: Edge) -> dict[str, str]:
    """A relation."""
    return {"from": one.source, "to": one.target, "relation_type": one.type}


def _new(given: Arguments) -> NewNode:
    return NewNode(
        given["name"],
        given["entity_type"],
        tuple(given.get("observations") or ()),
        given.get("summary"),
        tuple(given.get("tags") or ()),
    )


def _edges(given: Iterable[Arguments]) -> list[Edge]:
    return [Edge(one["from_entity"], one["to_entity"], one["relation_type"]) for one in given]


def _ends(edges: Iterable[Edge]) -> list[str]:
    return list(dict.fromkeys(name for one in sorted(edges, key=order) for name in (one.source, one.target)))


def _observations(facts: Iterable[Observation]) -> list[dict[str, Any]]:
    return [{"ordinal": one.ordinal, "content": one.content} for one in facts]


def _names_along(start: str, way: Sequence[Edge]) -> list[str]:
    """The names that a way passes: each relation leads on, whichever way it points."""
    names = [start]
    for one in way:
        names.append(one.target if one.source == names[-1] else one.source)
    return names


def _tagged(own: str, tag: str) -> bool:
    own, tag = name_key(own), name_key(tag.lstrip("#"))
    return own == tag or own.startswith(f"{tag}/")


def _closest(nodes: Nodes, name: str) -> str:
    keys = {name_key(one.name): one.name for one in nodes.graph.vertices()[:MOST] if name.strip()}
    near = difflib.get_close_matches(name_key(name), keys, n=1) or [key for key in keys if name_key(name) in key][:1]
    return f"; closest: {keys[near[0]]!r}" if near else "; `memex node list` names them"
