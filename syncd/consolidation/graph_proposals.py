"""Carry out the proposals that change a workspace's graph: relate two entities, and write the summary of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from index.errors import Conflict, NotFound
from index.graph.vertex import Edge
from syncd.consolidation.proposal_plans import GraphKind, Proposed
from syncd.promotion.vault_snapshot import VaultSnapshot

if TYPE_CHECKING:
    from syncd.graph.nodes import Nodes


def graph_kinds(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes]) -> tuple[GraphKind, ...]:
    """Return the kinds of proposals that change the graph. `nodes` returns the entities of a workspace."""
    return (
        GraphKind("relate", partial(relate, snapshot, nodes), "Relate: {}"),
        GraphKind("summary", partial(summarize, snapshot, nodes), "Write the summary of an entity"),
    )


def relate(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes], proposed: Proposed) -> str:
    """Relate two entities."""
    graph = nodes(proposed["workspace"])
    source, target = (_node_name(snapshot, graph, proposed["workspace"], id) for id in proposed["ids"])
    graph.add_relations([Edge(source, target, proposed["would"][0])])
    return f"{source} {proposed['would'][0]} {target}"


def summarize(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes], proposed: Proposed) -> str:
    """Write the summary of an entity, unless the entity has changed since the draft."""
    graph = nodes(proposed["workspace"])
    (id,), (text,) = proposed["ids"], proposed["would"]
    vertex = graph.get(_node_name(snapshot, graph, proposed["workspace"], id))
    if vertex.summary != text:
        if vertex.changed_at != proposed["changed_at"]:
            raise Conflict("the entity has changed since the proposal")
        graph.set_summary(vertex.name, text)
    return "the summary is written"


def _node_name(snapshot: VaultSnapshot, nodes: Nodes, workspace: str, id: str) -> str:
    record = snapshot.captures.index.record(id, workspace)
    vertex = nodes.graph.vertex_at(record.path) if record else None
    if vertex is None:
        raise NotFound("an entity of this proposal no longer exists")
    return vertex.name
