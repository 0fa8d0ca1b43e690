"""Uploaded files: stored byte for byte, told by a note, once each whatever happens, and never by another's name."""

from __future__ import annotations

import copy
import dataclasses
import errno
import hashlib
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from index.errors import InvalidArgument, NotFound, ResourceExhausted, Unavailable
from index.model import Query, Stat
from index.process_memory import LARGE_TEXT
from index.scope.index import Index
from syncd.documents.agent_paths import visible_metadata
from syncd.files.conversion.converter import Limits, Unreadable, convert
from syncd.files.file_note_writer import hold_large_text
from syncd.files.uploaded_files import UNPUT
from syncd.notes.front_matter import read_properties, split
from syncd.vault.vault import FileDigest
from tests.support.disk_faults import Fault, failing, half
from tests.support.fakes import fake_embedder
from tests.support.file_world import Filing

PDF = b"%PDF-Quarterly numbers of the walrus farm.\r\n"


@pytest.fixture
def filing(tmp_path):
    filing = Filing(tmp_path)
    yield filing
    filing.close()


def said(filing, path):
    return read_properties(split((filing.world.vault / path).read_text())[0])


def test_a_file_is_stored_as_it_is_and_told_by_the_note_beside_it(filing):
    id = filing.upload("Q3 report.pdf", PDF, tags=["money", "collection:memory"], source="agent")
    assert filing.stored() == {"Captures/default/Files/Q3 report.pdf": PDF}
    assert filing.notes() == ["Captures/default/Files/Q3 report.pdf.md"]
    told = said(filing, "Captures/default/Files/Q3 report.pdf.md")
    assert list(told)[:7] == ["id", "created_at", "source", "collection", "title", "tags", "type"]
    assert (told["id"], told["title"], told["type"]) == (id, "Q3 report.pdf", "file")
    assert told["collection"] == "memory"
    assert "collection:memory" not in told["tags"]
    kept = filing.workspace.get(id)
    assert kept.content == "Quarterly numbers of the walrus farm.\n"
    assert kept.record.file == "Captures/default/Files/Q3 report.pdf"
    assert kept.record.type == "file"
    for mode in ("hybrid", "vector", "text"):
        assert [hit.record.id for hit in filing.workspace.search(Query("walrus farm", mode=mode)).hits] == [id]
    before = filing.world.dump()
    filing.world.run()
    assert filing.world.dump() == before
    assert filing.noticed() == []


@pytest.mark.slow
def test_large_texts_are_in_memory_one_after_the_other(filing, monkeypatch):
    """Each needs some ten times its size; a small one waits for none of them."""
    jobs, busy, met, ended = {}, set(), [], []

    def read(path, kind, *waits):
        result = filing.reader(path, kind, *waits)
        if len(result.text) > LARGE_TEXT:
            busy.add(path)
            met.append(len(busy))
            jobs[path].resources.callback(busy.discard, path)  # called before the lock, which came first, is released
        return result

    def order(name, data):
        order = filing.order(name, data)

        def progress(_done, _total, stage):
            if stage == "embedding" and name != "small.pdf":
                met.append(len(busy))
                time.sleep(0.001)

        return dataclasses.replace(order, progress=progress)

    def carry_out(name, data):
        job = order(name, data)
        jobs[job.staged] = job
        filing.files.import_file(job)
        ended.append(name)

    monkeypatch.setattr(filing.files, "_convert", read)

    large = [(f"{letter}.pdf", b"%PDF-" + f"{letter} ".encode() * 300_000) for letter in "ab"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda given: carry_out(*given), [*large, ("small.pdf", PDF)]))
    assert max(met) == 1
    assert ended[0] == "small.pdf"
    assert all(said(filing, path)["summary"] for path in filing.notes() if "small" not in path)


def test_a_large_text_that_waits_is_left_when_the_daemon_ends(filing):
    order = filing.order("a.pdf", b"%PDF-" + b"a " * 300_000)
    order.stopping.set()
    with hold_large_text(filing.order("b.pdf", PDF)), pytest.raises(Unavailable, match="resumes"):
        filing.files.import_file(order)


