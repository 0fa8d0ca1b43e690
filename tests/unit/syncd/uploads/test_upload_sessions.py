"""Uploads on real files and a real queue: any order, sent again, restarted, abandoned, at once."""

import os
import random
import shutil
import threading
import uuid
from contextlib import closing
from hashlib import sha256

import pytest

from index.errors import InvalidArgument, MemexError, NotFound, ResourceExhausted, Unavailable
from syncd.uploads.chunk_files import GONE
from syncd.uploads.local_files import StagedFile
from syncd.uploads.upload_sessions import LIVES_MS, Uploads
from tests.support.upload_place import SMALL, refused


def text(seed, size):
    """Some text that no other has."""
    return bytes(random.Random(seed).choices(b"abcdefghij \n", k=size))


def test_chunks_make_the_file_in_whatever_order_they_come(place):
    parts = [text(n, size) for n, size in enumerate((1_000, 1, 7_000, 333))]
    id = place.start(8_334, title="A title", tags=["x y"], collection="memory", namespace="alpha", source="bot")
    for number, index in enumerate((2, 0, 3, 1), 1):
        told = place.chunk(id, index, parts[index])
        assert told.chunks == number
    assert (told.received_bytes, told.total_size, told.filename) == (8_334, 8_334, "a.md")
    job = place.finish(id)
    assert place.staged(job) == b"".join(parts)
    assert (job.kind, job.status, job.key, job.workspace) == ("file", "queued", "k1", "default")
    assert job.given == {
        "name": "a.md",
        "size": 8_334,
        "title": "A title",
        "tags": ["x-y"],
        "collection": "memory",
        "namespace": "alpha",
        "source": "bot",
    }
    assert place.left == []


def test_a_chunk_that_is_sent_again_replaces_what_it_was(place):
    id = place.start(10)
    place.chunk(id, 0, b"wrong")
    place.chunk(id, 1, b"world")
    assert place.chunk(id, 1, b"world").received_bytes == 10
    assert place.chunk(id, 0, b"he").received_bytes == 7
    assert place.chunk(id, 0, b"hello").received_bytes == 10
    assert place.staged(place.finish(id)) == b"helloworld"


def test_the_reason_why_a_file_cannot_be_queued_is_named(place, monkeypatch):
    id = place.start(3)
    place.chunk(id, 0, b"abc")

    def refuse(*_, **__):
        raise NotFound("no workspace 'default'")

    with monkeypatch.context() as patched, refused(NotFound, "no workspace"):
        patched.setattr(place.queue, "add_file", refuse)
        place.finish(id)
    assert place.staged(place.finish(id)) == b"abc"


def test_finishing_again_is_the_same_job_also_after_a_restart(place):
    id = place.start(3)
    place.chunk(id, 0, b"abc")
    job = place.finish(id)
    assert place.finish(id).id == job.id == uuid.UUID(id).hex
    place.again()
    assert place.finish(id).id == job.id
    assert len(place.queue.jobs()) == 1
    with refused(NotFound):
        place.chunk(id, 0, b"abc")


def test_what_is_missing_is_named_and_can_still_be_sent(place):
    id = place.start(9)
    place.chunk(id, 2, b"ghi")
    with refused(InvalidArgument, "chunks are missing: 0-1") as told:
        place.finish(id)
    assert told.error.details["missing"] == [0, 1]
    place.chunk(id, 0, b"abc")
    place.chunk(id, 1, b"de")
    with refused(InvalidArgument, "1 of 9 bytes are missing"):
        place.finish(id)
    place.chunk(id, 1, b"def")
    assert place.staged(place.finish(id)) == b"abcdefghi"


def test_a_file_of_a_type_that_is_not_read_is_refused_when_it_is_there(place):
    for name, data, why in (
        ("photo.md.png", b"\x89PNG\r\n\x1a\n....", "PNG image"),
        ("program.exe", b"MZ\x90\x00\x00", "program"),
    ):
        id = place.uploads.start("k1", "default", filename=name, total_size=len(data)).upload_id
        place.chunk(id, 0, data)
        with refused(InvalidArgument, why):
            place.finish(id)
        with refused(InvalidArgument, why), place.uploads.receive("k2", "default") as arrival:
            arrival.write(data)
            arrival.queue(filename=name)
    assert place.queue.jobs() == []


