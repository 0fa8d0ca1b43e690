"""Define the command `connect`: create a key for a client, print its settings or write its settings file, list clients.

Law, tested: a secret is either printed once or written into the client's file, and is never the owner's key."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, from_dict
from syncd.cli.clients.client_file import ClientFile, check_writable, read_file, write_file
from syncd.cli.clients.client_formats import (
    CLIENTS,
    Client,
    Connection,
    SettingsFile,
    key_in_entry,
    merge_entries,
    paste_text,
)
from syncd.cli.clients.entry_editor import put_entry, read_entry, remove_entry
from syncd.cli.clients.session_hooks import HOOK_FILES, hook_command, put_hook, remove_hook
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    load_settings,
    now,
    open_session,
    print_answer,
    print_message,
)
from syncd.cli.framework.completion import workspaces
from syncd.cli.framework.daemon_address import client_url, memex_words
from syncd.cli.terminal import result_text

Call: TypeAlias = Callable[[str, Mapping[str, Any]], Any]
T = TypeVar("T")

ENTRY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
USUAL: Final = "memex"  # the name of a client's entry
LONGEST_HOST: Final = 15
SCOPES: Final = ("read", "write")


@dataclass(frozen=True, slots=True)
class Wish:
    """Describes a requested connection of one client."""

    id: str
    client: Client
    name: str
    workspace: str
    file: ClientFile | None  # None: the client has no settings file, or documents no path on this platform
    renew: bool
    command: tuple[str, ...]  # starts `memex` for this vault

    @property
    def key_name(self) -> str:
        """Return the name of the client's key in the audit log, in commits and in lists."""
        host = "".join(
            char if char.isalnum() or char in "-_" else "-" for char in socket.gethostname().partition(".")[0]
        )
        return f"{self.id}@{host[:LONGEST_HOST].strip('-') or 'here'}" + ("" if self.name == USUAL else f" {self.name}")

    def connection(self, url: str, secret: str) -> Connection:
        """Return the connection for the client's settings."""
        return Connection(self.name, url, secret, self.workspace, self.command)


@click.command(cls=Command)
@click.argument("client", metavar="CLIENT", required=False, type=click.Choice(list(CLIENTS)))
@click.option(
    "--workspace",
    "-w",
    default="default",
    show_default=True,
    shell_complete=workspaces,
    help="The workspace that the client sees.",
)
@click.option(
    "--write", is_flag=True, help="Write the client's settings file, and keep a copy of the old one beside it."
)
@click.option(
    "--hooks",
    is_flag=True,
    help="Let each session of claude-code or codex begin with the context of the workspace; see `memex context`.",
)
@click.option("--file", "path", type=click.Path(), help="The client's settings file, if it is not the usual one.")
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
    path: str | None,
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
        _change_hooks(client, workspace, command, path=path, remove=remove)
        return
    wish = Wish(client, known, name, workspace, _find_file(known, path), renew, command)
    with open_session() as call:
        if remove:
            _remove(call, wish)
        elif write:
            _write(call, wish, _require_file(wish), client_url(chosen))
        else:
            _print(call, wish, client_url(chosen))


def _find_hook_file(client: str, path: str | None = None) -> ClientFile:
    """Return the file with the client's hooks. Raises InvalidArgument for a client that documents none."""
    hook_file = HOOK_FILES.get(client)
    if hook_file is None:
        raise InvalidArgument(
            f"{CLIENTS[client].title} has no hooks that Memex knows: choose {' or '.join(HOOK_FILES)}"
        )
    if path is not None:
        named = Path.cwd() / Path(path).expanduser()
        return ClientFile(Path(os.path.realpath(named.parent)), named.name)
    if folder := os.environ.get(hook_file.variable, ""):
        return ClientFile(Path(os.path.realpath(Path(folder).expanduser())), Path(hook_file.path).name)
    return ClientFile(Path.home(), hook_file.path)


def _change_hooks(client: str, workspace: str, words: Sequence[str], *, path: str | None, remove: bool) -> None:
    """Install the hook at the start of a session, or remove it; `words` start `memex` for this vault."""
    file, command = _find_hook_file(client, path), hook_command(words, client, workspace)
    backup, changed = _edit_hooks(file, command, client, remove=remove)
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


