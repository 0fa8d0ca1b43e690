"""What the owner does with proposed changes: apply, dismiss and undo them, in Obsidian and by command, whatever the note became."""

from __future__ import annotations

import json
import shutil

import pytest

from index.errors import MemexError
from syncd.changes.proposed_text import ChangeRequest
from syncd.settings.automation import GitSettings, ReviewSettings
from tests.support.promotion_vault import consistent, files, marked
from tests.support.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
PATH = "References/Plan.md"
LINES = ["# Plan\n", *(f"line {number}\n" for number in range(9))]
NOTE = "---\nstatus: open\n---\n" + "".join(LINES)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, review=ReviewSettings(suggest=True, table=False), git=GitSettings(commit=True))
    world.init_git("Ann")
    world.write(PATH, NOTE)
    world.write("Captures/work/x.md", "---\nid: x\n---\nAn unrelated capture.\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.run()
    world.app.opened.sync.ready.set()
    ask(world, "share.add", workspace="work", paths=["References"])
    world.run()
    yield world
    world.close()


def ask(world, name, **arguments):
    return world.app.operations[name](arguments, lambda _: None)


def propose(world, *, old="line 4\n", new="line four\n", **properties):
    work = world.app.agent_access.workspace("work")
    text = "".join(LINES).replace(old, new)
    return work.propose_change(
        PATH, ChangeRequest(text=text, properties=properties), f"{new.strip()!r} is better."
    ).record


def note_of(world):
    return (world.vault / PATH).read_text()


def edit(world, old, new, path=PATH):
    world.write(path, (world.vault / path).read_text().replace(old, new))
    world.run()


def refusal(world, record):
    (failed,) = ask(world, "promote", ids=[record.id])["failed"]
    return failed["error"]


def test_approving_applies_the_change_in_one_commit_and_undo_takes_it_back(world, tmp_path):
    record = propose(world, status="done")
    (applied,) = ask(world, "review.list")["waiting"][1:]
    assert applied["type"] == "change"
    before = files(world)
    (done,) = ask(world, "promote", ids=[record.id])["promoted"]
    assert note_of(world) == NOTE.replace("line 4", "line four").replace("open", "done")
    assert not (world.vault / record.path).exists()
    message = world.git("log", "-1", "--format=%B")
    assert message.startswith("Apply a proposed change of Plan\n")
    assert f"Capture-Id: {record.id}\n" in message
    assert "Approved-By: " in message
    assert world.git("show", "--name-only", "--format=", done["commit"]).split() == [PATH]
    consistent(world, tmp_path)
    assert ask(world, "undo", id=PATH, dry_run=True)["done"][0]["path"] == PATH
    assert note_of(world) != NOTE
    (undone,) = ask(world, "undo", id=PATH)["done"]
    assert (undone["path"], undone["did"]) == (PATH, "restored")
    assert files(world) == before
    assert world.git("log", "-1", "--format=%s").startswith("Undo a change of Plan")
    consistent(world, tmp_path)


def test_a_tick_in_obsidian_applies_the_change(world, tmp_path):
    record = propose(world)
    world.app.services.review.run()
    text = (world.vault / record.path).read_text()
    assert "promote: false\n" in text
    assert "suggested_" not in text
    edit(world, "promote: false", "promote: true", record.path)
    marked(world)
    assert "line four\n" in note_of(world)
    assert not (world.vault / record.path).exists()
    consistent(world, tmp_path)
    ask(world, "undo", id=record.id)
    assert note_of(world) == NOTE
    marked(world)
    assert "promote: false\n" in (world.vault / record.path).read_text()
    assert note_of(world) == NOTE, "the tick is off, so the change is not applied again"


def test_a_tick_for_a_note_that_became_a_link_says_why_nothing_happens(world):
    record = propose(world)
    world.write("Elsewhere.md", NOTE)
    (world.vault / PATH).unlink()
    (world.vault / PATH).symlink_to(world.vault / "Elsewhere.md")
    edit(world, "id:", "promote: true\nid:", record.path)
    marked(world)
    assert "links are not followed" in (world.vault / record.path).read_text()
    assert (world.vault / "Elsewhere.md").read_text() == NOTE
    assert (world.vault / PATH).is_symlink()


def test_a_change_of_other_lines_is_merged(world):
    record = propose(world)
    edit(world, "# Plan\n", "# The plan\n\n")
    shown = ask(world, "review.show", id=record.id)["change"]
    assert shown["fit"] == "merges"
    assert "+line four\n" in shown["diff"]
    assert "The plan" not in shown["diff"].replace(" # The plan", "")
    ask(world, "promote", ids=[record.id])
    assert note_of(world) == NOTE.replace("# Plan\n", "# The plan\n\n").replace("line 4", "line four")


def test_a_change_of_the_same_lines_is_a_conflict_that_shows_all_three(world):
    record = propose(world)
    edit(world, "line 4", "line IV")
    error, before = refusal(world, record), files(world)
    assert error["code"] == "CONFLICT"
    view = error["details"]["view"]
    assert view == "<<<<<<< now\nline IV\n||||||| before\nline 4\n=======\nline four\n>>>>>>> proposed"
    assert ask(world, "review.show", id=record.id)["change"]["view"] == view
    world.write(record.path, (world.vault / record.path).read_text().replace("id:", "promote: true\nid:"))
    world.run()
    marked(world)
    text = (world.vault / record.path).read_text()
    assert "promote_problem: " in text
    assert "has changed in the same lines" in text
    assert note_of(world) == before[PATH].decode()
    edit(world, "line IV", "line 4")
    marked(world)
    assert "line four" in note_of(world), "the conflict is solved, and the tick counts"


def test_a_conflict_in_a_note_with_line_ends_of_windows_shows_all_three_too(world):
    note = NOTE.replace("\n", "\r\n").encode()
    world.write(PATH, note)
    world.run()
    record = propose(world)
    world.write(PATH, note.replace(b"line 4", b"line IV"))
    world.run()
    view = refusal(world, record)["details"]["view"]
    assert view == "<<<<<<< now\nline IV\n||||||| before\nline 4\n=======\nline four\n>>>>>>> proposed"


def test_undo_keeps_what_was_written_since_or_refuses(world):
    record = propose(world)
    ask(world, "promote", ids=[record.id])
    edit(world, "line 0", "line zero")
    ask(world, "undo", id=record.id)
    assert note_of(world) == NOTE.replace("line 0", "line zero")
    ask(world, "promote", ids=[record.id])
    edit(world, "line four", "line 4.0")
    before = files(world)
    with pytest.raises(MemexError, match="same lines since") as refused:
        ask(world, "undo", id=record.id)
    assert refused.value.code == "CONFLICT"
    assert files(world) == before


def test_several_changes_of_one_note_are_undone_one_after_the_other(world):
    first, second = propose(world), propose(world, old="line 8\n", new="line eight\n")
    ask(world, "promote", ids=[first.id, second.id])
    assert {"line four", "line eight"} <= set(note_of(world).splitlines())
    ask(world, "undo", id=PATH)
    assert "line eight" not in note_of(world)
    ask(world, "unpromote", ids=[PATH])
    assert note_of(world) == NOTE
    assert len(ask(world, "review.list")["waiting"]) == 3


def test_a_dismissed_proposal_returns_and_still_applies(world):
    record = propose(world)
    (archived,) = ask(world, "review.dismiss", ids=[record.id])["archived"]
    assert note_of(world) == NOTE
    (back,) = ask(world, "unarchive", ids=[archived["target"]])["returned"]
    assert ask(world, "promote", ids=[back["target"]])["failed"] == []
    assert "line four" in note_of(world)


def test_a_line_that_the_owner_corrects_in_the_proposal_counts(world):
    record = propose(world)
    edit(world, "+line four\n", "+line 4, corrected\n", record.path)
    ask(world, "promote", ids=[record.path])
    assert "line 4, corrected\n" in note_of(world)


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        (f"target: {PATH}", "target: Nowhere.md", "NOT_FOUND", "does not exist any more"),
        (f"target: {PATH}", "target: Captures/work/x.md", "INVALID_ARGUMENT", "not a note of the vault"),
        (f"target: {PATH}", "target: .obsidian/app.json", "INVALID_ARGUMENT", "not a note of the vault"),
        (f"target: {PATH}", "target: ../outside.md", "INVALID_ARGUMENT", "one name between slashes"),
        (f"target: {PATH}", "target: Captures/Reports/x.md", "INVALID_ARGUMENT", "not a note of the vault"),
        ("-line 4\n", "", "CONFLICT", "does not fit"),
        ("+line four\n", "+line four\nnonsense\n", "INVALID_ARGUMENT", "can't be read"),
        (" line 3\n", " line III\n", "CONFLICT", "does not fit"),
    ],
)
def test_a_damaged_proposal_changes_nothing(world, old, new, code, words):
    record = propose(world)
    edit(world, old, new, record.path)
    before = files(world)
    error = refusal(world, record)
    assert (error["code"], words in error["message"]) == (code, True), error
    assert files(world) == before
    assert ask(world, "review.show", id=record.id)["problem"] == error["message"]


