"""Files that appear in the inbox are noticed once, when they are quiet, by whichever way they came."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace

import pytest

from index.errors import ResourceExhausted, Unavailable
from tests.support.file_world import Filing
from tests.support.world import until

PATH = "Captures/default/walrus.pdf"
PDF = b"%PDF-The walrus sleeps."


@pytest.fixture
def filing(tmp_path):
    filing = Filing(tmp_path)
    yield filing
    filing.close()


def test_a_dropped_file_is_queued_once(filing):
    filing.world.write("Captures/default/papers/walrus.pdf", PDF)
    assert filing.noticed() == ["Captures/default/papers/walrus.pdf"]
    ((workspace, given),) = filing.queued
    assert (workspace, given["name"], given["source"]) == ("default", "walrus.pdf", "inbox")
    assert filing.noticed() == []
    filing.reopen()
    assert filing.noticed() == []


def test_nothing_is_queued_that_no_document_can_be_made_of(filing):
    for path in (
        "Notes/a.pdf",
        "Captures/Reports/a.pdf",
        "Captures/a.pdf",
        "Captures/default/a.zip",
        "Captures/default/.hidden.pdf",
        "Captures/default/.trash/a.pdf",
        "Captures/default/a.pdf.part",
        "Captures/default/a.pdf.crdownload",
        "Captures/default/a.pdf.tmp",
        "Captures/default/~$a.docx",
        "Captures/default/.a.pdf.icloud",
    ):
        filing.world.write(path, PDF)
    (filing.world.vault / "Captures/default/link.pdf").symlink_to(filing.world.vault / "Notes/a.pdf")
    big = filing.world.write("Captures/default/big.pdf", b"")
    os.truncate(big, 1_000_001)
    assert filing.noticed() == []
    skipped = dict(filing.world.app.opened.builds.scopes["captures"].index.defects("default"))
    assert "is too large" in skipped["Captures/default/big.pdf"]
    assert "is a link" in skipped["Captures/default/link.pdf"]
    assert set(skipped) == {"Captures/default/big.pdf", "Captures/default/link.pdf"}


def test_a_file_that_is_being_written_is_waited_for(filing):
    filing.dropped._quiet_s = 0.2
    file = filing.world.write(PATH, PDF)
    assert filing.noticed() == []
    for n in range(3):
        time.sleep(0.15)
        file.write_bytes(PDF * (n + 2))
        filing.dropped.queue_quiet_files()
        assert filing.queued == []

    def queued():
        filing.dropped.queue_quiet_files()
        return [given["size"] for _, given in filing.queued]

    until(queued)
    assert queued() == [len(PDF) * 4]


def test_a_file_that_goes_again_is_forgotten(filing):
    filing.dropped._quiet_s = 0.05
    file = filing.world.write(PATH, PDF)
    filing.world.run()
    file.unlink()
    time.sleep(0.1)
    filing.dropped.queue_quiet_files()
    assert filing.queued == []
    assert filing.dropped.facts()["waiting"] == 0


def test_an_upload_is_not_noticed(filing):
    filing.upload("a.pdf", PDF)
    assert filing.noticed() == []
    filing.reopen()
    assert filing.noticed() == []


def test_a_note_that_a_person_deletes_is_not_made_again(filing):
    filing.world.write(PATH, PDF)
    filing.noticed()
    filing.take()
    (filing.world.vault / filing.notes()[0]).unlink()
    assert filing.noticed() == []
    filing.reopen()
    assert filing.noticed() == []
    filing.world.write(PATH, PDF + b"!")
    assert filing.noticed() == [PATH]


def test_a_file_that_was_deleted_and_comes_again_is_read_again(filing):
    file = filing.world.write(PATH, PDF)
    filing.noticed()
    filing.take()
    file.unlink()
    (filing.world.vault / filing.notes()[0]).unlink()
    assert filing.noticed() == []
    filing.world.write(PATH, PDF)
    assert filing.noticed() == [PATH]


def test_changed_bytes_are_read_again_and_equal_ones_are_not(filing):
    file = filing.world.write(PATH, PDF)
    filing.noticed()
    (id,) = filing.take()
    os.utime(file, (1, 1))
    assert filing.noticed() == []
    filing.world.write(PATH, b"%PDF-The narwhal wakes.")
    assert filing.noticed() == [PATH]
    assert filing.take() == [id]
    assert filing.workspace.get(id).content == "The narwhal wakes."


def test_files_that_came_with_their_notes_are_not_read_again(filing, tmp_path):
    """The vault was cloned: the ledger of this machine knows of nothing."""
    filing.world.write(PATH, PDF)
    filing.noticed()
    filing.take()
    filing.upload("b.txt", b"walrus")
    other = Filing(tmp_path / "other")
    shutil.copytree(filing.world.vault, other.world.vault, dirs_exist_ok=True)
    try:
        assert other.noticed() == []
        assert other.noticed() == []
        assert other.dropped.facts() == {"known": 2, "waiting": 0, "unread": [], "missing": []}
    finally:
        other.close()


@pytest.mark.parametrize("form", ["[[Captures/default/sea cow.pdf]]", "[[sea cow.pdf]]", "[[../sea cow.pdf]]"])
def test_a_move_in_obsidian_keeps_the_note_however_it_writes_links(filing, form):
    """Absolute, the shortest, or relative: as the person has set it."""
    filing.world.write(PATH, PDF)
    filing.noticed()
    (id,) = filing.take()
    new = "Captures/default/sea cow.pdf"
    (filing.world.vault / PATH).rename(filing.world.vault / new)
    note = filing.world.vault / filing.notes()[0]
    note.write_text(note.read_text().replace(f"[[{PATH}]]", form))
    if filing.noticed():
        assert filing.take() == [id]
    assert filing.workspace.get(id).record.file == new
    assert len(filing.notes()) == 1
    assert filing.dropped.facts()["missing"] == []


def test_a_move_in_obsidian_keeps_the_note(filing):
    """Obsidian moves the file and then writes its new path into the note's property."""
    filing.world.write(PATH, PDF)
    filing.noticed()
    (id,) = filing.take()
    new = "Captures/default/sea cow.pdf"
    (filing.world.vault / PATH).rename(filing.world.vault / new)
    note = filing.world.vault / filing.notes()[0]
    note.write_text(note.read_text().replace(PATH, new))
    assert filing.noticed() == []
    assert filing.workspace.get(id).record.file == new
    assert filing.dropped.facts()["missing"] == []


