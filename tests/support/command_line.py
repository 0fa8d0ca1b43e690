"""Modules that no quick command may import."""

from __future__ import annotations

HEAVY = {"lancedb", "pyarrow", "numpy", "mcp", "mcp_server", "starlette", "uvicorn", "onnxruntime", "torch", "watchdog", "git", "apscheduler", "sqlite3", "asyncio", "frontmatter", "markdown_it", "httpx2"}  # fmt: skip
