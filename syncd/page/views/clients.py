"""Show the clients view: who may connect and when each was last seen, workspaces with their shares, and the settings in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from index.errors import MemexError
from index.timings import now_ms
from syncd.clients.client_formats import CLIENTS
from syncd.page.views import client_connections, workspace_shares
from syncd.page.views.client_connections import sort_keys
from syncd.page.web.desktop import can_open_files, open_file
from syncd.page.web.templates import link
from syncd.page.web.view import View, Visit, get, post


def show_clients(visit: Visit, *, status: int = 200, mistake: str = "", name: str = "") -> Response:
    """Show the keys of clients, the workspaces, and the settings."""
    now = now_ms()
    clients, ended, owners = sort_keys(visit.ask("key.list"), now)
    answer = visit.ask("settings.list")
    return visit.render(
        "clients.html",
        status=status,
        mistake=mistake,
        entered=name,
        clients=clients,
        ended=ended,
        owners=owners,
        known={id: client.title for id, client in CLIENTS.items()},
        workspaces=describe_workspaces(visit.ask("workspace.count"), clients, visit.ask("share.list")),
        sections=group_settings(answer["settings"]),
        changed=sum(row["origin"] != "default" for row in answer["settings"]),
        file=answer["file"],
        can_open=bool(answer["file"]) and can_open_files(),
    )


def describe_workspaces(
    workspaces: Iterable[Mapping[str, Any]], clients: Iterable[Mapping[str, Any]], shared: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return each workspace with its notes, the number of clients that see it, and what is shared with it."""
    seen = [key["workspaces"] for key in clients]
    entries = {row["workspace"]: row["entries"] for row in shared}
    return [
        {
            "name": row["name"],
            "notes": row["notes"],
            "clients": sum(names is None or row["name"] in names for names in seen),
            "entries": entries.get(row["name"], []),
        }
        for row in workspaces
    ]


def group_settings(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the settings by section, in their order, with values as `shown`; those without a section come under ""."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row["name"].rpartition(".")[0], []).append(
            {**row, "shown": "" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)}
        )
    return sections


def create_workspace(visit: Visit) -> Response:
    """Create a workspace; a name that can't be used is shown beside the form, which keeps it."""
    name = visit.field("name").strip()
    try:
        made = visit.ask("workspace.create", name=name)
    except MemexError as error:
        if error.code not in ("INVALID_ARGUMENT", "CONFLICT"):
            raise
        return show_clients(visit, status=400, mistake=error.message, name=name)
    done = "Created the workspace {}." if made["created"] else "The workspace {} exists already."
    return visit.redirect(link("/clients"), done.format(made["name"]))


def open_settings_file(visit: Visit) -> Response:
    """Open the daemon's settings file in the program that the desktop uses for it, as `memex config --open` does."""
    file = visit.ask("settings.list")["file"]
    opened = bool(file) and open_file(Path(file))
    return visit.redirect(
        "/clients", f"Opened `{file}`." if opened else "The desktop could not open the settings file."
    )


VIEW: Final = View(
    "clients",
    "Clients",
    "/clients",
    "c",
    (
        get("/clients", show_clients),
        post("/clients/workspaces", create_workspace),
        post("/clients/settings", open_settings_file),
        *client_connections.ROUTES,
        *workspace_shares.ROUTES,
    ),
)
