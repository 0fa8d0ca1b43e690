"""What a crash left behind is collected, and nothing else is."""

from __future__ import annotations

import os
import socket
import time

from syncd.state.state_folder import collect
from syncd.vault.openat import fresh
from syncd.vault.vault import Vault
from tests.support.world import until

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
    assert collect(tmp_path, older_s=3600) == [], "they may be somebody's work"
    until(lambda: time.time() - (tmp_path / LEFT[-1]).stat().st_ctime > 0.1)
    gone = collect(tmp_path, older_s=0.05)
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
    assert collect(state, older_s=0.05) == ["models/.building-x"]
    assert (outside / "kept").is_dir()


def test_a_write_in_hand_is_left_alone_in_the_vault(tmp_path):
    (tmp_path / "Captures").mkdir()
    temporary = tmp_path / "Captures" / fresh()
    temporary.write_text("half a note")
    vault = Vault(tmp_path)
    try:
        assert vault.sweep(older_s=3600) == []
        until(lambda: time.time() - temporary.stat().st_ctime > 0.1)
        assert vault.sweep(older_s=0.05) == [f"Captures/{temporary.name}"]
    finally:
        vault.close()
    assert not temporary.exists()
