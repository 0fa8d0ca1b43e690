"""Create, read, change, delete and report on the nodes of one workspace: notes of type `entity` with observations and relations.

Laws, tested: when a call returns, its result is durable and searchable; a call that fails changed nothing. Writing
calls run one after the other, and each reads the current notes, so parallel calls lose nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from index.encoders.word_frequency import word_ranks
from index.errors import Conflict, NotFound
from index.graph.graph import Graph
from index.graph.unlinked_names import UnlinkedName
from index.graph.vertex import Edge, Neighbourhood, Vertex, name_key
from index.model import Observation, ObservationAnswer, ObservationMode
from index.names import fold
from index.query import check_query_text, collection_of
from index.scope.index import Index
from index.search import vector_similarity
from syncd.captures.batch_writer import Change, NewFile, NoteDrafts, write_batch
from syncd.captures.note_update import parse_note, refuse_unread_edit
from syncd.captures.writer import hide_file_name, lock_workspace
from syncd.documents import entity_edits
from syncd.documents.entity_node import checked_content, checked_name, checked_type
from syncd.documents.file_names import free_name, node_name
from syncd.enrichment.node_summaries import SummaryDrafts
from syncd.graph import attention_report
from syncd.graph.node_edits import NodeEdits, RelationsOutcome, check_size, normalize_type, unknown_node
from syncd.graph.node_request import (
    FACTS,
    SUMMARY,
    NewNode,
    check_nodes,
    check_observation_count,
    check_summary,
    compose_properties,
)
from syncd.history.audit_log import Events
from syncd.notes.front_matter import PropertyValue, decode, encode
from syncd.notes.property_reader import LARGEST
from syncd.notes.tag_names import check_tags
from syncd.notes.timestamps import DAY_MS
from syncd.vault.location import ENTITIES

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

WEEK_MS: Final = 7 * DAY_MS  # period over which a report counts events

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenedNodes:
    """Holds nodes with their observations, all their relations in both directions, and the unknown names."""

    nodes: list[tuple[Vertex, tuple[Observation, ...]]]
    edges: list[Edge]
    not_found: list[str]


@dataclass(frozen=True, slots=True)
class Stats:
    """Holds the size of a graph; `coverage` is the share of its observations with vectors."""

    nodes: int
    observations: int
    relations: int
    coverage: float


class Nodes:
    """Manages the nodes of one workspace by their names."""

    def __init__(self, workspace: str, inbox: Inbox, progress: Callable[[int], None] | None = None) -> None:
        self.workspace, self._inbox, self._progress = workspace, inbox, progress

    @property
    def graph(self) -> Graph:
        """Return the current graph."""
        return self._index.graph(self.workspace)

    @property
    def _index(self) -> Index:
        return self._inbox.captures.index

    # Reading

    def get(self, name: str) -> Vertex:
        """Return the node with this name. Raises NotFound."""
        return _require_node(self.graph, name)

    def open(self, names: Iterable[str]) -> OpenedNodes:
        """Return nodes with all their data, in the requested order, each once."""
        graph = self.graph
        vertices: dict[str, Vertex] = {}
        missing: dict[str, None] = {}
        for name in names:
            if vertex := graph.get(name):
                vertices.setdefault(vertex.path, vertex)
            else:
                missing[name] = None
        facts = self._index.catalog.observations(list(vertices))
        nodes = [(vertex, facts[path]) for path, vertex in vertices.items()]
        return OpenedNodes(nodes, graph.edges([vertex.name for vertex in vertices.values()]), list(missing))

    def by_type(self, entity_type: str) -> list[Vertex]:
        """Return the nodes of a type, by name."""
        wanted = normalize_type(entity_type)
        return [vertex for vertex in self.graph.vertices() if normalize_type(vertex.entity_type) == wanted]

    def recent(self, days: int, limit: int | None = None) -> list[Vertex]:
        """Return the nodes that changed in the last `days`, latest first.

        A manual change that wrote no time into the note counts from when Memex noticed it."""
        since = self._inbox.now() - days * DAY_MS
        by_hand = self._inbox.audit.hand_edit_times(self.workspace, since)
        seen = [
            replace(node, updated_at=max(node.changed_at, by_hand.get(node.id, 0))) for node in self.graph.vertices()
        ]
        return sorted((node for node in seen if node.changed_at >= since), key=lambda node: -node.changed_at)[:limit]

    def relations_between(self, a: str, b: str) -> list[Edge]:
        """Return the relations between two nodes, in both directions."""
        graph = self.graph
        return graph.edges_between(_require_node(graph, a).name, _require_node(graph, b).name)

    def neighbourhood(self, name: str, depth: int, limit: int) -> Neighbourhood:
        """Return everything within `depth` hops of a node."""
        neighbourhood = self.graph.neighbourhood(name, depth, limit)
        if neighbourhood is None:
            raise unknown_node(name)
        return neighbourhood

    def shortest_path(self, a: str, b: str) -> list[Edge] | None:
        """Return the relations of a shortest path between two nodes, ignoring their direction; None without a path."""
        graph = self.graph
        return graph.shortest_path(_require_node(graph, a).name, _require_node(graph, b).name)

    def search(self, query: str, limit: int, mode: ObservationMode = "embedding") -> ObservationAnswer:
        """Return the best observation of each of the `limit` best nodes."""
        words = check_query_text(query)
        return self._add_degraded(self._index.find_observations(self.workspace, words, limit, mode))

    def search_node(
        self, name: str, query: str, mode: ObservationMode = "embedding", limit: int = 20
    ) -> ObservationAnswer:
        """Return the best observations of one node."""
        path, words = _require_node(self.graph, name).path, check_query_text(query)
        return self._add_degraded(self._index.find_observations(self.workspace, words, limit, mode, path))

    def unlinked_names(self, limit: int | None = None) -> list[UnlinkedName]:
        """Return nodes named in other nodes' observations without a relation, most named first."""
        graph = self.graph
        vertices = graph.vertices()
        texts = self._observation_texts(vertices)
        return attention_report.find_unlinked_names(vertices, texts, graph.related_names(), places=word_ranks())[:limit]

    def similar_pairs(self, limit: int, min_score: float) -> list[tuple[Vertex, Vertex, float]]:
        """Return the most similar pairs of nodes without a relation."""
        graph = self.graph
        paths, matrix = self._index.node_vectors(self.workspace)
        nodes = [(row, vertex) for row, path in enumerate(paths) if (vertex := graph.vertex_at(path))]
        row_of = {vertex.name: n for n, (_, vertex) in enumerate(nodes)}
        related = [
            (row_of[name], row_of[other])
            for name, others in graph.related_names().items()
            if name in row_of
            for other in others
            if other in row_of
        ]
        pairs = vector_similarity.most_similar_pairs(matrix[[row for row, _ in nodes]], related, limit, min_score)
        return [(nodes[a][1], nodes[b][1], score) for a, b, score in pairs]

    def report(self) -> attention_report.Report[Events]:
        """Return the report about what needs attention, with the events of the last week."""
        index, inbox, graph = self._index, self._inbox, self.graph
        vertices = graph.vertices()
        drafter = SummaryDrafts(inbox.enricher, inbox.drafted, inbox.folder)
        attention = attention_report.build_report(
            vertices,
            self._observation_texts(vertices),
            graph.related_names(),
            pooled=index.node_vectors(self.workspace),
            perspectives=lambda paths: {
                perspective.name: index.node_vectors(self.workspace, perspective.name, paths)
                for perspective in index.perspectives(self.workspace)
            },
            events=inbox.audit.count_events(self.workspace, inbox.now() - WEEK_MS, {vertex.id for vertex in vertices}),
            places=word_ranks(),
            drafter=drafter,
        )
        coverage = describe_coverage(index.embedded_share(self.workspace))
        return replace(attention, degraded=(*coverage, *drafter.degraded))

    def unsummarized(self) -> list[attention_report.UnsummarizedNode]:
        """Return the nodes that need a summary."""
        return attention_report.find_unsummarized(self.graph.vertices())

    def stats(self) -> Stats:
        """Return the size of the graph."""
        graph = self.graph
        vertices = graph.vertices()
        facts = sum(vertex.observations for vertex in vertices)
        return Stats(len(vertices), facts, graph.relation_count, self._index.embedded_share(self.workspace))

    # Writing

    def create(self, entities: Sequence[NewNode], most: int = FACTS, longest: int = SUMMARY) -> list[Vertex]:
        """Create nodes, all or none; limits as in `check_nodes`. Raises Conflict with the names that already exist."""
        wanted = check_nodes(entities, most, longest)
        for node in wanted:
            if (collection := node.properties.get("collection")) is not None:
                collection_of(collection, self._inbox.collections)

        def plan(index: Index) -> tuple[list[Change], list[str]]:
            now, graph = self._inbox.now(), index.graph(self.workspace)
            twins = [twin.name for node in wanted if (twin := _find_namesake(graph, node.name))]
            if twins:
                raise _names_taken(twins)
            made: dict[str, NewFile] = {}
            ids = set[str]()
            for node in wanted:
                stem, path = self._choose_file(node.name, now, made)
                properties = compose_properties(node, stem, id=str(uuid.uuid4()), now=now)
                wanted_id = str(properties["id"])
                if wanted_id in ids or (
                    "id" in node.properties and index.record(wanted_id, self.workspace) is not None
                ):
                    properties["id"] = str(uuid.uuid4())  # another note has the id now
                ids.add(wanted_id)
                text = entity_edits.compose(properties, node.observations, ordinals=node.ordinals)
                made[fold(stem)] = NewFile(path, encode(check_size(node.name, text)))
            return list(made.values()), [change.path for change in made.values()]

        with lock_workspace(self._inbox, self.workspace):
            paths = write_batch(self._inbox, plan, self._progress)
        return [self._node_at(path) for path in paths]

    def delete(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Delete nodes and every relation to them. Returns the deleted and the unknown names."""
        wanted = list(names)
        return self._change(lambda edits: edits.delete(wanted))

    def delete_note(self, path: str) -> None:
        """Delete the node whose note is at `path`."""
        self._change(lambda edits: edits.delete_note(path))

    def set_summary(self, name: str, summary: str, version: int | None = None) -> Vertex:
        """Set the summary of a node; "" removes it."""
        changes: dict[str, PropertyValue] = {"summary": check_summary(summary) or None}
        return self._node_at(self._change(lambda edits: edits.set_properties(name, version, changes)))

    def rename(self, name: str, new_name: str) -> Vertex:
        """Rename a node; its file stays, and so does every link to it. The old name becomes an alias.

        Raises Conflict when another node has the name."""
        wanted = checked_name(new_name)
        return self._node_at(self._change(lambda edits: edits.rename(name, wanted)))

    def set_tags(self, name: str, tags: Sequence[str], version: int | None = None) -> Vertex:
        """Replace the tags of a node."""
        new_tags = list(check_tags(tags))
        return self._node_at(self._change(lambda edits: edits.set_tags(name, version, new_tags)))

    def add_missing(
        self, name: str, contents: Sequence[str], tags: Sequence[str], summary: str, *, dry_run: bool = False
    ) -> int | None:
        """Add what a node lacks, and replace nothing. Returns the number of new observations; None if the node lacks nothing."""
        texts, new_tags = [checked_content(text) for text in contents], list(check_tags(tags))
        whole = check_summary(summary, LARGEST)
        return self._change(lambda edits: edits.add_missing(name, texts, new_tags, whole, dry_run=dry_run))

    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[str, list[Observation] | None]]:
        """Add observations. Returns what each node got, in the requested order; None for an unknown name."""
        wanted = [(name, [checked_content(text) for text in contents]) for name, contents in additions]
        check_observation_count((len(contents) for _, contents in wanted), FACTS)
        return self._change(lambda edits: edits.add_observations(wanted))

    def replace_observation(
        self, name: str, ordinal: int, content: str, version: int | None = None
    ) -> tuple[str, str, str]:
        """Replace an observation, which keeps its ordinal. Returns the node's name, the old text and the new text."""
        text = checked_content(content)
        return self._change(lambda edits: edits.replace_observation(name, ordinal, text, version))

    def remove_observations(
        self, deletions: Sequence[tuple[str, Collection[int]]]
    ) -> list[tuple[str, list[int], list[int]]]:
        """Remove observations. Returns for each: the name, the removed ordinals, and the unknown ones."""
        return self._change(lambda edits: edits.remove_observations(deletions))

    def add_relations(self, edges: Sequence[Edge], *, counted: bool = True) -> RelationsOutcome:
        """Add relations. Existing ones stay unchanged; unless `counted`, so do the versions and times of change of the sources."""
        wanted = [Edge(edge.source, edge.target, checked_type(edge.type)) for edge in edges]
        return self._change(lambda edits: edits.add_relations(wanted, counted=counted))

    def remove_relations(self, edges: Sequence[Edge]) -> tuple[int, int]:
        """Remove relations. Returns how many were removed, and how many did not exist."""
        return self._change(lambda edits: edits.remove_relations(edges))

    def retype_relation(self, source: str, target: str, old: str, new: str) -> Edge:
        """Change the type of a relation. Raises NotFound if it does not exist, Conflict if the new one does."""
        kind = checked_type(new)
        return self._change(lambda edits: edits.retype_relation(source, target, old, kind))

    # Details

    def _change(self, change: Callable[[NodeEdits], T]) -> T:
        """Write the changes that `change` makes to the drafts, and return its result."""

        def plan(index: Index) -> tuple[list[Change], T]:
            drafts = NoteDrafts(self._inbox, partial(self._refuse_unread, index))
            answer = change(NodeEdits(index.graph(self.workspace), drafts, self._inbox.now()))
            return drafts.changes(), answer

        with lock_workspace(self._inbox, self.workspace):
            return write_batch(self._inbox, plan, self._progress)

    def _refuse_unread(self, index: Index, path: str, raw: bytes) -> None:
        """Raise Conflict if a person has changed a note since it was indexed, so that the agent has not read it."""
        if record := index.record_at(path):
            refuse_unread_edit(self._inbox, parse_note(self._inbox, decode(raw), record), record, whole=True)

    def _observation_texts(self, vertices: Sequence[Vertex]) -> dict[str, list[str]]:
        observations = self._index.catalog.observations([vertex.path for vertex in vertices])
        return {path: [fact.content for fact in facts] for path, facts in observations.items()}

    def _add_degraded(self, answer: ObservationAnswer) -> ObservationAnswer:
        """Add other reasons why the answer may be incomplete."""
        also = self._inbox.degraded_search(self.workspace)
        return replace(answer, degraded=tuple(dict.fromkeys((*answer.degraded, *also))))

    def _node_at(self, path: str) -> Vertex:
        vertex = self.graph.vertex_at(path)
        if vertex is None:
            raise NotFound("somebody removed or renamed the node's note a moment later")
        return vertex

    def _choose_file(self, name: str, now: int, made: Collection[str]) -> tuple[str, str]:
        """Choose a base name and path for a new node that no note of the vault has, indexed or not."""
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
                if self._inbox.vault.stat(path) is None:  # a link or a folder has this name
                    unseen.add(fold(stem))
                    continue
                raw, stat = self._inbox.vault.read(path)
            node = self._inbox.parse_note(raw, path, mtime_ms=stat.mtime_ms).node
            if node and name_key(node.name) == name_key(name):
                raise _names_taken([node.name])
            unseen.add(fold(stem))


def describe_coverage(share: float) -> tuple[str, ...]:
    """Report that some observations have no vectors yet. `share`: of those that have them, from 0 to 1."""
    # 1,999 of 2,000 are not 100 %.
    return () if share == 1 else (f"only {min(share, 0.99):.0%} of the facts can be compared by meaning so far",)


def _require_node(graph: Graph, name: str) -> Vertex:
    vertex = graph.get(name)
    if vertex is None:
        raise unknown_node(name)
    return vertex


def _find_namesake(graph: Graph, name: str) -> Vertex | None:
    """Return the node with exactly this name; a node whose file or alias has the name does not count."""
    vertex = graph.get(name)
    return vertex if vertex and name_key(vertex.name) == name_key(name) else None


def _names_taken(names: list[str]) -> Conflict:
    words = ", ".join(map(repr, names))
    return Conflict(
        f"these nodes already exist: {words}; nothing was created; add observations to them instead", names=names
    )
