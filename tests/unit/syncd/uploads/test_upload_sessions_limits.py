"""Uploads that are more than a key, the queue or the disk has room for are refused, on real files and a real queue."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from index.errors import InvalidArgument, ResourceExhausted, Unavailable
from tests.support.upload_place import SMALL, Place, refused


def test_a_key_has_its_share_of_uploads_and_no_more(place):
    ids = [place.start(10) for _ in range(4)]
    with refused(ResourceExhausted, "4 uploads") as told:
        place.start(10)
    assert told.error.retryable
    with refused(ResourceExhausted, "4 uploads"):
        place.uploads.receive("k1", "work")
    place.start(10, key="k2")
    place.chunk(ids[0], 0, b"0123456789")
    place.finish(ids[0])
    place.start(10)


def test_a_key_has_its_share_of_bytes_those_that_wait_in_the_queue_included(place):
    first = place.start(50_000)
    place.chunk(first, 0, b"." * 50_000)
    place.finish(first)
    place.start(40_000)
    with refused(ResourceExhausted, "100,000 bytes") as told:
        place.start(20_000)
    assert told.error.retryable
    assert "limit" not in told.error.details
    place.start(20_000, key="k2")
    job = place.queue.take("file")
    place.queue.finish(job.id, "d1")
    place.start(20_000)


def test_a_file_that_is_too_large_is_refused_before_anything_is_kept(place):
    with refused(ResourceExhausted, "50,001 bytes; the limit is 50,000") as told:
        place.start(50_001)
    assert (told.error.details["limit"], told.error.retryable) == (50_000, False)
    place.uploads.settings = replace(SMALL, staged=20_000)
    with refused(ResourceExhausted, "20,000") as told:
        place.start(20_001)
    assert not told.error.retryable
    for size in (0, -1):
        with refused(InvalidArgument):
            place.start(size)
    assert place.left == []


def test_a_disk_without_room_takes_nothing_and_says_so(place):
    id = place.start(10)
    place.chunk(id, 0, b"01234")
    place.uploads.settings = replace(SMALL, free=1 << 60)
    for act in (
        lambda: place.start(10),
        lambda: place.chunk(id, 1, b"56789"),
        lambda: place.uploads.receive("k1", "default", 10),
    ):
        with refused(Unavailable, "almost full") as told:
            act()
        assert told.error.retryable
    with place.uploads.receive("k1", "default") as arrival, refused(Unavailable, "almost full"):
        arrival.write(b"x")
    place.uploads.settings = SMALL
    place.chunk(id, 1, b"56789")
    place.uploads.settings = replace(SMALL, free=1 << 60)
    with refused(Unavailable, "almost full"):
        place.finish(id)
    place.uploads.settings = SMALL
    assert place.staged(place.finish(id)) == b"0123456789"


def test_files_that_could_not_be_begun_are_not_counted(place):
    shutil.rmtree(place.state / "uploads")
    (place.state / "uploads").write_text("no folder")
    for _ in range(SMALL.uploads + 1):
        with (
            refused(Unavailable, "the disk failed .*; nothing was kept; send it again"),
            place.uploads.receive("k1", "default", 30_000),
        ):
            pytest.fail("there is nowhere to put it")
    (place.state / "uploads").unlink()
    with place.uploads.receive("k1", "default", 30_000) as arrival:
        arrival.write(b"It is.")
        assert arrival.queue(filename="a.md")


def test_files_in_one_piece_share_the_bytes_of_their_key(place):
    with place.uploads.receive("k1", "work", 50_000), place.uploads.receive("k1", "work", 40_000) as second:
        with refused(ResourceExhausted):
            place.uploads.receive("k1", "work", 10_001)
        second.write(b"." * 50_000)
        with refused(ResourceExhausted), place.uploads.receive("k1", "work") as third:
            third.write(b"x")
    place.start(50_000)


def test_a_full_queue_leaves_the_upload_to_be_finished_later(place):
    place.queue._settings = replace(SMALL, queued=1)
    place.queue.add_file("k1", "default", {"name": "x", "size": 1}, None)
    id = place.start(3)
    place.chunk(id, 0, b"abc")
    with refused(ResourceExhausted, "jobs are already waiting"):
        place.finish(id)
    place.queue._settings = SMALL
    assert place.staged(place.finish(id)) == b"abc"
    assert place.left == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="a small disk needs root to be mounted")
def test_a_disk_that_is_really_full_loses_no_chunk_that_was_taken(tmp_path):
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "none", tmp_path], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        place = Place(tmp_path)
        id = place.start(50_000)
        place.chunk(id, 0, b"." * 40_000)
        filler = tmp_path / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4_096))
        with refused(Unavailable, "full"):
            place.chunk(id, 1, b"." * 10_000)
        with refused(Unavailable, "full"):
            place.start(10)
        with refused(Unavailable, "full"), place.uploads.receive("k1", "default") as arrival:
            arrival.write(b"." * 10_000)
        assert [name for name in place.left if "." in name.rpartition("/")[2]] == [f"{id}/about.json"]
        filler.unlink()
        assert place.chunk(id, 1, b"." * 10_000).received_bytes == 50_000
        assert place.staged(place.finish(id)) == b"." * 50_000
        place.ledger.close()
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
