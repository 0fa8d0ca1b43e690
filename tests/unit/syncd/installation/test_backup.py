"""Backups: what goes in comes back, on any machine; and an archive that is not whole or not ours changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import shutil
import sqlite3
import stat
import tarfile
import threading
import time
import tomllib
from pathlib import Path

import pytest

from index.errors import Conflict, InvalidArgument, MemexError, NotFound
from syncd.installation import backup
from syncd.installation.backup import checked, checked_target, free, pack, put_back, relocated, truth, unpack
from syncd.jobs.queue import Queue
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.daemon_process import Failed, daemon

NOW = 1_800_000_000_000


def keyed(state):
    """A state folder with a ledger that holds a key, and more; the key's secret."""
    state.mkdir(mode=0o700)
    ledger = Ledger.open(state / "ledger.db")
    _, secret = ApiKeys(ledger).create("bot", workspaces=None, now=1)
    ledger.close()
    (state / "key").write_text(secret + "\n")
    (state / "hooks").mkdir()
    (state / "hooks/secret").write_text("of a webhook")
    for name in ("index/build", "models", "bells"):
        (state / name).mkdir(parents=True)
        (state / name / "big").write_text("derived")
    for name in ("lock", "vault", "head", "daemon.json", ".key.tmp"):
        (state / name).write_text("x")
    return secret


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    keyed(folder)
    return folder


@pytest.fixture
def archive(tmp_path, state):
    settings = tmp_path / "config.toml"
    settings.write_text('[vault]\npath = "/old"\n')
    pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=settings, version="1", now=NOW)
    return tmp_path / "b.tar.gz"


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restored(archive, tmp_path, name="new"):
    folder, state = tmp_path / f"unpacked-{name}", tmp_path / name
    folder.mkdir()
    contents = unpack(archive, folder)
    checked(folder)
    state.mkdir(mode=0o700, exist_ok=True)
    put_back(folder, state, contents)
    return state


def test_truth_is_all_that_is_not_known_to_be_derived(state):
    assert list(truth(state)) == ["key", "hooks/secret"]


def test_what_goes_in_comes_back(archive, state, tmp_path):
    new = restored(archive, tmp_path)
    assert (new / "key").read_bytes() == (state / "key").read_bytes()
    assert (new / "hooks/secret").read_text() == "of a webhook"
    assert {str(path.relative_to(new)) for path in new.rglob("*") if path.is_file()} == {
        "key",
        "hooks/secret",
        "ledger.db",
    }
    ledger = Ledger.open(new / "ledger.db")
    assert [key.name for key in ApiKeys(ledger).list()] == ["bot"]
    ledger.close()
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in new.rglob("*") if path.is_file())


def test_an_archive_is_private_and_says_what_is_in_it(archive):
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    with tarfile.open(archive) as opened:
        assert opened.getnames() == [
            "manifest.json",
            "state/ledger.db",
            "state/key",
            "state/hooks/secret",
            "settings.toml",
        ]
        told = json.load(opened.extractfile("manifest.json"))
    assert (told["format"], told["made_at"], told["vault"]) == (1, NOW, "/old")
    assert [path.name for path in archive.parent.iterdir() if path.name.startswith(".")] == []


def test_a_ledger_is_copied_whole_while_it_is_written(state, tmp_path):
    ledger = Ledger.open(state / "ledger.db")
    keys, stop = ApiKeys(ledger), threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            with ledger.writing():  # two rows or none
                for half in ("a", "b"):
                    ledger.run(
                        "INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES (?,?,?,?,?,?)",
                        (f"{number}{half}", f"{number}{half}", b"", "", "", 1),
                    )
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            target = tmp_path / f"{number}.tar.gz"
            pack(state, target, vault=Path("/v"), settings=None, version="1", now=NOW)
            new = restored(target, tmp_path, f"s{number}")
            with sqlite3.connect(new / "ledger.db") as found:
                [(count,)] = found.execute("SELECT count(*) FROM keys")
            found.close()
            assert count % 2 == 1  # pairs, and the one that was there
    finally:
        stop.set()
        thread.join()
        assert keys.list()
        ledger.close()


