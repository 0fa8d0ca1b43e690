"""Build the one ASGI application, and run the server: MCP endpoints, SSE for older clients and REST behind one guard.

One MCP endpoint lists the tools of all families, one lists the few that most sessions need, and each family has its own endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from index.errors import MemexError, Unavailable
from index.timings import now_ms
from mcp_server.guard.guard import Guard
from mcp_server.guard.token_bucket import TokenBuckets
from mcp_server.http.allowed_hosts import allowed_hosts, allowed_origins
from mcp_server.http.client_address import parse_proxies
from mcp_server.http.head_timeout import with_head_timeout
from mcp_server.http.metrics_page import Metrics
from mcp_server.http.request_log import log_requests
from mcp_server.operations.operation import Operation, OperationRunner
from mcp_server.protocol.key_sessions import KeySessions
from mcp_server.protocol.mcp_protocol import Kind, VaultMCP
from mcp_server.protocol.request_ids import UniqueRequestIds
from mcp_server.protocol.sse_connections import SseConnections
from mcp_server.protocol.subscriptions import Updates
from mcp_server.rest import git_webhook, upload_form
from mcp_server.rest import routes as rest
from mcp_server.tools.families import CORE_OPERATIONS, FAMILIES, OPERATIONS
from syncd.settings.server_addresses import bracket_ipv6, local_url
from syncd.settings.settings import ServerSettings, Settings
from syncd.version import installed

if TYPE_CHECKING:
    from mcp_server.guard.cloudflare_access import CloudflareAccess
    from syncd.telemetry.request_traces import Traces
    from syncd.workspaces.agent_access import AgentAccess

log = logging.getLogger(__name__)

FLUSH_SECONDS = 60.0
END_S = 0.3  # before the end of the grace, reads that still run get the reason as their answer


def build_app(
    agent_access: AgentAccess,
    settings: Settings,
    *,
    port: int | None = None,
    metrics: Metrics | None = None,
    traces: Traces | None = None,
    clock: Callable[[], int] = now_ms,
) -> Guard:
    """Build the guarded application for the workspaces of `agent_access`; `port` is the actual port if the settings leave it open."""
    _quiet_logs()
    version, server_settings = installed(), settings.server
    metrics = metrics or Metrics(agent_access.samples, version=version)
    runner = OperationRunner(agent_access, settings, metrics=metrics, traces=traces)
    allowed, welcome = allowed_hosts(server_settings, port or server_settings.port), allowed_origins(server_settings)
    security = TransportSecuritySettings(allowed_hosts=sorted(allowed), allowed_origins=sorted(welcome))
    updates = Updates(runner)
    servers = _make_mcp_servers(runner, updates, version)
    routes = [
        *_mcp_routes(servers, agent_access, server_settings, security),
        *rest.rest_routes(runner, version=version),
        git_webhook.make_route(
            agent_access.push_webhook, clock, TokenBuckets(settings.limits.rate, settings.limits.burst).take
        ),
    ]
    guard: Guard = Guard(
        _make_application(routes, lambda _: _lifespan(agent_access, servers.values(), updates, guard)),
        keys=agent_access.keys,
        push_webhook=agent_access.push_webhook,
        settings=server_settings,
        limits=settings.limits,
        bodies=(upload_form.body_limit(settings.kb.max_file), git_webhook.BODY_LIMIT),
        access=_make_cloudflare_access(agent_access, settings, clock),
        hosts=allowed,
        origins=welcome,
        methods=partial(rest.allowed_methods, routes),
        clock=clock,
    )
    guard.on_hang_up = updates.close
    return guard


def _make_mcp_servers(runner: OperationRunner, updates: Updates, version: str) -> dict[str, VaultMCP]:
    """Make the MCP server of each path: one for all families, one for `core`, and one for each family."""
    listed: dict[str, tuple[Kind, Sequence[Operation]]] = {
        "/mcp": ("all", OPERATIONS),
        "/mcp/core": ("core", CORE_OPERATIONS),
    }
    listed |= {f"/mcp/{name}": ("family", family) for name, family in FAMILIES.items()}
    return {
        path: VaultMCP(kind, operations, runner, updates, version=version)
        for path, (kind, operations) in listed.items()
    }


def _mcp_routes(
    servers: Mapping[str, VaultMCP],
    agent_access: AgentAccess,
    settings: ServerSettings,
    security: TransportSecuritySettings,
) -> Iterator[BaseRoute]:
    """Yield routes: streamable HTTP for every server, and SSE for the server with all operations."""
    sessions = KeySessions()
    for path, server in servers.items():
        routes = server.streamable_http_app(
            streamable_http_path=path,
            transport_security=security,
            max_sessions=settings.sessions,
            max_request_body_size=settings.max_body,
        ).routes
        for route in routes:
            if isinstance(route, Route):
                route.app = sessions.limit(UniqueRequestIds(route.app))
            yield route
    sse = servers["/mcp"].sse_app(
        sse_path="/sse",
        message_path="/sse/messages/",
        transport_security=security,
        max_request_body_size=settings.max_body,
    )
    yield from SseConnections(sse.routes, agent_access).routes()


def _make_application(routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> Starlette:
    """Make the application behind the guard: the routes, and the handler of each kind of error."""
    application = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            MemexError: rest.answer_error,
            HTTPException: rest.answer_no_route,
            Exception: rest.answer_crash,
        },
    )
    application.router.redirect_slashes = False
    return application


@contextlib.asynccontextmanager
async def _lifespan(
    agent_access: AgentAccess, servers: Iterable[VaultMCP], updates: Updates, guard: Guard
) -> AsyncIterator[None]:
    """Run what the application needs while it serves: MCP sessions, updates, the guard's watch, and the flush of the keys' times."""
    async with contextlib.AsyncExitStack() as stack:
        for server in servers:
            # The lifespan of an included route never runs by itself; without this, the first request fails.
            await stack.enter_async_context(server.session_manager.run())
        await stack.enter_async_context(updates.running())
        tasks = [asyncio.create_task(guard.watch_keys()), asyncio.create_task(_flush_keys(agent_access))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(agent_access.keys.flush)


def _make_cloudflare_access(
    agent_access: AgentAccess, settings: Settings, clock: Callable[[], int]
) -> CloudflareAccess | None:
    """Make the verifier of Cloudflare Access, if the settings enable it."""
    if not settings.access.is_enabled:
        return None
    from mcp_server.guard.cloudflare_access import CloudflareAccess  # noqa: PLC0415 - its cryptography takes long to load, and few need it

    return CloudflareAccess(settings.access, agent_access.keys, clock=clock)


def serve(
    agent_access: AgentAccess,
    settings: Settings,
    *,
    on_bound: Callable[[str], None],
    stop: threading.Event,
    traces: Traces | None = None,
    clock: Callable[[], int] = now_ms,
    any_port: bool = False,
) -> None:
    """Serve until `stop` is set, and block until everything is closed.

    `on_bound` gets the address when the server answers requests. `any_port`: use a free port if the chosen one is taken. Raises Unavailable if the address can't be used."""
    server_settings = settings.server
    with contextlib.closing(bind_socket(server_settings, any_port=any_port)) as listener:
        port = int(listener.getsockname()[1])
        proxies = parse_proxies(server_settings.trusted_proxies)
        metrics = Metrics(agent_access.samples, version=installed())
        guard = build_app(agent_access, settings, port=port, metrics=metrics, traces=traces, clock=clock)
        config = uvicorn.Config(
            log_requests(guard, metrics, traces, proxies),
            http=with_head_timeout(server_settings.head_s),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,  # the guard writes it: uvicorn would refresh its own ten times a second
            proxy_headers=False,
            h11_max_incomplete_event_size=16_384,
            limit_concurrency=server_settings.connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(server_settings.grace_s)),
        )
        url = local_url(server_settings.host, port)
        server = _Server(config, guard, stop, metrics, lambda: on_bound(url))
        asyncio.run(server.serve(sockets=[listener]))


