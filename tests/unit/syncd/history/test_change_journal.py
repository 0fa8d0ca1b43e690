"""Promotions that a crash broke off, and in which somebody came in between: what they wrote stays, and the note is there once."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import zlib
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from index.document_ids import sha256
from index.errors import Conflict, NotFound, Unavailable
from syncd.changes.change_approval import UNAPPLY
from syncd.history.change_journal import (
    ChangeJournal,
    MovePlan,
    UnfinishedChanges,
    forget_bytes,
    move_steps,
    note_step,
    uncommitted_paths,
)
from syncd.notes.front_matter import split
from syncd.promotion.plan import make_due_commit
from syncd.state.ledger import Ledger
from tests.support.world import World, promote

NOTE = "---\nid: n1\ncreated_at: 2026-11-20\n---\nThe text.\n"
FILES = {
    "Captures/default/N.md": NOTE,
    "Links.md": "[[Captures/default/N]]\n",
    "More.md": "[x](Captures/default/N.md)\n",
}


NOTE_PATHS = "Captures/default/N.md", "Notes/N.md"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for path, text in FILES.items():
        world.write(path, text)
    world.run()
    world.app.opened.sync.ready.set()
    yield world
    world.close()


def broken_off(world, after):
    """A promotion of which so many steps were done."""
    own, snapshot = world.app.services.promotions, world.app.services.snapshot
    plan = own.make_plan(snapshot.find_capture("n1"), to="Notes")
    way = own.make_move_plan(plan)
    journal = own.journal
    journal.begin(way, by="Ann", at=1)
    assert [step.path for step in way.steps] == ["Notes/N.md", "Links.md", "More.md", "Captures/default/N.md"]
    journal.roll_forward(way.steps[:after])


def ended(world):
    world.reopen()
    own = world.app.services.promotions
    own.finish_pending()
    world.run()
    (found,) = own.journal.entries_of("n1")
    return found.state


def text(world, path):
    file = world.vault / path
    return file.read_text() if file.is_file() else None


@pytest.mark.parametrize("after", [0, 2, 4])
def test_what_was_broken_off_is_ended(world, after):
    broken_off(world, after)
    assert ended(world) == "done"
    assert text(world, "Captures/default/N.md") is None
    assert split(text(world, "Notes/N.md"))[1] == "The text.\n"
    assert (text(world, "Links.md"), text(world, "More.md")) == ("[[Notes/N]]\n", "[x](Notes/N.md)\n")


@pytest.mark.parametrize("after", [1, 3])
def test_a_capture_that_was_edited_meanwhile_stays_in_the_inbox(world, after):
    broken_off(world, after)
    world.write("Captures/default/N.md", NOTE + "More of mine.\n")
    assert ended(world) == "undone"
    assert split(text(world, "Captures/default/N.md"))[1] == "The text.\nMore of mine.\n"
    assert text(world, "Notes/N.md") is None
    assert {path: text(world, path) for path in ("Links.md", "More.md")} == {
        path: FILES[path] for path in ("Links.md", "More.md")
    }


@pytest.mark.parametrize("after", [1, 3])
def test_a_note_that_was_edited_at_its_destination_keeps_the_edit(world, after):
    broken_off(world, after)
    (world.vault / "Notes/N.md").write_text(text(world, "Notes/N.md") + "More of mine.\n")
    assert ended(world) == "done"
    assert text(world, "Captures/default/N.md") is None
    assert split(text(world, "Notes/N.md"))[1] == "The text.\nMore of mine.\n"
    assert text(world, "Links.md") == "[[Notes/N]]\n"


@pytest.mark.parametrize("after", [0, 4])
def test_a_note_with_links_that_was_edited_meanwhile_is_mended(world, after):
    broken_off(world, after)
    world.write("Links.md", "Another [[Captures/default/N]] of mine.\n")
    assert ended(world) == "done"
    assert text(world, "Links.md") == "Another [[Notes/N]] of mine.\n"
    assert text(world, "More.md") == "[x](Notes/N.md)\n"


def test_something_else_at_the_destination_is_left_alone(world):
    broken_off(world, 0)
    world.write("Notes/N.md", "mine\n")
    assert ended(world) == "undone"
    assert text(world, "Notes/N.md") == "mine\n"
    assert text(world, "Captures/default/N.md") == NOTE
    assert text(world, "Links.md") == FILES["Links.md"]
    assert world.app.services.promotions.facts()["torn"] == []


def test_a_note_that_somebody_took_away_is_not_brought_back(world):
    broken_off(world, 4)
    (world.vault / "Notes/N.md").unlink()
    assert ended(world) == "undone"
    assert text(world, "Notes/N.md") is None
    assert text(world, "Captures/default/N.md") is None


def replaced(world, path, kind):
    """Put something else at this path, as a person may."""
    place = world.vault / path
    if kind == "file above":
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.write_text("mine\n")
        return
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if kind == "folder":
        place.mkdir()
    elif kind == "link":
        place.symlink_to("nowhere.md")
    else:
        place.write_text("---\nid: n2\n---\nAnother note.\n")


@pytest.mark.parametrize(
    ("after", "path", "kind", "state"),
    [
        (0, "Notes/N.md", "link", "undone"),
        (0, "Notes/N.md", "file above", "undone"),
        (3, "Notes/N.md", "folder", "undone"),
        (4, "Notes/N.md", "link", "undone"),
        (1, "Links.md", "folder", "done"),
        (4, "Captures/default/N.md", "folder", "done"),
        (4, "Captures/default/N.md", "note", "done"),
        (4, "Captures/default/N.md", "file above", "done"),
        (0, "Captures/default/N.md", "note", "undone"),
    ],
)
def test_something_else_at_a_path_neither_delays_the_end_nor_costs_the_note(world, after, path, kind, state):
    broken_off(world, after)
    replaced(world, path, kind)
    assert ended(world) == state
    notes = [place for place in NOTE_PATHS if "The text." in (text(world, place) or "")]
    removed = after == 0 and path == "Captures/default/N.md"
    assert notes == ([] if removed else ["Notes/N.md" if state == "done" else "Captures/default/N.md"])


def test_the_journal_says_who_and_what(world):
    promote(world, "n1")
    own = world.app.services.promotions
    (entry,) = own.journal.entries_of("n1")
    assert (entry.kind, entry.state, entry.by) == ("promote", "done", own.owner())
    assert json.loads(entry.about)["relinked"] == ["Links.md", "More.md"]


def test_unfinished_changes_are_tried_again_after_a_wait_or_at_once():
    changes = UnfinishedChanges()
    assert changes.are_due(at_once=False), "a crash may have interrupted one"
    with changes.finishing():
        pass
    assert not changes.are_due(at_once=True)
    changes.expect()
    assert changes.are_due(at_once=False)
    with suppress(OSError), changes.finishing():
        raise OSError
    assert (changes.are_due(at_once=False), changes.are_due(at_once=True)) == (False, True)


def kept(world):
    return {
        seq for (seq,) in world.app.opened.ledger.query("SELECT promotion FROM promoted_files WHERE after IS NOT NULL")
    }


def test_bytes_of_ended_changes_are_forgotten_by_age_and_beyond_the_limit(world):
    ledger, journal = world.app.opened.ledger, world.app.services.promotions.journal
    raw = os.urandom(10_000)  # does not compress
    seqs = []
    for at in range(4):
        plan = MovePlan("promote", f"m{at}", "a", "b", [note_step("a", raw, None), note_step("b", None, raw)], {})
        seqs.append(journal.begin(plan, by="Ann", at=at).seq)
        journal.set_state(seqs[-1], "done")
    journal.set_state(seqs[0], "begun")
    digests = [(step.was, step.now) for step in journal.steps(seqs[1])]
    assert forget_bytes(ledger, before=0, most=1 << 20) == 0
    assert forget_bytes(ledger, before=2, most=1 << 20) == 1
    assert kept(world) == {seqs[0], *seqs[2:]}, "the first is not finished"
    assert forget_bytes(ledger, before=0, most=30_000) == 1
    assert kept(world) == {seqs[0], seqs[3]}
    assert [(step.was, step.now) for step in journal.steps(seqs[1])] == digests
    assert forget_bytes(ledger, before=0, most=0) == 1
    assert kept(world) == {seqs[0]}


def test_nothing_of_a_forgotten_text_is_left_in_the_ledger_s_files(tmp_path):
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    journal = ChangeJournal(ledger, None, ["promote"])
    text = secrets.token_hex(30_000).encode()
    packed = zlib.compress(text)
    entry = journal.begin(MovePlan("promote", "n", "a.md", "b.md", [note_step("a.md", text, None)], {}), by="A", at=1)
    journal.set_state(entry.seq, "done")
    forget_bytes(ledger, before=1 << 50, most=0)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    ledger.close()
    assert not any(packed[start : start + 24] in kept for start in range(0, len(packed) - 24, 240))


def test_forgotten_bytes_come_from_the_file_only_while_it_has_them(world):
    ledger, journal = world.app.opened.ledger, world.app.services.promotions.journal
    old, new = b"old\n", b"new\n"
    plan = MovePlan("promote", "m", "a", "b", [note_step("Links.md", old, new)], {})
    seq = journal.begin(plan, by="Ann", at=1).seq
    journal.set_state(seq, "done")
    forget_bytes(ledger, before=1 << 50, most=0)

    def texts():
        (step,) = journal.complete_steps(seq, lambda digest, _: {sha256(old): old}.get(digest))
        return step.before, step.after

    assert texts() == (old, None)
    world.write("Links.md", new)
    assert texts() == (old, new)


@pytest.fixture
def journals(tmp_path):
    """Return a journal for each of two kinds of changes."""
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield {kind: ChangeJournal(ledger, None, [kind]) for kind in ("promote", "other")}
    ledger.close()


def changed(journals, path, was, now, *, kind="promote", state="done", source="source.md"):
    """Record a change of one file, and return its number."""
    plan = MovePlan(kind, "n", source, "target.md", [note_step(path, was, now)], {})
    seq = journals[kind].begin(plan, by="Ann", at=1).seq
    journals[kind].set_state(seq, state)
    return seq


def test_only_finished_updates_of_links_lead_from_one_state_of_a_note_to_another(journals):
    changed(journals, "a.md", b"1", b"2")
    changed(journals, "a.md", b"2", b"3")
    changed(journals, "a.md", b"3", b"undone", state="undone")
    changed(journals, "a.md", b"3", b"moved", source="a.md")
    changed(journals, "a.md", b"3", b"merged", kind="other")
    states = b"1", b"2", b"3", b"undone", b"moved", b"merged"
    relinked = partial(journals["promote"].has_relinked, "a.md", sha256(b"1"))
    assert [state for state in states if relinked(sha256(state))] == [b"1", b"2", b"3"]


def test_a_file_was_created_by_the_newest_finished_change_that_did_so(journals):
    changed(journals, "F/a.md", None, b"1")
    newest = changed(journals, "F/a.md", None, b"2", kind="other")
    changed(journals, "F/a.md", b"2", b"3")
    changed(journals, "F/b.md", None, b"1", state="undone")
    changed(journals, "G/c.md", None, b"1")
    assert journals["promote"].newest_changes_below("F/") == {"F/a.md": newest}


def test_files_that_change_or_wait_for_their_commit_are_left_out_of_other_commits(world):
    ledger, journal = world.app.opened.ledger, world.app.services.promotions.journal
    changes = [("begun", 1, None), ("done", 5, None), ("done", 4, None), ("done", 9, "c0"), ("undone", 9, None)]
    for number, (state, at, commit) in enumerate(changes):
        plan = MovePlan("promote", f"m{number}", "a", "b", [note_step(f"{number}.md", None, b"")], {})
        journal.set_state(journal.begin(plan, by="Ann", at=at).seq, state, commit_id=commit)
    assert uncommitted_paths(ledger, 5) == {"0.md", "1.md"}
    assert [entry.document_id for entry in journal.uncommitted(5)] == ["m1"]


def test_a_commit_has_the_files_of_a_promotion_although_the_journal_forgot_their_texts(world):
    promote(world, "n1")
    journal = world.app.services.promotions.journal
    (entry,) = journal.entries_of("n1")
    forget_bytes(world.app.opened.ledger, before=1 << 50, most=0)
    (world.vault / "More.md").write_text("half of an edit")
    due = make_due_commit(journal, entry, journal.steps(entry.seq))
    assert due.digests == {
        "Notes/N.md": sha256((world.vault / "Notes/N.md").read_bytes()),
        "Links.md": sha256(b"[[Notes/N]]\n"),
        "Captures/default/N.md": "",
    }


def test_the_earlier_text_of_a_linking_note_is_not_looked_for_when_it_would_not_be_used(world, monkeypatch):
    promote(world, "n1")
    promotions = world.app.services.promotions
    forget_bytes(world.app.opened.ledger, before=1 << 50, most=0)
    (world.vault / "Notes/N.md").write_text((world.vault / "Notes/N.md").read_text() + "more\n")
    world.run()
    asked = []
    spied = replace(promotions.changes, read_version=lambda _, path: asked.append(path))
    monkeypatch.setattr(promotions, "changes", spied)
    with pytest.raises(NotFound):
        promotions.unpromote("n1")
    assert set(asked) <= {"Captures/default/N.md", "Notes/N.md"}


def test_a_file_that_cannot_be_restored_is_reported(world):
    old, new, raw = "Captures/default/Files/f.pdf", "Files/f.pdf", b"%PDF-"
    (world.vault / old).parent.mkdir(parents=True)
    (world.vault / old).write_bytes(raw)
    journal = world.app.services.promotions.journal
    steps = move_steps(old, new, sha256(raw))
    journal.roll_forward(steps)
    assert not (world.vault / old).exists()
    (world.vault / new).unlink()
    assert journal.roll_back(steps) == [old]


PDF, MOVED = "Captures/default/Files/f.pdf", "Notes/f.pdf"


def broken_off_with_file(world, after):
    """A promotion of a note with a stored file, of which so many steps were done."""
    world.write(PDF, b"%PDF-")
    front = f'id: n1\ncreated_at: 2026-11-20\ntype: file\nfile: "[[{PDF}]]"'
    world.write("Captures/default/N.md", f"---\n{front}\n---\nThe text.\n")
    world.run()
    promotions, snapshot = world.app.services.promotions, world.app.services.snapshot
    plan = promotions.make_move_plan(promotions.make_plan(snapshot.find_capture("n1"), to="Notes"))
    assert [step.path for step in plan.steps] == [
        MOVED,
        "Notes/N.md",
        "Links.md",
        "More.md",
        "Captures/default/N.md",
        PDF,
    ]
    promotions.journal.begin(plan, by="Ann", at=1)
    promotions.journal.roll_forward(plan.steps[:after])


@pytest.mark.parametrize(("after", "path"), [(6, MOVED), (0, PDF)])
def test_a_stored_file_that_somebody_removed_does_not_delay_the_end(world, after, path):
    broken_off_with_file(world, after)
    (world.vault / path).unlink()
    assert ended(world) == "done"
    assert "The text." in text(world, "Notes/N.md")


def test_a_stored_file_that_somebody_changed_before_it_was_copied_stays_with_its_note(world):
    broken_off_with_file(world, 0)
    world.write(PDF, b"%PDF-2")
    assert ended(world) == "undone"
    assert (text(world, PDF), text(world, MOVED), text(world, "Notes/N.md")) == ("%PDF-2", None, None)


def test_the_only_copy_of_a_stored_file_stays_when_its_old_path_is_taken(world):
    broken_off_with_file(world, 6)
    world.write(PDF, b"another")
    world.write("Captures/default/N.md", NOTE + "More of mine.\n")
    assert ended(world) == "torn"
    assert (text(world, PDF), text(world, MOVED)) == ("another", "%PDF-")
    assert set(world.app.services.promotions.facts()["torn"][0]["left"]) == {PDF, MOVED}


@pytest.mark.parametrize("kind", ["folder", "link", "note"])
@pytest.mark.parametrize("after", [0, 3, 5])
def test_the_only_copy_of_a_stored_file_stays_when_its_new_path_is_taken(world, after, kind):
    broken_off_with_file(world, after)
    replaced(world, MOVED, kind)
    assert ended(world) == "undone"
    assert (text(world, PDF), text(world, "Notes/N.md")) == ("%PDF-", None)
    assert "The text." in text(world, "Captures/default/N.md")


def test_a_second_copy_of_a_stored_file_that_stays_is_reported(world):
    broken_off_with_file(world, 5)
    for path in NOTE_PATHS:
        replaced(world, path, "note")
    assert ended(world) == "torn"
    assert (text(world, PDF), text(world, MOVED)) == ("%PDF-", "%PDF-")
    assert world.app.services.promotions.facts()["torn"][0]["left"] == [MOVED]


def test_a_new_note_stays_when_the_one_it_was_made_from_cannot_be_restored(world):
    raw = NOTE.encode()
    world.write("Made.md", raw)
    (world.vault / "Old").write_text("a file in place of the folder")
    journal = world.app.services.promotions.journal
    assert journal.roll_back([note_step("Made.md", None, raw), note_step("Old/N.md", raw, None)]) == [
        "Old/N.md",
        "Made.md",
    ]
    assert text(world, "Made.md") == NOTE


@pytest.mark.parametrize("after", [1, 2])
def test_a_text_that_returns_to_the_inbox_stays_when_its_note_was_edited_meanwhile(world, after):
    returned, (was, now) = "Captures/default/N 2.md", (b"Mine.\nThe text.\n", b"Mine.\n")
    world.write("Notes/T.md", was)
    steps = [note_step(returned, None, NOTE.encode()), note_step("Notes/T.md", was, now)]
    journal = world.app.services.promotions.journal
    journal.begin(MovePlan(UNAPPLY, "n1", "Notes/T.md", returned, steps, {"title": "T"}), by="Ann", at=1)
    journal.roll_forward(steps[:after])
    edited = text(world, "Notes/T.md") + "More of mine.\n"
    world.write("Notes/T.md", edited)
    assert ended(world) == "torn"
    assert text(world, returned) is not None
    assert text(world, "Notes/T.md") == edited
    assert world.app.services.promotions.facts()["torn"] == [{"path": returned, "left": [returned]}]


def test_a_move_is_not_planned_again_before_its_rollback_has_ended(world, monkeypatch):
    promotions = world.app.services.promotions

    def fail(*_, **__):
        raise Unavailable("the disk failed")

    def decide():
        decided.append(1)
        plan = promotions.make_move_plan(
            promotions.make_plan(world.app.services.snapshot.find_capture("n1"), to="Notes")
        )
        (world.vault / "Links.md").write_text("somebody's\n")
        return plan

    decided = []
    with monkeypatch.context() as patch:
        patch.setattr(promotions.journal, "roll_back", fail)
        with pytest.raises(Conflict, match=r"Links\.md has changed meanwhile"):
            promotions.carry_out_move(decide)
    assert decided == [1]
    promotions.finish_pending()
    assert [place for place in (*NOTE_PATHS, "Notes/N 2.md") if text(world, place)] == ["Notes/N.md"]


def test_a_moved_file_stays_at_its_old_path_if_its_copy_vanishes_while_it_is_read(world, monkeypatch):
    """Reading a large file takes seconds, in which a person may delete the copy."""
    old, new = "Captures/default/Files/film.mp4", "Films/film.mp4"
    journal, vault = world.app.services.promotions.journal, world.app.opened.vault
    for path in (old, new):
        world.write(path, "the only one")
    reads = []

    def read(path, *rest):
        digest = type(vault).digest_file(vault, path, *rest)
        reads.append(path)
        if reads.count(old) == 2:
            (world.vault / new).unlink(missing_ok=True)
        return digest

    monkeypatch.setattr(vault, "digest_file", read)
    with pytest.raises(Conflict):
        journal.roll_forward(move_steps(old, new, sha256(b"the only one"))[1:])
    assert (world.vault / old).read_text() == "the only one"
