"""Serve the Git webhook `POST /hooks/git`: a forge reports a push, signed with the shared secret.

Laws, tested: without a secret the route does not exist; a body is read only if its signature may be one, and only as
often as the sender's address may send one; the content of the body is not used. Only a signed and new delivery takes of
the rate that a forge has."""

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
LARGEST: Final = 1_048_576  # bytes of a delivery; forges cut their own lists of commits far below
SIGNATURES: Final = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature")
ONCE: Final = frozenset(name.encode() for name in SIGNATURES)
EVENTS: Final = ("x-github-event", "x-gitea-event", "x-forgejo-event")
DELIVERIES: Final = ("x-github-delivery", "x-gitea-delivery", "x-forgejo-delivery")
UNSIGNED: Final = (
    "a signature is needed: set the secret of `memex hook secret` in the forge's webhook, with JSON as its content"
)


def body_limit() -> BodyLimit:
    """How large a delivery may be."""
    return BodyLimit("POST", PATH, LARGEST)


def check_headers(push_webhook: PushWebhook, headers: Mapping[bytes, bytes]) -> Refusal | None:
    """Why a delivery is not even read."""
    if not push_webhook.is_on:
        return Refusal(404, NotFound.code, "no such route; GET /openapi.json lists them")
    signatures = [headers[name] for name in ONCE if name in headers]
    if not signatures or not all(map(is_well_formed, signatures)):
        return Refusal(401, Unauthenticated.code, UNSIGNED)
    return None


def make_route(push_webhook: PushWebhook, clock: Callable[[], int], take: Callable[[str, float], float]) -> Route:
    """The route; `take` takes one from a bucket at a time, and answers with the seconds until there is one."""

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
    """Act on a signed delivery. Its headers are not signed, so they say at most what need not be done."""
    event = next((headers[name] for name in EVENTS if name in headers), "")
    if event != "push":
        push_webhook.remember(body, now=now)
        return JSONResponse({"status": "pong"}) if event == "ping" else JSONResponse({"status": "ignored"}, 202)
    delivery = next((headers[name] for name in DELIVERIES if name in headers), "")
    fresh = push_webhook.accept_delivery(delivery, body, now=now)
    return JSONResponse({"status": "looking"}, 202) if fresh else JSONResponse({"status": "known"})


def describe_route() -> dict[str, object]:
    """The route in OpenAPI."""
    parameters = [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in SIGNATURES
    ]
    return {
        "post": {
            "operationId": "git_hook",
            "summary": "A forge was pushed to",
            "description": "Signed with the webhook's secret; one of the signatures is needed. Nothing of the body is used.",
            "security": [],
            "parameters": parameters,
            "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
            "responses": {
                "200": {"description": "A ping, or a delivery that is known"},
                "202": {"description": "The daemon looks; or it is an event that does not matter"},
                "default": {"$ref": "#/components/responses/Error"},
            },
        }
    }
