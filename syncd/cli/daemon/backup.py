"""Define the commands `backup` and `restore`, which save and restore the data that is not in the vault."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from index.errors import Conflict, InvalidArgument
from index.timings import now_ms
from syncd.cli.framework.commands import Command, flags, load_settings, print_answer, set_flag, show_progress
from syncd.cli.terminal import result_text
from syncd.clients.daemon_address import OPTIONS
from syncd.settings.known_vaults import choose_settings_file
from syncd.settings.settings import NO_VAULT, Settings
from syncd.state.folder import claim, default_state_folder, expand_home
from syncd.version import installed

if TYPE_CHECKING:
    from syncd.installation.backup import ArchiveContents

# ruff: noqa: PLC0415 - SQLite takes longer to import than most commands to run


@click.command(cls=Command)
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: str | None, force: bool) -> None:
    """Back up the state that can't be rebuilt to FILE, a .tar.gz that only you can read; the daemon may keep running.

    The archive contains the ledger with the hashes of the keys, your own key, the settings, and every other file of the
    state folder that Memex can't derive again. It contains no notes and no captures (back them up with Git or as files), no
    index (Memex rebuilds it), and no overwritten or deleted versions, which may hold a secret. Keep the archive as safe as a
    password. The default FILE is memex-VAULT-TIME.tar.gz in the current folder."""
    from syncd.installation.backup import check_target, pack

    chosen = load_settings()
    name = f"memex-{chosen.vault.path.name}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz"
    target = expand_home(file or name).absolute()
    check_target(target, chosen.vault.path)
    if target.exists() and not force:
        raise Conflict(f"{target} exists: choose another name, or pass --force")
    with show_progress() as progress:
        made = pack(
            chosen.state,
            target,
            vault=chosen.vault.path,
            settings=chosen.file,
            version=installed(),
            now=now_ms(),
            progress=progress,
        )
    size = target.stat().st_size
    result = {"file": str(target), "bytes": size, "files": sorted(made.files)}
    print_answer(result, lambda: f"{target}  ({len(made.files)} files, {size:,} bytes; your notes are not in it)")


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--force",
    is_flag=True,
    help="Replace the existing keys and ledger, after saving them to a new archive in the state folder.",
)
def restore(file: str, force: bool) -> None:
    """Restore the state from FILE, an archive of `memex backup`, on this or another machine; the daemon must not run.

    If neither --vault nor the settings name a vault, the vault of the backup is used. If there is no settings file, one is
    written with the present path of the vault. Memex checks every digest first, and restores nothing from a damaged,
    truncated or malicious archive. Afterwards all keys of the backup work, and `memex serve` rebuilds the index."""
    from syncd.installation import backup as archives
    from syncd.state.damage import set_ledger_aside
    from syncd.state.process_lock import ProcessLock

    with tempfile.TemporaryDirectory(prefix="memex-restore-") as unpacked:
        folder = Path(unpacked)
        with show_progress() as progress:
            contents = archives.unpack(expand_home(file).absolute(), folder, progress)
        archives.check_ledger(folder)
        chosen = _target_settings(contents)
        archives.check_replaceable(chosen.state, force=force)
        claim(chosen.state, chosen.vault.path)
        with ProcessLock.acquire(chosen.state):
            # Another process may have written it since the first check.
            archives.check_replaceable(chosen.state, force=force)
            ledger = chosen.state / "ledger.db"
            if ledger.is_symlink() or ledger.is_dir():
                set_ledger_aside(chosen.state)
            replaced = _pack_replaced_state(chosen) if ledger.exists() else None
            names = archives.restore_files(folder, chosen.state, contents)
        text = (folder / archives.SETTINGS).read_text(encoding="utf-8") if archives.SETTINGS in contents.files else None
        usual = default_state_folder(chosen.vault.path, os.environ)
        state = None if chosen.state == usual else chosen.state
        made = None if text is None else archives.relocate_settings(text, vault=chosen.vault.path, state=state)
        written = _write_settings(made)
    result = {
        "vault": str(chosen.vault.path),
        "state": str(chosen.state),
        "files": names,
        "settings": written and str(written),
        "replaced": replaced and str(replaced),
    }
    print_answer(result, lambda: _format_restored(chosen, contents, result))


def _pack_replaced_state(chosen: Settings) -> Path:
    """Pack the state that the restore replaces, even if it is damaged, and return the path of the archive."""
    from syncd.installation.backup import free_replaced_path, pack

    archive, vault = free_replaced_path(chosen.state), chosen.vault.path
    pack(chosen.state, archive, vault=vault, settings=None, version=installed(), now=now_ms(), damaged=True)
    return archive


def _target_settings(contents: ArchiveContents) -> Settings:
    """Return the settings in force; if they name no vault, the settings for the vault of the backup."""
    try:
        return load_settings()
    except InvalidArgument as error:
        if error.message != NO_VAULT:
            raise
    set_flag("vault.path", contents.vault)
    return load_settings()


def _write_settings(text: str | None) -> Path | None:
    """Write the settings file and return its path; None if there is one already, or the backup has no usable settings."""
    from syncd.state.folder import write_private

    file = choose_settings_file(flags(), os.environ, Path.cwd()).file
    if text is None or file.exists():
        return None
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, text)
    return file


def _format_restored(chosen: Settings, contents: ArchiveContents, result: Mapping[str, Any]) -> str:
    at = result_text.format_time(contents.made_at, None)
    lines = [f"restored {len(result['files'])} files of {at} (Memex {contents.version}) to {chosen.state}"]
    if result["replaced"]:
        lines.append(f"saved the replaced state to {result['replaced']}")
    if result["settings"]:
        lines.append(f"wrote the settings to {result['settings']}")
    elif "settings.toml" in contents.files:
        lines.append("settings unchanged; to print the settings of the backup: tar xzOf FILE settings.toml")
    if not chosen.vault.path.is_dir():
        lines.append(
            f"the vault is missing at {chosen.vault.path}: put your notes there, or name another folder with --vault"
        )
    options = [f"{option}={flags()[name]}" for option, name in OPTIONS.items() if name in flags()]
    serve = shlex.join(["memex", "serve", *options])
    return "\n".join([*lines, f"next: {serve} (it rebuilds the index from the notes)"])
