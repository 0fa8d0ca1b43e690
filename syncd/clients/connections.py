"""Make and end the connections of clients: a key for each, and the entry in its settings file.

Law, tested: a secret is either returned once or written into the client's file, and is never the owner's key."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, from_dict
from syncd.cli.terminal.result_text import format_time
from syncd.clients.client_file import ClientFile, read_file, write_file
from syncd.clients.client_formats import (
    CLIENTS,
    Client,
    Connection,
    SettingsFile,
    key_in_entry,
    merge_entries,
    without_other_transport,
)
from syncd.clients.entry_editor import put_entry, read_entry, remove_entry
from syncd.clients.session_hooks import HOOK_FILES, hook_command, put_hook, remove_hook
from syncd.state.folder import expand_home
from syncd.workspaces.api_keys import make_secret

Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Any]
T = TypeVar("T")

ENTRY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
USUAL: Final = "memex"  # the name of a client's entry
LONGEST_HOST: Final = 15
SCOPES: Final = ("read", "write")


class KeyInUse(Conflict):
    """Reports that the client has a key already, and has used it."""


class ForeignEntry(Conflict):
    """Reports that the client's settings file has an entry of this name whose key is not from this vault."""


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """Describes a requested connection of one client."""

    id: str
    client: Client
    name: str
    workspace: str
    file: ClientFile | None  # None: the client has no settings file, or documents no path on this platform
    renew: bool
    command: tuple[str, ...]  # starts `memex` for this vault

    @property
    def file_name(self) -> str:
        """Return the path of the settings file, or a description of it."""
        return str(self.file or f"the settings file of {self.client.title}")

    @property
    def key_name(self) -> str:
        """Return the name of the client's key in the audit log, in commits and in lists."""
        return f"{self.id}@{_host()}" + ("" if self.name == USUAL else f" {self.name}")

    @property
    def revoked(self) -> str:
        """Return a sentence about the client's earlier key, for the case that it was revoked."""
        return f"revoked the earlier key {self.key_name}: lines that you pasted with it no longer work"

    def connection(self, url: str, secret: str) -> Connection:
        """Return the connection for the client's settings."""
        return Connection(self.name, url, secret, self.workspace, self.command)


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """Describes what was done to a settings file; `ends`: when its key expires (epoch ms), if it was kept and does.

    `revoked`: whether an earlier key of the client was revoked."""

    backup: Path | None
    changed: bool
    ends: int | None
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """Describes what was done to end a connection; `notices` name what is left, and why."""

    done: tuple[str, ...]
    notices: tuple[str, ...]
    backup: Path | None
    changed: bool


def _host() -> str:
    name = "".join(char if char.isalnum() or char in "-_" else "-" for char in socket.gethostname().partition(".")[0])
    return name[:LONGEST_HOST].strip("-") or "here"


def parse_key_name(key_name: str) -> tuple[str, str] | None:
    """Return the client and the entry's name for the name of a key that was made on this machine; None for another one."""
    match = re.fullmatch(rf"([a-z-]+)@{re.escape(_host())}(?: (.+))?", key_name)
    if match is None or match[1] not in CLIENTS:
        return None
    name = match[2] or USUAL
    return (match[1], name) if ENTRY.fullmatch(name) else None


# Files


def find_settings_file(client: Client, path: str | None = None) -> ClientFile | None:
    """Return the client's settings file: the one in `path`, otherwise its default; None if it has or documents none.

    Raises InvalidArgument for a path if the client is connected by a command."""
    usual = client.file
    if usual is None:
        if path is not None:
            raise InvalidArgument(f"{client.title} is connected by a command: leave out --file")
        return None
    if path is not None:
        return _named_file(path)
    if usual.platforms and sys.platform not in usual.platforms:
        return None
    return _usual_file(usual)


def find_hook_file(client: str, path: str | None = None) -> ClientFile:
    """Return the file with the client's hooks. Raises InvalidArgument for a client that documents none."""
    hook_file = HOOK_FILES.get(client)
    if hook_file is None:
        raise InvalidArgument(
            f"{CLIENTS[client].title} has no hooks that Memex knows: choose {' or '.join(HOOK_FILES)}"
        )
    if path is not None:
        return _named_file(path)
    if folder := os.environ.get(hook_file.variable, ""):
        return ClientFile(Path(os.path.realpath(expand_home(folder))), Path(hook_file.path).name)
    return ClientFile(Path.home(), hook_file.path)


