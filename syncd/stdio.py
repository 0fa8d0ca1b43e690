"""Start the stdio bridge to the daemon, and load nothing else (the second composition root).

Law, tested: a host that starts `memex mcp` does not wait until the index libraries are imported."""

from __future__ import annotations


def bridge(url: str, key: str, workspace: str | None, toolset: str | None = None) -> int:
    """Run an MCP server over stdio that forwards everything to the daemon at `url`."""
    from mcp_server.stdio_bridge import run  # noqa: PLC0415 - the server is imported only where it is used

    return run(url, key, workspace=workspace, toolset=toolset)
