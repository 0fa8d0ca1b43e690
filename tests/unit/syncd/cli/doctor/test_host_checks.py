"""The doctor's checks of the vault, Git, the disk, the port and the clock, tried by breaking them; and what `--fix` does."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from syncd.cli.doctor import host_checks
from syncd.cli.doctor.doctor import DoctorContext, examine, read_context
from syncd.cli.main import run_command
from syncd.daemon import health
from syncd.remote.branch_sync import UNREACHED
from syncd.settings.settings import ServerSettings, VaultSettings
from syncd.vault.vault import Vault
from tests.support.clinic import only
from tests.support.world import until


def test_a_vault_that_is_missing_or_no_folder(clinic):
    shutil.rmtree(clinic.vault)
    assert "can't be opened" in only(clinic.look(host_checks.check_vault)).says
    assert clinic.look(host_checks.check_inbox) == []
    clinic.vault.write_text("x")
    assert "is not a folder" in only(clinic.look(host_checks.check_vault)).says


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_vault_that_may_not_be_written(clinic):
    clinic.vault.chmod(0o500)
    assert "no permission to write" in only(clinic.look(host_checks.check_vault)).says
    clinic.vault.chmod(0o700)


def test_an_inbox_that_is_missing_is_made_and_one_that_is_a_link_is_not(clinic, tmp_path):
    inbox = clinic.vault / "Captures"
    shutil.rmtree(inbox)
    missing = only(clinic.look(host_checks.check_inbox))
    assert (missing.is_, f"`{missing.mend}`" in health.HOMELESS) == ("wrong", True)
    clinic.look(host_checks.check_inbox, fix=True)
    assert (inbox / "default").is_dir()
    assert only(clinic.look(host_checks.check_inbox)).is_ == "ok"
    shutil.rmtree(inbox)
    inbox.symlink_to(tmp_path)
    found = only(clinic.look(host_checks.check_inbox, fix=True))
    assert "a link" in found.says
    assert inbox.is_symlink()


REFUSED = {
    "missing": ["seccomp"],
    "problem": "Memex refuses PDF and Office files: why",
    "landlock": 7,
    "network_namespace": False,
}


@pytest.mark.parametrize(
    ("facts", "is_", "says"),
    [
        (REFUSED, "wrong", "Memex refuses PDF and Office files: why"),
        (
            REFUSED | {"problem": ""},
            "advice",
            "kb.confined is preferred, so Memex reads PDF and Office files without seccomp",
        ),
        (REFUSED | {"problem": "", "missing": []}, "ok", "Memex reads files under Landlock 7 and seccomp"),
        ({"required": True, "problem": "the file converter could not be started"}, "wrong", "could not be started"),
    ],
)
def test_the_sandbox_of_the_daemon_that_runs_is_judged(clinic, facts, is_, says):
    context = DoctorContext(clinic.settings, {}, None, {"sandbox": facts})
    finding = only(list(host_checks.check_sandbox(context)))
    assert finding.is_ == is_
    assert says in finding.says


def test_the_sandbox_is_tried_where_no_daemon_tells_of_it(clinic):
    finding = only(clinic.look(host_checks.check_sandbox))
    assert finding.is_ == ("ok" if sys.platform == "linux" else "wrong")


def test_files_that_are_gone_or_not_read_are_named(clinic):
    with clinic.serving() as app:
        assert only(clinic.look(host_checks.check_files)).is_ == "ok"
        file = clinic.vault / "Captures/default/a.txt"
        file.write_text("The walrus sleeps.")
        app.opened.sync.run()
        app.file_import.dropped._quiet_s = 0.0
        until(lambda: app.file_import.dropped.queue_quiet_files() or app.opened.queue.counts()["done"] == 1, 120)
        assert "1 file with a note" in only(clinic.look(host_checks.check_files)).says
        file.unlink()
        app.opened.sync.run()
        found = only(clinic.look(host_checks.check_files))
        assert (found.is_, found.mend) == ("advice", "put the file back, or delete the note")
        assert "a.txt is missing" in found.says
        app.file_import.dropped.unread["Captures/default/b.pdf"] = "permission denied"
        assert any(
            "b.pdf could not be read: permission denied" in one.says for one in clinic.look(host_checks.check_files)
        )
    assert list(clinic.look(host_checks.check_files)) == []


def test_a_port_that_is_taken(clinic):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        clinic.settings = replace(clinic.settings, server=ServerSettings(port=other.getsockname()[1]))
        found = only(clinic.look(host_checks.check_port))
    assert found.is_ == "wrong"
    assert only(clinic.look(host_checks.check_port)).is_ == "ok"


@pytest.mark.parametrize(("limit", "rank"), [(2, "wrong"), (4, "advice"), (9_999, "ok")])
def test_watches_that_are_too_few(clinic, tmp_path, monkeypatch, limit, rank):
    monkeypatch.setattr(host_checks, "INOTIFY", tmp_path)
    (tmp_path / "max_user_watches").write_text(f"{limit}\n")
    found = only(clinic.look(host_checks.check_watch))
    assert found.is_ == rank
    assert "3 folders" in found.says
    assert ("sysctl" in found.mend) == (rank != "ok")


def test_the_state_of_git_is_told_with_its_command(clinic):
    found = only(clinic.look(host_checks.check_git))
    assert (found.is_, found.mend) == ("advice", f"git -C {clinic.vault} init")
    subprocess.run(["git", "init", "-q", str(clinic.vault)], check=True)
    assert only(clinic.look(host_checks.check_git)).is_ == "advice"
    lock = clinic.vault / ".git/index.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    found = only(clinic.look(host_checks.check_git, fix=True))
    assert (found.is_, str(lock) in found.mend) == ("wrong", True)
    assert lock.exists()


@pytest.mark.parametrize(
    ("sentence", "mend"),
    [
        ("git: Memex can't commit its changes now (Git failed; see the daemon's log)", "memex service logs"),
        (UNREACHED, "memex sync"),
    ],
)
def test_a_commit_or_a_sync_that_fails_in_the_daemon_is_a_problem(clinic, sentence, mend):
    commit(clinic.vault)
    context = DoctorContext(clinic.settings, {}, 1, {"degraded": [sentence, "index: being built"]})
    failed = only(host_checks.check_git(context))
    assert (failed.is_, f"git: {failed.says}", failed.mend) == ("wrong", sentence, mend)
    (clinic.vault / ".git/index.lock").write_text("")
    locked = only(host_checks.check_git(context))
    assert (locked.is_, locked.says) == ("advice", "locked: another program works in the repository")


def test_a_vault_in_a_subfolder_of_a_repository_is_not_advised_to_become_a_repository(clinic):
    subprocess.run(["git", "init", "-q", str(clinic.vault.parent)], check=True)
    found = only(clinic.look(host_checks.check_git))
    assert found.says == f"no-repo: the vault is a subfolder of the repository at {clinic.vault.parent}"
    assert found.mend.startswith("Memex commits")


def test_a_hook_that_was_changed_is_told(clinic):
    with clinic.serving() as app:
        git(clinic.vault, "init", "-q")
        install = ["hook", "install", "--vault", str(clinic.vault), "--state", str(clinic.state)]
        run_command(install)
        hook = clinic.vault / ".git/hooks/post-commit"
        hook.write_text(hook.read_text() + "echo mine\n")
        assert app.health.facts()["git"]["hooks_amiss"]
        found = [one for one in clinic.look(host_checks.check_git) if one.mend.endswith("; memex hook install")]
        assert "post-commit" in only(found).says
        subprocess.run(["sh", "-c", only(found).mend.removesuffix("; memex hook install")], check=True)
        run_command(install)
        assert not app.health.facts()["git"]["hooks_amiss"]
    assert hook.with_name("post-commit.changed").read_text().endswith("echo mine\n")


def test_a_hook_that_replaced_one_of_memex_is_not_answered_with_a_command_that_refuses(clinic):
    with clinic.serving() as app:
        git(clinic.vault, "init", "-q")
        hook = clinic.vault / ".git/hooks/post-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n")
        install = ["hook", "install", "--vault", str(clinic.vault), "--state", str(clinic.state)]
        run_command(install)
        hook.write_text("#!/bin/sh\necho mine\n")
        assert app.health.facts()["git"]["hooks_amiss"] == {"post-commit": "replaced"}
        (mend,) = [one.mend for one in clinic.look(host_checks.check_git) if one.mend.endswith("; memex hook install")]
        move, away, path, *_ = mend.split()
        assert (move, away, path) == ("move", "away", str(hook))
        hook.unlink()
        run_command(install)
        assert not app.health.facts()["git"]["hooks_amiss"]


def commit(vault):
    git(vault, "init", "-q")
    git(vault, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "one")


def git(vault, *words):
    subprocess.run(["git", "-C", str(vault), *words], check=True, capture_output=True)


def test_a_disk_that_is_full(clinic, monkeypatch):
    assert {one.is_ for one in clinic.look(host_checks.check_disk)} <= {"ok", "advice"}
    monkeypatch.setattr(host_checks, "TIGHT", 1 << 60)
    assert {one.is_ for one in clinic.look(host_checks.check_disk)} == {"advice"}
    monkeypatch.setattr(host_checks, "FULL", 1 << 60)
    assert {one.is_ for one in clinic.look(host_checks.check_disk)} == {"wrong"}


def test_a_note_from_the_future_and_a_clock_from_the_past(clinic, monkeypatch):
    assert only(clinic.look(host_checks.check_clock)).is_ == "ok"
    os.utime(clinic.vault / "A.md", (4_000_000_000, 4_000_000_000))
    found = only(clinic.look(host_checks.check_clock, fix=True))
    assert found.is_ == "advice"
    assert found.says.startswith("one note has a time in the future, such as A.md")
    assert (clinic.vault / "A.md").stat().st_mtime == 4_000_000_000
    monkeypatch.setattr(host_checks, "BEFORE", 4_000_000_000)
    assert only(clinic.look(host_checks.check_clock)).is_ == "wrong"


def test_an_old_sqlite(clinic, monkeypatch):
    monkeypatch.setattr(host_checks, "SQLITE_HERE", (3, 30, 0))
    assert "too old" in only(clinic.look(host_checks.check_versions)).says


def test_a_vault_of_the_settings_that_ignores_folders_needs_fewer_watches(clinic, tmp_path, monkeypatch):
    monkeypatch.setattr(host_checks, "INOTIFY", tmp_path)
    (tmp_path / "max_user_watches").write_text("100\n")
    (clinic.vault / "Archive/Deep").mkdir(parents=True)
    assert "5 folders" in only(clinic.look(host_checks.check_watch)).says
    clinic.settings = replace(clinic.settings, vault=VaultSettings(path=clinic.vault, ignore=("Archive/**",)))
    assert "5 folders" not in only(clinic.look(host_checks.check_watch)).says


def test_all_checks_together_walk_through_the_folders_once(clinic, monkeypatch):
    listed, list_folders = [], Vault.list_folders
    monkeypatch.setattr(
        Vault, "list_folders", lambda vault, folder: listed.append(folder) or list_folders(vault, folder)
    )
    context = read_context(clinic.settings, {})
    assert context.folders == ["Captures", "Captures/default"]
    assert [*host_checks.check_watch(context), *host_checks.check_folders(context)]
    assert listed == ["", "Captures", "Captures/default"]


def test_a_key_of_the_environment_that_is_too_short_is_told(clinic):
    [finding] = examine(clinic.settings, {"KB_API_KEY": "hunter2"}, [host_checks.check_environment], fix=False)
    assert (finding.check, finding.is_) == ("environment", "wrong")
    assert finding.says == "KB_API_KEY has 7 characters, but a key needs at least 16"
    assert "memex key create" in finding.mend
    assert list(examine(clinic.settings, {"KB_API_KEY": "x" * 16}, [host_checks.check_environment], fix=False)) == []


@pytest.mark.parametrize("closed", [".", "default", "default/deep"])
def test_a_folder_of_the_inbox_that_is_closed_is_named_with_the_command_that_opens_it(clinic, monkeypatch, closed):
    (clinic.vault / "Captures/default/deep").mkdir()
    folder = clinic.vault / "Captures" / closed
    may = os.access  # root may write everywhere, so its rights are faked
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != folder and may(path, mode, **more))
    look = only(clinic.look(host_checks.check_inbox))
    assert look.is_ == "wrong"
    assert f"read and write {folder.relative_to(clinic.vault)}/" in look.says
    assert look.mend == f"chmod u+rwx {folder}"


def test_a_folder_outside_the_inbox_that_is_closed_is_named_with_the_command_that_opens_it(clinic, monkeypatch):
    (clinic.vault / "Recipes/old soups").mkdir(parents=True)
    assert [look.check for look in clinic.look(host_checks.check_folders) if look.is_ != "ok"] == []
    closed, may = (clinic.vault / "Recipes/old soups", clinic.vault / "Captures/default"), os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path not in closed and may(path, mode, **more))
    look = only(clinic.look(host_checks.check_folders), "folders")
    assert look.is_ == "wrong"
    assert "read Recipes/old soups/, so" in look.says
    assert look.mend == f"chmod u+rx '{closed[0]}'"
