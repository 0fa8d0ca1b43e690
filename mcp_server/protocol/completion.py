"""Offer completion of a half-typed argument: workspaces, paths of notes, and tags.

Law: a completion offers nothing that the request could not read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mcp.types import CompleteRequestParams, Completion, PromptReference

from index.errors import InvalidArgument, NotFound
from index.names import fold
from mcp_server.operations.caller import Caller, open_workspace, resolve_workspace, visible_workspaces, with_workspace
from mcp_server.operations.wire_format import replace_surrogates
from mcp_server.protocol.prompts import find_kind
from mcp_server.protocol.resources import TEMPLATE

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess

MOST: Final = 100  # values in one answer, the limit of the protocol
VOCABULARY: Final = 1_000  # tags that are considered in each workspace


def complete(agent_access: AgentAccess, caller: Caller, params: CompleteRequestParams) -> Completion:
    """Return the values that start with the typed text, then those that contain it. Raises InvalidArgument."""
    argument, typed = params.argument.name, params.argument.value
    named = (params.context.arguments if params.context else None) or {}
    if argument not in _argument_names(params):
        raise InvalidArgument(
            f"no argument {argument[:64]!a}; prompts/list and resources/templates/list name the arguments"
        )
    match argument:
        case "workspace":
            values = _rank_matches(visible_workspaces(agent_access, caller), typed)
        case "path":
            values = _complete_path(agent_access, caller, named.get("workspace", ""), typed)
        case "tags":
            values = _complete_tags(agent_access, caller, named.get("workspace", ""), typed)
        case _:
            values = []  # free text
    return Completion(values=[replace_surrogates(value) for value in values[:MOST]], has_more=len(values) > MOST)


def _argument_names(params: CompleteRequestParams) -> list[str]:
    if isinstance(params.ref, PromptReference):
        return [argument.name for argument in find_kind(params.ref.name).arguments]
    if params.ref.uri != TEMPLATE.uri_template:
        raise InvalidArgument("no such resource template; resources/templates/list returns all templates")
    return ["workspace", "path"]


def _complete_path(agent_access: AgentAccess, caller: Caller, workspace: str, typed: str) -> list[str]:
    try:
        return resolve_workspace(agent_access, with_workspace(caller, workspace)).matching_addresses(typed, MOST + 1)
    except NotFound:
        return []


def _complete_tags(agent_access: AgentAccess, caller: Caller, workspace: str, typed: str) -> list[str]:
    """Complete the last of the typed tags and keep the tags before it."""
    before, comma, last = typed.rpartition(",")
    begun = f"{before}{comma}{' ' if comma else ''}"
    has = {fold(tag.strip()) for tag in before.split(",")}
    names = [name for name in visible_workspaces(agent_access, caller) if workspace in ("", name)]
    known = {fold(tag): tag for name in names for tag in open_workspace(agent_access, caller, name).tags(VOCABULARY)}
    return [f"{begun}{tag}" for tag in _rank_matches((known[key] for key in known if key not in has), last.strip())]


def _rank_matches(values: Iterable[str], typed: str) -> list[str]:
    wanted = fold(typed)
    hits = [value for value in values if wanted in fold(value)]
    return sorted(hits, key=lambda value: not fold(value).startswith(wanted))
