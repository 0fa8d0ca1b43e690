"""Define the input schema of each tool of the family `graph`, which checks a call and describes it.

24 tools share what a model can bear to read, so a field has a description only where its name does not explain it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_server.operations.wire_format import RequestModel, refuse_hidden
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _parse_json_text, _refuse_boolean

ITEMS: Final = 100  # nodes, relations or additions in one call
FACTS: Final = 200  # observations of one node in one call
LONGEST_NAME: Final = 256  # characters
MOST: Final = 1_000  # nodes that a list has at most, unless it is told otherwise


def _check_length(name: str) -> str:
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a name has at most {LONGEST_NAME} characters")
    return name


Name = Annotated[str, AfterValidator(_check_length)]  # bounded without words: it stands in the schemas some 30 times
Kind = Annotated[str, Field(max_length=100)]  # of a node or a relation
NewName = Annotated[Name, AfterValidator(refuse_hidden)]
NewKind = Annotated[Kind, AfterValidator(refuse_hidden)]
Fact = Annotated[str, Field(max_length=10_000)]
Summary = Annotated[str, Field(max_length=2_000)]
Tag = Annotated[str, Field(max_length=100)]
Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
Ordinal = Annotated[int, Field(ge=1), BeforeValidator(_refuse_boolean)]
Mode = Literal["embedding", "text"]
Version = Annotated[int | None, Field(ge=1, description="From open_nodes: CONFLICT if it has changed since")]

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=50), BeforeValidator(_parse_json_text)]


class NewEntity(RequestModel):
    """A node to be."""

    name: NewName
    entity_type: NewKind
    observations: Annotated[tuple[Fact, ...], Field(max_length=FACTS)] = ()
    summary: Summary | None = None
    tags: Tags = ()


class CreateEntities(RequestModel):
    """What `create_entities` takes."""

    entities: Annotated[tuple[NewEntity, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)]


class DeleteEntities(RequestModel):
    """What `delete_entities` takes."""

    entity_names: Names


class OpenNodes(RequestModel):
    """What `open_nodes` takes."""

    names: Names


class NodesByType(RequestModel):
    """What `get_nodes_by_type` takes."""

    entity_type: Kind
    limit: Whole = Field(MOST, ge=1, le=10_000)


class RecentlyModified(RequestModel):
    """What `get_recently_modified` takes."""

    days: Whole = Field(7, ge=1, le=3_650)
    limit: Whole = Field(20, ge=1, le=MOST)


class SetSummary(RequestModel):
    """What `set_summary` takes."""

    name: Name
    summary: Summary
    version: Version = None


class SetTags(RequestModel):
    """What `set_tags` takes."""

    name: Name
    tags: Tags
    version: Version = None


class Addition(RequestModel):
    """Facts for one node."""

    entity_name: Name
    contents: Annotated[tuple[Fact, ...], Field(min_length=1, max_length=FACTS)]


class AddObservations(RequestModel):
    """What `add_observations` takes."""

    observations: Annotated[
        tuple[Addition, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)
    ]


class ReplaceObservation(RequestModel):
    """What `replace_observation` takes."""

    entity_name: Name
    ordinal: Ordinal
    new_content: Fact
    version: Version = None


class Deletion(RequestModel):
    """Facts of one node that are to go."""

    entity_name: Name
    ordinals: Annotated[tuple[Ordinal, ...], Field(min_length=1, max_length=FACTS)]


class DeleteObservations(RequestModel):
    """What `delete_observations` takes."""

    deletions: Annotated[tuple[Deletion, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)]


class QueryObservations(RequestModel):
    """What `query_observations` takes."""

    entity_name: Name
    query: str = Field(min_length=1, max_length=LONGEST_QUERY)
    mode: Mode = "embedding"
    limit: Whole = Field(20, ge=1, le=FACTS)


class GivenRelation(RequestModel):
    """A relation as a caller names it."""

    from_entity: Name
    to_entity: Name
    relation_type: Kind


class NewRelation(GivenRelation):
    """A relation to be."""

    relation_type: NewKind


class CreateRelations(RequestModel):
    """What `create_relations` takes."""

    relations: Annotated[
        tuple[NewRelation, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)
    ]


class DeleteRelations(RequestModel):
    """What `delete_relations` takes."""

    relations: Annotated[
        tuple[GivenRelation, ...], Field(min_length=1, max_length=ITEMS), BeforeValidator(_parse_json_text)
    ]


class UpdateRelationType(RequestModel):
    """What `update_relation_type` takes."""

    from_entity: Name
    to_entity: Name
    old_type: Kind
    new_type: NewKind


class Pair(RequestModel):
    """What `get_relations_between` takes."""

    entity_a: Name
    entity_b: Name


class Neighborhood(RequestModel):
    """What `get_neighborhood` takes."""

    name: Name
    depth: Whole = Field(1, ge=1, le=10)
    limit: Whole = Field(100, ge=1, le=MOST, description="Most nodes")


class Ends(RequestModel):
    """What `get_path` takes."""

    from_entity: Name
    to_entity: Name


class Listing(RequestModel):
    """What lists without a question take."""

    limit: Whole = Field(MOST, ge=1, le=10_000)


class SimilarNodes(RequestModel):
    """What `find_similar_nodes` takes."""

    limit: Whole = Field(20, ge=1, le=200)
    min_score: float = Field(0.75, ge=0, le=1)


class SearchNodes(RequestModel):
    """What `search_nodes` takes."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY)
    limit: Whole = Field(10, ge=1, le=50)
    mode: Mode = "embedding"


class Nothing(RequestModel):
    """What a tool without parameters takes."""
