"""Every tool of an agent logs one entry for each file that it writes, and none writes while the log can't."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext

import pytest

from mcp_server.tools.families import FAMILIES
from tests.support.audit_entries import unwritable
from tests.support.live_server import client, run, running
from tests.support.mcp_agent import member
from tests.support.world import until


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def entries(rim, after):
    return list(rim.world.app.opened.audit.entries(after + 1))


@pytest.mark.parametrize("way", ["rest", "http", "sse", "stdio"])
def test_a_write_of_an_agent_is_logged_with_key_tool_surface_and_request(rim, way):
    space, seen = rim.space(), rim.world.app.opened.audit.head.seq
    contents, requests = [f"by an agent {n}" for n in range(2)], []
    if way == "rest":
        for content in contents:
            answer = space.rest("POST", "/capture", json={"content": content})
            requests.append(answer.headers["x-request-id"])
    else:

        async def work():
            async with client(rim, key=space.name, way=way) as mcp:
                for content in contents:
                    assert not (await mcp.call_tool("capture_thought", {"content": content})).is_error

        run(work())
    logged = entries(rim, seen)
    key = rim.agent_access.keys.find_live(space.name, now=0)
    assert len(logged) == 2
    for entry in logged:
        assert (entry.surface, entry.key, entry.name) == ("rest" if way == "rest" else "mcp", key.id, space.name)
        assert (entry.tool, entry.kind, entry.workspace) == ("capture_thought", "create", space.name)
        assert entry.outcome == "done"
    assert len({entry.request for entry in logged} - {""}) == 2  # each call's own, also in one session
    assert [entry.request for entry in logged] == requests or way != "rest"


def test_a_write_that_is_not_allowed_is_logged_and_a_read_is_not(rim):
    seen = rim.world.app.opened.audit.head.seq
    assert rim.rest("POST", "/capture", key="reader", json={"content": "no"}).status_code == 403
    assert rim.rest("POST", "/search", key="writer", json={"query": "no"}).status_code == 403
    (entry,) = entries(rim, seen)
    assert (entry.kind, entry.tool, entry.name, entry.outcome) == (
        "denied",
        "capture_thought",
        "reader",
        "PERMISSION_DENIED",
    )
    assert entry.path == entry.id == entry.workspace == ""
    for named, known in (("work", "work"), ("mx_secret_0123", "")):  # a header may hold anything
        headers = {"x-memory-workspace": named}
        assert rim.rest("POST", "/capture", key="reader", json={"content": "no"}, headers=headers).status_code == 403
        assert entries(rim, seen)[-1].workspace == known


ADA, BABBAGE = "Ada Lovelace", "Charles Babbage"
KNEW = {"from_entity": ADA, "to_entity": BABBAGE, "relation_type": "knew"}
MADE = [
    {"name": ADA, "entity_type": "person", "observations": ["Wrote programs", "Wrote letters"]},
    {"name": BABBAGE, "entity_type": "person", "observations": ["Drew the engine"]},
]
MEMOS = {"sourceMemoId": "ONE", "targetMemoId": "TWO", "tag": "cites"}
# What each tool is asked, after a thought "kept", the nodes above with a relation, two memos with one, and a shared note; ID, ONE, TWO and SHARED are theirs.
WALKED = {
    "capture_thought": {"content": "walked"},
    "semantic_search": {"query": "kept"},
    "get_thought": {"id": "ID"},
    "list_recent": {},
    "propose_change": {"path": "SHARED", "text": "walked", "reason": "to walk it"},
    "delete_thought": {"id": "ID"},
    "create_entities": {"entities": [{"name": f"Node {n}", "entity_type": "thing"} for n in range(3)]},
    "delete_entities": {"entity_names": [BABBAGE]},
    "open_nodes": {"names": [ADA]},
    "get_nodes_by_type": {"entity_type": "person"},
    "get_recently_modified": {},
    "set_summary": {"name": ADA, "summary": "A mathematician."},
    "set_tags": {"name": ADA, "tags": ["math"]},
    "add_observations": {
        "observations": [{"entity_name": one, "contents": ["Lived in London"]} for one in (ADA, BABBAGE)]
    },
    "replace_observation": {"entity_name": ADA, "ordinal": 1, "new_content": "Wrote the first program"},
    "delete_observations": {"deletions": [{"entity_name": ADA, "ordinals": [1]}]},
    "query_observations": {"entity_name": ADA, "query": "programs"},
    "create_relations": {"relations": [KNEW | {"relation_type": "admired"}]},
    "delete_relations": {"relations": [KNEW]},
    "update_relation_type": {"from_entity": ADA, "to_entity": BABBAGE, "old_type": "knew", "new_type": "met"},
    "get_relations_between": {"entity_a": ADA, "entity_b": BABBAGE},
    "get_neighborhood": {"name": ADA},
    "get_path": {"from_entity": ADA, "to_entity": BABBAGE},
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {},
    "search_nodes": {"query": "programs"},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
    "memory.save": {"content": "walked"},
    "memory.search": {"query": "walked"},
    "memory.delete": {"memo_id": "TWO"},
    "memory.relation.save": MEMOS | {"tag": "extends"},
    "memory.relation.delete": MEMOS,
    "memory.relation.list": {},
    "memory.relation.graph": {"startMemoId": "ONE"},
    "kb_search": {"query": "kept"},
    "kb_addnote": {"text": "walked"},
    "kb_upload_start": {"filename": "walked.md", "total_size": 3},
    "kb_upload_chunk": {"upload_id": "BEGUN", "data": "YWJj", "chunk_index": 0},
    "kb_upload_finish": {"upload_id": "WHOLE"},
    "kb_update_note": {"id": "ID", "text": "walked anew"},
    "kb_get": {"id": "ID"},
    "kb_status": {},
    "kb_jobs": {},
}
STAGING = {"kb_upload_start", "kb_upload_chunk"}  # they need a key that writes, and write nothing into the vault yet
QUEUING = {"kb_addnote", "kb_upload_finish"}  # what they write is the queue, and its worker the vault
OPERATIONS = [operation for family in FAMILIES.values() for operation in family]
FAMILY = {operation.name: name for name, family in FAMILIES.items() for operation in family}


def test_every_tool_is_walked():
    assert {operation.name for operation in OPERATIONS} <= set(WALKED)


@pytest.fixture(scope="module")
def calls(rim):
    """What calls a tool in a workspace of its own, that has what these families or tools need; one client makes all its calls."""

    @contextmanager
    def prepared(needs):
        space = rim.space()
        with member(space) as agent:
            yield fill(space, agent, needs)

    def fill(space, agent, needs):
        ids = {"ID": space.capture("kept")["id"]}

        def call(name, given):
            asked = {key: ids.get(value, value) if isinstance(value, str) else value for key, value in given.items()}
            return agent.portal.call(agent.mcp.call_tool, name, asked)

        if "propose_change" in needs:
            ids["SHARED"] = f"References/{space.name}.md"
            rim.world.write(ids["SHARED"], "to be walked\n")
            sharing = {"workspace": space.name, "paths": [ids["SHARED"]]}
            rim.world.app.operations["share.add"](sharing, lambda _: None)
            until(lambda: not call("kb_get", {"source_path": "SHARED"}).is_error)
        if "graph" in needs:
            assert not call("create_entities", {"entities": MADE}).is_error
            assert not call("create_relations", {"relations": [KNEW]}).is_error
        if "memory" in needs:
            for memo in ("ONE", "TWO"):
                ids[memo] = call("memory.save", {"content": f"memo {memo}"}).structured_content["memo_id"]
            assert not call("memory.relation.save", MEMOS).is_error
        if "kb" in needs:
            for upload in ("BEGUN", "WHOLE"):
                begun = call("kb_upload_start", {"filename": f"{space.name}.md", "total_size": 3})
                ids[upload] = begun.structured_content["upload_id"]
            sent = {"upload_id": ids["WHOLE"], "data": "YWJj", "chunk_index": 0}
            assert not call("kb_upload_chunk", sent).is_error
        return lambda name: call(name, WALKED[name])

    return prepared


@pytest.fixture(scope="module")
def reads(calls):
    """What calls a tool in one workspace that nothing changes."""
    with calls(FAMILIES) as call:
        yield call


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_tool_logs_one_entry_for_each_file_and_a_log_that_fails_stops_those_that_write(
    rim, calls, reads, operation
):
    with nullcontext(reads) if operation.scope == "read" else calls({FAMILY[operation.name], operation.name}) as call:
        writes = operation.scope == "write" and operation.name not in STAGING
        with unwritable(rim.world.app.opened.ledger):
            before = rim.files()
            answer = call(operation.name)
            assert rim.files() == before
            assert answer.is_error == writes, answer
            if writes:
                assert json.loads(answer.content[0].text)["error"]["code"] == "UNAVAILABLE"
                assert operation.name in QUEUING or rim.rest("GET", "/healthz", key=None).json()["status"] == "degraded"
        before, seen = rim.files(), rim.world.app.opened.audit.head.seq
        answer = call(operation.name)
        assert not answer.is_error, answer
        until(lambda: not {"queued", "running"} & {one.status for one in rim.world.app.opened.queue.jobs()})
        after = rim.files()
        changed = sorted(path for path in before | after if before.get(path) != after.get(path))
        logged = entries(rim, seen)
        assert sorted(entry.path for entry in logged) == changed
        assert {(entry.surface, entry.tool) for entry in logged} == ({("mcp", operation.name)} if writes else set())


def test_many_writers_leave_one_whole_chain(rim):
    from concurrent.futures import ThreadPoolExecutor

    space, seen = rim.space(), rim.world.app.opened.audit.head.seq
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: space.capture(f"written at once {n}")["id"], range(24)))
    assert sorted(entry.id for entry in entries(rim, seen)) == sorted(ids)
    found = rim.world.app.operations["audit.verify"]({"files": False}, lambda _: None)
    assert found["broken"] == 0