def test_an_archive_that_can_t_be_written_leaves_the_old_one(archive, state, tmp_path, monkeypatch):
    before = archive.read_bytes()
    monkeypatch.setattr(backup.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        pack(state, archive, vault=Path("/v"), settings=None, version="1", now=NOW)
    assert archive.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# Archives that are not whole


def test_a_cut_archive_is_refused_wherever_it_is_cut(archive, tmp_path):
    raw = archive.read_bytes()
    for length in {*range(0, len(raw), max(1, len(raw) // 60)), len(raw) - 9}:
        (tmp_path / "cut.tar.gz").write_bytes(raw[:length])
        folder = tmp_path / f"cut{length}"
        folder.mkdir()
        with pytest.raises(InvalidArgument):
            unpack(tmp_path / "cut.tar.gz", folder)


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
    monkeypatch.setattr(backup, "_fit", lambda _: True)
    (tmp_path / "into").mkdir()
    outside = tmp_path / "evil"
    unpack(forged(tmp_path / "evil.tar.gz", [LEDGER, (str(outside), b"x", {})]), tmp_path / "into")
    assert not outside.exists()
    assert (tmp_path / "into" / str(outside).lstrip("/")).read_bytes() == b"x"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="from Python 3.11.4 on")
@pytest.mark.parametrize("name", ["../evil", "state/../../evil"])
def test_the_library_looks_at_each_member_too(tmp_path, monkeypatch, name):
    monkeypatch.setattr(backup, "_fit", lambda _: True)  # as if our own check of names had a hole
    (tmp_path / "into").mkdir()
    with pytest.raises(InvalidArgument, match="damaged, or no backup of Memex"):
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
        checked(tmp_path / "into")


# Places


def test_a_ledger_is_replaced_only_if_told(state):
    with pytest.raises(Conflict, match="--force"):
        free(state, force=False)
    free(state, force=True)
    free(state.with_name("none"), force=False)


def test_the_log_of_the_old_ledger_is_not_played_into_the_new_one(archive, tmp_path):
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    ledger = Ledger.open(new / "ledger.db")
    ApiKeys(ledger).create("other", workspaces=None, now=1)
    kept = {name: (new / name).read_bytes() for name in ("ledger.db", "ledger.db-wal")}
    ledger.close()
    for name, raw in kept.items():  # as kill -9 leaves them
        (new / name).write_bytes(raw)
    (new / "ledger.db").chmod(0o600)
    restored(archive, tmp_path)
    ledger = Ledger.open(new / "ledger.db")
    assert [key.name for key in ApiKeys(ledger).list()] == ["bot"]
    ledger.close()


def test_a_backup_must_not_lie_in_the_vault(tmp_path):
    (tmp_path / "vault/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "vault/sub")
    for place in ("vault", "vault/sub", "link"):
        with pytest.raises(InvalidArgument, match="keys"):
            checked_target(tmp_path / place / "b.tar.gz", tmp_path / "vault")
    checked_target(tmp_path / "b.tar.gz", tmp_path / "vault")
    with pytest.raises(NotFound):
        checked_target(tmp_path / "none/b.tar.gz", tmp_path / "vault")


@pytest.mark.parametrize(
    "text",
    [
        '[vault]\npath = "/old"\n',
        '# a comment\nstate = "/s"\n\n[vault]\ninbox = "In"  # kept\npath = "/old"\n\n[server]\nport = 9\n',
    ],
)
def test_settings_are_led_to_the_new_place(text):
    made = relocated(text, vault=Path('/new "vault"'), state=None)
    told, old = tomllib.loads(made), tomllib.loads(text)
    assert told["vault"] == old["vault"] | {"path": '/new "vault"'}
    assert "state" not in told
    assert told.get("server") == old.get("server")
    assert ("# a comment" in made) == ("# a comment" in text)
    assert tomllib.loads(relocated(text, vault=Path("/v"), state=Path("/t")))["state"] == "/t"


@pytest.mark.parametrize("text", ['vault.path = "/old"\n', 'vault = {path = "/old"}\n', "[vault\n", ""])
def test_settings_that_are_written_otherwise_are_left_to_the_person(text):
    assert relocated(text, vault=Path("/new"), state=None) is None


# The commands


def test_a_backup_of_a_running_daemon_brings_its_keys_to_another_machine(tmp_path, models):
    target = tmp_path / "b.tar.gz"
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init")
        memex.serve()
        secret = memex.json("key", "create", "--name", "bot", "--workspace", "default")["key"]
        found = memex.json("backup", str(target))
        assert found["files"] == ["settings.toml", "state/key", "state/ledger.db"]
        with pytest.raises(Failed) as failed:
            memex.run("backup", str(target))
        assert failed.value.code == 5
        with pytest.raises(Failed) as failed:
            memex.run("backup", str(memex.vault / "b.tar.gz"))
        assert failed.value.code == 2
        with pytest.raises(Failed) as failed:
            memex.run("restore", str(target), "--force")
        assert failed.value.code == 5
        assert f"process {memex.process.pid}" in str(failed.value)
    with daemon(tmp_path / "two" / "My Vault \u2013 \u00fc", models) as other:
        other.write("A.md", "words of a note")
        told = other.json("restore", str(target))
        assert told["vault"] == str(other.vault)
        assert Path(told["settings"]).is_relative_to(other.home)
        assert tomllib.loads(Path(told["settings"]).read_text())["vault"]["path"] == str(other.vault)
        with pytest.raises(Failed) as failed:
            other.run("restore", str(target))
        assert failed.value.code == 5
        other.serve()
        assert "A.md" in other.found("words of a note")
        answer = other.client.get(f"{other.url}/thoughts", headers={"authorization": f"Bearer {secret}"})
        assert answer.status_code == 200
        other.stop()
        told = other.json("restore", str(target), "--force")
        with tarfile.open(other.state / "replaced.tar.gz") as kept:
            assert "state/key" in kept.getnames()
        assert other.json("backup", str(tmp_path / "again.tar.gz"))["files"] == [
            "settings.toml",
            "state/key",
            "state/ledger.db",
        ]


def test_a_bad_archive_changes_nothing(tmp_path, models, archive):
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init")
        before = tree(memex.state), tree(memex.home)
        archive.write_bytes(archive.read_bytes()[:-200])
        with pytest.raises(Failed) as failed:
            memex.run("restore", str(archive), "--force")
        assert failed.value.code == 2
        assert (tree(memex.state), tree(memex.home)) == before
    with daemon(tmp_path / "fresh", models) as fresh:
        shutil.rmtree(fresh.state)
        with pytest.raises(Failed):
            fresh.run("restore", str(archive))
        assert not fresh.state.exists()


def test_a_damaged_ledger_is_replaced_and_kept(tmp_path, models, archive):
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init")
        (memex.state / "ledger.db").write_bytes(b"no database at all" * 100)
        memex.run("restore", str(archive), "--force")
        assert [one["name"] for one in memex.json("key", "list")] == ["bot"]
        with tarfile.open(memex.state / "replaced.tar.gz") as kept:
            assert kept.extractfile("state/ledger.db").read().startswith(b"no database")


def test_a_vault_that_was_never_set_up_has_nothing_to_back_up(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        with pytest.raises(Failed) as failed:
            memex.run("backup", str(tmp_path / "b.tar.gz"))
        assert failed.value.code == 4


# The queue


def test_the_files_of_waiting_jobs_come_along_and_the_parts_of_uploads_do_not(tmp_path, state):
    ledger = Ledger.open(state / "ledger.db")
    queue = Queue(ledger, state, KbSettings())
    (tmp_path / "big").write_bytes(big := bytes(range(256)) * 20_000)
    job = queue.add_file("k", "w", {"name": "a.pdf", "size": len(big)}, tmp_path / "big")
    queue.add_note("k", "w", {"text": "a note"}, title="a note")
    ledger.close()
    (state / "uploads/u1").mkdir(parents=True)
    (state / "uploads/u1/0").write_bytes(b"a part")
    archive = tmp_path / "b.tar.gz"
    contents = pack(state, archive, vault=Path("/old"), settings=None, version="1", now=NOW)
    assert [name for name in contents.files if "uploads" in name] == []
    assert [path.name for path in state.iterdir() if path.name.startswith(".backup")] == [], "nothing is left behind"
    new = restored(archive, tmp_path)
    ledger = Ledger.open(new / "ledger.db")
    again = Queue(ledger, new, KbSettings())
    assert again.staged.find(job.id).read_bytes() == big
    assert [one.title for one in again.jobs()] == ["a note", "a.pdf"]
    ledger.close()


def test_a_job_s_file_that_goes_while_a_backup_is_made_does_no_harm(tmp_path, state, monkeypatch):
    (state / "staged").mkdir()
    for name in ("a", "b"):
        (state / "staged" / name).write_bytes(b"data")
    listed = list(truth(state))

    def going(folder):
        (folder / "staged/a").unlink()  # between the look at the names and the hold on the files
        yield from listed

    monkeypatch.setattr(backup, "truth", going)
    contents = pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=None, version="1", now=NOW)
    assert [name for name in contents.files if "staged" in name] == ["state/staged/b"]
    assert (restored(tmp_path / "b.tar.gz", tmp_path) / "staged/b").read_bytes() == b"data"
