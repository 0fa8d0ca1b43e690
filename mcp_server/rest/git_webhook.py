"""Serve the Git webhook `POST /hooks/git`: a forge reports a push, signed with the shared secret.

Law, tested: without a secret the route does not exist; without a signature the body is not even read; the content of
the body is not used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from index.errors import NotFound, Unauthenticated
from mcp_server.http.body_limits import BodyLimit
from mcp_server.http.refusals import Refusal
from syncd.remote.push_webhook import PushWebhook

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
    if headers.keys().isdisjoint(ONCE):
        return Refusal(401, Unauthenticated.code, UNSIGNED)
    return None


def make_route(push_webhook: PushWebhook, clock: Callable[[], int]) -> Route:
    """The route."""

    async def receive_delivery(request: Request) -> Response:
        headers, body = request.headers, await request.body()
        signatures = [headers[name].encode("latin-1") for name in SIGNATURES if name in headers]
        if not await anyio.to_thread.run_sync(push_webhook.is_signed, body, signatures):
            raise Unauthenticated(UNSIGNED)
        event = next((headers[name] for name in EVENTS if name in headers), "")
        if event == "ping":
            return JSONResponse({"status": "pong"})
        if event != "push":
            return JSONResponse({"status": "ignored"}, 202)
        delivery = next((headers[name] for name in DELIVERIES if name in headers), "")
        fresh = await anyio.to_thread.run_sync(lambda: push_webhook.accept_delivery(delivery, now=clock()))
        return JSONResponse({"status": "looking"}, 202) if fresh else JSONResponse({"status": "known"})

    return Route(PATH, receive_delivery, methods=["POST"])


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
