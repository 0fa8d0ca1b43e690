"""`propose_change` over the wire: an agent's change of a shared note waits for the owner, and tells the agent nothing more."""

from __future__ import annotations

import json

import pytest

from index.timings import now_ms
from mcp_server.tools.thoughts_schema import ProposeChange
from tests.support.live_server import client, run, running
from tests.support.world import until

PATH = "References/Plan.md"
NOTE = "---\ntags: [a]\nstatus: open\n---\n# Plan\n\nOne xqoldzy line.\nTwo\nThree\n"
BODY = NOTE.partition("---\n# ")[2]
TEXT = f"# {BODY.replace('Two', '2')}"
WITHHELD = {
    "References/Marked.md": "---\nshare: false\n---\nOne\n",
    "Diary/Day.md": "One\n",
    "Captures/work/Mine.md": "One\n",
}


def fill(world):
    for path, text in {PATH: NOTE, **WITHHELD}.items():
        world.write(path, text)
    world.write("Elsewhere.md", "One\n")
    (world.vault / "References/Link.md").symlink_to(world.vault / "Elsewhere.md")
    world.write("References/Latin.md", b"caf\xe9\n")
    world.write("References/Windows.md", "One\r\nTwo\r\n")


@pytest.fixture
def rim(tmp_path):
    with running(tmp_path, fill=fill) as rim:
        ask(rim, "share.add", workspace="work", paths=["References"])
        until(lambda: rim.world.app.opened.builds.shared.is_complete)
        yield rim


def ask(rim, name, **arguments):
    return rim.world.app.operations[name](arguments, lambda _: None)


def called(rim, tool, *, key="work", **arguments):
    async def work():
        async with client(rim, key=key) as mcp:
            answer = await mcp.call_tool(tool, arguments)
            return answer.structured_content if not answer.is_error else json.loads(answer.content[0].text)["error"]

    return run(work())


def propose(rim, **arguments):
    return called(rim, "propose_change", **({"path": PATH, "reason": "Shorter."} | arguments))


def file_of(rim, proposed):
    return rim.world.vault / "Captures/work" / proposed["path"]


def note_of(rim):
    return (rim.world.vault / PATH).read_text()


def test_a_proposal_is_a_note_that_waits_and_the_note_is_unchanged(rim):
    before = rim.files()
    made = propose(rim, text=TEXT, properties={"status": "done"})
    assert made["created"] is True
    assert made["target"] == PATH
    text = file_of(rim, made).read_text()
    for part in (f"target: {PATH}\n", "reason: Shorter.\n", "source: work\n", "workspace: work\n", "type: change\n"):
        assert part in text
    assert "```diff\n" in text
    assert "-status: open\n+status: done\n" in text
    assert "-Two\n+2\n" in text
    after = rim.files()
    assert {path for path in after if after[path] != before.get(path)} == {f"Captures/work/{made['path']}"}
    assert [capture["id"] for capture in ask(rim, "review.list")["waiting"] if capture["type"] == "change"] == [
        made["id"]
    ]
    again = propose(rim, text=TEXT, properties={"status": "done"})
    assert again == made | {"created": False}


def test_a_text_and_a_patch_propose_the_same_change(rim):
    made = propose(rim, text=TEXT)
    assert propose(rim, patch="@@ -4 +4 @@\n-Two\n+2\n") == made | {"created": False}


def test_a_path_that_is_not_shared_answers_as_a_missing_one(rim):
    missing = propose(rim, path="PATH", text="mine")
    assert missing["code"] == "NOT_FOUND"
    before = rim.files()
    for path in (
        *WITHHELD,
        "References/Link.md",
        "References/None.md",
        "../outside.md",
        "/etc/passwd",
        "References",
        "References/../Elsewhere.md",
        "Elsewhere.md",
        "a\0b",
    ):
        answer = propose(rim, path=path, text="mine")
        told = (answer["code"], answer["message"])
        assert told == ("NOT_FOUND", missing["message"].replace(repr("PATH"), repr(path)))
    assert rim.files() == before


def test_the_longest_reason_of_the_schema_is_accepted(rim):
    longest = ProposeChange.model_json_schema()["properties"]["reason"]["maxLength"]
    assert propose(rim, text=TEXT, reason="x" * longest)["created"]


REFUSED = [
    ({}, "INVALID_ARGUMENT"),
    ({"text": f"# {BODY}"}, "INVALID_ARGUMENT"),
    ({"text": TEXT, "patch": "@@ -4 +4 @@\n-Two\n+2\n"}, "INVALID_ARGUMENT"),
    ({"patch": "@@ -4 +4 @@\n-Zwei\n+2\n"}, "INVALID_ARGUMENT"),
    ({"properties": {"share": True}}, "INVALID_ARGUMENT"),
    ({"properties": {"id": "mine"}}, "INVALID_ARGUMENT"),
    ({"text": "---\nshare: true\n---\nmine\n"}, "INVALID_ARGUMENT"),
    ({"text": "a\0b"}, "INVALID_ARGUMENT"),
    ({"patch": "@@ -4 +4 @@\n-Two\n+2\r-Three\n"}, "INVALID_ARGUMENT"),
    ({"text": TEXT, "reason": " "}, "INVALID_ARGUMENT"),
    ({"text": TEXT, "reason": "x" * 600}, "INVALID_ARGUMENT"),
    ({"text": "x" * 1_000_001}, "RESOURCE_EXHAUSTED"),
    ({"path": "References/Latin.md", "text": TEXT}, "INVALID_ARGUMENT"),
]


