"""Agents give memos what ids they like, also one that another note has: no decision of the vault's owner is hindered by it."""

from __future__ import annotations

import shutil

import pytest

from index.errors import InvalidArgument
from syncd.notes.front_matter import read_properties, split
from tests.support.agent_writes import by, capture, delete, inbox, space, undo, update
from tests.support.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.git("init", "-q")
    made.app.agent_access.create_workspace("a")  # a path there is shorter than one in `default`
    made.run()
    made.app.opened.sync.ready.set()
    yield made
    made.close()


def squat(world, id, workspace="a", text="not what you think"):
    with by("mallory", "memory.save"):
        return space(world, workspace).memos.save(text, memo_id=id, title="Squatter").record


def ask(world, name, **given):
    return world.app.operations[name](given, lambda _: None)


def said(world, path):
    return read_properties(split((world.vault / path).read_text())[0])


def test_a_capture_is_promoted_and_comes_back_whatever_has_its_id_elsewhere(world):
    kept = capture(world, "# Mine\n\ntext")
    before = (world.vault / kept.path).read_bytes()
    other = squat(world, kept.id)
    told = ask(world, "promote", ids=[kept.id])
    assert [one["source"] for one in told["promoted"]] == [kept.path]
    assert [one["source"] for one in ask(world, "unpromote", ids=[kept.id])["returned"]] == ["Notes/Mine.md"]
    assert (world.vault / kept.path).read_bytes() == before
    assert space(world).get(kept.id).record.path == kept.path
    assert space(world, "a").get(kept.id).record.path == other.path


def test_a_promoted_note_comes_back_when_its_workspace_has_used_its_id_again(world):
    kept = capture(world, "# Mine\n\ntext")
    before = (world.vault / kept.path).read_bytes()
    ask(world, "promote", ids=[kept.id])
    again = squat(world, kept.id, "default")
    told = ask(world, "unpromote", ids=[kept.id])
    assert [one["target"] for one in told["returned"]] == [kept.path]
    assert (world.vault / kept.path).read_bytes() == before
    assert space(world).get(kept.id).record.path == kept.path
    other = said(world, again.path)["id"]
    assert other != kept.id
    assert space(world).get(other).content == "not what you think"


def test_an_archived_capture_comes_back_when_its_workspace_has_used_its_id_again(world):
    kept = capture(world, "# Mine\n\ntext")
    ask(world, "review.dismiss", ids=[kept.id])
    squat(world, kept.id, "default")
    squat(world, kept.id)
    told = ask(world, "unarchive", ids=[kept.id])
    assert [one["target"] for one in told["returned"]] == [kept.path]
    assert space(world).get(kept.id).record.path == kept.path


def test_what_is_promoted_under_an_id_that_a_note_of_the_vault_has_gets_one_of_its_own(world):
    squat(world, "todo", "default", "first")
    first = ask(world, "promote", ids=["todo"])["promoted"][0]
    squat(world, "todo", "default", "second")
    second = ask(world, "promote", ids=["todo"], to="Later")["promoted"][0]
    assert (first["id"], said(world, first["target"])["id"]) == ("todo", "todo")
    assert second["id"] == said(world, second["target"])["id"] != "todo"
    back = ask(world, "unpromote", ids=[second["id"]])["returned"][0]
    assert said(world, back["target"])["id"] == "todo"
    assert [one["source"] for one in ask(world, "unpromote", ids=["todo"])["returned"]] == [first["target"]]


def test_a_note_that_expired_takes_no_promoted_note_its_id(world):
    squat(world, "todo", "default")
    first = ask(world, "promote", ids=["todo"], to="A folder of the vault with a long name")["promoted"][0]
    squat(world, "todo", "default", "second")
    ask(world, "review.dismiss", ids=["todo"])
    assert ask(world, "log", id=first["target"])["events"][-1]["what"] == "promote"
    assert [one["source"] for one in ask(world, "unpromote", ids=["todo"])["returned"]] == [first["target"]]


