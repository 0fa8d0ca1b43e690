"""Define the REST routes: operations for clients that are not agents, and reports on the daemon's health."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Collection, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import anyio.to_thread
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from index.errors import InvalidArgument, MemexError, NotFound, Unavailable
from mcp_server.http.metrics_page import CONTENT_TYPE
from mcp_server.http.request_log import CLOSED
from mcp_server.operations.operation import OperationRunner
from mcp_server.operations.wire_format import compact_schema, encode_payload, error_body, http_status
from mcp_server.rest import context_route, openapi, upload_form
from mcp_server.rest.openapi import RouteOperation
from mcp_server.rest.upload_form import Endpoint
from mcp_server.tools import kb, thoughts

log = logging.getLogger(__name__)

T = TypeVar("T")

ANY: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
OPERATIONS: Final = {
    operation.name: operation
    for operation in (*thoughts.OPERATIONS, context_route.OPERATION, *kb.OPERATIONS, *kb.ROUTED)
}
ROUTES: Final = (
    RouteOperation("POST", "/capture", OPERATIONS["capture_thought"], "body"),
    RouteOperation("POST", "/search", OPERATIONS["semantic_search"], "body"),
    RouteOperation("GET", "/thought/{id}", OPERATIONS["get_thought"], "query"),
    RouteOperation("DELETE", "/thought/{id}", OPERATIONS["delete_thought"], "query"),
    RouteOperation("GET", "/thoughts", OPERATIONS["list_recent"], "query"),
    RouteOperation("GET", "/context", context_route.OPERATION, "query"),
    RouteOperation("POST", "/api/v1/search", OPERATIONS["kb_search"], "body"),
    RouteOperation("POST", "/api/v1/jobs", OPERATIONS["kb_addnote"], "body", 202),
    RouteOperation("GET", "/api/v1/jobs", OPERATIONS["list_jobs"], "query"),
    RouteOperation("GET", "/api/v1/jobs/{id}", OPERATIONS["get_job"], "query"),
    RouteOperation("GET", "/api/v1/documents", OPERATIONS["list_documents"], "query"),
    RouteOperation("GET", "/api/v1/documents/{id}", OPERATIONS["get_document"], "query"),
    RouteOperation("PUT", "/api/v1/documents/{id}/tags", OPERATIONS["set_document_tags"], "body"),
    RouteOperation("PATCH", "/api/v1/notes/{id}", OPERATIONS["kb_update_note"], "body"),
    RouteOperation("GET", "/api/v1/status", OPERATIONS["kb_status"], "query"),
)


def rest_routes(runner: OperationRunner, *, version: str) -> list[BaseRoute]:
    """Return all routes of REST."""
    settings = runner.settings
    known = settings.kb.all_collections
    description = json.dumps(
        openapi.build_document(ROUTES, settings.server.public_url, collections=known, version=version)
    ).encode()

    async def openapi_json(_: Request) -> Response:
        return _json_response(description)

    async def healthz(_: Request) -> Response:
        degraded = (await runner.status(None))["degraded"]
        return _json_response(
            json.dumps({"status": "degraded" if degraded else "ok", "degraded": list(degraded)}).encode()
        )

    async def readyz(request: Request) -> Response:
        state = await runner.status(request.scope.get("memex.caller"))
        return _json_response(json.dumps(state).encode(), 200 if state["ready"] else 503)

    async def metrics(request: Request) -> Response:
        page = await anyio.to_thread.run_sync(
            runner.metrics_page, request.scope["memex.caller"], abandon_on_cancel=True
        )
        return Response(page, media_type=CONTENT_TYPE)

    paths: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _make_endpoint(runner, route)
    jobs = paths[upload_form.PATH]
    jobs["POST"] = upload_form.form_or_json(runner, jobs["POST"])
    return [
        *(Route(path, _dispatch_by_method(endpoints), methods=[*endpoints]) for path, endpoints in paths.items()),
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/openapi.json", openapi_json, methods=["GET"]),
    ]


def allowed_methods(routes: Collection[BaseRoute], path: str) -> Collection[str]:
    """Return the methods that `path` serves; for an unknown path, every method."""
    match = next((route for route in routes if isinstance(route, Route) and route.path_regex.match(path)), None)
    return ANY if match is None or not match.methods else match.methods


def _dispatch_by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """Make one endpoint for all methods of a path, so that the answer to a wrong method can list all of them."""
    if len(endpoints) == 1:
        return next(iter(endpoints.values()))

    async def endpoint(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return endpoint


def _make_endpoint(runner: OperationRunner, route: RouteOperation) -> Endpoint:
    properties = compact_schema(route.operation.given)["properties"]
    lists = {name for name, of in properties.items() if of.get("type") == "array"}

    async def endpoint(request: Request) -> Response:
        arguments: Mapping[str, Any] | bytes
        if route.place == "query":
            arguments = _query_arguments(request, lists)
        elif request.path_params:
            arguments = _merge_arguments(await request.body(), request.path_params)
        else:
            arguments = await request.body()
        begun = asyncio.Event()
        work = runner.call(route.operation, request.scope["memex.caller"], arguments, on_start=begun.set)
        answer = await _unless_left(request, work, begun)
        if answer is None:
            return Response(status_code=CLOSED)  # only the log uses it
        _, text = encode_payload(answer)
        return _json_response(text.encode(), route.code)

    return endpoint


async def _unless_left(request: Request, work: Coroutine[Any, Any, T], begun: asyncio.Event) -> T | None:
    """Return the result of `work`; None if the client disconnects before the work has `begun`, which removes it from the queue.

    Work that has begun keeps its place to the end, so a client that disconnects again and again leaves no pile of threads."""
    asking = asyncio.ensure_future(work)

    async def hear_the_end() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        if not begun.is_set():
            asking.cancel()

    hearing = asyncio.ensure_future(hear_the_end())
    try:
        return await asking
    except asyncio.CancelledError:
        if hearing.done() and not hearing.cancelled():
            return None
        raise
    finally:
        hearing.cancel()


def _query_arguments(request: Request, lists: Collection[str]) -> dict[str, Any]:
    """Return the arguments in path and query; a list may be given by repeating its parameter."""
    arguments: dict[str, Any] = {}
    for name, value in (*request.path_params.items(), *request.query_params.multi_items()):
        if name in lists:
            arguments.setdefault(name, []).append(value)
        elif name in arguments:
            raise InvalidArgument("a parameter is given more than once")
        else:
            arguments[name] = value
    return arguments


def _merge_arguments(sent: bytes, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of body and path together; none may be in both."""
    try:
        arguments = from_json(sent, allow_inf_nan=False)
    except ValueError:
        raise InvalidArgument("body: not valid JSON") from None
    if not isinstance(arguments, dict):
        raise InvalidArgument("body: must be an object")
    for name in named:
        if name in arguments:
            raise InvalidArgument(f"{name}: unknown argument")
    return {**arguments, **named}


def _json_response(data: bytes, code: int = 200) -> Response:
    return Response(data, code, media_type="application/json")


async def answer_error(_: Request, error: Exception) -> Response:
    """Answer an expected failure."""
    assert isinstance(error, MemexError)
    response = _json_response(error_body(error), http_status(error))
    if "retry_after" in error.details:
        response.headers["retry-after"] = str(math.ceil(error.details["retry_after"]))
    return response


async def answer_no_route(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown route or method."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        shown: MemexError = NotFound("no such route; GET /openapi.json lists them")
    else:
        shown = InvalidArgument(f"{request.method} is not served here")
    response = _json_response(error_body(shown), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def answer_crash(_: Request, __: Exception) -> Response:
    """Answer a bug: the log has the traceback, and the caller learns only that Memex failed."""
    return _json_response(
        error_body(Unavailable("an unexpected error; the daemon's log has the details", retryable=False)), 500
    )
