"""Taking back what agents wrote: byte for byte, never over a person's edit, and itself to be taken back."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from index.errors import InvalidArgument, NotFound
from syncd.graph.node_request import NewNode
from syncd.history.audit_log import CONSOLIDATION, Author, acting_as
from syncd.history.undo import JUST_NOW, KEPT_NO_MORE, OUTSIDE, UNHOUSED, UNREADABLE, UndoStep
from syncd.history.write_lineage import EDITED, GONE, MOVED, THERE, UndoReach
from tests.support.agent_writes import by, capture, delete, inbox, space, undo, update
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.run()
    yield made
    made.close()


def reasons(told):
    return {one["path"]: one["reason"] for one in told["skipped"]}


def test_a_note_that_was_made_goes_one_that_was_changed_is_restored_and_one_that_was_deleted_is_back(world):
    changed, gone = capture(world, "# Changed\n\nfirst"), capture(world, "# Gone\n\nstays")
    before = inbox(world)
    since = world.app.opened.audit.head.seq
    made = capture(world, "# Made\n\nnew")
    update(world, changed.id, "# Changed\n\nsecond")
    delete(world, gone.id)
    at = world.app.opened.audit.entries_about(id=made.id)[0].at
    assert world.app.opened.audit.entries_about(id=gone.id)[-1].seq > since
    told = undo(world, since=at)
    assert {one["path"]: one["did"] for one in told["done"]} == {
        made.path: "removed",
        changed.path: "restored",
        gone.path: "brought back",
    }
    assert not told["skipped"]
    assert inbox(world) == before
    assert sorted(world.found("stays first new", scope="captures")) == sorted([changed.path, gone.path])
    again = undo(world, since=at)
    assert (again["done"], again["skipped"], again["undo"]) == ([], [], None)


def test_an_undo_is_taken_back_by_the_id_that_it_told(world):
    kept = capture(world, "one")
    update(world, kept.id, "two")
    capture(world, "three")
    after = inbox(world)
    told = undo(world)
    assert inbox(world) == {}
    redone = undo(world, told["undo"])
    assert inbox(world) == after
    assert {one["did"] for one in redone["done"]} == {"brought back"}
    undo(world, redone["undo"])
    assert inbox(world) == {}


def test_undo_of_a_note_goes_back_one_call_at_a_time(world):
    kept = capture(world, "one")
    for text in ("two", "three"):
        update(world, kept.id, text)
    for text in ("two", "one"):
        assert [one["did"] for one in undo(world, kept.id)["done"]] == ["restored"]
        assert space(world).get(kept.id).content == text
    assert [one["did"] for one in undo(world, kept.path)["done"]] == ["removed"]
    with pytest.raises(NotFound, match="undone"):
        undo(world, kept.id)
    with pytest.raises(NotFound, match="no note"):
        undo(world, "no-such-note")


def test_a_person_s_later_edit_is_left_alone_and_the_reason_told(world):
    edited, gone, moved, taken = (capture(world, f"# {name}\n\nx") for name in ("edited", "gone", "moved", "taken"))
    delete(world, taken.id)
    world.write(edited.path, (world.vault / edited.path).read_bytes() + b"\nmine\n")
    (world.vault / gone.path).unlink()
    (world.vault / moved.path).rename(world.vault / "Captures/default/elsewhere.md")
    world.run()
    world.write(taken.path, "my own")
    before = inbox(world)
    told = undo(world)
    assert told["done"] == []
    assert reasons(told) == {
        edited.path: EDITED,
        gone.path: GONE,
        "Captures/default/elsewhere.md": MOVED,
        taken.path: THERE,
    }
    assert inbox(world) == before


def test_an_edit_between_two_writes_ends_the_way_back(world):
    kept = capture(world, "one")
    file = world.vault / kept.path
    file.write_bytes(file.read_bytes() + b"mine")
    world.run()
    stamped = file.read_bytes()  # the edit, and that it is a second version
    assert b"mine" in stamped
    update(world, kept.id, "by the agent")
    told = undo(world)
    assert file.read_bytes() == stamped
    assert [one["did"] for one in told["done"]] == ["restored"]
    assert reasons(told) == {kept.path: EDITED}


def test_a_command_of_the_owner_counts_as_a_person_s_edit_and_can_be_taken_back_by_name(world):
    kept = capture(world, "one")
    world.app.operations["updatenote"]({"id": kept.id, "text": "mine"}, lambda _: None)
    told = undo(world)
    assert (told["done"], reasons(told)) == ([], {kept.path: "updatenote by you came after it"})
    assert [one["did"] for one in undo(world, kept.id)["done"]] == ["restored"]
    assert space(world).get(kept.id).content == "one"


def test_if_the_named_note_can_not_be_undone_no_other_note_of_the_call_is(world):
    with acting_as(Author("mcp", "create_entities", "k", "claude", request="call")):
        nodes = space(world).nodes.create([NewNode(name, "thing") for name in ("Boiler", "Radiator", "Bystander")])
    path = nodes[0].path
    raw = (world.vault / path).read_bytes()
    with acting_as(CONSOLIDATION):
        world.app.opened.vault.replace(path, raw + b"\nrelated\n", digest=hashlib.sha256(raw).hexdigest())
    world.run()
    told = undo(world, path)
    assert (told["done"], reasons(told)) == ([], {path: "consolidation by memex came after it"})
    assert all((world.vault / node.path).exists() for node in nodes)
    assert len(undo(world, nodes[1].path)["done"]) == 2  # of the others, the rest is undone


def test_what_the_daemon_wrote_because_of_the_note_goes_with_it(world):
    kept = capture(world, "one")
    file = world.vault / kept.path
    with acting_as(Author("daemon", "review")):
        raw = file.read_bytes()
        world.app.opened.vault.replace(
            kept.path,
            raw.replace(b"created_at:", b"promote: false\ncreated_at:"),
            digest=hashlib.sha256(raw).hexdigest(),
        )
    world.run()
    assert b"promote: false" in file.read_bytes()
    assert [one["did"] for one in undo(world, kept.id)["done"]] == ["removed"]
    assert not file.exists()


def test_one_key_s_writes_are_taken_back_and_another_s_are_kept(world):
    first, second = capture(world, "one"), capture(world, "two", key="codex")
    update(world, first.id, "one, as codex has it", key="codex")
    told = undo(world, since=0, key="claude")
    assert (told["done"], reasons(told)) == ([], {first.path: "kb_update_note by codex came after it"})
    told = undo(world, since=0, key="k-codex")
    assert {one["path"]: one["did"] for one in told["done"]} == {first.path: "restored", second.path: "removed"}
    assert space(world).get(first.id).content == "one"


def test_one_workspace_s_writes_are_taken_back(world):
    world.app.agent_access.create_workspace("work")
    there, here = capture(world, "one", workspace="work"), capture(world, "two")
    assert [one["path"] for one in undo(world, since=0, workspace="work")["done"]] == [there.path]
    assert list(inbox(world)) == [here.path]


def test_all_notes_of_one_call_are_taken_back_together(world):
    nodes = space(world).nodes
    with by(tool="create_entities"):
        nodes.create([NewNode("Ada", "person"), NewNode("Charles", "person")])
    before = inbox(world)
    with by(tool="delete_entities"):
        nodes.delete(["Ada", "Charles"])
    told = undo(world, "Captures/default/Entities/Ada.md")
    assert [(one["path"], one["did"]) for one in told["done"]] == [
        ("Captures/default/Entities/Charles.md", "brought back"),
        ("Captures/default/Entities/Ada.md", "brought back"),  # last, so that a try after a crash knows the call by it
    ]
    assert inbox(world) == before
    assert sorted(node.name for node in nodes.by_type("person")) == ["Ada", "Charles"]


def test_of_two_callers_with_the_same_id_of_a_call_the_named_note_s_is_undone(world):
    notes = []
    for key in ("claude", "codex"):
        with by(key, request="same"):
            notes.append(space(world).capture(key).record)
    assert [one["path"] for one in undo(world, notes[0].path)["done"]] == [notes[0].path]
    assert list(inbox(world)) == [notes[1].path]


def test_a_key_that_never_wrote_is_an_error_that_names_those_that_did(world):
    capture(world, "one")
    with pytest.raises(NotFound, match=r"no key named 'codex' .* in this time: claude$"):
        undo(world, key="codex")


def test_a_stored_file_is_restored_before_its_note_and_removed_after_it():
    for digest, paths in (("a1", ["r.pdf", "r.pdf.md"]), ("", ["r.pdf.md", "r.pdf"])):
        steps = [UndoStep(path, "", UndoReach(None), digest) for path in ("r.pdf", "r.pdf.md")]
        assert [step.path for step in sorted(steps, key=lambda step: step.sort_key)] == paths


def test_what_can_not_be_read_is_left_alone_and_named(world):
    kept = capture(world, "one")
    file = world.vault / kept.path
    file.rename(world.vault / "mine.txt")
    file.symlink_to(world.vault / "mine.txt")
    told = undo(world)
    assert (told["done"], reasons(told)) == ([], {kept.path: UNREADABLE})
    assert (told["skipped"][0]["id"], told["skipped"][0]["by"]) == (kept.id, ["claude"])
    assert (file.is_symlink(), file.exists()) == (True, True)


def test_a_dry_run_says_the_same_and_changes_nothing(world):
    kept = capture(world, "one")
    update(world, kept.id, "two")
    before, entries = inbox(world), world.app.opened.audit.count
    told = undo(world, since=0, dry_run=True)
    assert (inbox(world), world.app.opened.audit.count, told["undo"]) == (before, entries, None)
    real = undo(world)
    assert (real["done"], real["skipped"]) == (told["done"], told["skipped"])


def test_what_is_not_kept_any_more_is_told(world):
    kept = capture(world, "one")
    update(world, kept.id, "two")
    shutil.rmtree(world.state / "past")
    told = undo(world, kept.id)
    assert (told["done"], reasons(told)) == ([], {kept.path: KEPT_NO_MORE})
    assert [one["did"] for one in undo(world)["done"]] == ["removed"]  # what it was before all is known without


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_holds_is_found_there(world):
    kept = capture(world, "one")
    world.git("init", "-q")
    world.git("add", "-A")
    world.git("commit", "-qm", "x")
    update(world, kept.id, "two")
    shutil.rmtree(world.state / "past")
    assert [one["did"] for one in undo(world, kept.id)["done"]] == ["restored"]
    assert space(world).get(kept.id).content == "one"


def test_a_note_that_is_in_the_vault_proper_now_is_not_touched(world):
    kept = capture(world, "one")
    (world.vault / kept.path).rename(world.vault / "Mine.md")
    world.run()
    told = undo(world)
    assert (told["done"], reasons(told)) == ([], {"Mine.md": OUTSIDE})
    assert (world.vault / "Mine.md").exists()


def test_a_note_that_was_moved_within_the_inbox_is_restored_where_it_is(world):
    kept = capture(world, "one")
    before = (world.vault / kept.path).read_bytes()
    update(world, kept.id, "two")
    (world.vault / kept.path).rename(world.vault / "Captures/default/elsewhere.md")
    world.run()
    told = undo(world, kept.id)
    assert [(one["path"], one["did"]) for one in told["done"]] == [("Captures/default/elsewhere.md", "restored")]
    assert inbox(world) == {"Captures/default/elsewhere.md": before}


def entity(world, name):
    with by(tool="create_entities"):
        return space(world).nodes.create([NewNode(name, "thing", ("one",))])[0].path


def add_fact(world, name, fact):
    with by(tool="add_observations"):
        space(world).nodes.add_observations([(name, [fact])])


@pytest.mark.parametrize(
    ("written_first", "removal_logged"),
    [(False, True), (True, True), (True, False)],
    ids=["moved first", "written at the new place first", "only its arrival is logged"],
)
def test_an_entity_that_a_person_renamed_is_restored_where_it_is(world, written_first, removal_logged):
    path, new = entity(world, "Ada"), "Captures/default/Entities/Ada Lovelace.md"
    before = (world.vault / path).read_bytes()
    add_fact(world, "Ada", "two")
    written = (world.vault / path).read_bytes()
    world.run()
    (world.vault / path).rename(world.vault / new)
    world.run()
    if not written_first:
        world.app.opened.unlogged_changes.log_hand_edits()
    add_fact(world, "Ada Lovelace", "three")
    if removal_logged:
        world.app.opened.unlogged_changes.log_hand_edits()
    else:
        world.app.opened.unlogged_changes._paths.clear()
    assert [(one["path"], one["did"]) for one in undo(world, "Ada Lovelace")["done"]] == [(new, "restored")]
    assert (world.vault / new).read_bytes() == written
    told = undo(world, "Ada Lovelace")
    assert ([(one["path"], one["did"]) for one in told["done"]], reasons(told)) == ([(new, "restored")], {})
    assert (world.vault / new).read_bytes() == before
    assert reasons(undo(world)) == {new: MOVED}


def test_of_an_entity_that_a_person_removed_or_moved_away_the_reason_stays_true_once_that_is_logged(world):
    gone, away, edited = (entity(world, name) for name in ("Gone", "Away", "Edited"))
    world.run()
    (world.vault / gone).unlink()
    (world.vault / away).rename(world.vault / "Away.md")
    (world.vault / edited).write_bytes((world.vault / edited).read_bytes() + b"\nmine\n")
    world.run()
    told = undo(world)
    world.app.opened.unlogged_changes.log_hand_edits()
    assert reasons(undo(world)) == reasons(told) == {gone: GONE, "Away.md": OUTSIDE, edited: EDITED}


def test_a_workspace_that_is_gone_is_not_made_again(world):
    world.app.agent_access.create_workspace("work")
    there = capture(world, "one", workspace="work")
    with by(tool="delete_thought"):
        space(world, "work").delete(there.id)
    world.app.agent_access.delete_workspace("work")
    assert reasons(undo(world, there.id)) == {there.path: UNHOUSED}
    assert inbox(world) == {}


def test_a_note_that_changes_at_the_very_moment_is_left_alone(world):
    kept = capture(world, "one")
    taking = world.app.services.undo
    steps = taking.plan(taking.writes_since(0))
    world.write(kept.path, "mine")
    _, skipped = taking.carry_out(steps, lambda *_: None)
    assert [step.reason for step in skipped] == [JUST_NOW]
    assert (world.vault / kept.path).read_text() == "mine"


def test_a_note_that_only_a_person_wrote_is_not_called_missing(world):
    world.write("Plan.md", "# Plan\n")
    world.run()
    with pytest.raises(NotFound, match="no agent and no command has written this note"):
        undo(world, "Plan.md")


def test_an_empty_name_undoes_nothing(world):
    kept = capture(world, "one")
    with pytest.raises(InvalidArgument, match="name one note or call"):
        world.app.operations["undo"]({"id": ""}, lambda _: None)
    assert (world.vault / kept.path).is_file()


def test_writes_are_taken_back_up_to_a_time(world):
    audit = world.app.opened.audit
    audit.now = lambda: 1_000
    first = capture(world, "one")
    audit.now = lambda: 2_000
    second = capture(world, "two")
    assert [note["path"] for note in undo(world, since=500, until=2_000)["done"]] == [first.path]
    assert (world.vault / second.path).is_file()


# Who wrote it, as agents are told


def test_who_wrote_a_thought_is_told_and_nothing_of_another_workspace(world):
    ours = capture(world, "one")
    assert writers(world, ours) == (("agent", "claude", "capture_thought"), None)
    update(world, ours.id, "two", key="codex")
    assert writers(world, ours) == (("agent", "claude", "capture_thought"), ("agent", "codex", "kb_update_note"))
    undo(world, ours.id)
    assert writers(world, ours) == (("agent", "claude", "capture_thought"), None)
    file = world.vault / ours.path
    file.write_bytes(file.read_bytes() + b"mine")
    world.run()
    assert writers(world, ours)[1] == ("hand", "", "")
    update(world, ours.id, "three", key="codex")
    world.app.agent_access.create_workspace("work")
    file.rename(world.vault / "Captures/work/one.md")
    world.run()
    assert writers(world, ours, "work") == (("hand", "", ""), ("hand", "", ""))


def test_a_note_of_a_person_is_told_as_one(world):
    world.write("Captures/default/mine.md", "mine")
    world.run()
    (record,) = space(world).recent()
    assert writers(world, record) == (("hand", "", ""), None)


def writers(world, record, name="default"):
    there = space(world, name)
    return tuple(one and (one.by, one.key, one.tool) for one in there.writers(there.record(record.id)))


def test_a_stored_file_comes_and_goes_with_its_bytes_and_never_over_a_person_s(world, tmp_path):
    path = "Captures/default/Files/-given.pdf"  # Memex would give no new file this name
    vault, source = world.app.opened.vault, tmp_path / "given.pdf"
    source.write_bytes(b"%PDF" + bytes(10_000_000))  # larger than any note
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    with by(tool="kb_upload_finish"):
        vault.create_from_file(path, source, digest, again=True)
    with by(tool="delete_thought"), vault.removing(path, vault.digest_file(path)):
        pass
    assert [one["did"] for one in undo(world, path)["done"]] == ["brought back"]
    assert (world.vault / path).read_bytes() == source.read_bytes()
    taking = world.app.services.undo
    steps = taking.plan(taking.writes_since(0))
    world.write(path, "mine")
    _, skipped = taking.carry_out(steps, lambda *_: None)
    assert [step.reason for step in skipped] == [JUST_NOW]
    assert reasons(undo(world)) == {path: EDITED}
    (world.vault / path).write_bytes(source.read_bytes())
    assert [one["did"] for one in undo(world, path)["done"]] == ["removed"]
    assert inbox(world) == {}
    source.unlink()
    with pytest.raises(NotFound, match="the source of Captures/default/Files/"), by(tool="kb_upload_finish"):
        vault.create_from_file(path, source, digest, again=True)
