"""Consolidation that a crash broke off is ended or taken back on a real vault."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from index.errors import Unavailable
from syncd.consolidation.proposal_execution import KINDS
from syncd.history.change_journal import ChangeJournal, MovePlan, note_step
from tests.support.sample_captures import Inbox
from tests.support.unreadable_tables import unreadable
from tests.support.world import World


def test_what_a_crash_broke_off_is_taken_back_where_a_person_came_in_between(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    key = inbox.tick(path, "Archive [[")
    raw, target = inbox.read(one.path).encode(), "Captures/Archive/default/nobody reads this.md"
    steps = [note_step(target, None, raw), note_step(one.path, raw, None)]
    about = {"said": "moved", "subject": "Archive it", "ids": [one.id]}
    journal = ChangeJournal(inbox.app.opened.ledger, inbox.app.opened.vault, KINDS)
    journal.begin(MovePlan("archive", key, "", "", steps, about), by="Ada", at=1)
    inbox.app.opened.vault.create(target, raw)
    (inbox.world.vault / one.path).write_bytes(raw + b"and more by hand\n")
    assert "rolled it back" in inbox.look()[key]
    assert not (inbox.world.vault / target).exists()
    assert inbox.read(one.path).endswith("and more by hand\n")
    assert [entry.state for entry in journal.entries_of(key)] == ["torn"]
    told = inbox.app.operations["status"]({}, lambda _: None)["promotion"]
    assert told["torn"] == [{"path": "", "what": "Archive it", "left": [one.path]}]


def test_what_a_crash_broke_off_is_ended_without_a_tick(inbox):
    one = inbox.capture("nobody reads this")
    raw, target = inbox.read(one.path).encode(), "Captures/Archive/default/nobody reads this.md"
    steps = [note_step(target, None, raw), note_step(one.path, raw, None)]
    about = {"said": "moved", "subject": "Archive it", "ids": [one.id]}
    journal = ChangeJournal(inbox.app.opened.ledger, inbox.app.opened.vault, KINDS)
    journal.begin(MovePlan("archive", "k", "", "", steps, about), by="Ada", at=1)
    inbox.reopen()
    inbox.app.services.proposal_execution.finish_pending()
    assert not (inbox.world.vault / one.path).exists()
    assert "Approved-By: Ada" in inbox.world.git("log", "-1", "--format=%B")


@pytest.mark.parametrize("table", ["promotions", "promoted_files"])
def test_what_a_crash_broke_off_is_ended_although_the_ledger_could_not_be_read_at_first(inbox, table):
    record = inbox.capture("nobody reads this")
    raw, target = inbox.read(record.path).encode(), "Captures/Archive/default/nobody reads this.md"
    steps = [note_step(target, None, raw), note_step(record.path, raw, None)]
    about = {"said": "moved", "subject": "Archive it", "ids": [record.id]}
    journal = ChangeJournal(inbox.app.opened.ledger, inbox.app.opened.vault, KINDS)
    journal.begin(MovePlan("archive", "k", "", "", steps, about), by="Ada", at=1)
    inbox.reopen()
    with unreadable(inbox.app.opened.ledger, table), suppress(Unavailable):
        inbox.app.services.proposal_execution.finish_pending()
    assert (inbox.world.vault / record.path).exists()
    inbox.app.services.proposal_execution.finish_pending(at_once=True)
    assert not (inbox.world.vault / record.path).exists()
    assert inbox.app.services.proposal_execution.facts()["begun"] == 0


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_kill_at_any_write_leaves_what_was_ticked_to_be_done_once(tmp_path):
    """The files, the history and the ledger end as they would have without it."""
    made, saved = Inbox(tmp_path / "here"), tmp_path / "saved"
    kept = made.capture("# Search\n\nBoth legs count.\n", tags=["search"])
    copy = made.capture("# Search\n\nBoth legs count.\n\nAnd a third thing.\n", tags=["legs"])
    made.world.write("Notes/Mine.md", f"see [[{copy.path.removesuffix('.md')}#Search]]\n")
    made.world.run()
    made.world.git("add", "-A")
    made.world.git("commit", "-q", "-m", "captures")
    made.say(made.finding("merge-duplicates", kept.id, copy.id), made.finding("tag-merge", would=("search", "legs")))
    (path,) = [made.run()["report"]]
    made.tick(path, "Keep [[")
    made.tick(path, "Replace the tag")
    made.world.close()
    shutil.copytree(tmp_path / "here", saved, symlinks=True)

    def outcome(at):
        folder = tmp_path / "here"
        shutil.rmtree(folder)
        shutil.copytree(saved, folder, symlinks=True)
        command = [sys.executable, "-m", "tests.support.proposal_crash", str(folder), str(at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, -9), done.stderr
        world = World(folder)
        try:
            assert world.app.services.consolidation.carry_out_ticked() is not None
            world.app.services.commits.flush()
            assert world.app.services.consolidation.carry_out_ticked() == {}
            vault = world.vault
            files = {
                str(file.relative_to(vault)): file.read_bytes()
                for file in sorted(vault.rglob("*"))
                if file.is_file() and ".git/" not in str(file)
            }
            merges = (
                world.git("log", "--format=%s")
                .splitlines()
                .count("Merge " + copy.path.rpartition("/")[2][:-3] + " into " + kept.path.rpartition("/")[2][:-3])
            )
            return files, world.app.services.proposals.counts(), merges, done
        finally:
            world.close()

    whole, counts, merges, done = outcome(0)
    assert counts["carried"] == 2
    assert merges == 1
    for at in range(1, int(done.stdout), 4):
        files, others, times, killed = outcome(at)
        assert killed.returncode == -9
        assert sorted(name for name in files.keys() | whole.keys() if files.get(name) != whole.get(name)) == [], at
        assert others == counts, at
        assert times <= 1, at
