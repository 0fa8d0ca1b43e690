"""The state folder: one vault's, and closed to others."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from index.errors import Conflict, InvalidArgument
from syncd.settings.settings import load
from syncd.state.folder import claim, default_state_folder, expand_home, read_vault_path, remove_unfinished
from syncd.vault.openat import new_temporary_name
from syncd.vault.vault import Vault
from tests.support.world import until


def test_a_state_folder_remembers_its_vault(tmp_path):
    vault, state = tmp_path / "vält", tmp_path / "state"
    vault.mkdir()
    claim(state, vault)
    assert read_vault_path(state) == vault
    assert state.stat().st_mode & 0o777 == 0o700
    assert load({"state": str(state)}, {"HOME": str(tmp_path)}).vault.path == vault
    claim(state, vault)


def test_a_state_folder_is_not_used_for_a_second_vault(tmp_path):
    a, b, state = tmp_path / "a", tmp_path / "b", tmp_path / "state"
    a.mkdir()
    b.mkdir()
    claim(state, a)
    with pytest.raises(Conflict, match="belongs to the vault"):
        claim(state, b)
    a.rmdir()  # a vault that was moved takes its state along
    claim(state, b)
    assert read_vault_path(state) == b


def test_a_vault_reached_by_another_name_is_the_same_vault(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    claim(tmp_path / "state", tmp_path / "a")
    claim(tmp_path / "state", tmp_path / "b")
    assert read_vault_path(tmp_path / "state") == tmp_path / "b"
    assert read_vault_path(tmp_path / "state").samefile(tmp_path / "a")


@pytest.mark.parametrize("state", [".", ".memex", "a/b"])
def test_the_state_may_not_lie_in_the_vault(tmp_path, state):
    with pytest.raises(InvalidArgument, match="is in the vault"):
        claim(tmp_path / state, tmp_path)


@pytest.mark.parametrize(("vault", "state"), [("link", "vault/state"), ("vault", "link/state"), ("link", "link")])
def test_the_state_may_not_lie_in_the_vault_by_another_name(tmp_path, vault, state):
    (tmp_path / "vault").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "vault")
    with pytest.raises(InvalidArgument, match="is in the vault"):
        claim(tmp_path / state, tmp_path / vault)
    assert list((tmp_path / "vault").iterdir()) == []


def test_an_open_state_folder_is_closed_to_others(tmp_path):
    (tmp_path / "s").mkdir(mode=0o755)
    claim(tmp_path / "s", tmp_path / "v")
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("state", ["s", "s/below"])
def test_a_file_in_place_of_the_state_folder_is_told(tmp_path, state):
    (tmp_path / "s").write_text("")
    with pytest.raises(InvalidArgument, match="is a file"):
        claim(tmp_path / state, tmp_path / "v")


def test_two_vaults_of_one_name_have_two_state_folders():
    environ = {"XDG_STATE_HOME": "/st"}
    one, two = default_state_folder(Path("/a/Notes"), environ), default_state_folder(Path("/b/Notes"), environ)
    assert one != two
    assert one.parent == two.parent == Path("/st/memex")
    assert one.name.startswith("Notes-")


OLD = [
    "daemon.json",
    "key",
    "control.sock",
    "index/current",
    "index/3f2a-1/captures.db",
    "models/all/model.onnx",
    ".note",
]
LEFT = [".key.0a1b2c3d", ".daemon.json.0a1b2c3d", "index/.current.tmp", "models/.building-abc_1/half.onnx"]


def test_half_written_files_dead_sockets_and_models_half_built_go(tmp_path):
    for path in (*OLD, *LEFT):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / ".control.sock.123"))
    assert remove_unfinished(tmp_path, older_s=3600) == [], "they may be somebody's work"
    until(lambda: time.time() - (tmp_path / LEFT[-1]).stat().st_ctime > 0.1)
    gone = remove_unfinished(tmp_path, older_s=0.05)
    assert gone == [
        ".control.sock.123",
        ".daemon.json.0a1b2c3d",
        ".key.0a1b2c3d",
        "index/.current.tmp",
        "models/.building-abc_1",
    ]
    assert all((tmp_path / path).exists() for path in OLD)
    assert not any((tmp_path / path).exists() for path in LEFT)


def test_a_link_is_taken_away_and_not_followed(tmp_path):
    outside, state = tmp_path / "outside", tmp_path / "state"
    (outside / "kept").mkdir(parents=True)
    (state / "models").mkdir(parents=True)
    (state / "models/.building-x").symlink_to(outside)
    until(lambda: time.time() - os.lstat(state / "models/.building-x").st_ctime > 0.1)
    assert remove_unfinished(state, older_s=0.05) == ["models/.building-x"]
    assert (outside / "kept").is_dir()


def test_a_write_in_hand_is_left_alone_in_the_vault(tmp_path):
    (tmp_path / "Captures").mkdir()
    temporary = tmp_path / "Captures" / new_temporary_name()
    temporary.write_text("half a note")
    vault = Vault(tmp_path)
    try:
        assert vault.remove_leftovers(older_s=3600) == []
        until(lambda: time.time() - temporary.stat().st_ctime > 0.1)
        assert vault.remove_leftovers(older_s=0.05) == [f"Captures/{temporary.name}"]
    finally:
        vault.close()
    assert not temporary.exists()


def test_the_home_folder_of_an_unknown_user_is_a_path_like_others(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert [str(expand_home(path)) for path in ("~/a", "~", "a~", "~no-such-user/a")] == [
        "/home/ada/a", "/home/ada", "a~", "~no-such-user/a",
    ]  # fmt: skip