def test_a_file_of_a_known_name_that_can_not_be_read_is_queued_so_that_it_is_kept(place):
    for name, data in (("report.pdf", b"no such thing"), ("locked.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
        id = place.uploads.start("k1", "default", filename=name, total_size=len(data)).upload_id
        place.chunk(id, 0, data)
        assert place.staged(place.finish(id)) == data
        with place.uploads.receive("k1", "default") as arrival:
            arrival.write(data)
            assert place.staged(arrival.queue(filename=name)) == data


def test_a_digest_that_was_announced_must_be_met(place):
    id = place.start(3, sha256=sha256(b"abc").hexdigest().upper())
    place.chunk(id, 0, b"abd")
    with refused(InvalidArgument, "differs from the announced one"):
        place.finish(id)
    assert place.queue.jobs() == []
    place.chunk(id, 0, b"abc")
    assert place.staged(place.finish(id)) == b"abc"


def test_an_upload_goes_on_after_a_restart(place):
    id = place.start(6, title="T")
    place.chunk(id, 1, b"def")
    place.again()
    told = place.chunk(id, 0, b"abc")
    assert (told.received_bytes, told.chunks) == (6, 2)
    place.again()
    job = place.finish(id)
    assert place.staged(job) == b"abcdef"
    assert job.given["title"] == "T"


@pytest.mark.parametrize(("key", "workspace"), [("k2", "default"), ("k1", "work"), ("", "default"), ("k2", "work")])
def test_another_key_or_workspace_is_told_what_is_told_of_none(place, key, workspace):
    id = place.start(3)
    place.chunk(id, 0, b"abc")
    told = set()
    for one in (id, str(uuid.uuid4()), "", "../../x", id.upper(), f"{id}\n", "\ud800", "x" * 10_000):
        for act in (place.chunk, place.finish):
            extra = (0, b"xyz") if act == place.chunk else ()
            with refused(NotFound) as error:
                act(one, *extra, key=key, workspace=workspace)
            told.add(str(error.error.as_dict()))
    job = place.finish(id)
    with refused(NotFound) as error:
        place.finish(id, key=key, workspace=workspace)
    told.add(str(error.error.as_dict()))
    assert len(told) == 1
    assert place.staged(job) == b"abc"


def test_a_vault_that_is_away_does_not_stop_an_upload(place):
    shutil.rmtree(place.vault)
    id = place.start(1)
    place.chunk(id, 0, b"x")
    job = place.finish(id)
    assert (place.staged(job), job.status, place.left) == (b"x", "queued", [])
    assert not place.vault.exists()


def test_what_nobody_goes_on_with_is_collected_after_ten_minutes(place):
    old, fresh = place.start(10), place.start(10)
    place.chunk(old, 0, b"01234")
    place.now += LIVES_MS - 1
    assert place.uploads.remove_stale() == []
    told = place.chunk(fresh, 0, b"0")
    assert told.expires_at == place.now + LIVES_MS
    place.now += 1
    assert place.uploads.remove_stale() == [old]
    with refused(NotFound):
        place.chunk(old, 1, b"56789")
    with refused(NotFound):
        place.finish(old)
    assert place.chunk(fresh, 0, b"0").received_bytes == 1  # sent again: a sign of life as well
    assert [name for name in place.left if old in name] == []


def test_the_time_without_a_call_goes_on_while_nothing_runs(place):
    id = place.start(10)
    place.chunk(id, 0, b"01234")
    folder = place.state / "uploads" / id
    seconds = place.now / 1000
    os.utime(folder, (seconds, seconds))
    place.now += LIVES_MS
    place.again()
    assert place.uploads.remove_stale() == [id]
    assert place.left == []


def test_a_clock_that_was_set_back_makes_no_upload_eternal(place):
    id = place.start(10)
    place.now -= 3_600_000
    assert place.uploads.remove_stale() == []
    place.now += LIVES_MS
    assert place.uploads.remove_stale() == [id]


def test_what_a_crash_left_is_collected_and_nothing_else_touched(place):
    root = place.state / "uploads"
    (root / f"{GONE}{uuid.uuid4()}").mkdir()
    begun, piece = root / str(uuid.uuid4()), root / f"{uuid.uuid4()}.file"
    begun.mkdir()
    (begun / ".about.json.01020304").write_text("{")
    piece.write_bytes(b"half")
    others = [root / "notes.txt", root / "folder"]
    others[0].write_text("mine")
    others[1].mkdir()
    (root / str(uuid.uuid4())).symlink_to(place.vault)
    for path in (begun, piece, *others):
        os.utime(path, (1, 1))
    os.utime(begun, (1, 1))
    place.now = 3_000_000
    live = place.start(10)
    place.again()
    gone = place.uploads.remove_stale()
    assert {begun.name, piece.name} < set(gone)
    assert sorted(path.name for path in root.iterdir() if not path.is_symlink()) == sorted(
        [live, "notes.txt", "folder"]
    )
    assert place.vault.is_dir()


def test_a_file_that_a_command_still_writes_is_not_collected(place):
    with closing(StagedFile(place.state, largest=100, free=0)) as staged:
        staged.write(b"abc")
        (path,) = (place.state / "uploads").glob("*.file")
        os.utime(path, (1, 1))
        assert place.uploads.remove_stale() == []
        staged.write(b"def")
        assert (path.read_bytes(), staged.finish().size) == (b"abcdef", 6)
        os.utime(path, (1, 1))
        assert place.uploads.remove_stale() == [path.name]


def test_a_file_that_still_arrives_is_not_collected(place):
    with place.uploads.receive("k1", "default") as arrival:
        arrival.write(b"abc")
        os.utime(arrival.path, (1, 1))
        assert place.uploads.remove_stale() == []
        job = arrival.queue(filename="a.txt")
    assert place.staged(job) == b"abc"
    assert place.left == []


def test_a_file_in_one_piece_is_queued_or_leaves_nothing(place):
    with place.uploads.receive("k1", "work", 6) as arrival:
        arrival.write(b"abc")
        arrival.write(b"def")
        job = arrival.queue(filename="../r.txt", title="R", tags=["a"])
    assert (job.given["name"], job.given["size"], job.workspace) == ("r.txt", 6, "work")
    assert place.staged(job) == b"abcdef"
    for failure in (InvalidArgument, ResourceExhausted, KeyboardInterrupt):
        with pytest.raises(failure), place.uploads.receive("k1", "work") as arrival:
            arrival.write(b"abc")
            if failure is InvalidArgument:
                arrival.queue(filename="..")
            elif failure is ResourceExhausted:
                arrival.write(b"." * 50_000)
            else:
                raise failure
    with pytest.raises(InvalidArgument, match="empty"), place.uploads.receive("k1", "work") as arrival:
        arrival.queue(filename="a.md")
    assert place.left == []
    assert len(place.queue.jobs()) == 1
    assert place.uploads._arriving == {}


def test_what_no_upload_can_be_called_is_no_upload(place):
    for id in ("", "..", f"{uuid.uuid4()}.file", f"{uuid.uuid4()}\n", "A" * 200):
        with refused(NotFound, "no such upload"):
            place.finish(id)


def test_a_caller_who_leaves_closes_no_file_under_whoever_writes_it(place):
    began, go_on = threading.Event(), threading.Event()

    class Slow(Uploads):
        def check_space(self, size, **_):
            if size == len(b"stray"):
                began.set()
                assert go_on.wait(30)

    uploads = Slow(place.state, place.queue, SMALL, vault=place.vault, now=lambda: place.now)
    with uploads.receive("k1", "default") as arrival:
        arrival.write(b"once")
        thread = threading.Thread(target=arrival.write, args=(b"stray",))
        thread.start()
        assert began.wait(30)
    with (place.vault / "other").open("wb", buffering=0) as other:  # gets the lowest number that is free
        go_on.set()
        thread.join(60)
        assert other.tell() == 0
    assert (place.left, uploads._arriving) == ([], {})
    with refused(Unavailable, "interrupted"):
        arrival.write(b"more")


def test_chunks_of_one_upload_come_at_once(place):
    parts = [text(n, 1_000) for n in range(24)]
    id = place.start(24_000)
    todo = [(index, part) for index, part in enumerate(parts)] * 3  # each sent three times
    random.Random(1).shuffle(todo)
    errors = []

    def send(mine):
        try:
            for index, part in mine:
                place.chunk(id, index, part)
        except MemexError as error:
            errors.append(error)

    threads = [threading.Thread(target=send, args=(todo[n::6],)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert place.staged(place.finish(id)) == b"".join(parts)


def test_of_many_who_finish_at_once_all_have_the_one_job(place):
    id = place.start(3)
    place.chunk(id, 0, b"abc")
    jobs = []
    threads = [threading.Thread(target=lambda: jobs.append(place.finish(id).id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert jobs == [uuid.UUID(id).hex] * 8
    assert len(place.queue.jobs()) == 1


def test_a_folder_of_uploads_that_was_removed_meanwhile_is_made_again(place):
    folder = place.state / "uploads"
    folder.rmdir()
    assert place.uploads.remove_stale() == []
    folder.rmdir()
    place.chunk(id := place.start(5), 0, b"abcde")
    assert place.staged(place.finish(id)) == b"abcde"
    folder.rmdir()
    with place.uploads.receive("k1", "default") as upload:
        upload.write(b"vwxyz")
        assert place.staged(upload.queue(filename="b.md")) == b"vwxyz"
