"""No tool of an agent deletes what a person has just written into a note: it answers CONFLICT until the edit can be read."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from syncd.notes.front_matter import decode, edit, encode
from syncd.settings.settings import SyncSettings
from tests.support.disk_faults import Fault
from tests.support.live_server import client, run, running
from tests.support.world import until

BY_RENAME = "import os, pathlib, sys; p = pathlib.Path(sys.argv[1]); t = p.with_name('.save.tmp'); t.write_bytes(sys.stdin.buffer.read()); os.replace(t, p)"
IN_PLACE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
WORDS = b"\nA person's own words.\n"


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    # An edit is read after a moment that a test can be quicker than.
    patient = SyncSettings(quiet_s=0.6, patience_s=2.0, adopt_s=0.6, listing_s=3600.0)
    with running(tmp_path_factory.mktemp("rim") / "state", sync=patient) as served:
        yield served


def save(file, raw, *, program):
    """Another process saves the note."""
    subprocess.run([sys.executable, "-S", "-c", program, file], input=raw, check=True)


def called(rim, tool, arguments):
    """The answer of a tool: its error, or what it returned."""

    async def call():
        async with client(rim) as mcp:
            return json.loads((await mcp.call_tool(tool, arguments)).content[0].text)

    answer = run(call())
    return answer.get("error", answer)


def by_rest(rim, id):
    answer = rim.rest("DELETE", f"/thought/{id}")
    told = answer.json()
    assert (answer.status_code == 409) == ("error" in told)
    return told.get("error", told)


def captured(rim, content, **more):
    answer = rim.rest("POST", "/capture", json={"content": content, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def a_note(rim, name):
    return captured(rim, f"# {name}\n\nof an agent")


def a_memo(rim, name):
    return called(rim, "memory.save", {"content": f"{name} of an agent"})["memo_id"]


def a_node(rim, name):
    called(rim, "create_entities", {"entities": [{"name": name, "entity_type": "thing", "observations": ["one"]}]})
    return name


def a_file(rim, name):
    """The document of an uploaded file."""
    answer = rim.rest("POST", "/api/v1/jobs", files={"file": (f"{name}.csv", b"of,an\nagent," + name.encode())})
    queue, job = rim.world.app.opened.queue, answer.json()["job_id"]
    until(lambda: queue.job(job).status in ("done", "failed"))
    return queue.job(job).document_id


TOOLS = {
    "delete_thought": (a_note, lambda rim, note: called(rim, "delete_thought", {"id": note})),
    "DELETE thought": (a_note, by_rest),
    "memory.delete": (a_memo, lambda rim, memo: called(rim, "memory.delete", {"memo_id": memo})),
    "delete_entities": (a_node, lambda rim, name: called(rim, "delete_entities", {"entity_names": [name]})),
    "DELETE node": (a_node, lambda rim, name: by_rest(rim, node(rim, name).id)),
    "DELETE file": (a_file, by_rest),
}


@pytest.fixture(autouse=True)
def in_default(rim, monkeypatch):
    """The tools of the graph need a workspace by name."""
    headers = rim.headers
    monkeypatch.setattr(
        rim, "headers", lambda key="full", **more: headers(key, **{"X_Memory_Workspace": "default"} | more)
    )


def node(rim, name):
    return rim.agent_access.workspace("default").nodes.get(name)


def file_of(rim, id):
    space = rim.agent_access.workspace("default")
    known = {vertex.name: vertex.path for vertex in space.nodes.graph.vertices()}
    return rim.world.vault / (known[id] if id in known else space.record(id).path)


def without_stamps(raw):
    """The lines without the time and the version, which Memex writes when it has read an edit."""
    return [line for line in raw.splitlines(keepends=True) if not line.startswith((b"updated_at: ", b"version: "))]


def with_alias(raw):
    """An edit of nothing but a property that no agent is told of."""
    return encode(edit(decode(raw), {"aliases": ["By hand"]}))


EDITS = {
    "text by rename": (lambda raw: raw + WORDS, BY_RENAME),
    "text in place": (lambda raw: raw + WORDS, IN_PLACE),
    "a property": (with_alias, BY_RENAME),
}


@pytest.mark.parametrize(
    ("tool", "change"),
    [
        *((tool, change) for tool in TOOLS for change in ("text by rename", "a property")),
        ("delete_thought", "text in place"),
    ],
)
def test_a_note_that_a_person_has_just_edited_is_not_deleted_until_the_edit_is_read(rim, tool, change):
    make, delete = TOOLS[tool]
    edited, program = EDITS[change]
    id = make(rim, f"{tool} {change}".replace(" ", "-").replace(".", "-"))
    rim.world.settled()
    file = file_of(rim, id)
    stored = [other for other in file.parent.iterdir() if other.name == file.stem]  # the file that the note is of
    raw = edited(file.read_bytes())
    save(file, raw, program=program)
    told = delete(rim, id)
    assert (told.get("code"), told.get("retryable")) == ("CONFLICT", True), told
    assert "person" in told["message"]
    assert without_stamps(file.read_bytes()) == without_stamps(raw)
    assert all(other.exists() for other in stored)
    until(lambda: "code" not in delete(rim, id), 30, pause=0.5)
    assert not file.exists()
    assert not any(other.exists() for other in stored)


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_a_save_at_the_very_moment_of_the_deletion_wins(rim, tool):
    make, delete = TOOLS[tool]
    id = make(rim, f"at {tool}".replace(" ", "-").replace(".", "-"))
    rim.world.settled()
    file, vault = file_of(rim, id), rim.world.app.opened.vault
    raw, good = file.read_bytes() + WORDS, vault._calls

    def save_first(real, *arguments, **named):
        save(file, raw, program=BY_RENAME)
        return real(*arguments, **named)

    # The note of a stored file goes after the file.
    vault._calls = Fault("rename", 2 if tool == "DELETE file" else 1, save_first).calls
    try:
        told = delete(rim, id)
    finally:
        vault._calls = good
    assert (told.get("code"), told.get("retryable")) == ("CONFLICT", True), told
    assert file.read_bytes() == raw


def test_of_several_nodes_none_goes_when_one_was_just_edited(rim):
    names = [a_node(rim, f"several {number}") for number in range(3)]
    rim.world.settled()
    files = [file_of(rim, name) for name in names]
    save(files[1], files[1].read_bytes() + WORDS, program=BY_RENAME)
    told = called(rim, "delete_entities", {"entity_names": names})
    assert (told["code"], told["details"]["title"]) == ("CONFLICT", names[1])
    assert all(file.exists() for file in files)


def test_what_memex_has_just_written_is_no_edit_of_a_person(rim):
    for number in range(5):  # enrichment and stamps come right after
        assert by_rest(rim, captured(rim, f"short lived {number}"))["deleted"]
    dropped = rim.world.write("Captures/default/Dropped.md", "dropped in by hand\n")
    space = rim.agent_access.workspace("default")
    until(lambda: b"id:" in dropped.read_bytes(), 30)
    until(lambda: any(record.title == "Dropped" and len(record.id) == 36 for record in space.recent(50)), 30)
    (record,) = (record for record in space.recent(50) if record.title == "Dropped")
    assert by_rest(rim, record.id)["deleted"]
