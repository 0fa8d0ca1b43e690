"""`audit.reads`: each answer that repeats text of a note is in the audit log before it goes out, with the client's address."""

from __future__ import annotations

import asyncio
import json
import logging

import httpx2
import pytest

from index.errors import MemexError, Unavailable
from index.timings import now_ms
from mcp_server.http.client_address import parse_proxies
from mcp_server.http.metrics_page import Metrics
from mcp_server.http.request_log import log_requests
from mcp_server.operations.caller import CALLER, Caller
from mcp_server.operations.operation import OperationRunner
from mcp_server.protocol import prompts, resources
from mcp_server.rest.routes import OPERATIONS as ROUTED
from mcp_server.server import build_app
from mcp_server.tools.families import FAMILIES
from syncd.graph.node_request import NewNode
from syncd.settings.logs_and_traces import AuditSettings
from tests.support.audit_entries import unwritable
from tests.support.tool_arguments import ARGUMENTS
from tests.support.world import World

MARK = "xqwhimbrelzy"
OPERATIONS = {operation.name: operation for family in FAMILIES.values() for operation in family} | ROUTED


class Read:
    """A world whose audit log holds reads, with a note and two nodes that hold a word."""

    def __init__(self, folder):
        self.world = World(folder, audit=AuditSettings(reads=True))
        self.access, self.audit = self.world.app.agent_access, self.world.app.opened.audit
        self.workspace = self.access.workspace("default")
        self.note = self.workspace.capture(
            f"The {MARK} sleeps.", metadata={"title": "Sleeper", "tags": ["bird"]}
        ).record.id
        facts = [(name, (f"{name} saw the {MARK}",)) for name in ("Ada", "Charles")]
        self.nodes = {
            made.name: made.id
            for made in self.workspace.nodes.create([NewNode(name, "person", fact, MARK, ()) for name, fact in facts])
        }
        key, self.secret = self.access.keys.create("reader", workspaces=None, now=now_ms())
        self.caller = Caller(key, workspace="default")
        self.runner = OperationRunner(self.access, self.world.app.settings)

    def ask(self, name, given):
        async def work():
            CALLER.set(self.caller)
            return await self.runner.call(OPERATIONS[name], self.caller, given)

        return asyncio.run(work()).model_dump_json()

    def logged(self, after):
        return [entry for entry in self.audit.entries(after + 1) if entry.kind == "read"]

    def arguments(self, name):
        """Arguments that lead to the note or the nodes."""
        stand_ins = {"x": "Ada", "y": "Charles"}
        if OPERATIONS[name].family == "graph":
            text = json.dumps(ARGUMENTS[name])
            for short, long in stand_ins.items():
                text = text.replace(f'"{short}"', json.dumps(long))
            return json.loads(text) | ({"entity_type": "person"} if name == "get_nodes_by_type" else {})
        by_id = {"get_thought", "kb_get", "get_document"}
        given = {"id": self.note} if name in by_id else dict(ARGUMENTS.get(name, {}))
        return {key: MARK if key == "query" else self.note if value == "x" else value for key, value in given.items()}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    made = Read(tmp_path_factory.mktemp("read"))
    yield made
    made.world.close()


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.scope == "read"])
def test_each_tool_that_gives_text_away_is_logged_with_the_notes(read, name):
    before = read.audit.head.seq
    try:
        told = read.ask(name, read.arguments(name))
    except MemexError as error:
        assert error.code in ("NOT_FOUND", "INVALID_ARGUMENT"), error
        told = ""
    logged = read.logged(before)
    given_away = {id for id in (read.note, *read.nodes.values()) if id in told}
    given_away |= {
        id
        for node, id in read.nodes.items()
        if f"{node} saw" in told or f'"{node}","entity_type":"person","summary":"{MARK}' in told
    }
    named = {id for entry in logged for id in entry.outcome.split(" ")}
    if MARK in told:
        assert logged, told
        assert given_away
    assert given_away <= named or MARK not in told, (told, named)
    for entry in logged:
        assert (entry.tool, entry.name, entry.workspace, entry.id, entry.path) == (name, "reader", "default", "", "")


def test_prompts_and_resources_are_logged_too(read):
    before = read.audit.head.seq
    asked = prompts.check_arguments(prompts.KINDS["recall"], {"question": MARK})
    prompts.build_prompt(read.runner, read.caller, prompts.KINDS["recall"], asked, frozenset(FAMILIES))
    (listed, *_) = [entry for entry in resources.list_recent(read.access, read.caller) if entry.name == "Sleeper.md"]
    resources.read(read.access, read.caller, listed.uri)
    assert len([entry for entry in read.logged(before) if read.note in entry.outcome.split(" ")]) == 3


def test_the_reads_of_a_note_are_found_by_its_id_and_touch_no_other_question(read):
    read.ask("get_thought", {"id": read.note})
    found = read.audit.find(100, id=read.note)
    assert {"create", "read"} <= {entry.kind for entry in found}
    assert all(entry.id == read.note or read.note in entry.outcome.split(" ") for entry in found)
    assert [entry.kind for entry in read.audit.entries_about(id=read.note)] == ["create"]
    assert read.note in {id for id, *_ in read.audit.latest_notes()}
    assert read.world.app.operations["audit.verify"]({}, lambda _: None)["broken"] == 0


def test_what_can_not_be_logged_is_not_read(read):
    with unwritable(read.world.app.opened.ledger), pytest.raises(Unavailable, match=r"audit\.reads"):
        read.ask("get_thought", {"id": read.note})
    assert MARK in read.ask("get_thought", {"id": read.note})


def test_reads_are_not_logged_unless_that_is_set(tmp_path):
    world = World(tmp_path)
    try:
        workspace = world.app.agent_access.workspace("default")
        id = workspace.capture(MARK).record.id
        before = world.app.opened.audit.head
        workspace.log_reads([id])
        assert (world.app.opened.audit.head, workspace.logs_reads) == (before, False)
    finally:
        world.close()


@pytest.mark.parametrize(("proxies", "address"), [(("127.0.0.1",), "198.51.100.7"), ((), "127.0.0.1")])
def test_the_client_s_address_is_in_the_audit_log_and_the_request_log(read, caplog, proxies, address):
    caplog.set_level(logging.INFO, logger="mcp_server")
    metrics = Metrics(read.access.samples, version="1")
    guard = build_app(read.access, read.world.app.settings, port=8765, metrics=metrics)
    served = log_requests(guard, metrics, None, parse_proxies(proxies))
    before = read.audit.head.seq

    async def capture():
        transport = httpx2.ASGITransport(app=served, client=("127.0.0.1", 4711))
        headers = {"authorization": f"Bearer {read.secret}", "x-forwarded-for": "203.0.113.1, 198.51.100.7"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", headers=headers) as client:
            return await client.post("/capture", json={"content": f"from behind {proxies}"})

    assert asyncio.run(capture()).status_code == 200
    (entry,) = read.audit.entries(before + 1)
    (line,) = [record.fields for record in caplog.records if record.name == "mcp_server.http.request_log"]
    assert (entry.kind, entry.address, line["address"]) == ("create", address, address)