class _Server(uvicorn.Server):
    """Runs uvicorn until an event, instead of polling for a signal: an idle daemon must not wake ten times a second."""

    def __init__(
        self,
        config: uvicorn.Config,
        guard: Guard,
        stop: threading.Event,
        metrics: Metrics,
        on_bound: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._guard, self._metrics = guard, metrics
        self._stop = stop
        self._on_bound = on_bound

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: uvicorn would raise each signal again at the end."""
        yield

    async def main_loop(self) -> None:
        """Wait only for the stop event."""
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait_for_stop() -> None:
            self._stop.wait()
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                loop.call_soon_threadsafe(stopped.set)

        threading.Thread(target=wait_for_stop, name="server-stop", daemon=True).start()
        self._metrics.mark_serving()
        self._on_bound()
        await stopped.wait()
        self.should_exit = True
        self._guard.close_streams()
        loop.call_later((self.config.timeout_graceful_shutdown or 0) - END_S, self._guard.close_reads)


async def _flush_keys(agent_access: AgentAccess) -> None:
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        try:
            await asyncio.to_thread(agent_access.keys.flush)
        except Unavailable as error:
            log.warning("could not write the keys' times of last use: %s", error.message)


def bind_socket(settings: ServerSettings, *, any_port: bool) -> socket.socket:
    """Bind the listening address, or with `any_port` a free port if the chosen one is taken.

    The check is the binding itself: a port that was free a moment before may be another daemon's by now."""
    try:
        return _listen(settings)
    except Unavailable as error:
        if not (any_port and error.retryable):
            raise
        return _listen(replace(settings, port=0))


def _listen(settings: ServerSettings) -> socket.socket:
    """Listen on the address of the settings; an error names the setting to change."""
    where = f"{bracket_ipv6(settings.host)}:{settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Unavailable(f"{where} is not an address; set server.host ({error.strerror})", retryable=False) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        match error.errno:
            case errno.EADDRINUSE:
                way_out = "is taken by another process; `memex serve --any-port` picks a free port, or set server.port"
            case errno.EACCES:
                way_out = "is not allowed for this user; set server.port to a port above 1023"
            case _:
                way_out = f"can't be opened for listening ({error.strerror}); set server.host"
        raise Unavailable(f"{where} {way_out}", retryable=error.errno == errno.EADDRINUSE) from error
    return listener


def _quiet_logs() -> None:
    """Install a plain root handler before the first MCP server is made.

    The SDK would install a handler that renders every traceback in color, and 200 aborted uploads would then stop the
    event loop for a minute.
    """
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
