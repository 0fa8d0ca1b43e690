"""Define the owner's operations on perspectives: list and change them; a change embeds the observations again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
    tables = _Tables(perspectives, workspace, index, look)
    return {
        "perspective.list": lambda arguments, _: tables.show(arguments),
        "perspective.add": tables.change_operation(
            lambda name, arguments: perspectives.add(name, arguments["name"], arguments["prompt"])
        ),
        "perspective.set": tables.change_operation(
            lambda name, arguments: perspectives.set_prompt(name, arguments["name"], arguments["prompt"])
        ),
        "perspective.remove": tables.change_operation(
            lambda name, arguments: perspectives.remove(name, arguments["name"])
        ),
        "perspective.reset": tables.change_operation(lambda name, _: perspectives.reset(name)),
    }


@dataclass(frozen=True, slots=True)
class _Tables:
    """The perspectives of all workspaces, and the actions after a change."""

    perspectives: Perspectives
    check: Callable[[str], object]
    index: Callable[[], Index]
    look: Callable[[], object]

    def show(self, arguments: Arguments) -> dict[str, Any]:
        """Return the perspectives of the named workspace, and the share of its observations that is embedded."""
        name = self._require_workspace(arguments)
        return {
            "workspace": name,
            "default": not self.perspectives.has_own(name),
            "perspectives": [asdict(perspective) for perspective in self.perspectives.of(name)],
            "coverage": round(self.index().embedded_share(name), 4),
        }

    def change_operation(self, change: Callable[[str, Mapping[str, Any]], Table]) -> Operation:
        """Return the operation that changes the perspectives of the named workspace and then shows them."""

        def run(arguments: Arguments, _: Any) -> dict[str, Any]:
            change(self._require_workspace(arguments), arguments)
            self.look()
            return self.show(arguments)

        return run

    def _require_workspace(self, arguments: Arguments) -> str:
        name = arguments.get("workspace") or "default"
        self.check(name)
        return name
