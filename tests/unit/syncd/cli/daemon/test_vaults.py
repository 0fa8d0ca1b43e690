"""Vaults are set up after a question, listed, and chosen; a command means the one that its folder lies in."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from index.catalog.catalog import Catalog
from syncd.cli.main import run_command
from syncd.daemon.control_socket import DAEMON
from syncd.settings.known_vaults import default_settings_file, settings_folder
from syncd.settings.settings import load
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import VaultClaim
from tests.support.catalog_rows import document, write
from tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("clean")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two vaults that are set up, and a folder outside in which commands run."""
    (tmp_path / "home").mkdir()
    for name in ("first", "second/deep", "outside"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("first", "second"):
        (tmp_path / name / "Note.md").write_text("about herons")
        assert run_command(["init", str(tmp_path / name)]) == 0
    monkeypatch.chdir(tmp_path / "outside")
    return tmp_path


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def meant(capfd):
    capfd.readouterr()
    assert run_command(["config", "--json"]) == 0
    return next(row["value"] for row in json.loads(capfd.readouterr().out) if row["name"] == "vault.path")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_folder_without_a_note_is_set_up_after_a_question(tmp_path, monkeypatch, capfd):
    (tmp_path / "home").mkdir()
    folder = tmp_path / "Downloads"
    (folder / "deep/.git").mkdir(parents=True)
    (folder / "song.mp3").write_bytes(b"x")
    (folder / "deep/.git/README.md").write_text("no note")
    before = tree(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert run_command(["init", str(folder)]) == 2
    assert "--yes" in capfd.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert run_command(["init", "--create", str(folder)]) == 130
    assert "memex: nothing was changed" in capfd.readouterr().err
    assert tree(tmp_path) == before
    monkeypatch.setattr(sys, "stdin", Terminal("y\nn\nn\n"))
    assert run_command(["init", str(folder)]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run_command(["init", str(folder)]) == 0, "it is set up, so nothing is asked again"


@pytest.mark.parametrize("made", ["Note.md", "deep/er/note.MD", ".obsidian/app.json"])
def test_a_folder_with_a_note_or_of_obsidian_is_set_up_without_a_question(tmp_path, monkeypatch, made):
    (tmp_path / "home").mkdir()
    file = tmp_path / "vault" / made
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run_command(["init", str(tmp_path / "vault")]) == 0


@pytest.mark.parametrize(
    ("variable", "named", "code"),
    [("MEMEX_VAULT", "vault", 0), ("MEMEX_VAULT__PATH", "vault", 0), ("MEMEX_VAULT", "", 2)],
)
def test_a_setup_takes_the_folder_of_a_variable(tmp_path, monkeypatch, variable, named, code):
    (tmp_path / "home").mkdir()
    (tmp_path / "vault/.obsidian").mkdir(parents=True)
    monkeypatch.setenv(variable, str(tmp_path / named) if named else "")
    assert run_command(["init", "--yes"]) == code
    assert (tmp_path / "vault/Captures").exists() == (code == 0)


def test_a_folder_that_is_made_for_it_needs_no_yes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run_command(["init", "--create", str(tmp_path / "new")]) == 0
    (tmp_path / "empty").mkdir()
    assert run_command(["init", "--create", str(tmp_path / "empty")]) == 0


def settings(folder, name):
    """What the settings file of that vault says of Git."""
    found = settings_folder(os.environ).glob("*.toml")
    (file,) = [file for file in found if str(folder / name) in file.read_text()]
    return tomllib.loads(file.read_text()).get("git", {})


def git(folder, *words):
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize(
    ("words", "answers", "commits", "is_made"),
    [
        ([], None, {}, False),
        (["--git", "off"], None, {"commit": False}, False),
        (["--git", "commit"], None, {}, True),
        ([], "n\nn\n", {"commit": False}, False),
        ([], "y\nn\n", {}, True),
        ([], "\n\n", {}, False),
    ],
)
def test_git_is_asked_about_once_and_without_a_terminal_no_repository_is_made(
    tmp_path, monkeypatch, capfd, repository, words, answers, commits, is_made
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Note.md").write_text("mine")
    if repository:
        git(tmp_path / "vault", "init", "-q")
    monkeypatch.setattr(sys, "stdin", io.StringIO() if answers is None else Terminal(answers))
    assert run_command(["init", str(tmp_path / "vault"), *words]) == 0
    told = capfd.readouterr().err
    assert "agents see only the inbox" in told
    assert settings(tmp_path, "vault") == ({} if answers == "n\nn\n" and not repository else commits)
    assert (tmp_path / "vault/.git").exists() is (repository or is_made)
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert run_command(["init", str(tmp_path / "vault")]) == 0, "nothing is asked a second time"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("stdin", [io.StringIO(), Terminal("n\n")])
def test_in_a_subfolder_of_a_repository_memex_says_so_and_does_not_ask_about_git(tmp_path, monkeypatch, capfd, stdin):
    (tmp_path / "repo/notes").mkdir(parents=True)
    (tmp_path / "repo/notes/Note.md").write_text("mine")
    git(tmp_path / "repo", "init", "-q")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run_command(["init", str(tmp_path / "repo/notes")]) == 0
    told = capfd.readouterr().err
    assert f"memex: the vault is a subfolder of the repository at {tmp_path / 'repo'}: " in told
    assert "under Git" not in told
    assert not (tmp_path / "repo/notes/.git").exists()
    assert run_command(["hook", "install", "--vault", str(tmp_path / "repo/notes")]) == 5
    assert "git init" not in capfd.readouterr().err


def test_a_choice_about_git_is_written_into_the_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Note.md").write_text("mine")
    for choice, expected in (("off", {"commit": False}), ("off", {"commit": False}), ("commit", {"commit": True})):
        assert run_command(["init", str(tmp_path / "vault"), "--git", choice]) == 0
        assert settings(tmp_path, "vault") == expected
    file = default_settings_file(os.environ)
    file.write_text(file.read_text().replace("commit = true\n", "quiet_s = 5.0  # mine\n"))
    assert run_command(["init", str(tmp_path / "vault"), "--git", "off"]) == 0
    assert settings(tmp_path, "vault") == {"commit": False, "quiet_s": 5.0}
    assert "# mine" in file.read_text()


@pytest.mark.parametrize("way", ["home", "root", "above", "link to home", "link to root"])
@pytest.mark.parametrize("command", ["init --yes", "serve --vault"])
def test_a_home_folder_and_the_root_are_refused(tmp_path, capfd, monkeypatch, way, command):
    home = tmp_path / "users/home"
    (home / "Notes").mkdir(parents=True)
    (home / "A.md").write_text("a note")
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "h").symlink_to(home)
    (tmp_path / "r").symlink_to("/")
    folder = {
        "home": home,
        "root": "/",
        "above": home.parent,
        "link to home": tmp_path / "h",
        "link to root": tmp_path / "r",
    }[way]
    before = tree(tmp_path)
    assert run_command([*command.split(), str(folder)]) == (2 if command.startswith("init") else 78)
    assert "name the folder that has your notes" in capfd.readouterr().err
    assert tree(tmp_path) == before
    assert not (tmp_path.parent / "Captures").exists()


def test_a_command_means_the_vault_that_its_folder_lies_in(folders, monkeypatch, capfd):
    assert meant(capfd) == str(folders / "first")
    monkeypatch.chdir(folders / "second/deep")
    assert meant(capfd) == str(folders / "second")
    (folders / "door").symlink_to(folders / "second")
    monkeypatch.chdir(folders / "door")
    assert meant(capfd) == str(folders / "second")
    monkeypatch.setenv("MEMEX_VAULT", str(folders / "first"))
    assert meant(capfd) == str(folders / "first")


@pytest.mark.parametrize("name", ["second", "PATH", "PATH/deep", "STEM", "STEM.toml"])
def test_a_vault_is_chosen_by_its_name_its_folder_or_its_file(folders, capfd, name):
    [file] = (folders / "home/config/memex").glob("second-*.toml")
    assert run_command(["use", name.replace("PATH", str(folders / "second")).replace("STEM", file.stem)]) == 0
    assert meant(capfd) == str(folders / "second")
    assert run_command(["use", "first"]) == 0
    assert meant(capfd) == str(folders / "first")


def test_a_vault_that_is_not_known_can_not_be_chosen(folders, capfd):
    assert run_command(["use", "third"]) == 4
    assert "first, second" in capfd.readouterr().err
    assert meant(capfd) == str(folders / "first")


@pytest.mark.parametrize("name", ["third", "", "~third", "third/deep", "Note.md", "n" * 300])
def test_inside_a_vault_a_name_without_a_folder_does_not_choose_that_vault(folders, monkeypatch, capfd, name):
    monkeypatch.chdir(folders / "second")
    assert run_command(["use", name]) == 4
    assert f"no vault {name!r} is set up here. Known vaults: first, second" in capfd.readouterr().err
    monkeypatch.chdir(folders / "outside")
    assert meant(capfd) == str(folders / "first")


def test_the_list_has_every_vault_its_state_and_its_daemon(folders, capfd):
    capfd.readouterr()
    assert run_command(["vaults", "--json"]) == 0
    first, second = rows = json.loads(capfd.readouterr().out)
    assert [row["name"] for row in rows] == ["first", "second"]
    assert (first["path"], second["path"]) == (str(folders / "first"), str(folders / "second"))
    assert [row["meant"] for row in rows] == [True, False]
    assert {row["running"] for row in rows} == {False}
    assert all(os.path.isdir(row["state"]) and os.path.isfile(row["config"]) for row in rows)  # noqa: PTH112, PTH113 - texts
    state = folders / "home/state/memex" / os.path.basename(second["state"])  # noqa: PTH119 - a text
    with ProcessLock.acquire(state):
        (state / DAEMON).write_text(json.dumps({"pid": os.getpid(), "url": "http://127.0.0.1:9"}))
        assert run_command(["vaults", "--json"]) == 0
        row = json.loads(capfd.readouterr().out)[1]
        assert (row["running"], row["pid"], row["url"]) == (True, os.getpid(), "http://127.0.0.1:9")
        assert run_command(["vaults"]) == 0
        assert "serving at http://127.0.0.1:9" in capfd.readouterr().out
    assert run_command(["vaults", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[1]["running"] is False


def test_the_list_shows_the_way_out_of_a_choice_and_of_settings_that_are_wrong(folders, capfd):
    [file] = (folders / "home/config/memex").glob("second-*.toml")
    assert run_command(["use", "second"]) == 0
    file.rename(file.with_name("renamed.toml"))
    assert run_command(["search", "x"]) == 2
    file.with_name("renamed.toml").write_text(f'[vault]\npath = "{folders / "second"}"\n[server]\nport = "x"\n')
    capfd.readouterr()
    assert run_command(["vaults", "--json"]) == 0
    out, err = capfd.readouterr()
    assert "memex use" in err
    assert "server.port" in json.loads(out)[1]["problem"]
    assert run_command(["use", "second"]) == 0
    assert run_command(["use", "first"]) == 0
    assert meant(capfd) == str(folders / "first")


def test_without_a_vault_the_list_says_how_one_is_set_up(tmp_path, capfd):
    assert run_command(["vaults"]) == 0
    assert "memex init" in capfd.readouterr().out


@pytest.mark.slow
def test_a_vault_that_nobody_named_is_named_at_a_terminal(folders):
    def said(*words, where="outside"):
        master, slave = pty.openpty()
        command = [sys.executable, "-m", "syncd.cli", *words]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=slave, env=environ, cwd=folders / where, timeout=60, check=False
        )
        os.close(slave)
        assert done.returncode == 0
        try:
            return os.read(master, 65_536).decode()
        except OSError:
            return ""  # nothing was said
        finally:
            os.close(master)

    assert said("config").count(f"using {folders / 'first'};") == 1
    assert said("config", where="second") == ""
    assert said("config", "--vault", str(folders / "first")) == ""
    assert said("use", "first") == ""
    assert said("config") == ""


@pytest.mark.slow
def test_the_list_is_there_at_once(folders):
    took = []
    for _ in range(3):
        begun = time.process_time(), os.times().children_user + os.times().children_system
        subprocess.run(
            [sys.executable, "-m", "syncd.cli", "vaults"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        )
        took.append(os.times().children_user + os.times().children_system - begun[1])
    assert min(took) < 0.6


@pytest.mark.parametrize(
    "words", [["init", "--yes"], ["status", "--vault"], ["stop", "--vault"]], ids=["init", "status", "stop"]
)
def test_a_vault_that_is_served_with_another_state_folder_is_not_called_new(folders, capfd, words):
    vault, state = folders / "third", folders / "elsewhere"
    vault.mkdir()
    (vault / "Note.md").write_text("about herons")
    claim = VaultClaim(vault)
    claim.require()
    before = tree(folders)
    try:
        assert run_command([*words, str(vault)]) == 5
        assert "with another state folder: name that folder with --state" in capfd.readouterr().err
        assert tree(folders) == before
        assert run_command(["status", "--vault", str(vault), "--state", str(folders / "wrong")]) == 5
        assert "with another state folder: name that folder with --state" in capfd.readouterr().err
        assert run_command(["init", str(vault), "--state", str(state)]) == 0
    finally:
        claim.release()


@pytest.mark.parametrize("inner", ["Captures", "deep", ""])
def test_a_folder_inside_a_vault_is_refused_and_the_vault_again_is_not(folders, capfd, inner):
    before = tree(folders / "second")
    assert run_command(["init", str(folders / "second" / inner)]) == (2 if inner else 0)
    advice = capfd.readouterr().err
    assert (f"inside the vault {folders / 'second'}" in advice) == bool(inner)
    assert not inner or any(str(file) in advice for file in settings_folder(os.environ).glob("*.toml"))
    assert tree(folders / "second") == before


def test_a_folder_that_was_never_set_up_is_not_served(folders, capfd):
    (folders / "third").mkdir()
    before = tree(folders)
    assert run_command(["serve", "--vault", str(folders / "third")]) == 69
    assert f"run `memex init {folders / 'third'}`" in capfd.readouterr().err
    assert tree(folders) == before


@pytest.mark.parametrize(("option", "code"), [("--state", 4), ("--vault", 4), (None, 0)])
def test_a_stop_of_an_unknown_vault_is_refused(folders, capfd, option, code):
    words = [option, str(folders / "typo")] if option else []
    assert run_command(["stop", *words]) == code
    shown = "".join(capfd.readouterr())
    assert ("typo" in shown) == bool(option)
    assert ("no daemon runs for" in shown) == (option is None)


def test_a_vault_that_was_moved_is_not_set_up_as_a_new_one(folders, capfd):
    moved, known = folders / "renamed", settings_folder(os.environ)
    (folders / "first").rename(moved)
    before = tree(folders)
    assert run_command(["init", str(moved), "--yes"]) == 5
    advice = capfd.readouterr().err
    assert (
        f"write its new folder into {known / 'config.toml'} as vault.path, and above [vault] the line state = "
        in advice
    )
    assert f"`memex init {moved} --state FOLDER`" in advice
    assert tree(folders) == before
    (folders / "third").mkdir()
    (folders / "third/Note.md").write_text("about herons")
    assert run_command(["init", str(folders / "third"), "--yes"]) == 0, "it has no inbox, so it was no vault"
    assert run_command(["init", str(folders / "second")]) == 0, "it is known"
    assert run_command(["init", str(moved), "--state", str(folders / "state")]) == 0


@pytest.mark.parametrize("is_template", [True, False])
def test_only_a_folder_with_most_notes_of_a_missing_vault_is_taken_for_it(folders, capfd, is_template):
    missing = load({"config": str(default_settings_file(os.environ))}, os.environ)
    build = missing.state / "index/build-1"
    build.mkdir(parents=True)
    build.with_name("current").write_text(build.name)
    for name, paths in {"vault": ["Note.md", "Other.md"], "captures": ["Captures/default/A.md"]}.items():
        catalog = Catalog(build / f"{name}.db")
        write(catalog, *(document(path) for path in paths))
        catalog.close()
    missing.vault.path.rename(folders / "unmounted")
    copy, settings_file = folders / "a copy", folders / "copy.toml"
    for path in ["Note.md", "Captures/default/A.md"][is_template:]:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text("about herons")
    assert run_command(["init", str(copy), "--config", str(settings_file)]) == (0 if is_template else 5)
    assert is_template or f"`memex --config {settings_file} init '{copy}' --state FOLDER`" in capfd.readouterr().err


@pytest.mark.parametrize("left", ["nothing", "a state folder that another vault took over"])
def test_a_missing_vault_without_keys_stops_no_new_vault(folders, left):
    state = next((folders / "home/state/memex").glob("first-*"))
    shutil.rmtree(folders / "first")
    if left == "nothing":
        shutil.rmtree(state)
    else:
        (folders / "third/Captures").mkdir(parents=True)
        assert run_command(["init", "--yes", str(folders / "third"), "--state", str(state)]) == 0
    (folders / "fourth/Captures").mkdir(parents=True)
    assert run_command(["init", "--yes", str(folders / "fourth")]) == 0


@pytest.mark.slow
def test_a_vault_that_was_moved_keeps_its_state_and_its_settings_file(folders, capfd):
    assert run_command(["config", "--json", "--vault", str(folders / "first")]) == 0
    state = next(row["value"] for row in json.loads(capfd.readouterr().out) if row["name"] == "state")
    key, files = (Path(state) / "key").read_text(), tree(settings_folder(os.environ))
    (folders / "first").rename(folders / "renamed")
    assert run_command(["status"]) == 4
    advice = capfd.readouterr().err
    file = settings_folder(os.environ) / "config.toml"
    assert f"write its new folder into {file} as vault.path, and above [vault] the line state = " in advice
    assert "--create" not in advice
    text = file.read_text().replace(str(folders / "first"), str(folders / "renamed"))
    file.write_text(f'state = "{state}"\n{text}[git]\npast_days = 7\n')
    assert run_command(["recent"]) == 0
    assert meant(capfd) == str(folders / "renamed")
    assert (Path(state) / "key").read_text() == key
    assert tree(settings_folder(os.environ)) == files
    assert run_command(["vaults", "--json"]) == 0
    assert not any(row["problem"] for row in json.loads(capfd.readouterr().out))


def test_the_doctor_names_settings_to_correct_only_where_some_are_wrong(tmp_path, monkeypatch, capfd):
    assert run_command(["doctor", "--json"]) == 7
    (look,) = json.loads(capfd.readouterr().out)["findings"]
    assert "memex init VAULT" in look["says"]
    assert look["mend"] == ""
    monkeypatch.setenv("MEMEX_SERVER__PORT", "x")
    assert run_command(["doctor", "--json"]) == 7
    (look,) = json.loads(capfd.readouterr().out)["findings"]
    assert look["mend"].startswith("correct the settings named above")


def test_the_doctor_sets_a_vault_up_with_the_state_folder_that_was_named(folders, capfd):
    state = folders / "no state"
    assert run_command(["doctor", "--json", "--vault", str(folders / "first"), "--state", str(state)]) == 7
    looks = {look["check"]: look["mend"] for look in json.loads(capfd.readouterr().out)["findings"]}
    assert looks["state"] == f"memex init {folders / 'first'} --state '{state}'"
