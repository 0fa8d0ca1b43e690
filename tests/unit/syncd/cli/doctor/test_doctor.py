"""Each check of the doctor, tried by really breaking what it looks at; and what `--fix` does and leaves alone."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
from contextlib import contextmanager
from dataclasses import replace

import pytest

from index.encoders.settings import Endpoint
from syncd.app import App
from syncd.cli.doctor import host_checks, state_checks
from syncd.cli.doctor.doctor import Finding, examine, shown, summary, well
from syncd.cli.doctor.host_checks import HOST_CHECKS
from syncd.cli.doctor.service_checks import SERVICE_CHECKS
from syncd.cli.doctor.state_checks import STATE_CHECKS
from syncd.cli.main import code
from syncd.installation.service_manager import Systemd, Wish, command
from syncd.settings.settings import EmbedSection, ServerSettings, VaultSettings
from tests.support.daemon_process import Failed, daemon, link_or_copy
from tests.support.fakes import fake_embedder
from tests.support.world import settings_of, until


class Clinic:
    """A vault that was served and is well, and the doctor's look at it."""

    def __init__(self, folder, models):
        self.vault, self.state = folder / "vault", folder / "state"
        (self.vault / "Captures/default").mkdir(parents=True)
        (self.vault / "A.md").write_text("# A\n\nwords of a note")
        (self.vault / "Captures/default/C.md").write_text("words of a capture")
        self.settings = replace(settings_of(self.vault, self.state), server=ServerSettings(port=0))
        with self.opened() as app:
            app.sync.run(accept=True)
        shutil.copytree(models, self.state / "models", copy_function=link_or_copy)

    def opened(self):
        return App(self.settings, embedder=fake_embedder())

    def look(self, check, *, fix=False):
        return list(examine(self.settings, {}, [check], fix=fix))

    def build(self):
        return self.state / "index" / (self.state / "index/current").read_text().strip()

    @contextmanager
    def serving(self):
        from contextlib import ExitStack

        with self.opened() as app, ExitStack() as running:
            app._start(running)
            assert app.sync.ready.wait(60)
            yield app


@pytest.fixture
def clinic(tmp_path, models):
    return Clinic(tmp_path, models)


def only(found, check=None):
    [one] = [one for one in found if check is None or one.check == check]
    return one


def bytes_of(folder):
    """Every file but what SQLite and the lock keep while somebody reads."""
    passing = ("lock", "-shm", "-wal")
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.name.endswith(passing)}


def test_what_is_well_is_called_well_and_nothing_is_changed(clinic):
    before = bytes_of(clinic.vault)
    found = list(examine(clinic.settings, {}, (*STATE_CHECKS, *HOST_CHECKS), fix=False))
    assert well(found), [one for one in found if one.is_ == "wrong"]
    assert {one.check for one in found} >= {
        "settings",
        "state",
        "daemon",
        "ledger",
        "audit",
        "queue",
        "index",
        "encoder",
        "vault",
        "inbox",
        "port",
        "git",
        "disk",
        "clock",
        "versions",
    }
    assert bytes_of(clinic.vault) == before
    assert summary(found).startswith("nothing is wrong")


# The state folder


def test_a_state_folder_that_is_missing(tmp_path, clinic):
    shutil.rmtree(clinic.state)
    found = only(clinic.look(state_checks.state))
    assert (found.is_, "not set up" in found.says) == ("wrong", True)
    assert found.mend == f"memex init {clinic.vault}"
    assert not clinic.state.exists()


@pytest.mark.parametrize("name", ["", "key", "ledger.db"])
def test_a_secret_that_others_may_open_is_closed(clinic, name):
    path = clinic.state / name
    if name == "key":
        path.write_text("mx_1_2\n")
    path.chmod(0o755 if not name else 0o644)
    found = only(clinic.look(state_checks.state))
    assert found.is_ == "wrong"
    assert found.mend.startswith("chmod ")
    assert path.stat().st_mode & 0o077
    mended = clinic.look(state_checks.state, fix=True)
    assert [one.mended for one in mended] == [f"{path} is yours alone again"]
    assert stat.S_IMODE(path.stat().st_mode) == (0o600 if name else 0o700)
    assert only(clinic.look(state_checks.state)).is_ == "ok"


