"""Files that people put into the inbox: read where they lie, followed when they change or move, never touched."""

from __future__ import annotations

import shutil

import pytest

from index.errors import Conflict, NotFound, Unavailable
from index.model import Query
from syncd.files.conversion.converter import Unreadable
from syncd.installation.backup import irreplaceable_files
from syncd.notes.front_matter import edit, read_properties, split
from tests.support.disk_faults import Fault, failing
from tests.support.file_world import Filing

PATH = "Captures/default/papers/walrus.pdf"
NOTE = "Captures/default/papers/Files/walrus.pdf.md"
PDF = b"%PDF-The walrus sleeps."


@pytest.fixture
def filing(tmp_path):
    filing = Filing(tmp_path)
    yield filing
    filing.close()


def read(filing, path=PATH, **more):
    return filing.inplace.import_file(filing.order(path.rpartition("/")[2], path=path, **more))


def said(filing, path=NOTE):
    return read_properties(split((filing.world.vault / path).read_text())[0])


def test_the_file_stays_where_it_is_and_its_note_goes_to_the_files_of_its_namespace(filing):
    file = filing.world.write(PATH, PDF)
    before = file.stat()
    id = read(filing, source="inbox")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (PDF, before.st_mtime_ns)
    assert filing.notes() == [NOTE]
    kept = filing.workspace.get(id)
    assert (kept.content, kept.record.file, kept.record.source) == ("The walrus sleeps.", PATH, "inbox")
    assert kept.record.namespace == "papers"
    assert filing.workspace.document_at("papers/walrus.pdf").id == id
    assert filing.workspace.document_at("papers/Files/walrus.pdf.md").id == id
    assert not list(filing.staged.iterdir())


@pytest.mark.parametrize("folder", ["Files/2026", "Q3 (final); draft", "a/b/c/d/e/f/g/h/i/j", "Entities"])
def test_a_folder_of_any_name_will_do(filing, folder):
    path = f"Captures/default/{folder}/walrus.pdf"
    filing.world.write(path, PDF)
    id = read(filing, path)
    assert filing.workspace.get(id).record.file == path
    assert filing.world.found("walrus sleeps") == filing.notes()


@pytest.mark.parametrize(
    ("name", "note"),
    [
        pytest.param("-walrus.pdf", "walrus.pdf.md", id="a dash first"),
        pytest.param("CON.pdf", "CON note.pdf.md", id="a device of Windows"),
        pytest.param("the\twalrus.pdf", "the walrus.pdf.md", id="a control character"),
        pytest.param("sea\\walrus.pdf", "walrus.pdf.md", id="a backslash"),
        pytest.param("é" * 125 + ".pdf", "é" * 80 + ".pdf.md", id="too long for a note beside it"),
    ],
)
def test_a_file_whose_name_no_note_can_have_gets_a_note_of_another_name(filing, name, note):
    path = f"Captures/default/{name}"
    filing.world.write(path, PDF)
    id = read(filing, path)
    assert filing.notes() == [f"Captures/default/Files/{note}"]
    assert filing.workspace.get(id).record.file == path
    assert filing.world.found("walrus sleeps") == filing.notes()
    assert read(filing, path) == id
    assert (filing.world.vault / path).read_bytes() == PDF


def test_a_second_run_makes_nothing_twice(filing):
    filing.world.write(PATH, PDF)
    assert read(filing) == read(filing)
    assert (len(filing.stored()), len(filing.notes())) == (1, 1)
    assert len(filing.reader.read) == 1


