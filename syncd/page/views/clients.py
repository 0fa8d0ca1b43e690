"""Show the clients view: who may connect and when each was last seen, workspaces, and the settings in force."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from index.errors import MemexError, NotFound
from syncd.cli.terminal.result_text import format_key_state
from syncd.page.web.templates import link
from syncd.page.web.view import View, Visit, get, post


def show_clients(visit: Visit) -> Response:
    """Show the keys of clients, the workspaces, and the settings."""
    return _render(visit)


def _render(visit: Visit, *, status: int = 200, mistake: str = "", name: str = "") -> Response:
    now = time.time_ns() // 1_000_000
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
        workspaces=count_clients(visit.ask("workspace.list"), clients),
        sections=group_settings(answer["settings"]),
        changed=sum(row["origin"] != "default" for row in answer["settings"]),
        file=answer["file"],
    )


def sort_keys(
    keys: Iterable[Mapping[str, Any]], now: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the keys of clients that open something, those that ended, and those of the owner; the last seen first."""
    rows = sorted(
        (dict(key) | {"state": format_key_state(key, now)} for key in keys),
        key=lambda key: (-(key["last_used_at"] or 0), key["name"]),
    )
    ended = [key for key in rows if key["revoked_at"] or (key["expires_at"] and key["expires_at"] <= now)]
    live = [key for key in rows if key not in ended]
    return (
        [key for key in live if "admin" not in key["scopes"]],
        ended,
        [key for key in live if "admin" in key["scopes"]],
    )


def count_clients(
    workspaces: Iterable[Mapping[str, Any]], clients: Iterable[Mapping[str, Any]]
) -> list[tuple[str, int]]:
    """Return each workspace with the number of clients that see it."""
    seen = [key["workspaces"] for key in clients]
    return [(entry["name"], sum(names is None or entry["name"] in names for names in seen)) for entry in workspaces]


def group_settings(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the settings by section, in their order, with values as `shown`; those without a section come under ""."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row["name"].rpartition(".")[0], []).append(
            {**row, "shown": "" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)}
        )
    return sections


def preview_revoke(visit: Visit) -> Response:
    """Show which key would be revoked, and change nothing. Raises NotFound for a key that no client has."""
    return visit.render("clients_revoke.html", key=_find_client(visit, visit.query("key")))


def revoke_key(visit: Visit) -> Response:
    """Revoke the key of a client. Raises NotFound for a key that no client has."""
    key = _find_client(visit, visit.field("key"))
    visit.ask("key.revoke", name=key["id"])
    return visit.redirect("/clients", f"Revoked the key {key['name']}. Its client can no longer connect.")


def _find_client(visit: Visit, id: str) -> dict[str, Any]:
    """Return the valid key of a client: the page revokes no key of the owner, because the command line uses it."""
    clients = sort_keys(visit.ask("key.list"), time.time_ns() // 1_000_000)[0]
    for key in clients:
        if key["id"] == id:
            return key
    raise NotFound("no client has this key, or it was revoked before")


def create_workspace(visit: Visit) -> Response:
    """Create a workspace; a name that can't be used is shown beside the form, which keeps it."""
    name = visit.field("name").strip()
    try:
        made = visit.ask("workspace.create", name=name)
    except MemexError as error:
        if error.code not in ("INVALID_ARGUMENT", "CONFLICT"):
            raise
        return _render(visit, status=400, mistake=error.message, name=name)
    return visit.redirect(link("/clients"), f"Created the workspace {made['name']}.")


VIEW: Final = View(
    "clients",
    "Clients",
    "/clients",
    "c",
    (
        get("/clients", show_clients),
        get("/clients/revoke", preview_revoke),
        post("/clients/revoke", revoke_key),
        post("/clients/workspaces", create_workspace),
    ),
)
