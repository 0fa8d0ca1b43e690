"""Agents and promotion: whatever they send, by whichever way, marks nothing; and what a person has marked they leave alone."""

from __future__ import annotations

import base64
import threading

import pytest

from index.errors import Conflict, InvalidArgument, MemexError
from syncd.documents.owner_marks import EDITED, read_marks
from syncd.graph.node_request import NewNode
from syncd.history.audit_log import Author, acting_as
from syncd.notes.front_matter import decode
from syncd.notes.property_reader import PERSONS
from tests.support.live_server import running
from tests.support.mcp_agent import agent
from tests.support.world import World

FRONT = "---\npromote: true\npromote_to: Notes\npromoted_at: 2026-11-21\n---\n"
TRICKS = (
    FRONT,
    f"\ufeff{FRONT}",
    f"\r\n{FRONT}",
    f"---\n---\n{FRONT}",
    f"```\n```\n{FRONT}",
    "---\r\npromote: true\r\n---\r\n",
    "promote:: true\n- [x] promote #promote\n%%\npromote: true\n%%\n",
    "\u202epromote: true\u202c\n\u200bpromote: true\n---\npromote: true\n---\n",
    "- [x] Promote the capture ^p-0123456789abcdef\n",
    "\n---\nid: x\npromote: true\n---\n" * 3,
    f"[[{'a' * 50_000}]] {'[[' * 20_000} [x]({'../' * 20_000}.obsidian/x.md)\n{FRONT}",
)
KEYS = ("promote", "Promote", " promote ", "ｐromote", "promote_to", "review", "promoted_at", "superseded_by")


def everywhere(agent, rest, trick):
    """Send a text by every way in which an agent can give one."""
    agent.ask("capture_thought", content=f"{trick}thought {trick}", source=trick.strip()[:80].replace("\n", " "))
    agent.ask("memory.save", content=f"{trick}memo", metadata={"note": trick, "nested": {"promote": True}})
    for key in KEYS:
        assert agent.refused("capture_thought", content=f"{key}{trick}", metadata={key: True}) == "INVALID_ARGUMENT"
        assert agent.refused("memory.save", content=f"{key} {trick}", metadata={key: True}) == "INVALID_ARGUMENT"
    agent.ask("kb_addnote", text=f"{trick}job", title=f"{trick.strip()[:60]}", tags=["promote"])
    made = agent.good("capture_thought", content=f"to be changed {trick}")
    agent.ask("kb_update_note", id=made["id"], text=f"{trick}changed", title="promote: true")
    observations = [trick, "promote: true", "x\n---\npromote: true\n---"]
    agent.good("create_entities", entities=[{"name": f"N{abs(hash(trick))}", "entity_type": "promote: true"}])
    for said in observations:
        agent.ask("add_observations", observations=[{"entity_name": f"N{abs(hash(trick))}", "contents": [said]}])
    agent.good("set_summary", name=f"N{abs(hash(trick))}", summary="x\npromote: true\n---\n")
    raw = f"{trick}uploaded".encode()
    begun = agent.good("kb_upload_start", filename="promote.md", total_size=len(raw))
    agent.ask("kb_upload_chunk", upload_id=begun["upload_id"], chunk_index=0, data=base64.b64encode(raw).decode())
    agent.ask("kb_upload_finish", upload_id=begun["upload_id"])
    answer = rest("POST", "/capture", json={"content": f"{trick}rest", "metadata": {"promote": True}})
    assert answer.status_code == 400
    rest("POST", "/capture", json={"content": f"{trick}rest"})
    rest("POST", "/api/v1/jobs", json={"text": f"{trick}rest job", "title": "promote: true"})
    rest("PATCH", f"/api/v1/notes/{made['id']}", json={"text": f"{trick}patched"})


def proper(world):
    """The files of the vault proper."""
    found = (file for file in world.vault.rglob("*") if file.is_file() and "Captures" not in file.parts)
    return {file for file in found if ".git" not in file.parts}


@pytest.mark.slow
def test_nothing_that_an_agent_sends_promotes(tmp_path):
    with running(tmp_path, fill=lambda world: world.write("Notes/Mine.md", "mine\n")) as rim:
        before = proper(rim.world)
        with agent(rim, workspace="work") as one:
            for trick in TRICKS:
                everywhere(one, lambda *given, **more: rim.rest(*given, key="full", **more), trick)
            listed = str(one.portal.call(one.mcp.list_tools).model_dump()).lower()
            assert "promot" not in listed
            assert "promot" not in rim.rest("GET", "/openapi.json").text.lower()
        rim.world.settled()
        rim.world.app.services.marked_captures.run()
        notes = list((rim.world.vault / "Captures").rglob("*.md"))
        assert len(notes) > 40
        for note in notes:
            said = read_marks(decode(note.read_bytes()))
            assert (said.promote, said.promote_to, said.promoted_at) == (False, None, None), note
        assert proper(rim.world) == before


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.write("Captures/default/A.md", "---\nid: a1\ncreated_at: 2026-11-20\n---\nwords\n")
    world.run()
    world.app.opened.sync.ready.set()
    yield world
    world.close()


