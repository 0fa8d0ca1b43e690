"""What was overwritten is kept privately, within its bound, and is what its digest says or not there."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import stat
import threading
import time
import tracemalloc

import pytest

from index.errors import Unavailable
from syncd.history import overwritten_bytes
from syncd.history.audit_log import Author, acting_as
from syncd.history.overwritten_bytes import BUNDLED, OverwrittenBytes
from syncd.history.overwritten_bytes import _read_bundle as read_bundle
from tests.support.world import World


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


@pytest.fixture
def overwritten(tmp_path):
    return OverwrittenBytes(tmp_path, days=30, most=1 << 20)


@pytest.mark.parametrize("raw", [b"", b"x", os.urandom(100_000), b"a line\n" * 400_000], ids=len)
def test_what_is_kept_comes_back_as_it_was(overwritten, raw):
    overwritten.keep(raw)
    assert overwritten.holds(sha(raw))
    assert overwritten.read(sha(raw)) == raw
    with overwritten.open(sha(raw)) as file:
        assert file.read_bytes() == raw
    assert not file.exists()


@pytest.fixture
def full_disk():
    """Let no file grow beyond 1,000 bytes after the returned function is called, until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_is_kept_can_be_read_although_the_disk_is_full(overwritten, full_disk):
    raw = b"a line\n" * 20_000
    overwritten.keep(raw)
    full_disk()
    assert overwritten.read(sha(raw)) == raw
    with pytest.raises(Unavailable, match="can't be unpacked"), overwritten.open(sha(raw)):
        pass


def test_small_versions_that_are_overwritten_together_share_a_file(overwritten, tmp_path):
    large, *small = raws = [os.urandom(BUNDLED + 1), *(b"version %d\n" % number * number for number in range(40))]
    overwritten.keep_all([*raws, small[3]])
    assert len(list((tmp_path / "past").iterdir())) == 2
    for store in (overwritten, OverwrittenBytes(tmp_path, days=30, most=1 << 20)):
        assert not store.holds(sha(b"other"))
        for raw in raws:
            assert store.holds(sha(raw)) and store.read(sha(raw)) == raw
            with store.open(sha(raw)) as file:
                assert file.read_bytes() == raw
    overwritten.keep(small[3])  # it stays when the others go
    overwritten.keep_all([small[4]])
    (bundle,) = (tmp_path / "past").glob("*.bundle")
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    os.utime(bundle, (0, 0))
    assert overwritten.prune(time.time() - 1000) == 1
    assert [raw for raw in raws if overwritten.holds(sha(raw))] == [large, small[3], small[4]]


def test_each_of_many_versions_is_kept_that_are_together_larger_than_one_file_may_be(overwritten):
    raws = [os.urandom(BUNDLED) for _ in range(32)]
    overwritten.keep_all(raws)
    assert [overwritten.read(sha(raw)) for raw in raws] == raws


WRONG = [b"", b"{}", b"[]\n", b"\xff\n", b'{"x": "y"}\n', b"[" * 100_000 + b"\n"]
WRONG += [b'{"%s": %s}\n' % (sha(b"one").encode(), at) for at in (b"1e999", b"-9999", b"9" * 20, b"1.5", b"null")]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong[-12:]))
def test_of_a_damaged_bundle_nothing_is_there_and_the_next_one_is_read(overwritten, tmp_path, wrong):
    overwritten.keep_all([b"one", b"two"])
    (bundle,) = (tmp_path / "past").iterdir()
    bundle.write_bytes(wrong)
    assert not overwritten.holds(sha(b"one")) and overwritten.read(sha(b"one")) is None
    with overwritten.open(sha(b"one")) as file:
        assert file is None
    overwritten.keep_all([b"two", b"three"])
    assert [overwritten.read(sha(raw)) for raw in (b"one", b"two", b"three")] == [None, b"two", b"three"]


def test_a_huge_file_with_the_name_of_a_bundle_is_not_read_into_memory(overwritten, tmp_path):
    overwritten.keep_all([b"one", b"two"])
    with (tmp_path / "past" / f"{0:016x}.bundle").open("wb") as file:
        file.truncate(1 << 28)
    tracemalloc.start()
    try:
        assert overwritten.read(sha(b"one")) == b"one"
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_without_its_folder_nothing_is_kept_and_nothing_fails(overwritten, tmp_path):
    (tmp_path / "past").write_text("a file of somebody else")
    overwritten.keep(b"one")
    overwritten.keep_all([b"one", b"two"])
    assert not overwritten.holds(sha(b"one")) and overwritten.read(sha(b"one")) is None and overwritten.prune() == 0