def test_what_can_not_be_proposed_is_refused_and_nothing_is_written(rim):
    before = rim.files()
    for arguments, code in REFUSED:
        assert propose(rim, **arguments)["code"] == code, str(arguments)[:80]
    assert rim.files() == before


def test_a_key_without_the_window_can_propose_nothing(rim):
    (rim.world.vault / "Captures/work/part").mkdir()
    _, rim.secrets["part"] = rim.agent_access.keys.create("part", workspaces=("work",), namespace="part", now=now_ms())
    _, rim.secrets["looker"] = rim.agent_access.keys.create(
        "looker", workspaces=("work",), scopes=("read",), now=now_ms()
    )
    rim.agent_access.create_workspace("other")
    _, rim.secrets["other"] = rim.agent_access.keys.create("other", workspaces=("other",), now=now_ms())
    before = rim.files()
    for key in ("part", "other"):
        assert propose(rim, key=key, text="mine")["code"] == "NOT_FOUND"
    assert propose(rim, key="looker", text="mine")["code"] == "PERMISSION_DENIED"
    assert rim.files() == before


def test_writes_of_other_tools_name_this_one(rim):
    (hit,) = called(rim, "semantic_search", query="xqoldzy", scope="vault")["results"][:1]
    for tool, more in (("kb_update_note", {"text": "mine"}), ("delete_thought", {})):
        refused = called(rim, tool, id=hit["document_id"], **more)
        assert refused["code"] == "PERMISSION_DENIED"
        assert "propose_change" in refused["message"]


@pytest.mark.slow
def test_after_the_share_ends_no_answer_has_the_text_and_the_owner_still_decides(rim):
    made = propose(rim, text=TEXT.replace("xqoldzy", "xqnewzy"))
    ask(rim, "share.remove", workspace="work", paths=["References"])
    answers = [
        called(rim, "get_thought", id=made["id"]),
        called(rim, "kb_get", id=made["id"]),
        called(rim, "kb_get", source_path=made["path"]),
        called(rim, "semantic_search", query="xqoldzy One line", detail="full"),
        called(rim, "kb_search", query="xqoldzy One line"),
        called(rim, "list_recent", detail="full"),
        rim.rest("GET", "/thoughts?detail=full", key="work").json(),
        rim.rest("GET", "/api/v1/documents?limit=50", key="work").json(),
        rim.rest("GET", "/api/v1/status", key="work").json(),
        called(rim, "memory_search", query="xqoldzy One line"),
        rim.rest("GET", f"/thought/{made['id']}", key="work").json(),
    ]
    assert "Shorter." in answers[0]["content"]
    assert not {"xqoldzy", "xqnewzy"} & {
        word for answer in answers for word in ("xqoldzy", "xqnewzy") if word in json.dumps(answer)
    }
    assert propose(rim, text="mine")["code"] == "NOT_FOUND"
    assert "xqnewzy" in ask(rim, "review.show", id=made["id"])["change"]["diff"]
    assert ask(rim, "promote", ids=[made["id"]])["failed"] == []
    assert "xqnewzy" in note_of(rim)


def test_an_agent_withdraws_a_proposal_and_changes_none(rim):
    made = propose(rim, text=TEXT)
    before = file_of(rim, made).read_bytes()
    refused = called(rim, "kb_update_note", id=made["id"], text="mine", title="Mine")
    assert refused["code"] == "INVALID_ARGUMENT"
    assert "propose_change" in refused["message"]
    assert "code" in called(rim, "memory_save", content="mine", memo_id=made["id"])
    tagged = rim.rest("PUT", f"/api/v1/documents/{made['id']}/tags", key="work", json={"tags": ["mine"]})
    assert tagged.json()["error"]["code"] == "INVALID_ARGUMENT"
    assert file_of(rim, made).read_bytes() == before
    assert called(rim, "delete_thought", id=made["id"])["deleted"]
    assert not file_of(rim, made).exists()


def test_a_damaged_proposal_shows_agents_no_text_of_the_note(rim):
    made = propose(rim, text=TEXT)
    file = file_of(rim, made)
    file.write_text(file.read_text().replace("---\n", "---\n<<<<<<< a\nb: 1\n=======\nb: 2\n>>>>>>> c\n", 1))
    ask(rim, "share.remove", workspace="work", paths=["References"])
    ask(rim, "index")
    answers = [
        called(rim, "list_recent", detail="full"),
        called(rim, "semantic_search", query="xqoldzy One line", detail="full"),
        called(rim, "kb_get", source_path=made["path"]),
    ]
    assert "Shorter." in json.dumps(answers)
    assert "xqoldzy" not in json.dumps(answers)


def test_line_ends_of_a_note_stay(rim):
    made = propose(rim, path="References/Windows.md", text="One\n2\n")
    ask(rim, "promote", ids=[made["id"]])
    assert (rim.world.vault / "References/Windows.md").read_bytes() == b"One\r\n2\r\n"


def test_the_tool_is_listed_with_its_family(rim):
    async def listed():
        async with client(rim, key="work") as mcp:
            return {tool.name: tool for tool in (await mcp.list_tools()).tools}

    tool = run(listed())["propose_change"]
    assert "only the owner applies it" in tool.description
    assert not tool.annotations.destructive_hint
