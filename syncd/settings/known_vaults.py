"""Find the settings file of the vault on which a command works, among the known vaults.

A vault is known if a file in the folder of settings files names it. Law, tested: Memex takes the first of these: a
named settings file (`--config`, `MEMEX_CONFIG`) or vault, the vault of the working directory, the choice of `memex
use`, the file `config.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from index.errors import InvalidArgument
from syncd.state.folder import expand_home, read_regular_file, read_vault_path, write_private

CHOICE = "chosen-vault"  # file in the folder of settings files; it contains the name of the file that `memex use` chose
VAULT_VARIABLES = "MEMEX_VAULT__PATH", "MEMEX_VAULT"
Reason: TypeAlias = Literal["named", "vault", "directory", "choice", "default"]


@dataclass(frozen=True, slots=True)
class SettingsChoice:
    """Holds the chosen settings file, and the reason for the choice."""

    file: Path
    reason: Reason


@dataclass(frozen=True, slots=True)
class KnownVault:
    """Holds a vault's path, and the settings file that names it."""

    path: Path
    file: Path


def settings_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of settings files."""
    return expand_home(environ.get("XDG_CONFIG_HOME") or "~/.config") / "memex"


def default_settings_file(environ: Mapping[str, str]) -> Path:
    """Return the default settings file, which the first vault uses."""
    return settings_folder(environ) / "config.toml"


def choose_settings_file(flags: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> SettingsChoice:
    """Choose the settings file of a command by its flags, its environment and its working directory.

    Raises InvalidArgument if the choice of `memex use` can't be read or its file is missing."""
    if named := flags.get("config") or environ.get("MEMEX_CONFIG"):
        return SettingsChoice(cwd / expand_home(named), "named")
    default = default_settings_file(environ)
    vaults = known_vaults(environ)
    vault = _named_vault(flags, environ, cwd)
    if vault is not None:
        return SettingsChoice(find_vault(vaults, vault) or default, "vault")
    if file := find_vault_around(vaults, cwd):
        return SettingsChoice(file, "directory")
    if name := read_choice(environ):
        return SettingsChoice(settings_folder(environ) / name, "choice")
    return SettingsChoice(default, "default")


def known_vaults(environ: Mapping[str, str]) -> list[KnownVault]:
    """Return the vaults that settings files name, the default one first; unreadable files are skipped."""
    default = default_settings_file(environ)
    files = sorted(settings_folder(environ).glob("*.toml"), key=lambda file: (file != default, file.name))
    return [KnownVault(path, file) for file in files if (path := _vault_of(file)) is not None]


def find_vault(vaults: Sequence[KnownVault], path: Path) -> Path | None:
    """Return the settings file of the vault at `path`, with symbolic links resolved; None if it is not known."""
    return next((vault.file for vault in vaults if is_same_folder(vault.path, path)), None)


def find_vault_around(vaults: Sequence[KnownVault], folder: Path) -> Path | None:
    """Return the settings file of the innermost vault that contains `folder`; None if no vault does."""
    around = [vault for vault in vaults if _real(folder).is_relative_to(_real(vault.path))]
    innermost = max(around, key=lambda vault: len(_real(vault.path).parts), default=None)
    return innermost.file if innermost else None


def vault_name(vault: KnownVault, vaults: Sequence[KnownVault]) -> str:
    """Return a vault's name for people: its folder's name, or its settings file's if several folders have that name."""
    same = [other for other in vaults if other.path.name.casefold() == vault.path.name.casefold()]
    return vault.path.name if len(same) == 1 else vault.file.stem


def read_choice(environ: Mapping[str, str]) -> str:
    """Return the name of the settings file that `memex use` chose; "" when none was chosen.

    Raises InvalidArgument if the choice can't be read or its file is missing."""
    try:
        name = read_regular_file(settings_folder(environ) / CHOICE).decode().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"{settings_folder(environ) / CHOICE} can't be read ({error}): run `memex use VAULT`"
        ) from None
    if name and (name != Path(name).name or not (settings_folder(environ) / name).is_file()):
        raise InvalidArgument(
            f"`memex use` chose the settings file {name}, which no longer exists: `memex vaults` lists the vaults, `memex use` chooses"
        )
    return name


def write_choice(environ: Mapping[str, str], file: Path) -> None:
    """Make the vault of this settings file the choice for commands outside all vaults."""
    write_private(settings_folder(environ) / CHOICE, file.name + "\n")


def vault_variable(environ: Mapping[str, str]) -> str:
    """Return the vault that a variable names; "" if none does. The first variable wins, as in the loading of the settings."""
    return next(filter(None, map(environ.get, VAULT_VARIABLES)), "")


def _named_vault(flags: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the vault that a flag or a variable names, directly or through its state folder; None if none does."""
    if named := flags.get("vault.path") or vault_variable(environ):
        return cwd / expand_home(named)
    state = flags.get("state") or environ.get("MEMEX_STATE")
    return read_vault_path(cwd / expand_home(state)) if state else None


def _vault_of(file: Path) -> Path | None:
    """Return the vault that a settings file names; None if it names none or can't be read."""
    try:
        path = tomllib.loads(read_regular_file(file).decode())["vault"]["path"]
        return None if "\0" in path else file.parent / Path(path).expanduser()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def is_same_folder(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same folder."""
    return path == other or _real(path) == _real(other)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve() raises an error for cyclic links
