"""A vault and its remote, and the person whose Git they use."""

from __future__ import annotations

import pytest

from tests.support.remote_vault import SyncedDevice


@pytest.fixture
def person(monkeypatch, tmp_path):
    """Somebody whom Git knows, with settings of their own."""
    (tmp_path / "home").mkdir()
    for name, value in {
        "HOME": tmp_path / "home",
        "XDG_CONFIG_HOME": tmp_path / "home",
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")


@pytest.fixture
def device(tmp_path):
    made = SyncedDevice(tmp_path)
    yield made
    made.close()
