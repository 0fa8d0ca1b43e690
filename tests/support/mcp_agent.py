"""An agent on a running server: one MCP client whose answers are all checked against the seeds' schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client

from tests.support.answer_schemas import SHAPES
from tests.support.live_server import Rim, Space, client


@dataclass(frozen=True, slots=True)
class Agent:
    """A client that stays connected."""

    mcp: Client
    portal: BlockingPortal
    names: Mapping[str, str]  # the tool that is called for each of the seeds' names

    def ask(self, tool: str, /, **given: Any) -> tuple[str, Any]:
        """Call a tool, and return "ok" or the error code, with the answer."""
        result = self.portal.call(self.mcp.call_tool, self.names.get(tool, tool), given)
        (block,) = result.content
        told = json.loads(block.text)
        if result.is_error:
            assert result.structured_content is None
            assert set(told) == {"error"}
            return told["error"]["code"], told["error"]
        assert told == result.structured_content
        Draft202012Validator(SHAPES.get(tool, {})).validate(told)  # those of thoughts are in test_thoughts_contract
        return "ok", told

    def good(self, tool: str, /, **given: Any) -> Any:
        """Return the result of a call that must succeed."""
        code, told = self.ask(tool, **given)
        assert code == "ok", (tool, given, told)
        return told

    def listed(self, tool: str, /, **given: Any) -> Any:
        """Return the list in the result of a call."""
        return self.good(tool, **given)["results"]

    def refused(self, tool: str, /, **given: Any) -> str:
        """Return the code of a call that must fail."""
        code, told = self.ask(tool, **given)
        assert code != "ok", (tool, given, told)
        return code

    def node(self, name: str) -> dict[str, Any]:
        """Return one whole node."""
        (entity,) = self.good("open_nodes", names=[name])["entities"]
        return dict(entity)

    def facts(self, name: str) -> dict[int, str]:
        """Return the observations of one node by ordinal, in the order of the answer."""
        return {one["ordinal"]: one["content"] for one in self.node(name)["observations"]}

    def edges(self, *names: str) -> set[tuple[str, str, str]]:
        """Return the relations of some nodes."""
        return {triple(edge) for edge in self.good("open_nodes", names=list(names))["relations"]}


def triple(edge: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a relation as a value."""
    return edge["from"], edge["relation_type"], edge["to"]


@contextmanager
def agent(
    rim: Rim,
    *,
    key: str = "full",
    workspace: str | None = None,
    mode: str = "2026-07-28",
    path: str = "/mcp",
    names: Mapping[str, str] | None = None,
) -> Iterator[Agent]:
    """Yield a client of `rim`."""
    headers = {"X_Memory_Workspace": workspace} if workspace else {}
    made: AbstractAsyncContextManager[Client] = client(rim, key=key, mode=mode, path=path, **headers)
    with start_blocking_portal() as portal:
        opened = portal.wrap_async_context_manager(made)
        mcp = opened.__enter__()
        try:
            yield Agent(mcp, portal, names or {})
        finally:
            opened.__exit__(
                None, None, None
            )  # what a test asserts is told as it is, not in a group of the connection's


@contextmanager
def member(space: Space, mode: str = "2026-07-28", **more: Any) -> Iterator[Agent]:
    """Yield a client with the key of a workspace, which it names in each request."""
    with agent(space.rim, key=space.name, workspace=space.name, mode=mode, **more) as made:
        yield made
