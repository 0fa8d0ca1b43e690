"""Identify the caller of a request, check its rights, and decide which workspace the request is about.

Law: an unknown workspace, one that the key may not see, and none at all where one is needed give one NOT_FOUND."""

from __future__ import annotations

import math
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
TOO_FAST: Final = "too many requests; wait as long as retry_after says, then try again"


@dataclass(frozen=True, slots=True)
class Caller:
    """One HTTP request's key and the headers that narrow it.

    It lives in a ContextVar, so it is that of the very request even inside a long-lived MCP session.
    """

    key: ApiKey
    workspace: str | None = None  # X-Memory-Workspace
    toolsets: frozenset[str] | None = None  # X-MCP-Toolsets; None = all
    readonly: bool = False  # X-MCP-Readonly
    names: Names | None = None  # X-MCP-Tool-Names
    late: float = 0.0  # seconds to wait before the key's rate allows this request
    surface: str = "rest"  # or "mcp": by which of the key's surfaces it came in
    give_up_place: Callable[[], None] = field(default=lambda: None, compare=False)  # for a request that stays open


CALLER: ContextVar[Caller] = ContextVar("caller")


def check_scope(caller: Caller, scope: str) -> None:
    """PermissionDenied unless the key has `scope`; ResourceExhausted when it asks too much."""
    if caller.late:
        raise try_again_error(TOO_FAST, caller.late)
    if not caller.key.has_scope(scope):
        raise PermissionDenied(f"the key lacks the scope {scope!r}; use a key that has it")


def open_workspace(agent_access: AgentAccess, caller: Caller, name: str) -> Workspace:
    """A workspace that the key may see, or of it the namespace that the key is bound to. Raises NotFound."""
    return agent_access.workspace(name, caller.key.namespace)


def imply_namespace(caller: Caller, asked: str | None) -> str | None:
    """The namespace that a request is about: the key's, if it is bound to one. Raises NotFound when it names another."""
    bound = caller.key.namespace
    if bound is not None and asked not in (None, bound):
        raise NotFound("no such namespace, or the key may not see it; leave namespace out for the key's own")
    return asked if bound is None else bound


def visible_workspaces(agent_access: AgentAccess, caller: Caller) -> list[str]:
    """The workspaces that the request may be about, in order: the one its header names, else all that the key may see."""
    named = caller.workspace
    return [name for name in agent_access.workspaces() if caller.key.can_see(name) and named in (None, name)]


def with_workspace(caller: Caller, workspace: str) -> Caller:
    """The caller, with the request about `workspace` ("" = as it is). A header that names another one forbids it."""
    if workspace in ("", caller.workspace):
        return caller
    return replace(caller, workspace=workspace if caller.workspace is None else "")


def imply_workspace(caller: Caller) -> Caller:
    """The caller, with the request about the one workspace that its key is bound to, if no header names any."""
    bound = caller.key.workspaces
    if caller.workspace is not None or bound is None or len(bound) != 1:
        return caller
    return replace(caller, workspace=next(iter(bound)))


def try_again_error(message: str, wait: float) -> ResourceExhausted:
    """Too much for now: the same request may be made again in `wait` seconds."""
    return ResourceExhausted(message, retryable=True, retry_after=math.ceil(wait * 10) / 10)


def resolve_workspace(agent_access: AgentAccess, caller: Caller, *, named: bool = False) -> Workspace:
    """The workspace that the request names; else, unless it must be `named`, the key's only one; else `default`."""
    name = caller.workspace
    if name is None and named:
        name = ""
    if name is None:
        bound = caller.key.workspaces
        name = next(iter(bound)) if bound is not None and len(bound) == 1 else DEFAULT
    if caller.key.can_see(name):
        try:
            return open_workspace(agent_access, caller, name)
        except NotFound:
            pass
    raise NotFound(
        "no such workspace, or the key may not see it, or the request names none where it must: "
        "name one in the header X-Memory-Workspace, or make it with `memex workspace create`"
    )
