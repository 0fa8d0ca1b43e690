"""syncd/clients/daemon_address.py: where the daemon answers, and how this vault's memex is called."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from index.errors import Unavailable
from syncd.clients.daemon_address import client_url, memex_command, memex_program, memex_words, read_daemon_url
from syncd.daemon.control_socket import DAEMON, ControlServer
from syncd.settings.settings import ServerSettings, load


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # the settings of whoever runs the tests have no say
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "vault").mkdir()
    return tmp_path / "state"


def settings(state: Path, **server):
    chosen = load({"vault.path": str(state.parent / "vault"), "state": str(state)}, {"HOME": str(state.parent)})
    return replace(chosen, server=ServerSettings(**server))


def test_a_client_calls_this_vault_whatever_its_shell(state):
    words = memex_words(settings(state))
    assert words[0].endswith("memex")
    assert words[1:] == ["--state", str(state)]
    by_folder = load({"vault.path": "/v a"}, {"HOME": str(state)})
    assert memex_command(by_folder).endswith("--vault '/v a'")


def test_a_person_gets_the_short_name_if_the_shell_finds_this_program_by_it(state, monkeypatch):
    script = Path(sys.executable).with_name("memex")
    if not script.exists():
        pytest.skip("memex is not installed beside this Python")
    folder, other = state.parent / "bin", state.parent / "other"
    for each in (folder, other):
        each.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    assert memex_program() == str(script)
    (folder / "memex").symlink_to(script)
    assert memex_program() == "memex"
    assert memex_command(settings(state)).startswith("memex --state ")
    assert memex_words(settings(state))[0] == str(script), "a client may have another PATH"
    (other / "memex").write_text("#!/bin/sh\n")
    (other / "memex").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert memex_program() == str(script)


def test_without_a_daemon_the_address_is_the_one_of_the_settings(state):
    assert client_url(settings(state)) == "http://127.0.0.1:8765"
    assert client_url(settings(state, host="0.0.0.0", port=9)) == "http://127.0.0.1:9"  # what a client can reach
    assert client_url(settings(state, host="::1", port=9)) == "http://[::1]:9"
    with pytest.raises(Unavailable, match="memex serve"):
        client_url(settings(state, port=0))


def test_a_running_daemon_says_its_own(state):
    server = ControlServer(state, {"status": lambda *_: {}})
    server.start()
    try:
        with pytest.raises(Unavailable, match="still starting"):
            read_daemon_url(state)
        (state / DAEMON).write_text(json.dumps({"url": "http://0.0.0.0:7001", "pid": os.getpid()}))
        assert client_url(settings(state, port=0)) == "http://127.0.0.1:7001"
    finally:
        server.stop()
    assert client_url(settings(state)) == "http://127.0.0.1:8765"  # it has stopped, so its note counts no more
