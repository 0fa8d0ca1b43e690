"""Define the command `open`: show Memex in a browser, and manage the browser's sessions."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from typing import Any

import click

from index.errors import InvalidArgument, NotFound
from syncd.cli.framework.commands import Command, flags, load_settings, print_answer, require_set_up
from syncd.cli.page.process import ask_page, make_link, stop_page
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.settings.settings import Settings


@click.command("open", cls=Command)
@click.argument("view", required=False)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option("--sessions", is_flag=True, help="List the browsers that have the page open.")
@click.option("--revoke", metavar="ID", help="End the session with this id.")
@click.option("--stop", is_flag=True, help="End the page, and with it every session.")
def open_(view: str | None, no_browser: bool, sessions: bool, revoke: str | None, stop: bool) -> None:
    """Open the page in a browser: what agents wrote, what waits for you, and how Memex is doing. VIEW is the view to begin with.

    The page is a process of its own on 127.0.0.1 (page.port). It ends when it was not used for 30 minutes, unless page.always is
    set. The link works once, within a minute; after that, the browser has a session until the page ends, or for 24 hours after its last use. With --json: {"url",
    "page", "pid", "version", "opened"}; with --sessions [{"id", "browser", "created_at", "seen_at"}]."""
    if sum([view is not None, sessions, revoke is not None, stop]) > 1:
        raise InvalidArgument("give only one of VIEW, --sessions, --revoke and --stop")
    chosen = load_settings()
    if sessions:
        _print_sessions(chosen)
    elif revoke is not None:
        _revoke(chosen, revoke)
    elif stop:
        pid = stop_page(chosen.state)
        print_answer(
            {"stopped": pid is not None, "pid": pid},
            lambda: f"the page ended (process {pid})" if pid else "no page runs",
        )
    else:
        _open(chosen, view or "home", browser=not no_browser)


def _open(chosen: Settings, view: str, *, browser: bool) -> None:
    require_set_up(chosen)
    link = make_link(chosen, flags(), view)
    opened = browser and _has_display() and webbrowser.open(link["url"])
    shown = (
        f"the page is open in your browser: {link['page']}"
        if opened
        else f"open this link within a minute: {link['url']}"
    )
    print_answer(link | {"opened": opened}, lambda: shown)


def _has_display() -> bool:
    """Return whether a browser with a window can be opened: one inside the terminal would take it over."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _print_sessions(chosen: Settings) -> None:
    try:
        listed = ask_page(chosen.state, "sessions")
    except control_socket.NoDaemon:
        listed = []
    print_answer(listed, lambda: _format_sessions(listed))


def _format_sessions(listed: Sequence[dict[str, Any]]) -> str:
    if not listed:
        return "no browser has the page open"
    return "\n".join(
        f"{session['id']}  last used {result_text.format_time(session['seen_at'], None)}, "
        f"since {result_text.format_time(session['created_at'], None)}  {result_text.line(session['browser'], 100)}"
        for session in listed
    )


def _revoke(chosen: Settings, id: str) -> None:
    try:
        answer = ask_page(chosen.state, "revoke", id=id)
    except control_socket.NoDaemon:
        raise NotFound("no page runs, so there is no session to end") from None
    print_answer(answer, lambda: f"the session {answer['revoked']} ended")
