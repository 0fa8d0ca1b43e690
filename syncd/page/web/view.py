"""Define what a view is: a name in the navigation and routes, whose handlers get the visit of one browser.

Law, tested: no handler of a change runs without the CSRF token of its session."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive

from index.errors import PermissionDenied, ResourceExhausted
from syncd.daemon.control_socket import call
from syncd.page.web.sessions import Session
from syncd.settings.settings import Settings

ANSWER_S: Final = 60.0  # between two signs of life of the daemon
CSRF: Final = "csrf"  # the name of the form field
CSRF_HEADER: Final = "x-csrf-token"
PART: Final = 8 * 1024 * 1024  # longest form field in bytes: a note of 5 MB, and more
BODY: Final = 32 * 1024 * 1024  # longest form in bytes
FIELDS: Final = 2_000  # most fields of one form


class Visit:
    """Gives the handler of a route what a browser asked for, the daemon, and answers in the page's layout."""

    def __init__(self, request: Request, form: FormData | None = None) -> None:
        self._request, self._form = request, form
        self.settings: Settings = request.app.state.settings
        self.session: Session = request.scope["session"]

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words that start `memex` for this vault."""
        command: tuple[str, ...] = self._request.app.state.command
        return command

    @cached_property
    def _query(self) -> dict[str, list[str]]:
        """Hold the query, in which a path that is not UTF-8 keeps its bytes."""
        return parse_qs(self._request.scope["query_string"].decode("latin-1"), errors="surrogateescape")

    @property
    def is_refresh(self) -> bool:
        """Return whether a page that is open asks for its live regions, so that the rest need not be made."""
        return self._request.headers.get("x-refresh") == "1"

    @property
    def is_shown(self) -> bool:
        """Return whether the answer is a page that a person sees, and not only its headers or its live regions."""
        return _is_shown(self._request)

    def query(self, name: str) -> str:
        """Return the last value of this name in the address; "" for none."""
        return self._query.get(name, [""])[-1].strip()

    def query_path(self, name: str) -> str:
        """Return the last path of this name in the address, with the spaces around it; "" for none."""
        return self._query.get(name, [""])[-1]

    def queries(self, name: str) -> list[str]:
        """Return the values of this name in the address that are not empty."""
        return [value.strip() for value in self._query.get(name, []) if value.strip()]

    def field(self, name: str) -> str:
        """Return a text field of the form; "" if it is missing."""
        return next(iter(self.fields(name)), "")

    def fields(self, name: str) -> list[str]:
        """Return all values of a text field of the form."""
        return [] if self._form is None else [value for value in self._form.getlist(name) if isinstance(value, str)]

    @property
    def accepts_json(self) -> bool:
        """Return whether a script of the page asks, which reads JSON."""
        return self._request.headers.get("accept") == "application/json"

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Return the daemon's answer to an owner's operation; arguments that are None are left out.

        The page has no other way to the vault. Raises MemexError, which the page shows."""
        values = {name: value for name, value in arguments.items() if value is not None}
        return call(self.settings.state, operation, values, timeout=ANSWER_S)

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page in the layout."""
        return render_page(self._request, template, status=status, **values)

    def redirect(self, path: str, message: str = "") -> Response:
        """Send the browser to another page after a change, which shows the message once."""
        if message:
            self.session.messages.append(message)
        return RedirectResponse(path, status_code=303)


Handler: TypeAlias = Callable[[Visit], Response]


@dataclass(frozen=True, slots=True)
class View:
    """Describes a view; `key` opens it after the key g, and a view without one is not in the navigation."""

    name: str
    title: str
    path: str
    key: str
    routes: Sequence[Route]


def get(path: str, handler: Handler) -> Route:
    """Return the route of a page that changes nothing."""

    def show(request: Request) -> Response:
        request.scope["stamp"] = request.app.state.events.stamp  # before the handler asks for data, which may be newer
        return handler(Visit(request))

    return Route(path, show, methods=["GET"], name=f"GET {path}")


def post(path: str, handler: Handler) -> Route:
    """Return the route of a change: its form, or a header, must carry the CSRF token of the session."""

    async def change(request: Request) -> Response:
        limited = Request(request.scope, _limit_body(request.receive))
        async with limited.form(max_files=0, max_fields=FIELDS, max_part_size=PART) as form:
            check_token(request, form.get(CSRF))
            return await run_in_threadpool(handler, Visit(request, form))

    return Route(path, change, methods=["POST"], name=f"POST {path}")


def _limit_body(receive: Receive) -> Receive:
    """Wrap `receive` so that a form that is too long raises ResourceExhausted, once the browser has sent all of it."""
    length = 0

    async def receive_limited() -> Message:
        nonlocal length
        message = await receive()
        length += len(message.get("body", b""))
        while length > BODY and message.get("more_body", False):
            message = await receive()
        if length > BODY:
            raise ResourceExhausted(f"the form has more than {BODY:,} bytes, so nothing was changed", limit=BODY)
        return message

    return receive_limited


def check_token(request: Request, sent: object) -> None:
    """Raise PermissionDenied unless a header of the request, or `sent`, is the CSRF token of the session."""
    sent = request.headers.get(CSRF_HEADER) or sent
    expected: str = request.scope["session"].csrf
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), expected.encode()):
        raise PermissionDenied("the form belongs to another session, so nothing was changed")


def render_page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page in the layout, with or without a session."""
    state, session = request.app.state, request.scope.get("session")
    messages: list[str] = []
    if session is not None and _is_shown(request):
        messages, session.messages = session.messages, []
    layout = {
        "views": state.views,
        "paths": {view.name: view.path for view in state.views},
        "view": view_of(request),
        "csrf": session.csrf if session else "",
        "messages": messages,
        "stamp": request.scope.get("stamp", ""),
        # A browser without a session gets nothing of the vault, not even its name.
        "vault": (state.settings.vault.name or state.settings.vault.path.name) if session else "",
        "waits": False,
        "letter_keys": session is None or session.has_letter_keys,
        "address": _address(request),
        # The answer of a change has no address from which its regions could be refreshed.
        "is_answer": request.method == "POST",
        "way": "",  # where a page that waits goes; "" = to its own address
    }
    return HTMLResponse(state.templates.get_template(template).render(layout | values), status)


def _is_shown(request: Request) -> bool:
    return request.method != "HEAD" and request.headers.get("x-refresh") != "1"


def _address(request: Request) -> str:
    """Return the address to which a browser returns from a change that every page offers."""
    if request.method != "GET":  # the answer of a change has no address that could be asked for again
        view = view_of(request)
        return view.path if view else "/"
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def view_of(request: Request) -> View | None:
    """Return the view to which the address of a request belongs."""
    return next((view for view in request.app.state.views if _is_below(request.url.path, view.path)), None)


def _is_below(path: str, top: str) -> bool:
    return path == top or (top != "/" and path.startswith(f"{top}/"))


def parse_number(text: str) -> int | None:
    """Return the number that a form or an address holds; None for anything but up to 15 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def find_midnight(now: datetime, days_ago: int = 0) -> int:
    """Return the beginning of a day in epoch milliseconds; `now`: the local time, without a zone.

    The day may have another distance from UTC at its beginning than now."""
    day = (now - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    return int(day.astimezone().timestamp() * 1000)


def local_path(address: str) -> str:
    """Return the path and query of an address for a redirect; "/" for an address of another place."""
    try:
        parts = urlsplit(address)
    except ValueError:  # it is no address, such as "//["
        return "/"
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.netloc
    return address if is_local and address.isprintable() else "/"