def test_bundles_are_not_read_again_for_each_new_one(overwritten, monkeypatch):
    for number in range(9):
        overwritten.keep_all([b"one", b"%d" % number])
    assert overwritten.holds(sha(b"0"))
    read = []
    monkeypatch.setattr(overwritten_bytes, "_read_bundle", lambda file: read.append(file) or read_bundle(file))
    overwritten.keep_all([b"three", b"four", b"five"])
    assert [overwritten.read(sha(raw)) for raw in (b"one", b"four", b"five")] == [b"one", b"four", b"five"]
    assert len(read) == 3


def test_the_list_of_bundled_versions_is_small(overwritten, tmp_path):
    for number in range(40):
        overwritten.keep_all([b"%d of %d" % (at, number) for at in range(100)])
    tracemalloc.start()
    try:
        assert overwritten.read(sha(b"7 of 7")) == b"7 of 7"
        assert tracemalloc.get_traced_memory()[0] < 4_000 * 20
    finally:
        tracemalloc.stop()


def test_of_a_torn_bundle_the_versions_before_the_tear_are_there(overwritten, tmp_path):
    raws = [os.urandom(1_000) for _ in range(4)]
    overwritten.keep_all(raws)
    (bundle,) = (tmp_path / "past").iterdir()
    bundle.write_bytes(bundle.read_bytes()[:-500])
    assert [overwritten.read(sha(raw)) for raw in raws] == [*raws[:3], None]


def test_a_version_of_two_bundles_is_there_until_the_newer_one_goes(overwritten, tmp_path):
    overwritten.keep_all([b"both", b"old"])
    (older,) = (tmp_path / "past").iterdir()
    os.utime(older, (0, 0))
    overwritten.keep_all([b"both", b"new"])
    assert overwritten.read(sha(b"both")) == b"both"
    assert overwritten.prune(time.time() - 1000) == 1
    assert [overwritten.read(sha(raw)) for raw in (b"both", b"old", b"new")] == [b"both", None, b"new"]


@pytest.mark.parametrize("newer", ["file", "bundle"])
def test_an_intact_version_is_found_behind_a_newer_damaged_one(overwritten, tmp_path, newer):
    overwritten.keep_all([b"both", b"old"])
    (older,) = (tmp_path / "past").iterdir()
    os.utime(older, (1000, 1000))
    if newer == "file":
        overwritten.keep(b"both")
    else:
        overwritten.keep_all([b"both", b"new"])
    (damaged,) = set((tmp_path / "past").iterdir()) - {older}
    raw = damaged.read_bytes()
    damaged.write_bytes(raw[:-20] + bytes(byte ^ 255 for byte in raw[-20:]))
    for store in (overwritten, OverwrittenBytes(tmp_path, days=30, most=1 << 20)):
        assert store.read(sha(b"both")) == b"both"
        with store.open(sha(b"both")) as file:
            assert file is not None and file.read_bytes() == b"both"
        assert set((tmp_path / "past").iterdir()) == {older, damaged}
    with pytest.raises(BlockingIOError), overwritten.open(sha(b"both")):
        raise BlockingIOError  # an error of the caller, not of the file


def test_bundles_count_to_the_bound(tmp_path):
    overwritten = OverwrittenBytes(tmp_path, days=30, most=100_000)
    for _ in range(40):
        overwritten.keep_all([os.urandom(5_000) for _ in range(2)])
    assert 80_000 <= sum(file.stat().st_size for file in (tmp_path / "past").iterdir()) <= 100_000


def test_a_version_that_is_too_large_for_memory_is_not_called_gone(overwritten, monkeypatch):
    monkeypatch.setattr(overwritten_bytes, "LARGEST", 10)
    overwritten.keep(b"a line\n" * 20)
    with pytest.raises(Unavailable, match="too large"):
        overwritten.read(sha(b"a line\n" * 20))


def test_nobody_else_can_read_it(overwritten, tmp_path):
    overwritten.keep(b"secret")
    assert stat.S_IMODE((tmp_path / "past").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "past" / sha(b"secret")).stat().st_mode) == 0o600


@pytest.mark.parametrize("wrong", [b"", b"\x78", b"not packed", b"\x78\x01\x03\x00\x00\x00\x00\x01"], ids=repr)
def test_what_was_damaged_is_not_there(overwritten, tmp_path, wrong):
    overwritten.keep(b"text")
    (tmp_path / "past" / sha(b"text")).write_bytes(wrong)
    assert overwritten.read(sha(b"text")) is None


@pytest.mark.parametrize("together", [False, True])
def test_what_was_damaged_is_stored_again_when_it_is_kept_again(overwritten, tmp_path, together):
    overwritten.keep(b"text")
    (tmp_path / "past" / sha(b"text")).write_bytes(b"not packed")
    if together:
        overwritten.keep_all([b"text", b"other"])
    else:
        overwritten.keep(b"text")
    assert overwritten.read(sha(b"text")) == b"text"


