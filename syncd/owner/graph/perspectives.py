"""Define the owner's operations on perspectives: list and change them; a change embeds the observations again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from index.scope.index import Index
from syncd.daemon.control_socket import Arguments, Operation
from syncd.graph.perspectives import Perspectives, Table


def operations(
    perspectives: Perspectives,
    *,
    workspace: Callable[[str], object],
    index: Callable[[], Index],
    look: Callable[[], object],
) -> dict[str, Operation]:
    """Return the owner's operations on perspectives by name.

    `workspace` raises an error for a missing workspace; `look` lists the vault, and so embeds missing observations."""

    def run(change: Callable[[str, Arguments], Table] | None, arguments: Arguments, _: Any) -> dict[str, Any]:
        """Change the perspectives of the named workspace; return them, and the share of its observations that is embedded."""
        name = arguments.get("workspace") or "default"
        workspace(name)
        if change is not None:
            change(name, arguments)
            look()
        return {
            "workspace": name,
            "default": not perspectives.has_own(name),
            "perspectives": [asdict(perspective) for perspective in perspectives.of(name)],
            "coverage": round(index().embedded_share(name), 4),
        }

    return {
        "perspective.list": partial(run, None),
        "perspective.add": partial(
            run, lambda name, arguments: perspectives.add(name, arguments["name"], arguments["prompt"])
        ),
        "perspective.set": partial(
            run, lambda name, arguments: perspectives.set_prompt(name, arguments["name"], arguments["prompt"])
        ),
        "perspective.remove": partial(run, lambda name, arguments: perspectives.remove(name, arguments["name"])),
        "perspective.reset": partial(run, lambda name, _: perspectives.reset(name)),
    }
