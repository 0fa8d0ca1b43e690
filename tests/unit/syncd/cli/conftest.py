"""A home without settings, and a daemon's door with answers written by hand."""

from __future__ import annotations

import os

import pytest

from tests.support.answering_daemon import Daemon
from tests.support.known_vault import make_default_vault


@pytest.fixture
def clean(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    (tmp_path / "vault").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    make_default_vault(monkeypatch, tmp_path / "home", tmp_path / "vault", tmp_path / "state")
    running = Daemon(tmp_path / "state")
    running.server.start()
    yield running
    running.server.stop()
