"""Guard access to the page: exact host and origin, a session for everything but static files and the link, safe headers.

Laws, tested: no request reaches a view without the cookie of an open session. No other credential counts. A page of
another origin, another port of this machine included, can neither read a page nor change anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from syncd.page.web.sessions import Sessions
from syncd.page.web.view import local_path

LINK: Final = "/open"  # redeems a one-time link
STATIC: Final = "/static/"
SAFE: Final = frozenset({"GET", "HEAD"})
POLICY: Final = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, Chromium sends `Origin: null` with every form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def cookie_name(port: int) -> str:
    """Return the name of the session's cookie. Browsers send cookies to every port of a host, so the name has the port."""
    return f"memex-page-{port}"


class AccessGuard:
    """Wraps the page's application. `closed` answers a browser without a session; `on_use` is called for each one with."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int,
        sessions: Sessions,
        closed: Callable[[Request], Response],
        on_use: Callable[[], None],
    ) -> None:
        self._app, self._sessions, self._closed, self._on_use = app, sessions, closed, on_use
        self._host = f"127.0.0.1:{port}"
        self._cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: refuse it, redeem a link, or pass it on with its session."""
        if scope["type"] != "http":
            return
        send = _with_headers(send)
        response = self._refusal(scope) or self._redeem(scope)
        if response is None:
            request = Request(scope)
            session = self._sessions.find(request_cookie(request.headers, self._cookie))
            scope["session"] = session
            if session is not None:
                self._on_use()
            elif not scope["path"].startswith(STATIC):
                response = self._closed(request)
        if response is not None:
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Refuse another host name, another origin, and requests that a page of another site caused."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._host]:
            return PlainTextResponse(f"this page answers only at http://{self._host}", 421)
        origins = headers.getlist("origin")
        if origins != [f"http://{self._host}"] and (origins or scope["method"] not in SAFE):
            return PlainTextResponse("requests of other origins are refused", 403)
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return PlainTextResponse("requests of other sites are refused: open the page with memex open", 403)
        return None

    def _redeem(self, scope: Scope) -> Response | None:
        """Turn a one-time link into a session, and lead to the view that the link names."""
        if scope["path"] != LINK or scope["method"] != "GET":
            return None
        request = Request(scope)
        response = RedirectResponse(local_path(request.query_params.get("to", "/")), status_code=303)
        secret = self._sessions.redeem(request.query_params.get("link", ""), request.headers.get("user-agent", ""))
        if secret is not None:
            response.set_cookie(self._cookie, secret, httponly=True, samesite="strict", path="/")
            return response
        has_session = self._sessions.find(request_cookie(request.headers, self._cookie)) is not None
        return response if has_session else None  # a link that this browser has used already


def request_cookie(headers: Headers, name: str) -> str:
    """Return the value of a cookie; "" if it is missing, or sent twice, as another server of this host may cause."""
    pairs = [pair.strip().partition("=") for text in headers.getlist("cookie") for pair in text.split(";")]
    values = [value for key, _, value in pairs if key == name]
    return values[0] if len(values) == 1 else ""


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return send_with_headers
