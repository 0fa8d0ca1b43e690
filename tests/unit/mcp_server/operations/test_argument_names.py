"""mcp_server/operations/argument_names.py: other names for a parameter are taken where they can mean one thing alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from index.errors import InvalidArgument
from mcp_server.operations.argument_names import MOST, MOST_PARTS, SAME, find_parameter, rename_arguments
from mcp_server.tools.families import OPERATIONS
from tests.support.tool_arguments import ARGUMENTS

KNOWN = {operation.name: operation.given for operation in OPERATIONS}


@pytest.mark.parametrize(
    ("tool", "meant", "taken"),
    [
        ("capture_thought", {"text": "x"}, {"content": "x"}),
        ("semantic_search", {"q": "x", "limit": 3}, {"query": "x", "top_k": 3}),
        ("semantic_search", {"question": "x", "topK": 3}, {"query": "x", "top_k": 3}),
        ("kb_search", {"q": "x", "max_results": 3, "type": "note"}, {"query": "x", "top_n": 3, "doc_type": "note"}),
        ("get_thought", {"document_id": "x"}, {"id": "x"}),
        ("kb_update_note", {"note_id": "x", "content": "y"}, {"id": "x", "text": "y"}),
        ("kb_get", {"path": "a.md", "startLine": 4}, {"source_path": "a.md", "start_line": 4}),
        ("memory.save", {"text": "x", "id": "m"}, {"content": "x", "memo_id": "m"}),
        (
            "memory.relation.save",
            {"source": "a", "to": "b", "tag": "t"},
            {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t"},
        ),
        ("search_nodes", {"search": "x"}, {"query": "x"}),
        ("open_nodes", {"entity_names": ["x"]}, {"names": ["x"]}),
        ("delete_entities", {"entityNames": ["x"]}, {"entity_names": ["x"]}),
        (
            "create_entities",
            {"entities": [{"name": "x", "entityType": "t", "facts": ["f"]}]},
            {"entities": [{"name": "x", "entity_type": "t", "observations": ["f"]}]},
        ),
        (
            "create_entities",
            {"entities": '[{"name": "x", "type": "t"}]'},
            {"entities": [{"name": "x", "entity_type": "t"}]},
        ),
        (
            "add_observations",
            {"observations": [{"entityName": "x", "observations": ["f"]}]},
            {"observations": [{"entity_name": "x", "contents": ["f"]}]},
        ),
        (
            "create_relations",
            {"relations": [{"from": "a", "to": "b", "relationType": "knows"}]},
            {"relations": [{"from_entity": "a", "to_entity": "b", "relation_type": "knows"}]},
        ),
        (
            "replace_observation",
            {"node": "x", "ordinal": 1, "fact": "f"},
            {"entity_name": "x", "ordinal": 1, "new_content": "f"},
        ),
    ],
)
def test_a_well_meant_name_is_taken(tool, meant, taken):
    renamed = rename_arguments(KNOWN[tool], meant)
    assert renamed == taken
    KNOWN[tool].model_validate(renamed)


@pytest.mark.parametrize("tool", sorted(KNOWN))
def test_null_means_that_a_parameter_is_left_out(tool):
    required = ARGUMENTS.get(tool, {"id": "x"})
    optional = {
        field.alias or name: None for name, field in KNOWN[tool].model_fields.items() if not field.is_required()
    }
    request = KNOWN[tool].model_validate(rename_arguments(KNOWN[tool], optional | required))
    assert request == KNOWN[tool].model_validate(required)


def test_null_means_that_a_part_of_a_list_item_is_left_out():
    entity = {"name": "x", "entity_type": "t", "observations": None, "tags": None, "summary": None}
    request = KNOWN["create_entities"].model_validate(
        rename_arguments(KNOWN["create_entities"], {"entities": [entity]})
    )
    assert (request.entities[0].observations, request.entities[0].tags) == ((), ())


@pytest.mark.parametrize("left_out", ["top_k", "limit"])
def test_null_does_not_count_as_passing_a_parameter_twice(left_out):
    meant = {"query": "x", "top_k": 5, "limit": 5} | {left_out: None}
    for arguments in (meant, dict(reversed(meant.items()))):
        assert rename_arguments(KNOWN["semantic_search"], arguments) == {"query": "x", "top_k": 5}


def test_null_for_a_required_parameter_stays():
    assert rename_arguments(KNOWN["semantic_search"], {"q": None}) == {"query": None}


@pytest.mark.parametrize(
    ("tool", "meant"),
    [
        ("capture_thought", {"content": "x", "text": "y"}),
        ("capture_thought", {"text": "x", "body": "x"}),
        ("semantic_search", {"query": "x", "q": "x"}),
        ("create_entities", {"entities": [{"name": "x", "entity_type": "t", "entityType": "t"}]}),
        ("create_relations", {"relations": [{"from": "a", "source": "b", "to": "c", "relation_type": "d"}]}),
    ],
)
def test_a_parameter_that_is_given_twice_is_refused(tool, meant):
    with pytest.raises(InvalidArgument, match="given twice"):
        rename_arguments(KNOWN[tool], meant)


@pytest.mark.parametrize(
    ("tool", "meant"),
    [
        ("capture_thought", {"content": "x", "colour": 1}),
        ("semantic_search", {"query": "x", "workspace": "secret"}),
        ("update_relation_type", {"from": "a", "to": "b", "type": "x", "new_type": "y"}),  # the old one or the new one
        ("get_path", {"name": "a", "to": "b"}),
        ("add_observations", {"facts": ["x"]}),  # of which node?
    ],
)
def test_a_name_that_means_nothing_or_several_things_stays_and_is_refused(tool, meant):
    with pytest.raises(ValidationError):
        KNOWN[tool].model_validate(rename_arguments(KNOWN[tool], meant))


def test_names_of_the_tools_own_are_never_touched():
    assert {tool: rename_arguments(KNOWN[tool], given) for tool, given in ARGUMENTS.items()} == ARGUMENTS


def test_no_name_stands_for_a_parameter_that_means_something_else():
    """A row of names has at most one parameter of a tool, so none of them can be taken for another."""
    names = {name for row in SAME for name in row}
    wrong = []
    for tool, model in KNOWN.items():
        fields = {field.alias or name for name, field in model.model_fields.items()}
        for name in names - fields:
            rows = [row for row in SAME if name in row]
            meant = find_parameter(model, name)
            same = meant == name or any(meant.lower().replace("memoid", "_memo_id") in row for row in rows)
            if meant not in fields | {name} or not same:
                wrong.append((tool, name, meant))
    assert wrong == []


@given(
    st.dictionaries(
        st.text(max_size=6) | st.sampled_from(["text", "q", "content", "entityType"]), st.integers(), max_size=4
    )
)
def test_nothing_that_was_given_is_lost_or_added(arguments):
    for model in KNOWN.values():
        try:
            renamed = rename_arguments(model, arguments)
        except InvalidArgument:
            continue
        assert list(renamed.values()) == list(arguments.values())


def test_very_many_names_and_objects_are_left_to_be_refused():
    named = {f"n{number}": "" for number in range(MOST)} | {"q": "x"}
    assert rename_arguments(KNOWN["semantic_search"], named) == named
    parts = [{"entityType": ""}] * (MOST_PARTS + 1)
    assert rename_arguments(KNOWN["create_entities"], {"entities": parts})["entities"] is parts


@pytest.mark.parametrize("tool", ["capture_thought", "semantic_search"])
def test_an_end_of_a_relation_means_nothing_where_there_is_one_alone(tool):
    assert find_parameter(KNOWN[tool], "from") == "from"
