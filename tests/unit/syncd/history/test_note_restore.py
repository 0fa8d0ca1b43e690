"""Restoring a note as it was at a version: nothing is lost, nothing unseen is overwritten, and it can be undone."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.settings.automation import GitSettings
from tests.support.agent_writes import capture, delete, space, undo, update
from tests.support.world import World

MINE = "Mine.md"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.run()
    yield made
    made.close()


@pytest.fixture
def tracked(tmp_path):
    """A world whose vault is under Git, with a note of the owner in two commits, and a third text that is not committed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    made = World(tmp_path, git=replace(GitSettings(), quiet_s=0.0))
    made.git("init", "-q", "-b", "main")
    for text in ("first\n", "second\n"):
        made.write(MINE, text)
        made.git("add", "-A")
        made.git("commit", "-qm", text)
    made.write(MINE, "third, not committed\n")
    made.run()
    yield made
    made.close()


def ask(world, operation, **arguments):
    return world.app.operations[operation](arguments, lambda _: None)


def restore(world, name, version, **more):
    return ask(world, "restore", id=name, version=version, **more)


def commits(world):
    return world.git("log", "--format=%H").split()


def text_of(world, path=MINE):
    return (world.vault / path).read_text()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_note_is_as_it_was_at_a_commit_and_its_uncommitted_text_is_committed_first(tracked):
    first = commits(tracked)[-1]
    answer = restore(tracked, MINE, first[:8])
    assert text_of(tracked) == "first\n"
    restored, kept = commits(tracked)[:2]
    assert (answer["commit"], answer["kept"]) == (restored, kept)
    assert tracked.git("show", f"{kept}:{MINE}") == "third, not committed\n"
    message = tracked.git("show", "-s", "--format=%B", restored)
    assert message.startswith(f"Restore {MINE} as it was at {first[:8]}\n")
    assert "Memex-Tool: restore" in message
    assert "Approved-By: " in message
    assert tracked.found("first", mode="text") == [MINE]
    assert tracked.git("status", "--porcelain", MINE) == ""


def test_a_text_that_is_committed_already_makes_one_commit(tracked):
    tracked.git("checkout", "-q", "--", MINE)
    before = commits(tracked)
    answer = restore(tracked, MINE, before[-1])
    assert answer["kept"] == ""
    assert commits(tracked)[1:] == before


