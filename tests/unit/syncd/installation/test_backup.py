"""Backups: what goes in comes back, on any machine, and replaces only what it may."""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import shutil
import sqlite3
import stat
import tarfile
import threading
import tomllib
from pathlib import Path

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.history.change_journal import ChangeJournal, MovePlan, note_step
from syncd.installation import backup
from syncd.installation.backup import check_replaceable, check_target, irreplaceable_files, pack, relocate_settings
from syncd.jobs.queue import Queue
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.backup_archives import NOW, restored
from tests.support.daemon_process import Failed, daemon


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_truth_is_all_that_is_not_known_to_be_derived(state):
    assert list(irreplaceable_files(state)) == ["key", "hooks/secret"]


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


def test_a_log_to_which_the_daemon_appends_meanwhile_can_be_restored(state, tmp_path, monkeypatch):
    log, settings, real = state / "hooks.jsonl", tmp_path / "settings.toml", backup._file_digest
    log.write_text("one\n")
    settings.write_text("[vault]\n")

    def digest(*about):
        with log.open("a") as stream:
            stream.write("two\n")
        settings.write_text("[vault]\n# edited\n")
        return real(*about)

    monkeypatch.setattr(backup, "_file_digest", digest)
    pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=settings, version="1", now=NOW)
    monkeypatch.undo()
    assert (restored(tmp_path / "b.tar.gz", tmp_path) / "hooks.jsonl").read_text() == "one\n"


def test_a_backup_has_no_text_of_a_note_that_was_promoted(state, tmp_path):
    ledger = Ledger.open(state / "ledger.db")
    journal = ChangeJournal(ledger, None, ["promote"])
    done, begun = (secrets.token_bytes(30_000) for _ in range(2))  # they do not compress, and need several pages
    for raw in (done, begun):
        steps = [note_step("a.md", raw, None)]
        entry = journal.begin(MovePlan("promote", "n", "a.md", "b.md", steps, {}), by="Ann", at=1)
        if raw is done:
            journal.set_state(entry.seq, "done")
    ledger.close()
    pieces = [done[start : start + 20] for start in range(0, len(done), 20)]
    assert any(piece in (state / "ledger.db").read_bytes() for piece in pieces)
    pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=None, version="1", now=NOW)
    new = restored(tmp_path / "b.tar.gz", tmp_path) / "ledger.db"
    raw = new.read_bytes()
    assert not any(piece in raw for piece in pieces)
    ledger = Ledger.open(new)
    journal = ChangeJournal(ledger, None, ["promote"])
    assert [journal.steps(seq)[0].before for seq in (1, 2)] == [None, begun], "the second is not finished"
    ledger.close()


def test_a_ledger_of_an_older_version_is_backed_up(state, tmp_path):
    with sqlite3.connect(state / "ledger.db") as old:
        old.execute("DROP TABLE promoted_files")
    old.close()
    assert pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=None, version="1", now=NOW).files


def test_a_file_system_without_hard_links_is_backed_up(state, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=None, version="1", now=NOW)
    assert (restored(tmp_path / "b.tar.gz", tmp_path) / "key").exists()