def _edit_hooks(file: ClientFile, command: str, client: str, *, remove: bool) -> tuple[Path | None, bool]:
    """Change the file with hooks; return the path of the backup, and whether the file was changed."""
    state = read_file(file)
    try:
        text = (remove_hook if remove else put_hook)(state.text, command, client)
    except InvalidArgument as error:
        raise InvalidArgument(f"{file} was not changed: {error.message}") from error
    return (write_file(file, state, text), True) if text != state.text else (None, False)


def _find_file(client: Client, path: str | None) -> ClientFile | None:
    """Return the client's settings file: the one in `path`, otherwise its default; None if it has or documents none.

    Raises InvalidArgument for a path if the client is connected by a command."""
    usual = client.file
    if usual is None:
        if path is not None:
            raise InvalidArgument(f"{client.title} is connected by a command: leave out --file")
        return None
    if path is not None:
        named = Path.cwd() / Path(path).expanduser()
        return ClientFile(Path(os.path.realpath(named.parent)), named.name)
    if usual.platforms and sys.platform not in usual.platforms:
        return None
    return _usual_file(usual)


def _usual_file(usual: SettingsFile) -> ClientFile:
    if folder := os.environ.get(usual.variable, ""):
        return ClientFile(Path(os.path.realpath(Path(folder).expanduser())), Path(usual.path).name)
    is_other = bool(usual.other_path) and (Path.home() / usual.other_path).is_file()
    return ClientFile(Path.home(), usual.other_path if is_other else usual.path)


def _require_file(wish: Wish) -> ClientFile:
    if wish.client.file is None:
        raise InvalidArgument(
            f"{wish.client.title} writes its own settings: leave out --write and run the printed line"
        )
    if wish.file is None:
        raise InvalidArgument(
            f"{wish.client.title} has no documented settings file on this system: name the file with --file"
        )
    return wish.file


def _print(call: Call, wish: Wish, url: str) -> None:
    """Create a key, and print the lines with it; Memex never shows the key again."""
    connection = wish.connection(url, _make_key(call, wish))
    lines = paste_text(wish.client, connection, str(wish.file or f"the settings file of {wish.client.title}"))

    def text() -> str:
        print_message(
            f"memex: created the key {wish.key_name} for the workspace {wish.workspace}; Memex shows it only now"
        )
        if wish.file is not None:
            print_message(f"memex: to let Memex write the file instead: memex connect {wish.id} --write")
        return lines + (f"\n\nThen {wish.client.then}." if wish.client.then else "")

    print_answer(_answer(wish, url, None, changed=True) | {"key": connection.key, "lines": lines}, text)


def _write(call: Call, wish: Wish, file: ClientFile, url: str) -> None:
    """Write the entry into the client's file, unless it is already there with a valid key.

    Raises Conflict if the file has an entry of that name whose key is not from this vault, except with --renew."""
    state = read_file(file)
    servers = ServerEntries(file, wish, state.text)
    entry = servers.read()
    is_ours = entry is not None and _is_ours(call, entry)
    if entry is not None and not wish.renew and not is_ours:
        raise Conflict(
            f"{file} has an entry {wish.name!r} whose key is not from this vault: to add a second entry, choose another --name; to "
            "replace the entry, add --renew"
        )
    kept = entry if is_ours else {}  # values that the owner added to the entry stay
    servers.put(wish.connection(url, "-"), kept)  # a file that can't be edited is refused before a key is made
    secret, ends = _reusable_secret(call, wish, entry)
    if not secret:
        check_writable(file)  # check this before an old key is revoked
    ends_key = not secret and _find_key(call, wish.key_name) is not None
    made = secret or _make_key(call, wish)
    try:
        text = servers.put(wish.connection(url, made), kept)
        changed = ServerEntries(file, wish, text).read() != entry
        backup = write_file(file, state, text) if changed else None
    except BaseException as error:
        if not secret:  # the new key was written nowhere
            call("key.revoke", {"name": wish.key_name})
        if ends_key and isinstance(error, MemexError):
            raise _reworded(error, f"revoked the key {wish.key_name}; {error.message}") from error
        raise
    if ends:
        print_message(
            f"memex: the key in {file} works until {result_text.format_time(ends, None)}; to create a new one, add --renew"
        )
    print_answer(
        _answer(wish, url, backup, changed=changed), lambda: _format_written(wish, file, backup, changed=changed)
    )


