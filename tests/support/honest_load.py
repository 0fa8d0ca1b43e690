"""Load a server as honest clients do, and record the answer and the waiting time of each request."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx2

from tests.support.live_server import Rim

SENTENCE: Final = "where is the harbour pilot's licence kept"
HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "agent", "version": "1"},
}


@dataclass
class Answers:
    """The answers to the requests of one scenario."""

    asked: int = 0
    waits: list[float] = field(default_factory=list)  # seconds from the request to the end of its answer
    refused: int = 0
    failed: list[str] = field(default_factory=list)  # what else went wrong

    @property
    def p95(self) -> float:
        """Return the seconds within which 95 of 100 requests were answered."""
        return sorted(self.waits)[int(len(self.waits) * 0.95)]

    def row(self, name: str) -> str:
        """Return a line of a table in Markdown."""
        return (
            f"| {name} | {self.asked} | {self.refused} | {self.p95 * 1000:.0f} ms | {max(self.waits) * 1000:.0f} ms |"
        )


class Client:
    """One program with one key and its own connections."""

    def __init__(self, rim: Rim, key: str, answers: Answers) -> None:
        named = {"x-memory-workspace": "work", "accept": "application/json, text/event-stream"}
        self._http = httpx2.AsyncClient(base_url=rim.url, headers=rim.headers(key) | named, timeout=60)
        self._answers = answers
        self._session: dict[str, str] = {}
        self._ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Send one request, count it, and return the answer."""
        self._answers.asked += 1
        begun = time.monotonic()
        answer = await self._http.request(method, path, **options)
        self._answers.waits.append(time.monotonic() - begun)
        if answer.status_code == 429 or "RESOURCE_EXHAUSTED" in answer.text:
            self._answers.refused += 1
        elif answer.status_code >= 400 or '"isError":true' in answer.text:
            self._answers.failed.append(f"{answer.status_code} {answer.text[:200]}")
        return answer

    async def rpc(self, method: str, **params: Any) -> httpx2.Response:
        """Return the answer to one message of MCP."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            message["id"] = next(self._ids)
        answer = await self.ask("POST", "/mcp", json=message, headers=self._session)
        if method == "initialize" and "mcp-session-id" in answer.headers:
            self._session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        return answer

    async def work(self, name: str, notes: int) -> None:
        """Work as an agent: connect, list the tools, and write notes."""
        await self.rpc("initialize", **HELLO)
        await self.rpc("notifications/initialized")
        await self.rpc("tools/list")
        for number in range(notes):
            arguments = {"content": f"{name} wrote note {number} about the harbour"}
            await self.rpc("tools/call", name="capture_thought", arguments=arguments)

    async def walk(self, pages: int) -> None:
        """Work as a backup: read all notes, page by page."""
        before: dict[str, int] = {}
        for _ in range(pages):
            answer = await self.ask("GET", "/thoughts", params={"limit": 1} | before)
            following = answer.json().get("next_before")
            before = {"before": following} if following else {}

    async def type(self, times: int, pause: float) -> None:
        """Work as a search box: search at each key press, and cancel the previous search."""
        last: asyncio.Task[Any] | None = None
        for end in itertools.islice(itertools.cycle(range(3, len(SENTENCE) + 1)), times):
            if last:
                last.cancel()
            last = asyncio.create_task(self.ask("POST", "/search", json={"query": SENTENCE[:end], "top_k": 5}))
            await asyncio.sleep(pause)
        if last:
            await last


async def agents_at_once(rim: Rim, *, agents: int = 20, notes: int = 3, key: str = "full") -> Answers:
    """Agents of one key that connect and write at once."""
    answers = Answers()

    async def one(number: int) -> None:
        async with Client(rim, key, answers) as client:
            await client.work(f"{key} agent {number}", notes)

    await asyncio.gather(*(one(number) for number in range(agents)))
    return answers


async def walk_over_pages(rim: Rim, *, pages: int = 120, key: str = "full") -> Answers:
    """Read the pages of the list one after another, as fast as possible."""
    answers = Answers()
    async with Client(rim, key, answers) as client:
        await client.walk(pages)
    return answers


async def search_at_each_key(rim: Rim, *, times: int = 160, pause: float = 0.03, key: str = "full") -> Answers:
    """Return a search box; `pause` is the time between two key presses."""
    answers = Answers()
    async with Client(rim, key, answers) as client:
        await client.type(times, pause)
    return answers


def seconds_of(work: Coroutine[Any, Any, Answers]) -> tuple[Answers, float]:
    """Run a scenario, and return its answers and its duration."""
    begun = time.monotonic()
    return asyncio.run(work), time.monotonic() - begun
