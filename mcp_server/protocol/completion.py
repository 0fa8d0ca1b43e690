"""Offer the completion of a half-typed argument: workspaces, paths of notes, and tags.

Law: nothing is offered that the request could not read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mcp.types import CompleteRequestParams, Completion, PromptReference

from index.errors import InvalidArgument, NotFound
from index.names import fold
from mcp_server.operations.caller import Caller, about, visible, workspace_of
from mcp_server.operations.wire_format import plain
from mcp_server.protocol.prompts import kind_of
from mcp_server.protocol.resources import TEMPLATE

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess

MOST: Final = 100  # values in one answer, as the protocol has it
VOCABULARY: Final = 1_000  # tags that are looked at in each workspace


def completed(agent_access: AgentAccess, caller: Caller, params: CompleteRequestParams) -> Completion:
    """The values that begin with, or else hold, what was typed; the best first. Raises InvalidArgument."""
    argument, typed = params.argument.name, params.argument.value
    named = (params.context.arguments if params.context else None) or {}
    if argument not in _arguments(params):
        raise InvalidArgument(f"no argument {argument[:64]!a} there; the list names them all")
    match argument:
        case "workspace":
            values = _best(visible(agent_access, caller), typed)
        case "path":
            values = _paths(agent_access, caller, named.get("workspace", ""), typed)
        case "tags":
            values = _tags(agent_access, caller, named.get("workspace", ""), typed)
        case _:
            values = []  # free text
    return Completion(values=[plain(value) for value in values[:MOST]], has_more=len(values) > MOST)


def _arguments(params: CompleteRequestParams) -> list[str]:
    if isinstance(params.ref, PromptReference):
        return [argument.name for argument in kind_of(params.ref.name).arguments]
    if params.ref.uri != TEMPLATE.uri_template:
        raise InvalidArgument("no such resource template; resources/templates/list names it")
    return ["workspace", "path"]


def _paths(agent_access: AgentAccess, caller: Caller, workspace: str, typed: str) -> list[str]:
    try:
        return workspace_of(agent_access, about(caller, workspace)).matching_addresses(typed, MOST + 1)
    except NotFound:
        return []


def _tags(agent_access: AgentAccess, caller: Caller, workspace: str, typed: str) -> list[str]:
    """The last of the tags that were typed, completed; those before it stay."""
    before, comma, last = typed.rpartition(",")
    begun = f"{before}{comma}{' ' if comma else ''}"
    has = {fold(tag.strip()) for tag in before.split(",")}
    names = [name for name in visible(agent_access, caller) if workspace in ("", name)]
    known = {fold(tag): tag for name in names for tag in agent_access.workspace(name).tags(VOCABULARY)}
    return [f"{begun}{tag}" for tag in _best((known[key] for key in known if key not in has), last.strip())]


def _best(values: Iterable[str], typed: str) -> list[str]:
    wanted = fold(typed)
    hits = [value for value in values if wanted in fold(value)]
    return sorted(hits, key=lambda value: not fold(value).startswith(wanted))
