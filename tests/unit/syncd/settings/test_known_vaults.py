"""Which settings file a command reads: what is named, the vault around it, what was chosen, the default; by any name of a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from index.errors import InvalidArgument
from syncd.settings.known_vaults import (
    CHOICE,
    KnownVault,
    choose_settings_file,
    find_vault_around,
    known_vaults,
    read_choice,
    vault_name,
    write_choice,
)
from syncd.settings.settings import load


@pytest.fixture
def home(tmp_path):
    """Two known vaults, A (the default) and B, a third one in B, and a folder outside."""
    for name in ("cfg/memex", "st", "A/deep/er", "B/Inner/x", "out"):
        (tmp_path / name).mkdir(parents=True)
    for file, vault in (("config", "A"), ("b", "B"), ("inner", "B/Inner")):
        (tmp_path / f"cfg/memex/{file}.toml").write_text(f'[vault]\npath = "{tmp_path / vault}"\n')
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "cfg"), "XDG_STATE_HOME": str(tmp_path / "st")}


@pytest.mark.parametrize(
    ("cwd", "flags", "variables", "chosen", "file", "reason"),
    [
        pytest.param("out", {}, {}, "", "config", "default", id="nothing is said"),
        pytest.param("out", {}, {}, "b", "b", "choice", id="one was chosen"),
        pytest.param("A", {}, {}, "b", "config", "directory", id="the folder wins over the choice"),
        pytest.param("A/deep/er", {}, {}, "b", "config", "directory", id="far below a vault"),
        pytest.param("B/Inner/x", {}, {}, "", "inner", "directory", id="the innermost vault"),
        pytest.param("A", {"vault.path": "../B"}, {}, "", "b", "vault", id="a vault is named"),
        pytest.param("A", {}, {"MEMEX_VAULT": "../B"}, "", "b", "vault", id="a variable names a vault"),
        pytest.param("A", {}, {"MEMEX_VAULT__PATH": "../B"}, "", "b", "vault", id="as a setting"),
        pytest.param("B", {"vault.path": "../out"}, {}, "b", "config", "vault", id="a vault that is not known"),
        pytest.param("out", {"state": "of-b"}, {}, "", "b", "vault", id="the state folder of a vault"),
        pytest.param("A", {}, {"MEMEX_STATE": "../out/of-b"}, "", "b", "vault", id="and by a variable"),
        pytest.param("A", {"vault.path": "~no-such-user/B"}, {}, "", "config", "vault", id="the home of nobody"),
        pytest.param("A", {"config": "../cfg/memex/b.toml"}, {}, "", "b", "named", id="a file is named"),
        pytest.param("A", {}, {"MEMEX_CONFIG": "../cfg/memex/b.toml"}, "inner", "b", "named", id="by a variable"),
        pytest.param("A", {"config": "../cfg/memex/b.toml", "vault.path": "."}, {}, "", "b", "named", id="both"),
    ],
)
def test_what_is_said_more_closely_wins(home, tmp_path, cwd, flags, variables, chosen, file, reason):
    (tmp_path / "out/of-b").mkdir()
    (tmp_path / "out/of-b/vault").write_text(f"{tmp_path / 'B'}\n")
    if chosen:
        write_choice(home, tmp_path / f"cfg/memex/{chosen}.toml")
    choice = choose_settings_file(flags, home | variables, tmp_path / cwd)
    assert (choice.file.resolve(), choice.reason) == (tmp_path / f"cfg/memex/{file}.toml", reason)


def test_of_two_variables_the_settings_and_their_file_take_the_same_vault(home, tmp_path):
    variables = {"MEMEX_VAULT": "A", "MEMEX_VAULT__PATH": "B"}
    settings = load({}, home | variables, cwd=tmp_path)
    assert (settings.vault.path, settings.file) == (tmp_path / "B", tmp_path / "cfg/memex/b.toml")


def test_a_vault_is_known_by_any_name_of_its_folder(home, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "B")
    assert find_vault_around(known_vaults(home), tmp_path / "link") == tmp_path / "cfg/memex/b.toml"
    settings = load({"vault.path": "link"}, home, cwd=tmp_path)
    assert (settings.file, settings.vault.path) == (tmp_path / "cfg/memex/b.toml", tmp_path / "B")
    (tmp_path / "cfg/memex/config.toml").write_text(f'state = "{tmp_path}/own"\n[vault]\npath = "{tmp_path}/link-a"\n')
    (tmp_path / "link-a").symlink_to(tmp_path / "A")
    assert load({}, home, cwd=tmp_path / "A/deep").state == tmp_path / "own"
    assert load({"vault.path": "A"}, home, cwd=tmp_path).state == tmp_path / "own"


@pytest.mark.parametrize(
    "text",
    [
        "[vault\n",
        "",
        "[vault]\n",
        "vault = 3\n",
        "[vault]\npath = 3\n",
        '[vault]\npath = "a\\u0000b"\n',
        "\xff",
        '[vault]\npath = "~nobody-here/x"\n',
    ],
)
def test_a_settings_file_that_names_no_vault_is_none_of_them(home, tmp_path, text):
    (tmp_path / "cfg/memex/broken.toml").write_bytes(text.encode("latin-1"))
    (tmp_path / "cfg/memex/folder.toml").mkdir()
    assert [vault.file.name for vault in known_vaults(home)] == ["config.toml", "b.toml", "inner.toml"]
    assert choose_settings_file({}, home, tmp_path / "B").file.name == "b.toml"


def test_pipes_among_the_settings_files_are_not_waited_for(home, tmp_path):
    os.mkfifo(tmp_path / "cfg/memex/pipe.toml")
    os.mkfifo(tmp_path / "cfg/memex" / CHOICE)
    assert [vault.file.name for vault in known_vaults(home)] == ["config.toml", "b.toml", "inner.toml"]
    with pytest.raises(InvalidArgument, match="memex use"):
        read_choice(home)


def test_a_folder_behind_a_circle_of_links_is_no_vault(home, tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert choose_settings_file({"vault.path": "circle"}, home, tmp_path).file.name == "config.toml"


def test_without_a_settings_folder_nothing_is_known(tmp_path):
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "none")}
    assert known_vaults(environ) == []
    assert choose_settings_file({}, environ, tmp_path).reason == "default"


@pytest.mark.parametrize("text", ["gone.toml", "../b.toml", "", "b.toml\x00"])
def test_a_choice_that_leads_nowhere_is_told_and_no_other_vault_taken(home, tmp_path, text):
    (tmp_path / "cfg/memex" / CHOICE).write_text(text)
    if not text:
        assert read_choice(home) == ""
        return
    with pytest.raises(InvalidArgument, match="memex use"):
        load({}, home, cwd=tmp_path / "out")
    assert load({}, home, cwd=tmp_path / "B").vault.path == tmp_path / "B"


def test_vaults_of_one_folder_name_are_called_by_their_files():
    one, two, other = (
        KnownVault(Path(path), Path(file))
        for path, file in (("/a/Notes", "config.toml"), ("/b/notes", "n-1.toml"), ("/c", "c.toml"))
    )
    assert [vault_name(vault, [one, two, other]) for vault in (one, two, other)] == ["config", "n-1", "c"]