def _named_file(path: str) -> ClientFile:
    named = Path.cwd() / expand_home(path)
    return ClientFile(Path(os.path.realpath(named.parent)), named.name)


def _usual_file(usual: SettingsFile) -> ClientFile:
    if folder := os.environ.get(usual.variable, ""):
        return ClientFile(Path(os.path.realpath(expand_home(folder))), Path(usual.path).name)
    is_other = bool(usual.other_path) and (Path.home() / usual.other_path).is_file()
    return ClientFile(Path.home(), usual.other_path if is_other else usual.path)


def edit_hooks(file: ClientFile, command: str, client: str, *, remove: bool) -> tuple[Path | None, bool]:
    """Change the file with hooks; return the path of the backup, and whether the file was changed."""
    state = read_file(file)
    try:
        text = (remove_hook if remove else put_hook)(state.text, command, client)
    except InvalidArgument as error:
        raise InvalidArgument(f"{file} was not changed: {error.message}") from error
    return (write_file(file, state, text), True) if text != state.text else (None, False)


class ServerEntries:
    """Edits the entry of one server in the text of a client's file; its errors name the file."""

    def __init__(self, file: ClientFile, request: ConnectionRequest, text: str) -> None:
        settings = request.client.file
        assert settings is not None, "a client whose file was found has one"
        self._file, self._client, self._text, self._syntax = file, request.client, text, settings.syntax
        table = settings.table
        if settings.newer_table:
            newer = self._explain(lambda: read_entry(text, self._syntax, settings.newer_table))
            if isinstance(newer, dict) and not isinstance(newer.get("type"), str):  # otherwise a server of this name
                table = settings.newer_table
        self._path = (*table, request.name)

    def read(self) -> Any:
        """Return the entry; None when there is none. Raises InvalidArgument for malformed text."""
        return self._explain(lambda: read_entry(self._text, self._syntax, self._path))

    def put(self, connection: Connection, kept: Mapping[str, Any]) -> str:
        """Return the text with the entry for this connection, merged with the values of `kept`, the earlier entry."""
        entry = self._client.entry(connection)
        entry = merge_entries(without_other_transport(kept, entry), entry)
        return self._explain(lambda: put_entry(self._text, self._syntax, self._path, entry))

    def remove(self) -> str:
        """Return the text without the entry."""
        return self._explain(lambda: remove_entry(self._text, self._syntax, self._path))

    def _explain(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except InvalidArgument as error:
            raise InvalidArgument(
                f"{self._file} was not changed: {error.message}. Correct the file, or paste the lines yourself"
            ) from error


# Connecting


def make_connection(ask: Ask, request: ConnectionRequest, url: str) -> Connection:
    """Create the client's key, and return the connection with its secret.

    Raises KeyInUse, and NotFound if the workspace does not exist."""
    _check_new_key(ask, request)
    secret = make_secret()
    _replace_key(ask, request, secret)
    return request.connection(url, secret)


def write_entry(ask: Ask, request: ConnectionRequest, file: ClientFile, url: str) -> WrittenEntry:
    """Write the entry into the client's file, unless it is already there with a valid key.

    Raises KeyInUse, or ForeignEntry if the file has an entry of that name whose key is not from this vault; with `renew`, it
    replaces both."""
    state = read_file(file)
    servers = ServerEntries(file, request, state.text)
    entry = servers.read()
    is_ours = entry is not None and _is_ours(ask, entry)
    if entry is not None and not request.renew and not is_ours:
        raise ForeignEntry(f"{file} has an entry {request.name!r} whose key is not from this vault")
    secret, ends = _reusable_secret(ask, request, entry)
    earlier = None if secret else _check_new_key(ask, request)
    made = secret or make_secret()
    text = servers.put(request.connection(url, made), entry if is_ours else {})  # values that the owner added stay
    written = ServerEntries(file, request, text)
    changed = written.read() != entry
    backup = write_file(file, state, text) if changed else None  # first: if it fails, the earlier key must stay valid
    if not secret:
        try:
            _replace_key(ask, request, made)
        except MemexError:
            write_file(file, read_file(file), state.text or written.remove())
            raise
    return WrittenEntry(backup, changed, ends, earlier is not None)


def _check_new_key(ask: Ask, request: ConnectionRequest) -> dict[str, Any] | None:
    """Return the earlier key that a new one replaces: one that was never used, or any with `renew`; None if there is none.

    Raises KeyInUse if the earlier key is in use, and NotFound if the workspace does not exist."""
    names = [row["name"] for row in ask("workspace.list", {})]
    if request.workspace not in names:
        raise NotFound(
            f"no workspace {request.workspace!r}; there are: {', '.join(names) or 'none'}. To create it: memex workspace create "
            f"{shlex.quote(request.workspace)}"
        )
    earlier = find_key(ask, request.key_name)
    if earlier is not None and earlier["last_used_at"] and not request.renew:
        seen = format_time(earlier["last_used_at"], None)
        raise KeyInUse(f"the key {request.key_name} is in use already: it was last used {seen}")
    return earlier


def _replace_key(ask: Ask, request: ConnectionRequest, secret: str) -> None:
    """Create the client's key with this secret, and revoke the earlier one."""
    rights = {"workspaces": [request.workspace], "scopes": list(SCOPES)}
    ask("key.replace", {"name": request.key_name, **rights, "secret": secret})


def _reusable_secret(ask: Ask, request: ConnectionRequest, entry: Any) -> tuple[str, int | None]:
    """Return the secret in the client's entry and its expiry time, if the key has exactly the requested rights.

    Otherwise returns "" and None."""
    secret = key_in_entry(entry)
    key = ask("key.check", {"secret": secret}) if secret and not request.renew else None
    asked = {
        "name": request.key_name,
        "workspaces": [request.workspace],
        "scopes": list(SCOPES),
        "namespace": None,
    }
    return (secret, key["expires_at"]) if key is not None and asked.items() <= key.items() else ("", None)


def _is_ours(ask: Ask, entry: Any) -> bool:
    """Return whether the key in an entry is or was a key of this vault."""
    secret = key_in_entry(entry)
    return any(secret.startswith(f"mx_{key['id']}_") for key in ask("key.list", {}))


def find_key(ask: Ask, name: str) -> dict[str, Any] | None:
    """Return the key of this name that was not revoked; None if there is none."""
    keys = (key for key in ask("key.list", {}) if key["name"] == name and not key["revoked_at"])
    return next(keys, None)


def _reworded(error: MemexError, message: str) -> MemexError:
    return from_dict(error.as_dict() | {"message": message})


# Ending a connection


def remove_connection(ask: Ask, request: ConnectionRequest) -> Removal:
    """Revoke the key, and remove the entry from the file if its key belongs to this vault, and the vault's hook."""
    backup, taken, done, notices = None, False, list[str](), list[str]()
    key = find_key(ask, request.key_name)
    if key is not None:
        ask("key.revoke", {"name": key["id"]})
        done.append(f"revoked the key {request.key_name}")
    if request.file is not None:
        try:
            taken, backup, foreign = _remove_entry(ask, request, request.file)
        except MemexError as error:
            message = "; ".join([*done, error.message])
            raise _reworded(error, f"{message}. The file may still contain the entry {request.name!r}") from error
        done += [f"removed the entry {request.name!r} from {request.file}"] if taken else []
        notices += [foreign] if foreign else []
    if request.id in HOOK_FILES:
        hook_backup = _remove_hook(request, done, notices)
        backup = backup or hook_backup
    changed = bool(done)
    if rest := request.client.remove(request.name):
        done.append(f"to remove the entry: {rest}")
    return Removal(tuple(done), tuple(notices), backup, changed)


def _remove_hook(request: ConnectionRequest, done: list[str], notices: list[str]) -> Path | None:
    """Remove the client's hook, and return the backup of its file.

    A file that can't be edited becomes a notice, because the key is gone already."""
    file = find_hook_file(request.id)
    command = hook_command(request.command, request.id, request.workspace)
    try:
        backup, changed = edit_hooks(file, command, request.id, remove=True)
    except MemexError as error:
        notices.append(f"{error.message}. It may still contain the hook of this vault")
        return None
    done += [f"removed the hook from {file}; the old file is {backup}"] if changed else []
    return backup


def _remove_entry(ask: Ask, request: ConnectionRequest, file: ClientFile) -> tuple[bool, Path | None, str]:
    """Remove the entry unless its key belongs to another vault; return whether it was removed, the backup, and why it was not."""
    state = read_file(file)
    servers = ServerEntries(file, request, state.text)
    entry = servers.read()
    if entry is None:
        return False, None, ""
    if not _is_ours(ask, entry):
        return False, None, f"kept the entry {request.name!r} in {file}: its key is not from this vault"
    return True, write_file(file, state, servers.remove()), ""
