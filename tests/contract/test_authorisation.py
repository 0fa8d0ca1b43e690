"""Who may call what: every route, tool, method, prompt, completion and command that the program has, by every kind of caller.

The rows come from the program itself: a new one without a rule in `RULES` fails with its name. The answers come from the
real application, called in this process."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest
from starlette.responses import Response
from starlette.routing import Route

from index.timings import now_ms
from mcp_server.protocol import prompts
from mcp_server.protocol.resources import TEMPLATE
from mcp_server.rest import git_webhook
from mcp_server.rest import routes as rest
from mcp_server.rest.upload_form import PATH as FORM
from mcp_server.server import build_app
from mcp_server.tools.families import CORE, FAMILIES
from syncd.daemon.control_socket import NAME, TOKEN, ControlServer, short_address
from syncd.remote.push_webhook import drop_secret, make_secret
from syncd.settings.access import LimitsSettings
from tests.support.live_server import listed
from tests.support.local_app import LocalApp, opened
from tests.support.tool_arguments import ARGUMENTS

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "matrix", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
EXISTING = {"default", "work", "secret"}  # the workspaces that the server has
HIDDEN = "note://secret/Hidden.md"


@dataclass(frozen=True)
class Rule:
    """Who may: a key with this scope ("" = any, None = none is needed), and what of the workspaces it must see.

    `sees`: the one that the request is `about` (named, the key's only one, or `default`), the one that it must `name` unless
    the key has only one (`bound`) or in any case (`name`), the one of HIDDEN (`uri`), `all` with all rights, or `none`."""

    scope: str | None
    sees: str


OPEN, ANY, OWNER = Rule(None, "none"), Rule("", "none"), Rule("admin", "all")
BOUND = Rule("", "bound")
READ, WRITE = Rule("read", "about"), Rule("write", "about")
NAMED_READ, NAMED_WRITE = Rule("read", "name"), Rule("write", "name")
FILTERED, NOTE = Rule("read", "none"), Rule("read", "uri")  # an answer holds only what the key sees; one note
SIGNED = Rule("a signature", "none")  # no key at all opens it

ROUTES = {
    "GET /healthz": OPEN, "GET /readyz": OPEN, "GET /metrics": OWNER, "GET /openapi.json": ANY, "POST /hooks/git": SIGNED,
    "POST /capture": WRITE, "POST /search": READ, "GET /thought/{id}": READ, "DELETE /thought/{id}": WRITE,
    "GET /thoughts": READ, "GET /context": READ, "POST /api/v1/search": READ, "POST /api/v1/jobs": WRITE, "GET /api/v1/jobs": READ,
    "POST /api/v1/jobs as a form": WRITE, "GET /api/v1/jobs/{id}": READ, "GET /api/v1/documents": READ,
    "GET /api/v1/documents/{id}": READ, "PUT /api/v1/documents/{id}/tags": WRITE, "PATCH /api/v1/notes/{id}": WRITE,
    "GET /api/v1/status": READ, "GET /sse": BOUND, "POST /sse/messages": ANY,
    **{f"{method} /mcp{family}": ANY for method in ("GET", "POST", "DELETE") for family in ("", "/core", "/thoughts", "/kb", "/memory", "/graph")},
}  # fmt: skip
TOOLS = {
    "capture_thought": WRITE, "semantic_search": READ, "get_thought": READ, "delete_thought": WRITE, "list_recent": READ,
    "propose_change": WRITE,
    "kb_search": READ, "kb_addnote": WRITE, "kb_upload_start": WRITE, "kb_upload_chunk": WRITE, "kb_upload_finish": WRITE,
    "kb_update_note": WRITE, "kb_get": READ, "kb_status": READ, "kb_jobs": READ,
    "memory.save": WRITE, "memory.search": READ, "memory.delete": WRITE, "memory.relation.save": WRITE,
    "memory.relation.delete": WRITE, "memory.relation.list": READ, "memory.relation.graph": READ,
    "create_entities": NAMED_WRITE, "delete_entities": NAMED_WRITE, "open_nodes": NAMED_READ, "get_nodes_by_type": NAMED_READ,
    "get_recently_modified": NAMED_READ, "set_summary": NAMED_WRITE, "set_tags": NAMED_WRITE, "add_observations": NAMED_WRITE,
    "replace_observation": NAMED_WRITE, "delete_observations": NAMED_WRITE, "query_observations": NAMED_READ,
    "create_relations": NAMED_WRITE, "delete_relations": NAMED_WRITE, "update_relation_type": NAMED_WRITE,
    "get_relations_between": NAMED_READ, "get_neighborhood": NAMED_READ, "get_path": NAMED_READ, "get_orphans": NAMED_READ,
    "get_relation_gaps": NAMED_READ, "find_similar_nodes": NAMED_READ, "search_nodes": NAMED_READ,
    "get_consolidation_report": NAMED_READ, "get_pending_consolidation": NAMED_READ, "get_stats": NAMED_READ,
}  # fmt: skip
# At /mcp/core a key that is bound to one workspace implies it.
CORE_TOOLS = {
    name: Rule(TOOLS[name].scope, "bound") if TOOLS[name].sees == "name" else TOOLS[name]
    for name in (*CORE, "get_stats")
}
METHODS = {
    "server/discover": ANY, "ping": ANY, "tools/list": ANY, "tools/call": ANY, "prompts/list": ANY, "prompts/get": READ,
    "resources/list": FILTERED, "resources/templates/list": ANY, "resources/read": NOTE, "completion/complete": FILTERED,
    "subscriptions/listen": NOTE, "resources/subscribe": NOTE, "resources/unsubscribe": ANY, "initialize": ANY,
}  # fmt: skip
PROMPTS = {"context": READ, "recall": READ, "capture-session": READ, "consolidate": READ}
COMPLETIONS = {
    "context project": FILTERED, "context workspace": FILTERED, "note workspace": FILTERED, "note path": FILTERED, "recall question": FILTERED, "recall tags": FILTERED,
    "recall workspace": FILTERED, "capture-session focus": FILTERED, "capture-session tags": FILTERED,
    "capture-session workspace": FILTERED, "consolidate topic": FILTERED, "consolidate tags": FILTERED,
    "consolidate workspace": FILTERED,
}  # fmt: skip
COMMANDS = [
    "archived",
    "audit.list",
    "audit.prune",
    "audit.show",
    "audit.verify",
    "capture",
    "check",
    "commit",
    "consolidate",
    "context.read",
    "consolidate.answer",
    "consolidate.list",
    "consolidate.undo",
    "delete",
    "enrich",
    "enrich.backfill",
    "enrich.stop",
    "file.add",
    "file.check",
    "folders",
    "get",
    "graph.around",
    "graph.export",
    "graph.gaps",
    "graph.import",
    "graph.orphans",
    "graph.path",
    "graph.pending",
    "graph.report",
    "graph.similar",
    "graph.stats",
    "graph.unknown",
    "graph.whole",
    "index",
    "index.examine",
    "job.history",
    "job.list",
    "job.run",
    "key.check",
    "key.create",
    "key.history",
    "key.list",
    "key.rename",
    "key.replace",
    "key.revoke",
    "key.rotate",
    "log",
    "log.before",
    "node.create",
    "node.delete",
    "node.forget",
    "node.list",
    "node.names",
    "node.observe",
    "node.open",
    "node.rename",
    "node.replace",
    "node.search",
    "node.summary",
    "node.tags",
    "perspective.add",
    "perspective.list",
    "perspective.remove",
    "perspective.reset",
    "perspective.set",
    "promote",
    "promoted",
    "queue.cancel",
    "queue.list",
    "queue.retry",
    "queue.show",
    "queue.wait",
    "recent",
    "relation.create",
    "relation.delete",
    "relation.list",
    "relation.rename",
    "restore",
    "review.dismiss",
    "review.list",
    "review.show",
    "search",
    "settings.list",
    "share.add",
    "share.list",
    "share.preview",
    "share.remove",
    "stamp",
    "status",
    "stop",
    "sync",
    "unarchive",
    "undo",
    "unpromote",
    "updatenote",
    "workspace.create",
    "workspace.delete",
    "workspace.count",
    "workspace.list",
]
RULES: dict[str, Rule] = {
    **ROUTES,
    **{f"tool {name}": rule for name, rule in TOOLS.items()},
    **{f"core {name}": rule for name, rule in CORE_TOOLS.items()},
    **{f"method {name}": rule for name, rule in METHODS.items()},
    **{f"prompt {name}": rule for name, rule in PROMPTS.items()},
    **{f"completion {name}": rule for name, rule in COMPLETIONS.items()},
    **{f"command {name}": OWNER for name in COMMANDS},
}


@dataclass(frozen=True)
class Caller:
    """A kind of caller: the key that it sends, what that key may, and the headers that narrow it."""

    key: str | None
    scopes: frozenset[str] = frozenset()  # none: the key does not open anything
    workspaces: frozenset[str] | None = None
    surfaces: frozenset[str] = frozenset({"mcp", "rest"})
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def named(self) -> str | None:
        return self.headers.get("x-memory-workspace")


def _caller(key: str, scopes: str = "read write", bound: str = "", surface: str = "", **headers: str) -> Caller:
    return Caller(
        key,
        frozenset(scopes.split()),
        frozenset(bound.split()) if bound else None,
        frozenset({surface} if surface else {"mcp", "rest"}),
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


# What a caller within is told where a row asks for what is not there, or leaves something out: the error's code and words.
NO_NOTE, NO_MEMO, NO_NODE = ("NOT_FOUND", "no document '"), ("NOT_FOUND", "no memo 'x'"), ("NOT_FOUND", "no node 'x'")
NO_UPLOAD, NO_SESSION = ("NOT_FOUND", "no such upload"), (-32600, "Missing session ID")
SAID_WITHIN: dict[str, tuple[object, str]] = {
    **dict.fromkeys(
        (
            *("GET /thought/{id}", "DELETE /thought/{id}", "GET /api/v1/documents/{id}", "PATCH /api/v1/notes/{id}"),
            *("PUT /api/v1/documents/{id}/tags", "tool get_thought", "tool delete_thought", "tool kb_get"),
            "tool kb_update_note",
        ),
        NO_NOTE,
    ),
    **{f"tool memory.{name}": NO_MEMO for name in ("delete", "relation.save", "relation.delete", "relation.graph")},
    **{
        f"tool {name}": NO_NODE
        for name in (
            *("set_summary", "set_tags", "replace_observation", "query_observations", "update_relation_type"),
            *("get_relations_between", "get_neighborhood", "get_path"),
        )
    },
    **{f"tool kb_upload_{name}": NO_UPLOAD for name in ("chunk", "finish")},
    **{f"core {name}": NO_NOTE for name in ("get_thought", "delete_thought", "kb_get", "kb_update_note")},
    **{row: NO_SESSION for row in ROUTES if "/mcp" in row},
    **{row: (-32602, "Validation error") for row in ROUTES if row.startswith("POST /mcp")},
    "GET /api/v1/jobs/{id}": ("NOT_FOUND", "no job '"),
    "tool propose_change": ("NOT_FOUND", "no note 'x.md' is shared"),
    "POST /sse/messages": (None, "session_id is required"),
    "method tools/call": ("INVALID_ARGUMENT", "no tool 'no_such_tool'"),
}

CALLERS = {
    "no key": Caller(None),
    **{f"a key that is {kind}": Caller(kind) for kind in ("bad", "nonsense", "expired", "revoked")},
    "all workspaces": _caller("full"),
    "all workspaces, one named": _caller("full", x_memory_workspace="default"),
    "all workspaces, an unknown one named": _caller("full", x_memory_workspace="nowhere"),
    "that only reads": _caller("reader", "read", x_memory_workspace="secret"),
    "that only writes": _caller("writer", "write", x_memory_workspace="default"),
    "of the owner": _caller("owner", "read write admin", x_memory_workspace="work"),
    "admin of one workspace": _caller("bound", "read write admin", "work", x_memory_workspace="work"),
    "bound to one": _caller("work", bound="work"),
    "bound to one, a forbidden one named": _caller("work", bound="work", x_memory_workspace="secret"),
    "bound to one, an unknown one named": _caller("work", bound="work", x_memory_workspace="nowhere"),
    "bound to two": _caller("two", bound="work default"),
    "bound to two, a forbidden one named": _caller("two", bound="work default", x_memory_workspace="secret"),
    "bound to one that is gone": _caller("gone", bound="nowhere"),
    "that asks for reading tools": _caller("full", x_memory_workspace="default", x_mcp_readonly="true"),
    "that hides all tools": _caller("full", x_memory_workspace="default", x_mcp_toolsets="none"),
    "for MCP": _caller("mcp-only", surface="mcp", x_memory_workspace="default"),
    "for REST": _caller("rest-only", surface="rest", x_memory_workspace="default"),
    "of the environment for MCP": _caller("static-mcp", surface="mcp", x_memory_workspace="default"),
    "of the environment for REST": _caller("static-rest", surface="rest", x_memory_workspace="default"),
}


# What the program has


def list_routes(app: Any) -> list[str]:
    """Every route of the application by method; a HEAD is asked with its GET."""
    rows = []
    for route in app._app.app.routes:
        methods = route.methods if isinstance(route, Route) and route.methods else {"GET", "POST", "DELETE"}
        methods = {"POST"} if route.path == "/sse/messages" else methods - {"HEAD"}
        rows += [f"{method} {re.sub(':[a-z]+}', '}', route.path)}" for method in sorted(methods)]
    forms = [f"POST {limit.path} as a form" for limit in app._bodies if limit.content_type]
    return rows + forms


def list_methods(app: Any) -> set[str]:
    """Every method of the protocol that an MCP server of the application answers."""
    servers = [route.endpoint.session_manager.app for route in app._app.app.routes if route.path.startswith("/mcp")]
    handled = {
        method
        for server in servers
        for of in (server._request_handlers, server._notification_handlers)
        for method in of
    }
    return handled | {"ping", "initialize"}


def list_program(app: Any, commands: Any) -> list[str]:
    """All that there is to be called, under the names of `RULES`."""
    arguments = [(kind.name, argument.name) for kind in prompts.KINDS.values() for argument in kind.arguments]
    places = [("note", name) for name in re.findall(r"\{\+?(\w+)\}", TEMPLATE.uri_template)]
    return [
        *list_routes(app),
        *(f"tool {operation.name}" for family in FAMILIES.values() for operation in family),
        *(f"core {name}" for name in (*CORE, "get_stats")),  # and one that its list leaves out
        *(f"method {name}" for name in sorted(list_methods(app))),
        *(f"prompt {name}" for name in prompts.KINDS),
        *(f"completion {of} {argument}" for of, argument in (*places, *arguments)),
        *(f"command {name}" for name in commands),
    ]


def without_rule(program: list[str]) -> list[str]:
    """What nobody has decided on, and rules of what is no more."""
    return sorted(set(program) ^ set(RULES))


# What a caller gets


def expected(row: str, name: str) -> str:
    """ "in", or why not, for the caller of that name."""
    rule, caller = RULES[row], CALLERS[name]
    is_rest = row in ROUTES and not row.split()[1].startswith(("/mcp", "/sse"))
    if rule is SIGNED:
        return "absent"  # without a secret the route does not exist, whoever asks
    if rule is OPEN and (caller.key is None or caller.scopes):
        return "in"
    if not caller.scopes:
        return "unauthenticated"
    if ("rest" if is_rest else "mcp") not in caller.surfaces or (rule.scope and rule.scope not in caller.scopes):
        return "forbidden"
    return seen(rule, caller)


def seen(rule: Rule, caller: Caller) -> str:
    """ "in" for a caller that may do such things somewhere, if it may there."""
    visible = EXISTING if caller.workspaces is None else caller.workspaces & EXISTING
    only = next(iter(caller.workspaces)) if caller.workspaces and len(caller.workspaces) == 1 else None
    allowed = {
        "none": True,
        "all": caller.workspaces is None,
        "uri": "secret" in visible and caller.named in (None, "secret"),
        "about": (caller.named or only or "default") in visible,
        "name": caller.named in visible,
        "bound": (caller.named or only) in visible,
    }
    return "in" if allowed[rule.sees] else "forbidden" if rule.sees == "all" else "hidden"


def outcome(row: str, answer: Any) -> str:
    """The same of what was answered, over HTTP or as a message of the protocol; "in" only for what a caller within gets."""
    error = find_error(answer)
    code, message = error.get("code"), str(error.get("message"))
    if answer.status_code == 401 or code == "UNAUTHENTICATED":
        return "unauthenticated"
    if answer.status_code == 403 or code == "PERMISSION_DENIED":
        return "forbidden"
    hidden = {"no such workspace": "hidden", "no such note, or the key": "hidden", "no such route": "absent"}
    if code == "NOT_FOUND" and (kind := next((hidden[words] for words in hidden if message.startswith(words)), "")):
        return kind
    if not error and answer.status_code in (200, 202):
        return "in"
    expected_code, words = SAID_WITHIN.get(row, ("", ""))
    if answer.status_code in (200, 400, 404) and code == expected_code and words in answer.text:
        return "in"
    return f"{answer.status_code} {code} {message[:150]} {answer.text[:150]}"


def find_error(answer: Any) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    if not isinstance(told, dict):
        return {}
    error = told.get("error") or told.get("result", {}).get("_meta", {}).get("dev.memex/error") or {}
    return {**error, **data} if isinstance(data := error.get("data"), dict) else error


class Door:
    """One caller at the application."""

    def __init__(self, rim: Any, caller: Caller, app: LocalApp) -> None:
        self._app, self._caller = app, caller
        self._headers = dict(caller.headers) | (rim.headers(caller.key) if caller.key else {})

    def ask(self, row: str) -> Any:
        """The answer to a row of the program."""
        kind, _, rest_of = row.partition(" ")
        match kind:
            case "tool" | "core":
                path, arguments = "/mcp", ARGUMENTS.get(rest_of, {"id": "0" * 8})
                if kind == "core":
                    path = "/mcp/core"
                    if rest_of == "create_entities":  # nothing deletes it before the next caller
                        arguments = {"entities": [{"name": uuid.uuid4().hex, "entity_type": "x"}]}
                return self.call("tools/call", path, name=rest_of, arguments=arguments)
            case "prompt":
                return self.call(
                    "prompts/get", name=rest_of, arguments={"question": "x"} if rest_of == "recall" else {}
                )
            case "completion":
                return self.complete(*rest_of.split())
            case "method":
                return self.method(rest_of)
        return self.route(kind, rest_of)

    def route(self, method: str, path: str) -> Any:
        """A request of a route, with what its operation takes."""
        sent: dict[str, Any] = {}
        if path.endswith(" as a form"):
            path, sent = FORM, {"files": {"file": ("x.md", b"x")}}
        elif method in ("POST", "PUT", "PATCH"):
            operation = next((of.name for one, at, of, *_ in rest.ROUTES if (one, at) == (method, path)), "")
            arguments = {"set_document_tags": {"tags": ["x"]}, "kb_update_note": {"text": "y"}}
            sent = {"json": arguments.get(operation, ARGUMENTS.get(operation, {}))}
        elif "search" in path:
            sent = {"params": {"query": "x"}}
        headers = self._headers | {"accept": "application/json, text/event-stream"}
        url = path.replace("{id}", "0" * 8).replace("/sse/messages", "/sse/messages/")
        return self._app.send(method, url, endless=True, headers=headers, **sent)

    def method(self, name: str) -> Any:
        """A request of the protocol; those of the older revisions come in a session."""
        if name == "initialize":
            return self.open_session()
        if name in ("ping", "resources/subscribe", "resources/unsubscribe"):
            return self.in_session(name, **({} if name == "ping" else {"uri": HIDDEN}))
        if name == "completion/complete":
            return self.complete("note", "workspace")
        params: dict[str, dict[str, Any]] = {
            "prompts/get": {"name": "recall", "arguments": {"question": "x"}},
            "tools/call": {"name": "no_such_tool", "arguments": {}},
            "resources/read": {"uri": HIDDEN},
            "subscriptions/listen": {"notifications": {"resourceSubscriptions": [HIDDEN]}},
        }
        return self.call(name, **params.get(name, {}))

    def complete(self, of: str, argument: str) -> Any:
        named = {"type": "ref/resource", "uri": TEMPLATE.uri_template}
        ref = named if of == "note" else {"type": "ref/prompt", "name": of}
        return self.call("completion/complete", ref=ref, argument={"name": argument, "value": ""})

    def call(self, method: str, path: str = "/mcp", **params: Any) -> Any:
        headers = {"mcp-protocol-version": REVISION, "mcp-method": method}
        if name := params.get("name") or params.get("uri"):
            headers["mcp-name"] = name
        return self._post(headers, method, params | {"_meta": META}, path)

    def open_session(self) -> Any:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "matrix", "version": "1"}}
        return self._post({}, "initialize", client)

    def in_session(self, method: str, **params: Any) -> Any:
        opened = self.open_session()
        if opened.status_code != 200:
            return opened
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        self._post(session, "notifications/initialized", {})
        return self._post(session, method, params)

    def _post(self, headers: dict[str, str], method: str, params: dict[str, Any], path: str = "/mcp") -> Any:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        message |= {} if method.startswith("notifications/") else {"id": 1}
        headers = self._headers | {"accept": "application/json, text/event-stream"} | headers
        endless = method == "subscriptions/listen"
        answer = self._app.send("POST", path, endless=endless, headers=headers, json=message)
        return answer if endless else _last_message(answer)


def _last_message(answer: Any) -> Any:
    """The message that a short stream of events holds, as an answer of its own."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return answer
    lines = [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data:")]
    return httpx2.Response(
        answer.status_code, headers={"mcp-session-id": answer.headers.get("mcp-session-id", "")}, text=lines[-1]
    )


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with listed(tmp_path_factory.mktemp("rim")) as served:
        now = now_ms()
        _, served.secrets["bound"] = served.agent_access.keys.create(
            "bound", workspaces=("work",), scopes=("read", "write", "admin"), now=now
        )
        served.agent_access.workspace("secret").capture("in secret", metadata={"title": "Hidden", "tags": ["xqtagzy"]})
        yield served


@pytest.fixture(scope="module")
def app(rim):
    settings = rim.world.app.settings
    with opened(build_app(rim.agent_access, settings), settings.server.port) as local:
        yield local


@pytest.fixture(scope="module")
def program(rim):
    return list_program(build_app(rim.agent_access, rim.world.app.settings), rim.world.app.commands)


def answers_to(rim: Any, app: LocalApp, name: str, rows: list[str]) -> dict[str, Any]:
    """What the caller of that name gets for each of these rows."""
    door = Door(rim, CALLERS[name], app)
    return {row: door.ask(row) for row in rows}


def state_of(rim: Any) -> tuple[Any, ...]:
    """What a refused request may not change: files, jobs and keys."""
    opened = rim.world.app.opened
    return rim.files(), opened.queue.counts(), list(opened.keys.history())


def test_all_that_can_be_called_has_a_rule(program):
    assert without_rule(program) == []
    operations = {operation.name: operation for family in FAMILIES.values() for operation in family}
    assert {name: operations[name].scope for name in TOOLS} == {name: rule.scope for name, rule in TOOLS.items()}


def test_a_route_a_tool_or_a_command_without_a_rule_is_named(rim):
    app = build_app(rim.agent_access, rim.world.app.settings)
    app._app.app.routes.append(Route("/leak/{id:path}", lambda _: Response("x"), methods=["GET", "PUT"]))
    listed = list_program(app, {**rim.world.app.commands, "key.show": lambda *_: None})
    assert without_rule([*listed, "tool read_vault"]) == [
        "GET /leak/{id}",
        "PUT /leak/{id}",
        "command key.show",
        "tool read_vault",
    ]
    assert without_rule([row for row in list_program(app, rim.world.app.commands) if row != "GET /metrics"])[0] == (
        "GET /leak/{id}"
    )


@pytest.mark.parametrize("name", CALLERS)
def test_every_caller_gets_what_the_rules_say_and_no_refusal_changes_anything(rim, app, program, name):
    rows = [row for row in program if not row.startswith("command ")]
    before = state_of(rim)
    answers = answers_to(rim, app, name, [row for row in rows if expected(row, name) != "in"])
    assert state_of(rim) == before
    answers |= answers_to(rim, app, name, [row for row in rows if row not in answers])
    outcomes = {row: outcome(row, answer) for row, answer in answers.items()}
    assert {row: told for row, told in outcomes.items() if told != expected(row, name)} == {}
    caller = CALLERS[name]
    if not caller.scopes or (caller.workspaces is not None and "secret" not in caller.workspaces):
        text = "".join(answer.text for answer in answers.values())
        assert "xqtagzy" not in text
        assert "Hidden" not in text.replace(HIDDEN, "")


def test_a_forbidden_workspace_is_told_in_the_words_of_one_that_is_not_there(rim, app, program):
    rows = [row for row in program if not row.startswith("command ") and RULES[row] is not OPEN]
    names = ("bound to one, a forbidden one named", "bound to one, an unknown one named")
    forbidden, unknown = (answers_to(rim, app, name, rows) for name in names)
    for row in rows:
        assert forbidden[row].status_code == unknown[row].status_code, row
        assert forbidden[row].text == unknown[row].text, row


def test_a_key_is_taken_from_its_header_alone(rim, app, program):
    secret = rim.secrets["full"]
    for row in (row for row in program if row in ROUTES and RULES[row] not in (OPEN, SIGNED)):
        method, path = row.removesuffix(" as a form").split()
        sent = {"json": {}} if method in ("POST", "PUT", "PATCH") else {}
        for where in (
            {"params": {"token": secret}},
            {"headers": {"cookie": f"key={secret}"}},
            {"headers": {"x-api-key": secret}},
        ):
            url = path.replace("{id}", "x").replace("/sse/messages", "/sse/messages/")
            assert app.send(method, url, **sent, **where).status_code == 401, (row, where)


def test_a_wrong_key_at_a_health_route_counts_as_everywhere(rim):
    settings = replace(rim.world.app.settings, limits=LimitsSettings(failures=3))
    bad = rim.headers("bad")
    with opened(build_app(rim.agent_access, settings), settings.server.port) as app:
        statuses = [app.send("GET", path, headers=bad).status_code for path in ("/healthz", "/readyz", "/openapi.json")]
        statuses += [app.send("GET", path, headers=bad).status_code for path in ("/healthz", "/openapi.json")]
        statuses += [
            app.send("GET", "/healthz").status_code,
            app.send("GET", "/thoughts", headers=rim.headers()).status_code,
        ]
    assert statuses == [401, 401, 401, 429, 429, 200, 200]


@pytest.mark.parametrize("signed_with", ["the secret", "another secret", "nothing"])
def test_the_hook_takes_a_signature_and_no_key(rim, app, monkeypatch, signed_with):
    looks = []
    monkeypatch.setattr(rim.agent_access.push_webhook, "_on_push", lambda: looks.append(1))
    secret = make_secret(rim.world.state, rotate=True)
    before, said = state_of(rim), {}
    for name, caller in CALLERS.items():
        body = json.dumps({"pushed by": name}).encode()
        digest = hmac.new({"the secret": secret}.get(signed_with, "x").encode(), body, hashlib.sha256).hexdigest()
        headers = dict(caller.headers) | (rim.headers(caller.key) if caller.key else {})
        headers |= {"content-type": "application/json", "x-github-event": "push", "x-github-delivery": digest}
        headers |= {} if signed_with == "nothing" else {"x-hub-signature-256": f"sha256={digest}"}
        said[name] = app.send("POST", git_webhook.PATH, headers=headers, content=body).status_code
    drop_secret(rim.world.state)
    opens = signed_with == "the secret"
    assert said == dict.fromkeys(CALLERS, 202 if opens else 401)
    assert len(looks) == (len(CALLERS) if opens else 0)
    assert state_of(rim) == before


def test_no_command_is_taken_without_the_token_of_the_control_socket(rim, program):
    done = []
    commands = [row.removeprefix("command ") for row in program if row.startswith("command ")]
    operations = {name: lambda arguments, _: done.append(arguments) for name in rim.world.app.commands}
    server, before = ControlServer(rim.world.state, operations), state_of(rim)
    server.start()
    try:
        openings = [None, "", "0" * 64, rim.secrets["owner"], f"Authorization: Bearer {rim.secrets['owner']}"]
        refused = {(name, opening): ask_socket(rim, opening, name) for name in commands for opening in openings}
        assert {asked for asked, error in refused.items() if error != "PERMISSION_DENIED"} == set()
        assert (done, state_of(rim)) == ([], before)
        token = (rim.world.state / TOKEN).read_text()
        assert [ask_socket(rim, token, name) for name in commands] == [""] * len(commands)
        assert len(done) == len(commands)
    finally:
        server.stop()


def ask_socket(rim: Any, opening: str | None, command: str) -> str:
    """The code of the error with which the control socket answers a command, after this first line if it is one."""
    request = json.dumps({"op": command, "args": {}}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        with short_address(rim.world.state / NAME) as where:
            client.connect(where)
        client.sendall((request if opening is None else f"{opening}\n{request}").encode())
        client.shutdown(socket.SHUT_WR)
        with client.makefile() as answer:
            told = [json.loads(line) for line in answer]
    return str(told[-1].get("error", {}).get("code", ""))


CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('in')"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
def test_no_other_user_of_the_host_gets_a_command_in(rim):
    server = ControlServer(rim.world.state, {})
    server.start()
    try:
        path = rim.world.state / NAME
        assert path.stat().st_mode & 0o077 == 0
        owner = [sys.executable, "-S", "-c", CONNECT, path]
        other = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", *owner]
        ours, theirs = (subprocess.run(words, capture_output=True, text=True, check=False) for words in (owner, other))
    finally:
        server.stop()
    assert ours.stdout == "in\n"
    assert "PermissionError" in theirs.stderr
