"""List the four tool families with the operations of each, and the toolset `core` that most sessions need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_server.operations.operation import Operation
from mcp_server.tools import graph, kb, memory, thoughts

FAMILIES: Final[dict[str, tuple[Operation, ...]]] = {
    "thoughts": thoughts.OPERATIONS,
    "kb": kb.OPERATIONS,
    "memory": memory.OPERATIONS,
    "graph": graph.OPERATIONS,
}
OPERATIONS: Final = tuple(operation for family in FAMILIES.values() for operation in family)

# The tools of `core`, in the order of the list, each with the parameters that its list leaves out and its calls take.
CORE: Final[Mapping[str, tuple[str, ...]]] = {
    "capture_thought": ("namespace",),
    "semantic_search": ("collection", "mode", "namespace", "source", "until"),
    "get_thought": (),
    "list_recent": (),
    "delete_thought": (),
    "kb_update_note": ("collection",),
    "kb_get": (),
    "search_nodes": (),
    "open_nodes": (),
    "create_entities": (),
    "add_observations": (),
    "create_relations": (),
}
_KNOWN: Final = {operation.name: operation for operation in OPERATIONS}
CORE_OPERATIONS: Final = [_KNOWN[name] for name in CORE]
