"""Serve the Git webhook `POST /hooks/git`: a forge reports a push, signed with the shared secret.

Laws, tested: without a secret the route does not exist. Memex reads a body only if it has a signature of the right form, and
only at the rate of the sender's address; it does not use the content of the body. Only a signed and new delivery counts
against the rate of a forge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from index.errors import NotFound, Unauthenticated
from mcp_server.http.body_limits import BodyLimit
from mcp_server.http.refusals import Refusal
from mcp_server.operations.caller import TOO_FAST, try_again_error
from syncd.remote.push_webhook import PushWebhook, is_well_formed

PATH: Final = "/hooks/git"
BODY_LIMIT: Final = BodyLimit(PATH, 1_048_576)  # bytes of a delivery; forges limit their lists of commits to far less
SIGNATURES: Final = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature")
ONCE: Final = frozenset(name.encode() for name in SIGNATURES)
EVENTS: Final = ("x-github-event", "x-gitea-event", "x-forgejo-event")
DELIVERIES: Final = ("x-github-delivery", "x-gitea-delivery", "x-forgejo-delivery")
UNSIGNED: Final = (
    "a signature is needed: set the secret of `memex hook secret` in the forge's webhook, with JSON as its content"
)


def check_headers(push_webhook: PushWebhook, headers: Mapping[bytes, bytes]) -> Refusal | None:
    """Return the refusal of a delivery that Memex does not read, or None."""
    if not push_webhook.is_on:
        return Refusal(404, NotFound.code, "no such route; GET /openapi.json lists them")
    signatures = [headers[name] for name in ONCE if name in headers]
    if not signatures or not all(map(is_well_formed, signatures)):
        return Refusal(401, Unauthenticated.code, UNSIGNED)
    return None


def make_route(push_webhook: PushWebhook, clock: Callable[[], int], take: Callable[[str, float], float]) -> Route:
    """Make the route; `take` takes a token from a bucket and returns the seconds until one is available."""

    async def receive_delivery(request: Request) -> Response:
        headers, body = request.headers, await request.body()
        signatures = [headers[name].encode("latin-1") for name in SIGNATURES if name in headers]
        signed = await anyio.to_thread.run_sync(push_webhook.is_signed, body, signatures)
        if not signed:
            raise Unauthenticated(UNSIGNED)
        known = await anyio.to_thread.run_sync(push_webhook.is_known, body)
        if not known and (wait := take(PATH, time.monotonic())):
            raise try_again_error(TOO_FAST, wait)
        return await anyio.to_thread.run_sync(lambda: _answer_delivery(push_webhook, headers, body, clock()))

    return Route(PATH, receive_delivery, methods=["POST"])


def _answer_delivery(push_webhook: PushWebhook, headers: Mapping[str, str], body: bytes, now: int) -> Response:
    """Act on a signed delivery. Its headers are not signed, so they can only cause Memex to do less."""
    event = next((headers[name] for name in EVENTS if name in headers), "")
    if event != "push":
        push_webhook.remember(body, now=now)
        return JSONResponse({"status": "pong"}) if event == "ping" else JSONResponse({"status": "ignored"}, 202)
    delivery = next((headers[name] for name in DELIVERIES if name in headers), "")
    fresh = push_webhook.accept_delivery(delivery, body, now=now)
    return JSONResponse({"status": "looking"}, 202) if fresh else JSONResponse({"status": "known"})


def describe_route() -> dict[str, object]:
    """Describe the route for OpenAPI."""
    parameters = [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in SIGNATURES
    ]
    return {
        "post": {
            "operationId": "git_hook",
            "summary": "Report a push to a forge",
            "description": "The delivery must have one of the signatures, made with the webhook's secret. Memex does not use the body.",
            "security": [],
            "parameters": parameters,
            "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
            "responses": {
                "200": {"description": "A ping, or a repeated delivery"},
                "202": {"description": "The daemon fetches from the remote, or ignores an event of another kind"},
                "default": {"$ref": "#/components/responses/Error"},
            },
        }
    }