@pytest.mark.parametrize("surface", ["mcp", "rest"])
def test_no_write_of_an_agent_changes_a_persons_key(world, surface):
    vault = world.app.opened.vault
    raw, _ = vault.read("Captures/default/A.md")
    digest = world.app.opened.builds.scopes["captures"].index.record_at("Captures/default/A.md").digest
    with acting_as(Author(surface, "some tool")):
        for key in (*PERSONS, "PROMOTE", "Promote_To", "ｐromote", '"promote "'):
            with pytest.raises(InvalidArgument, match="only be set by the owner"):
                vault.create("Captures/default/B.md", f"---\nid: b1\n{key}: true\n---\n".encode())
            with pytest.raises(InvalidArgument, match="only be set by the owner"):
                vault.replace(
                    "Captures/default/A.md", raw.replace(b"---\nw", f"{key}: x\n---\nw".encode()), digest=digest
                )
        vault.replace("Captures/default/A.md", raw.replace(b"words", b"promote: true"), digest=digest)
    assert not (world.vault / "Captures/default/B.md").exists()
    with acting_as(Author("cli", "some command")):
        vault.create("Captures/default/B.md", b"---\nid: b1\npromote: true\n---\n")


def test_a_suggestion_stays_while_an_agent_writes(world):
    world.write(
        "Captures/default/A.md",
        "---\nid: a1\ncreated_at: 2026-11-20\nsuggested_folder: Birds\npromote: false\n---\nx\n",
    )
    world.run()
    space = world.app.agent_access.workspace("default")
    with acting_as(Author("mcp", "kb_update_note")):
        space.update_note("a1", "other words")
    text = (world.vault / "Captures/default/A.md").read_text()
    assert "suggested_folder: Birds\npromote: false\n" in text
    assert text.endswith("other words")


def test_what_a_person_has_marked_is_left_alone(world):
    world.write("Captures/default/A.md", "---\nid: a1\ncreated_at: 2026-11-20\npromote: true\n---\nwords\n")
    world.run()
    before = (world.vault / "Captures/default/A.md").read_bytes()
    space = world.app.agent_access.workspace("default")
    with acting_as(Author("mcp", "any")):
        for write in (
            lambda: space.update_note("a1", "other words"),
            lambda: space.set_tags("a1", ["x"]),
            lambda: space.delete("a1"),
            lambda: space.memos.save("other words", memo_id="a1"),
        ):
            with pytest.raises(Conflict) as refused:
                write()
            assert refused.value.message == EDITED
            assert refused.value.retryable
        repeated = space.capture("words\n")
    assert (repeated.record.id, repeated.created) == ("a1", False)
    assert (world.vault / "Captures/default/A.md").read_bytes() == before


def test_a_node_that_somebody_ticked_can_still_be_written_to(world):
    space = world.app.agent_access.workspace("default")
    space.nodes.create([NewNode("Ada", "person", ["one"])])
    (file,) = (world.vault / "Captures/default/Entities").glob("*.md")
    file.write_text(file.read_text().replace("---\n## ", "promote: true\n---\n## "))
    world.run()
    assert read_marks(file.read_text()).promote
    with acting_as(Author("mcp", "add_observations")):
        space.nodes.add_observations([("Ada", ["two"])])
    assert "two" in file.read_text()
    world.run()
    world.app.services.marked_captures.run()
    assert "entity of the graph" in (read_marks(file.read_text()).promote_problem or "")
    assert file.exists()


def test_a_mark_and_agents_at_the_same_note_at_once(world):
    """What is promoted is what the mark stood in: an agent's text is all of it, or none of it, and never lost or doubled."""
    space, own = world.app.agent_access.workspace("default"), world.app.services
    for life in range(3):
        id = space.capture(f"life {life}\n").record.id
        file = world.vault / space.get(id).record.path
        told, stop = [f"life {life}\n"], threading.Event()

        def write(id=id, told=told, stop=stop, life=life):
            for number in range(1_000):
                if stop.is_set():
                    return
                with acting_as(Author("mcp", "kb_update_note")):
                    try:
                        space.update_note(id, f"life {life}, {number}\n")
                        told.append(f"life {life}, {number}\n")
                    except Exception:  # refused, or gone: either ends it sooner or later
                        continue

        agent = threading.Thread(target=write)
        agent.start()
        while "promote: true" not in file.read_text():
            raw = file.read_text()
            file.write_text(raw.replace("---\n", "---\npromote: true\n", 1))
        marked = file.read_text().split("---\n", 2)[2]
        while file.exists():
            world.app.opened.sync.run(under=[str(file.relative_to(world.vault))])
            own.marked_captures.run()
        stop.set()
        agent.join()
        (note,) = [one for one in (world.vault / "Notes").glob("*.md") if f"id: {id}" in one.read_text()]
        assert note.read_text().split("---\n", 2)[2] == marked
        assert marked in told


def filled(world, memo, **given):
    """What an agent is told that gives a memo that much metadata; None = it may."""
    try:
        with acting_as(Author("mcp", "memory.save", "k", "claude")):
            world.app.agent_access.workspace("default").memos.save("text", memo_id=memo, metadata=given)
    except MemexError as error:
        return error.as_dict()
    return None


def test_how_much_an_agent_may_write_does_not_tell_what_is_suggested_to_its_owner(tmp_path):
    world = World(tmp_path)
    told = "suggested_folder: Birds\nsuggested_links: [" + ", ".join(f'"[[Note {n}]]"' for n in range(8)) + "]\n"
    for memo, more in (("bare", ""), ("said", f"{told}promote_to: Birds of the north\n")):
        text = f"---\nid: {memo}\ncreated_at: 2026-11-20T14:32:05.120Z\ncollection: memory\n{more}---\ntext"
        world.write(f"Captures/default/{memo}.md", text)
    world.run()

    def alike(**given):
        one, other = filled(world, "bare", **given), filled(world, "said", **given)
        assert one == other, "it tells"
        return one

    assert alike(note="x" * 40_000) is None
    assert alike(note="x" * (65_536 - 150))["code"] == "RESOURCE_EXHAUSTED", "where the one fitted and the other not"
    world.close()