def test_the_log_of_a_note_holds_nothing_of_another_with_its_id(world):
    kept = capture(world, "# Mine\n\none")
    squat(world, kept.id)
    update(world, kept.id, "# Mine\n\ntwo")
    squat(world, kept.id, text="more")
    told = ask(world, "log", id=kept.id)
    assert told["path"] == kept.path
    assert [(one["what"], one["key"]) for one in told["events"]] == [("create", "claude"), ("update", "claude")]
    told = ask(world, "log", id="Captures/a/Squatter.md")
    assert [(one["what"], one["key"]) for one in told["events"]] == [("create", "mallory"), ("update", "mallory")]


def test_undo_takes_back_what_was_done_to_the_note_and_not_to_another_with_its_id(world):
    kept = capture(world, "# Mine\n\none")
    before = inbox(world)
    delete(world, kept.id)
    squat(world, kept.id)
    there = inbox(world)
    assert [one["path"] for one in undo(world, kept.id)["done"]] == [kept.path]
    assert inbox(world) == before | there
    update(world, kept.id, "# Mine\n\ntwo")
    squat(world, kept.id, text="more")
    assert [one["path"] for one in undo(world, kept.id)["done"]] == [kept.path]
    assert (world.vault / kept.path).read_bytes() == before[kept.path]


def test_undo_follows_a_renamed_note_and_not_another_with_its_id(world):
    kept = capture(world, "# Mine\n\none")
    update(world, kept.id, "# Mine\n\ntwo")
    squat(world, kept.id)
    (world.vault / kept.path).rename(world.vault / "Captures/default/Renamed and longer.md")
    world.run()
    there = inbox(world)
    told = undo(world, since=0)
    assert [one["path"] for one in told["done"]] == ["Captures/a/Squatter.md"]
    assert [one["path"] for one in told["skipped"]] == ["Captures/default/Renamed and longer.md"]
    assert "Captures/a/Squatter.md" not in inbox(world)
    assert len(inbox(world)) == len(there) - 1


def test_a_drag_out_of_the_inbox_is_a_promotion_whatever_has_the_id_elsewhere(world):
    kept = capture(world, "# Mine\n\ntext")
    world.app.services.manual_moves.run()
    squat(world, kept.id)
    world.app.services.manual_moves.run()
    (world.vault / "Notes").mkdir()
    (world.vault / kept.path).rename(world.vault / "Notes/Mine.md")
    world.run()
    world.app.services.manual_moves.run()
    assert "promoted_at" in said(world, "Notes/Mine.md")
    assert [one["target"] for one in ask(world, "promoted")] == ["Notes/Mine.md"]


def test_a_drag_is_told_from_a_note_that_took_the_id_while_it_was_under_way(world):
    kept = capture(world, "# Mine\n\ntext")
    world.app.services.manual_moves.run()
    (world.vault / "Notes").mkdir()
    (world.vault / kept.path).rename(world.vault / "Notes/Mine.md")
    world.run()
    squat(world, kept.id)
    world.app.services.manual_moves.run()
    assert [one["target"] for one in ask(world, "promoted")] == ["Notes/Mine.md"]


def test_ids_that_agents_have_chosen_in_several_workspaces_are_asked_about(world):
    squat(world, "todo", "default", "one")
    squat(world, "todo", "a", "two")
    failed = ask(world, "promote", ids=["todo"])["failed"]
    assert failed[0]["error"]["code"] == "INVALID_ARGUMENT"
    for path in ("Captures/default/Squatter.md", "Captures/a/Squatter 2.md"):
        assert path in failed[0]["error"]["message"]
    with pytest.raises(InvalidArgument, match="Captures/a/Squatter 2"):
        ask(world, "delete", id="todo")
    assert ask(world, "delete", id="todo", workspace="a")["path"] == "Captures/a/Squatter 2.md"
