"""A promotion whose destination has a note already is asked about in a note, and the answer is carried out."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from index.errors import Conflict, NotFound, Unavailable
from syncd.documents.owner_marks import read_marks
from syncd.git.repository import Repository
from syncd.history.change_journal import forget_bytes
from syncd.notes.checkboxes import read_answers
from syncd.notes.front_matter import split
from syncd.promotion import marked_captures as marked_job
from syncd.promotion.promoted_note import Problem
from tests.support.promotion_vault import capture, consistent, files, marked
from tests.support.unreadable_tables import unreadable
from tests.support.world import PROMPT, World, promote


def asked(world):
    (note,) = (world.vault / "Captures/Reports").glob("Merge *.md")
    return note


def taken(world, text="An old note, ```` and all.\r\n"):
    world.write("Notes/Heron.md", text)
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    marked(world)
    world.run()


def tick(world, choice):
    note = asked(world)
    lines = [line for line in note.read_text().splitlines() if line.startswith("- [ ]")]
    (line,) = [line for line in lines if choice in line]
    note.write_text(note.read_text().replace(line, line.replace("[ ]", "[x]")))
    proposals = world.app.services.proposals
    assert len(proposals.record_answers(read_answers([note.read_text()]))) == 1
    (done,) = proposals.carry_out().values()
    return done


def test_a_taken_destination_is_asked_about_in_a_note(world):
    before = files(world)
    taken(world)
    text = asked(world).read_text()
    assert text.count("- [ ]") == 3
    assert "`````diff" in text
    assert "-An old note, ```` and all." in text
    assert files(world)["Notes/Heron.md"] == b"An old note, ```` and all.\r\n"
    problem = read_marks((world.vault / "Captures/default/Heron.md").read_text()).promote_problem
    assert problem == "Notes/Heron.md already exists, and Memex does not overwrite it; see [[Merge Heron]]"
    (told,) = world.app.services.marked_captures.facts()["problems"]
    assert told["problem"] == problem
    marked(world)
    world.run()
    marked(world)
    assert asked(world).read_text() == text, "asked once"
    assert before.keys() < files(world).keys()


def test_a_question_that_could_not_be_stored_is_asked_at_the_next_run(world):
    world.write("Notes/Heron.md", "An old note.\n")
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    with unreadable(world.app.opened.ledger, "proposals"), pytest.raises(Unavailable):
        marked(world)
    assert not (world.vault / "Captures/Reports").exists()
    marked(world)
    assert "already existed" in asked(world).read_text()
    assert "see [[" in (read_marks((world.vault / "Captures/default/Heron.md").read_text()).promote_problem or "")


def test_a_capture_that_was_just_written_is_not_asked_about_again(world, monkeypatch):
    taken(world)
    text = asked(world).read_text()
    monkeypatch.setattr(
        marked_job, "is_in_use", lambda *_: True
    )  # what is wrong with it was written into it a moment ago
    marked(world)
    monkeypatch.undo()
    world.run()
    marked(world)
    assert asked(world).read_text() == text, "asked once"
    assert tick(world, "Append").done


def test_a_question_follows_its_note_without_another_question_note(world):
    taken(world)
    mark = (world.vault / "Captures/default/Heron.md").read_bytes()
    for number in range(3):
        world.write("Notes/Heron.md", f"An old note.\nLine {number}.\n")
        world.run()
        marked(world)
        world.run()
    assert "-Line 2." in asked(world).read_text(), "one note, about the note as it is now"
    assert (world.vault / "Captures/default/Heron.md").read_bytes() == mark
    counts = world.app.services.proposals.counts()
    assert (counts["open"], counts["stale"]) == (3, 9)
    assert tick(world, "Append").done
    assert (world.vault / "Notes/Heron.md").read_text().startswith("An old note.\nLine 2.\n\nThe heron")


def test_a_question_note_that_a_person_edited_is_never_replaced(world):
    taken(world)
    mine = asked(world).read_text() + "My thoughts.\n"
    asked(world).write_text(mine)
    world.write("Notes/Heron.md", "Edited.\n")
    world.run()
    marked(world)
    notes = {note.name: note.read_text() for note in (world.vault / "Captures/Reports").glob("Merge *.md")}
    assert notes.pop("Merge Heron.md") == mine
    assert "-Edited." in notes.pop("Merge Heron 2.md")
    assert not notes


def test_nobody_is_asked_about_a_note_that_is_being_written(tmp_path):
    world = World(tmp_path, sync=replace(PROMPT, adopt_s=60.0))
    path = world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: Notes\n"))
    note = world.write("Notes/Heron.md", "Writing.\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    world.run()
    world.app.opened.sync.ready.set()
    marked(world)
    assert not (world.vault / "Captures/Reports").exists()
    os.utime(note, (1_700_000_000, 1_700_000_000))
    marked(world)
    assert "-Writing." in asked(world).read_text()
    world.close()


def test_ticking_another_name_promotes_under_it(world, tmp_path):
    taken(world)
    done = tick(world, "Promote the capture as")
    assert (done.done, done.said) == (True, "promoted as Notes/Heron 2.md")
    assert (world.vault / "Notes/Heron 2.md").exists()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert (
        world.vault / "Daily/Today.md"
    ).read_text() == "Saw [[Notes/Heron 2|one]] and [[Heron]].\n"  # which led to the other
    consistent(world, tmp_path)


@pytest.mark.parametrize("known", [True, False], ids=["edited", "new"])
def test_what_a_person_has_not_committed_of_the_note_is_not_committed_with_an_appended_text(world, known):
    if known:
        world.write("Notes/Heron.md", "Committed.\n")
        world.git("add", "Notes")
        world.git("commit", "-qm", "mine")
    taken(world, "Committed.\nNot committed.\n")
    assert tick(world, "Append").done
    assert "Not committed." in (world.vault / "Notes/Heron.md").read_text()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert "Not committed." not in world.git("log", "-p", "--all", "--", "Notes")


@pytest.mark.parametrize(
    ("way", "given"), [("unpromote", {"ids": ["Notes/Heron.md"]}), ("undo", {"id": "Notes/Heron"})]
)
def test_an_appended_text_is_taken_back_and_its_capture_returns(world, way, given):
    before = files(world)
    taken(world)
    capture_bytes = capture("promote: false\n").encode()
    assert tick(world, "Append").done
    file = world.vault / "Notes/Heron.md"
    file.write_bytes(b"A line of mine.\r\n" + file.read_bytes() + b"Another below it.\r\n")
    world.run()
    world.app.operations[way](given, lambda _: None)
    mine = b"A line of mine.\r\nAn old note, ```` and all.\r\nAnother below it.\r\n"
    assert file.read_bytes() == mine
    assert (world.vault / "Captures/default/Heron.md").read_bytes() == capture_bytes
    world.run()
    marked(world)
    assert file.read_bytes() == mine, "not appended again"
    links = ("Daily/Today.md", "Areas/Pond.md")
    assert [files(world)[path] for path in links] == [before[path] for path in links]


@pytest.mark.parametrize("committed", [True, False])
def test_an_appended_text_whose_bytes_the_journal_forgot_is_taken_back_with_those_in_git(world, committed):
    before = files(world)
    taken(world)
    if committed:
        world.git("add", "-A")
        world.git("commit", "-qm", "mine")
    assert tick(world, "Append").done
    appended = files(world)
    forget_bytes(world.app.opened.ledger, before=1 << 50, most=0)
    if not committed:
        with pytest.raises(NotFound, match=r"Notes/Heron\.md is no longer kept"):
            world.app.services.promotions.unpromote("Notes/Heron.md")
        assert files(world) == appended
        return
    world.app.services.promotions.unpromote("Notes/Heron.md")
    after = files(world)
    assert after["Captures/default/Heron.md"] == capture("promote: false\n").encode()
    assert {path: after[path] for path in ("Daily/Today.md", "Areas/Pond.md")} == {
        path: before[path] for path in ("Daily/Today.md", "Areas/Pond.md")
    }


def test_an_appended_text_that_the_note_has_twice_is_taken_from_its_end(world):
    body = split(capture())[1]
    taken(world, f"\n{body}Mine.\n\n")
    assert tick(world, "Append").done
    file = world.vault / "Notes/Heron.md"
    file.write_text(f"A first line.\n{file.read_text()}")
    world.run()
    world.app.services.promotions.unpromote("Notes/Heron.md")
    assert file.read_text() == f"A first line.\n\n{body}Mine.\n\n"


def test_a_note_that_is_named_twice_loses_one_of_two_appended_texts(world):
    world.write("Notes/Heron.md", "An old note.\n")
    world.write("Captures/default/Egret.md", capture().replace("c1", "c2").replace("heron", "egret"))
    world.run()
    merge = world.app.services.promotions.merge
    merge("c1", "Notes/Heron.md")
    between = (world.vault / "Notes/Heron.md").read_bytes()
    merge("c2", "Notes/Heron.md")
    result = world.app.operations["unpromote"]({"ids": ["Notes/Heron.md", "Notes/Heron"]}, lambda _: None)
    assert (len(result["returned"]), result["failed"]) == (1, [])
    assert (world.vault / "Notes/Heron.md").read_bytes() == between


def test_an_appended_text_that_was_edited_or_whose_capture_has_a_successor_stays(world):
    taken(world)
    assert tick(world, "Append").done
    file = world.vault / "Notes/Heron.md"
    world.write("Captures/default/Heron.md", capture().replace("heron", "egret"))
    world.run()
    appended = file.read_bytes()
    for name in ("c1", "Captures/default/Heron.md"):
        with pytest.raises(NotFound):
            world.app.operations["undo"]({"id": name}, lambda _: None)
    file.write_bytes(appended.replace(b"heron", b"stork"))
    world.run()
    with pytest.raises(Conflict):
        world.app.services.promotions.unpromote("Notes/Heron.md")
    assert file.read_bytes() == appended.replace(b"heron", b"stork")


def test_an_appended_text_is_committed_where_the_note_has_nothing_else(world):
    world.write("Notes/Heron.md", "Committed.\n")
    world.git("add", "Notes")
    world.git("commit", "-qm", "mine")
    taken(world, "Committed.\n")
    assert tick(world, "Append").done
    assert world.git("show", "HEAD:Notes/Heron.md") == (world.vault / "Notes/Heron.md").read_text()


@pytest.mark.parametrize("choice", ["Promote the capture as", "Append", "Leave"])
def test_an_answer_settles_the_other_boxes_of_the_note(world, choice):
    taken(world)
    assert "is marked" not in asked(world).read_text(), "which would not be so for long"
    note = asked(world)
    note.write_text(note.read_text().replace(f"- [ ] {choice}", f"- [x] {choice}"))
    os.utime(note, (1, 1))
    services = world.app.services
    (done,) = services.consolidation.carry_out_ticked().values()
    assert done.done
    lines = [line for line in note.read_text().splitlines() if line.startswith("- [")]
    assert sorted(line[:5] for line in lines) == ["- [-]", "- [-]", "- [x]"]
    assert sum("another answer was carried out ❌" in line for line in lines) == 2
    assert "^p-" not in note.read_text()
    assert (services.proposals.counts()["open"], services.proposals.counts()["stale"]) == (0, 2)


def test_ticking_append_puts_the_text_behind_the_note_that_is_there(world, tmp_path):
    taken(world)
    assert tick(world, "Append").done
    raw = (world.vault / "Notes/Heron.md").read_bytes()
    assert raw == b"An old note, ```` and all.\r\n\r\n" + split(capture())[1].encode()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert (world.vault / "Daily/Today.md").read_text() == "Saw [[Notes/Heron|one]] and [[Heron]].\n"
    consistent(world, tmp_path)


@pytest.mark.parametrize("choice", ["Promote the capture as", "Append", "Leave"])
def test_a_memo_of_another_workspace_with_the_same_id_does_not_disturb_an_answer(world, choice):
    taken(world)
    (world.vault / "Captures/work").mkdir()
    id = world.app.services.snapshot.find_capture("Captures/default/Heron.md").id
    other = world.app.agent_access.workspace("work").memos.save("Another text.", memo_id=id).record.path
    world.run()
    before = files(world)[other]
    assert tick(world, choice).done
    assert files(world)[other] == before


@pytest.mark.parametrize("text", ["```\ncode", "<!-- aside", "%%\naside"])
def test_nothing_is_appended_where_it_would_be_code_or_a_comment(world, text):
    taken(world, text)
    done = tick(world, "Append")
    assert not done.done
    assert "unclosed" in done.said
    assert (world.vault / "Notes/Heron.md").read_text() == text
    assert (world.vault / "Captures/default/Heron.md").exists()


@pytest.mark.parametrize("last", ["remove", "note"])
def test_appending_that_a_crash_broke_off_is_ended_and_told_as_done(world, monkeypatch, last):
    taken(world)
    promotions, proposals = world.app.services.promotions, world.app.services.proposals

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr(promotions, "_take_back", lambda *_: None)
    note = asked(world)
    line = next(line for line in note.read_text().splitlines() if "Append" in line)
    note.write_text(note.read_text().replace(line, line.replace("[ ]", "[x]")))
    proposals.record_answers(read_answers([note.read_text()]))
    monkeypatch.setattr(
        world.app.opened.vault if last == "remove" else proposals,
        {"remove": "remove", "note": "mark_superseded"}[last],
        die,
    )
    with pytest.raises(Killed):
        proposals.carry_out()
    monkeypatch.undo()
    world.reopen()
    world.run()
    (done,) = world.app.services.proposals.carry_out().values()
    assert (done.done, done.said) == (True, "appended to Notes/Heron.md")
    raw = (world.vault / "Notes/Heron.md").read_bytes()
    assert raw == b"An old note, ```` and all.\r\n\r\n" + split(capture())[1].encode()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert world.app.services.promotions.facts() == {"torn": [], "begun": 0, "uncommitted": 0}


def test_ticking_leave_takes_the_mark_off(world):
    taken(world)
    assert tick(world, "Leave").done
    assert (world.vault / "Captures/default/Heron.md").read_text() == capture("promote: false\n")


def test_links_of_a_merged_capture_lead_where_they_led_and_its_properties_stay_out(world):
    world.write("Notes/Heron.md", "An old note.\n")
    world.write("Captures/default/Heron.md", capture("promote: true\n") + "See [the nest](./Nest.md).\n")
    world.write("Captures/default/Nest.md", "A nest.\n")
    world.run()
    marked(world)
    world.run()
    assert tick(world, "Append").done
    text = (world.vault / "Notes/Heron.md").read_text()
    assert text.startswith("An old note.\n\nThe heron stands")
    assert text.endswith("See [the nest](../Captures/default/Nest.md).\n")


def test_what_was_changed_since_it_was_shown_is_not_merged(world):
    taken(world)
    (world.vault / "Notes/Heron.md").write_text("edited since\n")
    done = tick(world, "Append")
    assert (done.done, done.said) == (False, "Notes/Heron.md has changed since then")
    assert (world.vault / "Notes/Heron.md").read_text() == "edited since\n"
    assert (world.vault / "Captures/default/Heron.md").exists()


def leave_out_of_the_checkout(world):
    """Commit two notes, one of them with the capture's name, and leave their folder out of the work tree."""
    for name in ("Heron", "Egret"):
        world.write(f"Notes/{name}.md", "An old note.\n")
    world.git("add", "Notes")
    world.git("commit", "-qm", "notes")
    world.git("sparse-checkout", "set", "Areas", "Daily", "Captures")
    world.run()
    assert not (world.vault / "Notes").exists()


