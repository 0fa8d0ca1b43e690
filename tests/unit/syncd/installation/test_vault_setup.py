"""A vault is made ready without touching a note, and a second time changes nothing."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from index.errors import Conflict, NotFound, Unavailable
from syncd.installation.vault_setup import (
    ensure_owner_key,
    ensure_settings_file,
    has_notes,
    install_client_key,
    put_under_git,
    reset_owner_key,
    set_up_vault,
    write_git_choice,
)
from syncd.owner.workspaces_and_keys import key_operations
from syncd.settings.settings import load
from syncd.state.folder import LEDGER, default_state_folder, write_private
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys

NOW = 1_800_000_000_000


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "cfg"), "XDG_STATE_HOME": str(tmp_path / "st")}


@pytest.fixture
def vault(tmp_path):
    folder = tmp_path / "Mein Tresor – ü"
    (folder / "Projects").mkdir(parents=True)
    (folder / "Projects" / "A.md").write_bytes(b"---\r\na: 007\r\n---\r\nx")
    return folder


def tree(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def ours(state):
    ledger = Ledger.open(state / LEDGER)
    return ledger, ApiKeys(ledger)


def test_a_folder_is_made_ready_and_no_note_is_touched(home, vault):
    before = tree(vault)
    settings = load({"vault.path": str(vault)}, home)
    key_file = set_up_vault(settings, now=NOW)
    assert tree(vault) == before
    assert (vault / "Captures" / "default").is_dir()
    assert key_file == settings.state / "key"
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert settings.state.stat().st_mode & 0o777 == 0o700
    ledger, keys = ours(settings.state)
    key = keys.authenticate(key_file.read_text().strip(), now=NOW)
    assert (key.name, key.workspaces, key.scopes) == ("owner", None, {"read", "write", "admin"})
    ledger.close()


def test_a_second_time_changes_nothing(home, vault):
    settings = load({"vault.path": str(vault)}, home)
    secret = set_up_vault(settings, now=NOW).read_text()
    for again in (False, True):
        assert set_up_vault(settings, now=NOW, again=again).read_text() == secret


def test_a_workspace_that_a_person_removed_comes_back_only_when_asked_for(home, vault):
    settings = load({"vault.path": str(vault)}, home)
    set_up_vault(settings, now=NOW)
    (vault / "Captures" / "default").rmdir()
    set_up_vault(settings, now=NOW)
    assert not (vault / "Captures" / "default").exists()
    set_up_vault(settings, now=NOW, again=True)
    assert (vault / "Captures" / "default").is_dir()


def test_a_missing_folder_is_refused_and_nothing_is_made(home, tmp_path):
    settings = load({"vault.path": str(tmp_path / "no")}, home)
    with pytest.raises(NotFound, match="--create"):
        set_up_vault(settings, now=NOW)
    assert not settings.state.exists()


def test_a_revoked_key_comes_back_only_when_asked_for(tmp_path):
    ledger, keys = ours(tmp_path)
    secret = ensure_owner_key(tmp_path, keys, now=NOW).read_text()
    keys.revoke("owner", now=NOW)
    assert ensure_owner_key(tmp_path, keys, now=NOW).read_text() == secret
    fresh = ensure_owner_key(tmp_path, keys, now=NOW, again=True).read_text()
    assert keys.authenticate(secret.strip(), now=NOW) is None
    assert keys.authenticate(fresh.strip(), now=NOW).name == "owner"
    ledger.close()


def test_a_key_whose_file_was_moved_away_stays_good(tmp_path):
    ledger, keys = ours(tmp_path)
    file = ensure_owner_key(tmp_path, keys, now=NOW)
    moved = file.read_text().strip()
    file.unlink()
    ensure_owner_key(tmp_path, keys, now=NOW)
    assert keys.authenticate(moved, now=NOW).name == "owner"
    assert keys.authenticate(file.read_text().strip(), now=NOW).name == "owner-2"
    ledger.close()


@pytest.mark.parametrize("text", ["", "nonsense", "mx_unknown_secret\n"])
def test_a_file_with_no_key_of_ours_is_written_anew(tmp_path, text):
    ledger, keys = ours(tmp_path)
    (tmp_path / "key").write_text(text)
    (tmp_path / "key").chmod(0o644)
    file = ensure_owner_key(tmp_path, keys, now=NOW)
    assert keys.authenticate(file.read_text().strip(), now=NOW).name == "owner"
    assert file.stat().st_mode & 0o777 == 0o600
    ledger.close()


def full(*_):
    raise OSError(errno.ENOSPC, "no space left")


def test_a_start_whose_key_file_can_t_be_written_leaves_no_key(tmp_path, monkeypatch):
    ledger, keys = ours(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for _ in range(3):
            with pytest.raises(OSError, match="no space"):
                ensure_owner_key(tmp_path, keys, now=NOW)
    assert keys.list() == []
    assert not (tmp_path / "key").exists()
    ensure_owner_key(tmp_path, keys, now=NOW)
    assert [key.name for key in keys.list()] == ["owner"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    ledger.close()


def test_a_reset_or_rotation_whose_key_file_can_t_be_written_keeps_the_old_key(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    ledger, keys = ours(tmp_path)
    old = ensure_owner_key(tmp_path, keys, now=NOW).read_text()
    rotate = key_operations(None, keys, tmp_path)["key.rotate"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            reset_owner_key(tmp_path, now=NOW)
        with pytest.raises(OSError, match="no space"):
            rotate({"name": "owner"}, None)
    assert (tmp_path / "key").read_text() == old
    assert keys.authenticate(old.strip(), now=NOW).name == "owner"
    assert rotate({"name": "owner"}, None)["key"] == (tmp_path / "key").read_text().strip() != old.strip()
    assert keys.authenticate(old.strip(), now=NOW) is None
    ledger.close()


def test_a_key_that_the_ledger_can_t_record_is_in_no_file(tmp_path):
    ledger, keys = ours(tmp_path)
    old = ensure_owner_key(tmp_path, keys, now=NOW).read_text()
    ledger.close()
    with pytest.raises(Unavailable):
        key_operations(None, keys, tmp_path)["key.rotate"]({"name": "owner"}, None)
    assert (tmp_path / "key").read_text() == old
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("way", ["reset", "rotate"])
def test_a_new_secret_whose_file_can_t_get_its_name_is_kept_beside_it(tmp_path, monkeypatch, way):
    def refuse(self, target):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    tmp_path.chmod(0o700)
    ledger, keys = ours(tmp_path)
    old = ensure_owner_key(tmp_path, keys, now=NOW).read_text()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(Unavailable, match=r"can't be replaced .*its new content is in .*/key\.new") as caught:
            if way == "reset":
                reset_owner_key(tmp_path, now=NOW)
            else:
                key_operations(None, keys, tmp_path)["key.rotate"]({"name": "owner"}, None)
    assert keys.authenticate(old.strip(), now=NOW) is None
    ledger.close()
    new = (tmp_path / "key.new").read_text()
    assert str(tmp_path / "key.new") in caught.value.message
    assert stat.S_IMODE((tmp_path / "key.new").stat().st_mode) == 0o600
    assert (tmp_path / "key").read_text() == old
    ledger = Ledger.open(tmp_path / "ledger.db")
    keys = ApiKeys(ledger)
    assert keys.authenticate(new.strip(), now=NOW).name == "owner"
    assert keys.authenticate(old.strip(), now=NOW) is None
    ledger.close()


def test_a_private_file_is_never_open_to_others(tmp_path):
    before = os.umask(0)
    try:
        write_private(tmp_path / "x", "secret")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_the_settings_file_leads_back_to_the_vault(home, vault):
    file, usual = ensure_settings_file(load({"vault.path": str(vault)}, home), None, home)
    assert usual
    settings = load({}, home)
    assert (settings.vault.path, settings.state, settings.file) == (vault, default_state_folder(vault, home), file)
    assert "state" not in tomllib.loads(file.read_text())
    assert ensure_settings_file(settings, None, home) == (file, True)


def test_a_state_folder_that_was_named_is_written_down(home, vault, tmp_path):
    file, _ = ensure_settings_file(load({"vault.path": str(vault), "state": str(tmp_path / 'a "b"')}, home), None, home)
    assert load({}, home).state == tmp_path / 'a "b"'
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_second_vault_gets_a_settings_file_of_its_own(home, vault, tmp_path):
    first, _ = ensure_settings_file(load({"vault.path": str(vault)}, home), None, home)
    text = first.read_text()
    other = load({"vault.path": str(tmp_path / "other")}, home)
    second, usual = ensure_settings_file(other, None, home)
    assert not usual
    assert first.read_text() == text
    assert load({"config": str(second)}, home).vault.path == tmp_path / "other"
    assert ensure_settings_file(other, None, home) == (second, False)


def test_a_vault_whose_state_folder_is_in_use_gets_a_settings_file_of_its_own_too(home, vault, tmp_path):
    ensure_settings_file(load({"vault.path": str(vault)}, home), None, home)
    (tmp_path / "other").mkdir()
    other = load({"vault.path": str(tmp_path / "other")}, home)
    set_up_vault(other, now=NOW)
    second, usual = ensure_settings_file(other, None, home)
    assert not usual
    assert load({"config": str(second)}, home).vault.path == tmp_path / "other"


def test_a_settings_file_without_a_vault_gets_one_and_keeps_the_rest(home, vault, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("# mine\n[server]\nport = 9\n")
    settings = load({"vault.path": str(vault), "state": str(tmp_path / "s"), "config": str(file)}, home)
    assert ensure_settings_file(settings, str(file), home) == (file, True)
    assert "# mine" in file.read_text()
    again = load({"config": str(file)}, home)
    assert (again.vault.path, again.state, again.server.port) == (vault, tmp_path / "s", 9)


def test_a_settings_file_keeps_its_line_ends_and_the_link_that_leads_to_it(home, vault, tmp_path):
    file, real = tmp_path / "own.toml", tmp_path / "dotfiles" / "memex.toml"
    real.parent.mkdir()
    file.symlink_to("dotfiles/memex.toml")
    settings = load({"vault.path": str(vault), "state": str(tmp_path / "s")}, home)
    ensure_settings_file(settings, str(file), home)
    assert tomllib.loads(real.read_text())["vault"]["path"] == str(vault)
    real.write_bytes(b"# mine\r\n[server]\r\nport = 9\r\n")
    ensure_settings_file(settings, str(file), home)
    for commit in (False, True):
        write_git_choice(file, commit=commit)
    real.write_bytes(real.read_bytes().replace(b"commit = true\r\n", b"interval_s = 60\r\n"))
    write_git_choice(file, commit=False)
    text = real.read_bytes().decode()
    assert file.is_symlink()
    assert sorted(path.name for path in real.parent.iterdir()) == ["memex.toml"]
    assert "\n" not in text.replace("\r\n", "")
    assert "# mine\r\n[server]\r\nport = 9\r\n" in text
    written = tomllib.loads(text)
    assert (written["vault"], written["git"]["commit"]) == ({"path": str(vault)}, False)


def test_a_vault_table_without_a_path_is_left_to_its_owner(home, vault, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[vault]\nignore = ["x"]\n')
    with pytest.raises(Conflict, match="under \\[vault\\]"):
        ensure_settings_file(load({"vault.path": str(vault)}, home), str(file), home)


def test_a_settings_file_that_was_named_and_is_for_another_vault_is_refused(home, vault, tmp_path):
    named = str(tmp_path / "own.toml")
    ensure_settings_file(load({"vault.path": str(vault)}, home), named, home)
    with pytest.raises(Conflict, match="another --config"):
        ensure_settings_file(load({"vault.path": str(tmp_path / "other")}, home), named, home)


def test_a_reset_makes_a_new_owners_key_and_ends_every_old_one(tmp_path):
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / LEDGER)
    keys = ApiKeys(ledger)
    first = ensure_owner_key(tmp_path, keys, now=NOW).read_text().strip()
    _, agent = keys.create("agent", workspaces=None, now=NOW)
    file = reset_owner_key(tmp_path, now=NOW + 1)[0]
    second = file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys.authenticate(first, now=NOW + 2) is None
    assert keys.authenticate(agent, now=NOW + 2)
    owner = keys.authenticate(second, now=NOW + 2)
    assert (owner.name, owner.scopes, owner.workspaces) == ("owner", {"read", "write", "admin"}, None)
    file.unlink()  # lost, and reset again
    third = reset_owner_key(tmp_path, now=NOW + 3)[0].read_text().strip()
    assert keys.authenticate(second, now=NOW + 4) is None
    assert keys.authenticate(third, now=NOW + 4)
    assert [one["event"] for one in keys.history()].count("reset") == 2
    ledger.close()


def test_a_folder_that_is_no_state_folder_is_not_reset(tmp_path):
    with pytest.raises(NotFound, match="memex init"):
        reset_owner_key(tmp_path, now=NOW)
    assert list(tmp_path.iterdir()) == []


def test_a_clients_key_of_an_earlier_state_folder_opens_a_new_one(tmp_path):
    ledger, keys = ours(tmp_path)
    ensure_owner_key(tmp_path, keys, now=NOW)
    owners = (tmp_path / "key").read_text().strip()
    secret = f"mx_{'a' * 12}_{'a' * 64}"
    for _ in range(2):  # the second time it is there
        assert install_client_key(tmp_path, "demo client", "default", secret, now=NOW) == secret
    key = keys.identify(secret, now=NOW)
    assert (key.name, key.workspaces, key.scopes) == (
        "demo client",
        frozenset({"default"}),
        frozenset({"read", "write"}),
    )
    other = install_client_key(tmp_path, "demo client", "default", owners, now=NOW)
    assert other not in (owners, secret), "the owner's key is no client's, wherever it was noted down"
    assert keys.identify(secret, now=NOW) is None
    assert keys.identify(other, now=NOW).name == "demo client"
    assert install_client_key(tmp_path, "demo client", "default", None, now=NOW) != other
    ledger.close()


def test_a_key_file_behind_a_link_is_left_as_it_is(tmp_path):
    ledger, keys = ours(tmp_path)
    file = ensure_owner_key(tmp_path, keys, now=NOW)
    moved = file.rename(tmp_path / "moved")
    moved.chmod(0o640)
    file.symlink_to(moved)
    ensure_owner_key(tmp_path, keys, now=NOW)
    assert moved.stat().st_mode & 0o777 == 0o640
    ledger.close()


def test_a_large_folder_without_a_note_is_given_up_on(tmp_path, monkeypatch):
    monkeypatch.setattr("syncd.installation.vault_setup.LOOKED_AT", 20)
    for number in range(30):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}/x.bin").touch()
    assert not has_notes(tmp_path)
    (tmp_path / "A.md").touch()
    assert has_notes(tmp_path)


def test_a_folder_is_put_under_git_with_all_its_files_and_a_second_time_changes_nothing(tmp_path):
    (tmp_path / "Note.md").write_text("a note\n")
    for _ in range(2):
        put_under_git(tmp_path)
        asked = ["git", "-C", str(tmp_path), "log", "--format=%s", "--name-only"]
        assert subprocess.check_output(asked, text=True).split() == ["Begin", "Note.md"]