def test_a_note_is_written_as_it_is_indexed_when_the_index_is_switched_meanwhile(filing):
    scope_index, before = filing.world.app.opened.builds.scopes["captures"], []

    def progress(_done, _total, stage):
        if stage == "embedding" and not before:
            before.append(scope_index.index)
            scope_index.switch_to(copy.copy(scope_index.index))

    order = dataclasses.replace(filing.order("Q3 report.pdf", PDF), progress=progress)
    record = filing.workspace.get(filing.files.import_file(order)).record
    assert before
    assert record.summary
    assert record.digest == hashlib.sha256((filing.world.vault / record.path).read_bytes()).hexdigest()
    assert said(filing, record.path)["summary"] == record.summary


def test_a_file_goes_into_its_namespace(filing):
    filing.upload("a.txt", b"text", namespace="alpha/beta")
    assert list(filing.stored()) == ["Captures/default/alpha/beta/Files/a.txt"]
    with pytest.raises(InvalidArgument):
        filing.upload("a.txt", b"text", namespace="../x")
    with pytest.raises(NotFound):
        filing.upload("a.txt", b"text", workspace="nowhere")


def test_git_sees_the_two_files_and_nothing_else(filing):
    filing.world.write("Note.md", "mine\n")
    filing.world.git("init", "-q")
    filing.world.git("add", "-A")
    filing.world.git("commit", "-qm", "before")
    filing.world.run()
    filing.upload("a.pdf", PDF)
    assert filing.world.git("status", "--porcelain", "-uall").splitlines() == [
        "?? Captures/default/Files/a.pdf",
        "?? Captures/default/Files/a.pdf.md",
    ]


def test_an_uploaded_note_becomes_a_note_and_brings_no_rights_along(filing, monkeypatch):
    monkeypatch.setattr(filing.files, "_convert", partial(convert, Limits()))  # the real one: it reads front matter too
    raw = b"---\ntitle: Plan\ntags: [x]\nproject: alpha\npromote: true\nid: stolen\ncollection: memory\nfile: '[[Captures/default/Files/a.pdf]]'\n---\n# Plan\nwalrus\n"
    id = filing.upload("plan.md", raw, tags=["given"])
    assert filing.stored() == {}
    assert filing.notes() == ["Captures/default/Files/plan.md"]
    kept = filing.workspace.get(id)
    assert kept.content == "# Plan\nwalrus\n"
    assert (kept.record.title, kept.record.collection, kept.record.file) == ("Plan", "documents", None)
    assert set(kept.record.tags) >= {"x", "given"}
    assert kept.record.metadata["project"] == "alpha"
    assert "promote" not in said(filing, "Captures/default/Files/plan.md")
    monkeypatch.undo()
    assert filing.upload("plan.md", raw) != id
    assert filing.notes() == ["Captures/default/Files/plan 2.md", "Captures/default/Files/plan.md"]


def test_a_note_that_is_too_long_is_kept_whole_as_text(filing):
    filing.reader.cut = True
    filing.upload("long.md", b"---\npromote: true\n---\nwalrus")
    assert filing.stored() == {"Captures/default/Files/long.md.txt": b"---\npromote: true\n---\nwalrus"}
    assert said(filing, "Captures/default/Files/long.md.txt.md")["text_cut"] is True


def test_the_note_of_an_uploaded_note_does_not_tell_whether_its_name_was_taken(filing):
    filing.world.write("Attic/Merger.md", "theirs")
    filing.world.run()
    taken, free = (filing.workspace.get(filing.upload(f"{name}.md", b"text")).record for name in ("Merger", "Other"))
    assert visible_metadata(taken).keys() == visible_metadata(free).keys()
    rows, near = filing.workspace.memos.index.memos, (taken.workspace, taken.namespace)
    assert len(rows.find_matching(*near, {"file_type": "text/markdown"})) == 2
    assert rows.find_matching(*near, {"file_name": "Merger"}) == []


@pytest.mark.parametrize(
    "twin", ["Attic/report.pdf", "Attic/Report.PDF", "Attic/report.pdf.md", "Captures/work/Files/report.pdf"]
)
def test_a_name_that_is_in_use_anywhere_is_not_used_and_not_told(filing, twin):
    filing.world.write("Captures/work/x.md", "x")
    filing.world.write(twin, b"theirs")
    filing.world.run()
    id = filing.upload("report.pdf", PDF)
    assert filing.stored()["Captures/default/Files/report 2.pdf"] == PDF
    assert "Captures/default/Files/report 2.pdf.md" in filing.notes()
    assert (filing.world.vault / twin).read_bytes() == b"theirs"
    kept = filing.workspace.get(id)
    assert kept.record.title == "report.pdf"
    assert "file_name" not in visible_metadata(kept.record)  # a file with its wanted name has no such property
    assert "file_name: report.pdf\n" in (filing.world.vault / kept.record.path).read_text()  # for the owner
    (address,) = filing.workspace.addresses([kept.record]).values()
    assert address == "Files/report.pdf.md"
    assert filing.workspace.document_at("Files/report.pdf.md").id == id
    assert filing.workspace.document_at("Files/report.pdf").id == id
    with pytest.raises(NotFound):
        filing.workspace.document_at("Files/report 2.pdf")


