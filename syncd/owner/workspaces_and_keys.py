"""Carry out the owner's commands on workspaces, on their contexts, and on the API keys that open them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from index.errors import InvalidArgument
from index.timings import now_ms
from syncd.daemon.control_socket import Arguments, Operation
from syncd.graph.perspectives import Perspectives
from syncd.sharing.shares import Shares
from syncd.state.folder import KEY_FILE, holds_key, writing_private
from syncd.workspaces.agent_access import AgentAccess
from syncd.workspaces.api_keys import SECRET, ApiKey, ApiKeys


def workspace_operations(agent_access: AgentAccess, perspectives: Perspectives, shares: Shares) -> dict[str, Operation]:
    """Return the operations that create, list and delete workspaces, and that read their contexts."""

    def create(arguments: Arguments, _: Any) -> dict[str, Any]:
        name = agent_access.spell_workspace(arguments["name"])
        is_new = name not in agent_access.workspaces()
        if is_new:
            shares.clear(name)  # of a folder of this name that was removed by other means
        return {"name": agent_access.create_workspace(name).name, "created": is_new}

    def list_workspaces(_: Arguments, __: Any) -> list[dict[str, Any]]:
        return [{"name": name} for name in agent_access.workspaces()]

    def count_notes(_: Arguments, __: Any) -> list[dict[str, Any]]:
        return [{"name": name, "notes": _count_notes(agent_access, name)} for name in agent_access.workspaces()]

    def delete(arguments: Arguments, _: Any) -> dict[str, Any]:
        name = agent_access.spell_workspace(arguments["name"])
        agent_access.delete_workspace(name, partial(shares.clear, name), partial(perspectives.reset, name))
        return {"name": name, "deleted": True}

    def read_context(arguments: Arguments, _: Any) -> dict[str, Any]:
        workspace = agent_access.workspace(arguments.get("workspace") or "default")
        context = workspace.context(arguments.get("project") or "")
        if most := arguments.get("bytes"):
            context = context.shorten(most)
        lines = [asdict(line) | {"reasons": list(line.reasons)} for line in context.lines]
        shown = {
            name: getattr(context, name) for name in ("workspace", "project", "text", "tokens", "most", "left_out")
        }
        return shown | {"lines": lines}

    return {
        "workspace.create": create,
        "workspace.list": list_workspaces,
        "workspace.count": count_notes,
        "workspace.delete": delete,
        "context.read": read_context,
    }


def _count_notes(agent_access: AgentAccess, name: str) -> int:
    return sum(count for _, _, count in agent_access.workspace(name).totals().documents)


def key_operations(agent_access: AgentAccess, keys: ApiKeys, state: Path) -> dict[str, Operation]:
    """Return the operations that create, replace, list, revoke and rotate keys, and show their history."""

    def create(arguments: Arguments, _: Any) -> dict[str, Any]:
        names, scopes = arguments.get("workspaces"), arguments.get("scopes")
        for name in names or ():
            agent_access.workspace(name)
        key, secret = keys.create(
            arguments["name"],
            workspaces=names,
            scopes=("read", "write") if scopes is None else scopes,
            namespace=arguments.get("namespace"),
            expires_at=arguments.get("expires_at"),
            now=now_ms(),
        )
        return {"name": key.name, "key": secret}

    def list_keys(_: Arguments, __: Any) -> list[dict[str, Any]]:
        return [_key_fields(key) for key in keys.list()]

    def revoke(arguments: Arguments, _: Any) -> dict[str, Any]:
        return _key_fields(keys.revoke(arguments["name"], now=now_ms()))

    def check(arguments: Arguments, _: Any) -> dict[str, Any] | None:
        key = keys.identify(arguments["secret"], now=now_ms())
        return None if key is None else _key_fields(key)

    def history(_: Arguments, __: Any) -> list[dict[str, Any]]:
        return [dict(event) for event in keys.history()]

    return {
        "key.create": create,
        "key.replace": lambda arguments, _: _replace_key(agent_access, keys, arguments),
        "key.rename": lambda arguments, _: _rename_key(keys, arguments),
        "key.check": check,
        "key.list": list_keys,
        "key.revoke": revoke,
        "key.rotate": lambda arguments, _: _rotate_key(keys, state, arguments),
        "key.history": history,
    }


def _replace_key(agent_access: AgentAccess, keys: ApiKeys, arguments: Arguments) -> dict[str, Any]:
    """Create a key with the secret that its caller has stored, and revoke the earlier key of this name."""
    fields = {name: arguments[name] for name in ("workspaces", "scopes", "secret")}
    for name in fields["workspaces"]:
        agent_access.workspace(name)
    if not SECRET.fullmatch(fields["secret"]):
        raise InvalidArgument("the secret of a key has the form mx_ID_SECRET")
    return _key_fields(keys.create(arguments["name"], **fields, replaces=True, now=now_ms())[0])


def _rename_key(keys: ApiKeys, arguments: Arguments) -> dict[str, Any]:
    """Give the key with an id another name, and revoke the earlier key of this name."""
    return _key_fields(keys.rename(arguments["id"], arguments["name"], now=now_ms()))


def _rotate_key(keys: ApiKeys, state: Path, arguments: Arguments) -> dict[str, Any]:
    """Rotate the secret of a key. If the owner's key file holds this key, the new secret is written there too."""

    def storing(key: ApiKey, secret: str) -> AbstractContextManager[object]:
        return writing_private(state / KEY_FILE, secret + "\n") if holds_key(state, key.id) else nullcontext()

    key, secret = keys.rotate(
        arguments["name"],
        overlap_ms=arguments.get("overlap_ms") or 0,
        expires_at=arguments.get("expires_at"),
        now=now_ms(),
        storing=storing,
    )
    return {"name": key.name, "key": secret, "old_until": key.old_until, "expires_at": key.expires_at}


def _key_fields(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "workspaces": None if key.workspaces is None else sorted(key.workspaces),
        "namespace": key.namespace,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "old_until": key.old_until,
    }
