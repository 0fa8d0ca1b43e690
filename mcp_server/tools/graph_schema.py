"""Define the input schema of each tool of the family `graph`, which checks a call and describes it.

24 tools share what a model can bear to read, so a description is a few words."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_server.operations.wire_format import RequestModel, refuse_hidden
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _parse_json_text, _refuse_boolean

ITEMS: Final = 100  # nodes, relations or additions in one call
FACTS: Final = 200  # observations of one node in one call
LONGEST_NAME: Final = 256  # characters
MOST: Final = 1_000  # nodes that a list has at most, unless it is told otherwise

Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Node = Annotated[Name, Field(description="Name of the node")]
Source = Annotated[Name, Field(description="Name of the node it leads from")]
Target = Annotated[Name, Field(description="Name of the node it leads to")]
Kind = Annotated[str, Field(max_length=100)]  # of a node or a relation
NewName = Annotated[Name, AfterValidator(refuse_hidden)]
NewKind = Annotated[Kind, AfterValidator(refuse_hidden)]
Fact = Annotated[str, Field(max_length=10_000)]
Summary = Annotated[str, Field(max_length=2_000)]
Tag = Annotated[str, Field(max_length=100)]
Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
Ordinal = Annotated[int, Field(ge=1), BeforeValidator(_refuse_boolean)]
Mode = Annotated[Literal["embedding", "text"], Field(description="embedding: by meaning; text: exact words")]
Query = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY, description="What to find")]
Version = Annotated[int | None, Field(ge=1, description="From open_nodes: CONFLICT if it has changed since")]

Cursor = Annotated[str | None, Field(max_length=100, description="The last answer's next_cursor")]

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=50), BeforeValidator(_parse_json_text)]


class NewEntity(RequestModel):
    """A node to be."""

    name: NewName = Field(description="Unique in the workspace")
    entity_type: NewKind = Field(description="E.g. person, project")
    observations: Annotated[tuple[Fact, ...], Field(max_length=FACTS, description="One fact each")] = ()
    summary: Summary | None = Field(None, description="What the node is, in short")
    tags: Annotated[Tags, Field(description="Key words")] = ()


class CreateEntities(RequestModel):
    """What `create_entities` takes."""

    entities: Annotated[
        tuple[NewEntity, ...],
        Field(min_length=1, max_length=ITEMS, description="Nodes to create"),
        BeforeValidator(_parse_json_text),
    ]


class DeleteEntities(RequestModel):
    """What `delete_entities` takes."""

    entity_names: Names = Field(description="Names of the nodes")


class OpenNodes(RequestModel):
    """What `open_nodes` takes."""

    names: Names = Field(description="Names of the nodes")


class NodesByType(RequestModel):
    """What `get_nodes_by_type` takes."""

    entity_type: Kind = Field(description="Type of the nodes")
    limit: Whole = Field(MOST, ge=1, le=10_000, description="Most nodes to return")
    cursor: Cursor = None


class RecentlyModified(RequestModel):
    """What `get_recently_modified` takes."""

    days: Whole = Field(7, ge=1, le=3_650, description="How many days back")
    limit: Whole = Field(20, ge=1, le=MOST, description="Most nodes to return")
    cursor: Cursor = None


class SetSummary(RequestModel):
    """What `set_summary` takes."""

    name: Node
    summary: Summary = Field(description='The new summary; "" removes it')
    version: Version = None


class SetTags(RequestModel):
    """What `set_tags` takes."""

    name: Node
    tags: Tags = Field(description="The new tags; [] removes all")
    version: Version = None


class Addition(RequestModel):
    """Facts for one node."""

    entity_name: Node
    contents: Annotated[tuple[Fact, ...], Field(min_length=1, max_length=FACTS, description="One fact each")]


class AddObservations(RequestModel):
    """What `add_observations` takes."""

    observations: Annotated[
        tuple[Addition, ...],
        Field(min_length=1, max_length=ITEMS, description="Facts to add, by node"),
        BeforeValidator(_parse_json_text),
    ]


class ReplaceObservation(RequestModel):
    """What `replace_observation` takes."""

    entity_name: Node
    ordinal: Ordinal = Field(description="Its number, from open_nodes")
    new_content: Fact = Field(description="The corrected fact")
    version: Version = None


class Deletion(RequestModel):
    """Facts of one node that are to go."""

    entity_name: Node
    ordinals: Annotated[tuple[Ordinal, ...], Field(min_length=1, max_length=FACTS, description="Their numbers")]


class DeleteObservations(RequestModel):
    """What `delete_observations` takes."""

    deletions: Annotated[
        tuple[Deletion, ...],
        Field(min_length=1, max_length=ITEMS, description="Observations to delete, by node"),
        BeforeValidator(_parse_json_text),
    ]


class QueryObservations(RequestModel):
    """What `query_observations` takes."""

    entity_name: Node
    query: Query
    mode: Mode = "embedding"
    limit: Whole = Field(20, ge=1, le=FACTS, description="Most observations to return")


class GivenRelation(RequestModel):
    """A relation as a caller names it."""

    from_entity: Source
    to_entity: Target
    relation_type: Kind = Field(description="E.g. works_at")


class NewRelation(GivenRelation):
    """A relation to be."""

    relation_type: NewKind = Field(description="E.g. works_at")


class CreateRelations(RequestModel):
    """What `create_relations` takes."""

    relations: Annotated[
        tuple[NewRelation, ...],
        Field(min_length=1, max_length=ITEMS, description="Relations to create"),
        BeforeValidator(_parse_json_text),
    ]


class DeleteRelations(RequestModel):
    """What `delete_relations` takes."""

    relations: Annotated[
        tuple[GivenRelation, ...],
        Field(min_length=1, max_length=ITEMS, description="Relations to delete"),
        BeforeValidator(_parse_json_text),
    ]


class UpdateRelationType(RequestModel):
    """What `update_relation_type` takes."""

    from_entity: Source
    to_entity: Target
    old_type: Kind = Field(description="Its type now")
    new_type: NewKind = Field(description="Its new type")


class Pair(RequestModel):
    """What `get_relations_between` takes."""

    entity_a: Node
    entity_b: Name = Field(description="Name of the other node")


class Neighborhood(RequestModel):
    """What `get_neighborhood` takes."""

    name: Node
    depth: Whole = Field(1, ge=1, le=10, description="Most relations away from it")
    limit: Whole = Field(100, ge=1, le=MOST, description="Most nodes to return")


class Ends(RequestModel):
    """What `get_path` takes."""

    from_entity: Name = Field(description="Name of the first node")
    to_entity: Name = Field(description="Name of the last node")


class Listing(RequestModel):
    """What lists without a question take."""

    limit: Whole = Field(MOST, ge=1, le=10_000, description="Most nodes to return")
    cursor: Cursor = None


class SimilarNodes(RequestModel):
    """What `find_similar_nodes` takes."""

    limit: Whole = Field(20, ge=1, le=200, description="Most pairs to return")
    min_score: float = Field(0.75, ge=0, le=1, description="Least similarity")


class SearchNodes(RequestModel):
    """What `search_nodes` takes."""

    query: Query
    limit: Whole = Field(10, ge=1, le=50, description="Most nodes to return")
    mode: Mode = "embedding"


class Nothing(RequestModel):
    """What a tool without parameters takes."""
