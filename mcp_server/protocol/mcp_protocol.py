"""Serve operations as MCP tools, in every revision of the protocol and on every transport of the SDK.

Errors are results with `isError` and a code, in the text and in `_meta`, and never structured content: some clients
validate structured content against the output schema and lose the code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from mcp.server import MCPServer
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    TextContent,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from mcp.types import Tool as ListedTool
from pydantic import AnyUrl, BaseModel

from index.errors import InvalidArgument, MemexError, NotFound
from index.names import append_advice, did_you_mean, pluralize
from mcp_server.http.request_log import describe_error
from mcp_server.operations.caller import CALLER, Caller, check_scope, imply_workspace
from mcp_server.operations.operation import NAMED, Operation, OperationRunner, make_author
from mcp_server.operations.wire_format import compact_schema, encode_payload, with_collections
from mcp_server.protocol import prompts, resources
from mcp_server.protocol.completion import complete
from mcp_server.protocol.instructions import server_instructions
from mcp_server.protocol.subscriptions import Updates
from mcp_server.tools.families import CORE, CORE_OPERATIONS, OPERATIONS
from syncd.history.audit_log import acting_as
from syncd.notes.secret_patterns import redact_values

T = TypeVar("T")
P = TypeVar("P", bound=BaseModel)
Kind: TypeAlias = Literal["all", "core", "family"]

READ_SECONDS: Final = 15.0
BEAT_SECONDS: Final = 1.0  # between two reports of progress
SERVER_ERROR: Final = -32000
LISTS: Final = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
# What a list shows depends on the key and its headers. A note may change at any moment, and so may the latest notes:
# a client that caches one must watch it, or request it again.
HINTS: Final[dict[CacheableMethod, CacheHint]] = {
    "server/discover": CacheHint(ttl_ms=300_000, scope="private"),
    "tools/list": CacheHint(ttl_ms=300_000, scope="private"),
    "prompts/list": CacheHint(ttl_ms=300_000, scope="private"),
    "resources/templates/list": CacheHint(ttl_ms=300_000, scope="private"),
    "resources/list": CacheHint(ttl_ms=0, scope="private"),
    "resources/read": CacheHint(ttl_ms=0, scope="private"),
}


def error_result(error: MemexError) -> CallToolResult:
    """Return an expected failure as a result, for the model (text) and for programs (`_meta`)."""
    shown = json.loads(json.dumps(describe_error(error), default=str))
    text = json.dumps({"error": shown}, separators=(",", ":"))
    return CallToolResult(
        content=[TextContent(type="text", text=text)], is_error=True, _meta={"dev.memex/error": shown}
    )


class VaultMCP(MCPServer[Any]):
    """Serves one MCP endpoint. It lists some operations and also accepts calls of the others.

    `kind`: all families, one family, or `core`, where a key for one workspace implies this workspace for every tool."""

    def __init__(
        self, kind: Kind, operations: Sequence[Operation], runner: OperationRunner, updates: Updates, *, version: str
    ) -> None:
        super().__init__(
            "memex",
            title="Memex",
            version=version,
            instructions=server_instructions([operation.safe_name for operation in operations]),
            cache_hints=HINTS,
            middleware=[_refuse_cursor],
            subscriptions=False,  # the SDK would let every caller watch any URI; Memex adds its own handlers below
        )
        self._runner, self._kind = runner, kind
        self._called: dict[str, Operation] = {}
        for operation in operations if kind == "family" else OPERATIONS:
            self._called[operation.name] = self._called[operation.safe_name] = operation
        known = runner.settings.kb.all_collections
        self._tools = {
            names: [(operation, describe_tool(operation, names, known)) for operation in operations]
            for names in ("safe", "dotted")
        }
        self._core_tools = {
            names: [
                (operation, describe_tool(operation, names, known, hidden=CORE[operation.name]))
                for operation in CORE_OPERATIONS
            ]
            for names in ("safe", "dotted")
        }
        add = self._lowlevel_server.add_request_handler  # MCPServer has no hook for these methods
        add("completion/complete", CompleteRequestParams, self._complete)
        add("subscriptions/listen", SubscriptionsListenRequestParams, _translate_errors(updates.listen))
        add("resources/subscribe", SubscribeRequestParams, _translate_errors(updates.subscribe))
        add("resources/unsubscribe", UnsubscribeRequestParams, _translate_errors(updates.unsubscribe))

    async def list_tools(self) -> list[ListedTool]:
        """List the tools that the request's headers do not hide. Hiding protects nothing; the key's scopes do."""
        readonly = CALLER.get().readonly
        return [tool for operation, tool in self._listed_tools() if not (readonly and operation.scope != "read")]

    def _listed_tools(self) -> list[tuple[Operation, ListedTool]]:
        """Return the operations that this endpoint lists to the caller, whether they read or write."""
        caller, asked = CALLER.get(), self._asked_toolsets()
        names = caller.names or self._runner.settings.mcp.tool_names
        tools = (
            self._core_tools[names]
            if self._kind == "core" or (self._kind == "all" and asked == {"core"})
            else self._tools[names]
        )
        return [
            (operation, tool)
            for operation, tool in tools
            if (not asked or operation.family in asked or ("core" in asked and operation.name in CORE))
            # such a key can't call these tools, so it does not see them
            and not (caller.key.namespace is not None and operation.family in NAMED)
        ]

    def _asked_toolsets(self) -> frozenset[str]:
        """Return the toolsets from the request's header or, for `/mcp`, from the setting; an empty set means all."""
        asked, usual = CALLER.get().toolsets, self._runner.settings.mcp.toolsets
        return asked if asked is not None else frozenset(usual if self._kind == "all" else ())

    def _caller(self) -> Caller:
        """Return the caller; at `core`, with the workspace that its key implies."""
        caller = CALLER.get()
        is_core = self._kind == "core" or "core" in self._asked_toolsets()
        return imply_workspace(caller) if is_core else caller

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool. An expected failure becomes a result, so that the model can read it."""
        try:
            operation = self._called.get(name)
            if operation is None:
                near = did_you_mean(name[:64], [tool.name for tool in await self.list_tools()])
                raise InvalidArgument(f"no tool {name[:64]!a}{append_advice(near, 'to list all tools: tools/list')}")
            carried = (context.request_context.meta if context else None) or {}
            async with report_progress(context) as progress:
                with self._runner.continue_trace(carried):
                    data, text = encode_payload(await self._runner.call(operation, self._caller(), arguments, progress))
        except MemexError as error:
            return error_result(error)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data)

    # Resources, prompts, completions

    async def list_resources(self) -> list[Resource]:
        """List the latest notes; a list of all notes would be too long."""
        return await self._run_read(
            "resources/list", partial(resources.list_recent, self._runner.agent_access, CALLER.get())
        )

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """List the one resource template."""
        return [resources.TEMPLATE]

    async def read_resource(
        self,
        uri: AnyUrl | str,
        context: Context[Any, Any] | None = None,  # noqa: ARG002 - the SDK's signature
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Return the text of a note."""
        work = partial(resources.read, self._runner.agent_access, CALLER.get(), str(uri))
        return [await self._run_read("resources/read", work, uri=str(uri))]

    async def list_prompts(self) -> list[Prompt]:
        """List the prompts."""
        return prompts.list_prompts(CALLER.get())

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,  # noqa: ARG002 - the SDK's signature
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt with the notes that it needs."""
        caller, runner = self._caller(), self._runner
        shown = frozenset(operation.name for operation, _ in self._listed_tools())

        def build() -> GetPromptResult:
            kind = prompts.find_kind(name)
            parsed = prompts.check_arguments(kind, arguments or {})
            return prompts.build_prompt(runner, caller, kind, parsed, shown)

        return await self._run_read("prompts/get", build)

    async def _complete(self, _: ServerRequestContext[Any, Any], params: CompleteRequestParams) -> CompleteResult:
        work = partial(complete, self._runner.agent_access, CALLER.get(), params)
        completion = await self._run_read("completion/complete", work)
        return CompleteResult(completion=completion, _meta=resources.suspicious_meta(*completion.values))

    async def _run_read(self, method: str, work: Callable[[], T], **data: Any) -> T:
        """Run `work` off the event loop, for a key that may read."""
        try:
            check_scope(CALLER.get(), "read")
            with acting_as(make_author(CALLER.get(), method)):
                return await self._runner.run_in_thread(method, "read", READ_SECONDS, work)
        except MemexError as error:
            raise protocol_error(error, **data) from None


def protocol_error(error: MemexError, **data: Any) -> MCPError:
    """Return an expected failure as a protocol error, where MCP has no error result. NOT_FOUND becomes "invalid params"."""
    code = INVALID_PARAMS if error.code in (InvalidArgument.code, NotFound.code) else SERVER_ERROR
    shown = json.loads(json.dumps(redact_values(error.as_dict()), default=str))
    return MCPError(code=code, message=shown.pop("message"), data=shown | data)


def _translate_errors(
    handler: Callable[[ServerRequestContext[Any, Any], P], Awaitable[T]],
) -> Callable[..., Awaitable[T]]:
    async def handle(ctx: ServerRequestContext[Any, Any], params: P) -> T:
        try:
            return await handler(ctx, params)
        except MemexError as error:
            raise protocol_error(error) from None

    return handle


async def _refuse_cursor(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse a cursor: every list of Memex is one page, so Memex never issues one."""
    if ctx.method in LISTS and ctx.params and ctx.params.get("cursor") is not None:
        raise protocol_error(InvalidArgument("unknown cursor: this list is one page; ask for it without a cursor"))
    return await call_next(ctx)


def describe_tool(
    operation: Operation, names: str, collections: Sequence[str], hidden: Collection[str] = ()
) -> ListedTool:
    """Describe the tool for a list, without its `hidden` parameters."""
    reads = operation.scope == "read"
    schema = with_collections(compact_schema(operation.given), collections)
    schema = schema | {"properties": {name: of for name, of in schema["properties"].items() if name not in hidden}}
    return ListedTool(
        name=operation.name if names == "dotted" else operation.safe_name,
        title=operation.title,
        description=operation.description,
        input_schema=schema,
        output_schema=compact_schema(operation.returned, output=True),
        annotations=ToolAnnotations(
            title=operation.title,
            read_only_hint=reads,
            destructive_hint=operation.destructive,
            idempotent_hint=operation.idempotent,
            open_world_hint=False,
        ),
        _meta={"dev.memex/family": operation.family},
    )


@contextlib.asynccontextmanager
async def report_progress(context: Context[Any, Any] | None) -> AsyncIterator[Callable[[int], None]]:
    """Report to clients that asked for it how long the block has been running. It yields a function that takes the number of embedded passages from any thread."""
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
            message = f"running for {seconds:.0f} s" + (f"; {pluralize(done, 'passage')} embedded" if done else "")
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
