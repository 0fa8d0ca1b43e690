"""What goes with a deleted document: its own file, as it was read, and nothing else whatever a note claims."""

from __future__ import annotations

import hashlib

import pytest

from index.errors import InvalidArgument, Unavailable
from syncd.notes.front_matter import decode, edit, encode
from tests.support.disk_faults import Fault, failing
from tests.support.file_world import Filing

PDF = b"%PDF-The walrus sleeps."
FILE = "Captures/default/Files/a.pdf"
BY_TOOL = {
    "thought": lambda filing, one: filing.workspace.delete(one),
    "memo": lambda filing, one: filing.workspace.memos.delete(one),
    "owner": lambda filing, one: filing.world.app.operations["delete"]({"id": one}, lambda _: None),
}


@pytest.fixture
def filing(tmp_path):
    filing = Filing(tmp_path)
    yield filing
    filing.close()


def changed(filing, **properties):
    """The note of the file, after a person has changed its properties."""
    note = filing.world.vault / f"{FILE}.md"
    note.write_bytes(encode(edit(decode(note.read_bytes()), properties)))
    filing.world.run()


@pytest.mark.parametrize("tool", BY_TOOL)
def test_the_document_and_its_file_go_together(filing, tool):
    id, other = filing.upload("a.pdf", PDF), filing.upload("b.pdf", PDF)
    BY_TOOL[tool](filing, id)
    assert list(filing.stored()) == ["Captures/default/Files/b.pdf"]
    assert filing.notes() == ["Captures/default/Files/b.pdf.md"]
    assert filing.noticed() == []
    assert filing.workspace.get(other).content == "The walrus sleeps."
    assert filing.upload("a.pdf", PDF)
    assert FILE in filing.stored()


@pytest.mark.parametrize("tool", BY_TOOL)
def test_a_file_that_was_changed_since_stays(filing, tool):
    id = filing.upload("a.pdf", PDF)
    filing.world.write(FILE, PDF + b" edited")
    BY_TOOL[tool](filing, id)
    assert filing.stored() == {FILE: PDF + b" edited"}
    assert filing.notes() == []


def test_a_file_that_a_person_dropped_stays_when_its_document_is_deleted(filing):
    filing.world.write("Captures/default/x.pdf", PDF)
    filing.noticed()
    (id,) = filing.take()
    filing.workspace.delete(id)
    assert (filing.world.vault / "Captures/default/x.pdf").read_bytes() == PDF
    assert filing.notes() == []
    assert filing.noticed() == []  # and is not read again


def test_a_file_that_a_person_dropped_in_place_of_a_missing_one_stays_when_its_document_is_deleted(filing):
    id = filing.upload("a.pdf", PDF)
    (filing.world.vault / FILE).unlink()
    filing.noticed()
    filing.world.write("Captures/default/x.pdf", PDF)
    filing.noticed()
    assert filing.take() == [id]
    filing.workspace.delete(id)
    assert (filing.world.vault / "Captures/default/x.pdf").read_bytes() == PDF
    assert (filing.notes(), filing.noticed()) == ([], [])


@pytest.mark.parametrize("folder", ["default/Files", "work/Files"])
def test_a_file_that_lies_where_memex_stores_files_goes_with_its_document(filing, folder):
    id, workspace = filing.upload("a.pdf", PDF), folder.partition("/")[0]
    if workspace == "default":
        (filing.world.vault / FILE).rename(filing.world.vault / "Captures/default/Files/b.pdf")
    else:
        (filing.world.vault / "Captures/default").rename(filing.world.vault / "Captures/work")
    filing.noticed()
    assert filing.take() == [id]
    filing.world.app.agent_access.workspace(workspace).delete(id)
    assert (filing.stored(), filing.notes()) == ({}, [])


def test_an_uploaded_file_that_a_person_moved_keeps_its_source_and_stays_when_its_document_is_deleted(filing):
    id, moved = filing.upload("a.pdf", PDF, source="agent-x"), filing.world.vault / "Captures/default/x.pdf"
    (filing.world.vault / FILE).rename(moved)
    filing.noticed()
    assert filing.take() == [id]
    assert filing.workspace.get(id).record.source == "agent-x"
    filing.workspace.delete(id)
    assert moved.read_bytes() == PDF


def test_a_document_whose_file_is_gone_can_be_deleted(filing):
    id = filing.upload("a.pdf", PDF)
    (filing.world.vault / FILE).unlink()
    filing.workspace.delete(id)
    assert filing.notes() == []


