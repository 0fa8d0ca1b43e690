"""The five tools as their contract has them, field by field, over REST and MCP on real stores; and the wall between workspaces."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from urllib.parse import quote

import pytest

from syncd.notes.front_matter import OWNED
from syncd.notes.timestamps import iso
from tests.support.live_server import client, run, running
from tests.support.world import until

TOOLS = {
    "capture_thought": ("POST", "/capture"),
    "semantic_search": ("POST", "/search"),
    "get_thought": ("GET", "/thought/{id}"),
    "delete_thought": ("DELETE", "/thought/{id}"),
    "list_recent": ("GET", "/thoughts"),
}
DIALECTS = ["rest", "legacy", "2026-07-28"]
TIMES = ("created_at", "updated_at", "created_at_iso", "updated_at_iso")
THOUGHT = {*("title", "source", "metadata", "summary", "tags", "collection", "namespace", "path"), *TIMES}
NASTY = [
    "\ufeffmark", "a\r\nb\rc\n\n", "\x00\x01\x7f\x85", "\u2028\u2029\x0b\x0c", "e\u0301 \u00e9 \u1e9b\u0323",
    "\U0001f469\u200d\U0001f4bb \U0001f1ef\U0001f1f5", "\u202eright to left\u202c", "\ud7ff\ue000\ufffe\uffff\U0010ffff",
    "---\nid: mine\n---\nnot properties", "---\n", "﻿---\nbroken: [\n---\n", "%%comment%% [[a|b]] ![[c]] #tag",
    "```\nnever closed", " \t ", "\n\n", "日本語のメモ。検索も。", "x" * 100_000, '{"json": "\\ud800"}', "<script>alert(1)</script>",
]  # fmt: skip


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def ask(space, dialect, tool, /, *, workspace=None, **given):
    """The status or code, and what a tool answers, in one of the dialects."""
    headers = {"X-Memory-Workspace": workspace} if workspace else {}
    if dialect == "rest":
        method, path = TOOLS[tool]
        if "{id}" in path:
            path = path.replace("{id}", given.pop("id"))
        sent = {"json": given} if method == "POST" else {"params": given}
        answer = space.rest(method, path, headers=headers, **sent)
        told = answer.json()
        return ("ok", told) if answer.status_code == 200 else (told["error"]["code"], told["error"])

    async def work():
        more = {"X_Memory_Workspace": workspace} if workspace else {}
        async with client(space.rim, key=space.name, mode=dialect, **more) as mcp:
            return await mcp.call_tool(tool, given)

    result = run(work())
    if result.is_error:
        shown = json.loads(result.content[0].text)["error"]
        return shown["code"], shown
    assert json.loads(result.content[0].text) == result.structured_content
    return "ok", result.structured_content


def good(*asked, **given):
    code, told = ask(*asked, **given)
    assert code == "ok", told
    return told


@pytest.mark.parametrize("dialect", DIALECTS)
def test_who_captures_code_or_links_that_obsidian_may_run_is_told_and_the_bytes_stay(rim, dialect):
    text = "# Tides\n\n```dataviewjs\ndv.list()\n```\n\n[Table](file:///opt/tides.sh)\n"
    space = rim.space()
    made = good(space, dialect, "capture_thought", content=text)
    assert made["warnings"] == [
        "runnable-code: Dataview: the note contains code that Obsidian may run: read the code before you open the note in Obsidian",
        "unsafe-link: file: the note contains links that may open files or programs: check the target before you follow a link",
    ]
    assert good(space, dialect, "get_thought", id=made["id"])["content"] == text


def test_who_captures_the_markers_of_a_merge_is_told_and_the_bytes_stay(rim):
    text = "# Tides\n\n<<<<<<< HEAD\nhigh at six\n=======\nhigh at seven\n>>>>>>> theirs\n"
    space = rim.space()
    made = good(space, DIALECTS[0], "capture_thought", content=text)
    assert made["warnings"] == ["merge-conflict: the text contains merge markers (<<<<<<<, =======, >>>>>>>)"]
    assert good(space, DIALECTS[0], "get_thought", id=made["id"])["content"] == text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_tool_answers_with_the_fields_of_its_contract(rim, dialect):
    space = rim.space()
    text = "# Sailing\n\nThe keel is lead."
    made = good(space, dialect, "capture_thought", content=text, source="voice", metadata={"a": {"b": [1, None, "x"]}})
    assert set(made) == {
        *("id", "created", "content_hash", "title", "tags", "summary", "chunks", *TIMES),
        *("path", "url", "warnings", "suspicious"),
    }
    assert (made["created"], made["chunks"], made["updated_at"]) == (True, 1, None)
    assert (made["summary"], set(made["tags"])) == ("The keel is lead.", {"sailing", "keel", "lead"})
    assert made["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
    found = good(space, dialect, "semantic_search", query="keel of lead")
    assert set(found) == {"results", "mode", "degraded", "suspicious"}
    (hit,) = found["results"]
    linked = {"url"} if dialect == "rest" else set()
    assert set(hit) == THOUGHT | linked | {
        *("document_id", "chunk_content", "document_content", "document_truncated", "score", "heading"),
        *("by", "suspicious", "chunk_id"),
    }
    assert (hit["document_id"], hit["document_content"], hit["document_truncated"]) == (made["id"], text, False)
    assert hit["chunk_content"] in text
    assert 0 < hit["score"] <= 1
    whole = good(space, dialect, "get_thought", id=made["id"])
    assert set(whole) == THOUGHT | {
        *("id", "content", "content_hash", "version", "chunks", "created_by", "updated_by", "suspicious", "url")
    }
    assert made["path"] == hit["path"] == whole["path"] == "Sailing.md"
    folder = f"{space.rim.world.vault.name}&file=Captures%2F{quote(space.name)}"
    assert made["url"] == whole["url"] == f"obsidian://open?vault={folder}%2FSailing.md"
    made_at = datetime.fromisoformat(made["created_at_iso"])
    assert round(made_at.timestamp() * 1000) == made["created_at"] == whole["created_at"]
    assert whole["suspicious"] == hit["suspicious"] == []
    surface = {"by": "agent", "key": space.name, "tool": "capture_thought"}
    at = whole["created_by"]["at"]
    surface |= {"at": at, "at_iso": iso(at)}
    assert (whole["created_by"], whole["updated_by"]) == (surface, None)
    assert whole["content"] == text
    assert whole["chunks"] == [{"id": hit["chunk_id"], "ordinal": 0, "content": hit["chunk_content"]}]
    assert whole["metadata"] == hit["metadata"] == {"a": {"b": [1, None, "x"]}}
    assert whole["source"] == "voice"
    recent = good(space, dialect, "list_recent", limit=5)
    assert set(recent) == {"results", "next_before", "suspicious"}
    assert set(recent["results"][0]) == THOUGHT | linked | {
        *("id", "content", "content_truncated", "content_hash", "suspicious")
    }
    (full,) = good(space, dialect, "semantic_search", query="keel of lead", detail="full")["results"]
    assert full["url"] == whole["url"]
    gone = good(space, dialect, "delete_thought", id=made["id"])
    assert gone == {"id": made["id"], "deleted": True, "title": "Sailing", "suspicious": []}
    assert list(space.folder.iterdir()) == []
    assert good(space, dialect, "semantic_search", query="keel of lead")["results"] == []
    assert good(space, dialect, "list_recent") == {"results": [], "next_before": None, "suspicious": []}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["rest", "2026-07-28"])
def test_what_comes_back_is_byte_for_byte_what_went_in(rim, dialect):
    space = rim.space()
    other = "2026-07-28" if dialect == "rest" else "rest"
    ids = [good(space, dialect, "capture_thought", content=text)["id"] for text in NASTY]
    assert len(set(ids)) == len(NASTY)
    for text, id in zip(NASTY, ids, strict=True):
        for way in (dialect, other) if len(text) < 50 else (dialect,):
            assert good(space, way, "get_thought", id=id)["content"].encode() == text.encode(), ascii(text[:40])
    rim.world.run()
    listed = good(space, dialect, "list_recent", limit=200, detail="full")["results"]
    assert {note["id"]: note["content"] for note in listed} == dict(zip(ids, NASTY, strict=True))


@pytest.mark.parametrize("field", ["content", "query", "source", "metadata", "id"])
def test_half_a_character_is_refused_everywhere(rim, field):
    space = rim.space()
    path = "/search" if field == "query" else "/capture"
    sent = {"content": "x", "query": "x"}
    bodies = {
        "metadata": '{"content": "x", "metadata": {"k": "\\ud800"}}',
        "source": '{"content": "x", "source": "\\ud800"}',
    }
    body = bodies.get(field) or json.dumps({field: "\ud800"} if field != "id" else sent)
    if field == "id":
        answer = space.rest("GET", "/thought/%ED%A0%80")
        assert answer.status_code == 404
    else:
        answer = space.rest("POST", path, content=body.encode(), headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")
    tool = {"query": "semantic_search", "id": "get_thought"}.get(field, "capture_thought")
    given = {field: "a\\ud800"} if field in ("content", "query", "id") else {"content": "x", field: "\\ud800"}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": given,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    headers = {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
    }  # fmt: skip
    raw = json.dumps(call).replace("\\\\ud800", "\\ud800").encode()
    answer = space.rest("POST", "/mcp", content=raw, headers=headers)
    assert answer.status_code in (200, 400)
    assert '"isError":true' in answer.text or '"error"' in answer.text
    assert list(space.folder.iterdir()) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_key_that_memex_owns_is_refused_in_metadata(rim, dialect):
    space = rim.space()
    before = rim.files()
    for key in sorted(OWNED - {"title", "tags"}):
        for spelt in (key, key.upper(), f" {key}") if dialect == "rest" else (key,):
            code, told = ask(space, dialect, "capture_thought", content="x", metadata={spelt: "y"})
            assert code == "INVALID_ARGUMENT", spelt
            assert key in told["message"].casefold()
    assert rim.files() == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_content_again_embeds_nothing_and_moves_only_updated_at(rim, dialect):
    space = rim.space()
    first = good(space, dialect, "capture_thought", content="said twice", metadata={"n": 1})
    before, calls = space.file_of(first["id"]).read_text(), list(rim.encoder.calls)
    again = good(space, dialect, "capture_thought", content="said twice", source="other", metadata={"n": 2})
    assert rim.encoder.calls == calls
    assert (again["id"], again["created"], again["created_at"]) == (first["id"], False, first["created_at"])
    assert again["updated_at"] >= first["created_at"]
    after = space.file_of(first["id"]).read_text()
    assert [line for line in after.splitlines() if not line.startswith("updated_at:")] == before.splitlines()
    third = good(space, dialect, "capture_thought", content="said twice")
    assert third["updated_at"] > first["created_at"]
    whole = good(space, dialect, "get_thought", id=first["id"])
    assert (whole["updated_at"], whole["metadata"]) == (third["updated_at"], {"n": 1})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_content_again_leaves_a_note_that_its_owner_has_marked_unchanged(rim, dialect):
    space = rim.space()
    first = good(space, dialect, "capture_thought", content="ticked and said twice")
    file = space.file_of(first["id"])
    marked = file.read_bytes().replace(b"created_at:", b"promote: true\ncreated_at:")
    assert marked != file.read_bytes()
    file.write_bytes(marked)
    again = good(space, dialect, "capture_thought", content="ticked and said twice")
    assert (again["id"], again["created"]) == (first["id"], False)
    assert file.read_bytes() == marked
    file.unlink()  # the daemon would promote it amid a later test that compares all files


def test_twenty_at_once_lose_nothing_and_double_nothing(rim):
    space = rim.space()
    with ThreadPoolExecutor(20) as pool:
        distinct = list(pool.map(lambda n: space.capture(f"# One name\n\nnumber {n}"), range(20)))
        same = list(pool.map(lambda _: space.capture("all say this"), range(20)))
    assert all(told["created"] for told in distinct)
    assert {told["title"] for told in distinct} == {"One name"}
    assert sum(told["created"] for told in same) == 1
    assert len({told["id"] for told in distinct}) == 20
    assert len({told["id"] for told in same}) == 1
    assert len(list(space.folder.iterdir())) == len(space.tools.recent(100)) == 21
    found = space.rest("POST", "/search", json={"query": "number", "top_k": 50, "mode": "text"}).json()["results"]
    assert {hit["document_id"] for hit in found} == {told["id"] for told in distinct}
    rim.world.run()
    assert len(space.tools.recent(100)) == 21


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["rest", DIALECTS[-1]])
def test_a_batch_has_an_end_although_all_notes_have_one_time(rim, dialect):
    space = rim.space()
    for number in range(203):
        (space.folder / f"Day {number}.md").write_text(f"---\ncreated: 2024-03-01\n---\nday {number}\n", "utf-8")
    until(lambda: len(space.tools.recent(300)) == 203)
    batches, before = [], {}
    while before is not None:
        batch = good(space, dialect, "list_recent", limit=2, **before)
        batches.append([note["id"] for note in batch["results"]])
        before = None if batch["next_before"] is None else {"before": batch["next_before"]}
    assert [len(batch) for batch in batches] == [200, 3]
    assert len({id for batch in batches for id in batch}) == 203


@pytest.mark.parametrize("dialect", ["rest", pytest.param("legacy", marks=pytest.mark.slow), "2026-07-28"])
def test_a_workspace_shows_nothing_of_another(rim, dialect):
    mine, theirs = rim.space(), rim.space()
    shared = "the walrus sleeps here"
    one = good(mine, dialect, "capture_thought", content=shared)
    other = good(theirs, dialect, "capture_thought", content=shared)
    secret = good(theirs, dialect, "capture_thought", content="a secret walrus: quokka", metadata={"tags": ["quiet"]})
    assert one["created"]
    assert other["created"]
    assert one["id"] != other["id"]
    assert {key: one[key] for key in ("title", "content_hash", "chunks")} == {
        key: other[key] for key in ("title", "content_hash", "chunks")
    }
    heard = []
    for mode in ("hybrid", "vector", "text"):
        for more in ({}, {"tags": ["quiet"]}, {"namespace": theirs.name}, {"detail": "full", "top_k": 50}):
            found = good(mine, dialect, "semantic_search", query="walrus quokka", mode=mode, **more)
            assert {hit["document_id"] for hit in found["results"]} <= {one["id"]}
            heard.append(found)
    heard.append(good(mine, dialect, "list_recent", limit=200))
    assert [note["id"] for note in heard[-1]["results"]] == [one["id"]]
    before = rim.files()
    unknown = "0" * 8 + secret["id"][8:]
    for tool in ("get_thought", "delete_thought"):
        forbidden = ask(mine, dialect, tool, id=secret["id"])
        missing = ask(mine, dialect, tool, id=unknown)
        assert forbidden[0] == "NOT_FOUND"
        assert json.dumps(forbidden).replace(secret["id"], "ID") == json.dumps(missing).replace(unknown, "ID")
    for tool, given in (
        ("capture_thought", {"content": "x"}),
        ("semantic_search", {"query": "walrus"}),
        ("get_thought", {"id": secret["id"]}),
        ("delete_thought", {"id": secret["id"]}),
        ("list_recent", {}),
    ):
        forbidden = ask(mine, dialect, tool, workspace=theirs.name, **given)
        missing = ask(mine, dialect, tool, workspace="no such space", **given)
        assert forbidden == missing
        assert forbidden[0] == "NOT_FOUND"
    assert rim.files() == before
    assert "quokka" not in json.dumps(heard)
    good(mine, dialect, "delete_thought", id=one["id"])
    assert good(theirs, dialect, "get_thought", id=other["id"])["content"] == shared
