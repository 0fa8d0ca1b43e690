"""REST: the same operations for clients that are not agents, and the routes that tell how the daemon is."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from index.errors import CODES, InvalidArgument, MemexError, NotFound, Unavailable
from mcp_server import webhook
from mcp_server.metrics import CONTENT_TYPE
from mcp_server.operation import Desktop, Operation
from mcp_server.tools import thoughts
from mcp_server.wire import body, payload, schema, status

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


class Served(NamedTuple):
    """One route: where, which operation, and where its arguments are."""

    method: str
    path: str
    operation: str
    place: str  # "body", "query" or "path"


ROUTES: Final = (
    Served("POST", "/capture", "capture_thought", "body"),
    Served("POST", "/search", "semantic_search", "body"),
    Served("GET", "/thought/{id}", "get_thought", "path"),
    Served("DELETE", "/thought/{id}", "delete_thought", "path"),
    Served("GET", "/thoughts", "list_recent", "query"),
)
OPERATIONS: Final = {operation.name: operation for operation in thoughts.OPERATIONS}


def routes(desktop: Desktop, *, version: str) -> list[BaseRoute]:
    """All routes of REST."""
    description = json.dumps(openapi(desktop.settings.server.public_url, version=version)).encode()

    async def openapi_json(_: Request) -> Response:
        return _json(description)

    async def healthz(_: Request) -> Response:
        degraded = (await desktop.status(None))["degraded"]
        return _json(json.dumps({"status": "degraded" if degraded else "ok", "degraded": list(degraded)}).encode())

    async def readyz(request: Request) -> Response:
        state = await desktop.status(request.scope.get("memex.caller"))
        return _json(json.dumps(state).encode(), 200 if state["ready"] else 503)

    async def metrics(request: Request) -> Response:
        page = await anyio.to_thread.run_sync(desktop.page, request.scope["memex.caller"], abandon_on_cancel=True)
        return Response(page, media_type=CONTENT_TYPE)

    return [
        *(
            Route(served.path, _endpoint(desktop, OPERATIONS[served.operation], served.place), methods=[served.method])
            for served in ROUTES
        ),
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/openapi.json", openapi_json, methods=["GET"]),
    ]


def _endpoint(desktop: Desktop, operation: Operation, place: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        arguments: dict[str, Any] | bytes
        if place == "body":
            arguments = await request.body()
        else:
            pairs = [*request.query_params.multi_items(), *request.path_params.items()]
            arguments = dict(pairs)
            if len(arguments) < len(pairs):
                raise InvalidArgument("a parameter is given more than once")
        _, text = payload(await desktop.call(operation, request.scope["memex.caller"], arguments))
        return _json(text.encode())

    return endpoint


def _json(data: bytes, code: int = 200) -> Response:
    return Response(data, code, media_type="application/json")


async def refused(_: Request, error: Exception) -> Response:
    """An expected failure."""
    assert isinstance(error, MemexError)
    response = _json(body(error), status(error))
    if "retry_after" in error.details:
        response.headers["retry-after"] = str(math.ceil(error.details["retry_after"]))
    return response


async def unserved(request: Request, error: Exception) -> Response:
    """No such route, or not with this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        shown: MemexError = NotFound("no such route; GET /openapi.json lists them")
    else:
        shown = InvalidArgument(f"{request.method} is not served here")
    response = _json(body(shown), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def crashed(_: Request, __: Exception) -> Response:
    """A bug: the log has the traceback, the caller learns only that it was ours."""
    return _json(body(Unavailable("an unexpected error; the daemon's log has the details", retryable=False)), 500)


def openapi(public_url: str, *, version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 description, made from the schemas that check the requests."""
    error = {
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
    paths: dict[str, dict[str, Any]] = {}
    for served in ROUTES:
        paths.setdefault(served.path, {})[served.method.lower()] = _described(served, OPERATIONS[served.operation])
    for path, what in (("/healthz", "Whether the daemon is well"), ("/readyz", "What is indexed and what is pending")):
        answer = {"description": what, "content": {"application/json": {"schema": {"type": "object"}}}}
        responses = {"200": answer} | ({"503": answer} if path == "/readyz" else {})
        paths[path] = {
            "get": {"operationId": path[1:], "summary": what, "security": [{}, {"key": []}], "responses": responses}
        }
    page = {"description": "Numbers", "content": {"text/plain": {"schema": {"type": "string"}}}}
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "The daemon in numbers, for Prometheus; takes the scope admin",
            "responses": {"200": page, "default": {"$ref": "#/components/responses/Error"}},
        }
    }
    paths[webhook.PATH] = webhook.described()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memex",
            "version": version,
            "description": "Capture into an Obsidian vault's inbox, and search it.",
        },
        "servers": [{"url": public_url or "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": error},
            "responses": {
                "Error": {
                    "description": "Why not",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
        },
    }


def _described(served: Served, operation: Operation) -> dict[str, Any]:
    given = schema(operation.given)
    workspace = {"name": "X-Memory-Workspace", "in": "header", "required": False, "schema": {"type": "string"}}
    parameters: list[dict[str, Any]] = [workspace]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.title,
        "description": operation.description,
    }
    if served.place == "body":
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": given}}}
    else:
        parameters += [
            {"name": name, "in": served.place, "required": served.place == "path", "schema": of}
            for name, of in given["properties"].items()
        ]
    answer = {"application/json": {"schema": schema(operation.returned, output=True)}}
    described["parameters"] = parameters
    described["responses"] = {
        "200": {"description": operation.title, "content": answer},
        "default": {"$ref": "#/components/responses/Error"},
    }
    return described