@pytest.mark.parametrize(
    "target",
    [
        "[[Projects/mine.pdf]]",
        "[[Captures/work/Files/theirs.pdf]]",
        "[[../../Projects/mine.pdf]]",
        "[[Captures/default/../work/Files/theirs.pdf]]",
        "Projects/mine.pdf",
        "/etc/passwd",
        "[[Captures/default/note.md]]",
        "[[Captures/default/Files]]",
        "[[Captures/default/Files/link.pdf]]",
    ],
)
def test_a_note_that_claims_another_file_takes_nothing_along(filing, target):
    for path in ("Projects/mine.pdf", "Captures/work/Files/theirs.pdf"):
        filing.world.write(path, PDF)
    filing.world.write("Captures/default/note.md", PDF)
    (filing.world.vault / "Captures/default/Files").mkdir(exist_ok=True)
    (filing.world.vault / "Captures/default/Files/link.pdf").symlink_to(filing.world.vault / "Projects/mine.pdf")
    id = filing.upload("a.pdf", PDF)
    changed(filing, file=target)
    before = filing.stored() | {"mine": (filing.world.vault / "Projects/mine.pdf").read_bytes()}
    filing.workspace.delete(id)
    assert filing.stored() | {"mine": (filing.world.vault / "Projects/mine.pdf").read_bytes()} == before
    assert "Captures/default/note.md" in filing.notes()


def test_a_file_that_two_notes_speak_of_stays_until_the_last_is_deleted(filing):
    id = filing.upload("a.pdf", PDF)
    note = (filing.world.vault / f"{FILE}.md").read_text()
    filing.world.write("Captures/default/second.md", note.replace(id, "second"))
    filing.world.run()
    filing.workspace.delete("second")
    assert filing.stored() == {FILE: PDF}
    filing.workspace.delete(id)
    assert filing.stored() == {}


@pytest.mark.parametrize("tool", BY_TOOL)
@pytest.mark.parametrize("field", ["rename", "fsync", "open"])
def test_a_deletion_that_fails_changed_nothing(filing, tool, field):
    id = filing.upload("a.pdf", PDF)
    vault, good = filing.world.app.opened.vault, filing.world.app.opened.vault._calls
    before = {**filing.stored(), "note": (filing.world.vault / f"{FILE}.md").read_bytes()}
    for nth in range(1, 30):
        fault = Fault(field, nth, failing(5))
        vault._calls = fault.calls
        try:
            BY_TOOL[tool](filing, id)
        except Unavailable as error:
            vault._calls = good
            assert "a.pdf" not in error.message
            assert {**filing.stored(), "note": (filing.world.vault / f"{FILE}.md").read_bytes()} == before
            assert filing.workspace.get(id).content == "The walrus sleeps."
        else:
            break
        finally:
            vault._calls = good
    else:
        pytest.fail("it never came about")
    assert (filing.stored(), filing.notes()) == ({}, [])


@pytest.mark.parametrize("tool", BY_TOOL)
def test_a_deletion_that_cannot_be_committed_changed_nothing(filing, tool):
    id = filing.upload("a.pdf", PDF)
    index = filing.world.app.opened.builds.scopes["captures"].index
    commit = index.commit

    def full(*_, **__):
        raise Unavailable("the disk is full")

    index.commit = full
    with pytest.raises(Unavailable):
        BY_TOOL[tool](filing, id)
    index.commit = commit
    assert filing.stored() == {FILE: PDF}
    assert filing.workspace.get(id).content == "The walrus sleeps."
    BY_TOOL[tool](filing, id)
    assert (filing.stored(), filing.notes()) == ({}, [])
    outcomes = [entry.outcome for entry in filing.world.app.opened.audit.entries() if entry.kind == "undone"]
    assert len(outcomes) == 2


def test_an_agent_cannot_say_which_file_a_document_is_the_text_of(filing):
    id = filing.upload("a.pdf", PDF)
    filing.world.write("Captures/default/mine.png", b"a person's")
    claim = {"file": "[[Captures/default/mine.png]]", "file_sha256": hashlib.sha256(b"a person's").hexdigest()}
    before = (filing.world.vault / f"{FILE}.md").read_bytes()
    for more in ({"metadata": claim}, {"metadata": {}, "replace": True}, {}):
        with pytest.raises(InvalidArgument, match="text of a file"):
            filing.workspace.memos.save("The walrus sleeps.", memo_id=id, **more)
    assert (filing.world.vault / f"{FILE}.md").read_bytes() == before
    filing.workspace.delete(id)
    assert filing.stored() == {"Captures/default/mine.png": b"a person's"}
