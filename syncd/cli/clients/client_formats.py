"""Compose each client's own settings for a connection to Memex: the entry of its settings file, and the lines to paste.

Each client names the page of its own documentation that defines the format."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from syncd.cli.clients.entry_editor import Syntax, put_entry

Entry: TypeAlias = dict[str, Any]
CORE: Final = "/mcp/core"  # what clients get: few tools, and no header for the workspace


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client needs to know: the name of its entry, the daemon's address, its key and workspace."""

    name: str
    url: str
    key: str
    workspace: str
    command: tuple[str, ...]  # that starts this vault's memex

    @property
    def endpoint(self) -> str:
        """The address of the tools."""
        return self.url + CORE

    @property
    def bearer(self) -> dict[str, str]:
        """The header that carries the key."""
        return {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file whose place and format the client documents; `path` is below the home folder."""

    path: str
    syntax: Syntax
    table: tuple[str, ...]  # that holds the servers by name
    newer_table: tuple[str, ...] = ()  # the same in a later form, which is used where the file has it
    other_path: str = ""  # where the client looks too, which is taken if it is there
    variable: str = ""  # the environment variable that names another folder for it
    platforms: tuple[str, ...] = ()  # the only ones that the client's documentation names a place for


@dataclass(frozen=True, slots=True)
class Client:
    """How one client is connected: by its settings file or by a command of its own, and how that is taken back."""

    title: str
    entry: Callable[[Connection], Entry]
    file: SettingsFile | None = None
    add: Callable[[Connection], str] = lambda _: ""
    remove: Callable[[str], str] = lambda _: ""
    then: str = ""


def _http(connection: Connection) -> Entry:
    return {"url": connection.endpoint, "headers": connection.bearer}


def _typed_http(connection: Connection) -> Entry:
    return {"type": "http", "url": connection.endpoint, "headers": connection.bearer}


def stdio_words(connection: Connection) -> list[str]:
    """The command of a client that starts its servers."""
    return [*connection.command, "mcp", "--workspace", connection.workspace, "--toolset", "core"]


def _stdio(connection: Connection) -> Entry:
    command, *words = stdio_words(connection)
    return {"command": command, "args": words, "env": {"MEMEX_KEY": connection.key}}


def _claude_code(connection: Connection) -> str:
    # The option of several values comes last, as in the page's own examples: before the name it would take the name too.
    header = shlex.quote(f"Authorization: Bearer {connection.key}")
    words = f"claude mcp add --transport http --scope user {connection.name} {connection.endpoint}"
    return f"{words} --header {header}"


def _vscode(connection: Connection) -> str:
    entry = {"name": connection.name, **_typed_http(connection)}
    return f"code --add-mcp {shlex.quote(json.dumps(entry))}"


def http_lines(connection: Connection) -> str:
    """What a client over HTTP needs, in words."""
    return f"Streamable HTTP:\n  {connection.endpoint}\n  with the header  Authorization: Bearer {connection.key}"


def _other(connection: Connection) -> str:
    bearer = f"Authorization: Bearer {connection.key}"
    command = shlex.join(stdio_words(connection))
    body = shlex.quote(json.dumps({"query": "what did we decide", "top_k": 3}))
    return f"""\
{http_lines(connection)}

stdio, a command that the client starts:
  MEMEX_KEY={connection.key} {command}

curl:
  curl -s {connection.url}/search -H "{bearer}" -H "Content-Type: application/json" -d {body}"""


CLIENTS: Final[Mapping[str, Client]] = {
    # code.claude.com/docs, "Connect Claude Code to tools via MCP": `claude mcp add`, scope user for all projects.
    "claude-code": Client(
        "Claude Code", _typed_http, add=_claude_code, remove=lambda name: f"claude mcp remove --scope user {name}"
    ),
    # modelcontextprotocol.io, "Connect to local MCP servers": the file's place on macOS and Windows; command, args and env.
    "claude-desktop": Client(
        "Claude Desktop",
        _stdio,
        SettingsFile(
            "Library/Application Support/Claude/claude_desktop_config.json",
            "json",
            ("mcpServers",),
            platforms=("darwin",),
        ),
        then="quit Claude Desktop completely and start it again",
    ),
    # developers.openai.com/codex, "Model Context Protocol": [mcp_servers.NAME] with url and http_headers; CODEX_HOME.
    "codex": Client(
        "Codex",
        lambda connection: {"url": connection.endpoint, "http_headers": connection.bearer},
        SettingsFile(".codex/config.toml", "toml", ("mcp_servers",), variable="CODEX_HOME"),
        then="start Codex again",
    ),
    # cursor.com/docs, "Model Context Protocol (MCP)": ~/.cursor/mcp.json for all projects; url and headers.
    "cursor": Client("Cursor", _http, SettingsFile(".cursor/mcp.json", "json", ("mcpServers",)), then="restart Cursor"),
    # code.visualstudio.com/docs, "Add MCP servers" (`code --add-mcp`) and "MCP configuration reference" (type, url, headers).
    # The reference names no path for the user profile's mcp.json, so VS Code's own command writes it.
    "vscode": Client(
        "VS Code",
        _typed_http,
        add=_vscode,
        remove=lambda name: (
            f'in VS Code, run "MCP: Open User Configuration" from the Command Palette and delete {name!r}'
        ),
    ),
    # geminicli.com/docs, "MCP servers with Gemini CLI": ~/.gemini/settings.json; httpUrl and headers.
    "gemini": Client(
        "Gemini CLI",
        lambda connection: {"httpUrl": connection.endpoint, "headers": connection.bearer},
        SettingsFile(".gemini/settings.json", "json", ("mcpServers",)),
        then="start Gemini CLI again",
    ),
    # opencode.ai/docs, "MCP servers" and "Config": ~/.config/opencode/opencode.json(c), type remote. "Migrate from V1" says
    # that V2 reads the servers of V1, which stand in `mcp`; its own stand in `mcp.servers`.
    "opencode": Client(
        "OpenCode",
        lambda connection: {"type": "remote", "url": connection.endpoint, "headers": connection.bearer},
        SettingsFile(
            ".config/opencode/opencode.json",
            "json",
            ("mcp",),
            newer_table=("mcp", "servers"),
            other_path=".config/opencode/opencode.jsonc",
        ),
        then="start OpenCode again",
    ),
    "other": Client("any other client", _typed_http, add=_other),
}


def connect_text(command: str) -> str:
    """How a client is connected, for a person who has just set a vault up; `command` calls its memex."""
    first, *others = CLIENTS
    return f"""\
Connect an AI client. Each gets a key of its own, which is shown once:
  {command} connect {first}
  (or: {", ".join(others)}; --write lets Memex write the client's settings file)"""


def paste_text(client: Client, connection: Connection, file: str) -> str:
    """What a person runs or pastes; `file` names the settings file, if the client has one."""
    if client.file is None:
        return client.add(connection)
    entry = put_entry("", client.file.syntax, (*client.file.table, connection.name), client.entry(connection))
    return f"In {file}:\n\n{entry.strip()}"


def merge_entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> Entry:
    """`new`, with what `old` says besides; names of headers count without their letter case."""
    replaced = {name.lower() for name in new}
    merged = {name: value for name, value in old.items() if name.lower() not in replaced}
    for name, value in new.items():
        before = old.get(name)
        merged[name] = merge_entries(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return merged


def key_in_entry(entry: Any) -> str:
    """The secret that stands in an entry, wherever its client has it; "" when there is none."""
    if not isinstance(entry, Mapping):
        return ""
    headers = entry.get("headers") or entry.get("http_headers")
    if isinstance(headers, Mapping):
        values = {str(name).lower(): value for name, value in headers.items()}
        return str(values.get("authorization", "")).removeprefix("Bearer ").strip()
    variables = entry.get("env")
    return str(variables.get("MEMEX_KEY", "")) if isinstance(variables, Mapping) else ""
