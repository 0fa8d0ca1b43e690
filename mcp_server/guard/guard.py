"""The guard checks each request before any route runs: its host, its credential, its rate, its size and its pace.

Law: exact Host and Origin first, then the credential, then (and only then) the body; no request reaches a route
without a key, except the two that report the daemon's health and the one whose deliveries are signed. The guard
reads every body ahead, within its limits of size and time, except a body that brings a file: its size and its pace
are limited as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthCredentials
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.errors import InvalidArgument, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable
from mcp_server.guard.admission import Admission, ClientLeft, Place, TooBusy
from mcp_server.guard.token_bucket import TokenBuckets
from mcp_server.http.body_limits import BodyLimit, limit_body, receive_again
from mcp_server.http.client_address import find_sender, parse_proxies
from mcp_server.http.refusals import Refusal, refuse, with_headers
from mcp_server.operations.caller import CALLER, TOO_FAST, Caller, compose_name
from mcp_server.rest import git_webhook
from syncd.remote.push_webhook import PushWebhook
from syncd.settings.access import LimitsSettings
from syncd.settings.settings import ServerSettings
from syncd.workspaces.api_keys import ApiKey, ApiKeys

if TYPE_CHECKING:
    from mcp_server.guard.cloudflare_access import CloudflareAccess

# Answered without a key, but not with an invalid key, and at any rate: an answer is computed at most once a second, so to refuse
# a request would save nothing, and a container whose health check is refused is restarted.
OPEN: Final = frozenset({"/healthz", "/readyz"})
WRITING: Final = frozenset({"POST", "PUT", "PATCH"})  # methods whose body must be of a known kind
ASSERTION: Final = b"cf-access-jwt-assertion"
ONCE: Final = frozenset(
    {b"host", b"authorization", b"origin", b"content-length", b"content-type", b"sec-fetch-site", b"mcp-session-id"}
    | {ASSERTION, b"x-memory-workspace", b"x-mcp-toolsets", b"x-mcp-readonly", b"x-mcp-tool-names"}
    | git_webhook.ONCE
)
HEAD_BYTES: Final = 16 * 1024  # uvicorn's own limit counts only what is still incomplete
# Calls of tools, a second and at once, that can't wait and get the refusal as a result; further calls get status 429.
OVERDRAFT_RATE, OVERDRAFT_BURST = 5.0, 20
# Limits of such a call's body, in bytes and seconds: the call has no place, and its answer needs only its id.
OVERDRAFT_BYTES, OVERDRAFT_SECONDS = 64 * 1024, 2.0
DRAINS: Final = 8  # refused requests of one key, or of one address without a key, that may continue sending at once
WATCH_SECONDS: Final = 2.0
KEY_ENDED: Final = "the key was revoked or has expired while the request was running; a write may have completed"
STOPPING: Final = "the daemon is stopping; try again in a moment"
UNREAD_SECONDS: Final = 5.0  # wait time for a caller while the ledger of keys can't be read


@dataclass(slots=True)
class _Request:
    """Holds a request and the results of its checks."""

    scope: Scope
    receive: Receive
    headers: dict[bytes, bytes]
    repeated: str  # a header that must not be repeated but is; "" = none
    key: ApiKey | None = None
    late: float = 0.0  # seconds by which it is too early for the key's rate
    place: Place = field(default_factory=Place)  # held until it is answered


_Check: TypeAlias = Callable[[_Request], Awaitable[Refusal | None]]


class Guard:
    """Wraps the whole application, as pure ASGI middleware."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        push_webhook: PushWebhook,
        settings: ServerSettings,
        limits: LimitsSettings,
        bodies: Sequence[BodyLimit],
        access: CloudflareAccess | None,
        hosts: Collection[str],
        origins: Collection[str],
        methods: Callable[[str], Collection[str]],
        clock: Callable[[], int],
    ) -> None:
        self._app = AuthContextMiddleware(app)
        self._keys, self._push_webhook = keys, push_webhook
        self._settings, self._bodies, self._access = settings, bodies, access
        self._rates = TokenBuckets(limits.rate, limits.burst)
        self._unverified = TokenBuckets(limits.rate, limits.burst)  # webhook deliveries with unchecked signatures
        self._admission = Admission(limits, self._rates)
        self._overdrafts = TokenBuckets(OVERDRAFT_RATE, OVERDRAFT_BURST)
        self._failures = TokenBuckets(limits.failures / 60, limits.failures)
        self._hosts = frozenset(host.encode() for host in hosts)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._proxies, self._methods, self._clock = parse_proxies(settings.trusted_proxies), methods, clock
        self._checks: tuple[_Check, ...] = (  # in this order: an early refusal costs little and reveals little
            _check_head,
            self._check_origin,
            self._check_credential,
            self._check_rate,
            self._check_announced_body,
            self._check_body,
        )
        self._drains: Counter[str] = Counter()  # id of a key, or address -> its refusals that still read a body
        self._busy = asyncio.Event()
        self.on_hang_up: Callable[[], object] = lambda: None  # ends the streams that listen by POST, cleanly
        self._under_way: dict[asyncio.Task[None], tuple[ApiKey, bool, bool]] = {}  # task -> key, is a GET, only listens
        self._hung_up: dict[asyncio.Task[None], Refusal] = {}  # requests that the guard has ended, with the refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a web socket: uvicorn closes a connection that is not accepted
        request = _Request(scope, receive, *_read_headers(scope))
        try:
            for check in self._checks:
                if (refusal := await check(request)) is not None:
                    break
            else:
                caller = None if request.key is None else _make_caller(request)
                answer = with_headers(send, keyed=caller is not None)
                refusal = await self._forward(scope, request.receive, answer, caller)
        except ClientLeft:
            return  # the client has disconnected
        finally:
            request.place.close()
        if refusal is not None:
            scope["memex.refused"] = refusal.code  # for the line in the request log
            await self._refuse(request, refusal, send)

    async def watch_keys(self) -> None:
        """End the streams of keys that were revoked or have expired; runs as long as the server does."""
        while True:
            await self._busy.wait()
            await asyncio.sleep(WATCH_SECONDS)
            now = self._clock()
            if not self._under_way:
                self._busy.clear()
            for task, (key, _, _) in list(self._under_way.items()):
                with contextlib.suppress(
                    Unavailable
                ):  # the ledger can't be read and has logged this; the next round tries again
                    if not self._keys.is_live(key, now=now):
                        self._hang_up(task, Refusal(401, Unauthenticated.code, KEY_ENDED))

    def close_streams(self) -> None:
        """End all open streams: a graceful stop waits for running work, not for listeners."""
        self.on_hang_up()
        for task, (_, _, listens) in list(self._under_way.items()):
            if listens:
                self._hang_up(task, Refusal(503, Unavailable.code, STOPPING, UNREAD_SECONDS))

    def close_reads(self) -> None:
        """End the reads that are still under way: the server is about to cancel them, which would be an error without a reason."""
        for task, (_, is_read, _) in list(self._under_way.items()):
            if is_read:
                self._hang_up(task, Refusal(503, Unavailable.code, STOPPING, UNREAD_SECONDS))

    def _hang_up(self, task: asyncio.Task[None], refusal: Refusal) -> None:
        """End a request: a stream ends, and a request without an answer gets this refusal."""
        self._hung_up.setdefault(task, refusal)
        task.cancel()

    async def _refuse(self, request: _Request, refusal: Refusal, send: Send) -> None:
        """Refuse a request that has given back its place; a separate limit bounds the refused requests that continue sending."""
        sender = request.key.id if request.key else find_sender(request.scope, self._proxies)
        self._drains[sender] += 1
        try:
            drain = self._drains[sender] <= DRAINS
            await refuse(refusal, request.receive, send, keyed=request.key is not None, drain=drain)
        finally:
            self._drains[sender] -= 1
            if not self._drains[sender]:
                del self._drains[sender]

    async def _check_credential(self, request: _Request) -> Refusal | None:
        try:
            request.key, refusal = await self._authenticate(request.scope, request.headers)
        except Unavailable as error:  # the ledger can't be read, so no key can be checked and nobody is let in
            return Refusal(503, error.code, error.message, UNREAD_SECONDS)
        return refusal

    async def _check_rate(self, request: _Request) -> Refusal | None:
        if request.key is None or request.scope["path"] in OPEN:
            return None
        scope = request.scope
        is_stream = scope["method"] == "GET" and _surface_of(scope["path"]) == "mcp"
        try:
            request.place, request.receive = await self._admission.admit(
                request.key.id, request.receive, is_stream=is_stream
            )
        except TooBusy as busy:
            request.receive = busy.receive
            # A refused tool call gets a tool result, so that the model reads it, up to a rate that prevents abuse.
            is_tool = scope["method"] == "POST" and scope["path"].startswith("/mcp")
            if not is_tool or self._overdrafts.take(request.key.id, time.monotonic()):
                return Refusal(429, ResourceExhausted.code, busy.message, busy.wait)
            request.late = busy.wait
        return None

    async def _check_announced_body(self, request: _Request) -> Refusal | None:
        if request.scope["method"] not in (*WRITING, "DELETE"):
            return None
        refusal = self._refuse_announced_body(request.scope, request.headers)
        if refusal is None and request.late and int(request.headers.get(b"content-length", b"0")) > OVERDRAFT_BYTES:
            return _too_fast_refusal(request.late)
        return refusal

    async def _check_body(self, request: _Request) -> Refusal | None:
        """Read the body ahead; the route reads a body with a file, at a minimum pace."""
        scope, headers = request.scope, request.headers
        if self._is_streamed(scope, headers):
            request.receive = limit_body(
                request.receive, largest=self._body_size_limit(scope, headers), seconds=self._settings.body_s
            )
        elif not headers.keys().isdisjoint((b"content-length", b"transfer-encoding")):
            largest, seconds = self._body_size_limit(scope, headers), self._settings.body_s
            if request.late:
                largest, seconds = min(largest, OVERDRAFT_BYTES), min(seconds, OVERDRAFT_SECONDS)
            received = await _read_body_ahead(request.receive, largest, seconds)
            if isinstance(received, Refusal):
                return _too_fast_refusal(request.late) if request.late else received
            request.receive = received
        return None

    async def _forward(self, scope: Scope, receive: Receive, send: Send, caller: Caller | None) -> Refusal | None:
        """Forward the request; return a refusal if the guard ended it before its answer began."""
        if caller is None:
            await self._app(scope, receive, send)
            return None
        key = caller.key
        scopes = sorted(key.scopes)
        # The SDK's own user object: sessions and request state are bound to it.
        token = AccessToken(token="-", client_id=key.id, subject=key.id, scopes=scopes, claims={"iss": "memex"})  # noqa: S106 - no secret
        scope["user"], scope["auth"] = AuthenticatedUser(token), AuthCredentials(scopes)
        scope["memex.caller"] = caller
        started = False

        async def send_and_note_start(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        task = asyncio.current_task()
        assert task is not None
        is_read = scope["method"] == "GET"
        listens = is_read and _surface_of(scope["path"]) == "mcp"  # a read of REST is finished
        self._under_way[task] = (key, is_read, listens)
        self._busy.set()
        reset = CALLER.set(caller)
        try:
            await self._app(scope, receive, send_and_note_start)
        except asyncio.CancelledError:
            refusal = self._hung_up.get(task)
            if not started and refusal is None:
                raise
            task.uncancel()
            if not started:
                return refusal
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            CALLER.reset(reset)
            del self._under_way[task]
            self._hung_up.pop(task, None)
        return None

    async def _check_origin(self, request: _Request) -> Refusal | None:
        """Refuse requests that a web page tricked a browser into, before any other check."""
        scope, headers = request.scope, request.headers
        if headers.get(b"host", b"").lower() not in self._hosts:
            message = (
                "the daemon does not answer to this Host; use its own address, or list the name in server.allowed_hosts"
            )
            return Refusal(421, PermissionDenied.code, message)
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in self._origins:
            message = (
                "the daemon refuses requests from web pages of this Origin; list the Origin in server.allowed_origins"
            )
            return Refusal(403, PermissionDenied.code, message)
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin") and origin is None:
            return Refusal(
                403, PermissionDenied.code, "the daemon refuses requests that another site makes in a browser"
            )
        method, served = scope["method"], self._methods(scope["path"])
        if method not in served:
            allow = ", ".join(sorted(served))
            return Refusal(405, InvalidArgument.code, f"{method[:16]} is not served here; use {allow}", allow=allow)
        return None

    async def _authenticate(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[ApiKey | None, Refusal | None]:
        """Return the key of the request, or None where none is needed. The request's own key wins over a proxy's assertion."""
        path, authorization, key = scope["path"], headers.get(b"authorization"), None
        if authorization is None and path in OPEN:
            return None, None
        if path == git_webhook.PATH:  # this route needs a signature instead of a key
            refusal, now = git_webhook.check_headers(self._push_webhook, headers), time.monotonic()
            # A body that may be signed is read for the check, at the rate of its address; the route applies the forge's own rate.
            buckets, name = (
                (self._unverified, find_sender(scope, self._proxies)) if refusal is None else (self._rates, path)
            )
            wait = buckets.take(name, now)
            return None, _too_fast_refusal(wait) if wait else refusal
        if authorization is not None:
            kind, _, secret = authorization.decode("latin-1").partition(" ")
            key = self._keys.authenticate(secret.strip(), now=self._clock()) if kind.lower() == "bearer" else None
        elif self._access is not None and ASSERTION in headers:
            try:
                key = await self._access.authenticate(headers[ASSERTION].decode("latin-1"))
            except PermissionDenied as error:
                return None, Refusal(403, error.code, error.message)
        if key is None:
            return None, self._refuse_unauthenticated(scope)
        surface = _surface_of(path)
        if path not in OPEN and surface not in key.surfaces:
            return None, Refusal(403, PermissionDenied.code, f"this key is not meant for {surface.upper()}")
        return key, None

    def _refuse_unauthenticated(self, scope: Scope) -> Refusal:
        """Refuse a request without a valid key. Only these are slowed down, so nobody can lock out a valid key behind the same address."""
        address = find_sender(scope, self._proxies)
        if wait := self._failures.take(address, time.monotonic()):
            message = "too many requests without a valid key; wait, then send a valid key"
            return Refusal(429, ResourceExhausted.code, message, wait)
        message = "a valid key is needed: send `Authorization: Bearer <key>`; `memex key create` creates one"
        return Refusal(401, Unauthenticated.code, message)

    def _refuse_announced_body(self, scope: Scope, headers: dict[bytes, bytes]) -> Refusal | None:
        """Refuse a body because of its headers."""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return Refusal(400, InvalidArgument.code, "the header Content-Length is not a number")
        if int(length[:20]) > (largest := self._body_size_limit(scope, headers)):
            return _too_large_refusal(largest)
        if self._is_streamed(scope, headers):
            return None
        if scope["method"] in WRITING and not headers.get(b"content-type", b"").lower().startswith(b"application/json"):
            kinds = [limit.content_type.decode() for limit in self._bodies if limit.path == scope["path"]]
            form = "".join(f", or a file as `{kind}`" for kind in kinds if kind)
            return Refusal(
                415, InvalidArgument.code, f"the body must be JSON: send `Content-Type: application/json`{form}"
            )
        return None

    def _body_size_limit(self, scope: Scope, headers: dict[bytes, bytes]) -> int:
        """Return the size limit of a body, in bytes."""
        limit, usual = self._route_body_limit(scope, headers), self._settings.max_body
        if limit is None:
            return usual
        return limit.largest if limit.content_type else min(usual, limit.largest)

    def _route_body_limit(self, scope: Scope, headers: dict[bytes, bytes]) -> BodyLimit | None:
        """Return the body limit of this route, if it has one."""
        request = scope["method"], scope["path"], headers.get(b"content-type", b"")
        return next((limit for limit in self._bodies if limit.covers(*request)), None)

    def _is_streamed(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Return whether the body is streamed to a route that writes it to disk."""
        limit = self._route_body_limit(scope, headers)
        return limit is not None and limit.content_type != b""


async def _read_body_ahead(receive: Receive, largest: int, seconds: float) -> Receive | Refusal:
    """Read the body within its limits of size and time; return a `receive` that returns it. Raises ClientLeft."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientLeft
                body += message.get("body", b"")
                if len(body) > largest:
                    return _too_large_refusal(largest)
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        return Refusal(408, ResourceExhausted.code, f"the body did not arrive within {seconds:g} s")
    return receive_again([{"type": "http.request", "body": bytes(body), "more_body": False}], receive)


def _too_large_refusal(largest: int) -> Refusal:
    return Refusal(413, ResourceExhausted.code, f"the body is larger than {largest} bytes")


def _too_fast_refusal(wait: float) -> Refusal:
    return Refusal(429, ResourceExhausted.code, TOO_FAST, wait)


async def _check_head(request: _Request) -> Refusal | None:
    scope = request.scope
    if request.repeated:
        return Refusal(400, InvalidArgument.code, f"the header {request.repeated} is given more than once")
    head = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(a) + len(b) for a, b in scope["headers"])
    if head > HEAD_BYTES:
        return Refusal(431, ResourceExhausted.code, f"the request's head is larger than {HEAD_BYTES} bytes")
    return None


def _read_headers(scope: Scope) -> tuple[dict[bytes, bytes], str]:
    """Return the stripped headers by lower-cased name, and the first header that is repeated but must not be."""
    headers: dict[bytes, bytes] = {}
    repeated = ""
    for name, value in scope["headers"]:
        if name in headers and name in ONCE:
            repeated = repeated or name.decode("latin-1")
        headers[name] = value.strip()
    return headers, repeated


def _surface_of(path: str) -> str:
    return "mcp" if path.startswith(("/mcp", "/sse")) else "rest"


def _make_caller(request: _Request) -> Caller:
    key, headers, scope = request.key, request.headers, request.scope
    assert key is not None
    toolsets, workspace = headers.get(b"x-mcp-toolsets"), headers.get(b"x-memory-workspace")
    names = headers.get(b"x-mcp-tool-names", b"dotted" if b"names=dotted" in scope["query_string"].split(b"&") else b"")
    return Caller(
        key=key,
        workspace=None if workspace is None else compose_name(_decode_header(workspace)),
        toolsets=None
        if toolsets is None
        else frozenset(word.strip() for word in _decode_header(toolsets).lower().split(",")),
        readonly=headers.get(b"x-mcp-readonly", b"").lower() == b"true",
        late=request.late,
        give_up_place=request.place.close,
        surface=_surface_of(scope["path"]),
        names={b"dotted": "dotted", b"safe": "safe"}.get(names),  # type: ignore[arg-type]  # both are Names
    )


def _decode_header(value: bytes) -> str:
    """Decode a header's text: names of workspaces may be in any script, and clients send them as UTF-8."""
    return value.decode("utf-8", "replace")
