"""Compose the settings of each client for a connection to Memex: the entry of its settings file, and the lines to paste.

A comment at each client names the page of its documentation that defines the format."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from syncd.clients.entry_editor import Syntax, put_entry

Entry: TypeAlias = dict[str, Any]
# Names in the entries of all clients, in small letters, that only servers of one transport have.
HTTP_NAMES: Final = frozenset({"url", "httpurl", "headers", "http_headers", "env_http_headers", "bearer_token_env_var"})
STDIO_NAMES: Final = frozenset({"command", "args", "env", "env_vars", "cwd"})
CORE: Final = "/mcp/core"  # the endpoint for clients: it has few tools, and needs no header for the workspace


@dataclass(frozen=True, slots=True)
class Connection:
    """Holds the values that a client's settings need: the entry's name, the daemon's address, the key and the workspace."""

    name: str
    url: str
    key: str
    workspace: str
    command: tuple[str, ...]  # starts `memex` for this vault

    @property
    def endpoint(self) -> str:
        """Return the address of the MCP endpoint."""
        return self.url + CORE

    @property
    def bearer(self) -> dict[str, str]:
        """Return the header that carries the key."""
        return {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """Describes a settings file whose path and format the client documents; `path` is relative to the home folder."""

    path: str
    syntax: Syntax
    table: tuple[str, ...]  # keys that lead to the table of servers by name
    newer_table: tuple[str, ...] = ()  # that table in newer versions of the format; used if the file has it
    other_path: str = ""  # another path that the client reads; used if this file exists
    variable: str = ""  # the environment variable that names another folder for the file
    platforms: tuple[str, ...] = ()  # platforms for which the client documents a path; () = all


@dataclass(frozen=True, slots=True)
class Client:
    """Describes how one client is connected and disconnected: through its settings file or a command of the client."""

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
    """Return the command for clients that start their MCP servers themselves."""
    return [*connection.command, "mcp", "--workspace", connection.workspace, "--toolset", "core"]


def _stdio(connection: Connection) -> Entry:
    command, *words = stdio_words(connection)
    return {"command": command, "args": words, "env": {"MEMEX_KEY": connection.key}}


def _claude_code(connection: Connection) -> str:
    # The option --header takes several values, so it comes last, as on the page: before the name it would consume the name.
    header = shlex.quote(f"Authorization: Bearer {connection.key}")
    words = f"claude mcp add --transport http --scope user {connection.name} {connection.endpoint}"
    return f"{words} --header {header}"


def _vscode(connection: Connection) -> str:
    entry = {"name": connection.name, **_typed_http(connection)}
    return f"code --add-mcp {shlex.quote(json.dumps(entry))}"


def http_lines(connection: Connection) -> str:
    """Describe a connection over HTTP for a person."""
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
    # that V2 has its servers in `mcp.servers`, and also reads the servers of V1 in `mcp`.
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
    """Explain how to connect a client, for a person who has just set up a vault; `command` runs `memex` for the vault."""
    first, *others = CLIENTS
    return f"""\
Connect an AI client. Each client gets its own key, which Memex shows only once:
  {command} connect {first}
  (or: {", ".join(others)}; --write lets Memex write the client's settings file)"""


def paste_text(client: Client, connection: Connection, file: str) -> str:
    """Return the command to run or the lines to paste; `file` names the settings file, if the client has one."""
    return client.add(connection) if client.file is None else f"In {file}:\n\n{entry_lines(client, connection)}"


def entry_lines(client: Client, connection: Connection) -> str:
    """Return the command to run, or only the lines of the settings file."""
    if client.file is None:
        return client.add(connection)
    entry = put_entry("", client.file.syntax, (*client.file.table, connection.name), client.entry(connection))
    return entry.strip()


def without_other_transport(old: Mapping[str, Any], new: Mapping[str, Any]) -> Entry:
    """Return an earlier entry without its values for another transport than that of `new`: clients refuse an entry with both."""
    other = HTTP_NAMES if "command" in new else STDIO_NAMES
    has_other = any(name.lower() in other for name in old)
    return {
        name: value for name, value in old.items() if name.lower() not in {*other, *(["type"] if has_other else [])}
    }


def merge_entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> Entry:
    """Merge two entries: values of `new` replace those of `old`, nested tables are merged, names ignore letter case."""
    replaced = {name.lower() for name in new}
    merged = {name: value for name, value in old.items() if name.lower() not in replaced}
    for name, value in new.items():
        before = old.get(name)
        merged[name] = merge_entries(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return merged


def key_in_entry(entry: Any) -> str:
    """Return the key's secret in an entry, from a header or an environment variable; "" when it has none."""
    if not isinstance(entry, Mapping):
        return ""
    headers = entry.get("headers") or entry.get("http_headers")
    if isinstance(headers, Mapping):
        values = {str(name).lower(): value for name, value in headers.items()}
        return str(values.get("authorization", "")).removeprefix("Bearer ").strip()
    variables = entry.get("env")
    return str(variables.get("MEMEX_KEY", "")) if isinstance(variables, Mapping) else ""