def test_a_mended_permission_follows_no_link(clinic, tmp_path):
    other = tmp_path / "other"
    other.write_text("x")
    other.chmod(0o644)
    (clinic.state / "key").symlink_to(other)
    clinic.look(state_checks.state, fix=True)
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_a_state_folder_of_another_vault(clinic):
    (clinic.state / "vault").write_text("/elsewhere\n")
    assert any("belongs to the vault /elsewhere" in one.says for one in clinic.look(state_checks.state))


def test_a_settings_file_that_others_may_write(clinic, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    clinic.settings = replace(clinic.settings, file=file)
    assert only(clinic.look(state_checks.settings)).is_ == "wrong"
    clinic.look(state_checks.settings, fix=True)
    assert only(clinic.look(state_checks.settings)).is_ == "ok"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


# The daemon


def test_no_daemon_is_advice(clinic):
    found = only(clinic.look(state_checks.daemon))
    assert (found.is_, found.mend) == ("advice", "memex serve")


def test_what_a_dead_daemon_left_is_removed(clinic):
    (clinic.state / "daemon.json").write_text("{}")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(clinic.state / "control.sock"))
    assert "daemon.json and control.sock" in only(clinic.look(state_checks.daemon)).says
    clinic.look(state_checks.daemon, fix=True)
    assert not (clinic.state / "daemon.json").exists()
    assert only(clinic.look(state_checks.daemon)).is_ == "advice"


def test_a_process_that_holds_the_lock_is_named_and_left_alone(clinic):
    with (clinic.state / "lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{9:<20} {os.getpid():<10}\n".encode())
        held.flush()
        (clinic.state / "daemon.json").write_text("{}")
        found = only(clinic.look(state_checks.daemon, fix=True))
    assert found.is_ == "wrong"
    assert f"process {os.getpid()} holds" in found.says
    assert (clinic.state / "daemon.json").exists()


# The ledger