def test_a_title_is_not_the_name(filing):
    filing.world.write("Attic/report.pdf", b"theirs")
    id = filing.upload("report.pdf", PDF, title="Numbers")
    (address,) = filing.workspace.addresses([filing.workspace.get(id).record]).values()
    assert address == "Files/report.pdf.md"
    other = filing.upload("Chapter 2.pdf", PDF + b"2")
    assert filing.workspace.addresses([filing.workspace.get(other).record])[other] == "Files/Chapter 2.pdf.md"


def test_files_of_one_name_are_told_apart(filing):
    first, second = filing.upload("a.pdf", PDF), filing.upload("a.pdf", PDF + b"!")
    assert sorted(filing.stored()) == ["Captures/default/Files/a 2.pdf", "Captures/default/Files/a.pdf"]
    addresses = filing.workspace.addresses([filing.workspace.get(id).record for id in (first, second)])
    assert sorted(map(len, addresses.values())) == [len("Files/a.pdf.md"), len("Files/a.pdf (12345678).md")]
    assert {filing.workspace.document_at(address).id for address in addresses.values()} == {first, second}
    assert filing.workspace.get(second).content.endswith("!")


def test_a_capture_does_not_take_the_name_of_a_file(filing):
    filing.world.write("Attic/report.pdf", b"theirs")
    record = filing.workspace.capture("x", metadata={"title": "report.pdf"}).record
    assert record.path == "Captures/default/report.pdf 2.md"
    assert record.title == "report.pdf"


@pytest.mark.parametrize(("name", "kept"), [("a.pdf", "a.pdf"), ("a.md", "a.md.txt")])
def test_a_file_that_cannot_be_read_fails_with_the_reason_and_is_kept(filing, name, kept):
    filing.reader.fails = Unreadable("it is damaged")
    order = filing.order(name, PDF if name.endswith("pdf") else b"text")
    with pytest.raises(InvalidArgument, match="damaged"):
        filing.files.import_file(order)
    assert list(filing.stored()) == [f"Captures/default/Files/{kept}"]
    assert filing.notes() == []
    assert filing.noticed() == []
    filing.reader.fails = None
    assert filing.files.import_file(order) == order.planned
    assert len(filing.stored()) == 1


def test_what_is_no_file_of_a_known_type_is_not_put_into_the_vault(filing):
    for name, data in [("x.exe", b"MZ\x90\x00"), ("x.bin", b"\0\1\2")]:
        with pytest.raises(InvalidArgument):
            filing.upload(name, data)
    assert filing.stored() == {}


def test_a_limit_keeps_the_file_too(filing):
    filing.reader.fails = ResourceExhausted("it takes too long", limit="seconds")
    with pytest.raises(ResourceExhausted):
        filing.upload("a.pdf", PDF)
    assert list(filing.stored()) == ["Captures/default/Files/a.pdf"]


def test_a_second_run_of_a_job_makes_nothing_twice(filing):
    order = filing.order("a.pdf", PDF)
    assert filing.files.import_file(order) == filing.files.import_file(order) == order.planned
    assert (len(filing.stored()), len(filing.notes())) == (1, 1)


def test_a_note_that_is_not_indexed_yet_is_waited_for(filing):
    order = filing.order("a.pdf", PDF)
    filing.files.import_file(order)
    note = filing.world.vault / filing.notes()[0]
    raw = note.read_bytes()
    note.unlink()
    filing.world.run()
    note.write_bytes(raw)  # as a crash between the note and its commit leaves it
    with pytest.raises(Unavailable) as told:
        filing.files.import_file(order)
    assert told.value.retryable
    filing.world.run()
    assert filing.files.import_file(order) == order.planned
    assert (len(filing.stored()), len(filing.notes())) == (1, 1)


