"""What the tools of the family `graph` take and give: the schemas that check a call and describe it.

Times are ISO 8601 texts in UTC. 24 tools share what a model can bear to read, so a field has words only where its name
does not say it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _number, _parsed
from mcp_server.wire import Given, Returned

ITEMS: Final = 100  # nodes, relations or additions in one call
FACTS: Final = 200  # observations of one node in one call
LONGEST_NAME: Final = 256  # characters
MOST: Final = 1_000  # nodes that a list has at most, unless it is told otherwise


def _bounded(name: str) -> str:
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a name has at most {LONGEST_NAME} characters")
    return name


Name = Annotated[str, AfterValidator(_bounded)]  # bounded without words: it stands in the schemas some 30 times
Kind = Annotated[str, Field(max_length=100)]  # of a node or a relation
Fact = Annotated[str, Field(max_length=10_000)]
Summary = Annotated[str, Field(max_length=2_000)]
Tag = Annotated[str, Field(max_length=100)]
Whole = Annotated[int, BeforeValidator(_number)]
Ordinal = Annotated[int, Field(ge=1), BeforeValidator(_number)]
Mode = Literal["embedding", "text"]
Version = Annotated[int | None, Field(ge=1, description="From open_nodes: CONFLICT if it has changed since")]

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parsed)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=50), BeforeValidator(_parsed)]


# Taken


class NewEntity(Given):
    """A node to be."""

    name: Name
    entity_type: Kind
    observations: Annotated[tuple[Fact, ...], Field(max_length=FACTS)] = ()
    summary: Summary | None = None
    tags: Tags = ()


class CreateEntities(Given):
    """What `create_entities` takes."""

    entities: Annotated[tuple[NewEntity, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parsed)]


class DeleteEntities(Given):
    """What `delete_entities` takes."""

    entity_names: Names


class OpenNodes(Given):
    """What `open_nodes` takes."""

    names: Names


class NodesByType(Given):
    """What `get_nodes_by_type` takes."""

    entity_type: Kind
    limit: Whole = Field(MOST, ge=1, le=10_000)


class RecentlyModified(Given):
    """What `get_recently_modified` takes."""

    days: Whole = Field(7, ge=1, le=3_650)
    limit: Whole = Field(20, ge=1, le=MOST)


class SetSummary(Given):
    """What `set_summary` takes."""

    name: Name
    summary: Summary
    version: Version = None


class SetTags(Given):
    """What `set_tags` takes."""

    name: Name
    tags: Tags
    version: Version = None


class Addition(Given):
    """Facts for one node."""

    entity_name: Name
    contents: Annotated[tuple[Fact, ...], Field(min_length=1, max_length=FACTS)]


class AddObservations(Given):
    """What `add_observations` takes."""

    observations: Annotated[tuple[Addition, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parsed)]


class ReplaceObservation(Given):
    """What `replace_observation` takes."""

    entity_name: Name
    ordinal: Ordinal
    new_content: Fact
    version: Version = None


class Deletion(Given):
    """Facts of one node that are to go."""

    entity_name: Name
    ordinals: Annotated[tuple[Ordinal, ...], Field(min_length=1, max_length=FACTS)]


class DeleteObservations(Given):
    """What `delete_observations` takes."""

    deletions: Annotated[tuple[Deletion, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parsed)]


class QueryObservations(Given):
    """What `query_observations` takes."""

    entity_name: Name
    query: str = Field(min_length=1, max_length=LONGEST_QUERY)
    mode: Mode = "embedding"
    limit: Whole = Field(20, ge=1, le=FACTS)


class GivenRelation(Given):
    """A relation as a caller names it."""

    from_entity: Name
    to_entity: Name
    relation_type: Kind


class Relations(Given):
    """What `create_relations` and `delete_relations` take."""

    relations: Annotated[tuple[GivenRelation, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parsed)]


class UpdateRelationType(Given):
    """What `update_relation_type` takes."""

    from_entity: Name
    to_entity: Name
    old_type: Kind
    new_type: Kind


class Pair(Given):
    """What `get_relations_between` takes."""

    entity_a: Name
    entity_b: Name


class Neighborhood(Given):
    """What `get_neighborhood` takes."""

    name: Name
    depth: Whole = Field(1, ge=1, le=10)
    limit: Whole = Field(100, ge=1, le=MOST, description="Most nodes")


class Ends(Given):
    """What `get_path` takes."""

    from_entity: Name
    to_entity: Name


class Listing(Given):
    """What lists without a question take."""

    limit: Whole = Field(MOST, ge=1, le=10_000)


class SimilarNodes(Given):
    """What `find_similar_nodes` takes."""

    limit: Whole = Field(20, ge=1, le=200)
    min_score: float = Field(0.75, ge=0, le=1)


class SearchNodes(Given):
    """What `search_nodes` takes."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY)
    limit: Whole = Field(10, ge=1, le=50)
    mode: Mode = "embedding"


class Nothing(Given):
    """What a tool without parameters takes."""


# Given back


class CreatedNode(Returned):
    """A node that was made."""

    name: str
    entity_type: str
    created_at: str


class CreatedNodes(Returned):
    """The nodes that were made, in the order asked for."""

    results: list[CreatedNode]


class DeletedNodes(Returned):
    """What became of each name."""

    deleted: list[str]
    not_found: list[str]


class KeptFact(Returned):
    """An observation."""

    ordinal: int
    content: str


