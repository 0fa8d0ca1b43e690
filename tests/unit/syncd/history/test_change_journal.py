"""Promotions that a crash broke off, and in which somebody came in between: what they wrote stays, and the note is there once."""

from __future__ import annotations

import json
import os
import secrets
import zlib
from dataclasses import replace

import pytest

from index.document_ids import sha256
from index.errors import NotFound
from syncd.history.change_journal import ChangeJournal, MovePlan, forget_bytes, move_steps, note_step
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
    return file.read_text() if file.exists() else None


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


def test_the_journal_says_who_and_what(world):
    promote(world, "n1")
    own = world.app.services.promotions
    (entry,) = own.journal.entries_of("n1")
    assert (entry.kind, entry.state, entry.by) == ("promote", "done", own.owner())
    assert json.loads(entry.about)["relinked"] == ["Links.md", "More.md"]


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