def test_a_note_that_a_sparse_checkout_leaves_out_is_not_overwritten(world):
    leave_out_of_the_checkout(world)
    before = files(world)
    with pytest.raises(Problem, match=r"Notes/Heron\.md is in Git, and the sparse checkout leaves it out"):
        promote(world, "c1", to="Notes")
    assert files(world) == before
    assert world.git("show", "HEAD:Notes/Heron.md") == "An old note.\n"


def test_while_git_can_not_list_what_a_sparse_checkout_leaves_out_nothing_is_promoted(world, monkeypatch):
    leave_out_of_the_checkout(world)
    run = Repository.run

    def failing(self, command, *options, **more):
        result = run(self, command, *options, **more)
        return replace(result, code=128, out=b"") if (command, options[:1]) == ("ls-files", ("-t",)) else result

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "run", failing)
        world.app.opened.sync.sparse_files._seen = None
        with pytest.raises(Unavailable):
            promote(world, "c1", to="Notes")
    with pytest.raises(Problem, match="sparse"):
        promote(world, "c1", to="Notes")
    assert world.git("show", "HEAD:Notes/Heron.md") == "An old note.\n"


def test_a_mark_for_a_note_that_a_sparse_checkout_leaves_out_waits_with_the_reason(world):
    leave_out_of_the_checkout(world)
    world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: Notes\n"))
    world.run()
    marked(world)
    problem = read_marks((world.vault / "Captures/default/Heron.md").read_text()).promote_problem
    assert problem is not None
    assert problem.startswith("Notes/Heron.md is in Git, and the sparse checkout leaves it out")
    assert world.git("show", "HEAD:Notes/Heron.md") == "An old note.\n"


def test_a_new_note_gets_no_name_of_a_note_that_a_sparse_checkout_leaves_out(world):
    leave_out_of_the_checkout(world)
    assert world.app.opened.sync.is_name_taken("egret")
    world.git("sparse-checkout", "set", "Areas", "Daily", "Captures", "Notes")
    world.git("rm", "-q", "Notes/Egret.md")
    world.run()
    assert not world.app.opened.sync.is_name_taken("egret")
