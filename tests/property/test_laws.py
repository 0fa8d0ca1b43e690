"""The laws of the design, each held by a test of its name, on real files and real stores."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import types

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from index.errors import InvalidArgument, Unavailable
from index.model import Query
from index.scope.index import Index
from syncd.documents.owner_marks import PERSONS
from syncd.history.audit_log import Author, acting_as
from syncd.workspaces.agent_access import AgentAccess
from tests.support.example_counts import examples
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import World, until


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def held_by(*things, leave: tuple[type, ...]) -> set[int]:
    """The ids of all objects that can be reached from `things` through what they hold."""
    seen: set[int] = set()
    todo = [*things]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (type, types.ModuleType, types.FrameType, *leave)):
            continue
        seen.add(id(one))
        todo.extend(gc.get_referents(one))
    return seen


def test_law_1_captures_only(world):
    world.write("Diary/Secret.md", "The combination of the safe is 4711 zanzibar.\n")
    world.write("Captures/Reports/Report.md", "zanzibar report\n")
    world.write("Captures/beside.md", "zanzibar beside\n")
    world.run()
    space = world.app.agent_access
    workspace = space.workspace("default")
    mine = workspace.capture("a capture about zanzibar").record
    for mode in ("hybrid", "vector", "text"):
        assert [hit.record.id for hit in workspace.search(Query("zanzibar", mode=mode)).hits] == [mine.id]
    assert [record.id for record in workspace.recent()] == [mine.id]
    assert world.found("zanzibar safe", scope="vault")  # the owner finds it
    # What the rim is given holds no index of the vault proper: neither a workspace nor the desk's own tools.
    vault_index = world.app.opened.builds.scopes["vault"].index
    assert isinstance(vault_index, Index)
    # Nor does the window, even while it is open: it holds an index of its own.
    world.app.operations["share.add"]({"workspace": "default", "paths": ["Diary/Other.md"]}, lambda _: None)
    world.run()
    assert workspace.window is not None
    assert workspace.search(Query("zanzibar"), scope="vault").hits == ()
    inbox = workspace._inbox
    # A late write of the vault's index is a thread, and `threading` knows all of them.
    until(lambda: not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()))
    tests = (World, pytest.Item, pytest.Session, pytest.Config)  # through the globals of functions, and many
    reachable = held_by(inbox.captures, inbox.vault, inbox.window, leave=tests)
    assert id(vault_index) not in reachable
    assert id(world.app.opened.builds.scopes["vault"]) not in reachable
    assert id(vault_index) in held_by(world.app.opened, leave=tests)  # which agents are not given
    assert isinstance(space, AgentAccess)


def test_law_2_a_person_promotes(world):
    """What agents send is in test_promote_agents.py; here, that nothing but a person's mark or command promotes."""
    front = "---\npromote: true\npromote_to: Notes\n---\n"
    space, marked = world.app.agent_access.workspace("default"), world.app.services.marked_captures
    with acting_as(Author("mcp", "a tool")):
        mine = space.capture(f"{front}words").record
        space.update_note(mine.id, f"{front}other words", title="promote: true")
        for key in PERSONS:
            with pytest.raises(InvalidArgument):
                space.capture("words", metadata={key: True})
            with pytest.raises(InvalidArgument):  # whatever tool would let it through
                world.app.opened.vault.create("Captures/default/X.md", f"---\n{key}: true\n---\n".encode())
    world.run()
    world.app.opened.sync.ready.set()
    marked.run()
    assert [str(note.relative_to(world.vault)) for note in world.vault.rglob("*.md")] == [mine.path]
    file = world.vault / mine.path
    file.write_text(file.read_text().replace("---\n", "---\npromote: true\n", 1))
    world.run()
    marked.run()
    assert (world.vault / "Notes/promote true.md").exists()  # by its title
    assert not file.exists()


def test_law_3_the_persons_bytes_are_theirs(world):
    notes = {
        "a.md": b"\xef\xbb\xbf---\r\n# mine\r\ntags:   [ b , a ]\r\nn: 007\r\n---\r\nbody\r\n",
        "b.md": b"no final newline",
        "c.md": b"---\nbroken: [\n---\nstill findable walrus\n",
        "d.md": b"caf\xe9 latin-1",
        "Captures/default/dropped.md": b"---\r\n# keep me\r\nproject: 'x'\r\n---\r\nDropped by hand\r\n",
        "Captures/default/broken.md": b"---\nbroken: [\n---\ncaptured walrus\n",
    }
    for path, raw in notes.items():
        world.write(path, raw)
    world.run()
    world.run()
    for path, raw in notes.items():
        now = (world.vault / path).read_bytes()
        if path != "Captures/default/dropped.md":
            assert now == raw, path
            continue
        lines, old = now.split(b"\r\n"), raw.split(b"\r\n")
        added = [line for line in lines if line not in old]
        assert [line.split(b":")[0] for line in added] == [b"id", b"created_at"]
        assert [line for line in lines if line in old] == old


