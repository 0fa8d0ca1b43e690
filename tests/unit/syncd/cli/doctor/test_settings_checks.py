"""The doctor and the settings: who can change their file, and whether the daemon runs with them."""

from __future__ import annotations

import stat
from dataclasses import replace

from syncd.cli.doctor import settings_checks
from syncd.settings.settings import PageSettings, ServerSettings
from tests.support.clinic import only


def test_a_settings_file_that_others_may_write(clinic, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    clinic.settings = replace(clinic.settings, file=file)
    assert only(clinic.look(settings_checks.check_settings)).is_ == "wrong"
    clinic.look(settings_checks.check_settings, fix=True)
    assert only(clinic.look(settings_checks.check_settings)).is_ == "ok"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_settings_that_changed_after_the_start_of_the_daemon_are_named(clinic):
    with clinic.serving():
        assert clinic.look(settings_checks.check_settings_in_use) == []
        asked = clinic.settings
        clinic.settings = replace(asked, server=ServerSettings(port=9), vault=replace(asked.vault, inbox="In"))
        told = only(clinic.look(settings_checks.check_settings_in_use))
        assert (told.is_, told.mend) == ("advice", "memex stop; memex serve")
        assert "other values of vault.inbox, server.port, because" in told.says
    assert clinic.look(settings_checks.check_settings_in_use) == []


def test_flags_of_one_command_and_settings_of_the_page_are_no_change(clinic):
    with clinic.serving():
        clinic.settings = replace(
            clinic.settings,
            server=ServerSettings(port=9),
            page=PageSettings(port=9),
            origins={"server.port": "MEMEX_SERVER__PORT"},
        )
        assert clinic.look(settings_checks.check_settings_in_use) == []
