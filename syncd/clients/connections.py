"""Make and end the connections of clients: a key for each, and the entry in its settings file.

Law, tested: a secret is either returned once or written into the client's file, and is never the owner's key."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, from_dict
from index.timings import now_ms
from syncd.cli.terminal.result_text import format_time
from syncd.clients.client_file import ClientFile, read_file, write_file
from syncd.clients.client_formats import (
    CLIENTS,
    Client,
    Connection,
    key_in_entry,
    merge_entries,
    without_other_transport,
)
from syncd.clients.entry_editor import put_entry, read_entry, remove_entry
from syncd.clients.session_hooks import HOOK_FILES, hook_command, put_hook, remove_hook
from syncd.state.folder import expand_home

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

    def pending_name(self, secret: str) -> str:
        """Return the name of a new key until the client's file has it: as if made on a host that has no other key."""
        return f"{self.id}@+{_key_id(secret)}" + ("" if self.name == USUAL else f" {self.name}")

    def is_named(self, key_name: str) -> bool:
        """Return whether a key of this name was made for this connection, whatever the name of the host was."""
        id, _, rest = key_name.partition("@")
        host, _, name = rest.partition(" ")
        return id == self.id and bool(host) and (name or USUAL) == self.name

    @property
    def revoked(self) -> str:
        """Return a sentence about the client's earlier key, for the case that it was revoked."""
        return f"revoked the earlier key {self.key_name}: settings with it no longer work"

    def connection(self, url: str, secret: str) -> Connection:
        """Return the connection for the client's settings."""
        return Connection(self.name, url, secret, self.workspace, self.command)


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """Describes what was done to a settings file; `ends`: when its key expires (epoch ms), if it was kept and does.

    `revoked`: whether an earlier key of the client was revoked; `notices` name the other keys, revoked or still valid."""

    backup: Path | None
    changed: bool
    ends: int | None
    revoked: bool = False
    notices: tuple[str, ...] = ()


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
    is_other = bool(usual.other_path) and (Path.home() / usual.other_path).is_file()
    return _usual_file(usual.other_path if is_other else usual.path, usual.variable)


def find_hook_file(client: str, path: str | None = None) -> ClientFile:
    """Return the file with the client's hooks. Raises InvalidArgument for a client that documents none."""
    hook_file = HOOK_FILES.get(client)
    if hook_file is None:
        raise InvalidArgument(
            f"{CLIENTS[client].title} has no hooks that Memex knows: choose {' or '.join(HOOK_FILES)}"
        )
    if path is not None:
        return _named_file(path)
    return _usual_file(hook_file.path, hook_file.variable)


def _named_file(path: str) -> ClientFile:
    named = Path.cwd() / expand_home(path)
    return ClientFile(Path(os.path.realpath(named.parent)), named.name)


def _usual_file(path: str, variable: str) -> ClientFile:
    """Return the file at `path` below the home folder, or in the folder that an environment variable names."""
    if folder := os.environ.get(variable, ""):
        return ClientFile(Path(os.path.realpath(expand_home(folder))), Path(path).name)
    return ClientFile(Path.home(), path)


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

    Raises KeyInUse, also if the client's settings file has the key, and NotFound if the workspace does not exist."""
    if _check_new_key(ask, request) and not request.renew:
        _refuse_written_key(ask, request)
    secret = _make_secret()
    _replace_key(ask, request, secret, request.key_name)
    return request.connection(url, secret)


def write_entry(ask: Ask, request: ConnectionRequest, file: ClientFile, url: str) -> WrittenEntry:
    """Write the entry into the client's file, unless it is already there with a valid key.

    A new key is created before the file is written, and the earlier one revoked after that, so the key in the file is
    always valid.

    Raises KeyInUse, or ForeignEntry if the file has an entry of that name whose key is not from this vault; with `renew`, it
    replaces both."""
    state = read_file(file)
    servers = ServerEntries(file, request, state.text)
    entry = servers.read()
    entry_key = _key_of_entry(ask, entry)
    if entry is not None and not request.renew and entry_key is None:
        raise ForeignEntry(f"{file} has an entry {request.name!r} whose key is not from this vault")
    secret, ends = _reusable_secret(ask, request, entry)
    earlier = None if secret else _check_new_key(ask, request)
    made = secret or _make_secret()
    text = servers.put(request.connection(url, made), entry if entry_key else {})  # values that the owner added stay
    if secret:
        changed = ServerEntries(file, request, text).read() != entry
        return WrittenEntry(write_file(file, state, text) if changed else None, changed, ends)
    _replace_key(ask, request, made, request.key_name if earlier is None else request.pending_name(made))
    try:
        backup = write_file(file, state, text)
    except BaseException:  # also Ctrl-C: no key stays that is in no file
        with suppress(MemexError):
            if read_file(file).text != text:
                ask("key.revoke", {"name": _key_id(made)})
        raise
    if earlier is not None:  # last: until here, the earlier key must stay valid
        ask("key.rename", {"id": _key_id(made), "name": request.key_name})
    ended = _revoke_entry_key(ask, request, entry_key)
    notices = (*ended, *find_valid_keys(ask, request, entry_key, of_other_hosts=request.renew))
    return WrittenEntry(backup, True, ends, earlier is not None, notices)


def _make_secret() -> str:
    from syncd.workspaces.api_keys import make_secret  # noqa: PLC0415 - it brings SQLite, which other commands don't need

    return make_secret()


def _key_id(secret: str) -> str:
    return secret.split("_")[1]


