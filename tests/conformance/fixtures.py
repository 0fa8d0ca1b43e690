"""What the conformance suite calls by name, on our own server class: its tools, resources and prompts beside ours.

The shim is here too: the suite can't send a key, so requests without one are given one, and pass the guard with it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Collection
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    PromptMessage,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import BaseModel, Field, JsonValue

from mcp_server import server
from mcp_server.guard.guard import Guard
from mcp_server.protocol.mcp_protocol import VaultMCP
from mcp_server.protocol.subscriptions import Updates

WHAT = "A fixture of the conformance suite"
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c63f8cfc0f01f0005000201b3a2a1d00000000049454e44ae426082"
    )
).decode()
SOUND = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0").decode()


def installed(patch: pytest.MonkeyPatch, *, fixtures: bool) -> None:
    """Have the next daemon of this process made of these classes."""
    patch.setattr(server, "Guard", KeyedGuard)
    if fixtures:
        patch.setattr(server, "VaultMCP", FixtureMCP)
        patch.setattr(server, "Updates", FixtureUpdates)


class KeyedGuard(Guard):
    """The guard, behind a shim that gives a key to requests without one."""

    secret = ""

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and all(name != b"authorization" for name, _ in scope["headers"]):
            scope = scope | {"headers": [*scope["headers"], (b"authorization", f"Bearer {self.secret}".encode())]}
        await super().__call__(scope, receive, send)


# A schema with the rarer words of JSON Schema 2020-12, which must be listed as they stand.
SCHEMA = Tool(
    name="json_schema_2020_12_tool",
    description=WHAT,
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)


class FixtureUpdates(Updates):
    """Resources of the suite can be watched too."""

    async def _find_paths(self, caller, uris: Collection[str]) -> dict[str, str]:
        ours = [uri for uri in uris if not uri.startswith("test://")]
        return {uri: uri for uri in uris if uri not in ours} | await super()._find_paths(caller, ours)


class FixtureMCP(VaultMCP):
    """Our server with the suite's fixtures: a name that is not ours goes to the SDK's own way of serving it."""

    def __init__(self, kind, operations, runner, updates, *, version: str) -> None:
        super().__init__(kind, operations, runner, updates, version=version)
        self.bus = updates._bus
        tools(self)
        rounds(self)
        resources(self)
        prompts(self)
        self._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, _level)

    async def list_tools(self):
        return [*await super().list_tools(), *await MCPServer.list_tools(self), SCHEMA]

    async def call_tool(self, name, arguments, context=None):
        ours = name in self._called
        return await (super().call_tool if ours else super(VaultMCP, self).call_tool)(name, arguments, context)

    async def list_resources(self):
        return [*await MCPServer.list_resources(self), *await super().list_resources()]

    async def list_resource_templates(self):
        return [*await super().list_resource_templates(), *await MCPServer.list_resource_templates(self)]

    async def read_resource(self, uri, context=None):
        theirs = str(uri).startswith("test://") and "nonexistent" not in str(uri)
        return await (super(VaultMCP, self).read_resource if theirs else super().read_resource)(uri, context)

    async def list_prompts(self):
        return [*await super().list_prompts(), *await MCPServer.list_prompts(self)]

    async def get_prompt(self, name, arguments=None, context=None):
        theirs = name.startswith("test_")
        return await (super(VaultMCP, self).get_prompt if theirs else super().get_prompt)(name, arguments, context)

    async def _complete(self, ctx, params: CompleteRequestParams) -> CompleteResult:
        if getattr(params.ref, "name", "").startswith("test_"):
            return CompleteResult(completion=Completion(values=["paris", "park"], total=2, has_more=False))
        return await super()._complete(ctx, params)


async def _level(_: Any, __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


def text(said: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said)])


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, kind: str, said: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=said))


class Answer(BaseModel):
    """What a person is asked."""

    username: str = Field(description="A name")
    email: str = Field(description="An address")


class Defaults(BaseModel):
    """A form with a default of each kind."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


def _titled(word: str) -> list[JsonValue]:
    return [{"const": f"{word}{n}", "title": f"{word.title()} {n}"} for n in (1, 2, 3)]


