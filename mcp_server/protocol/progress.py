"""Report the progress of a long call to clients that asked for it.

Every tool reports how long it has been running; a capture also reports how many passages are embedded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from mcp.server.mcpserver import Context

BEAT_SECONDS: Final = 1.0


@contextlib.asynccontextmanager
async def report_progress(context: Context[Any, Any] | None) -> AsyncIterator[Callable[[int], None]]:
    """Report progress once a second during the block. It yields a function that takes the number of embedded passages from any thread."""
    done = 0

    def count_passages(passages: int) -> None:
        nonlocal done
        done = passages

    async def report_each_second() -> None:
        assert context is not None
        began = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            seconds = round(time.monotonic() - began, 1)
            message = f"running for {seconds:.0f} s" + (f"; {done} passages embedded" if done else "")
            await context.report_progress(seconds, message=message)

    task = asyncio.create_task(report_each_second()) if context is not None and _wants_progress(context) else None
    try:
        yield count_passages
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _wants_progress(context: Context[Any, Any]) -> bool:
    meta = context.request_context.meta
    return meta is not None and meta.get("progress_token") is not None
