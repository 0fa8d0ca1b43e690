"""The families of tools: what agents can do, one file per dialect."""

from __future__ import annotations

from typing import Final

from mcp_server.operation import Operation
from mcp_server.tools import graph, kb, memory, thoughts

FAMILIES: Final[dict[str, tuple[Operation, ...]]] = {
    "thoughts": thoughts.OPERATIONS,
    "kb": kb.OPERATIONS,
    "memory": memory.OPERATIONS,
    "graph": graph.OPERATIONS,
}