class Choices(BaseModel):
    """A form with each kind of choice."""

    untitledSingle: str = Field(json_schema_extra={"enum": ["option1", "option2", "option3"]})  # noqa: N815 - the suite's names
    titledSingle: str = Field(json_schema_extra={"oneOf": _titled("value")})  # noqa: N815
    legacyEnum: str = Field(json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]})  # noqa: N815
    untitledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"type": "string", "enum": ["option1", "option2", "option3"]}}
    )
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": _titled("value")}})  # noqa: N815


def tools(mcp: FixtureMCP) -> None:
    """The tools that answer at once, and those that ask the client meanwhile."""
    tool = partial(mcp.tool, description=WHAT)

    @tool()
    def test_simple_text() -> CallToolResult:
        return text("This is a simple text response for testing.")

    @tool()
    def test_image_content() -> CallToolResult:
        return CallToolResult(content=[image()])

    @tool()
    def test_audio_content() -> CallToolResult:
        return CallToolResult(content=[AudioContent(type="audio", data=SOUND, mime_type="audio/wav")])

    @tool()
    def test_embedded_resource() -> CallToolResult:
        return CallToolResult(content=[embedded("test://embedded-resource", "text/plain", "An embedded resource.")])

    @tool()
    def test_multiple_content_types() -> CallToolResult:
        data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
        return CallToolResult(content=[TextContent(type="text", text="Multiple content types:"), image(), data])

    @tool()
    def test_error_handling() -> CallToolResult:
        raise ToolError("This tool intentionally returns an error for testing")

    @tool()
    async def test_tool_with_logging(ctx: Context) -> CallToolResult:
        for step in ("started", "processing data", "completed"):
            await ctx.info(f"Tool execution {step}")
            await asyncio.sleep(0.05)
        return text("done")

    mcp.add_tool(test_tool_with_logging, description=WHAT, name="test_logging_tool")

    @tool()
    async def test_tool_with_progress(ctx: Context) -> CallToolResult:
        for step in (0, 50, 100):
            await ctx.report_progress(step, 100, f"{step} of 100")
            await asyncio.sleep(0.05)
        return text("done")

    @tool()
    async def test_sampling(prompt: str, ctx: Context) -> CallToolResult:
        asked = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
        # On the call's own stream: the session's may not be open yet.
        said = await ctx.session.create_message(asked, max_tokens=100, related_request_id=ctx.request_id)
        return text(f"LLM response: {said.content.text}")

    @tool()
    async def test_elicitation(message: str, ctx: Context) -> CallToolResult:
        return await _elicited(ctx, message, Answer)

    @tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> CallToolResult:
        return await _elicited(ctx, "Please provide user information", Defaults)

    @tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> CallToolResult:
        return await _elicited(ctx, "Please choose", Choices)

    @tool()
    async def test_reconnection(ctx: Context) -> CallToolResult:
        await ctx.close_sse_stream()
        await asyncio.sleep(0.2)
        return text("reconnected")

    @tool()
    async def test_trigger_tool_change() -> CallToolResult:
        await mcp.bus.publish(ToolsListChanged())
        return text("done")

    @tool()
    async def test_trigger_prompt_change() -> CallToolResult:
        await mcp.bus.publish(PromptsListChanged())
        return text("done")

    @tool()
    async def test_missing_capability(ctx: Context) -> CallToolResult:
        if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                "sampling is needed",
                {"requiredCapabilities": {"sampling": {}}},
            )
        return text("done")

    @tool()
    def test_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> CallToolResult:
        return text(region)


async def _elicited(ctx: Context, message: str, form: type[BaseModel]) -> CallToolResult:
    answer = await ctx.elicit(message, form)
    content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
    return text(f"Elicitation completed: action={answer.action}, content={content}")