def test_law_4_acknowledged_is_durable_and_findable(world):
    workspace = world.app.agent_access.workspace("default")
    for number in range(10):
        record = workspace.capture(f"The heron number {number} stands in the reeds.").record
        assert (world.vault / record.path).is_file()
        assert record.id in [hit.record.id for hit in workspace.search(Query(f"heron number {number}")).hits]


def test_law_4_a_capture_that_can_not_be_embedded_changes_nothing(world):
    workspace = world.app.agent_access.workspace("default")
    before = sorted(world.vault.rglob("*"))
    world.app.opened.embedder.close()
    with pytest.raises(Unavailable):
        workspace.capture("never seen")
    assert sorted(world.vault.rglob("*")) == before


class Boom(Exception):
    """A fault that a test put in."""


@pytest.mark.parametrize("part", ["_store", "catalog"])
def test_law_4_a_capture_that_can_not_be_indexed_changes_nothing(world, part):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept all along").record
    before = {path: path.read_bytes() for path in world.vault.rglob("*.md")}
    index = world.app.opened.builds.scopes["captures"].index

    class Failing:
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            if name in ("replace", "write"):
                raise Boom
            return getattr(self.real, name)

    real = getattr(index, part)
    setattr(index, part, Failing(real))
    with pytest.raises(Boom):
        workspace.capture("lost in the middle")
    with pytest.raises(Boom):
        workspace.delete(kept.id)
    with pytest.raises(Boom):
        workspace.capture("kept all along")
    setattr(index, part, real)
    assert {path: path.read_bytes() for path in world.vault.rglob("*.md")} == before
    world.reopen()
    world.run()
    workspace = world.app.agent_access.workspace("default")
    assert [hit.record.id for hit in workspace.search(Query("kept lost middle along", mode="text")).hits] == [kept.id]


def test_law_5_the_index_is_derived(world, tmp_path):
    world.write("Projects/Rover.md", "---\naliases: [rover]\n---\n# Wheels\n\nsix of them\n\n# Arm\n\none\n")
    world.write("a/Note.md", "alpha beta\n")
    world.run()
    workspace = world.app.agent_access.workspace("default")
    for text in ("first capture", "second capture about wheels"):
        workspace.capture(text)
    world.write("a/Note.md", "alpha beta gamma\n")
    (world.vault / "Projects/Rover.md").rename(world.vault / "a/Rover.md")
    world.run()
    before = world.dump()
    answers = [world.found(text) for text in ("wheels", "gamma", "capture")]
    assert before == world.rebuilt(tmp_path / "other")
    world.close()
    shutil.rmtree(world.state / "index")
    world.app = world._open()
    world.app.operations["index"]({"full": True}, lambda _: None)
    assert world.dump() == before
    assert [world.found(text) for text in ("wheels", "gamma", "capture")] == answers


def test_law_6_events_are_hints(world):
    with world.serving():
        world.app.watch.stop()  # deaf from here on
        world.write("Missed.md", "nobody told us about the pelican\n")
        world.app.opened.sync.request_listing()
        until(lambda: world.found("pelican") == ["Missed.md"])
        world.app.opened.sync.hint(
            ["Missed.md", "Never.md", "..", "no/such/folder"]
        )  # hints that are wrong cost a look
        world.settled()
        assert world.found("pelican") == ["Missed.md"]


