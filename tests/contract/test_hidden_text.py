"""Hidden text is told in every answer that repeats it, over the wire; stored bytes never change, and the origin of hits is told."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.types import PromptReference

from index.text.hidden_characters import KINDS
from mcp_server.protocol.resources import note_uri
from tests.support.live_server import client, run, running
from tests.support.mcp_agent import member
from tests.support.until import until

TAG, BIDI, ESC = "\U000e0041", "\u202e", "\x1b[31m"
HEAVY = f"The heron {BIDI}stands{ESC} in the reeds{TAG} of the lake"
FOUND = ["ansi", "bidi", "tag"]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture
def one(rim):
    with member(rim.space()) as agent:
        yield agent


def put_by_hand(space, name, text):
    """A note as its owner writes it, indexed."""
    space.folder.mkdir(parents=True, exist_ok=True)
    (space.folder / f"{name}.md").write_text(text, "utf-8")
    path = f"Captures/{space.name}/{name}.md"
    until(lambda: space.rim.world.app.opened.builds.scopes["captures"].index.record_at(path) is not None)


def test_thoughts_tell_what_is_hidden(rim):
    space = rim.space()
    made = space.capture(HEAVY)
    clean = space.capture("The heron sleeps in the tree of the island")
    assert [warning.partition(":")[0] for warning in made["warnings"]] == ["hidden-text"]
    assert made["warnings"][0].startswith("hidden-text: ansi, bidi, tag: ")
    assert clean["warnings"] == []
    hits = space.rest("POST", "/search", json={"query": "heron"}).json()["results"]
    told = {hit["document_id"]: hit["suspicious"] for hit in hits}
    assert told == {made["id"]: FOUND, clean["id"]: []}
    whole = space.rest("GET", f"/thought/{made['id']}").json()
    assert (whole["suspicious"], whole["content"]) == (FOUND, HEAVY)
    recent = space.rest("GET", "/thoughts").json()["results"]
    assert {note["id"]: note["suspicious"] for note in recent} == told


def test_documents_tell_what_is_hidden(one, rim):
    made = one.good("capture_thought", content=HEAVY)
    (hit,) = one.good("kb_search", query="heron")["results"]
    assert (hit["suspicious"], hit["by"]) == (FOUND, "key")
    assert one.good("kb_get", id=made["id"])["suspicious"] == FOUND
    changed = one.good("kb_update_note", id=made["id"], text="The heron \u200bis gone from the lake")
    assert [warning.split(": ")[:2] for warning in changed["warnings"]] == [["hidden-text", "zero-width"]]
    assert one.good("kb_get", id=made["id"])["suspicious"] == ["zero-width"]
    one.good("kb_update_note", id=made["id"], text="The heron is gone")
    assert one.good("kb_get", id=made["id"])["suspicious"] == []


def test_memos_tell_what_is_hidden(one):
    saved = one.good("memory.save", content=HEAVY, metadata={"place": f"lake{TAG}"})
    assert saved["warnings"][0].startswith("hidden-text: ansi, bidi, tag: ")
    other = one.good("memory.save", content="The coot nests on the lake")
    items = one.good("memory.search", query="heron and coot")["items"]
    assert {item["memo_id"]: item["suspicious"] for item in items} == {saved["memo_id"]: FOUND, other["memo_id"]: []}
    ends = {"sourceMemoId": saved["memo_id"], "targetMemoId": other["memo_id"]}
    one.good("memory.relation.save", **ends, tag="near", reason=f"both{BIDI} swim")
    assert one.good("memory.relation.list")["suspicious"] == ["bidi", "tag"]
    assert one.good("memory.relation.graph", startMemoId=saved["memo_id"])["suspicious"] == ["bidi", "tag"]


def test_nodes_tell_what_is_hidden(one):
    heron = {
        "name": "Heron",
        "entity_type": "bird",
        "observations": [f"stands{TAG} in the reeds"],
        "summary": f"A{BIDI} bird",
    }
    coot = {"name": "Coot", "entity_type": "bird", "observations": ["nests on the lake"]}
    one.good("create_entities", entities=[heron, coot])
    opened = one.good("open_nodes", names=["Heron", "Coot"])["entities"]
    assert [node["suspicious"] for node in opened] == [["bidi", "tag"], []]
    assert opened[0]["observations"][0]["content"] == f"stands{TAG} in the reeds"
    for tool, arguments in (
        ("get_nodes_by_type", {"entity_type": "bird"}),
        ("get_recently_modified", {}),
        ("get_orphans", {}),
    ):
        told = {node["name"]: node["suspicious"] for node in one.good(tool, **arguments)["results"]}
        assert told == {"Heron": ["bidi"], "Coot": []}, tool
    hits = one.good("search_nodes", query="reeds of the lake")["results"]
    assert {hit["name"]: (hit["suspicious"], hit["by"]) for hit in hits} == {
        "Heron": (["bidi", "tag"], "key"),
        "Coot": ([], "key"),
    }
    (fact,) = one.good("query_observations", entity_name="Heron", query="reeds")["results"]
    assert (fact["suspicious"], fact["by"]) == (["tag"], "key")
    (near,) = one.good("get_neighborhood", name="Heron")["nodes"]
    assert near["suspicious"] == ["bidi"]
    replaced = one.good("replace_observation", entity_name="Heron", ordinal=1, new_content="flies")
    assert replaced["suspicious"] == ["tag"]


@pytest.mark.parametrize("hidden", [TAG, BIDI, "\u200b", "\ufeff"])
def test_nothing_new_is_named_with_characters_that_nobody_sees(one, hidden):
    bad, good = f"{hidden}Heron", {"name": "Coot", "entity_type": "bird"}
    ends = {"from_entity": "Coot", "to_entity": "Coot"}
    near = {"sourceMemoId": "a", "targetMemoId": "b", "tag": bad}
    one.good("create_entities", entities=[good])
    one.good("create_relations", relations=[{**ends, "relation_type": "likes"}])
    for tool, arguments in (
        ("create_entities", {"entities": [good | {"name": bad}]}),
        ("create_entities", {"entities": [{"name": "Heron", "entity_type": bad}]}),
        ("create_relations", {"relations": [{**ends, "relation_type": bad}]}),
        ("update_relation_type", {**ends, "old_type": "likes", "new_type": bad}),
        ("memory.relation.save", near),
    ):
        code, told = one.ask(tool, **arguments)
        assert code == "INVALID_ARGUMENT", tool
        assert "invisible characters" in told["message"]
    assert one.refused("memory.relation.delete", **near) == "NOT_FOUND"
    assert one.good("get_stats")["node_count"] == 1
    emoji = {"name": "Woman \U0001f469\u200d\U0001f4bb ❤\ufe0f", "entity_type": "می\u200cخواهم"}
    one.good("create_entities", entities=[emoji])


def test_a_resource_and_a_prompt_tell_what_is_hidden(rim):
    space = rim.space()
    made = space.capture(HEAVY, metadata={"title": f"Heron{TAG}", "tags": [f"bird{TAG}"]})

    async def work():
        async with client(rim, key=space.name, X_Memory_Workspace=space.name) as mcp:
            read = await mcp.read_resource(note_uri(space.name, "Heron.md"))
            listed = await mcp.list_resources()
            tags = await mcp.complete(
                PromptReference(type="ref/prompt", name="recall"), {"name": "tags", "value": "bird"}
            )
            return read, listed, tags, await mcp.get_prompt("recall", {"question": "Where is the heron?"})

    read, listed, tags, prompt = run(work())
    notes = [resource for resource in listed.resources if not str(resource.uri).startswith("context:")]
    assert [note.meta for note in notes] == [{"dev.memex/suspicious": ["tag"]}]
    assert (tags.completion.values, tags.meta) == ([f"bird{TAG}"], {"dev.memex/suspicious": ["tag"]})
    (note,) = read.contents
    assert note.text == HEAVY
    assert note.meta == {"dev.memex/id": made["id"], "dev.memex/suspicious": FOUND}
    text = prompt.messages[0].content.text
    assert not {TAG, BIDI, "\x1b"} & set(text)
    assert "\\u202e" in text
    assert "\\udb40\\udc41" in text


def test_hits_tell_whether_a_key_or_only_people_wrote_the_note(rim):
    space = rim.space()
    put_by_hand(space, "Mine", "The heron is mine alone")
    ours = space.capture("The heron is of both of us")["id"]
    theirs = space.capture("The heron is the agent's")["id"]
    mine = next(note["id"] for note in space.rest("GET", "/thoughts").json()["results"] if note["title"] == "Mine")
    space.file_of(ours).write_text(space.file_of(ours).read_text("utf-8") + "\n\nAnd I add this.\n", "utf-8")

    def told():
        hits = space.rest("POST", "/search", json={"query": "heron"}).json()["results"]
        return {hit["document_id"]: hit["by"] for hit in hits}

    assert told() == {mine: "hand", ours: "key", theirs: "key"}
    with member(space) as agent:
        by_tool = {hit["document_id"]: hit["by"] for hit in agent.good("kb_search", query="heron")["results"]}
        assert by_tool == told()
        assert {item["memo_id"]: item["by"] for item in agent.good("memory.search", query="heron")["items"]} == told()
        agent.good("kb_update_note", id=mine, text="The heron is no longer mine")
        assert told()[mine] == "key"


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(
        st.sampled_from(f"ab é\n{TAG}{BIDI}\x1b\x00\x9b\u200b\u200d\u200e\ufeff\u00ad\ufe0f\U0001f3f4"), min_size=1
    )
)
def test_hidden_characters_change_no_stored_byte(rim, content):
    space = rim.space()
    made = space.capture(content)
    raw = space.file_of(made["id"]).read_bytes()
    for method, path, more in (
        ("GET", f"/thought/{made['id']}", {}),
        ("POST", "/search", {"json": {"query": "a b"}}),
        ("GET", "/thoughts", {}),
    ):
        assert space.rest(method, path, **more).status_code == 200
    assert raw.endswith(content.encode())
    assert space.file_of(made["id"]).read_bytes() == raw
    whole = space.rest("GET", f"/thought/{made['id']}").json()
    assert whole["content"] == content
    assert set(whole["suspicious"]) <= set(KINDS)
