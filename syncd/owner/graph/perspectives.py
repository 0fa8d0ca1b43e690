"""The owner's operations on perspectives: what a workspace has, and changes, which embed its observations anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from index.scope.index import Index
from syncd.graph.perspectives import Perspectives, Table


def operations(
    perspectives: Perspectives,
    *,
    workspace: Callable[[str], object],
    index: Callable[[], Index],
    look: Callable[[], object],
) -> dict[str, Callable[[Mapping[str, Any], Any], Any]]:
    """What the owner may ask of perspectives, by name.

    `workspace` raises for one that is not there; `look` has the vault listed, which embeds what is to be embedded."""

    def told(given: Mapping[str, Any]) -> dict[str, Any]:
        name = _checked(given)
        return {
            "workspace": name,
            "default": not perspectives.own(name),
            "perspectives": [asdict(one) for one in perspectives.of(name)],
            "coverage": round(index().coverage(name), 4),
        }

    def _checked(given: Mapping[str, Any]) -> str:
        name = given.get("workspace") or "default"
        workspace(name)
        return name

    def listed(given: Mapping[str, Any], _: Any) -> dict[str, Any]:
        return told(given)

    def changed(change: Callable[[str, Mapping[str, Any]], Table]) -> Callable[[Mapping[str, Any], Any], Any]:
        def run(given: Mapping[str, Any], _: Any) -> dict[str, Any]:
            change(_checked(given), given)
            look()
            return told(given)

        return run

    return {
        "perspective.list": listed,
        "perspective.add": changed(lambda name, given: perspectives.add(name, given["name"], given["prompt"])),
        "perspective.set": changed(lambda name, given: perspectives.set(name, given["name"], given["prompt"])),
        "perspective.remove": changed(lambda name, given: perspectives.remove(name, given["name"])),
        "perspective.reset": changed(lambda name, _: perspectives.reset(name)),
    }
