"""The schemas that tools/list and OpenAPI publish: words that clients know, true bounds, and every parameter described."""

import pytest
from jsonschema_specifications import REGISTRY
from pydantic import ValidationError

from mcp_server.rest import git_webhook
from mcp_server.tools.families import FAMILIES
from tests.support.live_server import client, run, running

DRAFT = "https://json-schema.org/draft/2020-12/"
PARTS = [part for part in REGISTRY if part.startswith(f"{DRAFT}meta/")]
WORDS = {word for part in PARTS for word in REGISTRY.contents(part).get("properties", ())}
OPERATIONS = {operation.safe_name: operation for family in FAMILIES.values() for operation in family}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The input and the output schema of each tool, and the document of REST."""

    async def list_tools(rim):
        async with client(rim) as mcp:
            return (await mcp.list_tools()).tools

    with running(tmp_path_factory.mktemp("rim") / "state") as rim:
        tools = run(list_tools(rim))
        document = rim.rest("GET", "/openapi.json").json()
    return {tool.name: tool.input_schema for tool in tools}, [tool.output_schema for tool in tools], document


def schemas_in(document):
    """Each schema of an OpenAPI document, with the place where it stands."""
    found, rest = [], [("openapi", document)]
    while rest:
        place, part = rest.pop()
        if isinstance(part, list):
            rest += [(place, item) for item in part]
        elif isinstance(part, dict):
            for word, value in part.items():
                if word in ("schema", "schemas"):
                    several = value.values() if word == "schemas" else [value]
                    found += [(f"{place} {part.get('name', word)}", schema) for schema in several]
                else:
                    rest.append((f"{place} {word}", value))
    return found


def parts_of(place, schema):
    """A schema and all that it is made of."""
    yield place, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts_of(f"{place}.{name}", part)
    for part in [*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(part, dict):
            yield from parts_of(f"{place}[]", part)


def test_every_schema_speaks_json_schema(published):
    given, returned, document = published
    schemas = [*given.items(), *(("answer", schema) for schema in returned), *schemas_in(document)]
    assert len(schemas) > 2 * len(OPERATIONS)
    parts = [part for named in schemas for part in parts_of(*named)]
    assert {"minimum", "maximum"} <= {word for _, part in parts for word in part}
    assert [(place, word) for place, part in parts for word in part if word not in WORDS] == []


def test_every_parameter_of_a_tool_is_described(published):
    given, _, _ = published
    parts = [part for named in given.items() for part in parts_of(*named)]
    fields = [(f"{place}.{name}", of) for place, part in parts for name, of in part.get("properties", {}).items()]
    assert len(fields) >= 138
    assert [place for place, of in fields if not of.get("description")] == []
    assert [place for place, of in fields if len(of["description"]) > 100] == []


def test_every_parameter_of_rest_is_described(published):
    _, _, document = published
    paths = {
        path: methods for path, methods in document["paths"].items() if path != git_webhook.PATH
    }  # forges know them
    routes = {(path, method): of for path, methods in paths.items() for method, of in methods.items()}
    told = {
        (*route, parameter["name"]): parameter.get("description") or parameter["schema"].get("description")
        for route, of in routes.items()
        for parameter in of.get("parameters", ())
    }
    for route, of in routes.items():
        for kind in of.get("requestBody", {}).get("content", {}).values():
            fields = kind["schema"].get("properties", {})
            told |= {(*route, name): field.get("description") for name, field in fields.items()}
    assert len(told) > 40
    assert [place for place, description in told.items() if not description] == []


def numbers_of(schema):
    return [(name, of) for name, of in schema["properties"].items() if of.get("type") in ("integer", "number")]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_bounds_of_a_number_are_those_that_a_call_meets(published, name):
    for field, of in numbers_of(published[0][name]):
        assert "minimum" in of, field
        tried = {of["minimum"]: True, of["minimum"] - 1: False}
        tried |= {of["maximum"]: True, of["maximum"] + 1: False} if "maximum" in of else {}
        for value, is_taken in tried.items():
            assert (field not in refused(OPERATIONS[name], {field: value})) is is_taken, (field, value)


def refused(operation, arguments):
    """The arguments that are called wrong."""
    try:
        operation.given.model_validate(arguments)
    except ValidationError as problem:
        return {error["loc"][0] for error in problem.errors() if error["loc"]}
    return set()