def _format_written(wish: Wish, file: ClientFile, backup: Path | None, *, changed: bool) -> str:
    if not changed:
        return f"{file} already has this connection with a valid key; nothing was changed"
    lines = [f"wrote {file}" + (f"; the old file is {backup}" if backup else "")]
    lines += [f"{wish.client.title} sees the workspace {wish.workspace} with the key {wish.key_name}"]
    return "\n".join([*lines, *([f"Then {wish.client.then}."] if wish.client.then else [])])


def _remove(call: Call, wish: Wish) -> None:
    """Revoke the key, and remove the entry from the file if its key belongs to this vault."""
    backup, taken, done = None, False, []
    key = _find_key(call, wish.key_name)
    if key is not None:
        call("key.revoke", {"name": key["id"]})
        done.append(f"revoked the key {wish.key_name}")
    if wish.file is not None:
        try:
            taken, backup = _remove_entry(call, wish, wish.file)
        except MemexError as error:
            message = "; ".join([*done, error.message])
            raise _reworded(error, f"{message}. The file may still contain the entry {wish.name!r}") from error
        done += [f"removed the entry {wish.name!r} from {wish.file}"] if taken else []
    if wish.id in HOOK_FILES:
        done += _remove_hook(wish)
    if rest := wish.client.remove(wish.name):
        done.append(f"to remove the entry: {rest}")
    nothing = f"{wish.client.title} is not connected as {wish.key_name}; nothing was changed"
    print_answer(
        _answer(wish, None, backup, changed=taken or key is not None), lambda: "\n".join(done) if done else nothing
    )


def _remove_hook(wish: Wish) -> list[str]:
    """Remove the client's hook; return what was done. A file that can't be edited is reported, because the key is gone already."""
    file = _find_hook_file(wish.id)
    try:
        changed = _edit_hooks(file, hook_command(wish.command, wish.id, wish.workspace), wish.id, remove=True)[1]
    except MemexError as error:
        print_message(f"memex: {error.message}. It may still contain the hook of this vault")
        return []
    return [f"removed the hook from {file}"] if changed else []


def _reworded(error: MemexError, message: str) -> MemexError:
    return from_dict(error.as_dict() | {"message": message})


def _remove_entry(call: Call, wish: Wish, file: ClientFile) -> tuple[bool, Path | None]:
    """Remove the entry unless its key belongs to another vault; return whether it was removed, and the backup's path."""
    state = read_file(file)
    servers = ServerEntries(file, wish, state.text)
    entry = servers.read()
    if entry is None:
        return False, None
    if not _is_ours(call, entry):
        print_message(f"memex: kept the entry {wish.name!r} in {file}: its key is not from this vault")
        return False, None
    return True, write_file(file, state, servers.remove())


