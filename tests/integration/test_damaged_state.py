"""Whatever becomes of a file of the state folder, one command leads out, the message names it, and no bytes are lost."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from index.errors import MemexError
from syncd.app import App
from syncd.cli.doctor import state_checks
from syncd.cli.doctor.doctor import examine
from syncd.cli.main import run_command
from syncd.installation.vault_setup import set_up_vault
from syncd.jobs.staged_files import StagedFiles
from tests.support.fakes import fake_embedder
from tests.support.world import settings_of

NOW = 1_700_000_000_000
BUILD = "index/BUILD"
FILES = (
    *("lock", "vault", "head", "ledger.db", "ledger.db-wal", "ledger.db-shm", "audit.head", "audit.done", "key"),
    *("deep_check.json", "hook-secret", "daemon.json", "control.sock", "control.token", "index/current"),
    *(f"{BUILD}/made.json", f"{BUILD}/captures.db", f"{BUILD}/vault.db"),
)
FOLDERS = (
    *("bells", "commit", "index", "models", "past", "staged", "uploads", BUILD),
    *(f"{BUILD}/captures.lance", f"{BUILD}/vault.lance", f"{BUILD}/captures.lance/chunks.lance"),
)
OF_FILE = ("missing", "empty", "cut", "flipped", "folder", "link", "dangling", "pipe")
OF_FOLDER = ("missing", "file", "link", "dangling")
# A ledger that SQLite can read, but Memex can't use: a wrong schema version, a table that is gone, another database.
OF_LEDGER = ("version 0", "version 12", "version 318767104", "no keys", "a catalog")
TABLE = (
    [("ledger.db", how) for how in OF_LEDGER]
    + [(name, how) for name in FILES for how in OF_FILE]
    + [(name, how) for name in FOLDERS for how in OF_FOLDER]
)
# One of each kind of damage that has a way out of its own; all of them take a minute.
SOME = [
    ("ledger.db", "flipped"),
    ("ledger.db", "folder"),
    ("ledger.db", "version 0"),
    ("ledger.db", "no keys"),
    ("ledger.db-wal", "dangling"),
    ("audit.head", "link"),
    ("lock", "folder"),
    ("vault", "cut"),
    ("key", "folder"),
    ("staged", "file"),
    ("index/current", "folder"),
    (f"{BUILD}/captures.lance/chunks.lance", "file"),
]
ROWS = [pytest.param(*row, marks=() if row in SOME else pytest.mark.slow, id=" ".join(row)) for row in TABLE]


def serve(settings, **extra):
    """Start on the state folder as a daemon does, capture, search; what is degraded."""
    set_up_vault(settings, now=NOW)
    with App(settings, embedder=fake_embedder()) as app, ExitStack() as running:
        app._start_parts(running)
        assert app.opened.sync.ready.wait(60)
        capture = {"content": "a kingfisher at the weir", "workspace": "default", **extra}
        app.operations["capture"](capture, lambda _: None)
        for word in ("heron", "kingfisher"):
            assert app.operations["search"]({"query": word, "scope": "all"}, lambda _: None)["hits"]
        assert app.opened.keys.authenticate((settings.state / "key").read_text().strip(), now=NOW)
        return app.health.degraded()


@pytest.fixture(scope="module")
def well(tmp_path_factory):
    """A vault and its state folder, after a day of work."""
    folder = tmp_path_factory.mktemp("well")
    (folder / "vault/Captures/default").mkdir(parents=True)
    (folder / "vault/A.md").write_text("# A\n\na heron in the reeds")
    assert serve(settings_of(folder / "vault", folder / "state")) == []
    return folder


@pytest.fixture
def settings(well, tmp_path):
    shutil.copytree(well, tmp_path, dirs_exist_ok=True, symlinks=True)
    (tmp_path / "state/vault").write_text(f"{tmp_path / 'vault'}\n")
    return settings_of(tmp_path / "vault", tmp_path / "state")


def damage_ledger(path: Path, how: str) -> None:
    if how == "a catalog":
        shutil.copyfile(next(path.parent.glob("index/*/captures.db")), path)
        return
    with contextlib.closing(sqlite3.connect(path)) as ledger:
        ledger.execute(
            "DROP TABLE keys" if how == "no keys" else f"PRAGMA user_version = {how.removeprefix('version ')}"
        )


def damage(path: Path, how: str) -> None:
    if how in OF_LEDGER:
        damage_ledger(path, how)
        return
    path.parent.mkdir(exist_ok=True)
    raw = path.read_bytes() if path.is_file() else b"something of long ago"
    away = path.with_name(f"elsewhere-{path.name}")
    if path.is_dir():
        path.rename(away)
    path.unlink(missing_ok=True)
    match how:
        case "empty":
            path.write_bytes(b"")
        case "cut" | "file":
            path.write_bytes(raw[: len(raw) // 2])
        case "flipped":
            path.write_bytes(bytes(byte ^ 0xA5 for byte in raw))
        case "folder":
            path.mkdir()
            (path / "x").write_bytes(raw)
        case "link":
            if not away.exists():
                away.write_bytes(raw)
            path.symlink_to(away)
        case "dangling":
            path.symlink_to(path.parent / "nowhere")
        case "pipe":
            os.mkfifo(path)
    if path.is_file() and not path.is_symlink():
        path.chmod(0o600)


def follow(sentence: str, settings) -> str:
    """Carry out the command that a message names."""
    commands = [shlex.split(command) for command in re.findall(r"`(memex [^`]+)`", sentence) if "BACKUP" not in command]
    assert commands, f"no command in: {sentence}"
    named = ["--vault", str(settings.vault.path), "--state", str(settings.state)]
    if commands[0] == ["memex", "doctor", "--fix"]:  # without its look at the model and the machine
        list(examine(settings, {}, [state_checks.check_state], fix=True))
    else:
        assert run_command([*commands[0][1:], *named]) == 0
    return " ".join(commands[0])


def all_bytes(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "how"), ROWS)
def test_one_command_leads_out_and_the_message_names_it(settings, name, how):
    build = (settings.state / "index/current").read_text().strip()
    path = settings.state / name.replace("BUILD", build)
    damage(path, how)
    kept = {path.read_bytes()} if path.is_file() and not name.startswith(("index", "control", "daemon")) else set()
    try:
        degraded = serve(settings)
    except MemexError as error:
        assert not error.retryable, "a service would be started for ever"
        follow(error.message, settings)
        assert kept <= all_bytes(settings.state)
        degraded = serve(settings, content="another kingfisher")
    for sentence in degraded:
        assert re.search("memex |built anew|read again", sentence), sentence


def test_files_of_a_queue_that_is_lost_are_kept(settings, capfd):
    staged = StagedFiles(settings.state / "staged")
    staged.folder.mkdir(exist_ok=True)
    (staged.folder / "f00").write_bytes(b"acknowledged, and no document yet")
    ledger = settings.state / "ledger.db"
    ledger.write_bytes(ledger.read_bytes()[:5000])
    named = ["--vault", str(settings.vault.path), "--state", str(settings.state)]
    assert run_command(["key", "reset", "--yes", *named]) == 0
    out = capfd.readouterr().out
    assert re.search(r"the damaged file is kept in .*/ledger\.db\.damaged-", out)
    [kept] = settings.state.glob("staged.damaged-*")
    assert [file.read_bytes() for file in kept.iterdir()] == [b"acknowledged, and no document yet"]
    assert serve(settings) == []


@pytest.mark.parametrize("how", ["folder", "link", "flipped", "version 0", "no keys", "a catalog"])
def test_a_backup_takes_the_place_of_whatever_the_ledger_became(settings, tmp_path_factory, how):
    backup = str(tmp_path_factory.mktemp("backup") / "backup.tar.gz")
    named = ["--vault", str(settings.vault.path), "--state", str(settings.state)]
    key = (settings.state / "key").read_text()
    assert run_command(["backup", backup, *named]) == 0
    damage(settings.state / "ledger.db", how)
    assert run_command(["restore", backup, "--force", *named]) == 0
    assert serve(settings) == []
    assert (settings.state / "key").read_text() == key
