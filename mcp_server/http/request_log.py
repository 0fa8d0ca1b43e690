"""Log each request: its id, its trace span, one line in the log, and its counts.

Law: the log contains names that Memex chose, codes, times, the key's public id and the client's address, but no path,
query or body of the request."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.errors import MemexError, Unavailable
from index.tracing import span
from mcp_server.http.client_address import Network, find_client
from mcp_server.http.metrics_page import OTHER, Metrics
from syncd.notes.secret_patterns import redact_values
from syncd.telemetry.log import bind_fields

if TYPE_CHECKING:
    from syncd.telemetry.request_traces import Traces

log = logging.getLogger(__name__)

ID: Final = b"x-request-id"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})  # frequent requests, logged at level DEBUG
CLOSED: Final = 499  # the client disconnected before the answer

REQUEST: ContextVar[dict[str, Any] | None] = ContextVar("request", default=None)  # the log's fields so far


def log_requests(
    app: ASGIApp, metrics: Metrics, traces: Traces | None = None, proxies: Sequence[Network] = ()
) -> ASGIApp:
    """Wrap `app` so that it logs each request; `proxies` are trusted to name the client's address."""

    async def log_request(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        known: dict[str, Any] = {"request": secrets.token_hex(8), "address": find_client(scope, proxies)}
        begun = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                known["status"] = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (ID, known["request"].encode())]}
            await send(message)

        with ExitStack() as stack:
            stack.callback(_log_answer, scope, known, metrics, begun)
            stack.enter_context(bind_fields(known))
            reset = REQUEST.set(known)
            stack.callback(REQUEST.reset, reset)
            if traces is not None:
                stack.enter_context(_trace_request(traces, scope, known))
            await app(scope, receive, send_with_id)

    return log_request


def request_id() -> str:
    """Return the id of the current request; empty outside of a request."""
    return str((REQUEST.get() or {}).get("request", ""))


def client_address() -> str:
    """Return the client's address of the current request; empty outside of a request."""
    return str((REQUEST.get() or {}).get("address", ""))


def describe_error(error: MemexError) -> dict[str, Any]:
    """Return the error for the caller, without secrets. A failure of Memex includes the request's id, which finds it in the log.

    An error of the caller has no id, so identical mistakes get identical answers and differences reveal nothing."""
    shown = redact_values(error.as_dict())
    if isinstance(error, Unavailable) and (current_id := request_id()):
        shown["details"] = {**shown["details"], "request_id": current_id}
    return shown


@contextmanager
def log_call(tool: str, metrics: Metrics | None) -> Iterator[dict[str, Any]]:
    """Trace, count and log one tool call. The block sets `code` and `degraded` in the yielded outcome."""
    outcome: dict[str, Any] = {"code": "UNAVAILABLE", "degraded": False}
    begun = time.perf_counter()
    with span(f"tool {tool}", tool=tool) as timed:
        try:
            yield outcome
        except asyncio.CancelledError:  # the caller disconnected, or the key was revoked: no failure of the tool
            outcome["code"] = "CANCELLED"
            raise
        finally:
            seconds, code = time.perf_counter() - begun, outcome["code"]
            timed.note(code=code, **({} if code == "OK" else {"error": code}))
            if metrics is not None:
                metrics.count_call(tool, code=code, seconds=seconds, degraded=outcome["degraded"])
            if (known := REQUEST.get()) is not None:
                known |= {"tool": tool, "code": code}


@contextmanager
def _trace_request(traces: Traces, scope: Scope, known: dict[str, Any]) -> Iterator[None]:
    carried = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with traces.trace_request(carried) as timed:
        try:
            yield
        finally:
            route, status = _route_template(scope), known.get("status", CLOSED)
            timed.note(
                name=f"{_method_label(scope)} {route}",
                **{
                    "http.request.method": _method_label(scope),
                    "http.route": route,
                    "http.response.status_code": status,
                },
                request=known["request"],
                **({"error": str(status)} if status >= 500 else {}),
            )


def _log_answer(scope: Scope, known: dict[str, Any], metrics: Metrics, begun: float) -> None:
    seconds = time.perf_counter() - begun
    caller = scope.get("memex.caller")
    refused = scope.get("memex.refused")
    route = _route_template(scope)
    known |= {"method": _method_label(scope), "route": route, "ms": round(seconds * 1000, 1)}
    known["key"] = caller.key.id if caller else None
    known.setdefault("status", CLOSED)
    if refused:
        known["code"] = refused
    metrics.count_request(
        method=known["method"], route=route, status=known["status"], seconds=seconds, refused=bool(refused)
    )
    log.log(logging.DEBUG if route in QUIET and not refused else logging.INFO, "request", extra={"fields": known})


def _method_label(scope: Scope) -> str:
    return str(scope["method"]) if scope["method"] in METHODS else OTHER


def _route_template(scope: Scope) -> str:
    """Return the template of the matching route."""
    return str(getattr(scope.get("route"), "path", "") or OTHER)