def test_no_proposal_sets_what_the_owner_decides(world):
    record = propose(world, status="done")
    edit(world, "+status: done\n", "+status: done\n+share: false\n", record.path)
    error, before = refusal(world, record), files(world)
    assert error["code"] == "INVALID_ARGUMENT"
    assert "'share'" in error["message"]
    assert files(world) == before


def test_no_proposal_removes_what_the_owner_decides(world):
    world.write(PATH, NOTE.replace("---\n#", "share: true\n---\n#"))
    world.run()
    record = propose(world, status="done")
    edit(world, " share: true\n", "-share: true\n", record.path)
    error, before = refusal(world, record), files(world)
    assert (error["code"], "'share'" in error["message"]) == ("INVALID_ARGUMENT", True)
    assert files(world) == before


def test_no_proposal_makes_the_properties_of_a_note_unreadable(world):
    record = propose(world, status="done")
    edit(world, "+status: done\n", "+status: [done\n", record.path)
    error, before = refusal(world, record), files(world)
    assert (error["code"], "can't be read" in error["message"]) == ("INVALID_ARGUMENT", True)
    assert files(world) == before


def test_a_folder_can_not_be_chosen_and_a_dry_run_changes_nothing(world):
    record = propose(world)
    before = files(world)
    (failed,) = ask(world, "promote", ids=[record.id], to="Notes")["failed"]
    assert "where that note is" in failed["error"]["message"]
    (planned,) = ask(world, "promote", ids=[record.id], dry_run=True)["planned"]
    assert (planned["target"], planned["chosen"]) == (PATH, "change")
    (failed,) = ask(world, "promote", ids=[record.id], shown={record.id: "0" * 64})["failed"]
    assert failed["error"]["code"] == "CONFLICT"
    assert files(world) == before