def form(message: str, field: str, kind: Literal["string", "boolean"] = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def accepted(ctx: Context, key: str, field: str) -> Any:
    """What a form was filled with; None as long as it was not."""
    answer = (ctx.input_responses or {}).get(key)
    if isinstance(answer, ElicitResult) and answer.action == "accept":
        return (answer.content or {}).get(field)
    return None


def rounds(mcp: FixtureMCP) -> None:
    """The tools of 2026 that ask by returning, and are called again with the answers."""
    tool = partial(mcp.tool, description=WHAT)

    @tool()
    def test_input_required_result_elicitation(ctx: Context) -> CallToolResult | InputRequiredResult:
        name = accepted(ctx, "user_name", "name")
        if name is None:
            return InputRequiredResult(input_requests={"user_name": form("What is your name?", "name")})
        return text(f"Hello, {name}!")

    mcp.add_tool(test_input_required_result_elicitation, description=WHAT, name="test_streaming_elicitation")

    @tool()
    def test_input_required_result_sampling(ctx: Context) -> CallToolResult | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("capital_question")
        if not isinstance(answer, CreateMessageResult):
            return InputRequiredResult(input_requests={"capital_question": sample("What is the capital of France?")})
        return text(answer.content.text)

    @tool()
    def test_input_required_result_list_roots(ctx: Context) -> CallToolResult | InputRequiredResult:
        if "client_roots" not in (ctx.input_responses or {}):
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return text(ctx.input_responses["client_roots"].model_dump_json())

    def confirmed(ctx: Context) -> CallToolResult | InputRequiredResult:
        if accepted(ctx, "confirm", "ok") is None or ctx.request_state != "asked":
            asked = {"confirm": form("Please confirm", "ok", "boolean")}
            return InputRequiredResult(input_requests=asked, request_state="asked")
        return text("state-ok")

    mcp.add_tool(confirmed, description=WHAT, name="test_input_required_result_request_state")
    mcp.add_tool(confirmed, description=WHAT, name="test_input_required_result_tampered_state")

    @tool()
    def test_input_required_result_multiple_inputs(ctx: Context) -> CallToolResult | InputRequiredResult:
        wanted = {
            "user_name": form("What is your name?", "name"),
            "greeting": sample("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        }
        if wanted.keys() - (ctx.input_responses or {}).keys():
            return InputRequiredResult(input_requests=wanted, request_state="asked")
        return text("all there")

    @tool()
    def test_input_required_result_multi_round(ctx: Context) -> CallToolResult | InputRequiredResult:
        name, colour = accepted(ctx, "step1", "name"), accepted(ctx, "step2", "color")
        if ctx.request_state and ctx.request_state.startswith("2 ") and colour is not None:
            return text(f"{ctx.request_state[2:]} likes {colour}")
        if ctx.request_state == "1" and name is not None:
            asked = {"step2": form("Step 2: What is your favorite color?", "color")}
            return InputRequiredResult(input_requests=asked, request_state=f"2 {name}")
        asked = {"step1": form("Step 1: What is your name?", "name")}
        return InputRequiredResult(input_requests=asked, request_state="1")

    @tool()
    def test_input_required_result_capabilities(ctx: Context) -> CallToolResult | InputRequiredResult:
        can = ctx.client_capabilities
        asked: dict[str, Any] = {}
        if can and can.sampling is not None:
            asked["greeting"] = sample("Generate a greeting")
        if can and can.elicitation is not None:
            asked["user_name"] = form("What is your name?", "name")
        return InputRequiredResult(input_requests=asked) if asked else text("nothing can be asked")


def resources(mcp: FixtureMCP) -> None:
    """The resources, one of them from a template."""

    @mcp.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @mcp.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @mcp.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        return "Watched resource content"

    @mcp.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def prompts(mcp: FixtureMCP) -> None:
    """The prompts, one of which asks first."""

    def user(content: Any) -> PromptMessage:
        return PromptMessage(role="user", content=content)

    def says(said: str) -> PromptMessage:
        return user(TextContent(type="text", text=said))

    @mcp.prompt(description=WHAT)
    def test_simple_prompt() -> Any:
        return [says("This is a simple prompt for testing.").model_dump()]

    @mcp.prompt(description=WHAT)
    def test_prompt_with_arguments(arg1: str, arg2: str) -> Any:
        return [says(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'").model_dump()]

    @mcp.prompt(description=WHAT)
    def test_prompt_with_embedded_resource(resourceUri: str) -> Any:  # noqa: N803 - the suite's name
        shown = user(embedded(resourceUri, "text/plain", "Embedded resource content for testing."))
        return [shown.model_dump(), says("Please process the embedded resource above.").model_dump()]

    @mcp.prompt(description=WHAT)
    def test_prompt_with_image() -> Any:
        return [user(image()).model_dump(), says("Please analyze the image above.").model_dump()]

    @mcp.prompt(description=WHAT)
    def test_input_required_result_prompt(ctx: Context) -> Any:
        context = accepted(ctx, "user_context", "context")
        if context is None:
            asked = {"user_context": form("What context should the prompt use?", "context")}
            return InputRequiredResult(input_requests=asked)
        return [says(f"Use this context: {context}").model_dump()]
