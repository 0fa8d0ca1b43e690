"""The doctor's checks of the settings, and of the service that runs the daemon, against a systemd that answers as the test says."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import replace

import pytest

from syncd.cli.doctor import service_checks
from syncd.cli.doctor.doctor import examine
from syncd.cli.doctor.service_checks import SERVICE_CHECKS
from syncd.installation.service_manager import Systemd, find_manager, serve_command
from syncd.settings.settings import PageSettings, ServerSettings
from tests.support.clinic import only


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
    keeper.write(serve_command(clinic.settings), clinic.vault)
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
    assert "does not start automatically" in only(served(clinic, tmp_path)).says
    (tmp_path / "told").write_text(told.replace("active", "failed") + "Result=exit-code\n")
    found = only(served(clinic, tmp_path))
    assert (found.is_, "exit-code" in found.says) == ("wrong", True)


def test_a_unit_that_is_out_of_step_or_starts_nothing(clinic, manager, tmp_path):
    text = manager.file.read_text()
    manager.file.write_text(text.replace("Description=", "Description=The daemon of ") + "# in other words\n")
    assert [one.is_ for one in served(clinic, tmp_path)] == ["ok"]
    manager.file.write_text(text + "Nice=5\n")
    assert [one.is_ for one in served(clinic, tmp_path)] == ["advice", "ok"]
    program = serve_command(clinic.settings)[0]
    manager.file.write_text(text.replace(program, "/nowhere/memex"))
    found = only(served(clinic, tmp_path))
    assert (found.is_, "/nowhere/memex" in found.says) == ("wrong", True)


def test_a_vault_without_a_service(clinic, manager, tmp_path):
    manager.file.write_text(manager.file.read_text().replace(str(clinic.vault), "/another"))
    assert only(served(clinic, tmp_path)).mend == "memex service install --now"
    shutil.rmtree(tmp_path / "config")
    assert only(served(clinic, tmp_path)).is_ == "advice"


@pytest.mark.parametrize("name", ["", "work"])
def test_on_macos_an_agent_of_this_vault_is_well(clinic, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert only(served(clinic, tmp_path)).mend == "memex service install --now"
    agent = find_manager(name, "darwin", {})
    agent.write(serve_command(clinic.settings), clinic.vault.parent)
    assert "not installed for this vault" in only(served(clinic, tmp_path)).says
    agent.file.unlink()
    agent.write(serve_command(clinic.settings), clinic.vault)
    assert served(clinic, tmp_path) == []


def test_a_settings_file_that_others_may_write(clinic, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    clinic.settings = replace(clinic.settings, file=file)
    assert only(clinic.look(service_checks.check_settings)).is_ == "wrong"
    clinic.look(service_checks.check_settings, fix=True)
    assert only(clinic.look(service_checks.check_settings)).is_ == "ok"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_settings_that_changed_after_the_start_of_the_daemon_are_named(clinic):
    with clinic.serving():
        assert clinic.look(service_checks.check_settings_in_use) == []
        asked = clinic.settings
        clinic.settings = replace(asked, server=ServerSettings(port=9), vault=replace(asked.vault, inbox="In"))
        told = only(clinic.look(service_checks.check_settings_in_use))
        assert (told.is_, told.mend) == ("advice", "memex stop; memex serve")
        assert "other values of vault.inbox, server.port, because" in told.says
    assert clinic.look(service_checks.check_settings_in_use) == []


def test_flags_of_one_command_and_settings_of_the_page_are_no_change(clinic):
    with clinic.serving():
        clinic.settings = replace(
            clinic.settings,
            server=ServerSettings(port=9),
            page=PageSettings(port=9),
            origins={"server.port": "MEMEX_SERVER__PORT"},
        )
        assert clinic.look(service_checks.check_settings_in_use) == []