@pytest.mark.slow
def test_a_ledger_is_copied_whole_while_it_is_written(state, tmp_path):
    ledger = Ledger.open(state / "ledger.db")
    keys, stop = ApiKeys(ledger), threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            with ledger.transaction():  # two rows or none
                for half in ("a", "b"):
                    ledger.execute(
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


# Places


def test_a_ledger_is_replaced_only_if_told(state):
    with pytest.raises(Conflict, match="--force"):
        check_replaceable(state, force=False)
    check_replaceable(state, force=True)
    check_replaceable(state.with_name("none"), force=False)


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


@pytest.mark.parametrize("file", ["hooks/secret", "key", "ledger.db"])
def test_a_restore_onto_a_full_disk_changes_nothing(archive, tmp_path, monkeypatch, file):
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    logs = ("ledger.db-wal", "ledger.db-shm", "ledger.db-journal", "audit.head", "audit.done")
    for name in ("ledger.db", "key", *logs):
        (new / name).write_text("old")
    before, real = tree(new), shutil.copyfileobj

    def copy(source, target):
        if Path(source.name).match(f"*/state/{file}"):
            raise OSError(errno.ENOSPC, "no space left")
        real(source, target)

    folder = tmp_path / "unpacked"
    folder.mkdir()
    contents = backup.unpack(archive, folder)
    monkeypatch.setattr(backup.shutil, "copyfileobj", copy)
    with pytest.raises(OSError, match="no space"):
        backup.restore_files(folder, new, contents)
    assert tree(new) == before
    monkeypatch.undo()
    backup.restore_files(folder, new, contents)
    assert {path.name for path in new.iterdir()} == {"ledger.db", "key", "hooks"}


def test_the_state_that_a_restore_replaced_is_never_replaced_itself(state):
    kept = []
    for _ in range(3):
        kept.append(backup.free_replaced_path(state))
        kept[-1].write_bytes(b"the only good copy")
    assert [path.name for path in kept] == ["replaced.tar.gz", "replaced-2.tar.gz", "replaced-3.tar.gz"]
    assert list(irreplaceable_files(state)) == ["key", "hooks/secret"]


def test_a_backup_must_not_lie_in_the_vault(tmp_path):
    (tmp_path / "vault/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "vault/sub")
    for place in ("vault", "vault/sub", "link"):
        with pytest.raises(InvalidArgument, match="keys"):
            check_target(tmp_path / place / "b.tar.gz", tmp_path / "vault")
    check_target(tmp_path / "b.tar.gz", tmp_path / "vault")
    with pytest.raises(NotFound):
        check_target(tmp_path / "none/b.tar.gz", tmp_path / "vault")


@pytest.mark.parametrize(
    "text",
    [
        '[vault]\npath = "/old"\n',
        '# a comment\nstate = "/s"\n\n[vault]\ninbox = "In"  # kept\npath = "/old"\n\n[server]\nport = 9\n',
    ],
)
def test_settings_are_led_to_the_new_place(text):
    made = relocate_settings(text, vault=Path('/new "vault"'), state=None)
    told, old = tomllib.loads(made), tomllib.loads(text)
    assert told["vault"] == old["vault"] | {"path": '/new "vault"'}
    assert "state" not in told
    assert told.get("server") == old.get("server")
    assert ("# a comment" in made) == ("# a comment" in text)
    assert tomllib.loads(relocate_settings(text, vault=Path("/v"), state=Path("/t")))["state"] == "/t"


@pytest.mark.parametrize("text", ['vault.path = "/old"\n', 'vault = {path = "/old"}\n', "[vault\n", ""])
def test_settings_that_are_written_otherwise_are_left_to_the_person(text):
    assert relocate_settings(text, vault=Path("/new"), state=None) is None


# The commands


@pytest.mark.slow
def test_a_backup_of_a_running_daemon_brings_its_keys_to_another_machine(tmp_path, models):
    target = tmp_path / "b.tar.gz"
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init", "--yes")
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
        assert told["replaced"] == str(other.state / "replaced.tar.gz")
        with tarfile.open(told["replaced"]) as kept:
            assert "state/key" in kept.getnames()
        assert other.json("backup", str(tmp_path / "again.tar.gz"))["files"] == [
            "settings.toml",
            "state/key",
            "state/ledger.db",
        ]


@pytest.mark.slow
def test_a_bad_archive_changes_nothing(tmp_path, models, archive):
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init", "--yes")
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


@pytest.mark.slow
def test_a_damaged_ledger_is_replaced_and_kept(tmp_path, models, archive):
    with daemon(tmp_path / "one", models) as memex:
        memex.run("init", "--yes")
        (memex.state / "ledger.db").write_bytes(b"no database at all" * 100)
        memex.run("restore", str(archive), "--force")
        assert [one["name"] for one in memex.json("key", "list")] == ["bot"]
        with tarfile.open(memex.state / "replaced.tar.gz") as kept:
            assert kept.extractfile("state/ledger.db").read().startswith(b"no database")
        said = memex.run("restore", str(archive), "--force")
        assert f"next: memex serve --vault={memex.vault} --state={memex.state} (" in said
        assert str(memex.state / "replaced-2.tar.gz") in said
        with tarfile.open(memex.state / "replaced.tar.gz") as kept:
            assert kept.extractfile("state/ledger.db").read().startswith(b"no database")


def test_of_a_partly_damaged_ledger_a_restore_keeps_the_last_writes_and_a_backup_names_the_damage(state, tmp_path):
    ledger = Ledger.open(state / "ledger.db")
    with ledger.transaction():
        for number in range(3000):
            ledger.execute("INSERT INTO note_uses VALUES ('w', ?, 1.0)", (f"id{number:06}",))
    ledger.close()
    with contextlib.closing(sqlite3.connect(state / "ledger.db")) as opened:
        (size,), (pages,) = (opened.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
    with (state / "ledger.db").open("r+b") as file:
        file.seek((pages - 3) * size)
        file.write(b"\xff" * size)
    ledger = Ledger.open(state / "ledger.db")
    with ledger.transaction():
        ledger.execute("INSERT INTO shares VALUES ('w', 'the last share')")
    killed = shutil.copytree(state, tmp_path / "killed")
    ledger.close()
    about = {"vault": Path("/v"), "settings": None, "version": "1", "now": NOW}
    pack(killed, tmp_path / "replaced.tar.gz", **about, damaged=True)
    with tarfile.open(tmp_path / "replaced.tar.gz") as kept:
        kept.extract("state/ledger.db", tmp_path / "kept", filter="data")
    with contextlib.closing(sqlite3.connect(tmp_path / "kept/state/ledger.db")) as opened:
        assert opened.execute("SELECT entry FROM shares").fetchall() == [("the last share",)]
    with pytest.raises(Unavailable, match=r"the ledger ledger.db is damaged \(.*malformed.*memex restore"):
        pack(killed, tmp_path / "backup.tar.gz", **about)


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
    listed = list(irreplaceable_files(state))

    def going(folder):
        (folder / "staged/a").unlink()  # between the look at the names and the hold on the files
        yield from listed

    monkeypatch.setattr(backup, "irreplaceable_files", going)
    contents = pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=None, version="1", now=NOW)
    assert [name for name in contents.files if "staged" in name] == ["state/staged/b"]
    assert (restored(tmp_path / "b.tar.gz", tmp_path) / "staged/b").read_bytes() == b"data"


def test_a_job_s_file_that_goes_after_its_folder_was_listed_does_no_harm(state):
    (state / "staged").mkdir()
    for name in ("a", "b", "c"):
        (state / "staged" / name).write_bytes(b"data")
    names = []
    for name in irreplaceable_files(state):
        names.append(name)
        if name == "staged/a":
            (state / "staged/b").unlink()
    assert [name for name in names if "staged" in name] == ["staged/a", "staged/c"]