def test_head_is_the_text_of_a_merge(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    world = World(tmp_path, git=replace(GitSettings(), quiet_s=0.0))
    text = "".join(f"line {number}\n" for number in range(20))
    world.git("init", "-q", "-b", "main")
    for branch, line, edit in (("main", "", ""), ("phone", "line 2\n", "phone\n"), ("laptop", "line 17\n", "laptop\n")):
        if line:
            world.git("checkout", "-q", "-b", branch, "main")
        world.write(MINE, text.replace(line, edit) if line else text)
        world.git("add", "-A")
        world.git("commit", "-qm", branch)
    world.git("merge", "-q", "--no-edit", "phone")
    merged = text.replace("line 2\n", "phone\n").replace("line 17\n", "laptop\n")
    assert text_of(world) == merged
    world.run()
    answer = restore(world, MINE, "HEAD")
    assert (answer["version"], answer["undo"]) == (digest(merged), None)  # nothing to do
    world.write(MINE, "broken\n")
    world.run()
    answer = restore(world, MINE, " head ")
    assert text_of(world) == merged
    message = world.git("show", "-s", "--format=%s", answer["commit"])
    assert message == f"Restore {MINE} as it was at {digest(merged)[:10]}\n"
    world.close()


def test_a_note_that_the_newest_commit_does_not_have_is_not_in_head(tracked):
    tracked.git("rm", "-q", "--force", MINE)
    tracked.git("commit", "-qm", "gone")
    tracked.write(MINE, "back\n")
    tracked.run()
    with pytest.raises(NotFound, match=r"Mine\.md is not in HEAD"):
        restore(tracked, MINE, "HEAD")
    assert text_of(tracked) == "back\n"


def test_head_means_nothing_without_git(world):
    with pytest.raises(NotFound, match="is not in HEAD"):
        restore(world, capture(world, "one").id, "HEAD")


def test_a_restore_is_undone_and_the_undo_too(tracked):
    answer = restore(tracked, MINE, commits(tracked)[-1])
    undone = undo(tracked, answer["undo"])
    assert [step["did"] for step in undone["done"]] == ["restored"]
    assert text_of(tracked) == "third, not committed\n"
    undo(tracked, undone["undo"])
    assert text_of(tracked) == "first\n"
    tracked.app.services.commits.flush()
    assert tracked.git("status", "--porcelain", MINE) == ""


def test_an_undo_leaves_an_edit_after_the_restore_alone(tracked):
    answer = restore(tracked, MINE, commits(tracked)[-1])
    tracked.write(MINE, "fourth\n")
    assert undo(tracked, answer["undo"])["done"] == []
    assert text_of(tracked) == "fourth\n"


def test_a_deleted_note_is_back(tracked):
    first = commits(tracked)[-1]
    (tracked.vault / MINE).unlink()
    tracked.git("commit", "-qam", "gone")
    tracked.run()
    answer = restore(tracked, MINE, first)
    assert text_of(tracked) == "first\n"
    undo(tracked, answer["undo"])
    assert not (tracked.vault / MINE).exists()


def test_a_preview_changes_nothing_and_a_text_that_nobody_saw_is_not_overwritten(tracked):
    before = commits(tracked)
    plan = restore(tracked, MINE, before[-1], dry_run=True)
    assert plan["now"] == digest("third, not committed\n")
    assert plan["diff"][3:] == ["-third, not committed", "+first"]
    assert commits(tracked) == before
    tracked.write(MINE, "fourth\n")
    with pytest.raises(Conflict, match="changed after it was shown"):
        restore(tracked, MINE, before[-1], shown=plan["now"])
    assert text_of(tracked) == "fourth\n"
    assert commits(tracked) == before


def test_nothing_is_restored_while_git_refuses_to_keep_the_present_text(tracked):
    first = commits(tracked)[-1]
    tracked.git("checkout", "-q", "--detach")
    with pytest.raises(Unavailable, match="no branch is checked out"):
        restore(tracked, MINE, first)
    assert text_of(tracked) == "third, not committed\n"


def test_a_capture_is_restored_without_git(world):
    note = capture(world, "one")
    for text in ("two", "three"):
        update(world, note.id, text)
    event = ask(world, "log", id=note.id, patch=True)["events"][0]
    assert event["restorable"]
    answer = restore(world, note.id, event["after"])
    assert space(world).get(note.id).content == "one"
    assert (answer["commit"], answer["kept"]) == ("", "")
    undo(world, answer["undo"])
    assert space(world).get(note.id).content == "three"


def test_a_text_from_before_an_edit_outside_memex_is_restored(world):
    note = capture(world, "one")
    raw = (world.vault / note.path).read_text()
    update(world, note.id, "two")
    (world.vault / note.path).write_text(raw.replace("one", "edited"))
    world.run()
    events = ask(world, "log", id=note.id, patch=True)["events"]
    made = events[0]
    assert "edit" in [event["what"] for event in events]
    assert made["restorable"]
    assert not events[-1]["restorable"]  # it is the present text
    restore(world, note.id, made["after"][:12])
    assert space(world).get(note.id).content == "one"


def test_a_present_text_that_would_be_lost_is_not_replaced(tmp_path):
    world = World(tmp_path, git=replace(GitSettings(), past_days=0.0, commit=False))
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    world.write(MINE, "first\n")
    world.git("init", "-q", "-b", "main")
    world.git("add", "-A")
    world.git("commit", "-qm", "first")
    world.write(MINE, "second\n")
    world.run()
    with pytest.raises(Unavailable, match=r"would be lost: commit it, or set git\.past_days"):
        restore(world, MINE, world.git("rev-parse", "HEAD").strip())
    assert text_of(world) == "second\n"
    world.close()


def test_a_restore_of_the_present_text_writes_nothing(tracked):
    tracked.git("checkout", "-q", "--", MINE)
    before = commits(tracked)
    answer = restore(tracked, MINE, before[0])
    assert (answer["commit"], answer["undo"]) == ("", None)
    assert commits(tracked) == before


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [
        ("ab", InvalidArgument, "at least 4 characters"),
        ("ffffffff", NotFound, "has no version 'ffffffff'"),
    ],
)
def test_a_version_that_means_nothing_is_refused(tracked, version, error, words):
    with pytest.raises(error, match=words):
        restore(tracked, MINE, version)


def test_a_version_without_the_note_or_its_workspace_is_refused(world):
    note = capture(world, "one")
    delete(world, note.id)
    made = ask(world, "log", id=note.id)["events"][0]
    with pytest.raises(NotFound, match="no note"):
        restore(world, "Never.md", "abcdef")
    shutil.rmtree(world.vault / "Captures/default")
    with pytest.raises(Conflict, match="workspace no longer exists"):
        restore(world, note.id, made["after"])


@pytest.mark.parametrize("folder", ["Plans", "Plans/", ".", "Plans/../Plans"])
def test_a_folder_is_no_note_whose_version_is_restored(tracked, folder):
    for name, text in (("A", "a\n"), ("B", "b\n")):
        tracked.write(f"Plans/{name}.md", text)
        tracked.git("add", "-A")
        tracked.git("commit", "-qm", name)
    tracked.run()
    of_a = commits(tracked)[1]
    with pytest.raises(NotFound):
        restore(tracked, folder, of_a)
    with pytest.raises(NotFound):
        ask(tracked, "log", id=folder)
    assert text_of(tracked, "Plans/B.md") == "b\n"
    assert [event["subject"] for event in ask(tracked, "log", id="./Plans/B.md")["events"]] == ["B"]
