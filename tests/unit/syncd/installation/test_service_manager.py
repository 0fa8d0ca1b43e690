"""The service as it is written, enabled and taken away. A real systemd is met in test_systemd.py; here are the places
and the words: managers that are missing, launchd by a stand-in that writes down what it is asked."""

from __future__ import annotations

import json
import os
import plistlib
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.installation import service_manager
from syncd.installation.service_manager import (
    Launchd,
    Systemd,
    find_manager,
    serve_command,
    wait_until_active,
)
from syncd.settings.settings import load
from tests.support.daemon_process import Failed, Memex

NAME = 'My Vault – ü 5% $x "q"'


@pytest.fixture
def memex(tmp_path):
    return Memex(tmp_path, vault=tmp_path / NAME)


def wish(vault="/v"):
    return ["/bin/memex", "serve", "--vault", vault], Path(vault)


def put(folder, name, script):
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.slow
def test_without_a_manager_the_file_is_written_on_request_and_says_what_to_run(memex):
    memex.run("init", "--yes")
    with pytest.raises(Failed) as failed:
        memex.run("service", "install")
    assert failed.value.code == 7
    assert "--file-only" in failed.value.err or "this system has no systemd" in failed.value.err
    unit = memex.home / ".config/systemd/user/memex.service"
    assert not unit.exists()
    told = memex.json("service", "install", "--file-only")
    assert told == {
        "file": str(unit),
        "run": ["systemctl --user daemon-reload", "systemctl --user enable --now memex.service"],
    }
    assert stat.S_IMODE(unit.stat().st_mode) == 0o600
    (line,) = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    assert NAME.replace("%", "%%").replace("$", "$$").replace('"', '\\"') in line
    assert memex.json("service", "uninstall") == {"file": str(unit), "removed": True}
    assert not unit.exists()
    assert list(memex.state.glob("ledger.db"))
    with pytest.raises(Failed) as failed:
        memex.run("service", "status")
    assert (failed.value.code, re.search("to install it: memex .*service install", failed.value.err) is not None) == (
        4,
        True,
    )


def test_a_vault_that_is_not_set_up_is_no_service(memex):
    with pytest.raises(Failed) as failed:
        memex.run("service", "install", "--file-only")
    assert (failed.value.code, "memex init" in failed.value.err) == (4, True)


@pytest.mark.slow
def test_settings_of_the_shell_alone_are_told(memex, tmp_path):
    memex.run("init", "--yes")
    words = [sys.executable, "-m", "syncd.cli", "service", "install", "--file-only", "--vault", str(memex.vault)]
    environ = memex.environ | {"MEMEX_SERVER__PORT": "9999"}
    done = subprocess.run(
        [*words, "--state", str(memex.state)], env=environ, capture_output=True, text=True, check=True
    )
    assert "MEMEX_SERVER__PORT of this shell" in done.stderr


def test_every_path_of_the_command_is_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text("")
    chosen = load({"vault.path": "v", "state": "s", "config": "c.toml"}, {"HOME": str(tmp_path)})
    words = serve_command(chosen)
    assert Path(words[0]).is_absolute()
    assert words[words.index("serve") :] == [
        *("serve", "--vault", f"{tmp_path}/v", "--state", f"{tmp_path}/s", "--config", f"{tmp_path}/c.toml"),
    ]


def test_a_unit_of_another_vault_is_left_alone(tmp_path):
    one = Systemd("memex", tmp_path / "user")
    one.write(*wish("/a"))
    one.write(*wish("/a"))
    before = one.file.read_bytes()
    with pytest.raises(Conflict, match="another --name"):
        one.write(*wish("/b"))
    assert one.file.read_bytes() == before
    Systemd("memex-b", tmp_path / "user").write(*wish("/b"))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b"[Service]\nExecStart=/bin/true\n", b"[Service]\n# caf\xe9\n", None])
def test_a_unit_that_memex_did_not_write_is_left_alone(memex, unit):
    memex.run("init", "--yes")
    file = memex.home / ".config/systemd/user/memex.service"
    file.parent.mkdir(parents=True)
    if unit is None:
        file.mkdir()
    else:
        file.write_bytes(unit)
    for words in (["install", "--file-only"], ["uninstall"]):
        with pytest.raises(Failed) as failed:
            memex.run("service", *words)
        assert (failed.value.code, "is not a service of Memex" in failed.value.err) == (5, True)
    assert file.is_dir() if unit is None else file.read_bytes() == unit


