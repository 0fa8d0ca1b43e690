"""Define the commands `backup` and `restore`, which save and put back what is not in the vault."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from index.errors import Conflict, InvalidArgument
from syncd.cli.framework.commands import Command, flags, load_settings, now, print_answer, set_flag, show_progress
from syncd.cli.terminal import result_text
from syncd.settings.known_vaults import choose_settings_file
from syncd.settings.settings import NO_VAULT, Settings
from syncd.state.folder import claim, default_state_folder
from syncd.version import installed

if TYPE_CHECKING:
    from syncd.installation.backup import ArchiveContents

# ruff: noqa: PLC0415 - SQLite takes longer to import than most commands to run


@click.command(cls=Command)
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: str | None, force: bool) -> None:
    """Write what can't be made again into FILE, a .tar.gz that only you can read; the daemon may run meanwhile.

    In it: the ledger with the keys' hashes, your own key, the settings, and whatever else the state folder holds that is
    not derived. Not in it: the notes, captures included, which are files that Git or any backup of files keeps; and the
    index, which is made from them. Keep the archive as safe as a password. Without FILE it is memex-VAULT-TIME.tar.gz in
    the current folder."""
    from syncd.installation.backup import check_target, pack

    chosen = load_settings()
    name = f"memex-{chosen.vault.path.name}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz"
    target = Path(file or name).expanduser().absolute()
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
            now=now(),
            progress=progress,
        )
    size = target.stat().st_size
    result = {"file": str(target), "bytes": size, "files": sorted(made.files)}
    print_answer(result, lambda: f"{target}  ({len(made.files)} files, {size:,} bytes; your notes are not in it)")


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--force", is_flag=True, help="Replace the keys and the ledger that are there; they are kept in replaced.tar.gz."
)
def restore(file: str, force: bool) -> None:
    """Put back what `memex backup` wrote into FILE, here or on another machine; the daemon must not run.

    Without --vault, and where no settings name a vault, it is put back for the vault of the backup. A settings file is
    written where there is none, and led to where the vault is now. Every digest is checked first: of an archive that is
    damaged, cut or hostile nothing is taken. Afterwards all keys work again, and `memex serve` builds the index anew."""
    from syncd.installation import backup as archives
    from syncd.state.damage import set_ledger_aside
    from syncd.state.process_lock import ProcessLock

    with tempfile.TemporaryDirectory(prefix="memex-restore-") as unpacked:
        folder = Path(unpacked)
        with show_progress() as progress:
            contents = archives.unpack(Path(file).expanduser().absolute(), folder, progress)
        archives.check_ledger(folder)
        chosen = _target_settings(contents)
        archives.check_replaceable(chosen.state, force=force)
        claim(chosen.state, chosen.vault.path)
        with ProcessLock.acquire(chosen.state):
            archives.check_replaceable(chosen.state, force=force)  # somebody may have been quicker
            ledger = chosen.state / "ledger.db"
            if ledger.is_symlink() or ledger.is_dir():
                set_ledger_aside(chosen.state)
            if ledger.exists():
                _pack_replaced_state(chosen, chosen.state / archives.REPLACED)
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
    }
    print_answer(result, lambda: _format_restored(chosen, contents, names, written))


def _pack_replaced_state(chosen: Settings, archive: Path) -> None:
    """Pack the state that the restored one replaces, whatever is wrong with it."""
    from syncd.installation.backup import pack

    vault = chosen.vault.path
    pack(chosen.state, archive, vault=vault, settings=None, version=installed(), now=now(), damaged=True)


def _target_settings(contents: ArchiveContents) -> Settings:
    """The settings in force; where none names a vault, those for the vault of the backup."""
    try:
        return load_settings()
    except InvalidArgument as error:
        if error.message != NO_VAULT:
            raise
    set_flag("vault.path", contents.vault)
    return load_settings()


def _write_settings(text: str | None) -> Path | None:
    """The settings file that was written; None where there is one, or the backup has none that fits."""
    from syncd.state.folder import write_private

    file = choose_settings_file(flags(), os.environ, Path.cwd()).file
    if text is None or file.exists():
        return None
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, text)
    return file


def _format_restored(chosen: Settings, contents: ArchiveContents, names: list[str], written: Path | None) -> str:
    at = result_text.format_time(contents.made_at, None)
    lines = [f"put back {len(names)} files of {at} (Memex {contents.version}) into {chosen.state}"]
    if written:
        lines.append(f"wrote the settings to {written}")
    elif "settings.toml" in contents.files:
        lines.append("settings were left as they are; those of the backup: tar xzOf FILE settings.toml")
    if not chosen.vault.path.is_dir():
        lines.append(f"the vault is not at {chosen.vault.path} yet: put your notes there, or name it with --vault")
    return "\n".join([*lines, "next: memex serve; the index is built from the notes"])
