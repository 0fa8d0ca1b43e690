"""Describe REST as OpenAPI 3.1, from the schemas that check the requests.

Law, tested: REST accepts what the description allows, refuses what it forbids, and answers only with statuses that it
names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from index.errors import CODES
from mcp_server.operations.operation import Operation
from mcp_server.operations.wire_format import STATUS, compact_schema, with_collections
from mcp_server.rest import git_webhook, upload_form

WHY: Final[Mapping[int, str]] = {
    400: "A value is missing, malformed, out of range or unknown",
    401: "No key, or one that is unknown, expired or revoked",
    403: "The key lacks the scope, or is not meant for REST",
    404: "No such document, job or workspace, or the key may not see it",
    405: "The method is not served here; the header Allow lists the served methods",
    408: "The body did not arrive in time",
    409: "The document has changed meanwhile, or has another version",
    413: "Larger than allowed",
    415: "The content type of the body is not one of those listed",
    421: "The server does not serve this host name",
    429: "Too many requests, or too many waiting ones; try again after Retry-After seconds",
    431: "The head of the request is too large",
    503: "The model, the index or the disk failed, and nothing was changed; `retryable` says whether to try again",
}
CODE: Final[Mapping[int, str]] = {status: code for code, status in STATUS.items()} | {
    405: "INVALID_ARGUMENT",
    408: "RESOURCE_EXHAUSTED",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
    421: "PERMISSION_DENIED",
    431: "RESOURCE_EXHAUSTED",
}
HEADERS: Final[Mapping[int, tuple[str, str]]] = {
    401: ("WWW-Authenticate", "Bearer"),
    405: ("Allow", "The methods that are served"),
    429: ("Retry-After", "Seconds to wait"),
}
EXAMPLES: Final[Mapping[str, dict[str, Any]]] = {  # of a body, by operation
    "capture_thought": {"content": "# Heat pump\n\nThe filter is due in May.", "source": "curl"},
    "semantic_search": {"query": "when is the filter due?", "top_k": 3},
    "kb_search": {"query": "when is the filter due?", "top_n": 3, "tags": ["home"], "collection": "documents"},
    "kb_addnote": {"text": "The filter is due in May.", "title": "Heat pump", "tags": ["home"]},
    "kb_update_note": {"text": "The filter is due in June.", "version": 1},
    "set_document_tags": {"tags": ["home", "heating"]},
}
WORKSPACE: Final[Mapping[str, Any]] = {
    "name": "X-Memory-Workspace",
    "in": "header",
    "required": False,
    "description": "Default: the key's only workspace, else default",
    "schema": {"type": "string"},
}
ALWAYS: Final = (400, 401, 403, 404, 405, 408, 413, 421, 429, 431, 503)


class RouteOperation(NamedTuple):
    """Describes one operation of a route. Arguments that are not in the path are in `place`."""

    method: str
    path: str
    operation: Operation
    place: str  # "body" or "query"
    code: int = 200


def build_document(
    routes: Sequence[RouteOperation], public_url: str, *, collections: Sequence[str], version: str
) -> dict[str, Any]:
    """Build the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_route(route, collections)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memex",
            "version": version,
            "description": "Capture into an Obsidian vault's inbox, and search it.",
        },
        "servers": [{"url": public_url or "/"}],
        "security": [{"key": []}],
        "paths": paths | _describe_health_routes() | {git_webhook.PATH: git_webhook.describe_route()},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _error_schema()},
            "responses": {
                "Error": _error_response("Why not"),
                **{f"Error{code}": _error_response(why, code) for code, why in WHY.items()},
            },
        },
    }


def _describe_route(route: RouteOperation, collections: Sequence[str]) -> dict[str, Any]:
    operation, in_body = route.operation, route.place == "body"
    arguments = with_collections(compact_schema(operation.given, exact=True), collections)
    in_path = [name for name in arguments["properties"] if f"{{{name}}}" in route.path]
    parameters: list[Mapping[str, Any]] = [
        WORKSPACE,
        *({"name": name, "in": "path", "required": True, "schema": arguments["properties"][name]} for name in in_path),
    ]
    if not in_body:
        parameters += _query_parameters(arguments, in_path)
    answer = {"application/json": {"schema": compact_schema(operation.returned, output=True)}}
    codes = (*ALWAYS, *((409,) if operation.scope == "write" else ()), *((415,) if in_body else ()))
    return {
        "operationId": operation.name,
        "summary": operation.title,
        "description": operation.description,
        "parameters": parameters,
        **({"requestBody": _request_body(operation.name, arguments, in_path)} if in_body else {}),
        "responses": {str(route.code): {"description": operation.title, "content": answer}, **_error_responses(codes)},
    }


