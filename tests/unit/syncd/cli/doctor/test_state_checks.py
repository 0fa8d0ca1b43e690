"""The doctor's checks of the state folder, the lock, the ledger, the audit log and the queue, tried by breaking them; and what `--fix` does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import sqlite3
import stat
import sys
from functools import partial

import httpx2
import pytest

from index.errors import Conflict
from syncd.cli.doctor import state_checks
from syncd.cli.doctor.agent_checks import check_shares
from syncd.cli.doctor.doctor import DoctorContext, examine
from syncd.history.audit_log import FAILS, UNREAD
from syncd.installation.vault_setup import reset_owner_key
from syncd.settings.access import LimitsSettings
from syncd.state import damage
from syncd.state.ledger_schema import SCHEMA
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import VaultClaim
from tests.support.clinic import only
from tests.support.live_server import running

# The state folder


def test_a_state_folder_that_is_missing(tmp_path, clinic):
    shutil.rmtree(clinic.state)
    found = only(clinic.look(state_checks.check_state))
    assert (found.is_, "not set up" in found.says) == ("wrong", True)
    assert found.mend == f"memex init {clinic.vault}"
    assert not clinic.state.exists()


@pytest.mark.parametrize("name", ["", "key", "ledger.db"])
def test_a_secret_that_others_may_open_is_closed(clinic, name):
    path = clinic.state / name
    if name == "key":
        path.write_text("mx_1_2\n")
    path.chmod(0o755 if not name else 0o644)
    found = only(clinic.look(state_checks.check_state))
    assert found.is_ == "wrong"
    assert found.mend.startswith("chmod ")
    assert path.stat().st_mode & 0o077
    mended = clinic.look(state_checks.check_state, fix=True)
    assert [one.mended for one in mended] == [f"other users can no longer access {path}"]
    assert stat.S_IMODE(path.stat().st_mode) == (0o600 if name else 0o700)
    assert only(clinic.look(state_checks.check_state)).is_ == "ok"


def test_a_mended_permission_follows_no_link(clinic, tmp_path):
    other = tmp_path / "other"
    other.write_text("x")
    other.chmod(0o644)
    (clinic.state / "key").symlink_to(other)
    clinic.look(state_checks.check_state, fix=True)
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("link", "is a link"),
        ("dangling", "is a link"),
        ("empty", "is empty"),
        ("blank", "is empty"),
        ("cut", "no complete key"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
    ],
)
def test_a_key_file_that_is_none_is_named_and_a_reset_replaces_it(clinic, tmp_path, way, says):
    path, other = clinic.state / "key", tmp_path / "other"
    other.write_text("mx_1_2\n")
    other.chmod(0o600)
    path.unlink(missing_ok=True)
    match way:
        case "link":
            path.symlink_to(other)
        case "dangling":
            path.symlink_to(tmp_path / "none")
        case "empty" | "blank":
            path.write_text("" if way == "empty" else " \n")
            path.chmod(0o600)
        case "cut":
            path.write_text(f"mx_{'a' * 12}_{'b' * 20}\n")
            path.chmod(0o600)
        case "pipe":
            os.mkfifo(path, 0o600)
        case "folder":
            path.mkdir()
    found = only(clinic.look(state_checks.check_key, fix=True))
    assert (found.is_, says in found.says, "memex key reset --yes" in found.mend) == ("wrong", True, True)
    reset_owner_key(clinic.state, now=1)
    assert only(clinic.look(state_checks.check_key)).is_ == "ok"
    assert other.read_text() == "mx_1_2\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_file_of_another_user_is_named(clinic):
    path = clinic.state / "key"
    path.write_text("mx_1_2\n")
    path.chmod(0o600)
    os.chown(path, 12345, 12345)
    found = only(clinic.look(state_checks.check_key))
    assert (found.is_, found.says.endswith("belongs to another user")) == ("wrong", True)


def test_a_state_folder_without_a_key_file_or_with_a_good_one_is_well(clinic):
    (clinic.state / "key").unlink(missing_ok=True)
    assert clinic.look(state_checks.check_key) == []
    reset_owner_key(clinic.state, now=1)
    assert only(clinic.look(state_checks.check_key)).is_ == "ok"


@pytest.mark.parametrize(
    ("change", "says"),
    [("revoked_at = 2", "was revoked"), ("expires_at = 2", "has expired"), ("id = 'x'", "is unknown to the ledger")],
    ids=["revoked", "expired", "unknown"],
)
def test_a_key_that_opens_nothing_any_more_is_named_and_a_reset_replaces_it(clinic, change, says):
    reset_owner_key(clinic.state, now=1)
    id = (clinic.state / "key").read_text().split("_")[1]
    with sqlite3.connect(clinic.state / "ledger.db") as ledger:
        ledger.execute(f"UPDATE keys SET {change} WHERE id = ?", (id,))
    finding = only(clinic.look(state_checks.check_key))
    assert (finding.is_, says in finding.says, finding.mend) == ("wrong", True, "memex key reset --yes")
    reset_owner_key(clinic.state, now=1)
    assert only(clinic.look(state_checks.check_key)).is_ == "ok"
    (clinic.state / "ledger.db").write_bytes(b"damaged" * 1000)
    assert only(clinic.look(state_checks.check_key)).is_ == "ok"


def test_a_state_folder_of_another_vault(clinic):
    (clinic.state / "vault").write_text("/elsewhere\n")
    assert any("belongs to the vault /elsewhere" in one.says for one in clinic.look(state_checks.check_state))


# The daemon


def test_no_daemon_is_advice(clinic):
    found = only(clinic.look(state_checks.check_daemon))
    assert (found.is_, found.mend) == ("advice", "memex serve")


@pytest.mark.slow
def test_a_daemon_that_others_ask_often_is_well(tmp_path):
    with running(tmp_path, limits=LimitsSettings()) as rim, httpx2.Client() as http:
        context = DoctorContext(rim.world.app.settings, {}, os.getpid(), rim.world.app.health.status(None))
        assert {http.get(f"{rim.url}/{path}").status_code for path in ("healthz", "readyz") * 60} == {200}
        daemon = [one for one in state_checks.check_daemon(context) if not one.check]  # the others name a part
        assert [one.is_ for one in daemon] == ["ok"]


def test_what_a_dead_daemon_left_is_removed(clinic):
    for name in ("daemon.json", "control.token"):
        (clinic.state / name).write_text("{}")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(clinic.state / "control.sock"))
    assert "daemon.json and control.sock and control.token" in only(clinic.look(state_checks.check_daemon)).says
    clinic.look(state_checks.check_daemon, fix=True)
    assert not (clinic.state / "daemon.json").exists()
    assert not (clinic.state / "control.token").exists()
    assert only(clinic.look(state_checks.check_daemon)).is_ == "advice"


def test_what_belongs_to_a_daemon_that_has_started_since_is_kept(clinic):
    (clinic.state / "daemon.json").write_text("{}")
    before = DoctorContext(clinic.settings, {}, None, None)
    found = only(state_checks.check_daemon(before))
    with ProcessLock.acquire(clinic.state):
        for fix in (found.fix, partial(state_checks._rebuild_index, before)):
            with pytest.raises(Conflict):
                fix()
    assert (clinic.state / "daemon.json").exists()
    assert clinic.build().is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a claim does not lead to its process")
def test_a_daemon_with_another_state_folder_is_named(clinic):
    claim = VaultClaim(clinic.vault)
    claim.require()
    found = only(clinic.look(state_checks.check_daemon))
    claim.release()
    assert (found.is_, f"process {os.getpid()} serves" in found.says) == ("wrong", True)
    assert only(clinic.look(state_checks.check_daemon)).is_ == "advice"


def test_a_process_that_holds_the_lock_is_named_and_left_alone(clinic):
    with (clinic.state / "lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{9:<20} {os.getpid():<10}\n".encode())
        held.flush()
        (clinic.state / "daemon.json").write_text("{}")
        found = only(clinic.look(state_checks.check_daemon, fix=True))
    assert found.is_ == "wrong"
    assert f"process {os.getpid()} holds" in found.says
    assert (clinic.state / "daemon.json").exists()


# The ledger


@pytest.mark.parametrize("way", ["cut", "text", "newer", "older", "table", "page"])
def test_a_damaged_ledger_is_found_and_not_touched(clinic, way):
    path = clinic.state / "ledger.db"
    changes = {
        "newer": "PRAGMA user_version = 999",
        "older": "PRAGMA user_version = 12",
        "table": "DROP TABLE keys",
    }
    if way in changes:
        with sqlite3.connect(path) as ledger:
            ledger.execute(changes[way])
        ledger.close()
    else:
        raw = path.read_bytes()
        page = raw[:4096] + b"\xff" * 4096 + raw[8192:]
        path.write_bytes({"cut": raw[: len(raw) // 2], "text": b"nonsense" * 1000, "page": page}[way])
    before = path.read_bytes()
    found = only(clinic.look(state_checks.check_ledger, fix=True))
    assert found.is_ == "wrong"
    assert "memex restore" in found.mend
    assert "memex key reset --yes" in found.mend
    assert path.read_bytes() == before


def test_a_ledger_that_is_gone(clinic):
    (clinic.state / "ledger.db").unlink()
    assert "so no key works" in only(clinic.look(state_checks.check_ledger)).says


# The audit log


def written(clinic):
    with clinic.opened() as app:
        for text in ("one", "two", "three"):
            app.agent_access.workspace("default").capture(text)
    return sqlite3.connect(clinic.state / "ledger.db", isolation_level=None)


def test_an_audit_log_that_is_whole_is_well(clinic):
    written(clinic).close()
    assert only(clinic.look(state_checks.check_audit)).says == "4 entries, all unchanged"
    with clinic.serving():
        assert only(clinic.look(state_checks.check_audit)).is_ == "ok"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        ("UPDATE audit SET name = 'somebody else' WHERE seq = 2", "entry 2 does not match"),
        ("DELETE FROM audit WHERE seq = 2", "entry 2 is missing"),
        ("DELETE FROM audit WHERE seq > 2", "the end was cut off"),
    ],
)
def test_an_audit_log_that_was_tampered_with_is_told(clinic, tamper, words):
    ledger = written(clinic)
    ledger.execute(tamper)
    ledger.close()
    found = only(clinic.look(state_checks.check_audit, fix=True))
    assert found.is_ == "wrong"
    assert words in found.says
    with clinic.serving():  # a daemon that goes on with it does not make it whole
        assert only(clinic.look(state_checks.check_audit)).is_ == "wrong"


def test_a_ledger_of_before_there_was_a_log_is_well(clinic):
    written(clinic).close()
    (clinic.state / "ledger.db").unlink()
    with contextlib.closing(sqlite3.connect(clinic.state / "ledger.db")) as ledger:
        ledger.executescript(f"{' '.join(SCHEMA[:5])} PRAGMA user_version = 5;")
    (clinic.state / "audit.head").unlink()
    assert only(clinic.look(state_checks.check_audit)).says == "0 entries, all unchanged"


# The queue


def test_a_queue_that_is_well_tells_what_waits(clinic):
    assert only(clinic.look(state_checks.check_queue)).says == "no job waits or has failed"
    with clinic.opened() as app:
        app.opened.queue.add_note("k", "default", {"text": "a note"}, title="a note")
    found = only(clinic.look(state_checks.check_queue))
    assert (found.is_, found.says) == ("ok", "one job waits")


def test_a_job_whose_file_is_missing_is_named(clinic, tmp_path):
    (tmp_path / "in").write_bytes(b"data")
    (tmp_path / "big").write_bytes(b"data")
    with clinic.opened() as app:
        job = app.opened.queue.add_file("k", "default", {"name": "a.pdf"}, tmp_path / "in")
        app.opened.queue.add_file("k", "default", {"name": "b.pdf", "path": "Captures/default/b.pdf"}, None)
        shed = app.opened.queue.add_file("k", "default", {"name": "c.pdf", "size": 1 << 40}, tmp_path / "big")
        app.opened.queue.cancel(shed.id)  # more than may be kept of failed ones
        assert app.opened.queue.staged.find(shed.id) is None
    (clinic.state / "staged" / job.id).unlink()
    found = clinic.look(state_checks.check_queue)[0]
    assert (found.is_, job.id in found.says, found.mend) == ("wrong", True, f"memex job show {job.id}")


def test_staged_files_of_no_job_are_removed_once_they_are_old(clinic, monkeypatch):
    stray = clinic.state / "staged" / ("0" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"data")
    assert only(clinic.look(state_checks.check_queue)).is_ == "ok", "it may just be on its way"
    monkeypatch.setattr(state_checks, "STRAY_S", -1.0)
    assert only(clinic.look(state_checks.check_queue)).is_ == "wrong"
    clinic.look(state_checks.check_queue, fix=True)
    assert not stray.exists()


def test_failed_jobs_are_advice(clinic):
    with clinic.opened() as app:
        app.opened.queue.cancel(app.opened.queue.add_note("k", "default", {"text": "a note"}, title="a note").id)
    found = only(clinic.look(state_checks.check_queue))
    assert (found.is_, found.mend) == ("advice", "memex job queue --status failed")


# A state folder that can't be used, though nothing in it is damaged

OF_THE_FOLDER = (*state_checks.STATE_CHECKS[:6], state_checks.check_index, check_shares)


def wrong_of(clinic):
    looks = examine(clinic.settings, {}, OF_THE_FOLDER, fix=False)
    return [(finding.check, finding.says, finding.mend) for finding in looks if finding.is_ == "wrong"]


def test_a_state_folder_on_a_disk_that_is_mounted_read_only_is_one_problem(clinic, monkeypatch):
    monkeypatch.setattr(damage, "is_read_only", lambda folder: folder == clinic.state)
    says = f"{clinic.state} is on a disk that is mounted read-only"
    assert wrong_of(clinic) == [("state", says, "mount the disk so that you can write to it")]


def test_a_ledger_of_another_user_is_one_problem_and_no_damage(clinic):
    if os.geteuid():
        pytest.skip("needs root to give a file away")
    os.chown(clinic.state / "ledger.db", 65534, -1)
    says = f"{clinic.state}/ledger.db belongs to another user"
    assert wrong_of(clinic) == [("state", says, f"sudo chown -R $(id -u) {clinic.state}")]


def test_a_ledger_of_a_newer_memex_needs_a_newer_memex(clinic):
    with contextlib.closing(sqlite3.connect(clinic.state / "ledger.db")) as ledger:
        ledger.execute("PRAGMA user_version = 1000")
    [(check, says, mend)] = wrong_of(clinic)
    ways = (
        "update Memex; or, with an older backup: memex restore BACKUP --force; without a backup: memex key reset --yes"
    )
    assert (check, mend) == ("ledger", ways)
    assert "newer Memex" in says


@pytest.mark.parametrize("sentence", [FAILS, UNREAD])
def test_a_problem_of_the_daemon_does_not_lead_from_the_doctor_to_the_doctor(clinic, sentence):
    context = DoctorContext(clinic.settings, {}, 1, {"ready": True, "degraded": [sentence]})
    problem = next(iter(state_checks.check_daemon(context)))
    assert (problem.check, problem.mend) == ("audit", "memex service logs")
    assert f"audit: {problem.says}; see memex doctor" == sentence


@pytest.mark.parametrize(
    ("sentence", "mend"),
    [
        (
            "webhooks: off, because the file is empty; create a new secret: memex hook secret --rotate",
            "memex hook secret --rotate",
        ),
        (
            "indexing: the catalog can't be used; if this persists, rebuild the index: memex index --full",
            "memex index --full",
        ),
        ("inbox: no workspace; create it with `memex workspace create default`", "memex workspace create default"),
        ("watch: the watcher is not running", "memex status"),
    ],
)
def test_the_command_that_a_problem_of_the_daemon_names_is_the_advice(clinic, sentence, mend):
    context = DoctorContext(clinic.settings, {}, 1, {"ready": True, "degraded": [sentence]})
    assert next(iter(state_checks.check_daemon(context))).mend == mend
