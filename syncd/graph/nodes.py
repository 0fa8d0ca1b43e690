"""Create, read, change and delete the nodes of one workspace: notes of type `entity` with observations and relations.

Laws, tested: when a call returns, its result is durable and findable; a call that fails changed nothing. Calls that
write run one after the other, and each decides from the notes as they are then; so of twenty calls at once none is
lost."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from index.errors import Conflict, NotFound
from index.graph.graph import Graph
from index.graph.unlinked_names import UnlinkedName
from index.graph.vertex import Edge, Neighbourhood, Vertex, name_key
from index.model import Observation, ObservationAnswer, ObservationMode
from index.names import fold
from index.query import collection_of
from index.scope.index import Index
from syncd.captures.batch_writer import Change, NewFile, NoteDrafts, write_batch
from syncd.captures.note_update import parse_note, refuse_unread_edit
from syncd.captures.writer import hide_file_name, lock_workspace
from syncd.documents import entity_edits
from syncd.documents.file_names import free_name, node_name
from syncd.graph import attention_report, node_edits, workspace_report
from syncd.graph.node_edits import RelationsOutcome, check_size, normalize_type, unknown_node
from syncd.graph.node_request import (
    FACTS,
    NewNode,
    check_nodes,
    check_observation_count,
    check_summary,
    compose_properties,
)
from syncd.history.audit_log import Events
from syncd.notes.front_matter import PropertyValue, decode, encode
from syncd.notes.tag_names import check_tags
from syncd.notes.timestamps import iso
from syncd.vault.location import ENTITIES

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

T = TypeVar("T")
P = ParamSpec("P")
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class OpenedNodes:
    """Nodes with their observations, all relations at either end of them, and the names that are no node's."""

    nodes: list[tuple[Vertex, tuple[Observation, ...]]]
    edges: list[Edge]
    not_found: list[str]