class ServerEntries:
    """Edits the entry of one server in the text of a client's file; its errors name the file."""

    def __init__(self, file: ClientFile, wish: Wish, text: str) -> None:
        settings = wish.client.file
        assert settings is not None, "a client whose file was found has one"
        self._file, self._client, self._text, self._syntax = file, wish.client, text, settings.syntax
        table = settings.table
        if settings.newer_table:
            newer = self._explain(lambda: read_entry(text, self._syntax, settings.newer_table))
            if isinstance(newer, dict) and not isinstance(newer.get("type"), str):  # otherwise a server of this name
                table = settings.newer_table
        self._path = (*table, wish.name)

    def read(self) -> Any:
        """Return the entry; None when there is none. Raises InvalidArgument for malformed text."""
        return self._explain(lambda: read_entry(self._text, self._syntax, self._path))

    def put(self, connection: Connection, kept: Mapping[str, Any]) -> str:
        """Return the text with the entry for this connection, merged with the values of `kept`, the earlier entry."""
        entry = merge_entries(kept, self._client.entry(connection))
        return self._explain(lambda: put_entry(self._text, self._syntax, self._path, entry))

    def remove(self) -> str:
        """Return the text without the entry."""
        return self._explain(lambda: remove_entry(self._text, self._syntax, self._path))

    def _explain(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except InvalidArgument as error:
            raise InvalidArgument(
                f"{self._file} was not changed: {error.message}. Correct the file, or leave out --write and paste the lines"
            ) from error


def _print_clients() -> None:
    """Print the clients' keys: the valid keys without the scope `admin`."""
    keys = [key for key in ask("key.list", {}) if _is_live(key) and "admin" not in key["scopes"]]
    rows = [_client_row(key) for key in keys]

    def text() -> str:
        if not rows:
            return f"no client is connected; to connect one: memex connect {next(iter(CLIENTS))}"
        cells = []
        for key, row in zip(keys, rows, strict=True):
            seen = result_text.format_time(row["last_used_at"], None) if row["last_used_at"] else "never"
            where = "all" if row["workspaces"] is None else ",".join(row["workspaces"])
            state = result_text.format_key_state(key, now())
            cells.append((row["name"], where, ",".join(row["scopes"]), state, seen, row["revoke"]))
        heads = ("client", "workspace", "may", "key", "last seen", "to end it")
        return result_text.table(cells, heads, color=has_color())

    print_answer(rows, text)


def _client_row(key: dict[str, Any]) -> dict[str, Any]:
    named = key["name"] if re.fullmatch(r"[\w@.-]+", key["name"]) else key["id"]
    shown = {name: key[name] for name in ("name", "id", "workspaces", "scopes", "last_used_at")}
    return shown | {"revoke": f"memex key revoke {named}"}


def _make_key(call: Call, wish: Wish) -> str:
    """Create the client's key and return its secret. An earlier key of that name is revoked if it was never used, or with --renew.

    Raises Conflict if the earlier key is in use, and NotFound if the workspace does not exist."""
    names = [row["name"] for row in call("workspace.list", {})]
    if wish.workspace not in names:  # check this before an old key is revoked
        raise NotFound(
            f"no workspace {wish.workspace!r}; there are: {', '.join(names) or 'none'}. To create it: memex workspace create "
            f"{shlex.quote(wish.workspace)}"
        )
    before = _find_key(call, wish.key_name)
    if before is not None:
        if before["last_used_at"] and not wish.renew:
            seen = result_text.format_time(before["last_used_at"], None)
            raise Conflict(
                f"{wish.client.title} is already connected: the key {wish.key_name} was last used {seen}. To replace that key, add "
                f"--renew; for a second connection, add --name"
            )
        call("key.revoke", {"name": before["id"]})
    made = call("key.create", {"name": wish.key_name, "workspaces": [wish.workspace], "scopes": list(SCOPES)})
    return str(made["key"])


def _reusable_secret(call: Call, wish: Wish, entry: Any) -> tuple[str, int | None]:
    """Return the secret in the client's entry and its expiry time, if the key has exactly the requested rights.

    Otherwise returns "" and None."""
    secret = key_in_entry(entry)
    key = call("key.check", {"secret": secret}) if secret and not wish.renew else None
    asked = {"name": wish.key_name, "workspaces": [wish.workspace], "scopes": list(SCOPES), "namespace": None}
    return (secret, key["expires_at"]) if key is not None and asked.items() <= key.items() else ("", None)


def _is_ours(call: Call, entry: Any) -> bool:
    """Return whether the key in an entry is or was a key of this vault."""
    secret = key_in_entry(entry)
    return any(secret.startswith(f"mx_{key['id']}_") for key in call("key.list", {}))


def _find_key(call: Call, name: str) -> dict[str, Any] | None:
    keys = (key for key in call("key.list", {}) if key["name"] == name and not key["revoked_at"])
    return next(keys, None)


def _is_live(key: dict[str, Any]) -> bool:
    return not key["revoked_at"] and (not key["expires_at"] or key["expires_at"] > now())


def _answer(wish: Wish, url: str | None, backup: Path | None, *, changed: bool) -> dict[str, Any]:
    return {
        "client": wish.id,
        "name": wish.key_name,
        "workspace": wish.workspace,
        "url": url,
        "file": str(wish.file) if wish.file else None,
        "backup": str(backup) if backup else None,
        "changed": changed,
    }
