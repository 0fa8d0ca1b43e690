"""List the four tool families, and the operations of each."""

from __future__ import annotations

from typing import Final

from mcp_server.operations.operation import Operation
from mcp_server.tools import graph, kb, memory, thoughts

FAMILIES: Final[dict[str, tuple[Operation, ...]]] = {
    "thoughts": thoughts.OPERATIONS,
    "kb": kb.OPERATIONS,
    "memory": memory.OPERATIONS,
    "graph": graph.OPERATIONS,
}