@pytest.mark.parametrize("name", ["", "x", "../ledger.db", "A" * 64, "0" * 63])
def test_only_a_digest_names_something(overwritten, name):
    overwritten.keep(b"text")
    assert not overwritten.holds(name)
    assert overwritten.read(name) is None


def test_what_is_old_goes_and_what_is_kept_again_stays(overwritten, tmp_path):
    for raw in (b"old", b"again", b"new"):
        overwritten.keep(raw)
    for raw in (b"old", b"again"):
        os.utime(tmp_path / "past" / sha(raw), (0, 0))
    overwritten.keep(b"again")
    assert overwritten.prune(time.time() - 1000) == 1
    assert [overwritten.holds(sha(raw)) for raw in (b"old", b"again", b"new")] == [False, True, True]
    assert overwritten.prune(2**33) == 2


def test_what_is_kept_again_while_old_versions_are_removed_stays(overwritten, tmp_path):
    class Interrupted(OverwrittenBytes):
        def _list_kept(self):
            yield from list(super()._list_kept())
            again.start()
            again.join(0.5)

    overwritten.keep(b"again")
    os.utime(tmp_path / "past" / sha(b"again"), (0, 0))
    interrupted = Interrupted(tmp_path, days=30, most=1 << 20)
    again = threading.Thread(target=interrupted.keep, args=(b"again",))
    interrupted.prune(time.time() - 1000)
    again.join()
    assert interrupted.holds(sha(b"again"))


def test_it_stays_within_its_bound_and_the_oldest_goes_first(tmp_path):
    overwritten = OverwrittenBytes(tmp_path, days=30, most=400_000)
    raws, begun = [os.urandom(60_000) for _ in range(10)], time.time() - 1000
    for at, raw in enumerate(raws):
        overwritten.keep(raw)
        os.utime(tmp_path / "past" / sha(raw), (begun + at, begun + at))
    held = [overwritten.holds(sha(raw)) for raw in raws]
    assert held == sorted(held)
    assert 5 <= sum(held) <= 6
    assert sum(file.stat().st_size for file in (tmp_path / "past").iterdir()) <= 400_000
    large = os.urandom(150_000)
    overwritten.keep(large)
    assert not overwritten.holds(sha(large))
    assert [overwritten.holds(sha(raw)) for raw in raws] == held


@pytest.mark.parametrize("days", [0, 30])
def test_nothing_is_kept_where_that_was_asked_for(tmp_path, days):
    overwritten = OverwrittenBytes(tmp_path, days=days, most=1 << 20)
    overwritten.keep(b"x")
    overwritten.keep_all([b"y", b"z"])
    assert {overwritten.holds(sha(raw)) for raw in (b"x", b"y", b"z")} == {bool(days)}


def test_other_bytes_than_were_announced_are_not_kept(overwritten, tmp_path):
    with overwritten.keeping(sha(b"one")) as write:
        write(b"two")
    with pytest.raises(KeyError), overwritten.keeping(sha(b"two")) as write:
        write(b"two")
        raise KeyError
    assert list((tmp_path / "past").iterdir()) == []


def test_bytes_whose_folder_goes_while_they_are_kept_stop_nobody_and_are_reported(overwritten, tmp_path, caplog):
    with overwritten.keeping(sha(b"one")) as write:
        write(b"one")
        shutil.rmtree(tmp_path / "past")
    assert not overwritten.holds(sha(b"one"))
    assert "could not keep an overwritten version" in caplog.text
    overwritten.keep(b"one")
    assert overwritten.read(sha(b"one")) == b"one"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_can_not_be_kept_stops_nobody(overwritten, tmp_path):
    overwritten.keep(b"one")
    (tmp_path / "past").chmod(0o500)
    overwritten.keep(b"two")
    assert not overwritten.holds(sha(b"two"))
    (tmp_path / "past").chmod(0o000)
    overwritten.keep(b"three")
    assert overwritten.read(sha(b"one")) is None
    assert overwritten.prune() == 0
    (tmp_path / "past").chmod(0o700)
    assert overwritten.read(sha(b"one")) == b"one"


def test_what_agents_and_commands_overwrite_is_kept_and_what_the_daemon_does_is_not(tmp_path):
    world = World(tmp_path)
    try:
        vault = world.app.opened.vault
        for surface in ("mcp", "rest", "cli", "daemon"):
            path, raw = f"Captures/default/{surface}.md", surface.encode()
            with acting_as(Author(surface, "x")):
                vault.create(path, raw)
                vault.replace(path, b"other", digest=sha(raw))
                vault.remove(path, digest=sha(b"other"))
        held = {
            surface: world.app.opened.overwritten.holds(sha(surface.encode()))
            for surface in ("mcp", "rest", "cli", "daemon")
        }
        assert held == {"mcp": True, "rest": True, "cli": True, "daemon": False}
        assert world.app.opened.overwritten.holds(sha(b"other"))
    finally:
        world.close()
