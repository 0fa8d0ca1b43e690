"""The demo remembers its address and key in a file of its owner's, and removes what killed demos left, and nothing else."""

from __future__ import annotations

import json
import os
import time

import pytest

from index.errors import InvalidArgument
from syncd.cli.daemon.demo import (
    PREFIX,
    DemoAddress,
    read_address,
    refuse_vault,
    remove_left_folders,
)
from syncd.cli.framework.command_outcome import CONFIG
from syncd.cli.main import run_command
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import VaultClaim

KEY = "mx_0123456789ab_" + "0" * 64


def write(file, text, mode=0o600):
    file.write_text(text)
    file.chmod(mode)
    return file


def test_what_was_noted_down_is_read_back(tmp_path):
    assert read_address(write(tmp_path / "demo.json", json.dumps({"port": 9, "key": KEY}))) == DemoAddress(9, KEY)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(value), id=str(number))
        for number, value in enumerate(
            [
                {},
                [],
                None,
                {"port": 9},
                {"port": 0, "key": KEY},
                {"port": 65_536, "key": KEY},
                {"port": True, "key": KEY},
                {"port": "9", "key": KEY},
                {"port": 9, "key": None},
                {"port": 9, "key": "mx_1_2"},
                {"port": 9, "key": KEY + "\n"},
            ]
        )
    ]
    + ["", "nonsense", "\ud800"[:0] + "{", "[" * 4000],
)
def test_what_can_not_be_used_counts_as_nothing(tmp_path, text):
    assert read_address(write(tmp_path / "demo.json", text)) is None


def test_a_file_that_others_could_read_or_that_is_none_counts_as_nothing(tmp_path):
    text = json.dumps({"port": 9, "key": KEY})
    assert read_address(write(tmp_path / "open.json", text, 0o644)) is None
    (tmp_path / "link.json").symlink_to(write(tmp_path / "demo.json", text))
    assert read_address(tmp_path / "link.json") is None
    os.mkfifo(tmp_path / "pipe.json", 0o600)
    assert read_address(tmp_path / "pipe.json") is None
    assert read_address(tmp_path / "none.json") is None


def test_folders_of_dead_demos_are_removed_and_no_others(tmp_path):
    outside = tmp_path / "outside"
    above = tmp_path / "tmp"
    for folder in (
        outside,
        *(above / f"{PREFIX}{name}" for name in ("dead", "young", "alive", "bare")),
        above / "other",
    ):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("x")
    ProcessLock.acquire(above / f"{PREFIX}dead").release()
    (above / f"{PREFIX}link").symlink_to(outside)
    (above / f"{PREFIX}file").write_text("x")
    with ProcessLock.acquire(above / f"{PREFIX}alive"):
        for folder in above.iterdir():
            if folder.name != f"{PREFIX}young":
                os.utime(folder, (time.time() - 60,) * 2, follow_symlinks=False)
        remove_left_folders(above)
        assert {path.name.removeprefix(PREFIX) for path in above.iterdir()} == {
            "young",
            "alive",
            "link",
            "file",
            "other",
        }
    assert (outside / "kept").exists()


@pytest.mark.parametrize("kind", ["served", "known", "of Obsidian"])
def test_a_demo_writes_no_keys_into_a_vault(tmp_path, monkeypatch, capfd, kind):
    vault = tmp_path / "Notes"
    (vault / "Diary").mkdir(parents=True)
    if kind == "of Obsidian":
        (vault / ".obsidian").mkdir()
    before = sorted(vault.rglob("*"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    refuse_vault(tmp_path / "Demo")
    (tmp_path / "link").symlink_to(vault / "Diary")
    claim = VaultClaim(vault)
    if kind == "served":
        claim.require()
    elif kind == "known":
        (tmp_path / "config/memex").mkdir(parents=True)
        write(tmp_path / "config/memex/config.toml", f'[vault]\npath = "{vault}"\n')
    try:
        for folder in (vault, vault / "Demo", tmp_path / "link", tmp_path / "link/Demo"):
            with pytest.raises(InvalidArgument, match="is a vault or in one"):
                refuse_vault(folder)
        assert run_command(["demo", "--dir", str(vault)]) == CONFIG
    finally:
        claim.release()
    assert "choose another folder: memex demo --dir DIRECTORY" in capfd.readouterr().err
    assert sorted(vault.rglob("*")) == before