def test_without_an_encoder_the_file_waits_and_is_taken_up_again(filing):
    order = filing.order("a.pdf", PDF)
    embedder = filing.world.app.opened.embedder
    embedder._mark_broken(["it is away"])
    with pytest.raises(Unavailable) as told:
        filing.files.import_file(order)
    assert told.value.retryable
    assert filing.notes() == []
    filing.world.reopen(fake_embedder(filing.world.encoder))
    filing._open()
    assert filing.files.import_file(order) == order.planned
    assert (list(filing.stored().values()), len(filing.notes())) == ([PDF], 1)


@pytest.mark.parametrize("field", ["write", "fsync", "rename", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_a_failing_disk_leaves_nothing_half_and_the_next_run_makes_it_whole(filing, field, code):
    order = filing.order("a.pdf", PDF)
    vault, good = filing.world.app.opened.vault, filing.world.app.opened.vault._calls
    for nth in range(1, 40):
        fault = Fault(field, nth, failing(code))
        vault._calls = fault.calls
        try:
            filing.files.import_file(order)
        except Unavailable as error:
            assert error.retryable
            assert "Captures/" not in error.message
        finally:
            vault._calls = good
        assert all(data == PDF for data in filing.stored().values())
        assert len(filing.stored()) <= 1
        if not fault.hit:
            break
    else:
        pytest.fail("it never came about")
    assert filing.files.import_file(order) == order.planned
    assert (list(filing.stored().values()), len(filing.notes())) == ([PDF], 1)


def test_a_full_disk_is_told(filing):
    vault = filing.world.app.opened.vault
    vault._calls = Fault("write", 1, half).calls
    with pytest.raises(Unavailable, match="the disk is full"):
        filing.upload("a.pdf", PDF)
    assert filing.stored() == {}


@pytest.mark.parametrize("data", [PDF, b"%PDF-BROKEN"])
def test_what_is_to_stay_free_of_the_vaults_disk_is_left_to_its_owner(filing, data):
    """There was room for each of many uploads when it began, but not for all of them."""
    filing.reopen(free=1 << 60)
    order = filing.order("a.pdf", data)
    with pytest.raises(Unavailable, match="almost full") as raised:
        filing.files.import_file(order)
    assert raised.value.retryable
    assert (filing.stored(), filing.handled.paths(), order.staged.read_bytes()) == ({}, [], data)


def test_a_staged_file_that_is_gone_is_told(filing):
    order = filing.order("a.pdf", PDF)
    order.staged.unlink()
    for one in (order, dataclasses.replace(order, staged=None)):
        with pytest.raises(NotFound, match="upload it again"):
            filing.files.import_file(one)


def test_eight_at_once_with_one_name_have_each_their_own(filing):
    orders = [filing.order("same.pdf", PDF if n % 2 else PDF + b"%d" % n) for n in range(24)]
    start = threading.Barrier(8)

    def store(order):
        if order in orders[:8]:
            start.wait(30)
        return filing.files.import_file(order)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(store, orders))
    assert made == [order.planned for order in orders]
    assert len(filing.stored()) == len(filing.notes()) == 24
    for order in orders:
        kept = filing.workspace.get(order.planned)
        assert (filing.world.vault / kept.record.file).read_bytes() == order.staged.read_bytes()


def test_a_person_who_takes_the_name_meanwhile_keeps_it(filing):
    """The note of that name appears after the file was stored, while its text is embedded."""
    vault = filing.world.app.opened.vault
    real = vault.create

    def first(path, data, **more):
        if path.endswith("a.pdf.md"):
            filing.world.write(path, "theirs")
        vault.create = real
        return real(path, data, **more)

    vault.create = first
    id = filing.upload("a.pdf", PDF)
    assert filing.stored() == {"Captures/default/Files/a 2.pdf": PDF}
    assert (filing.world.vault / "Captures/default/Files/a.pdf.md").read_text() == "theirs"
    assert filing.workspace.get(id).record.file == "Captures/default/Files/a 2.pdf"


@pytest.mark.parametrize("data", [PDF, b"%PDF-BROKEN"])
def test_a_file_with_equal_bytes_that_a_person_dropped_stays_theirs(filing, data):
    path = "Captures/default/Files/a.pdf"
    filing.drop(path, data)
    order = filing.order("a.pdf", data, source="agent")
    if data == PDF:
        filing.workspace.delete(filing.files.import_file(order))
    else:
        with pytest.raises(InvalidArgument):
            filing.files.import_file(order)
    assert filing.stored()[path] == data


def test_after_a_crash_the_job_finds_its_file_although_the_scan_came_first(filing):
    order, path = filing.order("a.pdf", PDF), "Captures/default/Files/a.pdf"
    filing.drop(path, PDF)
    filing.handled.put(path, FileDigest(hashlib.sha256(PDF).hexdigest(), Stat(len(PDF), UNPUT, 0)), order.planned)
    assert filing.noticed() == []
    assert filing.files.import_file(order) == order.planned
    assert filing.stored() == {path: PDF}


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_person_who_takes_the_name_and_changes_the_file_meanwhile_keeps_both(filing, change):
    vault = filing.world.app.opened.vault
    real = vault.create

    def first(path, data, **more):
        if path.endswith("a.pdf.md"):
            filing.world.write(path, "theirs")
            if change == "replaced":
                filing.world.write("Captures/default/Files/a.pdf", b"theirs")
            else:
                (filing.world.vault / "Captures/default/Files/a.pdf").unlink()
        vault.create = real
        return real(path, data, **more)

    vault.create = first
    filing.upload("a.pdf", PDF)
    theirs = {"Captures/default/Files/a.pdf": b"theirs"} if change == "replaced" else {}
    assert filing.stored() == {**theirs, "Captures/default/Files/a 2.pdf": PDF}
    assert "Captures/default/Files/a.pdf" not in filing.handled.paths()


def test_a_link_of_the_name_is_not_written_over(filing):
    folder = filing.world.vault / "Captures/default/Files"
    folder.mkdir()
    (folder / "a.pdf").symlink_to("/etc/passwd")
    id = filing.upload("a.pdf", PDF)
    assert filing.workspace.get(id).record.file == "Captures/default/Files/a 2.pdf"
    assert (folder / "a.pdf").is_symlink()


def test_a_person_who_saves_a_file_of_the_name_meanwhile_keeps_it(filing):
    order = filing.order("a.pdf", PDF)
    vault = filing.world.app.opened.vault

    def take_first(real, *arguments, **named):
        filing.world.write("Captures/default/Files/a.pdf", b"theirs")
        return real(*arguments, **named)

    good, vault._calls = vault._calls, Fault("rename", 1, take_first).calls
    with pytest.raises(Unavailable) as told:
        filing.files.import_file(order)
    assert told.value.retryable
    vault._calls = good
    filing.beside._looked = float("-inf")
    assert filing.files.import_file(order) == order.planned
    assert filing.stored() == {"Captures/default/Files/a.pdf": b"theirs", "Captures/default/Files/a 2.pdf": PDF}


@pytest.mark.slow
def test_a_large_text_is_let_go_of_before_its_rows_are_written(filing, monkeypatch):
    index, held = filing.world.app.opened.builds.scopes["captures"].index, []

    def commit(prepared, *given, **named):
        held.extend((new.document.text, new.document.content, len(new.chunks)) for new in prepared)
        return Index.commit(index, prepared, *given, **named)

    monkeypatch.setattr(index, "commit", commit)
    id = filing.upload("large.txt", b"A walrus and a seal. " * 30_000)
    [(text, content, chunks)] = held
    assert (text, content) == ("", "")
    assert chunks > 1
    assert filing.workspace.get(id).content.count("A walrus and a seal.") == 30_000


def test_a_large_file_does_not_fill_the_memory(filing):
    order = filing.order("big.txt", b"")
    with order.staged.open("wb") as file:
        file.write(b"walrus\n")
        file.truncate(96 << 20)
    filing.reader.fails = Unreadable("too much")
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgument):
            filing.files.import_file(order)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert (filing.world.vault / "Captures/default/Files/big.txt").stat().st_size == 96 << 20


def test_every_write_is_in_the_audit_log(filing):
    audit = filing.world.app.opened.audit
    id = filing.upload("a.pdf", PDF)
    filing.workspace.delete(id)
    told = [(entry.kind, entry.path, entry.type, entry.workspace) for entry in audit.entries()]
    file, note = "Captures/default/Files/a.pdf", "Captures/default/Files/a.pdf.md"
    assert told == [
        ("create", file, "file", "default"),
        ("create", note, "file", "default"),
        ("delete", file, "file", "default"),
        ("delete", note, "file", "default"),
    ]
    verified = filing.world.app.operations["audit.verify"]({}, lambda _: None)
    assert not (verified.get("changed") or verified.get("gone") or verified.get("unlogged")), verified
