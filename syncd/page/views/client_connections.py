"""Show how a client is connected and disconnected: client connections are made and ended as `memex connect` does.

Laws, tested: the secret of a key is shown once, in no address, message or log; a form that is sent twice makes one
key."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, PermissionDenied, Unavailable
from index.timings import now_ms
from syncd.cli.terminal.result_text import format_key_state, format_time
from syncd.clients.client_file import ClientFile
from syncd.clients.client_formats import CLIENTS, entry_lines
from syncd.clients.connections import (
    ENTRY,
    USUAL,
    Ask,
    ConnectionRequest,
    ForeignEntry,
    KeyInUse,
    WrittenEntry,
    edit_hooks,
    find_hook_file,
    find_key,
    find_settings_file,
    find_valid_keys,
    make_connection,
    parse_key_name,
    remove_connection,
    write_entry,
)
from syncd.clients.daemon_address import client_url
from syncd.clients.session_hooks import HOOK_FILES, hook_command
from syncd.daemon.control_socket import DaemonEnded, DaemonSilent, NoDaemon
from syncd.page.web.failures import describe_failure
from syncd.page.web.sessions import UNSHOWN_S, Unshown
from syncd.page.web.templates import link
from syncd.page.web.view import Visit, get, post

PATH: Final = "/clients/connect"
LATEST: Final = 50  # forms of a browser that are known to be sent
UNSHOWN: Final = 8  # most connections that wait to be shown
REFUSED: Final = (KeyInUse, ForeignEntry, InvalidArgument, Conflict, PermissionDenied, Unavailable)
NO_ANSWER: Final = (NoDaemon, DaemonSilent, DaemonEnded)  # the page waits for the daemon


def show_form(visit: Visit) -> Response:
    """Show the form that connects a client. Raises NotFound for a client that Memex does not know."""
    return _render_form(visit, visit.query("client"))


def _render_form(visit: Visit, id: str, *, status: int = 200, mistake: str = "") -> Response:
    if id not in CLIENTS:
        raise NotFound("Memex knows no client of this name; the view Clients lists those that it knows")
    workspaces = [row["name"] for row in visit.ask("workspace.list")]
    entered = visit.field("workspace") or visit.query("workspace")
    request = _read_request(visit, id)
    key = find_key(_asker(visit), request.key_name)
    return visit.render(
        "client_connect.html",
        status=status,
        mistake=mistake,
        id=id,
        client=request.client,
        file=request.file,
        key=key,
        key_name=request.key_name,
        workspaces=workspaces,
        workspace=entered if entered in workspaces else "default",
        name=visit.field("name") or USUAL,
        hook_file=find_hook_file(id) if id in HOOK_FILES else None,
        hooks=bool(visit.field("hooks")),
        renew=request.renew,
        has_renew=bool(mistake or (key and key["last_used_at"])),
        form=secrets.token_hex(8),
    )


def _read_request(visit: Visit, id: str) -> ConnectionRequest:
    """Return the connection that the form asks for."""
    return ConnectionRequest(
        id,
        CLIENTS[id],
        visit.field("name").strip() or USUAL,
        visit.field("workspace") or "default",
        find_settings_file(CLIENTS[id]),
        bool(visit.field("renew")),
        visit.command,
    )


def connect(visit: Visit) -> Response:
    """Make a key for a client, and lead to the page that shows the lines with it once; or write the client's settings file."""
    id = visit.field("client")
    if id not in CLIENTS:
        raise InvalidArgument("Memex knows no client of this name")
    sent, form = visit.session.sent, visit.field("form")
    with visit.session.lock:  # a second press must not make a second key: it leads to where the first one does
        if form in sent:
            return visit.redirect(sent[form])
        request = _read_request(visit, id)
        try:
            if not ENTRY.fullmatch(request.name):
                raise InvalidArgument("the name must begin with a letter and have at most 32 letters, digits, - or _")
            sent[form] = _write_file(visit, request) if visit.field("write") else _make_lines(visit, request)
            if visit.field("hooks") and id in HOOK_FILES:
                visit.session.messages.append(add_hook(request))
        except NO_ANSWER:
            raise
        except REFUSED as error:
            return _render_form(visit, id, status=describe_failure(error).status, mistake=describe_refusal(error))
        for old in list(sent)[:-LATEST]:
            del sent[old]
        return visit.redirect(sent[form])


def describe_refusal(error: MemexError) -> str:
    """Describe why a client could not be connected, and what to do on the page."""
    way_out: dict[type[MemexError], str] = {
        KeyInUse: ". To replace its key, tick the box; for a second connection, choose another name.",
        ForeignEntry: ". To replace the entry, tick the box; to add a second one, choose another name.",
    }
    return error.message + way_out.get(type(error), "")


def _make_lines(visit: Visit, request: ConnectionRequest) -> str:
    """Make a key, and return the address at which the lines with it are shown once."""
    earlier = find_key(_asker(visit), request.key_name)
    connection = make_connection(_asker(visit), request, client_url(visit.settings))
    key = find_key(_asker(visit), request.key_name)
    assert key is not None, "it was made a moment ago"
    unshown = visit.session.shown_once
    lines = {
        "request": request,
        "revoked": earlier is not None,
        "lines": entry_lines(request.client, connection),
    }
    unshown[key["id"]] = Unshown(lines, time.time() + UNSHOWN_S)
    for old in list(unshown)[:-UNSHOWN]:
        del unshown[old]
    others = find_valid_keys(_asker(visit), request, of_other_hosts=request.renew)
    visit.session.messages += [_as_sentence(notice) for notice in others]
    return link(f"{PATH}/lines", key=key["id"])


