"""Build the page's application: the routes of all views, their errors, the events and the static files, behind the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from index.errors import MemexError, NotFound
from syncd.daemon.control_socket import call
from syncd.page.views import activity, clients, graph, home, jobs, note, reports, review_queue, search
from syncd.page.web.access_guard import STATIC, AccessGuard
from syncd.page.web.failures import Failure, describe_failure
from syncd.page.web.live_events import LiveEvents
from syncd.page.web.sessions import Sessions
from syncd.page.web.templates import PAGE, make_templates
from syncd.page.web.view import View, render_page, view_of
from syncd.settings.settings import Settings

VIEWS: Final[tuple[View, ...]] = (  # in the order of the navigation
    home.VIEW,
    search.VIEW,
    review_queue.VIEW,
    graph.VIEW,
    reports.VIEW,
    activity.VIEW,
    jobs.VIEW,
    clients.VIEW,
    note.VIEW,
)
EVENTS: Final = "/events"
SILENT_S: Final = 10.0  # after which a daemon that does not tell its stamp counts as gone


def build_application(
    settings: Settings, sessions: Sessions, *, port: int, command: Sequence[str], on_use: Callable[[], None]
) -> tuple[AccessGuard, LiveEvents]:
    """Return the guarded application and its events.

    `command` starts `memex` for this vault; `on_use` is called whenever a browser uses the page."""
    events = LiveEvents(partial(call, settings.state, "stamp", {}, timeout=SILENT_S), sessions, on_use)
    application = Starlette(
        routes=[
            *(route for view in VIEWS for route in view.routes),
            Route(EVENTS, events.answer, methods=["GET"]),
            Mount(STATIC.rstrip("/"), StaticFiles(directory=PAGE / "static")),
        ],
        exception_handlers={MemexError: _show_failure, HTTPException: _show_no_page, Exception: _show_crash},
    )
    application.router.redirect_slashes = False
    state = application.state
    state.events, state.command = events, tuple(command)
    state.settings, state.views, state.templates = settings, VIEWS, make_templates()

    def show_closed(request: Request) -> Response:
        request.scope["app"] = application
        return render_page(request, "closed.html", status=401)

    guard = AccessGuard(application, port=port, sessions=sessions, closed=show_closed, on_use=on_use)
    return guard, events


def _show_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, MemexError)
    return _render_failure(request, describe_failure(error))


def _show_no_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and not request.url.path.startswith(STATIC):
        return _render_failure(request, describe_failure(NotFound("there is no page at this address")))
    headers = {"allow": ", ".join(_served_methods(request))} if error.status_code == 405 else None
    return PlainTextResponse(error.detail, error.status_code, headers)


def _served_methods(request: Request) -> list[str]:
    """Return the methods that the address of a request serves, of all routes together."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    methods = {name for route in routes if route.path_regex.match(request.url.path) for name in route.methods or ()}
    return sorted(methods) or ["GET", "HEAD"]  # of static files, which are no route


def _show_crash(request: Request, error: Exception) -> Response:
    """Show that a view failed; the server logs the traceback."""
    failure = Failure(
        500,
        "The page failed",
        f"It could not show this: {type(error).__name__}.",
        "The reason is in the file `page/page.log` of the state folder.",
    )
    return _render_failure(request, failure)


def _render_failure(request: Request, failure: Failure) -> Response:
    # The answer of a change is never asked for again by itself: that would repeat the change.
    view = view_of(request)
    way = (view.path if view else "/") if request.method == "POST" else ""
    return render_page(request, "failure.html", status=failure.status, failure=failure, waits=failure.waits, way=way)