def test_the_review_warns_of_code_and_links_that_the_note_would_have(world):
    record = propose(world, new="line four\n[a]: javascript:alert(1)\n")
    shown = ask(world, "review.show", id=record.id)
    assert (shown["unsafe_links"], shown["runs"]) == (["javascript"], [])
    block = "```dataviewjs\nfirst\nsecond\nthird\nfourth\nfifth\n```\n"
    world.write(PATH, NOTE + block)
    world.run()
    work = world.app.agent_access.workspace("work")
    change = ChangeRequest(patch="@@ -16 +16 @@\n-fifth\n+app.commands\n")
    inside = work.propose_change(PATH, change, "Simpler.").record
    shown = ask(world, "review.show", id=inside.id)
    assert "dataviewjs" not in shown["change"]["diff"]
    assert shown["runs"] == ["Dataview"]


def test_a_change_of_an_empty_note_does_not_fit_another_text(world):
    world.write("References/Empty.md", "")
    world.run()
    work = world.app.agent_access.workspace("work")
    record = work.propose_change("References/Empty.md", ChangeRequest(text="new\n"), "It was empty.").record
    world.write("References/Empty.md", "---\nstatus: open\n---\nMine.\n")
    world.run()
    shutil.rmtree(world.state / "past")
    shutil.rmtree(world.vault / ".git")
    before = files(world)
    assert refusal(world, record)["code"] == "CONFLICT"
    assert files(world) == before
    world.write("References/Empty.md", "")
    world.run()
    assert ask(world, "promote", ids=[record.id])["failed"] == []
    assert (world.vault / "References/Empty.md").read_text() == "new\n"


def test_other_parts_leave_a_proposal_alone(world):
    record, twin = propose(world), propose(world, new="line four!\n")
    with pytest.raises(MemexError, match="needs no summary"):
        ask(world, "enrich", id=record.id)
    ask(world, "enrich.backfill")
    index = world.app.opened.captures.index
    assert index.record_at(record.path).tags == ()
    assert record.path not in index.catalog.unlabelled_paths()
    report = json.dumps(ask(world, "consolidate", workspace="work"))
    assert record.title not in report
    assert twin.title not in report
    context = world.app.agent_access.workspace("work").context()
    assert "is better" not in context.text


def test_without_the_earlier_text_the_change_fits_where_its_lines_are(world):
    record = propose(world)
    edit(world, "# Plan\n", "# The plan\n")
    shutil.rmtree(world.state / "past")
    shutil.rmtree(world.vault / ".git")
    assert ask(world, "promote", ids=[record.id])["failed"] == []
    assert note_of(world) == NOTE.replace("# Plan", "# The plan").replace("line 4", "line four")


def test_without_the_earlier_text_a_line_that_names_no_place_is_not_inserted(world):
    record = propose(world)
    edit(world, "@@ -", "@@ -0,0 +1 @@\n+Mine.\n@@ -", record.path)
    edit(world, "# Plan\n", "# The plan\n")
    shutil.rmtree(world.state / "past")
    shutil.rmtree(world.vault / ".git")
    before = files(world)
    assert "names no line of the note" in refusal(world, record)["message"]
    assert files(world) == before


def test_without_git_the_change_fits_where_its_lines_are(world, monkeypatch):
    record, other = propose(world), propose(world, old="line 8\n", new="line eight\n")
    edit(world, "# Plan\n", "# The plan\n")
    edit(world, "line 8", "line VIII")
    monkeypatch.setenv("PATH", str(world.state))
    assert ask(world, "promote", ids=[record.id])["failed"] == []
    assert "# The plan\n" in note_of(world)
    assert "line four\n" in note_of(world)
    assert "does not fit" in refusal(world, other)["message"]
    ask(world, "undo", id=record.id)
    assert "line four" not in note_of(world)
