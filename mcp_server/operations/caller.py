"""Identify the caller of a request, check its rights, and decide which workspace the request is about.

Law: an unknown workspace, a workspace that the key may not see, and a missing but required workspace all give the same NOT_FOUND."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from index.errors import NotFound, PermissionDenied, ResourceExhausted
from syncd.workspaces.api_keys import ApiKey

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess
    from syncd.workspaces.workspace import Workspace

Names: TypeAlias = Literal["safe", "dotted"]

DEFAULT: Final = "default"
TOO_FAST: Final = "too many requests; wait for retry_after seconds, then try again"


@dataclass(frozen=True, slots=True)
class Caller:
    """Hold the key of one HTTP request and the headers that narrow it.

    A ContextVar holds the caller, so it belongs to the current request even inside a long-lived MCP session.
    """

    key: ApiKey
    workspace: str | None = None  # X-Memory-Workspace, as `compose_name` returns it
    toolsets: frozenset[str] | None = None  # X-MCP-Toolsets; None = all
    readonly: bool = False  # X-MCP-Readonly
    names: Names | None = None  # X-MCP-Tool-Names
    late: float = 0.0  # seconds to wait before the key's rate allows this request
    surface: str = "rest"  # or "mcp": the interface through which the request arrived
    give_up_place: Callable[[], None] = field(default=lambda: None, compare=False)  # for a request that stays open


CALLER: ContextVar[Caller] = ContextVar("caller")


def check_scope(caller: Caller, scope: str) -> None:
    """Check the key's scope. Raises PermissionDenied without `scope`, and ResourceExhausted for too many requests."""
    if caller.late:
        raise try_again_error(TOO_FAST, caller.late)
    if not caller.key.has_scope(scope):
        raise PermissionDenied(f"the key lacks the scope {scope!r}; use a key that has it")


def open_workspace(agent_access: AgentAccess, caller: Caller, name: str) -> Workspace:
    """Open a workspace that the key may see, limited to the key's namespace if it has one. Raises NotFound."""
    key = caller.key
    return agent_access.workspace(name, key.namespace, reads_all=key.workspaces is None and key.namespace is None)


def imply_namespace(caller: Caller, asked: str | None) -> str | None:
    """Return the namespace of a request: the key's own, if it has one. Raises NotFound when the request names another."""
    bound = caller.key.namespace
    if bound is not None and asked not in (None, bound):
        raise NotFound("no such namespace, or the key may not see it; leave out namespace to use the key's own")
    return asked if bound is None else bound


def visible_workspaces(agent_access: AgentAccess, caller: Caller) -> list[str]:
    """List the workspaces of the request: the one in its header, or else all that the key may see."""
    named = caller.workspace
    return [
        name for name in agent_access.workspaces() if caller.key.can_see(name) and named in (None, compose_name(name))
    ]


def compose_name(name: str) -> str:
    """Return a workspace's name in the Unicode form in which names are compared; a Mac may give its folder another one."""
    return unicodedata.normalize("NFC", name)


def sees_workspace(agent_access: AgentAccess, caller: Caller, name: str) -> bool:
    """Return whether the request may be about the workspace with this name."""
    return compose_name(name) in map(compose_name, visible_workspaces(agent_access, caller))


def with_workspace(caller: Caller, workspace: str) -> Caller:
    """Return the caller with this workspace ("" = unchanged). A header that names another workspace forbids the change."""
    workspace = compose_name(workspace)
    if workspace in ("", caller.workspace):
        return caller
    return replace(caller, workspace=workspace if caller.workspace is None else "")


def imply_workspace(caller: Caller) -> Caller:
    """Return the caller with the only workspace of its key, if no header names a workspace."""
    bound = caller.key.workspaces
    if caller.workspace is not None or bound is None or len(bound) != 1:
        return caller
    return replace(caller, workspace=next(iter(bound)))


def try_again_error(message: str, wait: float) -> ResourceExhausted:
    """Make the error that allows the same request again in `wait` seconds."""
    return ResourceExhausted(message, retryable=True, retry_after=math.ceil(wait * 10) / 10)


def resolve_workspace(agent_access: AgentAccess, caller: Caller, *, named: bool = False) -> Workspace:
    """Open the workspace that the request names, or else the key's only one, or else `default`.

    With `named`, the request must name the workspace. Raises NotFound."""
    name = (caller if named else imply_workspace(caller)).workspace
    if name is None:
        name = "" if named else DEFAULT
    if caller.key.can_see(name):
        try:
            return open_workspace(agent_access, caller, name)
        except NotFound:
            pass
    raise NotFound(
        "no such workspace, or the key may not see it, or the request must name a workspace: "
        "name one in the header X-Memory-Workspace, or with `memex mcp -w NAME`; create one with `memex workspace create`"
    )
