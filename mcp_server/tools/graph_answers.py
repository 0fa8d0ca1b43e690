"""Define the answers of the tools of the family `graph`: the agreed shapes, and the fields added to them.

Times are ISO 8601 texts in UTC."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from mcp_server.operations.wire_format import AnswerModel, NoteLocation, NoteText
from syncd.history.write_lineage import Hand


class WrittenNodes(NoteText):
    """What tools answer that write text of nodes."""

    warnings: list[str] = Field([], description="What to tell the person")


class CreatedNode(AnswerModel):
    """A node that was made."""

    name: str
    entity_type: str
    created_at: str


class CreatedNodes(WrittenNodes):
    """The nodes that were made, in the order asked for."""

    results: list[CreatedNode]


class DeletedNodes(NoteText):
    """What became of each name."""

    deleted: list[str]
    not_found: list[str]


class KeptFact(AnswerModel):
    """An observation."""

    ordinal: int
    content: str


class WholeNode(NoteLocation, NoteText):
    """A node with all that it says."""

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
    """A relation."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    source: str = Field(serialization_alias="from")
    to: str
    relation_type: str


class OpenedNodes(NoteText):
    """Nodes, and all relations at either end of them."""

    entities: list[WholeNode]
    relations: list[Relation]
    not_found: list[str]


class ChangedNode(NoteText):
    """A node and when it changed."""

    name: str
    entity_type: str
    summary: str | None
    updated_at: str


class TaggedNode(ChangedNode):
    """The same with its tags."""

    tags: list[str]


class TaggedNodes(NoteText):
    """Nodes of a type, by name."""

    results: list[TaggedNode]
    truncated: bool
    next_cursor: str | None


class ChangedNodes(NoteText):
    """Nodes; `truncated`: there are more than were asked for."""

    results: list[ChangedNode]
    truncated: bool
    next_cursor: str | None


class SummarySet(WrittenNodes):
    """A summary as it is now."""

    name: str
    summary: str
    updated_at: str
    version: int


class TagsSet(NoteText):
    """Tags as they are now."""

    name: str
    tags: list[str]
    version: int


class AddedFacts(AnswerModel):
    """What one node got."""

    entity_name: str
    added: list[KeptFact]
    not_found: bool


class Additions(WrittenNodes):
    """What each got, in the order asked for."""

    results: list[AddedFacts]


class ReplacedFact(WrittenNodes):
    """A fact before and after."""

    entity_name: str
    ordinal: int
    old_content: str
    new_content: str


class DroppedFacts(AnswerModel):
    """What one node lost."""

    entity_name: str
    deleted_ordinals: list[int]
    not_found_ordinals: list[int]


class Deletions(NoteText):
    """What each lost, in the order asked for."""

    results: list[DroppedFacts]


class FoundFact(NoteText):
    """A fact that answers."""

    ordinal: int
    content: str
    truncated: bool
    by: Hand
    score: float


class FoundFacts(NoteText):
    """Facts of one node, best first."""

    results: list[FoundFact]
    mode: str
    degraded: list[str]


class CreatedRelations(NoteText):
    """What became of each relation."""

    created: list[Relation]
    already_existed: list[Relation]
    not_found: list[str] = Field(description="Nodes that do not exist; their relations were left out")


class DeletedRelations(NoteText):
    """How many went, and how many were not there."""

    deleted: int
    not_found: int


class RetypedRelation(NoteText):
    """A relation's type before and after."""

    from_entity: str
    to_entity: str
    old_type: str
    new_type: str


class RelationList(NoteText):
    """Relations."""

    results: list[Relation]


class Neighbor(NoteText):
    """A node of a neighbourhood."""

    name: str
    entity_type: str
    summary: str | None
    tags: list[str]


class Surroundings(NoteText):
    """A node's neighbourhood, the nearest first; `truncated`: the limit left some out."""

    nodes: list[Neighbor]
    relations: list[Relation]
    truncated: bool


class Route(NoteText):
    """A shortest path, if there is one."""

    found: bool
    path: list[str]
    relations: list[Relation]


class RelationGap(AnswerModel):
    """A node that speaks of another without a relation."""

    node: str
    referenced_name: str
    reference_count: int


class RelationGaps(NoteText):
    """Gaps, the most spoken of first."""

    results: list[RelationGap]
    truncated: bool
    next_cursor: str | None


class SimilarPair(AnswerModel):
    """Two nodes alike."""

    node_a: str
    node_b: str
    similarity: float
    node_a_type: str
    node_b_type: str


class SimilarPairs(NoteText):
    """Pairs, the most alike first."""

    results: list[SimilarPair]


class FoundNode(NoteLocation, NoteText):
    """A node that answers, by its best fact."""

    name: str
    entity_type: str
    summary: str | None
    matched_observation: str
    ordinal: int
    truncated: bool = Field(description="The observation is cut; open_nodes has it whole")
    matched_perspective: str | None
    by: Hand
    score: float


class FoundNodes(NoteText):
    """Nodes, best first."""

    results: list[FoundNode]
    mode: str
    degraded: list[str] = Field(description="What kept the search from being complete; empty = nothing")


class StaleSummary(NoteText):
    """A node whose summary is behind its facts, or missing."""

    name: str
    entity_type: str
    last_modified: str
    observation_count: int
    draft_summary: str | None


class RelationCandidate(NoteText):
    """Two nodes that may want a relation."""

    node_a: str
    node_b: str
    similarity_score: float
    rationale: str | None


class Orphan(AnswerModel):
    """A node without relations."""

    name: str
    entity_type: str
    updated_at: str


class Cluster(AnswerModel):
    """Nodes that belong together."""

    cluster_id: int
    node_names: list[str]
    centroid_label: str | None


class EventSummary(AnswerModel):
    """How much was written."""

    since: str
    creates: int
    updates: int
    deletes: int


class ConsolidationReport(NoteText):
    """What needs attention."""

    stale_summaries: list[StaleSummary]
    relation_candidates: list[RelationCandidate]
    orphaned_nodes: list[Orphan]
    cluster_summary: list[Cluster]
    event_summary: EventSummary
    totals: dict[str, int] = Field(description="How many of each there are; a list has the first ones")
    degraded: list[str] = Field(description="What kept it from being whole")


class PendingNode(AnswerModel):
    """A node whose summary is to be written."""

    name: str
    entity_type: str
    observation_count: int
    last_observation_at: str | None
    summary_updated_at: str | None


class PendingNodes(NoteText):
    """Nodes whose summary is to be written."""

    results: list[PendingNode]
    truncated: bool
    next_cursor: str | None


class Stats(NoteText):
    """The workspace in numbers."""

    node_count: int
    observation_count: int
    relation_count: int
    embedding_coverage: float
    workspace: str