def _query_parameters(arguments: Mapping[str, Any], in_path: Sequence[str]) -> list[dict[str, Any]]:
    """Return all arguments except those in the path, as parameters of a query."""
    required = arguments.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(of)}
        for name, of in arguments["properties"].items()
        if name not in in_path
    ]


def _request_body(operation: str, arguments: Mapping[str, Any], in_path: Sequence[str]) -> dict[str, Any]:
    """Return all arguments except those in the path, as a JSON body; the jobs route also accepts a form with a file."""
    rest = {name: of for name, of in arguments["properties"].items() if name not in in_path}
    required = [name for name in arguments.get("required", ()) if name not in in_path]
    content: dict[str, Any] = {"schema": {**arguments, "properties": rest, "required": required}}
    if operation in EXAMPLES:
        content["example"] = EXAMPLES[operation]
    kinds = {"application/json": content}
    if operation == "kb_addnote":
        kinds[upload_form.KIND.decode()] = {"schema": _form_schema(arguments)}
    return {"required": True, "content": kinds}


def _form_schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form: a file, and the same fields as for a note."""
    fields = {name: _without_null(of) for name, of in arguments["properties"].items() if name in upload_form.FIELDS}
    file = {
        "type": "string",
        "contentMediaType": "application/octet-stream",
        "description": "The file, with its filename",
    }
    return {
        "type": "object",
        "properties": {"file": file, **fields},
        "required": ["file"],
        "additionalProperties": False,
    }


def _without_null(of: Mapping[str, Any]) -> Any:
    """Return the schema of a query parameter, which can't be null."""
    choices = [choice for choice in of.get("anyOf", ()) if choice != {"type": "null"}]
    rest = {key: value for key, value in of.items() if key != "anyOf"}
    return {**choices[0], **rest} if len(choices) == 1 else dict(of)


def _describe_health_routes() -> dict[str, Any]:
    """Describe the routes that report the daemon's health."""
    paths: dict[str, Any] = {}
    for path, what in (
        ("/healthz", "Report whether the daemon is healthy"),
        ("/readyz", "Report what is indexed and what is pending"),
    ):
        answer = {"description": what, "content": {"application/json": {"schema": {"type": "object"}}}}
        refusals = _error_responses((400, 401, 405, 408, 413, 421, 429, 431, 503))
        paths[path] = {
            "get": {
                "operationId": path[1:],
                "summary": what,
                "security": [{}, {"key": []}],
                "responses": {"200": answer} | refusals | ({"503": answer} if path == "/readyz" else {}),
            }
        }
    page = {"description": "Numbers", "content": {"text/plain": {"schema": {"type": "string"}}}}
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "Report the daemon's metrics for Prometheus; needs the scope admin",
            "responses": {"200": page, **_error_responses(tuple(code for code in ALWAYS if code != 404))},
        }
    }
    return paths


def _error_responses(codes: Sequence[int]) -> dict[str, Any]:
    return {str(code): {"$ref": f"#/components/responses/Error{code}"} for code in sorted(codes)}


def _error_response(why: str, code: int = 0) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Error"}}
    if code:
        example = {"code": CODE[code], "message": why, "retryable": code in (408, 429, 503), "details": {}}
        content["example"] = {"error": example}
    response: dict[str, Any] = {"description": why, "content": {"application/json": content}}
    if code in HEADERS:
        name, means = HEADERS[code]
        response["headers"] = {name: {"description": means, "schema": {"type": "string"}}}
    return response


def _error_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "enum": sorted(CODES)},
                    "message": {"type": "string"},
                    "retryable": {"type": "boolean"},
                    "details": {"type": "object"},
                },
                "required": ["code", "message", "retryable", "details"],
            }
        },
        "required": ["error"],
    }
