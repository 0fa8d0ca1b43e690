"""Define the input schemas of the family `graph`, which validate and describe each call.

24 tools share one token budget, so each description is a few words."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_server.operations.wire_format import RequestModel, refuse_hidden
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, Whole, parse_json_text, refuse_boolean

T = TypeVar("T")

ITEMS: Final = 100  # entities, relations or additions in one call
FACTS: Final = 200  # facts of one entity in one call
LONGEST_NAME: Final = 256  # characters
MOST: Final = 1_000  # default limit of entities in a list

Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Node = Annotated[Name, Field(description="Name of the entity")]
Source = Annotated[Name, Field(description="Name of the entity it starts at")]
Target = Annotated[Name, Field(description="Name of the entity it points to")]
Kind = Annotated[str, Field(max_length=100)]  # of an entity or a relation
NewName = Annotated[Name, AfterValidator(refuse_hidden)]
NewKind = Annotated[Kind, AfterValidator(refuse_hidden)]
Fact = Annotated[str, Field(max_length=10_000)]
Summary = Annotated[str, Field(max_length=2_000)]
Tag = Annotated[str, Field(max_length=100)]
Ordinal = Annotated[int, Field(ge=1), BeforeValidator(refuse_boolean)]
Mode = Annotated[Literal["embedding", "text"], Field(description="embedding: by meaning; text: exact words")]
Query = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY, description="What to find")]
Version = Annotated[
    int | None,
    Field(ge=1, description="From open_nodes: CONFLICT if it has changed since"),
    BeforeValidator(refuse_boolean),
]

Cursor = Annotated[str | None, Field(max_length=100, description="The last answer's next_cursor")]

Items = Annotated[tuple[T, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(parse_json_text)]
Names = Items[Name]
Tags = Annotated[tuple[Tag, ...], Field(max_length=50), BeforeValidator(parse_json_text)]


class NewEntity(RequestModel):
    """Describe an entity to create."""

    name: NewName = Field(description="Unique in the workspace")
    entity_type: NewKind = Field(description="E.g. person, project")
    observations: Annotated[tuple[Fact, ...], Field(max_length=FACTS, description="One fact each")] = ()
    summary: Summary | None = Field(None, description="What the entity is, in short")
    tags: Annotated[Tags, Field(description="Keywords")] = ()


class CreateEntities(RequestModel):
    """Validate the input of `create_entities`."""

    entities: Items[NewEntity] = Field(description="Entities to create")


class DeleteEntities(RequestModel):
    """Validate the input of `delete_entities`."""

    entity_names: Names = Field(description="Names of the entities")


class OpenNodes(RequestModel):
    """Validate the input of `open_nodes`."""

    names: Names = Field(description="Names of the entities")


class NodesByType(RequestModel):
    """Validate the input of `get_nodes_by_type`."""

    entity_type: Kind = Field(description="Type of the entities")
    limit: Whole = Field(MOST, ge=1, le=10_000, description="Maximum entities to return")
    cursor: Cursor = None


class RecentlyModified(RequestModel):
    """Validate the input of `get_recently_modified`."""

    days: Whole = Field(7, ge=1, le=3_650, description="How many days back")
    limit: Whole = Field(20, ge=1, le=MOST, description="Maximum entities to return")
    cursor: Cursor = None


class SetSummary(RequestModel):
    """Validate the input of `set_summary`."""

    name: Node
    summary: Summary = Field(description='The new summary; "" removes it')
    version: Version = None


class SetTags(RequestModel):
    """Validate the input of `set_tags`."""

    name: Node
    tags: Tags = Field(description="The new tags; [] removes all")
    version: Version = None


class Addition(RequestModel):
    """Facts to add to one entity."""

    entity_name: Node
    contents: Annotated[tuple[Fact, ...], Field(min_length=1, max_length=FACTS, description="One fact each")]


class AddObservations(RequestModel):
    """Validate the input of `add_observations`."""

    observations: Items[Addition] = Field(description="Facts to add, by entity")


class ReplaceObservation(RequestModel):
    """Validate the input of `replace_observation`."""

    entity_name: Node
    ordinal: Ordinal = Field(description="Number of the fact, from open_nodes")
    new_content: Fact = Field(description="The corrected fact")
    version: Version = None


class Deletion(RequestModel):
    """Facts to delete from one entity."""

    entity_name: Node
    ordinals: Annotated[tuple[Ordinal, ...], Field(min_length=1, max_length=FACTS, description="Numbers of the facts")]


class DeleteObservations(RequestModel):
    """Validate the input of `delete_observations`."""

    deletions: Items[Deletion] = Field(description="Facts to delete, by entity")


class QueryObservations(RequestModel):
    """Validate the input of `query_observations`."""

    entity_name: Node
    query: Query
    mode: Mode = "embedding"
    limit: Whole = Field(20, ge=1, le=FACTS, description="Maximum facts to return")


class GivenRelation(RequestModel):
    """Name a relation to find."""

    from_entity: Source
    to_entity: Target
    relation_type: Kind = Field(description="E.g. works_at")


class NewRelation(GivenRelation):
    """Describe a relation to create."""

    relation_type: NewKind = Field(description="E.g. works_at")


class CreateRelations(RequestModel):
    """Validate the input of `create_relations`."""

    relations: Items[NewRelation] = Field(description="Relations to create")


class DeleteRelations(RequestModel):
    """Validate the input of `delete_relations`."""

    relations: Items[GivenRelation] = Field(description="Relations to delete")


class UpdateRelationType(RequestModel):
    """Validate the input of `update_relation_type`."""

    from_entity: Source
    to_entity: Target
    old_type: Kind = Field(description="Current type")
    new_type: NewKind = Field(description="New type")


class Pair(RequestModel):
    """Validate the input of `get_relations_between`."""

    entity_a: Node
    entity_b: Name = Field(description="Name of the other entity")


class Neighborhood(RequestModel):
    """Validate the input of `get_neighborhood`."""

    name: Node
    depth: Whole = Field(1, ge=1, le=10, description="Maximum relations away from it")
    limit: Whole = Field(100, ge=1, le=MOST, description="Maximum entities to return")


class Ends(RequestModel):
    """Validate the input of `get_path`."""

    from_entity: Name = Field(description="Name of the first entity")
    to_entity: Name = Field(description="Name of the last entity")


class Listing(RequestModel):
    """Validate the input of tools that list entities without a query."""

    limit: Whole = Field(MOST, ge=1, le=10_000, description="Maximum entities to return")
    cursor: Cursor = None


class SimilarNodes(RequestModel):
    """Validate the input of `find_similar_nodes`."""

    limit: Whole = Field(20, ge=1, le=200, description="Maximum pairs to return")
    min_score: Annotated[float, BeforeValidator(refuse_boolean)] = Field(
        0.75, ge=0, le=1, description="Minimum similarity"
    )


class SearchNodes(RequestModel):
    """Validate the input of `search_nodes`."""

    query: Query
    limit: Whole = Field(10, ge=1, le=50, description="Maximum entities to return")
    mode: Mode = "embedding"


class Nothing(RequestModel):
    """Validate the input of a tool without parameters."""