def test_a_move_by_another_program_is_followed(filing):
    filing.world.write(PATH, PDF)
    filing.noticed()
    (id,) = filing.take()
    new = "Captures/default/sea cow.pdf"
    (filing.world.vault / PATH).rename(filing.world.vault / new)
    filing.world.run()
    assert filing.dropped.facts()["missing"] == [PATH]
    assert filing.noticed() == [new]
    assert filing.take() == [id]
    assert filing.dropped.facts()["missing"] == []


def test_a_file_that_is_gone_is_told_and_its_note_stays(filing):
    file = filing.world.write(PATH, PDF)
    filing.noticed()
    (id,) = filing.take()
    file.unlink()
    filing.world.run()
    assert filing.noticed() == []
    note = filing.notes()[0]
    assert list(filing.dropped.find_missing()) == list(filing.dropped.find_missing(["default"])) == [(note, PATH)]
    assert list(filing.dropped.find_missing(["work"])) == []
    assert filing.workspace.get(id).content == "The walrus sleeps."


def test_a_file_that_is_not_downloaded_is_not_missing(filing):
    file = filing.world.write(PATH, PDF)
    filing.noticed()
    filing.take()
    file.rename(file.with_name(".walrus.pdf.icloud"))
    filing.world.run()
    assert list(filing.dropped.find_missing()) == []


def test_nothing_is_forgotten_when_the_vault_is_away(filing):
    filing.world.write(PATH, PDF)
    filing.noticed()
    away = filing.world.vault.with_name("away")
    filing.world.vault.rename(away)
    filing.world.run()
    away.rename(filing.world.vault)
    assert filing.noticed() == []


def test_a_queue_that_is_full_is_tried_again(filing):
    def full(*_):
        raise ResourceExhausted("too many wait", retryable=True)

    filing.world.write(PATH, PDF)
    add, filing.dropped._add = filing.dropped._add, full
    assert filing.noticed() == []
    assert filing.dropped.facts()["unread"] == [{"path": PATH, "reason": "too many wait"}]
    filing.dropped._add = add
    filing.dropped.queue_quiet_files()
    assert [given["path"] for _, given in filing.queued] == [PATH]
    assert filing.dropped.facts()["unread"] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_is_named(filing):
    file = filing.world.write(PATH, PDF)
    file.chmod(0)
    assert filing.noticed() == []
    assert "permission denied" in filing.dropped.facts()["unread"][0]["reason"]
    file.chmod(0o600)
    filing.dropped.queue_quiet_files()
    assert [given["path"] for _, given in filing.queued] == [PATH]


def test_nothing_is_queued_before_the_notes_are_known(filing):
    filing.dropped._calm = lambda: False
    filing.world.write(PATH, PDF)
    assert filing.noticed() == []
    filing.dropped._calm = lambda: True
    filing.dropped.queue_quiet_files()
    assert [given["path"] for _, given in filing.queued] == [PATH]


def test_a_ledger_that_cannot_be_written_makes_it_twice_at_most(filing):
    """The job is queued and then remembered: in between it is found again, and the second run finds it done."""
    filing.world.write(PATH, PDF)
    handled, calls = filing.handled.put, []

    def broken(*given):
        calls.append(given)
        raise Unavailable("the ledger is away")

    filing.handled.put = broken
    assert filing.noticed() == [PATH]
    filing.handled.put = handled
    filing.dropped.queue_quiet_files()
    assert len(filing.queued) == 2
    one, two = filing.take()
    assert one == two
    assert len(filing.notes()) == 1
    assert calls


def test_a_listing_of_a_folder_says_nothing_of_others(filing):
    filing.world.write(PATH, PDF)
    filing.world.write("Captures/work/a.pdf", PDF)
    filing.noticed()
    filing.world.app.opened.sync.run({"Captures/work"})
    listing = filing.world.app.opened.vault.list_notes("Captures/work")
    assert set(listing.others) == {"Captures/work/a.pdf"}
    filing.dropped.take_listing(replace(listing, others={}), {"Captures/work"})
    assert filing.handled.get(PATH)