def test_a_changed_file_changes_its_note_in_place(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    before = filing.workspace.get(id).record
    filing.world.write(PATH, b"%PDF-The narwhal wakes.")
    assert read(filing) == id
    kept = filing.workspace.get(id)
    assert kept.content == "The narwhal wakes."
    assert (kept.record.created_at, kept.record.version) == (before.created_at, before.version + 1)
    assert kept.record.updated_at is not None
    assert [hit.record.id for hit in filing.workspace.search(Query("narwhal")).hits] == [id]
    assert "sleeps" not in filing.workspace.search(Query("narwhal")).hits[0].chunk
    filing.world.write(PATH, b"%PDF-The narwhal wakes.")
    assert read(filing) == id
    assert filing.workspace.get(id).record.version == before.version + 1


WALRUS = b"%PDF-The walrus sleeps on the ice. A walrus is a large mammal of the sea, and it eats clams."
BAKERY = b"%PDF-The revenue of the bakery grew. The bakery sold twice as much bread, and it opens a shop."


def test_the_automatic_values_of_a_changed_file_follow_its_text(filing):
    filing.world.write(PATH, WALRUS)
    read(filing)
    assert "walrus" in said(filing)["summary"]
    for text, word in ((BAKERY, "bakery"), (WALRUS, "walrus")):
        filing.world.write(PATH, text)
        read(filing)
        values = said(filing)
        assert word in values["summary"]
        assert any(word in tag for tag in values["tags"])


def test_values_that_a_person_has_set_stay_when_the_file_changes(filing):
    filing.world.write(PATH, WALRUS)
    read(filing)
    note = filing.world.vault / NOTE
    front, body = split(note.read_text())
    note.write_text(edit(front, {"summary": "Mine.", "tags": ["mine"]}) + body)
    filing.world.run()
    filing.world.write(PATH, BAKERY)
    read(filing)
    values = said(filing)
    assert (values["summary"], values["tags"]) == ("Mine.", ["mine"])


def test_a_text_that_a_person_has_edited_is_not_written_over(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    note = filing.world.vault / NOTE
    note.write_text(note.read_text() + " No: it dreams.")
    filing.world.run()
    filing.world.write(PATH, b"%PDF-The narwhal wakes.")
    before = note.read_bytes()
    with pytest.raises(Conflict, match="edited manually"):
        read(filing)
    assert note.read_bytes() == before
    note.unlink()
    filing.world.run()
    assert read(filing) != id
    assert "narwhal" in note.read_text()


def test_properties_that_a_person_has_added_are_no_edit_of_the_text(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    note = filing.world.vault / NOTE
    note.write_text(note.read_text().replace("type: file", "type: file\nmine: yes, mine # really"))
    filing.world.run()
    filing.world.write(PATH, b"%PDF-The narwhal wakes.")
    assert read(filing) == id
    assert "mine: yes, mine # really" in note.read_text()


def test_a_failure_keeps_the_old_note_whole(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    before = (filing.world.vault / NOTE).read_bytes()
    filing.world.write(PATH, b"%PDF-BROKEN")
    with pytest.raises(Unreadable):
        read(filing)
    filing.world.write(PATH, b"%PDF-new")
    vault, good = filing.world.app.opened.vault, filing.world.app.opened.vault._calls
    vault._calls = Fault("write", 1, failing(28)).calls
    with pytest.raises(Unavailable, match="disk is full"):
        read(filing)
    vault._calls = good
    assert (filing.world.vault / NOTE).read_bytes() == before
    assert filing.workspace.get(id).content == "The walrus sleeps."
    assert read(filing) == id


def test_a_copy_that_is_being_read_is_in_no_backup(filing):
    """It may grow while the backup is made, which could not be put back then."""
    filing.world.write(PATH, PDF)
    (filing.world.state / "kept").write_bytes(b"")
    held = []

    def looking(path, *rest):
        held.extend(irreplaceable_files(filing.world.state))
        assert path.is_file()
        return filing.reader(path, *rest)

    filing.inplace._convert = looking
    read(filing)
    assert held == ["kept"]


def test_a_moved_file_keeps_its_document(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    new = "Captures/default/archive/sea cow.pdf"
    (filing.world.vault / "Captures/default/archive").mkdir()
    shutil.move(filing.world.vault / PATH, filing.world.vault / new)
    assert read(filing, new) == id
    assert filing.notes() == [NOTE]
    assert said(filing)["file"] == f"[[{new}]]"
    assert filing.workspace.get(id).record.file == new


def test_the_files_of_a_workspace_whose_folder_was_renamed_keep_their_documents(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    shutil.move(filing.world.vault / "Captures/default", filing.world.vault / "Captures/home")
    filing.world.run()
    assert read(filing, PATH.replace("default", "home"), workspace="home") == id
    assert filing.notes() == [NOTE.replace("default", "home")]
    assert said(filing, NOTE.replace("default", "home"))["file"] == f"[[{PATH.replace('default', 'home')}]]"


def test_a_copy_of_a_file_is_another_document(filing):
    filing.world.write(PATH, PDF)
    id = read(filing)
    other = "Captures/default/copy/walrus.pdf"
    filing.world.write(other, PDF)
    filing.beside.add(other)
    assert read(filing, other) != id
    assert filing.notes() == ["Captures/default/copy/Files/walrus 2.pdf.md", NOTE]
    told = said(filing, "Captures/default/copy/Files/walrus 2.pdf.md")
    assert told["file_name"] == "walrus.pdf"


def test_a_file_of_another_workspace_is_not_moved_here(filing):
    filing.world.write("Captures/work/a.pdf", PDF)
    filing.inplace.import_file(filing.order("a.pdf", workspace="work", path="Captures/work/a.pdf"))
    (filing.world.vault / "Captures/work/a.pdf").unlink()
    filing.world.write(PATH, PDF)
    read(filing)
    assert said(filing, "Captures/work/Files/a.pdf.md")["file"] == "[[Captures/work/a.pdf]]"
    assert len(filing.notes()) == 2


@pytest.mark.parametrize("path", ["Notes/a.pdf", "Captures/work/a.pdf", "Captures/Reports/a.pdf", "Captures/a.pdf"])
def test_a_file_outside_of_the_workspace_is_not_read(filing, path):
    filing.world.write("Captures/work/x.md", "x")
    filing.world.write(path, PDF)
    with pytest.raises(NotFound):
        read(filing, path)
    assert filing.reader.read == []


def test_a_link_is_not_followed(filing):
    secret = filing.world.vault.parent / "secret.pdf"
    secret.write_bytes(PDF)
    (filing.world.vault / PATH).parent.mkdir(parents=True)
    (filing.world.vault / PATH).symlink_to(secret)
    with pytest.raises(NotFound):
        read(filing)
    assert filing.reader.read == []


def test_a_disk_without_room_for_a_copy_is_waited_for(filing):
    filing.world.write(PATH, PDF)
    filing.inplace._free = 1 << 60
    with pytest.raises(Unavailable, match="disk is full") as told:
        read(filing)
    assert told.value.retryable


def test_a_file_that_is_read_already_is_left_to_that(filing):
    filing.world.write(PATH, PDF)
    with filing.beside.reserve(PATH), pytest.raises(Unavailable):
        read(filing)