class Nodes:
    """The nodes of one workspace, by their names."""

    def __init__(self, workspace: str, inbox: Inbox, progress: Callable[[int], None] | None = None) -> None:
        self.workspace, self._inbox, self._progress = workspace, inbox, progress

    @property
    def graph(self) -> Graph:
        """The graph as it is now."""
        return self._index.graph(self.workspace)

    @property
    def _index(self) -> Index:
        return self._inbox.captures.index

    # Reading

    def get(self, name: str) -> Vertex:
        """The node of that name. Raises NotFound."""
        return _require_node(self.graph, name)

    def open(self, names: Iterable[str]) -> OpenedNodes:
        """Nodes whole, in the order asked for, each once."""
        graph = self.graph
        vertices: dict[str, Vertex] = {}
        missing: dict[str, None] = {}
        for name in names:
            if vertex := graph.get(name):
                vertices.setdefault(vertex.path, vertex)
            else:
                missing[name] = None
        facts = self._index.observations(list(vertices))
        nodes = [(vertex, facts[path]) for path, vertex in vertices.items()]
        return OpenedNodes(nodes, graph.edges([vertex.name for vertex in vertices.values()]), list(missing))

    def by_type(self, entity_type: str) -> list[Vertex]:
        """The nodes of a type, by name."""
        wanted = normalize_type(entity_type)
        return [vertex for vertex in self.graph.vertices() if normalize_type(vertex.entity_type) == wanted]

    def recent(self, days: int, limit: int | None = None) -> list[Vertex]:
        """The nodes that changed in the last `days`, the latest first.

        A change by hand that wrote no time into the note counts from when it was noticed."""
        since = self._inbox.now() - days * DAY_MS
        by_hand = self._inbox.audit.hand_edit_times(self.workspace, since)
        seen = [
            replace(node, updated_at=max(node.changed_at, by_hand.get(node.id, 0))) for node in self.graph.vertices()
        ]
        return sorted((node for node in seen if node.changed_at >= since), key=lambda node: -node.changed_at)[:limit]

    def relations_between(self, a: str, b: str) -> list[Edge]:
        """The relations between two nodes, either way."""
        graph = self.graph
        return graph.edges_between(_require_node(graph, a).name, _require_node(graph, b).name)

    def neighbourhood(self, name: str, depth: int, limit: int) -> Neighbourhood:
        """What lies within `depth` hops of a node."""
        neighbourhood = self.graph.neighbourhood(name, depth, limit)
        if neighbourhood is None:
            raise unknown_node(name)
        return neighbourhood

    def shortest_path(self, a: str, b: str) -> list[Edge] | None:
        """The relations of a shortest way from one node to another, whichever way they point; None without one."""
        graph = self.graph
        return graph.shortest_path(_require_node(graph, a).name, _require_node(graph, b).name)

    def orphans(self) -> list[Vertex]:
        """The nodes without a relation, by name."""
        return self.graph.orphans()

    def search(self, query: str, limit: int, mode: ObservationMode = "embedding") -> ObservationAnswer:
        """The best observation of each of the `limit` nodes that answer best."""
        return self._add_degraded(self._index.find_observations(self.workspace, query, limit, mode))

    def search_node(
        self, name: str, query: str, mode: ObservationMode = "embedding", limit: int = 20
    ) -> ObservationAnswer:
        """The observations of one node that answer best."""
        path = _require_node(self.graph, name).path
        return self._add_degraded(self._index.find_observations(self.workspace, query, limit, mode, path))

    def unlinked_names(self, limit: int | None = None) -> list[UnlinkedName]:
        """Nodes that are named in others' observations without a relation, the most named first."""
        return workspace_report.find_unlinked_names(self._index, self.workspace)[:limit]

    def similar_pairs(self, limit: int, min_score: float) -> list[tuple[Vertex, Vertex, float]]:
        """Pairs of nodes without a relation that say the most similar things."""
        return workspace_report.find_similar_pairs(self._index, self.workspace, limit, min_score)

    def report(self) -> attention_report.Report[Events]:
        """All that wants attention."""
        return workspace_report.build_report(self._index, self.workspace, self._inbox)

    def unsummarized(self) -> list[attention_report.UnsummarizedNode]:
        """The nodes whose summary is owed."""
        return workspace_report.find_unsummarized(self._index, self.workspace)

    def stats(self) -> workspace_report.Stats:
        """How much there is."""
        return workspace_report.count_graph(self._index, self.workspace)

    # Writing

    def create(self, entities: Sequence[NewNode], most: int = FACTS) -> list[Vertex]:
        """Make nodes: all of them, or none. Raises Conflict naming those that exist already."""
        wanted = check_nodes(entities, most)
        for node in wanted:
            if (collection := node.properties.get("collection")) is not None:
                collection_of(collection, self._inbox.collections)

        def plan(index: Index) -> tuple[list[Change], list[str]]:
            now, graph = self._inbox.now(), index.graph(self.workspace)
            twins = [twin.name for node in wanted if (twin := _find_namesake(graph, node.name))]
            if twins:
                raise _names_taken(twins)
            made: dict[str, NewFile] = {}
            for node in wanted:
                stem, path = self._choose_file(node.name, now, made)
                properties = compose_properties(node, stem, id=str(uuid.uuid4()), now=now)
                if "id" in node.properties and index.record(str(properties["id"]), self.workspace) is not None:
                    properties["id"] = str(uuid.uuid4())  # another note's by now
                text = entity_edits.compose(properties, node.observations, ordinals=node.ordinals)
                made[fold(stem)] = NewFile(path, encode(check_size(node.name, text)))
            return list(made.values()), [change.path for change in made.values()]

        with lock_workspace(self._inbox, self.workspace):
            paths = write_batch(self._inbox, plan, self._progress)
        return [self._node_at(path) for path in paths]

    def delete(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Remove nodes and every relation that leads to one. Returns the names that went, and those of no node."""
        return self._change(node_edits.delete, names=list(names))

    def delete_note(self, path: str) -> None:
        """Remove the node whose note is at `path`."""
        self._change(node_edits.delete_note, path=path)

    def set_summary(self, name: str, summary: str, version: int | None = None) -> Vertex:
        """Set the summary of a node; "" takes it away."""
        text = check_summary(summary)

        def changes(now: int) -> dict[str, PropertyValue]:
            return {"summary": text or None, "summary_updated_at": iso(now) if text else None}

        return self._node_at(self._change(node_edits.set_properties, name=name, version=version, changes=changes))

    def set_stamps(self, stamps: Sequence[tuple[str, Mapping[str, PropertyValue]]]) -> None:
        """Set properties of nodes that came from elsewhere, without its being a change of them."""
        self._change(node_edits.set_stamps, stamps=stamps)

    def rename(self, name: str, new_name: str) -> Vertex:
        """Give a node another name; its file stays, and so every link to it. The old name remains an alias.

        Raises Conflict when another node has the name."""
        return self._node_at(self._change(node_edits.rename, name=name, new_name=entity_edits.checked_name(new_name)))

    def set_tags(self, name: str, tags: Sequence[str], version: int | None = None) -> Vertex:
        """Put these in place of the tags of a node."""
        new_tags = list(check_tags(tags))
        return self._node_at(self._change(node_edits.set_tags, name=name, version=version, tags=new_tags))

    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]], most: int = FACTS
    ) -> list[tuple[str, list[Observation] | None]]:
        """Append observations. What each node got, in the order asked for; None for a name that is no node's."""
        wanted = [(name, [entity_edits.checked_content(text) for text in contents]) for name, contents in additions]
        check_observation_count((len(contents) for _, contents in wanted), most)
        return self._change(node_edits.add_observations, additions=wanted)

    def replace_observation(
        self, name: str, ordinal: int, content: str, version: int | None = None
    ) -> tuple[str, str, str]:
        """Put another text in place of an observation, which keeps its ordinal. The node's name, the old text, the new."""
        text = entity_edits.checked_content(content)
        return self._change(node_edits.replace_observation, name=name, ordinal=ordinal, content=text, version=version)

    def remove_observations(
        self, deletions: Sequence[tuple[str, Collection[int]]]
    ) -> list[tuple[str, list[int], list[int]]]:
        """Take observations away. For each: the name, the ordinals that went, and those that were not there."""
        return self._change(node_edits.remove_observations, deletions=deletions)

    def add_relations(self, edges: Sequence[Edge]) -> RelationsOutcome:
        """State relations. One that is stated already is left as it is."""
        wanted = [Edge(edge.source, edge.target, entity_edits.checked_type(edge.type)) for edge in edges]
        return self._change(node_edits.add_relations, edges=wanted)

    def remove_relations(self, edges: Sequence[Edge]) -> tuple[int, int]:
        """Take relations away. How many went, and how many were not there."""
        return self._change(node_edits.remove_relations, edges=edges)

    def retype_relation(self, source: str, target: str, old: str, new: str) -> Edge:
        """Give a relation another type. Raises NotFound without it, and Conflict when there is one of that type."""
        return self._change(
            node_edits.retype_relation, source=source, target=target, old=old, new=entity_edits.checked_type(new)
        )

    # How

    def _change(
        self, decide: Callable[Concatenate[Graph, NoteDrafts, int, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Make the changes that `decide` makes to the drafts, and return what it answers."""

        def plan(index: Index) -> tuple[list[Change], T]:
            drafts = NoteDrafts(self._inbox.vault, partial(self._refuse_unread, index))
            answer = decide(index.graph(self.workspace), drafts, self._inbox.now(), *args, **kwargs)
            return drafts.changes(), answer

        with lock_workspace(self._inbox, self.workspace):
            return write_batch(self._inbox, plan, self._progress)

    def _refuse_unread(self, index: Index, path: str, raw: bytes) -> None:
        """Refuse to take the version of a note for what a person has made of it since it was read."""
        if record := index.record_at(path):
            refuse_unread_edit(self._inbox, parse_note(self._inbox, decode(raw), record), record, whole=True)

    def _add_degraded(self, answer: ObservationAnswer) -> ObservationAnswer:
        """The answer, saying what else kept it from being complete."""
        also = self._inbox.degraded_search(self.workspace)
        return replace(answer, degraded=tuple(dict.fromkeys((*answer.degraded, *also))))

    def _node_at(self, path: str) -> Vertex:
        vertex = self.graph.vertex_at(path)
        if vertex is None:
            raise NotFound("somebody else removed or renamed the note of the node a moment after")
        return vertex

    def _choose_file(self, name: str, now: int, made: Collection[str]) -> tuple[str, str]:
        """A base name and path for a new node: no note of the vault has it, nor one that the index does not know yet."""
        unseen: set[str] = set()
        while True:
            stem = free_name(
                node_name(name),
                now,
                lambda folded: folded in made or folded in unseen or self._inbox.taken(folded),
            )
            path = f"{self._inbox.folder}/{self.workspace}/{ENTITIES}/{stem}.md"
            with hide_file_name(path):
                if not self._inbox.vault.exists(path):
                    return stem, path
                if self._inbox.vault.stat(path) is None:  # a link or a folder is called so
                    unseen.add(fold(stem))
                    continue
                raw, stat = self._inbox.vault.read(path)
            node = self._inbox.parse_note(raw, path, mtime_ms=stat.mtime_ns // 1_000_000).node
            if node and name_key(node.name) == name_key(name):
                raise _names_taken([node.name])
            unseen.add(fold(stem))


def _require_node(graph: Graph, name: str) -> Vertex:
    vertex = graph.get(name)
    if vertex is None:
        raise unknown_node(name)
    return vertex


def _find_namesake(graph: Graph, name: str) -> Vertex | None:
    """The node that has this very name; one whose file or alias is called so is another."""
    vertex = graph.get(name)
    return vertex if vertex and name_key(vertex.name) == name_key(name) else None


def _names_taken(names: list[str]) -> Conflict:
    words = ", ".join(map(repr, names))
    return Conflict(
        f"these exist already, and nothing was made: {words}; add observations to them instead", names=names
    )