class WholeNode(Returned):
    """A node with all that it says."""

    name: str
    entity_type: str
    summary: str | None
    tags: list[str]
    observations: list[KeptFact]
    created_at: str
    updated_at: str
    version: int


class Relation(Returned):
    """A relation."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    source: str = Field(serialization_alias="from")
    to: str
    relation_type: str


class OpenedNodes(Returned):
    """Nodes, and all relations at either end of them."""

    entities: list[WholeNode]
    relations: list[Relation]
    not_found: list[str]


class Changed(Returned):
    """A node and when it changed."""

    name: str
    entity_type: str
    summary: str | None
    updated_at: str


class Tagged(Changed):
    """The same with its tags."""

    tags: list[str]


class TaggedNodes(Returned):
    """Nodes of a type, by name."""

    results: list[Tagged]
    truncated: bool


class ChangedNodes(Returned):
    """Nodes; `truncated`: there are more than were asked for."""

    results: list[Changed]
    truncated: bool = False


class SummarySet(Returned):
    """A summary as it is now."""

    name: str
    summary: str
    updated_at: str
    version: int


class TagsSet(Returned):
    """Tags as they are now."""

    name: str
    tags: list[str]
    version: int


class Added(Returned):
    """What one node got."""

    entity_name: str
    added: list[KeptFact]
    not_found: bool


class Additions(Returned):
    """What each got, in the order asked for."""

    results: list[Added]


class Replaced(Returned):
    """A fact before and after."""

    entity_name: str
    ordinal: int
    old_content: str
    new_content: str


class Dropped(Returned):
    """What one node lost."""

    entity_name: str
    deleted_ordinals: list[int]
    not_found_ordinals: list[int]


class Deletions(Returned):
    """What each lost, in the order asked for."""

    results: list[Dropped]


class FoundFact(Returned):
    """A fact that answers."""

    ordinal: int
    content: str
    truncated: bool
    score: float


class FoundFacts(Returned):
    """Facts of one node, best first."""

    results: list[FoundFact]
    mode: str
    degraded: list[str]


class CreatedRelations(Returned):
    """What became of each relation."""

    created: list[Relation]
    already_existed: list[Relation]
    not_found: list[str] = Field(description="Nodes that do not exist; their relations were left out")


class DeletedRelations(Returned):
    """How many went, and how many were not there."""

    deleted: int
    not_found: int


class Retyped(Returned):
    """A relation's type before and after."""

    from_entity: str
    to_entity: str
    old_type: str
    new_type: str


class RelationList(Returned):
    """Relations."""

    results: list[Relation]


class Neighbor(Returned):
    """A node of a neighbourhood."""

    name: str
    entity_type: str
    summary: str | None
    tags: list[str]


class Surroundings(Returned):
    """A node's neighbourhood, the nearest first; `truncated`: the limit left some out."""

    nodes: list[Neighbor]
    relations: list[Relation]
    truncated: bool


class Route(Returned):
    """A shortest path, if there is one."""

    found: bool
    path: list[str]
    relations: list[Relation]


class RelationGap(Returned):
    """A node that speaks of another without a relation."""

    node: str
    referenced_name: str
    reference_count: int


class RelationGaps(Returned):
    """Gaps, the most spoken of first."""

    results: list[RelationGap]
    truncated: bool


class SimilarPair(Returned):
    """Two nodes alike."""

    node_a: str
    node_b: str
    similarity: float
    node_a_type: str
    node_b_type: str


class SimilarPairs(Returned):
    """Pairs, the most alike first."""

    results: list[SimilarPair]


class FoundNode(Returned):
    """A node that answers, by its best fact."""

    name: str
    entity_type: str
    summary: str | None
    matched_observation: str
    ordinal: int
    truncated: bool = Field(description="The observation is cut; open_nodes has it whole")
    matched_perspective: str | None
    score: float


class FoundNodes(Returned):
    """Nodes, best first."""

    results: list[FoundNode]
    mode: str
    degraded: list[str] = Field(description="What kept the search from being complete; empty = nothing")


class StaleSummary(Returned):
    """A node whose summary is behind its facts, or missing."""

    name: str
    entity_type: str
    last_modified: str
    observation_count: int
    draft_summary: str | None


class RelationCandidate(Returned):
    """Two nodes that may want a relation."""

    node_a: str
    node_b: str
    similarity_score: float
    rationale: str | None


class Orphan(Returned):
    """A node without relations."""

    name: str
    entity_type: str
    updated_at: str


class Cluster(Returned):
    """Nodes that belong together."""

    cluster_id: int
    node_names: list[str]
    centroid_label: str | None


class EventSummary(Returned):
    """How much was written."""

    since: str
    creates: int
    updates: int
    deletes: int


class ConsolidationReport(Returned):
    """What needs attention."""

    stale_summaries: list[StaleSummary]
    relation_candidates: list[RelationCandidate]
    orphaned_nodes: list[Orphan]
    cluster_summary: list[Cluster]
    event_summary: EventSummary


class PendingNode(Returned):
    """A node whose summary is to be written."""

    name: str
    entity_type: str
    observation_count: int
    last_observation_at: str
    summary_updated_at: str | None


class PendingNodes(Returned):
    """Nodes whose summary is to be written."""

    results: list[PendingNode]


class Stats(Returned):
    """The workspace in numbers."""

    node_count: int
    observation_count: int
    relation_count: int
    embedding_coverage: float
    workspace: str
