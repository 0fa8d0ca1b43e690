"""Define the command `connect`: create a key for a client, print its settings or write its settings file, list clients."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from index.errors import Conflict, InvalidArgument
from index.timings import now_ms
from syncd.cli.framework.arguments import refuse_idle, workspace_option
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    load_settings,
    open_session,
    print_answer,
    print_message,
)
from syncd.cli.framework.printed_commands import complete_commands
from syncd.cli.terminal import result_text
from syncd.clients.client_file import ClientFile
from syncd.clients.client_formats import CLIENTS, paste_text
from syncd.clients.connections import (
    ENTRY,
    USUAL,
    Ask,
    ConnectionRequest,
    ForeignEntry,
    KeyInUse,
    edit_hooks,
    find_hook_file,
    find_key,
    find_settings_file,
    find_valid_keys,
    is_live,
    make_connection,
    remove_connection,
    write_entry,
)
from syncd.clients.daemon_address import client_url, memex_words
from syncd.clients.session_hooks import HOOK_FILES, hook_command

# An option, and those that have no effect with it.
IDLE: Final = {
    "list": ("workspace", "write", "hooks", "file", "name", "renew", "remove"),
    "hooks": ("write", "name", "renew"),
    "remove": ("write", "renew"),
}


@click.command(cls=Command)
@click.argument("client", metavar="CLIENT", required=False, type=click.Choice(list(CLIENTS)))
@workspace_option("The workspace that the client sees.")
@click.option(
    "--write", is_flag=True, help="Write the client's settings file, and keep a copy of the old one beside it."
)
@click.option(
    "--hooks",
    is_flag=True,
    help="Let each session of claude-code or codex begin with the context of the workspace; see `memex context`.",
)
@click.option("--file", type=click.Path(), help="The client's settings file, if it is not the usual one.")
@click.option("--name", default=USUAL, show_default=True, help="The name of this vault in the client.")
@click.option("--renew", is_flag=True, help="Create a new key, and revoke the client's old one.")
@click.option("--remove", is_flag=True, help="Revoke the client's key, and remove the entry from its settings file.")
@click.option("--list", "list_", is_flag=True, help="List the connected clients, and when each was last seen.")
def connect(
    client: str | None,
    *,
    workspace: str,
    write: bool,
    hooks: bool,
    file: str | None,
    name: str,
    renew: bool,
    remove: bool,
    list_: bool,
) -> None:
    """Connect an AI client: create a key for it, and print the lines to paste into its settings.

    The key is called CLIENT@HOST, and reads and writes one workspace. Memex shows it only now. With --write, Memex writes the
    settings of claude-desktop, codex, cursor, gemini or opencode, and shows no key. --hooks writes one command into the hooks of
    claude-code or codex, and creates no key; --remove takes it away too. With --json: {"client", "name", "workspace", "url",
    "file", "backup", "changed", "key", "lines"}."""
    _refuse_idle_options(client, list=list_, hooks=hooks, remove=remove)
    if list_ or client is None:
        if not list_:
            raise InvalidArgument(
                f"which client? Choose one of {', '.join(CLIENTS)}; `memex connect --list` shows the connected ones"
            )
        _print_clients()
        return
    if not ENTRY.fullmatch(name):
        raise InvalidArgument("--name must begin with a letter and have at most 32 letters, digits, - or _")
    chosen = load_settings()
    known, command = CLIENTS[client], tuple(memex_words(chosen))
    if hooks:
        _change_hooks(client, workspace, command, path=file, remove=remove)
        return
    request = ConnectionRequest(client, known, name, workspace, find_settings_file(known, file), renew, command)
    with open_session() as call:
        if remove:
            _remove(call, request)
        else:
            _connect(call, request, client_url(chosen), write=write)


def _refuse_idle_options(client: str | None, **options: bool) -> None:
    """Raise InvalidArgument for an option that has no effect with one of these, and for a client with --list."""
    if options["list"] and client:
        raise InvalidArgument("--list shows all clients: leave out CLIENT")
    for option, idle in IDLE.items():
        for name in idle if options[option] else ():
            refuse_idle(name, f"has no effect with --{option}")


def _change_hooks(client: str, workspace: str, words: Sequence[str], *, path: str | None, remove: bool) -> None:
    """Install the hook at the start of a session, or remove it; `words` start `memex` for this vault."""
    file, command = find_hook_file(client, path), hook_command(words, client, workspace)
    backup, changed = edit_hooks(file, command, client, remove=remove)
    answer = {"client": client, "workspace": workspace, "file": str(file), "command": command, "changed": changed}

    def text() -> str:
        if not changed:
            return (
                f"{file} has no hook of this vault" if remove else f"{file} has this hook already; nothing was changed"
            )
        done = f"removed the hook from {file}" if remove else f"wrote {file}"
        old = f"; the old file is {backup}" if backup else ""
        then = (
            "" if remove else f"\nEach session begins with the context of {workspace}. Then {HOOK_FILES[client].then}."
        )
        return done + old + then

    print_answer(answer | {"backup": str(backup) if backup else None}, text)


def _connect(call: Ask, request: ConnectionRequest, url: str, *, write: bool) -> None:
    """Print the lines of a new connection, or write its file. Raises Conflict, with the options that lead out of it."""
    try:
        if write:
            _write(call, request, _require_file(request), url)
        else:
            _print(call, request, url)
    except KeyInUse as error:
        raise Conflict(
            f"{error.message}. To replace that key, add --renew; for a second connection, add --name"
        ) from error
    except ForeignEntry as error:
        raise Conflict(
            f"{error.message}: to add a second entry, choose another --name; to replace the entry, add --renew"
        ) from error


def _require_file(request: ConnectionRequest) -> ClientFile:
    if request.client.file is None:
        raise InvalidArgument(
            f"{request.client.title} writes its own settings: leave out --write and run the printed line"
        )
    if request.file is None:
        raise InvalidArgument(
            f"{request.client.title} has no documented settings file on this system: name the file with --file"
        )
    return request.file


def _print(call: Ask, request: ConnectionRequest, url: str) -> None:
    """Create a key, and print the lines with it; Memex never shows the key again."""
    earlier = find_key(call, request.key_name)
    connection = make_connection(call, request, url)
    lines = paste_text(request.client, connection, request.file_name)
    if earlier is not None:
        print_message(f"memex: {request.revoked}")

    def text() -> str:
        print_message(
            f"memex: created the key {request.key_name} for the workspace {request.workspace}; Memex shows it only now"
        )
        if request.file is not None:
            print_message(f"memex: to let Memex write the file instead: memex connect {request.id} --write")
        return lines + (f"\n\nThen {request.client.then}." if request.client.then else "")

    print_answer(_answer(request, url, None, changed=True) | {"key": connection.key, "lines": lines}, text)
    for notice in find_valid_keys(call, request, of_other_hosts=request.renew):
        print_message(f"memex: {notice}")


def _write(call: Ask, request: ConnectionRequest, file: ClientFile, url: str) -> None:
    written = write_entry(call, request, file, url)
    if written.revoked:
        print_message(f"memex: {request.revoked}")
    for notice in written.notices:
        print_message(f"memex: {notice}")
    if written.ends:
        ends = result_text.format_time(written.ends, None)
        print_message(f"memex: the key in {file} works until {ends}; to create a new one, add --renew")
    print_answer(
        _answer(request, url, written.backup, changed=written.changed),
        lambda: _format_written(request, file, written.backup, changed=written.changed),
    )


def _format_written(request: ConnectionRequest, file: ClientFile, backup: Path | None, *, changed: bool) -> str:
    if not changed:
        return f"{file} already has this connection with a valid key; nothing was changed"
    lines = [f"wrote {file}" + (f"; the old file is {backup}" if backup else "")]
    lines += [f"{request.client.title} sees the workspace {request.workspace} with the key {request.key_name}"]
    return "\n".join([*lines, *([f"Then {request.client.then}."] if request.client.then else [])])


def _remove(call: Ask, request: ConnectionRequest) -> None:
    removal = remove_connection(call, request)
    for notice in removal.notices:
        print_message(f"memex: {notice}")
    nothing = f"{request.client.title} is not connected as {request.key_name}; nothing was changed"
    print_answer(
        _answer(request, None, removal.backup, changed=removal.changed), lambda: "\n".join(removal.done) or nothing
    )


def _print_clients() -> None:
    """Print the clients' keys: the valid keys without the scope `admin`."""
    keys = [key for key in ask("key.list", {}) if is_live(key) and "admin" not in key["scopes"]]
    rows = [_client_row(key) for key in keys]

    def text() -> str:
        if not rows:
            return complete_commands(f"no client is connected; to connect one: memex connect {next(iter(CLIENTS))}")
        cells = []
        for key, row in zip(keys, rows, strict=True):
            seen = result_text.format_time(row["last_used_at"], None) if row["last_used_at"] else "never"
            where = "all" if row["workspaces"] is None else ",".join(row["workspaces"])
            state = result_text.format_key_state(key, now_ms())
            cells.append((row["name"], where, ",".join(row["scopes"]), state, seen, row["revoke"]))
        heads = ("client", "workspace", "may", "key", "last seen", "to end it")
        return result_text.table(cells, heads, color=has_color(), longest=400)

    print_answer(rows, text)


def _client_row(key: dict[str, Any]) -> dict[str, Any]:
    named = key["name"] if re.fullmatch(r"[\w@.-]+", key["name"]) else key["id"]
    shown = {name: key[name] for name in ("name", "id", "workspaces", "scopes", "last_used_at")}
    return shown | {"revoke": complete_commands(f"memex key revoke {named}")}


def _answer(request: ConnectionRequest, url: str | None, backup: Path | None, *, changed: bool) -> dict[str, Any]:
    return {
        "client": request.id,
        "name": request.key_name,
        "workspace": request.workspace,
        "url": url,
        "file": str(request.file) if request.file else None,
        "backup": str(backup) if backup else None,
        "changed": changed,
    }
