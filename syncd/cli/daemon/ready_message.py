"""Compose the message of a ready daemon: its address, how to connect, and a real search with its answer."""

from __future__ import annotations

import json
import shlex
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import MemexError
from index.names import pluralize
from syncd.cli.framework.commands import print_message, print_while_serving, terminal_width
from syncd.cli.terminal import result_text
from syncd.clients.client_formats import connect_text
from syncd.clients.daemon_address import memex_command
from syncd.daemon import control_socket
from syncd.settings.settings import Settings
from syncd.vault.location import BESIDE

if TYPE_CHECKING:
    from syncd.app import Ready

ANY = "what did we decide"
WORKSPACE = "default"
SOON_S = 1.0  # a first listing within this time needs no message
PATIENCE_S = 60.0  # how long the example search waits for the first listing


def print_summary(chosen: Settings, ready: Ready) -> None:
    """Print a few lines that suit a log as well as a terminal."""
    print_message(f"memex: serving {chosen.vault.path} at {ready.url}")
    command = memex_command(chosen)
    print_message(
        f"memex: to connect a client: {command} connect claude-code (`memex connect --help` lists the others)"
    )
    if not ready.first_listing(SOON_S):
        print_message(
            f"memex: indexing; searches find the notes indexed so far, and `{command} status` shows the progress"
        )
    ready.first_listing(None)
    try:
        now = control_socket.call(chosen.state, "status", {}, timeout=60)
    except MemexError:
        return  # the daemon was stopped meanwhile
    counts = ", ".join(
        f"{pluralize(now[scope]['documents'], 'note')} in the {scope}" for scope in ("vault", "captures")
    )
    defective = len({note["path"] for note in now["defects"]})
    attention = (
        f"; {pluralize(defective, 'note')} need{'s' * (defective == 1)} attention: {command} status"
        if defective
        else ""
    )
    print_message(f"memex: ready: {counts}{attention}")


def print_connect_help(
    chosen: Settings,
    ready: Ready,
    query: str = "",
    connection: str = "",
    *,
    shown: Callable[[], object] = lambda: None,
) -> None:
    """Print the address, how to connect, and a search with its answer.

    `connection`: further text on connecting. `shown` is called once that is printed, because the search may wait for long."""
    key = ready.key_file.read_text().strip()
    query = query or newest_capture_name(chosen) or _newest_note(chosen.vault.path)[1] or ANY
    try:
        print_while_serving(
            f"\nMemex serves {chosen.vault.path}\nat {ready.url}   (state: {ready.state})\n"
            f"Agents see only the folder {chosen.vault.inbox}, none of your other notes.\n"
        )
        print_while_serving("\n\n".join(part for part in (connection, connect_text(memex_command(chosen))) if part))
        shown()
        if not ready.first_listing(PATIENCE_S):
            print_message("memex: still indexing; the search below covers the notes indexed so far")
        print_while_serving(f"\nA live search: {query!r}\n")
        hits = search_captures(ready.url, key, query)
        if not hits:
            print_while_serving(
                "  no capture found. Agents see only captures; this is what you find in your own notes:\n"
            )
            asked = {"query": query, "scope": "vault", "limit": 3}
            hits = control_socket.call(chosen.state, "search", asked, timeout=60)["hits"]
        print_while_serving(result_text.format_hits(hits, cells=terminal_width()))
        print_while_serving(graph_commands(chosen) + f"\nTo stop the daemon: Ctrl-C, or {memex_command(chosen)} stop")
    except MemexError as error:
        print_message(f"memex: {error.message}")
    except OSError as error:  # from the search
        print_message(f"memex: {error}")


def print_address_json(chosen: Settings, ready: Ready, key: str | None = None) -> None:
    """Print the address as one line of JSON, once the notes are listed. `key`: a client key that may be shown."""
    if not ready.first_listing(PATIENCE_S):
        print_message("memex: still indexing; searches find the notes indexed so far")
    places = {"vault": str(chosen.vault.path), "state": str(ready.state), "url": ready.url}
    print_while_serving(json.dumps(places | {"workspace": WORKSPACE, "key": key}))


def graph_commands(chosen: Settings) -> str:
    """Return commands that show the graph around the entity with the most relations; "" while the graph is empty."""
    asked = {"workspace": WORKSPACE, "limit": 1}
    nodes = control_socket.call(chosen.state, "graph.whole", asked, timeout=60)["nodes"]
    if not nodes:
        return ""
    command, name = memex_command(chosen), shlex.quote(result_text.line(nodes[0]["name"], 300))
    return (
        "\nThe graph of entities and facts from agents:\n"
        f"  {command} node show {name}\n"
        f"  {command} graph {name} --depth 2 --format mermaid\n"
    )


def search_captures(url: str, key: str, query: str) -> list[dict[str, Any]]:
    """Search the captures over REST, as an agent would."""
    headers = {"Authorization": f"Bearer {key}", "X-Memory-Workspace": WORKSPACE, "Content-Type": "application/json"}
    body = json.dumps({"query": query, "top_k": 3}).encode()
    asked = urllib.request.Request(f"{url}/search", data=body, headers=headers)  # noqa: S310 - our own address
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy may see a key for this machine
    try:
        with direct.open(asked, timeout=60) as answer:
            hits = json.load(answer)["results"]
    except urllib.error.HTTPError as error:
        print_message(
            f"memex: the daemon refused the search: {error.code} {result_text.line(error.read(2000).decode('utf-8', 'replace'))}"
        )
        return []
    return [
        {
            "path": hit.get("title") or hit["document_id"],
            "heading": hit.get("heading", ""),
            "chunk": hit["chunk_content"],
            "score": hit["score"],
        }
        for hit in hits
    ]


def newest_capture_name(chosen: Settings) -> str:
    """Return the name of the capture that changed last; "" in an empty inbox."""
    inbox = chosen.vault.path / chosen.vault.inbox
    workspaces = [folder for folder in inbox.glob("*/") if folder.name.casefold() not in BESIDE]
    return max(map(_newest_note, workspaces), default=(0.0, ""))[1]


def _newest_note(folder: Path) -> tuple[float, str]:
    """Return the time of the last change in a folder, and the name of the note that changed."""
    latest = (0.0, "")
    for path in folder.rglob("*.md"):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            try:
                latest = max(latest, (path.stat().st_mtime, path.stem))
            except OSError:
                continue
    return latest
