"""The window over the wire: which tools and keys see the notes that an owner shares, in which fields, and that all others see nothing."""

from __future__ import annotations

import json
import re

import pytest
from mcp.shared.exceptions import MCPError

from index.timings import now_ms
from mcp_server.protocol.resources import note_uri
from mcp_server.tools.families import FAMILIES
from tests.support.live_server import client, run, running
from tests.support.tool_arguments import ARGUMENTS
from tests.support.world import until

PATH = "References/xqnamezy.md"
TEXT = "# xqheadzy\n\nThe safe is opened with xqbodyzy. #xqinlinezy\n"
NOTE = f"---\nid: xqidzy\ntags: [xqtagzy]\naliases: [xqaliaszy]\nxqkeyzy: xqvaluezy\nsource: xqsourcezy\nscope: captures\n---\n{TEXT}"
HIDDEN = {
    "References/xqmarkedzy.md": "---\nshare: false\n---\nThe safe is opened with xqwithheldzy.\n",
    "Diary/xqdiaryzy.md": "The safe is opened with xqsecretzy.\n",
}
SECRET = re.compile(r"xq\w+?zy")
LOOKING = ("semantic_search", "kb_search", "get_thought", "kb_get")  # the tools that look through the window


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    def fill(world):
        for path, text in {PATH: NOTE, **HIDDEN}.items():
            world.write(path, text)
        world.write("Captures/work/Mine.md", "---\nid: mine\n---\nThe safe is opened with a capture.\n")

    with running(tmp_path_factory.mktemp("rim"), fill=fill) as rim:
        yield rim


@pytest.fixture(scope="module")
def opened(rim):
    """The server after its owner has shared a folder with the workspace `work`."""
    shared = rim.world.app.operations["share.add"]({"workspace": "work", "paths": ["References"]}, lambda _: None)
    assert shared["shared"] == [PATH]
    until(lambda: rim.world.app.opened.builds.shared.is_complete)
    return rim


def called(rim, tool, arguments, *, key="work", **headers):
    """The data of an answer, or of its error."""

    async def work():
        async with client(rim, key=key, **headers) as mcp:
            answer = await mcp.call_tool(tool.replace(".", "_"), arguments)
            return answer.structured_content if not answer.is_error else json.loads(answer.content[0].text)

    return run(work())


def shared_hit(rim):
    (hit,) = called(rim, "semantic_search", {"query": "the safe is opened", "scope": "vault"})["results"]
    return hit


def test_before_anything_is_shared_no_answer_has_a_trace_of_it(rim):
    for tool in ("semantic_search", "kb_search"):
        for scope in ("all", "vault", "captures"):
            answer = called(rim, tool, {"query": "the safe is opened", "scope": scope})
            assert [hit["document_id"] for hit in answer["results"]] == ([] if scope == "vault" else ["mine"])
            assert not any("scope" in hit for hit in answer["results"])
            assert not SECRET.search(json.dumps(answer))


def test_a_shared_note_is_found_beside_captures_and_marked(opened):
    for tool, place in (("semantic_search", "path"), ("kb_search", "source_path")):
        both = called(opened, tool, {"query": "the safe is opened"})["results"]
        assert {hit[place]: hit.get("scope") for hit in both} == {PATH: "vault", "Mine.md": None}
        (only,) = called(opened, tool, {"query": "the safe is opened", "scope": "vault"})["results"]
        assert only[place] == PATH
        assert [
            hit[place] for hit in called(opened, tool, {"query": "the safe is opened", "scope": "captures"})["results"]
        ] == ["Mine.md"]
        assert only["by"] == "hand"
        assert only["document_id"].startswith("vault:")
        assert only["chunk_id"].startswith(f"{only['document_id']}#")
        assert only["tags"] == ["xqtagzy", "xqinlinezy"]


def test_no_property_decides_the_scope(opened):
    made = called(opened, "capture_thought", {"content": "A safe that claims.", "metadata": {"scope": "vault"}})
    assert "scope" not in called(opened, "get_thought", {"id": made["id"]})
    called(opened, "delete_thought", {"id": made["id"]})


def test_the_whole_note_is_read_by_id_and_by_path(opened):
    hit = shared_hit(opened)
    whole = called(opened, "get_thought", {"id": hit["document_id"]})
    assert whole["content"] == TEXT
    assert whole["scope"] == "vault"
    assert whole["path"] == PATH
    assert whole["url"].endswith("&file=References%2Fxqnamezy.md")
    assert whole["metadata"] == {"xqkeyzy": "xqvaluezy", "aliases": ["xqaliaszy"], "scope": "captures"}
    for arguments in ({"id": hit["document_id"]}, {"source_path": PATH}):
        part = called(opened, "kb_get", arguments)
        assert part["content"] == TEXT
        assert part["scope"] == "vault"
        assert part["url"] == whole["url"]
    answer = opened.rest("GET", f"/thought/{hit['document_id']}", key="work")
    assert answer.json()["content"] == TEXT
    answer = opened.rest("GET", f"/api/v1/documents/{hit['document_id']}", key="work")
    assert answer.json()["scope"] == "vault"


@pytest.mark.parametrize("narrowed", [{"namespace": "default"}, {"collection": "documents"}, {"source": "xqsourcezy"}])
def test_a_filter_that_only_captures_have_leaves_shared_notes_out(opened, narrowed):
    assert (
        called(opened, "semantic_search", {"query": "the safe is opened", "scope": "vault"} | narrowed)["results"] == []
    )


