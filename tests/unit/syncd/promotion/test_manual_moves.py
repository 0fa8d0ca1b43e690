"""A person drags notes into the inbox, out of it and within: what is left to do is done, and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
import time

import pytest

from syncd.history.change_journal import forget_bytes
from syncd.notes.front_matter import read_properties, split
from syncd.settings.automation import PromoteSettings
from syncd.settings.settings import SyncSettings, VaultSettings
from tests.support.unreadable_tables import unreadable
from tests.support.world import PROMPT, World, until

CAPTURE = (
    "---\nid: c1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\ncollection: documents\nversion: 2\n"
    "tags: [herons]\nsuggested_folder: Birds\n---\nThe heron, see [[./Pond]] and ![[Files/reed.png]].\n"
)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.init_git("Ann")
    world.write("Captures/default/Heron.md", CAPTURE)
    world.write("Captures/default/Pond.md", "---\nid: c2\n---\n[[Captures/default/Heron]] and [[Heron]]\n")
    world.write("Captures/default/Files/reed.png", b"\x89PNG")
    world.write("Daily/Today.md", "Saw [[Captures/default/Heron|one]] and [[Heron]], `[[Captures/default/Heron]]`.\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.app.opened.sync.ready.set()
    look(world)
    yield world
    world.close()


def drag(world, old, new, *, run=True):
    target = world.vault / new
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(world.vault / old, target)
    if run:
        look(world)


def look(world):
    world.run()
    world.app.services.manual_moves.run()


def text(world, path):
    return (world.vault / path).read_text("utf-8")


def files(world):
    found = (file for file in world.vault.rglob("*") if file.is_file() and ".git" not in file.parts)
    return {str(file.relative_to(world.vault)): file.read_bytes() for file in found}


def test_a_capture_that_was_dragged_out_is_promoted(world, tmp_path):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    said = read_properties(split(text(world, "Birds/Heron.md"))[0])
    assert list(said) == ["id", "created_at", "source", "tags", "promoted_at"]
    assert text(world, "Birds/Heron.md").endswith("see [[./Pond]] and ![[Files/reed.png]].\n"), "which still lead there"
    assert text(world, "Daily/Today.md") == "Saw [[Birds/Heron|one]] and [[Heron]], `[[Captures/default/Heron]]`.\n"
    assert text(world, "Captures/default/Pond.md").endswith("[[Heron]] and [[Heron]]\n"), "no folder of the vault"
    assert world.app.opened.sync.run(accept=True).changes == 0
    assert world.dump() == world.rebuilt(tmp_path / "other")
    before = files(world)
    look(world)
    assert files(world) == before


def test_it_is_one_commit_that_says_who_and_what(world):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    message = world.git("log", "-1", "--format=%B")
    assert "Capture-Id: c1" in message
    assert "Approved-By: Ann <ann@example.org>" in message
    assert "Memex-Tool: drag" in message
    assert set(world.git("show", "--format=", "--name-only", "--no-renames").split("\n")) - {""} == {
        "Birds/Heron.md", "Captures/default/Heron.md", "Captures/default/Pond.md", "Daily/Today.md",
    }  # fmt: skip
    assert world.git("status", "--porcelain") == ""


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_drag_is_taken_back_as_a_promotion_is(world, forgotten):
    before = files(world)
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    if forgotten:
        forget_bytes(world.app.opened.ledger, before=1 << 50, most=0)
    world.app.services.promotions.unpromote("c1")
    assert files(world) == before
    look(world)
    assert files(world) == before


def test_links_that_obsidian_has_mended_are_left(world):
    today = "Saw [[Birds/Heron|one]] and [[Heron]], [[Nowhere/Heron]].\n"
    world.write("Daily/Today.md", today)
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    assert text(world, "Daily/Today.md") == today


def test_a_copy_is_no_promotion(world):
    shutil.copy(world.vault / "Captures/default/Heron.md", world.vault / "Heron copy.md")
    look(world)
    before = files(world)
    look(world)
    assert files(world) == before
    assert text(world, "Heron copy.md") == CAPTURE


def test_a_copy_whose_capture_a_person_then_removes_was_a_slow_drag(world):
    (world.vault / "Birds").mkdir()
    shutil.copy(world.vault / "Captures/default/Heron.md", world.vault / "Birds/Heron.md")
    look(world)
    assert text(world, "Birds/Heron.md") == CAPTURE
    (world.vault / "Captures/default/Heron.md").unlink()
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")


def test_a_drag_is_finished_later_when_somebody_writes_to_it_meanwhile(world, monkeypatch):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    world.run()
    settle, edited = world.app.services.promotions.finish_move, CAPTURE.replace("The heron", "A heron")

    def meanwhile(way, *, by):
        world.write("Birds/Heron.md", edited)
        return settle(way, by=by)

    monkeypatch.setattr(world.app.services.promotions, "finish_move", meanwhile)
    world.app.services.manual_moves.run()
    assert text(world, "Birds/Heron.md") == edited
    assert text(world, "Daily/Today.md").startswith("Saw [[Captures/default/Heron|one]]"), "nothing was done"
    monkeypatch.undo()
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")
    assert "A heron" in text(world, "Birds/Heron.md")


def test_a_copy_stays_one_when_an_agent_deletes_the_capture(world):
    shutil.copy(world.vault / "Captures/default/Heron.md", world.vault / "Heron copy.md")
    look(world)
    from syncd.history.audit_log import Author, acting_as

    with acting_as(Author("mcp", "kb_delete")):
        world.app.opened.vault.remove("Captures/default/Heron.md", digest=hashlib.sha256(CAPTURE.encode()).hexdigest())
    look(world)
    look(world)
    assert text(world, "Heron copy.md") == CAPTURE


@pytest.mark.parametrize("restarted", ["never", "before", "meanwhile", "anew"])
def test_a_note_whose_id_an_agent_gave_a_capture_is_no_dragged_capture(world, restarted):
    own = "---\nid: mine\ncollection: birds\nversion: 3\nreview: later\n---\nmine\n"
    world.write("Notes/Mine.md", own)
    look(world)
    from syncd.history.audit_log import Author, acting_as

    with acting_as(Author("mcp", "memory.save")):
        memo = world.app.agent_access.workspace("default").memos.save("words", memo_id="mine").record.path
    if restarted == "before":
        world.reopen()
        world.app.opened.sync.ready.set()
    look(world)
    if restarted in ("meanwhile", "anew"):
        world.app.close()
    (world.vault / memo).unlink()  # a person tidies up
    if restarted in ("meanwhile", "anew"):
        shutil.rmtree(world.state / "index") if restarted == "anew" else None
        world.app = world._open()
        world.app.opened.sync.ready.set()
    look(world)
    look(world)
    assert text(world, "Notes/Mine.md") == own


@pytest.mark.parametrize("known", [True, False])
def test_of_a_note_and_a_capture_with_one_id_that_arrive_at_once_the_note_counts_as_first(world, known):
    own = "---\nid: mine\ncollection: birds\nversion: 3\nreview: later\n---\nmine\n"
    if known:
        look(world)  # so that both arrive in a running daemon, as by a pull
    world.write("Notes/Mine.md", own)
    capture = world.write("Captures/default/Words.md", "---\nid: mine\n---\nwords\n")
    look(world)
    capture.unlink()
    look(world)
    look(world)
    assert text(world, "Notes/Mine.md") == own


def test_a_capture_of_an_agent_that_was_dragged_while_the_index_was_lost_is_found(world):
    from syncd.history.audit_log import Author, acting_as

    with acting_as(Author("mcp", "capture_thought")):
        path = world.app.agent_access.workspace("default").capture("what an agent says").record.path
    look(world)
    world.app.close()
    shutil.rmtree(world.state / "index")
    drag(world, path, "Birds/New.md", run=False)
    world.app = world._open()
    world.app.opened.sync.ready.set()
    look(world)
    assert "promoted_at" in text(world, "Birds/New.md")


def test_what_was_dragged_while_nobody_looked_is_found(world):
    world.app.close()
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    world.app = world._open()
    world.app.opened.sync.ready.set()
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")


@pytest.mark.parametrize("table", ["audit", "tended"])
def test_a_drag_is_found_although_the_ledger_could_not_be_read_at_first(world, table):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    world.run()
    with unreadable(world.app.opened.ledger, table):
        world.app.services.manual_moves.run()
    merging = world.vault / ".git/MERGE_HEAD"
    merging.write_text(world.git("rev-parse", "HEAD"))
    world.app.services.manual_moves.run()  # it finds the move, which waits for Git
    world.reopen()
    world.app.opened.sync.ready.set()
    merging.unlink()
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")


def test_what_was_dragged_while_the_index_was_lost_is_found_although_the_ledger_could_not_be_read_at_first(world):
    world.write("Captures/default/New.md", "by hand\n")
    look(world)
    world.app.close()
    shutil.rmtree(world.state / "index")
    drag(world, "Captures/default/New.md", "Birds/New.md", run=False)
    world.app = world._open()
    world.app.opened.sync.ready.set()
    world.run()
    with unreadable(world.app.opened.ledger, "promotions"):
        world.app.services.manual_moves.run()
    look(world)
    assert "promoted_at" in text(world, "Birds/New.md")


def test_what_was_dragged_while_the_index_was_lost_is_found_by_the_audit_log(world):
    with_id = world.write("Captures/default/New.md", "by hand\n")
    look(world)
    assert "id: " in with_id.read_text(), "the daemon wrote it, so the log knows it"
    world.app.close()
    shutil.rmtree(world.state / "index")
    drag(world, "Captures/default/New.md", "Birds/New.md", run=False)
    world.app = world._open()
    world.app.opened.sync.ready.set()
    look(world)
    assert "promoted_at" in text(world, "Birds/New.md")


@pytest.mark.parametrize(
    ("times", "promoted"),
    [("", "2026-11-20T14:32:06.000Z"), ("updated_at: 2026-11-21T08:00:00Z\n", "2026-11-21T08:00:00.000Z")],
    ids=["created", "updated"],
)
def test_a_drag_is_not_dated_before_the_note(world, times, promoted):
    world.write("Captures/default/Heron.md", CAPTURE.replace("---\nThe", f"{times}---\nThe"))
    look(world)
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    os.utime(world.vault / "Birds/Heron.md", (1_000_000_000, 1_000_000_000))
    look(world)
    assert read_properties(split(text(world, "Birds/Heron.md"))[0])["promoted_at"] == promoted


def test_a_drag_that_git_brought_says_who_did_it_and_when(world):
    other = world.vault.parent / "other"
    world.git("clone", "-q", str(world.vault), str(other))
    (other / "Birds").mkdir()
    shutil.move(other / "Captures/default/Heron.md", other / "Birds/Heron.md")
    world.git("-C", str(other), "add", "-A")
    world.git("-C", str(other), "-c", "user.name=Bea", "-c", "user.email=bea@example.org", "commit", "-qm", "drag",
              "--date=2026-01-02T03:04:05Z")  # fmt: skip
    at = world.git("-C", str(other), "log", "-1", "--format=%ct").strip()
    world.git("pull", "-q", "--ff-only", str(other))
    look(world)
    look(world)
    said = read_properties(split(text(world, "Birds/Heron.md"))[0])
    from syncd.notes.timestamps import iso

    assert said["promoted_at"] == iso(int(at) * 1000)
    assert "Approved-By: Bea <bea@example.org>" in world.git("log", "-1", "--format=%B")


def test_a_drag_waits_until_it_is_quiet_and_git_is_done(tmp_path):
    world = World(
        tmp_path, sync=SyncSettings(**{**{f: getattr(PROMPT, f) for f in PROMPT.__slots__}, "adopt_s": 3600.0})
    )
    world.write("Captures/default/Heron.md", CAPTURE)
    world.run()
    world.app.opened.sync.ready.set()
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    assert text(world, "Birds/Heron.md") == CAPTURE
    world.close()


def test_a_drag_that_was_noticed_while_the_clock_was_ahead_is_finished(world, monkeypatch):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    world.run()
    now_ns = time.time_ns
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time_ns", lambda: now_ns() + 40 * 86_400 * 10**9)
        assert len(world.app.services.manual_moves._moved_notes.find_moved()) == 1
    drag(world, "Captures/default/Pond.md", "Birds/Pond.md")
    assert all("promoted_at" in text(world, path) for path in ("Birds/Heron.md", "Birds/Pond.md"))


def test_a_drag_waits_for_an_unfinished_merge(world):
    (world.vault / ".git/MERGE_HEAD").write_text(world.git("rev-parse", "HEAD"))
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    assert text(world, "Birds/Heron.md") == CAPTURE
    (world.vault / ".git/MERGE_HEAD").unlink()
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")


def test_a_folder_of_captures_that_lead_to_each_other_is_dragged_out(world):
    world.write("Captures/default/trip/A.md", "---\nid: a\nversion: 1\n---\n[[Captures/default/trip/B]] [[Heron]]\n")
    world.write("Captures/default/trip/B.md", "---\nid: b\nversion: 1\n---\n[[./A]]\n")
    look(world)
    drag(world, "Captures/default/trip", "Trips/2026")
    assert text(world, "Trips/2026/A.md").endswith("---\n[[Trips/2026/B]] [[Heron]]\n")
    assert text(world, "Trips/2026/B.md").endswith("---\n[[./A]]\n")
    assert all("promoted_at" in text(world, f"Trips/2026/{name}.md") for name in "AB")
    world.app.services.promotions.unpromote("a")
    assert text(world, "Captures/default/trip/A.md").startswith("---\nid: a\nversion: 1\n---\n")
    assert "promoted_at" in text(world, "Trips/2026/B.md")


def test_a_note_that_is_dragged_into_the_inbox_is_a_capture_and_no_promoted_note_any_more(world):
    world.write("Birds/Owl.md", "---\nid: o1\npromoted_at: 2026-01-01T00:00:00Z\n---\nwhoo\n")
    world.write("Daily/Owls.md", "[[Birds/Owl]]\n")
    look(world)
    drag(world, "Birds/Owl.md", "Captures/default/Owl.md")
    assert text(world, "Captures/default/Owl.md") == "---\nid: o1\n---\nwhoo\n"
    assert text(world, "Daily/Owls.md") == "[[Captures/default/Owl]]\n"
    assert world.app.agent_access.workspace("default").get("o1")


def test_within_the_inbox_links_follow_and_no_workspace_learns_of_another(world):
    (world.vault / "Captures/work").mkdir()
    drag(world, "Captures/default/Heron.md", "Captures/work/Heron.md")
    assert text(world, "Captures/work/Heron.md") == CAPTURE
    assert text(world, "Daily/Today.md").startswith("Saw [[Captures/work/Heron|one]]")
    assert text(world, "Captures/default/Pond.md").endswith("[[Heron]] and [[Heron]]\n")


def test_set_aside_by_hand_is_no_promotion(world):
    drag(world, "Captures/default/Heron.md", "Captures/Archive/default/Heron.md")
    assert text(world, "Captures/Archive/default/Heron.md") == CAPTURE
    assert text(world, "Daily/Today.md").startswith("Saw [[Captures/Archive/default/Heron|one]]")


def test_a_node_that_was_dragged_out_is_a_plain_note(world):
    world.write("Captures/default/Entities/Ada.md", "---\nid: e1\ntype: entity\nversion: 3\n---\n- wrote code ^o1\n")
    look(world)
    drag(world, "Captures/default/Entities/Ada.md", "People/Ada.md")
    said = read_properties(split(text(world, "People/Ada.md"))[0])
    assert "version" not in said
    assert "promoted_at" in said


FILE = '---\nid: f1\ntype: file\nfile: "[[Captures/default/Files/r.txt]]"\nfile_sha256: {}\n---\ntext of r\n'


@pytest.fixture
def stored(world):
    world.write("Captures/default/Files/r.txt", b"text of r")
    world.write("Captures/default/Files/r.txt.md", FILE.format(hashlib.sha256(b"text of r").hexdigest()))
    look(world)
    return world


def test_the_stored_file_of_a_note_that_was_dragged_alone_goes_along(stored):
    drag(stored, "Captures/default/Files/r.txt.md", "Docs/r.txt.md")
    assert (stored.vault / "Docs/r.txt").read_bytes() == b"text of r"
    assert not (stored.vault / "Captures/default/Files/r.txt").exists()
    assert 'file: "[[Docs/r.txt]]"' in text(stored, "Docs/r.txt.md")


def test_a_stored_file_that_was_dragged_with_its_note_is_found(stored):
    drag(stored, "Captures/default/Files/r.txt", "Docs/r.txt", run=False)
    drag(stored, "Captures/default/Files/r.txt.md", "Docs/r.txt.md")
    assert 'file: "[[Docs/r.txt]]"' in text(stored, "Docs/r.txt.md")
    assert "promoted_at" in text(stored, "Docs/r.txt.md")


def test_the_stored_files_of_a_workspace_whose_folder_was_renamed_stay_those_of_their_notes(stored):
    stored.write("Home.md", "![[Captures/default/Files/r.txt]]\n")
    look(stored)
    drag(stored, "Captures/default", "Captures/home")
    assert 'file: "[[Captures/home/Files/r.txt]]"' in text(stored, "Captures/home/Files/r.txt.md")
    assert text(stored, "Home.md") == "![[Captures/home/Files/r.txt]]\n"


def test_a_capture_that_is_dragged_into_a_folder_with_the_name_of_its_workspace_is_promoted(world):
    drag(world, "Captures/default/Heron.md", "Birds/default/Heron.md")
    assert "promoted_at" in text(world, "Birds/default/Heron.md")
    assert not any("it was moved or renamed" in sentence for sentence in world.app.health.degraded())


@pytest.mark.parametrize("new", ["My inbox", "Work/Captures"])
def test_nothing_is_promoted_when_the_inbox_itself_is_renamed_or_moved(stored, new):
    before = files(stored)
    drag(stored, "Captures", new)
    assert files(stored) == {path.replace("Captures/", f"{new}/", 1): raw for path, raw in before.items()}
    assert any("it was moved or renamed" in sentence for sentence in stored.app.health.degraded())
    drag(stored, new, "Captures")
    assert files(stored) == before
    assert not any("it was moved or renamed" in sentence for sentence in stored.app.health.degraded())


def test_the_notes_of_a_renamed_inbox_are_captures_again_when_the_setting_names_it(stored):
    before = text(stored, "Captures/default/Pond.md")
    drag(stored, "Captures", "Inbox")
    stored.close()
    world = World(stored.vault.parent, vault=VaultSettings(path=stored.vault, inbox="Inbox"))
    world.app.opened.sync.ready.set()
    look(world)
    assert text(world, "Inbox/default/Pond.md") == before.replace("Captures/", "Inbox/")
    assert "[[Inbox/default/Heron|one]]" in text(world, "Daily/Today.md")
    assert 'file: "[[Inbox/default/Files/r.txt]]"' in text(world, "Inbox/default/Files/r.txt.md")
    assert world.app.agent_access.workspaces() == ["default"]
    world.close()


@pytest.mark.parametrize("folder", ["Docs", "aux"])
def test_a_stored_file_that_can_t_be_moved_stays_in_the_inbox_and_delays_no_drag(tmp_path, folder):
    world = World(tmp_path, promote=PromoteSettings(attachments="Assets" if folder == "Docs" else ""))
    (world.vault / "Assets").symlink_to(tmp_path)
    world.write("Captures/default/Heron.md", CAPTURE)
    world.write("Captures/default/Files/r.txt", b"text of r")
    world.write("Captures/default/Files/r.txt.md", FILE.format(hashlib.sha256(b"text of r").hexdigest()))
    world.app.opened.sync.ready.set()
    look(world)
    drag(world, "Captures/default/Files/r.txt.md", f"{folder}/r.txt.md")
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md")
    assert (world.vault / "Captures/default/Files/r.txt").read_bytes() == b"text of r"
    assert 'file: "[[Captures/default/Files/r.txt]]"' in text(world, f"{folder}/r.txt.md")
    assert all("promoted_at" in text(world, path) for path in (f"{folder}/r.txt.md", "Birds/Heron.md"))
    world.app.services.promotions.unpromote("f1")
    look(world)
    assert sorted(path.name for path in (world.vault / "Captures/default/Files").iterdir()) == ["r.txt", "r.txt.md"]
    world.close()


def test_a_drag_that_can_t_be_finished_delays_no_other_one(world, caplog):
    drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
    drag(world, "Captures/default/Pond.md", "Birds/Pond.md", run=False)
    world.run()
    large = CAPTURE + "x" * world.app.opened.vault.max_bytes
    world.write("Birds/Heron.md", large)
    for _ in range(3):
        world.app.services.manual_moves.run()
    assert text(world, "Birds/Heron.md") == large
    assert "promoted_at" in text(world, "Birds/Pond.md")
    world.write("Captures/default/Owl.md", CAPTURE.replace("c1", "c3"))
    for drag_it in (False, True):
        if drag_it:
            drag(world, "Captures/default/Owl.md", "Birds/Owl.md", run=False)
        world.run(under=["Captures/default/Owl.md", "Birds/Owl.md"])
        world.app.services.manual_moves.run()
    assert "promoted_at" in text(world, "Birds/Owl.md")
    assert len([record for record in caplog.records if "manual move later" in record.message]) == 1
    assert list(world.app.services.manual_moves._delays) == ["Birds/Heron.md"]
    world.write("Birds/Heron.md", CAPTURE)
    look(world)
    assert "promoted_at" in text(world, "Birds/Heron.md")


@pytest.mark.slow
def test_the_daemon_finishes_a_drag_by_itself(world):
    with world.serving():
        drag(world, "Captures/default/Heron.md", "Birds/Heron.md", run=False)
        until(lambda: "promoted_at" in text(world, "Birds/Heron.md"), 60)
        until(lambda: "Birds/Heron" in text(world, "Daily/Today.md"), 60)
