"""Define the commands that set up, list and choose vaults: `init`, `vaults` and `use`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument, MemexError, NotFound
from syncd.cli.clients.client_formats import connect_text
from syncd.cli.daemon.serve import put_under_git
from syncd.cli.framework.arguments import YES, confirm
from syncd.cli.framework.commands import (
    Command,
    flags,
    has_color,
    load_settings,
    now,
    print_answer,
    print_message,
    set_flag,
    show_elapsed,
)
from syncd.cli.framework.completion import vaults as vault_names
from syncd.cli.framework.daemon_address import memex_command
from syncd.cli.terminal import result_text
from syncd.daemon.control_socket import DAEMON
from syncd.settings.known_vaults import (
    KnownVault,
    choose_settings_file,
    find_vault,
    find_vault_around,
    known_vaults,
    settings_folder,
    vault_name,
    write_choice,
)
from syncd.settings.settings import Settings, load
from syncd.state import process_lock
from syncd.state.folder import read_vault_path

# ruff: noqa: PLC0415 - what sets a vault up takes longer to import than most commands to run
OTHER_SETTINGS = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")  # variables that don't name one vault


@click.command(cls=Command)
@click.argument("folder", metavar="VAULT", required=False, type=click.Path(file_okay=False))
@click.option(
    "--git",
    type=click.Choice(["commit", "off"]),
    is_flag=False,
    flag_value="commit",
    help="Let Memex commit what it writes (the folder is put under Git if it is not), or leave commits to you.",
)
@click.option("--create", is_flag=True, help="Make the folder if it is missing.")
@click.option(
    "--welcome/--no-welcome",
    default=None,
    help="Whether a new inbox gets one welcome capture, which a first search finds.",
)
@YES
def init(folder: str | None, git: str | None, create: bool, welcome: bool | None, yes: bool) -> None:
    """Set up the folder VAULT for Memex: the inbox, a state folder, your key. No note of yours is changed.

    It says what it does, and asks about Git and the welcome capture. With --yes or without a terminal it asks nothing: then
    Memex commits what it writes where VAULT is a Git repository, makes no repository, and writes the welcome capture. A folder
    in which there is no note and which Obsidian has never opened is set up after a question, or with --yes. Your home folder
    and the root of the file system are refused."""
    from syncd.installation.vault_setup import ensure_settings_file, refuse_home, set_up_vault, write_git_choice

    set_flag("vault.path", folder)
    if "vault.path" not in flags() and "MEMEX_VAULT" not in os.environ:
        raise InvalidArgument("which folder? `memex init VAULT`")
    named = flags().get("config") or os.environ.get("MEMEX_CONFIG")
    if named and not Path(named).expanduser().exists():
        without = {name: value for name, value in os.environ.items() if name != "MEMEX_CONFIG"}
        chosen = load({name: value for name, value in flags().items() if name != "config"}, without)
    else:
        chosen = load_settings()
    refuse_home(chosen.vault.path)
    _confirm_folder(chosen, create=create, yes=yes)
    if create:
        chosen.vault.path.mkdir(parents=True, exist_ok=True)
    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    is_new = chosen.vault.path.is_dir() and not (chosen.vault.path / chosen.vault.inbox).exists()
    if is_new:
        _print_plan(chosen)
    commits = _choose_git(chosen, git, asks=asks) if is_new or git else None
    if is_new and welcome is None and asks:
        welcome = click.confirm(
            "Write one welcome capture, so that a first search has an answer?", default=True, err=True
        )
    key_file = set_up_vault(chosen, now=now(), again=True, welcome=welcome is not False)
    if commits:
        with show_elapsed("committing your notes"):
            put_under_git(chosen.vault.path)
    file, usual = ensure_settings_file(chosen, named, os.environ)
    if commits is not None:
        write_git_choice(file, commit=commits)
    made = {"vault": str(chosen.vault.path), "state": str(chosen.state), "config": str(file), "key_file": str(key_file)}
    print_answer(made, lambda: _format_init(chosen, file, key_file, usual=usual and not named))


@click.command(cls=Command)
def vaults() -> None:
    """List the vaults that are set up here, and which of them a command means.

    A command means the vault that --vault, --state or --config names; else the one whose folder it runs in; else the one
    that `memex use` chose; else that of ~/.config/memex/config.toml. The star marks it. With --json: [{"name", "path",
    "config", "state", "running", "pid", "url", "meant", "problem"}]."""
    rows = list_vaults()
    print_answer(rows, lambda: _format_vaults(rows))


@click.command(cls=Command)
@click.argument("vault", metavar="VAULT|NAME", shell_complete=vault_names)
def use(vault: str) -> None:
    """Let commands mean this vault, where they run in the folder of none and name none.

    VAULT is its folder, NAME what `memex vaults` calls it."""
    known = _find_known(vault)
    write_choice(os.environ, known.file)
    meant = find_vault_around(known_vaults(os.environ), Path.cwd())
    if meant not in (None, known.file):
        print_message("memex: in this folder, commands go on to mean the vault that it lies in")
    row = {"name": vault_name(known, known_vaults(os.environ)), "path": str(known.path), "config": str(known.file)}
    print_answer(row, lambda: f"commands now mean {result_text.line(str(known.path), 300)}")


def list_vaults() -> list[dict[str, Any]]:
    """The known vaults: where each lies, whether its daemon runs, and whether a command here means it."""
    known = known_vaults(os.environ)
    try:
        meant = choose_settings_file(flags(), os.environ, Path.cwd()).file
    except InvalidArgument as error:  # the choice leads nowhere, and this command shows the way out
        print_message(f"memex: {error.message}")
        meant = None
    calm = {name: value for name, value in os.environ.items() if name in OTHER_SETTINGS}
    rows = []
    for vault in known:
        row: dict[str, Any] = {"name": vault_name(vault, known), "path": str(vault.path), "config": str(vault.file)}
        try:
            state = load({"config": str(vault.file)}, calm).state
        except MemexError as error:
            row |= {"state": None, "running": False, "pid": None, "url": None}
            problem = error.message
        else:
            row |= {"state": str(state), **_read_daemon(state)}
            problem = "" if vault.path.is_dir() else "the folder is not there"
        rows.append(row | {"meant": vault.file == meant, "problem": problem})
    return rows


def _read_daemon(state: Path) -> dict[str, Any]:
    """Whether a daemon runs for a state folder, by its lock and what the daemon has written down."""
    pid = process_lock.holder_pid(state)
    try:
        noted = json.loads((state / DAEMON).read_text())
        running = pid is not None and noted["pid"] == pid
        return {"running": running, "pid": pid if running else None, "url": str(noted["url"]) if running else None}
    except (OSError, ValueError, KeyError, TypeError):
        return {"running": False, "pid": None, "url": None}


def _find_known(text: str) -> KnownVault:
    """The known vault that a person names: by its name, its settings file, its folder or one in it."""
    known = known_vaults(os.environ)
    names = ", ".join(vault_name(vault, known) for vault in known) or "none"
    named = [vault for vault in known if text in (vault_name(vault, known), vault.file.name, vault.file.stem)]
    if not named:
        folder = Path.cwd() / Path(text).expanduser()
        file = find_vault(known, folder) or find_vault_around(known, folder)
        named = [vault for vault in known if vault.file == file]
    if not named:
        raise NotFound(f"no vault {text!r} is set up here; there are: {names}; `memex init FOLDER` sets one up")
    return named[0]


def _confirm_folder(chosen: Settings, *, create: bool, yes: bool) -> None:
    """Ask about a folder that does not look like a vault; not again about one that is set up."""
    from syncd.installation.vault_setup import has_notes

    folder = chosen.vault.path
    if not folder.is_dir() or read_vault_path(chosen.state) == folder or (create and not any(folder.iterdir())):
        return
    if not has_notes(folder):
        confirm(f"{folder} has no note, and Obsidian has never opened it. Is it a vault?", yes=yes)


def _print_plan(chosen: Settings) -> None:
    """Say what setting the vault up makes and what it leaves alone."""
    print_message(f"memex: this makes {chosen.vault.path / chosen.vault.inbox}: the inbox, where agents read and write")
    print_message("memex: agents see the inbox and nothing else; none of your notes is changed")
    print_message(f"memex: the index and the keys lie outside the vault, in {chosen.state}")


def _choose_git(chosen: Settings, wish: str | None, *, asks: bool) -> bool | None:
    """Whether Memex is to commit what it writes, by the option or the answer; None = as the settings have it."""
    from syncd.git.repository import Repository

    if wish is not None or "git.commit" in chosen.origins:
        return wish == "commit" if wish is not None else None
    repo = Repository(chosen.vault.path)
    try:
        state = repo.local_state()
    finally:
        repo.close()
    if state == "no-repo":
        if asks:
            question = "The vault is not under Git. Put it under Git, and let Memex commit what it writes?"
            return click.confirm(question, default=False, err=True) or None
        print_message(
            "memex: the vault is not under Git, so nothing is committed; `memex init VAULT --git commit` changes that"
        )
    elif state != "no-git":
        if asks:
            question = "May Memex commit what it writes, at most four times an hour, and never your edits?"
            return click.confirm(question, default=True, err=True)
        print_message(
            "memex: Memex commits what it writes, never your edits; `memex init VAULT --git off` leaves it to you"
        )
    return None


def _format_init(chosen: Settings, file: Path, key_file: Path, *, usual: bool) -> str:
    vault, how = chosen.vault.path, "" if usual else f" --config {shlex.quote(str(file))}"
    print_message(f"memex: {vault} is set up; agents see {vault / chosen.vault.inbox} and nothing else")
    if how and file.parent == settings_folder(os.environ):
        print_message(
            "memex: another vault is the one that commands mean; in this folder they mean this one, and after:"
        )
        print_message(f"memex:   memex use {shlex.quote(str(vault))}")
    lines = [f"vault     {vault}", f"state     {chosen.state}", f"settings  {file}", f"your key  {key_file}", ""]
    lines += [
        f"Start it:\n  memex serve{how}\n",
        connect_text(memex_command(chosen)),
    ]
    return "\n".join(lines)


def _format_vaults(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "no vault is set up here: `memex init VAULT` does it"
    cells = [
        (
            "*" if row["meant"] else "",
            row["name"],
            row["path"],
            row["problem"].partition("\n")[0] or (f"serving at {row['url']}" if row["running"] else "not served"),
            row["config"],
        )
        for row in rows
    ]
    return result_text.table(cells, ("", "name", "vault", "daemon", "settings"), color=has_color())
