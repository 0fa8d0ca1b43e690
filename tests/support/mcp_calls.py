"""Single calls over MCP, each as a client that connects for it alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Tool


@asynccontextmanager
async def _connected(url: str, headers: Mapping[str, str]) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def called(url: str, headers: Mapping[str, str], tool: str, **arguments: Any) -> Any:
    """Return what a tool answers to a call that must succeed."""

    async def call() -> Any:
        async with _connected(url, headers) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, (tool, result.content)
        return result.structured_content

    return asyncio.run(call())


def listed_tools(url: str, headers: Mapping[str, str]) -> Sequence[Tool]:
    """Return the tools that a client sees."""

    async def look() -> Sequence[Tool]:
        async with _connected(url, headers) as client:
            return (await client.list_tools()).tools

    return asyncio.run(look())
