"""A backup's archive that is not whole, not ours or means harm is refused and changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import sqlite3
import tarfile
import time
from pathlib import Path

import pytest

from index.errors import InvalidArgument, MemexError, NotFound
from syncd.installation import backup
from syncd.installation.backup import check_ledger, pack, unpack
from tests.support.backup_archives import NOW, restored

# Archives that are not whole


def test_a_cut_archive_is_refused_wherever_it_is_cut(archive, tmp_path):
    raw = archive.read_bytes()
    for length in {*range(0, len(raw), max(1, len(raw) // 60)), len(raw) - 9}:
        (tmp_path / "cut.tar.gz").write_bytes(raw[:length])
        folder = tmp_path / f"cut{length}"
        folder.mkdir()
        with pytest.raises(InvalidArgument):
            unpack(tmp_path / "cut.tar.gz", folder)


@pytest.mark.slow
def test_a_cut_tar_in_a_whole_gzip_is_refused(archive, tmp_path):
    raw = gzip.decompress(archive.read_bytes())
    for length in range(0, len(raw) - 10_240, 512):
        (tmp_path / "cut.tar.gz").write_bytes(gzip.compress(raw[:length], 1))
        folder = tmp_path / f"cut{length}"
        folder.mkdir()
        with pytest.raises(InvalidArgument):
            unpack(tmp_path / "cut.tar.gz", folder)


def test_a_changed_byte_is_noticed(archive, tmp_path):
    raw = bytearray(gzip.decompress(archive.read_bytes()))
    at = raw.index(b"of a webhook")
    raw[at] ^= 1
    (tmp_path / "bad.tar.gz").write_bytes(gzip.compress(bytes(raw)))
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument, match="damaged; nothing was changed"):
        unpack(tmp_path / "bad.tar.gz", tmp_path / "into")


@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"\x1f\x8b" + b"x" * 100, gzip.compress(b""), gzip.compress(b"x" * 4096)],
    ids=["nothing", "nonsense", "gzip in name only", "an empty stream", "a stream of something else"],
)
def test_what_is_no_archive_is_refused(tmp_path, raw):
    (tmp_path / "b").write_bytes(raw)
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument):
        unpack(tmp_path / "b", tmp_path / "into")


def test_an_archive_that_is_not_there(tmp_path):
    with pytest.raises(NotFound):
        unpack(tmp_path / "none", tmp_path)
    with pytest.raises(InvalidArgument):
        unpack(tmp_path, tmp_path)


# Archives that mean harm


def forged(path, members, *, listed=None, **manifest):
    """An archive with any members: (name, bytes, changes of the member)."""
    files = {name: {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()} for name, raw, _ in members}
    told = {
        "format": 1,
        "made_at": 1,
        "version": "1",
        "vault": "/v",
        "files": files if listed is None else listed,
    } | manifest
    raw = json.dumps(told).encode()
    with tarfile.open(path, "w:gz") as archive:
        for name, data, changes in [("manifest.json", raw, {}), *members]:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for field, value in changes.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(data))
    return path


LEDGER = ("state/ledger.db", b"x", {})


@pytest.mark.parametrize(
    ("members", "manifest"),
    [
        pytest.param([LEDGER, ("../evil", b"x", {})], {}, id="out of the folder"),
        pytest.param([LEDGER, ("state/../../evil", b"x", {})], {}, id="out of it from within"),
        pytest.param([LEDGER, ("/tmp/evil", b"x", {})], {}, id="an absolute path"),
        pytest.param([LEDGER, ("state/a//b", b"x", {})], {}, id="a path that is not normal"),
        pytest.param([LEDGER, ("state/a\nb", b"x", {})], {}, id="a line feed in a name"),
        pytest.param([LEDGER, ("evil", b"x", {})], {}, id="beside the state"),
        pytest.param([LEDGER, ("state/index/current", b"x", {})], {}, id="into what is derived"),
        pytest.param([LEDGER, ("state/lock", b"x", {})], {}, id="the lock"),
        pytest.param([LEDGER, ("state/ledger.db-wal", b"x", {})], {}, id="a log to be played into the ledger"),
        pytest.param([LEDGER, ("state/.hidden", b"x", {})], {}, id="a hidden file"),
        pytest.param([LEDGER, ("state/key", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})], {}, id="a link"),
        pytest.param([LEDGER, ("state/key", b"", {"type": tarfile.LNKTYPE, "linkname": "state/ledger.db"})], {}, id="a hard link"),
        pytest.param([LEDGER, ("state/key", b"", {"type": tarfile.FIFOTYPE})], {}, id="a FIFO"),
        pytest.param([LEDGER, ("state/key", b"", {"type": tarfile.CHRTYPE})], {}, id="a device"),
        pytest.param([LEDGER, ("state/key", b"", {"type": tarfile.DIRTYPE})], {}, id="a folder"),
        pytest.param([LEDGER, ("state/key", b"x", {})], {"listed": {"state/ledger.db": {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}}}, id="a file that is not listed"),
        pytest.param([LEDGER, LEDGER], {}, id="the same file twice"),
        pytest.param([LEDGER], {"listed": {"state/ledger.db": {"size": 2, "sha256": "0"}}}, id="another size"),
        pytest.param([LEDGER], {"listed": {"state/ledger.db": {"size": 1 << 40, "sha256": "0"}}}, id="a size that fills the disk"),
        pytest.param([LEDGER], {"listed": {"state/ledger.db": {"size": -1, "sha256": "0"}}}, id="a size below nought"),
        pytest.param([LEDGER], {"listed": {"state/ledger.db": {"size": 1, "sha256": "0" * 64}}}, id="another digest"),
        pytest.param([LEDGER], {"listed": []}, id="a list that is none"),
        pytest.param([LEDGER], {"format": 2}, id="another format"),
        pytest.param([LEDGER], {"made_at": math.inf}, id="a time that is no number"),
        pytest.param([LEDGER], {"made_at": 10**30}, id="a time that no calendar has"),
        pytest.param([LEDGER], {"version": "1\x1b[2J"}, id="a version that moves the cursor"),
        pytest.param([LEDGER], {"listed": {"state/ledger.db": {"size": math.inf, "sha256": "0"}}}, id="a size that is no number"),
        pytest.param([("state/key", b"x", {})], {}, id="no ledger"),
        pytest.param([("state", b"x", {}), LEDGER], {}, id="a file in the place of the folder"),
    ],
)  # fmt: skip
def test_an_archive_that_means_harm_is_refused_and_nothing_lies_outside(tmp_path, members, manifest):
    into = tmp_path / "a/b/into"
    into.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if into not in path.parents}
    evil = forged(tmp_path / "evil.tar.gz", members, **manifest)
    with pytest.raises(InvalidArgument):
        unpack(evil, into)
    assert {path for path in tmp_path.rglob("*") if into not in path.parents} - before == {evil}


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="from Python 3.11.4 on")
def test_the_library_keeps_an_absolute_path_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "_is_valid_name", lambda _: True)
    (tmp_path / "into").mkdir()
    outside = tmp_path / "evil"
    unpack(forged(tmp_path / "evil.tar.gz", [LEDGER, (str(outside), b"x", {})]), tmp_path / "into")
    assert not outside.exists()
    assert (tmp_path / "into" / str(outside).lstrip("/")).read_bytes() == b"x"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="from Python 3.11.4 on")
@pytest.mark.parametrize("name", ["../evil", "state/../../evil"])
def test_the_library_looks_at_each_member_too(tmp_path, monkeypatch, name):
    monkeypatch.setattr(backup, "_is_valid_name", lambda _: True)  # as if our own check of names had a hole
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument, match="damaged, or not a backup of Memex"):
        unpack(forged(tmp_path / "evil.tar.gz", [LEDGER, (name, b"x", {})]), tmp_path / "into")
    assert not (tmp_path / "evil").exists()


def test_an_archive_is_read_without_the_library_s_check(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "SAFE", lambda member, _: member)  # Python 3.11.0 to 3.11.3
    assert (restored(archive, tmp_path) / "key").exists()


def test_a_manifest_must_come_first_and_be_small(tmp_path):
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("manifest.json")
        member.size = backup.LARGEST_MANIFEST + 1
        archive.addfile(member, io.BytesIO(b" " * member.size))
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument):
        unpack(tmp_path / "b.tar.gz", tmp_path / "into")


def header(kind, size, name="state/ledger.db"):
    """A header of a member, with any size."""
    raw = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    raw[156:157] = kind
    raw[124:136] = b"%011o\0" % size if size >= 0 else b"\xff" + (256**11 + size).to_bytes(11, "big")
    raw[148:156] = b"%06o\0 " % (256 + sum(raw[:148]) + sum(raw[156:512]))
    return bytes(raw)


def extended(raw):
    """A header that holds more of the next one."""
    return header(b"x", len(raw)) + raw.ljust(-(-len(raw) // 512) * 512, b"\0")


FILE = header(b"0", 1) + b"x".ljust(512, b"\0")


@pytest.mark.parametrize(
    "members",
    [
        pytest.param(extended(b"1" * 200_000) + FILE, id="an extension that takes long to read"),
        pytest.param(extended(b"1 hdrcharset=" + b"1" * 100_000) + FILE, id="a charset that takes long to read"),
        pytest.param(extended(b"17 size=-1048576\n") + FILE, id="a size below nought"),
        pytest.param(extended(b"9 path=a\n") * 5_000 + FILE, id="extensions of extensions"),
        pytest.param(header(b"L", 1 << 20) + b"a" * (1 << 20) + FILE, id="a name of a megabyte"),
        pytest.param(header(b"g", 512) + bytes(512) + FILE, id="an extension of all"),
        *(pytest.param(header(kind, size), id=f"{kind!r} {size}") for kind in (b"0", b"x", b"L", b"5", b"Z") for size in (-512, -1536)),
    ],
)  # fmt: skip
def test_headers_that_are_made_to_hurt_are_refused_at_once(tmp_path, members):
    plain = gzip.decompress(forged(tmp_path / "plain.tar.gz", [LEDGER]).read_bytes())
    evil = tmp_path / "evil.tar.gz"
    evil.write_bytes(gzip.compress(plain[: plain.index(b"state/ledger.db\0")] + members + bytes(1024)))
    (tmp_path / "into").mkdir()
    begun = time.monotonic()
    with pytest.raises(InvalidArgument):
        unpack(evil, tmp_path / "into")
    assert time.monotonic() - begun < 2


def test_a_manifest_that_is_nested_without_end_is_refused(tmp_path):
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("manifest.json")
        member.size = 100_000
        archive.addfile(member, io.BytesIO(b"[" * member.size))
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument):
        unpack(tmp_path / "b.tar.gz", tmp_path / "into")


def test_a_long_name_in_any_script_comes_back(state, tmp_path):
    name = "ü" * 100 + "/" + "ß" * 100
    (state / name).parent.mkdir()
    (state / name).write_text("kept")
    pack(state, tmp_path / "b.tar.gz", vault=Path("/v"), settings=None, version="1", now=NOW)
    (tmp_path / "into").mkdir()
    unpack(tmp_path / "b.tar.gz", tmp_path / "into")
    assert (tmp_path / "into/state" / name).read_text() == "kept"


def test_an_archive_that_swells_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "LARGEST", 1 << 20)
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(bytes(1 << 25)))
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument, match="larger than"):
        unpack(tmp_path / "b.tar.gz", tmp_path / "into")


@pytest.mark.parametrize("raw", [b"no database", None])
def test_a_ledger_that_is_none_or_newer_is_refused(tmp_path, state, raw):
    if raw is None:
        with sqlite3.connect(state / "ledger.db") as newer:
            newer.execute("PRAGMA user_version = 999")
        newer.close()
        raw = (state / "ledger.db").read_bytes()
    (tmp_path / "into").mkdir()
    unpack(forged(tmp_path / "b.tar.gz", [("state/ledger.db", raw, {})]), tmp_path / "into")
    with pytest.raises(MemexError):
        check_ledger(tmp_path / "into")
