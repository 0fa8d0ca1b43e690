"""Every operation of the program's own list reports hidden characters in its answer, and says of notes' text that it is data."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress

import pytest

from index.errors import NotFound
from mcp_server.operations.operation import NOTES_ARE_DATA
from mcp_server.operations.wire_format import compact_schema
from mcp_server.rest.routes import ROUTES
from mcp_server.tools import kb
from mcp_server.tools.families import FAMILIES
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.until import until

OPERATIONS = {one.name: one for one in (*(tool for family in FAMILIES.values() for tool in family), *kb.ROUTED)}
# Fields of answers that repeat what a note says. Any other text in an answer is a name or an id, and is listed here.
PROSE = {
    *("content", "document_content", "chunk_content", "snippet", "matched_observation", "old_content", "new_content"),
    *("summary", "draft_summary", "rationale", "reason", "metadata", "title"),
}
NAMES = {
    *("id", "document_id", "chunk_id", "memo_id", "job_id", "upload_id", "sourceMemoId", "targetMemoId", "path"),
    *(
        "superseded_by",
        "content_hash",
        "key",
        "tool",
        "next_cursor",
        "next_before",
        "code",
        "mode",
        "state",
        "direction",
        "suspicious",
    ),
    *("created_at", "updated_at", "started_at", "finished_at", "expires_at", "since", "last_modified"),
    *("created_at_iso", "updated_at_iso", "at_iso", "url"),
    *("last_observation_at", "summary_updated_at", "source", "source_path", "heading", "collection", "tag"),
    *("collections", "namespace", "tags", "doc_type", "workspace", "warnings", "degraded", "message", "stage", "kind"),
    *("name", "entity_type", "entity_name", "from", "to", "relation_type", "from_entity", "to_entity", "old_type"),
    *("new_type", "deleted", "not_found", "node", "referenced_name", "node_a", "node_b", "node_a_type", "node_b_type"),
    *("node_names", "centroid_label", "matched_perspective", "target"),
}

TAG, ZERO = "\U000e0041", "\u200b"
HERON, COOT, LONER = f"Heron{TAG}", f"Coot{TAG}", f"Loner{TAG}"
BY_HAND = {
    HERON: "## Observations\n- stands near the reeds ^o1\n- sleeps ^o2\n\n## Relations\n- eats:: [[Coot]]\n",
    COOT: "## Observations\n- stands near the reeds ^o1\n",
    LONER: f"## Observations\n- stands near the {HERON} ^o1\n",
}
ENDS = {"sourceMemoId": "heron", "targetMemoId": "coot", "tag": "near"}
PAIR = {"from_entity": HERON, "to_entity": COOT}
UPLOAD = b"The heron stands near the lake"
# Each operation, in an order in which all of them work: what it takes. A route has its path in `id`.
CALLS = {
    "capture_thought": {"content": "The heron stands", "metadata": {"title": f"Heron{ZERO} stands"}},
    "semantic_search": {"query": "heron"},
    "get_thought": {"id": "$note"},
    "list_recent": {},
    "kb_search": {"query": "heron"},
    "kb_get": {"id": "$note"},
    "kb_update_note": {"id": "$note", "text": "The heron sleeps"},
    "set_document_tags": {"id": "$note", "tags": [f"bird{TAG}"]},
    "get_document": {"id": "$note"},
    "list_documents": {},
    "propose_change": {"path": "$shared", "text": "The heron sleeps", "reason": "It is night"},
    "kb_addnote": {"text": "The heron flies", "title": f"Heron{ZERO} flies"},
    "kb_upload_start": {"filename": f"heron{ZERO}.txt", "total_size": len(UPLOAD)},
    "kb_upload_chunk": {"upload_id": "$upload", "data": b64encode(UPLOAD).decode(), "chunk_index": 0},
    "kb_upload_finish": {"upload_id": "$upload"},
    "kb_jobs": {},
    "list_jobs": {},
    "get_job": {"id": "$job"},
    "kb_status": {},
    "delete_thought": {"id": "$note"},
    "memory.save": {"content": "The heron stands", "memo_id": "heron", "metadata": {"at": f"lake{TAG}"}},
    "memory.search": {"query": "heron"},
    "memory.relation.save": {**ENDS, "reason": f"both{TAG} swim"},
    "memory.relation.list": {},
    "memory.relation.graph": {"startMemoId": "heron"},
    "memory.relation.delete": ENDS,
    "memory.delete": {"memo_id": "coot"},
    "create_entities": {"entities": [{"name": "Egret", "entity_type": "bird"}]},
    "set_summary": {"name": HERON, "summary": "A bird"},
    "set_tags": {"name": HERON, "tags": ["bird"]},
    "add_observations": {"observations": [{"entity_name": HERON, "contents": ["flies"]}]},
    "replace_observation": {"entity_name": HERON, "ordinal": 3, "new_content": f"flies{TAG} low"},
    "query_observations": {"entity_name": HERON, "query": "flies low"},
    "open_nodes": {"names": [HERON]},
    "get_nodes_by_type": {"entity_type": "bird"},
    "get_recently_modified": {},
    "search_nodes": {"query": "stands near the reeds"},
    "get_relations_between": {"entity_a": HERON, "entity_b": COOT},
    "get_neighborhood": {"name": HERON},
    "get_path": PAIR,
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {"min_score": 0.0},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
    "delete_observations": {"deletions": [{"entity_name": HERON, "ordinals": [2]}]},
    "update_relation_type": {**PAIR, "old_type": "eats", "new_type": "fears"},
    "create_relations": {"relations": [{**PAIR, "relation_type": "likes"}]},
    "delete_relations": {"relations": [{**PAIR, "relation_type": "likes"}]},
    "delete_entities": {"entity_names": [LONER]},
}
# Their answers have ids, numbers, states and names that can't hide anything.
PLAIN = {
    *("kb_addnote", "kb_upload_start", "kb_upload_chunk", "kb_upload_finish", "kb_status", "memory.delete"),
    *("create_entities", "delete_relations", "get_stats"),
}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def texts_of(schema, name=""):
    """The names of the fields that hold free text, from the schema of an answer."""
    if "anyOf" in schema:
        return {found for choice in schema["anyOf"] for found in texts_of(choice, name)}
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {found for field, of in schema["properties"].items() for found in texts_of(of, field)}
        case "object" if schema["additionalProperties"] is True:
            return {name}
        case "array":
            return texts_of(schema["items"], name)
        case "string" if not {"enum", "const"} & set(schema):
            return {name}
    return set()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.name)
def test_an_answer_has_the_field_and_says_of_text_that_it_is_data(operation):
    schema = compact_schema(operation.returned, output=True)
    assert schema["properties"]["suspicious"]["type"] == "array"
    assert "suspicious" in schema["required"]
    texts = texts_of(schema)
    assert texts <= PROSE | NAMES, "a new field of an answer: is it text of notes, or a name?"
    assert (NOTES_ARE_DATA in operation.description) is bool(texts & PROSE)


def put_entities(space):
    """Entities as only a person can name them, indexed."""
    folder = space.folder / "Entities"
    folder.mkdir(parents=True)
    index = space.rim.world.app.opened.builds.scopes["captures"].index
    for name, body in BY_HAND.items():
        plain = name.removesuffix(TAG)
        front = f'---\ntype: entity\nname: "{name}"\nentity_type: bird\ncreated_at: 2026-01-01\n---\n'
        (folder / f"{plain}.md").write_text(front + body, "utf-8")
    until(lambda: len(index.graph(space.name).vertices()) == len(BY_HAND))


def share_note(space, name):
    """Share a note with the workspace; return its path once agents can read it."""
    path = f"References/{space.name} {name}.md"
    space.rim.world.write(path, "The heron stands\n")
    space.rim.world.app.operations["share.add"]({"workspace": space.name, "paths": [path]}, lambda _: None)

    def is_read():
        with suppress(NotFound):
            return bool(space.tools.document_at(path, shared=True))

    until(is_read)
    return path


def call(space, agent, name, given):
    """What an operation answers, over MCP or, where only REST has it, by its route."""
    route = next((route for route in ROUTES if route.operation.name == name), None)
    if name not in {one.name for one in kb.ROUTED}:
        return agent.good(name, **given)
    more = {key: value for key, value in given.items() if key != "id"}
    place = {"json": more} if route.place == "body" else {"params": more}
    answer = space.rest(route.method, route.path.format(**given), **place)
    assert answer.status_code == route.code, answer.text
    return answer.json()


@pytest.mark.slow
def test_every_operation_reports_what_its_answer_hides(rim):
    assert set(CALLS) == set(OPERATIONS)
    space, hidden = rim.space(), set()
    put_entities(space)
    made = {"shared": share_note(space, HERON)}
    with member(space) as agent:
        agent.good("memory.save", content="The coot nests", memo_id="coot")
        for name, given in CALLS.items():
            sent = {key: made.get(str(value)[1:], value) for key, value in given.items()}
            answer = call(space, agent, name, sent)
            for key in ("id", "upload_id", "job_id"):
                if key in answer:
                    made.setdefault({"id": "note"}.get(key, key.removesuffix("_id")), answer[key])
            if answer["suspicious"]:
                hidden.add(name)
    assert hidden == set(OPERATIONS) - PLAIN


FLAGGED = f"The grebe{ZERO} dives"
GREBE = {"name": "Grebe", "entity_type": "bird"}
# Each operation that writes text of notes: what it takes with a hidden character, in an order in which all of them work.
# The routes and the form write by the same calls.
WRITES = {
    "capture_thought": {"content": FLAGGED},
    "memory.save": {"content": FLAGGED, "memo_id": "grebe"},
    "kb_addnote": {"text": f"{FLAGGED} again"},
    "kb_update_note": {"id": "$note", "text": f"{FLAGGED} too"},
    "propose_change": {"path": "$shared", "text": FLAGGED, "reason": "It dives"},
    "kb_upload_finish": {"upload_id": "$upload"},
    "create_entities": {"entities": [{**GREBE, "observations": [FLAGGED]}]},
    "add_observations": {"observations": [{"entity_name": "Coot", "contents": [FLAGGED]}]},
    "replace_observation": {"entity_name": "Coot", "ordinal": 1, "new_content": FLAGGED},
    "set_summary": {"name": "Coot", "summary": FLAGGED},
}
# Those whose arguments have a text that stands in no note, or in one that is told of later; and those that hold names.
TELL_ELSEWHERE = {"kb_upload_chunk": "kb_upload_finish", "memory.relation.save": "suspicious"}
WRITTEN = {"content", "text", "contents", "new_content", "summary", "reason", "data", "observations"}


def fields_of(schema):
    """The names of all fields of arguments, nested ones too."""
    if isinstance(schema, list):
        return {name for part in schema for name in fields_of(part)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", ())) | {name for part in schema.values() for name in fields_of(part)}


def test_every_operation_that_writes_text_is_walked():
    takes = {
        name
        for name, one in OPERATIONS.items()
        if one.scope == "write" and fields_of(compact_schema(one.given)) & WRITTEN
    }
    assert takes - set(TELL_ELSEWHERE) == set(WRITES) - {"kb_upload_finish"}


def test_who_writes_hidden_text_is_warned(rim):
    space, told = rim.space(), {}
    made = {"shared": share_note(space, "Grebe")}
    with member(space) as agent:
        data = FLAGGED.encode() + b" from a file"
        upload = agent.good("kb_upload_start", filename="grebe.txt", total_size=len(data))["upload_id"]
        agent.good("kb_upload_chunk", upload_id=upload, data=b64encode(data).decode(), chunk_index=0)
        made["upload"] = upload
        for name, given in WRITES.items():
            if "Coot" in str(given):
                agent.good("delete_entities", entity_names=["Coot"])
                coot = {"name": "Coot", "entity_type": "bird", "observations": ["swims"]}
                assert agent.good("create_entities", entities=[coot])["warnings"] == []
            sent = {key: made.get(str(value)[1:], value) for key, value in given.items()}
            answer = agent.good(name, **sent)
            made.setdefault("note", answer.get("id"))
            if "job_id" in answer:
                until(lambda job=answer["job_id"]: finished(agent, job)["status"] == "done")
                answer = finished(agent, answer["job_id"])
            told[name] = [warning.split(": ")[:2] for warning in answer["warnings"]]
        job = finished(agent, agent.good("kb_addnote", text="The grebe rests")["job_id"])
        assert job["warnings"] == []
    assert told == {name: [["hidden-text", "zero-width"]] for name in WRITES}


def finished(agent, job):
    return agent.good("kb_jobs", job_id=job)["jobs"][0]
