"""syncd/review/archive.py: captures set aside and brought back, on a real vault under Git."""

from __future__ import annotations

from dataclasses import replace

import pytest

from index.errors import MemexError, NotFound
from syncd.settings.automation import ReviewSettings
from tests.support.world import PROMPT, World

HOME = "See [[Old idea]], [[Captures/default/Old idea|this]] and [text](Captures/default/Old%20idea.md).\n"
BODY = "What to remember. [[Seen]]\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("archive"))
    world.write("Home.md", HOME)
    world.write("Seen.md", "Nothing.\n")
    world.init_git("Ann")
    world.git("add", "-A")
    world.git("commit", "-qm", "first")
    yield world
    world.close()


@pytest.fixture
def world(shared):
    yield shared
    for file in [*(shared.vault / "Captures").rglob("*")]:
        if file.is_file():
            file.unlink()
    shared.write("Home.md", HOME)
    shared.run()


def capture(world, front="", name="Old idea", body=BODY):
    path = f"Captures/default/{name}.md"
    text = f"---\nid: {name.lower().replace(' ', '-')}\ncreated_at: 2026-01-01T10:00:00.000Z\ntags: [idea]  # mine\n{front}---\n{body}"
    world.write(path, text)
    world.run()
    return path


def aside(world):
    return world.app.services.archive.run()


def ids(world, scope="captures"):
    return {entry.id for entry in world.app.opened.builds.scopes[scope].index.manifest.values()}


def test_a_dismissed_capture_goes_where_no_agent_reads(world):
    path = capture(world, "review: dismissed\n")
    before = (world.vault / path).read_bytes()
    assert aside(world) == 1
    there = world.vault / "Captures/Archive/default/Old idea.md"
    assert not (world.vault / path).exists()
    assert there.read_bytes() == before
    assert "old-idea" not in ids(world)
    assert "old-idea" in ids(world, "vault")
    assert "Captures/Archive/default/Old idea.md" in world.found("remember", scope="vault")
    with pytest.raises(NotFound):
        world.app.agent_access.workspace("default").get("old-idea")
    assert aside(world) == 0


def test_links_to_it_are_kept_and_it_is_one_commit(world):
    path = capture(world, "review: dismissed\n")
    home = (world.vault / "Home.md").read_text()
    world.git("add", "-A")
    world.git("commit", "-qm", "a capture")
    before = world.git("rev-parse", "HEAD")
    aside(world)
    now = (world.vault / "Home.md").read_text()
    assert "[[Old idea]]" in now
    assert "[[Captures/Archive/default/Old idea|this]]" in now
    assert "(Captures/Archive/default/Old%20idea.md)" in now
    assert len(world.git("rev-list", f"{before.strip()}..HEAD").split()) == 1
    told = world.git("log", "-1", "--format=%B")
    assert told.startswith("Dismiss Old idea")
    assert "Capture-Id: old-idea" in told
    assert "Approved-By: Ann <ann@example.org>" in told
    assert world.git("status", "--porcelain") == ""
    world.app.operations["unarchive"]({"ids": ["old-idea"]}, lambda _: None)
    assert (world.vault / "Home.md").read_text() == home
    assert (world.vault / path).exists()


def test_what_is_brought_back_is_as_it_was_but_for_the_word_that_dismissed_it(world):
    path = capture(world, "review: dismissed\n")
    before = (world.vault / path).read_bytes()
    aside(world)
    done = world.app.operations["unarchive"]({"ids": ["old-idea"]}, lambda _: None)
    assert [one["target"] for one in done["returned"]] == [path]
    assert (world.vault / path).read_bytes() == before.replace(b"review: dismissed\n", b"")
    assert world.app.agent_access.workspace("default").get("old-idea").content == BODY
    assert aside(world) == 0


@pytest.mark.parametrize(
    ("front", "gone"),
    [
        pytest.param("expires: 2026-01-02\n", True, id="a day that is over"),
        pytest.param("expires: 2026-01-02T10:00:00Z\n", True, id="a time that is over"),
        pytest.param("expires: 2126-01-02\n", False, id="a day to come"),
        pytest.param("expires: soon\n", False, id="no day"),
        pytest.param("expires: 2026-01-02\nreview: later\n", False, id="its owner has said something of it"),
        pytest.param("expires: 2026-01-02\npromote: true\n", False, id="it is to be promoted"),
        pytest.param("expires: 2026-01-02\nExpires: 2126-01-02\n", False, id="nobody knows which counts"),
        pytest.param("expires: 2026-01-02\ntype: entity\n", False, id="a node"),
        pytest.param("Review: Dismissed\n", True, id="in other letters"),
        pytest.param("", False, id="nothing said"),
    ],
)  # fmt: skip
def test_what_expired_without_a_word_of_its_owner_is_set_aside(world, front, gone):
    path = capture(world, front)
    assert aside(world) == gone
    assert (world.vault / path).exists() != gone


