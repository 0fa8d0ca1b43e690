"""Define the answer schemas of the family `graph`: the agreed shapes and the fields added to them.

Times are ISO 8601 texts in UTC."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from pydantic import ConfigDict, Field

from mcp_server.operations.wire_format import AnswerModel, NoteLocation, NoteText
from syncd.history.write_lineage import Hand

T = TypeVar("T")


class WrittenNodes(NoteText):
    """Add warnings to the answer of a tool that writes text of entities."""

    warnings: list[str] = Field([], description="Problems to report to the person")


class Page(NoteText, Generic[T]):
    """List what `limit` allows; `truncated` says that more exists, for which `next_cursor` is passed as cursor."""

    results: list[T]
    truncated: bool
    next_cursor: str | None


class CreatedNode(AnswerModel):
    """Describe a created entity."""

    name: str
    entity_type: str
    created_at: str


class CreatedNodes(WrittenNodes):
    """List the created entities, in the order of the request."""

    results: list[CreatedNode]


class DeletedNodes(NoteText):
    """List the deleted names and the unknown ones."""

    deleted: list[str]
    not_found: list[str]


class KeptFact(AnswerModel):
    """Hold one fact."""

    ordinal: int
    content: str


class WholeNode(NoteLocation, NoteText):
    """Describe an entity with all its facts."""

    is_whole = True

    name: str
    entity_type: str
    summary: str | None
    tags: list[str]
    observations: list[KeptFact]
    created_at: str
    updated_at: str
    version: int


class Relation(AnswerModel):
    """Describe a relation."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    source: str = Field(serialization_alias="from")
    to: str
    relation_type: str


class OpenedNodes(NoteText):
    """Hold entities and all relations from and to them."""

    entities: list[WholeNode]
    relations: list[Relation]
    not_found: list[str]


class ChangedNode(NoteText):
    """Describe an entity and the time of its last change."""

    name: str
    entity_type: str
    summary: str | None
    updated_at: str


class TaggedNode(ChangedNode):
    """Describe an entity, the time of its last change and its tags."""

    tags: list[str]


TaggedNodes: TypeAlias = Page[TaggedNode]  # the entities of a type, by name
ChangedNodes: TypeAlias = Page[ChangedNode]


class SummarySet(WrittenNodes):
    """Describe an entity's new summary."""

    name: str
    summary: str
    updated_at: str
    version: int


class TagsSet(WrittenNodes):
    """Describe an entity's new tags."""

    name: str
    tags: list[str]
    version: int


class AddedFacts(AnswerModel):
    """Hold the facts that one entity got."""

    entity_name: str
    added: list[KeptFact]
    not_found: bool


class Additions(WrittenNodes):
    """List the added facts by entity, in the order of the request."""

    results: list[AddedFacts]


class ReplacedFact(WrittenNodes):
    """Hold a fact before and after the change."""

    entity_name: str
    ordinal: int
    old_content: str
    new_content: str


class DroppedFacts(AnswerModel):
    """Hold the numbers of the facts that one entity lost."""

    entity_name: str
    deleted_ordinals: list[int]
    not_found_ordinals: list[int]


class Deletions(NoteText):
    """List the deleted facts by entity, in the order of the request."""

    results: list[DroppedFacts]


class FoundFact(NoteText):
    """Describe a matching fact."""

    ordinal: int
    content: str
    truncated: bool
    by: Hand
    score: float


class FoundFacts(NoteText):
    """Hold the matching facts of one entity, best first."""

    results: list[FoundFact]
    mode: str
    degraded: list[str]


class CreatedRelations(WrittenNodes):
    """List the created relations and the existing ones."""

    created: list[Relation]
    already_existed: list[Relation]
    not_found: list[str] = Field(description="Names of entities that do not exist; their relations were left out")


class DeletedRelations(NoteText):
    """Count the deleted relations and the unknown ones."""

    deleted: int
    not_found: int


class RetypedRelation(WrittenNodes):
    """Hold a relation's type before and after the change."""

    from_entity: str
    to_entity: str
    old_type: str
    new_type: str


class RelationList(NoteText):
    """List relations."""

    results: list[Relation]


class Neighbor(NoteText):
    """Describe an entity of a neighborhood."""

    name: str
    entity_type: str
    summary: str | None
    tags: list[str]


class Surroundings(NoteText):
    """List an entity's neighborhood, the nearest first; `truncated` says that the limit left entities out."""

    nodes: list[Neighbor]
    relations: list[Relation]
    truncated: bool


class Route(NoteText):
    """Describe the shortest path, if one exists."""

    found: bool
    path: list[str]
    relations: list[Relation]


class RelationGap(AnswerModel):
    """Name an entity whose facts name another one without a relation to it."""

    node: str
    referenced_name: str
    reference_count: int


RelationGaps: TypeAlias = Page[RelationGap]  # the most frequently named entity first


class SimilarPair(AnswerModel):
    """Name two similar entities."""

    node_a: str
    node_b: str
    similarity: float
    node_a_type: str
    node_b_type: str


class SimilarPairs(NoteText):
    """List pairs of entities, the most similar first."""

    results: list[SimilarPair]


class FoundNode(NoteLocation, NoteText):
    """Describe a matching entity, with its best fact."""

    name: str
    entity_type: str
    summary: str | None
    matched_observation: str
    ordinal: int
    truncated: bool = Field(description="The fact or the summary is cut; open_nodes returns both in full")
    matched_perspective: str | None
    by: Hand
    score: float


class FoundNodes(NoteText):
    """Hold the matching entities, best first."""

    results: list[FoundNode]
    mode: str
    degraded: list[str] = Field(description="Why the search is incomplete; empty: it is complete")


class StaleSummary(NoteText):
    """Describe an entity whose summary is outdated or missing."""

    name: str
    entity_type: str
    last_modified: str
    observation_count: int
    draft_summary: str | None


class RelationCandidate(NoteText):
    """Name two entities that may need a relation."""

    node_a: str
    node_b: str
    similarity_score: float
    rationale: str | None


class Orphan(AnswerModel):
    """Describe an entity without relations."""

    name: str
    entity_type: str
    updated_at: str


class Cluster(AnswerModel):
    """List entities that belong together."""

    cluster_id: int
    node_names: list[str]
    centroid_label: str | None


class EventSummary(AnswerModel):
    """Count the changes of a period."""

    since: str
    creates: int
    updates: int
    deletes: int


class ConsolidationReport(NoteText):
    """List what needs attention."""

    stale_summaries: list[StaleSummary]
    relation_candidates: list[RelationCandidate]
    orphaned_nodes: list[Orphan]
    cluster_summary: list[Cluster]
    event_summary: EventSummary
    totals: dict[str, int] = Field(description="Number of entries of each kind; each list holds only the first ones")
    degraded: list[str] = Field(description="Why the report is incomplete; empty: it is complete")


class PendingNode(AnswerModel):
    """Describe an entity that needs a new summary."""

    name: str
    entity_type: str
    observation_count: int
    last_observation_at: str | None
    summary_updated_at: str | None


PendingNodes: TypeAlias = Page[PendingNode]


class Stats(NoteText):
    """Count the contents of a workspace's graph."""

    node_count: int
    observation_count: int
    relation_count: int
    embedding_coverage: float
    workspace: str