@pytest.mark.slow
def test_the_service_of_another_vault_is_not_removed(memex, tmp_path):
    memex.run("init", "--yes")
    memex.run("service", "install", "--file-only")
    unit = memex.home / ".config/systemd/user/memex.service"
    other = Memex(tmp_path, vault=tmp_path / "other")
    with pytest.raises(Failed) as failed:
        other.run("service", "uninstall")
    assert (failed.value.code, f"for {other.vault}" in failed.value.err) == (5, True)
    assert unit.exists()
    memex.run("service", "uninstall")
    assert not unit.exists()


def test_where_a_manager_looks_is_the_platform_s(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_manager("", "linux", {}).file == tmp_path / ".config/systemd/user/memex.service"
    assert find_manager("work", "linux", {"XDG_CONFIG_HOME": "/c"}).file == Path("/c/systemd/user/memex-work.service")
    assert find_manager("work", "darwin", {}).file == tmp_path / "Library/LaunchAgents/memex-work.plist"


@pytest.mark.parametrize("name", ["../x", "a b", "-a", "ü", "a.service", "a" * 41])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(InvalidArgument):
        find_manager(name, "linux", {})


def test_a_manager_that_fails_is_quoted(tmp_path, monkeypatch):
    put(tmp_path, "systemctl", 'case $* in *enable*) echo "no such bus" >&2; exit 1;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    one = Systemd("memex", tmp_path / "user")
    assert one.unavailable_reason() == ""
    with pytest.raises(Unavailable, match=r"systemctl enable memex\.service failed: no such bus"):
        one.enable(start=True)


def test_what_needs_too_much_is_taken_back(tmp_path, monkeypatch):
    asked = tmp_path / "asked"
    put(
        tmp_path,
        "systemctl",
        f'echo "$@" >> {asked}; [ "$2" != restart ] || [ ! -e {tmp_path}/user/memex.service.d/hardening.conf ]',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    one = Systemd("memex", tmp_path / "user")
    one.write(*wish())
    assert not one.harden(Path("/v"), Path("/s"))
    assert not one.drop_in.parent.exists()
    calls = [line.split()[1] for line in asked.read_text().splitlines()]
    assert calls == ["daemon-reload", "restart", "daemon-reload", "restart"]


@pytest.mark.slow
def test_a_start_that_takes_long_is_no_failure_but_a_hardened_one_must_end(tmp_path, monkeypatch):
    asked, hardened = tmp_path / "asked", tmp_path / "user/memex.service.d/hardening.conf"
    put(tmp_path, "systemctl", f'echo "$2" "$(ls {hardened})" >> {asked}; [ "$2" != restart ] || exec sleep 60')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(service_manager, "PATIENCE_S", 0.5)
    monkeypatch.setattr(service_manager, "STARTING_S", 0.6)
    one = Systemd("memex", tmp_path / "user")
    one.write(*wish())
    one.enable(start=True)
    assert not one.harden(Path("/v"), Path("/s"))
    assert not one.drop_in.parent.exists()
    calls = [tuple(line.split()) for line in asked.read_text().splitlines()]
    assert calls[-4:] == [
        ("daemon-reload", str(hardened)),
        ("restart", str(hardened)),
        ("daemon-reload",),
        ("restart",),
    ]


def git(folder, *words):
    user = ("-c", "user.name=Tester", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", folder, *user, *words], check=True, capture_output=True)


@pytest.mark.parametrize("shape", ["plain", "whole", "subfolder", "linked", "linked subfolder", "inside state", "home"])
def test_what_is_shut_in_can_write_to_the_repository_of_its_vault(tmp_path, monkeypatch, shape):
    put(tmp_path, "systemctl", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    repo, state = tmp_path / "repo", tmp_path / "state"
    if shape == "home":
        monkeypatch.setenv("HOME", str(repo))
    vault = {
        "subfolder": repo / "notes",
        "home": repo / "notes",
        "linked": tmp_path / "tree",
        "linked subfolder": tmp_path / "tree/notes",
    }.get(shape, repo)
    repo.mkdir()
    if shape != "plain":
        git(repo, "init")
        git(repo, "commit", "--allow-empty", "-m", "first")
    if "linked" in shape:
        git(repo, "worktree", "add", str(tmp_path / "tree"))
    vault.mkdir(exist_ok=True)
    state = vault / "state" if shape == "inside state" else state
    one = Systemd("memex", tmp_path / "user")
    assert one.harden(vault, state)
    (line,) = [line for line in one.drop_in.read_text().splitlines() if line.startswith("ReadWritePaths=")]
    writable = [word.strip('"').removeprefix(f"{tmp_path}/") for word in line.partition("=")[2].split()]
    assert (
        writable
        == {
            "plain": ["repo", "state"],
            "whole": ["repo", "state"],
            "subfolder": ["repo/notes", "state", "repo"],
            "linked": ["tree", "state", "repo/.git"],
            "linked subfolder": ["tree/notes", "state", "tree", "repo/.git"],
            "inside state": ["repo"],
            "home": ["repo/notes", "state", "repo/.git"],
        }[shape]
    )


def test_the_log_is_the_manager_s(tmp_path):
    unit = Systemd("memex", tmp_path)
    assert unit.log_command(5, follow=True) == [
        "journalctl",
        "--user",
        "--unit",
        "memex.service",
        "--lines",
        "5",
        "--follow",
    ]
    assert "--no-pager" in unit.log_command(5, follow=False)
    agent = Launchd("memex", tmp_path, tmp_path / "memex.log")
    assert agent.log_command(5, follow=False) == ["tail", "-n", "5", str(tmp_path / "memex.log")]


def test_an_agent_of_macos_is_loaded_asked_and_unloaded(tmp_path, monkeypatch):
    asked = tmp_path / "asked"
    printed = "gui/501/memex = {\n\tstate = running\n\tpid = 77\n\tlast exit code = 0\n}"
    put(tmp_path, "launchctl", f"echo \"$@\" >> {asked}; [ $1 != print ] || printf '{printed}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    one = Launchd("memex", tmp_path / "Agents", tmp_path / "Logs/memex.log")
    one.write(*wish("/My Vault"))
    assert plistlib.loads(one.file.read_bytes())["ProgramArguments"] == wish("/My Vault")[0]
    with pytest.raises(Conflict):
        one.write(*wish("/b"))
    one.enable(start=False)
    assert not asked.exists(), "the next login loads it"
    one.enable(start=True)
    assert wait_until_active(one, 5)["pid"] == 77
    one.remove()
    domain = f"gui/{os.getuid()}"
    assert asked.read_text().splitlines() == [
        f"bootout {domain}/memex",
        f"bootstrap {domain} {one.file}",
        f"print {domain}/memex",
        f"bootout {domain}/memex",
    ]
    assert not one.file.exists()
    assert one.manual_commands() == [f"launchctl bootstrap {domain} {one.file}"]


def test_a_command_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "this system has no systemd" in Systemd("memex", tmp_path).unavailable_reason()
    assert "has no launchd" in Launchd("memex", tmp_path, tmp_path).unavailable_reason()
    with pytest.raises(NotFound, match="systemctl is not installed"):
        Systemd("memex", tmp_path).state()


@pytest.mark.slow
def test_what_is_shown_for_people(memex, tmp_path):
    memex.run("init", "--yes")
    memex.run("service", "install", "--file-only")
    printed = (
        "ActiveState=failed\\nSubState=failed\\nUnitFileState=disabled\\nNRestarts=3\\nResult=watchdog\\nMainPID=0\\n"
    )
    put(tmp_path, "systemctl", f"printf '{printed}'")
    environ = memex.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    words = [
        sys.executable,
        "-m",
        "syncd.cli",
        "service",
        "status",
        "--vault",
        str(memex.vault),
        "--state",
        str(memex.state),
    ]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert [line.split(maxsplit=1) for line in done.stdout.splitlines()][1:] == [
        ["state", "failed (failed)"],
        ["restarts", "3"],
        ["result", "watchdog"],
        ["enabled", "no, it starts only manually"],
    ]
    told = json.loads(
        subprocess.run([*words, "--json"], env=environ, capture_output=True, text=True, check=False).stdout
    )
    assert (told["active"], told["restarts"], told["enabled"], told["pid"]) == (False, 3, False, None)