def test_what_expired_and_is_brought_back_stays(world):
    path = capture(world, "expires: 2026-01-02\n")
    aside(world)
    assert "Approved-By" not in world.git("log", "-1", "--format=%B")
    world.app.operations["unarchive"]({"ids": ["Captures/Archive/default/Old idea.md"]}, lambda _: None)
    assert "review: keep" in (world.vault / path).read_text()
    assert aside(world) == 0


def test_an_agent_s_own_expiry_counts_and_nothing_else_of_an_agent(world):
    tools = world.app.agent_access.workspace("default")
    gone = tools.capture("This is for today only.", metadata={"expires": "2026-01-02"}).record
    kept = tools.capture("review: dismissed\npromote: true\n\n---\nreview: dismissed\n---\n").record
    world.run()
    assert aside(world) == 1
    assert ids(world) == {kept.id}
    assert gone.id in ids(world, "vault")


@pytest.mark.parametrize("name", ["report.pdf", "-report.pdf"])  # Memex would give no new file the second name
def test_the_stored_file_goes_along_and_comes_back(world, name):
    stored, note = f"Captures/default/Files/{name}", f"Captures/default/Files/{name}.md"
    world.write(stored, b"%PDF-1.4 a report")
    front = f'id: report\ncreated_at: 2026-01-01T10:00:00.000Z\ntype: file\nfile: "[[{stored}]]"\nreview: dismissed'
    world.write(note, f"---\n{front}\n---\n{BODY}")
    world.run()
    assert aside(world) == 1
    away = world.vault / "Captures/Archive/default/Files"
    assert (away / name).read_bytes() == b"%PDF-1.4 a report"
    assert not (world.vault / stored).exists()
    assert f"[[Captures/Archive/default/Files/{name}]]" in (away / f"{name}.md").read_text()
    world.app.operations["unarchive"]({"ids": ["report"]}, lambda _: None)
    assert (world.vault / stored).read_bytes() == b"%PDF-1.4 a report"
    assert f"[[{stored}]]" in (world.vault / note).read_text()
    assert not (world.vault / "Captures/Archive").exists()


def test_a_command_dismisses_and_relations_wait_until_it_is_back(world):
    tools = world.app.agent_access.workspace("default")
    old = tools.capture("An old thing.").record
    new = tools.capture("A new thing.").record
    tools.memo_graph.save(old.id, new.id, "follows")
    world.app.operations["review.dismiss"]({"ids": [new.id]}, lambda _: None)
    assert ids(world) == {old.id}
    assert "review: dismissed" in (world.vault / f"Captures/Archive/default/{new.path.rpartition('/')[2]}").read_text()
    assert tools.memo_graph.list(source=old.id).ties == ()
    world.app.operations["unarchive"]({"ids": [new.id]}, lambda _: None)
    assert [tie.target.id for tie in tools.memo_graph.list(source=old.id).ties] == [new.id]


def test_a_batch_is_not_refused_because_of_its_own_link_updates(world):
    capture(world, name="First")
    second, third = (
        capture(world, name=name, body="See [[Captures/default/First]].\n") for name in ("Second", "Third")
    )
    waiting = world.app.operations["review.list"]({}, lambda _: None)["waiting"]
    shown = {row["path"]: row["digest"] for row in waiting}
    result = world.app.operations["review.dismiss"]({"ids": list(shown), "shown": shown}, lambda _: None)
    assert result["failed"] == []
    assert {row["source"] for row in result["archived"]} == {"Captures/default/First.md", second, third}


def test_an_edit_after_a_link_update_is_refused(world):
    first = capture(world, name="First")
    second = capture(world, name="Second", body="See [[Captures/default/First]].\n")
    waiting = world.app.operations["review.list"]({}, lambda _: None)["waiting"]
    shown = {row["path"]: row["digest"] for row in waiting}
    world.app.operations["review.dismiss"]({"ids": [first], "shown": shown}, lambda _: None)
    world.write(second, (world.vault / second).read_text() + "Rewritten.\n")
    world.run()
    (failed,) = world.app.operations["review.dismiss"]({"ids": [second], "shown": shown}, lambda _: None)["failed"]
    assert "changed after it was shown" in failed["error"]["message"]


def test_the_capture_that_was_archived_last_is_listed_first(world):
    world.write("Captures/Archive/default/Another device.md", "---\nid: d1\n---\nwords\n")
    for name in ("Beech", "Alder", "Chestnut"):
        capture(world, name=name)
    for name in ("beech", "chestnut", "alder"):
        world.app.operations["review.dismiss"]({"ids": [name]}, lambda _: None)
    listed = [row["id"] for row in world.app.operations["archived"]({}, lambda _: None)]
    assert listed == ["alder", "chestnut", "beech", "d1"]
    assert [row["id"] for row in world.app.operations["archived"]({"limit": 1}, lambda _: None)] == ["alder"]