def test_writes_are_refused(opened):
    id, before = shared_hit(opened)["document_id"], opened.files()
    for tool, arguments in (
        ("kb_update_note", {"id": id, "text": "mine"}),
        ("delete_thought", {"id": id}),
    ):
        assert called(opened, tool, arguments)["error"]["code"] == "PERMISSION_DENIED"
    assert opened.rest("PATCH", f"/api/v1/notes/{id}", key="work", json={"text": "mine"}).status_code == 403
    assert opened.rest("PUT", f"/api/v1/documents/{id}/tags", key="work", json={"tags": []}).status_code == 403
    assert opened.rest("DELETE", f"/thought/{id}", key="work").status_code == 403
    assert opened.files()[PATH] == before[PATH]


def test_other_tools_and_routes_see_nothing_of_it(opened):
    """With the key that has the window."""
    id = shared_hit(opened)["document_id"]
    tools = [operation.name for family in FAMILIES.values() for operation in family if operation.name not in LOOKING]
    for tool in tools:
        arguments = {
            name: id if value == "x" and name in ("id", "memo_id") else value
            for name, value in ARGUMENTS.get(tool, {"id": id}).items()
        }
        answer = called(opened, tool, arguments, X_Memory_Workspace="work")
        assert not SECRET.search(json.dumps(answer).replace(PATH, "")), tool
    for path in (
        "/thoughts?limit=200&detail=full",
        "/api/v1/documents?limit=200",
        f"/api/v1/documents?source_path={PATH}",
        "/api/v1/status",
        "/healthz",
        "/readyz",
    ):
        assert not SECRET.search(opened.rest("GET", path, key="work").text), path

    async def others():
        async with client(opened, key="work") as mcp:
            heard = [await mcp.list_resources()]
            heard += [
                await mcp.get_prompt(name, {"workspace": "work"} | arguments)
                for name, arguments in (
                    ("recall", {"question": "the safe is opened"}),
                    ("consolidate", {}),
                    ("capture-session", {}),
                )
            ]
            return "".join(answer.model_dump_json() for answer in heard)

    assert not SECRET.search(run(others()))


@pytest.mark.parametrize("key", ["work", "full"])
def test_no_resource_is_a_shared_note(opened, key):
    """Every key may read resources, also one without the families of the tools that look through the window."""

    async def refusal(path):
        async with client(opened, key=key) as mcp:
            with pytest.raises(MCPError) as refused:
                await mcp.read_resource(note_uri("work", path))
            return refused.value.error.code, refused.value.error.message

    assert run(refusal(PATH)) == run(refusal("References/Missing.md"))


def test_a_key_without_the_window_sees_nothing(opened):
    id = shared_hit(opened)["document_id"]
    (opened.world.vault / "Captures/work/part").mkdir(exist_ok=True)
    _, opened.secrets["part"] = opened.agent_access.keys.create(
        f"part {id}", workspaces=("work",), namespace="part", now=now_ms()
    )
    for key, headers in (
        ("full", {"X_Memory_Workspace": "default"}),
        ("two", {"X_Memory_Workspace": "default"}),
        ("part", {}),
    ):
        for tool, arguments in (
            ("semantic_search", {"query": "the safe is opened with xqbodyzy", "scope": "all"}),
            ("semantic_search", {"query": "the safe is opened with xqbodyzy", "scope": "vault"}),
            ("kb_search", {"query": "the safe is opened", "scope": "vault"}),
            ("get_thought", {"id": id}),
            ("kb_get", {"id": id}),
            ("kb_get", {"source_path": PATH}),
            ("kb_update_note", {"id": id, "text": "mine"}),
        ):
            answer = called(opened, tool, arguments, key=key, **headers)
            assert answer.get("results", []) == []
            assert answer.get("error", {}).get("code") in (None, "NOT_FOUND")
            assert not SECRET.search(json.dumps(answer).replace(PATH, "")), (key, tool)


def test_withheld_notes_are_told_to_nobody(opened):
    for query in ("xqwithheldzy", "xqsecretzy", "the safe is opened"):
        for tool in ("semantic_search", "kb_search"):
            answer = json.dumps(called(opened, tool, {"query": query}))
            assert not {"xqwithheldzy", "xqmarkedzy", "xqsecretzy", "xqdiaryzy"} & set(SECRET.findall(answer))


def test_reads_are_logged_under_the_id_of_the_note(opened, monkeypatch):
    audit = opened.world.app.opened.audit
    monkeypatch.setattr(audit, "reads", True)
    called(opened, "get_thought", {"id": shared_hit(opened)["document_id"]})
    assert any(entry.kind == "read" and "xqidzy" in entry.outcome.split() for entry in audit.entries())


def test_what_is_unshared_is_gone_at_once(opened):
    hit = shared_hit(opened)
    opened.world.app.operations["share.remove"]({"workspace": "work", "paths": ["References"]}, lambda _: None)
    assert called(opened, "semantic_search", {"query": "the safe is opened", "scope": "vault"})["results"] == []
    assert called(opened, "get_thought", {"id": hit["document_id"]})["error"]["code"] == "NOT_FOUND"
    assert called(opened, "kb_get", {"source_path": PATH})["error"]["code"] == "NOT_FOUND"
    assert called(opened, "delete_thought", {"id": hit["document_id"]})["error"]["code"] == "NOT_FOUND"