def _check_new_key(ask: Ask, request: ConnectionRequest) -> dict[str, Any] | None:
    """Return the earlier key that a new one replaces: one that was never used, or any with `renew`; None if there is none.

    Raises KeyInUse if the earlier key is in use, and NotFound if the workspace does not exist."""
    names = [row["name"] for row in ask("workspace.list", {})]
    if _compose(request.workspace) not in map(_compose, names):
        raise NotFound(
            f"no workspace {request.workspace!r}; there are: {', '.join(names) or 'none'}. To create it: memex workspace create "
            f"{shlex.quote(request.workspace)}"
        )
    earlier = find_key(ask, request.key_name)
    if earlier is not None and earlier["last_used_at"] and not request.renew:
        seen = format_time(earlier["last_used_at"], None)
        raise KeyInUse(f"the key {request.key_name} is in use already: it was last used {seen}")
    return earlier


def _refuse_written_key(ask: Ask, request: ConnectionRequest) -> None:
    """Raise KeyInUse if the client's settings file has the valid key of this name: a new key would revoke it."""
    secret = ""
    with suppress(MemexError):  # the client can't read this file either
        if request.file is not None:
            secret = key_in_entry(ServerEntries(request.file, request, read_file(request.file).text).read())
    key = ask("key.check", {"secret": secret}) if secret else None
    if key is not None and key["name"] == request.key_name:
        raise KeyInUse(f"the key {request.key_name} is in {request.file} already")


def _compose(workspace: str) -> str:
    return unicodedata.normalize("NFC", workspace)


def _replace_key(ask: Ask, request: ConnectionRequest, secret: str, name: str) -> None:
    """Create the client's key with this secret and name, and revoke the earlier one of this name."""
    rights = {"workspaces": [request.workspace], "scopes": list(SCOPES)}
    ask("key.replace", {"name": name, **rights, "secret": secret})


def _reusable_secret(ask: Ask, request: ConnectionRequest, entry: Any) -> tuple[str, int | None]:
    """Return the secret in the client's entry and its expiry time, if the key has exactly the requested rights.

    Otherwise returns "" and None."""
    secret = key_in_entry(entry)
    key = ask("key.check", {"secret": secret}) if secret and not request.renew else None
    asked = {
        "name": request.key_name,
        "workspaces": [_compose(request.workspace)],  # as the daemon lists them
        "scopes": list(SCOPES),
        "namespace": None,
    }
    return (secret, key["expires_at"]) if key is not None and asked.items() <= key.items() else ("", None)


def _key_of_entry(ask: Ask, entry: Any) -> dict[str, Any] | None:
    """Return the key in an entry if it is or was a key of this vault; None otherwise."""
    secret = key_in_entry(entry)
    return next((key for key in ask("key.list", {}) if secret.startswith(f"mx_{key['id']}_")), None)


def _revoke_entry_key(ask: Ask, request: ConnectionRequest, key: Mapping[str, Any] | None) -> list[str]:
    """Revoke the key of a removed or replaced entry if it was made for this client under an earlier host name; return what was done."""
    if key is None or key["revoked_at"] or key["name"] == request.key_name or not request.is_named(key["name"]):
        return []
    ask("key.revoke", {"name": key["id"]})
    return [f"revoked the key {key['name']}"]


def find_valid_keys(
    ask: Ask, request: ConnectionRequest, entry_key: Mapping[str, Any] | None = None, *, of_other_hosts: bool
) -> list[str]:
    """Return a notice for each key that a new key or a removal leaves valid: that of the entry, and those of other host names."""
    entry_id = entry_key["id"] if entry_key else ""
    return [
        f"the key {key['name']} is still valid; to revoke it: memex key revoke {key['id']}"
        for key in ask("key.list", {})
        if is_live(key) and key["name"] != request.key_name
        and (key["id"] == entry_id or (of_other_hosts and request.is_named(key["name"])))
    ]  # fmt: skip


def is_live(key: Mapping[str, Any]) -> bool:
    """Return whether a key is neither revoked nor expired."""
    return not key["revoked_at"] and (not key["expires_at"] or key["expires_at"] > now_ms())


def find_key(ask: Ask, name: str) -> dict[str, Any] | None:
    """Return the key of this name that was not revoked; None if there is none."""
    keys = (key for key in ask("key.list", {}) if key["name"] == name and not key["revoked_at"])
    return next(keys, None)


def _reworded(error: MemexError, message: str) -> MemexError:
    return from_dict(error.as_dict() | {"message": message})


# Ending a connection


def remove_connection(ask: Ask, request: ConnectionRequest) -> Removal:
    """Revoke the key, and remove the entry from the file if its key belongs to this vault, and the vault's hook."""
    backup, entry_key, done, notices = None, None, list[str](), list[str]()
    key = find_key(ask, request.key_name)
    if key is not None:
        ask("key.revoke", {"name": key["id"]})
        done.append(f"revoked the key {request.key_name}")
    if request.file is not None:
        try:
            backup, entry_key = _remove_entry(ask, request, request.file, done, notices)
        except MemexError as error:
            message = "; ".join([*done, error.message])
            raise _reworded(error, f"{message}. The file may still contain the entry {request.name!r}") from error
    notices += find_valid_keys(ask, request, entry_key, of_other_hosts=True)
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


def _remove_entry(
    ask: Ask, request: ConnectionRequest, file: ClientFile, done: list[str], notices: list[str]
) -> tuple[Path | None, dict[str, Any] | None]:
    """Remove the entry unless its key belongs to another vault; return the backup and the entry's key."""
    state = read_file(file)
    servers = ServerEntries(file, request, state.text)
    entry = servers.read()
    key = _key_of_entry(ask, entry)
    if key is None:
        kept = f"kept the entry {request.name!r} in {file}: its key is not from this vault"
        notices += [kept] if entry is not None else []
        return None, None
    done += _revoke_entry_key(ask, request, key)
    backup = write_file(file, state, servers.remove())
    done.append(f"removed the entry {request.name!r} from {file}")
    return backup, key