def test_a_name_that_is_taken_there_is_not_overwritten(world):
    world.write("Captures/Archive/default/Old idea.md", "mine\n")
    capture(world, "review: dismissed\n")
    assert aside(world) == 1
    assert (world.vault / "Captures/Archive/default/Old idea.md").read_text() == "mine\n"
    assert (world.vault / "Captures/Archive/default/Old idea 2.md").is_file()


def test_what_can_t_be_brought_back_is_told(world):
    failed = world.app.operations["unarchive"]({"ids": ["nothing", "Home.md"]}, lambda _: None)["failed"]
    assert [one["error"]["code"] for one in failed] == ["NOT_FOUND", "NOT_FOUND"]


def test_a_note_without_an_id_in_the_archive_is_told(world):
    world.write("Captures/Archive/default/Dropped.md", "no properties\n")
    world.run()
    given = {"ids": ["Captures/Archive/default/Dropped.md"]}
    (failed,) = world.app.operations["unarchive"](given, lambda _: None)["failed"]
    assert failed["error"]["code"] == "INVALID_ARGUMENT"
    assert "no `id`" in failed["error"]["message"]


def test_a_note_that_is_being_edited_waits(tmp_path):
    world = World(tmp_path, sync=replace(PROMPT, adopt_s=3600.0))
    path = capture(world, "review: dismissed\n")
    assert aside(world) == 0
    assert (world.vault / path).exists()
    world.close()


def test_unused_captures_go_when_the_settings_say_so(tmp_path):
    world = World(tmp_path, review=ReviewSettings(expire_days=30.0))
    path = capture(world, name="By hand")
    tools = world.app.agent_access.workspace("default")
    fresh = tools.capture("A fresh one.").record
    old_tools = world.app.agent_access._inbox
    world.app.agent_access._inbox = replace(old_tools, now=lambda: 1_700_000_000_000)
    old = world.app.agent_access.workspace("default").capture("An old one.").record
    world.run()
    assert aside(world) == 1
    assert (world.vault / path).exists()
    assert (world.vault / fresh.path).exists()
    assert not (world.vault / old.path).exists()
    world.close()


def test_unused_notes_that_a_person_wrote_or_edited_stay_after_memex_has_changed_their_properties(tmp_path):
    world = World(tmp_path, review=ReviewSettings(expire_days=30.0))
    world.write("Captures/default/Diary.md", "---\ncreated: 2024-05-01\n---\nWhat I thought then.\n")
    written = capture(world, name="By hand")
    world.app.agent_access._inbox = replace(world.app.agent_access._inbox, now=lambda: 1_700_000_000_000)
    edited = world.app.agent_access.workspace("default").capture("An old one.").record
    untouched = world.app.agent_access.workspace("default").capture("Another old one.").record
    world.run()
    world.write(edited.path, (world.vault / edited.path).read_text() + "And what I add.\n")
    world.run()
    assert world.app.services.review.run() > 0
    world.run()
    assert "promote: false" in (world.vault / untouched.path).read_text()
    assert aside(world) == 1
    assert not (world.vault / untouched.path).exists()
    for path in ("Captures/default/Diary.md", written, edited.path):
        assert (world.vault / path).exists(), path
    world.close()


def test_suggestions_never_look_into_the_archive(world):
    capture(world, "review: dismissed\n", body="Sweep the chimney in autumn before the first fire of the year.\n")
    aside(world)
    path = capture(world, name="Another", body="Sweep the chimney in autumn before the first fire of the year.\n")
    world.app.services.review.run()
    assert "Old idea" not in (world.vault / path).read_text()


def test_nobody_else_s_notes_are_moved(world):
    with pytest.raises(MemexError):
        world.app.services.archive.dismiss("Home.md")


def test_a_capture_whose_owner_decides_otherwise_during_a_run_stays(world, monkeypatch):
    paths = [capture(world, "review: dismissed\n", name) for name in ("First idea", "Second idea")]
    linked = capture(world, "review: dismissed\n", "Third idea", f"[[{paths[0][:-3]}]] [[{paths[1][:-3]}]]\n")
    promotions, decided = world.app.services.promotions, []
    carry_out = promotions.carry_out_move

    def move(decide, **by):
        outcome = carry_out(decide, **by)
        if not decided:
            decided.extend(path for path in paths if (world.vault / path).exists())
            for path in decided:
                file = world.vault / path
                file.write_text(file.read_text().replace("dismissed", "later"))
            world.run()
        return outcome

    monkeypatch.setattr(promotions, "carry_out_move", move)
    assert aside(world) == 3 - len(decided) == 2
    assert (world.vault / decided[0]).exists()
    assert not (world.vault / linked).exists(), "an updated link alone is no change by its owner"