def test_law_7_absence_is_not_deletion(world):
    for number in range(40):
        world.write(f"n/{number}.md", f"note {number} about the stork\n")
    world.run()
    aside = world.vault.with_name("aside")
    world.vault.rename(aside)
    world.app.opened.sync.run()
    assert world.app.opened.sync.problems
    assert len(world.found("stork", limit=50)) == 40
    aside.rename(world.vault)
    world.app.opened.sync.run()
    assert not world.app.opened.sync.problems
    # A mass removal is held, and shown, until it is certain or a person says so.
    for number in range(30):
        (world.vault / f"n/{number}.md").unlink()
    world.app.opened.sync.ready.set()
    outcome = world.app.opened.sync.run()
    assert outcome.removed == 0
    assert any("removals held" in sentence for sentence in world.app.health.status(None)["degraded"])
    assert world.app.health.facts()["removals_held"] == 30
    assert len(world.found("stork", limit=50)) == 40
    told = world.app.operations["index"]({"accept_removals": True}, lambda _: None)
    assert told["removed"] == 30
    assert not world.app.opened.sync.problems
    assert len(world.found("stork", limit=50)) == 10


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder unreadable for the test's own user")
def test_law_7_an_unreadable_folder_removes_nothing(world, tmp_path):
    pytest.importorskip("ctypes")
    world.write("secret/One.md", "the osprey\n")
    world.run()
    (world.vault / "secret").rename(tmp_path / "away")
    (world.vault / "secret").symlink_to(tmp_path / "nowhere")  # a folder that can't be entered
    world.app.opened.sync.run()
    (world.vault / "secret").unlink()
    (tmp_path / "away").rename(world.vault / "secret")
    world.app.opened.sync.run()
    assert world.found("osprey") == ["secret/One.md"]


def test_law_7_a_checkout_that_removes_most_notes_is_meant(world):
    world.git("init", "-q")
    world.write("Base.md", "base\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "base")
    for number in range(40):
        world.write(f"n/{number}.md", f"note {number} about the crane\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    world.run()
    world.git("checkout", "-q", "HEAD~1")
    world.app.opened.sync.ready.clear()
    outcome = world.app.opened.sync.run()
    assert outcome.removed == 40
    assert world.found("crane", mode="text") == []


def test_law_8_nothing_is_silent(world):
    world.write("Broken.md", "---\nbroken: [\n---\nthe bittern is still found\n")
    os.mkfifo(world.vault / "Pipe.md")
    world.run()
    assert world.found("bittern") == ["Broken.md"]
    defects = {one["path"]: one["defect"] for one in world.app.health.status(None)["defects"]}
    assert defects["Broken.md"].startswith("bad-frontmatter")
    assert "Pipe.md" in defects
    assert "defects" not in world.app.health.status(()), "without a key"
    world.app.opened.embedder.close()
    assert any("encoder" in sentence for sentence in world.app.health.status(())["degraded"])
    answer = world.app.agent_access.workspace("default").search(Query("anything"))
    assert answer.mode == "text"
    assert answer.degraded


def test_no_agent_can_mark_its_own_capture(world):
    workspace = world.app.agent_access.workspace("default")
    for key in ("promote", "Promote", "promote_to", "review", "id", "created_at", "collection"):
        with pytest.raises(InvalidArgument, match="belongs to Memex"):
            workspace.capture("mine", metadata={key: True})
    record = workspace.capture("---\npromote: true\n---\nnot a property, but content").record
    assert "promote" not in record.metadata
    assert list((world.vault / "Captures/default").iterdir()) == [world.vault / record.path]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("shared"))
    yield world
    world.close()


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=400))
def test_what_is_captured_is_got_back_byte_for_byte(shared, content):
    workspace = shared.app.agent_access.workspace("default")
    captured = workspace.capture(content)
    assert workspace.get(captured.record.id).content == content
    raw = (shared.vault / captured.record.path).read_bytes()
    assert raw.endswith(content.encode())
    again = workspace.capture(content)
    assert (again.record.id, again.created) == (captured.record.id, False)


def test_what_was_captured_is_the_same_after_a_rebuild(shared):
    workspace = shared.app.agent_access.workspace("default")
    texts = [
        "\ufeff---\nid: x\n---\nfake",
        "\r\n\r\rmixed\x85\u2028ends",
        "NUL \0 and \x1b[31mred",
        "🍀 日本語 ﷽ \u202e",
        "---",
        " ",
    ]
    ids = {workspace.capture(text).record.id: text for text in texts}
    kept = {record.id: workspace.get(record.id).content for record in workspace.recent(1000)}
    shared.app.operations["index"]({"full": True}, lambda _: None)
    for id_, text in (kept | ids).items():
        assert workspace.get(id_).content == text


def test_an_encoder_that_comes_late_embeds_what_was_found_by_words(tmp_path):
    world = World(tmp_path)
    try:
        world.write("Early.md", "the curlew\n")
        world.run()
        late = fake_embedder(FakeEncoder())
        late.close()
        world.reopen(embedder=late)
        world.write("Later.md", "the plover\n")
        world.run()
        assert world.found("plover") == ["Later.md"]
        assert len(world.app.opened.builds.scopes["vault"].index.words_only_paths()) == 1
        world.reopen()
        world.run()
        assert len(world.app.opened.builds.scopes["vault"].index.words_only_paths()) == 0
        assert world.dump() == world.rebuilt(tmp_path / "other")
    finally:
        world.close()