def _write_file(visit: Visit, request: ConnectionRequest) -> str:
    """Write the client's settings file, and return the address of the view with the message."""
    if (file := request.file) is None:
        raise InvalidArgument(f"Memex writes no settings file of {request.client.title} on this system")
    written = write_entry(_asker(visit), request, file, client_url(visit.settings))
    visit.session.messages.append(describe_written(request, file, written))
    return "/clients"


def describe_written(request: ConnectionRequest, file: ClientFile, written: WrittenEntry) -> str:
    """Describe what was done to a settings file, and what to do next."""
    if not written.changed:
        ends = f" until {format_time(written.ends, None)}" if written.ends else ""
        return f"`{file}` already has this connection with a key that is valid{ends}; nothing was changed."
    backup = f"; the old file is `{written.backup}`" if written.backup else ""
    then = f" Then {request.client.then}." if request.client.then else ""
    revoked = f" Memex {request.revoked}." if written.revoked else ""
    revoked += "".join(f" {_as_sentence(notice)}" for notice in written.notices)
    return (
        f"Wrote `{file}`{backup}. {request.client.title} sees the workspace {request.workspace} with the key "
        f"{request.key_name}.{revoked}{then}"
    )


def add_hook(request: ConnectionRequest) -> str:
    """Add the hook by which each session of a client begins with the context, and return what was done.

    A file that can't be edited is described too: the key is made already."""
    file, command = find_hook_file(request.id), hook_command(request.command, request.id, request.workspace)
    try:
        backup, changed = edit_hooks(file, command, request.id, remove=False)
    except MemexError as error:
        return f"The hook was not added: {error.message}."
    if not changed:
        return f"`{file}` already has this hook."
    old = f"; the old file is `{backup}`" if backup else ""
    return (
        f"Wrote the hook into `{file}`{old}: each session begins with the context of {request.workspace}. "
        f"Then {HOOK_FILES[request.id].then}."
    )


def show_lines(visit: Visit) -> Response:
    """Show the lines with a new key: the first time only, which a request for the headers alone is not."""
    unshown, id = visit.session.shown_once, visit.query("key")
    entry = unshown.pop(id, None) if visit.is_shown else unshown.get(id)
    return visit.render("client_lines.html", status=200 if entry else 404, entry=entry.value if entry else None)


# Ending a connection


def preview_revoke(visit: Visit) -> Response:
    """Show which key would be revoked, and change nothing. Raises NotFound for a key that no client has."""
    key = _find_client(visit, visit.query("key"))
    connection = read_removal(visit, key)
    hook_file = find_hook_file(connection.id) if connection and connection.id in HOOK_FILES else None
    return visit.render("clients_revoke.html", key=key, connection=connection, hook_file=hook_file)


def revoke_key(visit: Visit) -> Response:
    """Revoke the key of a client, and remove its entry. Raises NotFound for a key that no client has."""
    key = _find_client(visit, visit.field("key"))
    request = read_removal(visit, key)
    sentence = f"Revoked the key {key['name']}. Its client can no longer connect."
    if request is None:
        visit.ask("key.revoke", name=key["id"])
        return visit.redirect("/clients", sentence)
    try:
        removal = remove_connection(_asker(visit), request)
    except NO_ANSWER:
        raise
    except (
        InvalidArgument,
        Conflict,
        PermissionDenied,
        Unavailable,
    ) as error:  # the key is revoked, and the file stays as it is
        return visit.redirect("/clients", f"{error.message[:1].upper()}{error.message[1:]}.")
    rest = [part for part in removal.done if not part.startswith("revoked")]
    return visit.redirect("/clients", " ".join([sentence, *(_as_sentence(part) for part in (*rest, *removal.notices))]))


def _as_sentence(part: str) -> str:
    return f"{part[:1].upper()}{part[1:].rstrip('.')}."


def read_removal(visit: Visit, key: Mapping[str, Any]) -> ConnectionRequest | None:
    """Return the connection that a key belongs to; None if it was not made on this machine for a client that Memex knows."""
    names = parse_key_name(key["name"])
    if names is None:
        return None
    client = CLIENTS[names[0]]
    workspace = next(iter(key["workspaces"] or ()), "default")
    return ConnectionRequest(
        names[0], client, names[1], workspace, find_settings_file(client), renew=False, command=visit.command
    )


def _find_client(visit: Visit, id: str) -> dict[str, Any]:
    """Return the valid key of a client: the page revokes no key of the owner, because the command line uses it."""
    clients = sort_keys(visit.ask("key.list"), now_ms())[0]
    for key in clients:
        if key["id"] == id:
            return key
    raise NotFound("no client has this key, or it was revoked before")


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


def _asker(visit: Visit) -> Ask:
    """Return the function by which a connection asks the daemon."""
    return lambda operation, arguments: visit.ask(operation, **arguments)


ROUTES: Final = (
    get(PATH, show_form),
    post(PATH, connect),
    get(f"{PATH}/lines", show_lines),
    get("/clients/revoke", preview_revoke),
    post("/clients/revoke", revoke_key),
)