@pytest.mark.parametrize("way", ["cut", "text", "newer", "page"])
def test_a_damaged_ledger_is_found_and_not_touched(clinic, way):
    path = clinic.state / "ledger.db"
    if way == "newer":
        with sqlite3.connect(path) as ledger:
            ledger.execute("PRAGMA user_version = 999")
        ledger.close()
    else:
        raw = path.read_bytes()
        page = raw[:4096] + b"\xff" * 4096 + raw[8192:]
        path.write_bytes({"cut": raw[: len(raw) // 2], "text": b"nonsense" * 1000, "page": page}[way])
    before = path.read_bytes()
    found = only(clinic.look(state_checks.ledger, fix=True))
    assert found.is_ == "wrong"
    assert "memex restore" in found.mend
    assert path.read_bytes() == before


def test_a_ledger_that_is_gone(clinic):
    (clinic.state / "ledger.db").unlink()
    assert "nobody's key works" in only(clinic.look(state_checks.ledger)).says


# The audit log


def written(clinic):
    with clinic.opened() as app:
        for text in ("one", "two", "three"):
            app.agent_access.workspace("default").capture(text)
    return sqlite3.connect(clinic.state / "ledger.db", isolation_level=None)


def test_an_audit_log_that_is_whole_is_well(clinic):
    written(clinic).close()
    assert only(clinic.look(state_checks.audit)).says == "4 entries, each as it was written"
    with clinic.serving():
        assert only(clinic.look(state_checks.audit)).is_ == "ok"


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        ("UPDATE audit SET name = 'somebody else' WHERE seq = 2", "entry 2 does not match"),
        ("DELETE FROM audit WHERE seq = 2", "entry 2 is missing"),
        ("DELETE FROM audit WHERE seq > 2", "its end was cut off"),
    ],
)
def test_an_audit_log_that_was_tampered_with_is_told(clinic, tamper, words):
    ledger = written(clinic)
    ledger.execute(tamper)
    ledger.close()
    found = only(clinic.look(state_checks.audit, fix=True))
    assert found.is_ == "wrong"
    assert words in found.says
    with clinic.serving():  # a daemon that goes on with it does not make it whole
        assert only(clinic.look(state_checks.audit)).is_ == "wrong"


def test_a_ledger_of_before_there_was_a_log_is_well(clinic):
    ledger = written(clinic)
    ledger.execute("DROP TABLE audit")
    ledger.close()
    (clinic.state / "audit.head").unlink()
    assert only(clinic.look(state_checks.audit)).says == "0 entries, each as it was written"


# The index


def _torn(build):
    newest = min((build / "vault.lance/chunks.lance/_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-20])


def _emptied(build):
    for data in (build / "vault.lance/chunks.lance/data").iterdir():
        data.write_bytes(b"")


def _orphaned(build):
    with sqlite3.connect(build / "vault.db") as catalog:
        catalog.execute("delete from documents")
    catalog.close()


def _scribbled(build):
    (build / "captures.db").write_bytes(b"nonsense" * 1000)


def _unnamed(build):
    (build.parent / "current").write_text("nothing")


def _unmade(build):
    (build / "made.json").write_text("{")


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (_torn, "vault: the newest manifest"),
        (_emptied, "vault: the chunks can't be read"),
        (_orphaned, "1 notes have chunks and no entry"),
        (_scribbled, "captures: the catalog captures.db can't be read"),
        (_unnamed, "names no build"),
        (_unmade, "does not say what it was made with"),
    ],
)
def test_a_broken_index_is_found_and_made_anew(clinic, break_it, words):
    break_it(clinic.build())
    before = bytes_of(clinic.state / "index")
    found = only(clinic.look(state_checks.index))
    assert found.is_ == "wrong"
    assert words in found.says
    assert bytes_of(clinic.state / "index") == before
    notes = bytes_of(clinic.vault)
    mended = clinic.look(state_checks.index, fix=True)
    assert [one.mended for one in mended] == ["the index was made anew from the notes"]
    assert only(clinic.look(state_checks.index)).is_ == "ok"
    assert {path: raw for path, raw in bytes_of(clinic.vault).items() if "Captures" not in str(path)} == {
        path: raw for path, raw in notes.items() if "Captures" not in str(path)
    }


def test_an_index_that_is_not_made_yet_is_no_ailment(clinic):
    shutil.rmtree(clinic.state / "index")
    assert only(clinic.look(state_checks.index)).is_ == "advice"


def test_a_daemon_compares_what_it_has_open(clinic):
    with clinic.serving() as app:
        assert only(clinic.look(state_checks.index)).is_ == "ok"
        index = app.builds.scopes["vault"].index
        with index._catalog._db.transaction() as writer:
            writer.execute("update documents set chunks = 7")
        found = only(clinic.look(state_checks.index))
        assert "1 notes whose chunks" in found.says
        clinic.look(state_checks.index, fix=True)
        assert only(clinic.look(state_checks.index)).is_ == "ok"


# The encoder


def test_the_bundled_model_is_really_loaded(clinic):
    assert "384 dimensions" in only(clinic.look(state_checks.encoder)).says


def test_an_encoder_that_is_away(clinic):
    away = Endpoint(base_url="http://127.0.0.1:9/v1", model="x", retries=0, timeout_s=1.0)
    clinic.settings = replace(clinic.settings, embed_section=EmbedSection(encoders=(away,)))
    assert only(clinic.look(state_checks.encoder)).is_ == "wrong"


def test_what_the_daemon_calls_degraded_is_told(clinic):
    with clinic.serving() as app:
        app.sync._trouble["sync"] = "indexing: the disk is full"
        found = [one for one in clinic.look(state_checks.daemon) if one.check == "indexing"]
    assert (found[0].is_, found[0].says) == ("wrong", "the disk is full")


# Around it


def test_a_vault_that_is_missing_or_no_folder(clinic):
    shutil.rmtree(clinic.vault)
    assert "can't be opened" in only(clinic.look(host_checks.vault)).says
    assert clinic.look(host_checks.inbox) == []
    clinic.vault.write_text("x")
    assert "is no folder" in only(clinic.look(host_checks.vault)).says


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_vault_that_may_not_be_written(clinic):
    clinic.vault.chmod(0o500)
    assert "may not be written" in only(clinic.look(host_checks.vault)).says
    clinic.vault.chmod(0o700)


def test_an_inbox_that_is_missing_is_made_and_one_that_is_a_link_is_not(clinic, tmp_path):
    inbox = clinic.vault / "Captures"
    shutil.rmtree(inbox)
    assert only(clinic.look(host_checks.inbox)).is_ == "wrong"
    clinic.look(host_checks.inbox, fix=True)
    assert (inbox / "default").is_dir()
    assert only(clinic.look(host_checks.inbox)).is_ == "ok"
    shutil.rmtree(inbox)
    inbox.symlink_to(tmp_path)
    found = only(clinic.look(host_checks.inbox, fix=True))
    assert "a link" in found.says
    assert inbox.is_symlink()


def test_files_that_are_gone_or_not_read_are_named(clinic):
    with clinic.serving() as app:
        assert only(clinic.look(host_checks.files)).is_ == "ok"
        file = clinic.vault / "Captures/default/a.txt"
        file.write_text("The walrus sleeps.")
        app.sync.run()
        app.file_import.dropped._quiet_s = 0.0
        until(lambda: app.file_import.dropped.look() or app.queue.counts()["done"] == 1, 120)
        assert "1 have a note" in only(clinic.look(host_checks.files)).says
        file.unlink()
        app.sync.run()
        found = only(clinic.look(host_checks.files))
        assert (found.is_, found.mend) == ("advice", "put it back, or delete the note")
        assert "a.txt is gone" in found.says
        app.file_import.dropped.unread["Captures/default/b.pdf"] = "permission denied"
        assert any("b.pdf is not read: permission denied" in one.says for one in clinic.look(host_checks.files))
    assert list(clinic.look(host_checks.files)) == []


def test_a_port_that_is_taken(clinic):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        clinic.settings = replace(clinic.settings, server=ServerSettings(port=other.getsockname()[1]))
        found = only(clinic.look(host_checks.port))
    assert found.is_ == "wrong"
    assert only(clinic.look(host_checks.port)).is_ == "ok"


@pytest.mark.parametrize(("limit", "rank"), [(2, "wrong"), (4, "advice"), (9_999, "ok")])
def test_watches_that_are_too_few(clinic, tmp_path, monkeypatch, limit, rank):
    monkeypatch.setattr(host_checks, "INOTIFY", tmp_path)
    (tmp_path / "max_user_watches").write_text(f"{limit}\n")
    found = only(clinic.look(host_checks.watches))
    assert found.is_ == rank
    assert "3 folders" in found.says
    assert ("sysctl" in found.mend) == (rank != "ok")


def test_the_state_of_git_is_told_with_its_command(clinic):
    found = only(clinic.look(host_checks.git))
    assert (found.is_, found.mend) == ("advice", f"git -C {clinic.vault} init")
    subprocess.run(["git", "init", "-q", str(clinic.vault)], check=True)
    assert only(clinic.look(host_checks.git)).is_ == "advice"
    lock = clinic.vault / ".git/index.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    found = only(clinic.look(host_checks.git, fix=True))
    assert (found.is_, str(lock) in found.mend) == ("wrong", True)
    assert lock.exists()


def test_a_hook_that_was_changed_is_told(clinic):
    with clinic.serving() as app:
        git(clinic.vault, "init", "-q")
        code(["hook", "install", "--vault", str(clinic.vault), "--state", str(clinic.state)])
        hook = clinic.vault / ".git/hooks/post-commit"
        hook.write_text(hook.read_text() + "echo mine\n")
        assert app.health.facts()["git"]["hooks_amiss"]
        found = [one for one in clinic.look(host_checks.git) if one.mend == "memex hook install"]
    assert "post-commit" in only(found).says


def git(vault, *words):
    subprocess.run(["git", "-C", str(vault), *words], check=True, capture_output=True)


# The service


@pytest.fixture
def manager(clinic, tmp_path, monkeypatch):
    """A systemd that answers as it is told to, and the unit of the clinic's vault."""
    (tmp_path / "bin").mkdir()
    told = tmp_path / "told"
    told.write_text("ActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=2\nVersion=252\n")
    linger = tmp_path / "linger"
    linger.write_text("yes\n")
    for name, file in (("systemctl", told), ("loginctl", linger)):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\ncat "{file}"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    keeper = Systemd("memex", tmp_path / "config/systemd/user")
    keeper.write(Wish(command(clinic.settings), clinic.vault, clinic.state))
    return keeper


def test_a_service_that_runs_from_boot_on_is_well(clinic, manager, tmp_path):
    found = only(served(clinic, tmp_path))
    assert (found.is_, found.says) == ("ok", "memex.service runs, restarted 2 times")


def served(clinic, tmp_path):
    return list(examine(clinic.settings, {"XDG_CONFIG_HOME": str(tmp_path / "config")}, SERVICE_CHECKS, fix=False))


def test_a_service_that_does_not_run_or_not_by_itself(clinic, manager, tmp_path):
    (tmp_path / "linger").write_text("no\n")
    assert only(served(clinic, tmp_path)).mend == "loginctl enable-linger"
    told = (tmp_path / "told").read_text()
    (tmp_path / "told").write_text(told.replace("enabled", "disabled"))
    assert "does not start by itself" in only(served(clinic, tmp_path)).says
    (tmp_path / "told").write_text(told.replace("active", "failed") + "Result=exit-code\n")
    found = only(served(clinic, tmp_path))
    assert (found.is_, "exit-code" in found.says) == ("wrong", True)


def test_a_unit_that_is_out_of_step_or_starts_nothing(clinic, manager, tmp_path):
    text = manager.file.read_text()
    manager.file.write_text(text + "# mine\n")
    assert [one.is_ for one in served(clinic, tmp_path)] == ["advice", "ok"]
    program = command(clinic.settings)[0]
    manager.file.write_text(text.replace(program, "/nowhere/memex"))
    found = only(served(clinic, tmp_path))
    assert (found.is_, "/nowhere/memex" in found.says) == ("wrong", True)


def test_a_vault_without_a_service(clinic, manager, tmp_path):
    manager.file.write_text(manager.file.read_text().replace(str(clinic.vault), "/another"))
    assert only(served(clinic, tmp_path)).mend == "memex service install --now"
    shutil.rmtree(tmp_path / "config")
    assert only(served(clinic, tmp_path)).is_ == "advice"


def test_a_disk_that_is_full(clinic, monkeypatch):
    assert {one.is_ for one in clinic.look(host_checks.disk)} <= {"ok", "advice"}
    monkeypatch.setattr(host_checks, "TIGHT", 1 << 60)
    assert {one.is_ for one in clinic.look(host_checks.disk)} == {"advice"}
    monkeypatch.setattr(host_checks, "FULL", 1 << 60)
    assert {one.is_ for one in clinic.look(host_checks.disk)} == {"wrong"}


def test_a_note_from_the_future_and_a_clock_from_the_past(clinic, monkeypatch):
    assert only(clinic.look(host_checks.clock)).is_ == "ok"
    os.utime(clinic.vault / "A.md", (4_000_000_000, 4_000_000_000))
    found = only(clinic.look(host_checks.clock, fix=True))
    assert (found.is_, "A.md" in found.says) == ("advice", True)
    assert (clinic.vault / "A.md").stat().st_mtime == 4_000_000_000
    monkeypatch.setattr(host_checks, "BEFORE", 4_000_000_000)
    assert only(clinic.look(host_checks.clock)).is_ == "wrong"


def test_an_old_sqlite(clinic, monkeypatch):
    monkeypatch.setattr(host_checks, "SQLITE_HERE", (3, 30, 0))
    assert "too old" in only(clinic.look(host_checks.versions)).says


# The command


def test_the_command_with_the_daemon_up_hung_killed_and_mended(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        memex.write("A.md", "words")
        with pytest.raises(Failed) as failed:
            memex.run("doctor")  # not set up
        assert failed.value.code == 7
        memex.serve()
        memex.until(lambda: not memex.json("status")["degraded"])
        told = memex.json("doctor")
        assert told["well"]
        assert all(one.keys() == {"check", "is", "says", "mend", "fixable", "mended"} for one in told["findings"])
        assert any(memex.url in one["says"] for one in told["findings"])
        memex.process.send_signal(signal.SIGSTOP)
        with pytest.raises(Failed) as failed:
            memex.run("doctor")
        assert f"process {memex.process.pid} runs and does not answer" in " ".join(str(failed.value).split())
        memex.process.send_signal(signal.SIGCONT)
        memex.stop(signal.SIGKILL)
        with pytest.raises(Failed) as failed:
            memex.run("doctor", "--json")
        left = [one for one in json.loads(failed.value.args[0].splitlines()[1])["findings"] if one["is"] == "wrong"]
        assert [one["check"] for one in left] == ["daemon"]
        assert "mended: removed daemon.json, control.sock" in memex.run("doctor", "--fix")
        memex.run("doctor")


def test_settings_that_are_wrong_are_a_finding(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        (memex.home / "config.toml").write_text("[server]\nport = 'x'\n")
        with pytest.raises(Failed) as failed:
            memex.run("doctor", "--config", str(memex.home / "config.toml"))
        assert failed.value.code == 7
        assert "server.port" in str(failed.value)


def test_a_finding_is_shown_with_its_way_out():
    text = shown(Finding("git", "wrong", "it is " + "very " * 30 + "broken", "git status"), width=40)
    assert text.splitlines()[0].startswith("✗ git        it is")
    assert text.splitlines()[-1] == " " * 13 + "→ git status"
    assert max(map(len, text.splitlines())) <= 40
    assert "mended: x" in shown(Finding("a", "ok", "", mended="x"))


def test_the_summary_counts():
    wrong = Finding("a", "wrong", "x", fix=lambda: "")
    assert summary([wrong]) == "one thing is wrong; `memex doctor --fix` mends it"
    assert summary([wrong, Finding("b", "wrong", "y"), Finding("c", "advice", "z")]).startswith(
        "2 things are wrong; 1 worth"
    )


def test_a_vault_of_the_settings_that_ignores_folders_needs_fewer_watches(clinic, tmp_path, monkeypatch):
    monkeypatch.setattr(host_checks, "INOTIFY", tmp_path)
    (tmp_path / "max_user_watches").write_text("100\n")
    (clinic.vault / "Archive/Deep").mkdir(parents=True)
    assert "5 folders" in only(clinic.look(host_checks.watches)).says
    clinic.settings = replace(clinic.settings, vault=VaultSettings(path=clinic.vault, ignore=("Archive/**",)))
    assert "5 folders" not in only(clinic.look(host_checks.watches)).says


# The queue


def test_a_queue_that_is_well_tells_what_waits(clinic):
    assert only(clinic.look(state_checks.queue)).says == "no job waits or has failed"
    with clinic.opened() as app:
        app.queue.add_note("k", "default", {"text": "a note"}, title="a note")
    found = only(clinic.look(state_checks.queue))
    assert (found.is_, found.says) == ("ok", "one job waits")


def test_a_job_whose_file_is_missing_is_named(clinic, tmp_path):
    (tmp_path / "in").write_bytes(b"data")
    (tmp_path / "big").write_bytes(b"data")
    with clinic.opened() as app:
        job = app.queue.add_file("k", "default", {"name": "a.pdf"}, tmp_path / "in")
        app.queue.add_file("k", "default", {"name": "b.pdf", "path": "Captures/default/b.pdf"}, None)
        shed = app.queue.add_file("k", "default", {"name": "c.pdf", "size": 1 << 40}, tmp_path / "big")
        app.queue.cancel(shed.id)  # more than may be kept of failed ones
        assert app.queue.staged.find(shed.id) is None
    (clinic.state / "staged" / job.id).unlink()
    found = clinic.look(state_checks.queue)[0]
    assert (found.is_, job.id in found.says, found.mend) == ("wrong", True, f"memex job show {job.id}")


def test_staged_files_of_no_job_are_removed_once_they_are_old(clinic, monkeypatch):
    stray = clinic.state / "staged" / ("0" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"data")
    assert only(clinic.look(state_checks.queue)).is_ == "ok", "it may just be on its way"
    monkeypatch.setattr(state_checks, "STRAY_S", -1.0)
    assert only(clinic.look(state_checks.queue)).is_ == "wrong"
    clinic.look(state_checks.queue, fix=True)
    assert not stray.exists()


def test_failed_jobs_are_advice(clinic):
    with clinic.opened() as app:
        app.queue.cancel(app.queue.add_note("k", "default", {"text": "a note"}, title="a note").id)
    found = only(clinic.look(state_checks.queue))
    assert (found.is_, found.mend) == ("advice", "memex job queue --status failed")
