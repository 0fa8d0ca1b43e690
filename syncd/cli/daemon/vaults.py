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
from index.timings import now_ms
from syncd.cli.framework.arguments import YES, confirm
from syncd.cli.framework.commands import (
    Command,
    flags,
    has_color,
    load_settings,
    print_answer,
    print_message,
    refuse_served,
    set_flag,
    show_elapsed,
)
from syncd.cli.framework.completion import vaults as vault_names
from syncd.cli.terminal import result_text
from syncd.clients.client_formats import connect_text
from syncd.clients.daemon_address import init_command, memex_program
from syncd.daemon.control_socket import DAEMON
from syncd.settings.known_vaults import (
    KnownVault,
    choose_settings_file,
    find_vault,
    find_vault_around,
    known_vaults,
    settings_folder,
    vault_name,
    vault_variable,
    write_choice,
)
from syncd.settings.settings import Settings, load
from syncd.state import process_lock
from syncd.state.folder import expand_home, read_vault_path

# ruff: noqa: PLC0415 - what sets a vault up takes longer to import than most commands to run
OTHER_SETTINGS = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")  # variables that apply to every vault


@click.command(cls=Command)
@click.argument("folder", metavar="VAULT", required=False, type=click.Path(file_okay=False))
@click.option(
    "--git",
    type=click.Choice(["commit", "off"]),
    is_flag=False,
    flag_value="commit",
    help="Let Memex commit what it writes, and create a repository if there is none; or leave commits to you.",
)
@click.option("--create", is_flag=True, help="Create the folder if it is missing.")
@click.option(
    "--welcome/--no-welcome",
    default=None,
    help="Write one welcome capture into a new inbox, so that a first search finds something.",
)
@YES
def init(folder: str | None, git: str | None, create: bool, welcome: bool | None, yes: bool) -> None:
    """Set up the folder VAULT for Memex: create the inbox, a state folder and your key. Your notes stay unchanged.

    The command prints what it does, and asks about Git and the welcome capture. With --yes or without a terminal it asks
    nothing: it writes the welcome capture, creates no repository, and lets Memex commit its writes if VAULT is already a Git
    repository. If the folder has no note and Obsidian has never opened it, the command asks first, unless you pass --yes.
    Your home folder and the root of the file system are refused."""
    from syncd.installation import vault_setup

    set_flag("vault.path", folder)
    if "vault.path" not in flags() and not vault_variable(os.environ):
        raise InvalidArgument("which folder? `memex init VAULT`")
    named = flags().get("config") or os.environ.get("MEMEX_CONFIG")
    if named and not expand_home(named).exists():
        without = {name: value for name, value in os.environ.items() if name != "MEMEX_CONFIG"}
        chosen = load({name: value for name, value in flags().items() if name != "config"}, without)
    else:
        chosen = load_settings()
    vault_setup.refuse_home(chosen.vault.path)
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
    key_file = vault_setup.set_up_vault(chosen, now=now_ms(), again=True, welcome=welcome is not False)
    if commits:
        with show_elapsed("committing your notes"):
            vault_setup.put_under_git(chosen.vault.path)
    file, usual = vault_setup.ensure_settings_file(chosen, named, os.environ)
    if commits is not None:
        vault_setup.write_git_choice(file, commit=commits)
    made = {"vault": str(chosen.vault.path), "state": str(chosen.state), "config": str(file), "key_file": str(key_file)}
    print_answer(made, lambda: _format_init(chosen, file, key_file, usual=usual and not named))


@click.command(cls=Command)
def vaults() -> None:
    """List the vaults that are set up here, and mark the one that commands use.

    A command uses the vault that --vault, --state or --config names; else the vault whose folder it runs in; else the vault
    that `memex use` chose; else the vault of ~/.config/memex/config.toml. A star marks this vault. With --json: [{"name", "path",
    "config", "state", "running", "pid", "url", "meant", "problem"}]."""
    rows = list_vaults()
    print_answer(rows, lambda: _format_vaults(rows))


@click.command(cls=Command)
@click.argument("vault", metavar="VAULT|NAME", shell_complete=vault_names)
def use(vault: str) -> None:
    """Make this vault the default for commands that run outside every vault and name no vault.

    VAULT is the folder of the vault; NAME is its name in `memex vaults`."""
    known = _find_known(vault)
    write_choice(os.environ, known.file)
    meant = find_vault_around(known_vaults(os.environ), Path.cwd())
    if meant not in (None, known.file):
        print_message("memex: inside this folder, commands still use the vault that contains it")
    row = {"name": vault_name(known, known_vaults(os.environ)), "path": str(known.path), "config": str(known.file)}
    print_answer(row, lambda: f"commands now use {result_text.line(str(known.path), 300)}")


def list_vaults() -> list[dict[str, Any]]:
    """Return the known vaults: path, state of the daemon, and whether commands here use the vault."""
    known = known_vaults(os.environ)
    try:
        meant = choose_settings_file(flags(), os.environ, Path.cwd()).file
    except InvalidArgument as error:  # the chosen vault is gone; the list below shows the others
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
            problem = "" if vault.path.is_dir() else "the folder is missing"
        rows.append(row | {"meant": vault.file == meant, "problem": problem})
    return rows


def _read_daemon(state: Path) -> dict[str, Any]:
    """Check whether a daemon runs for a state folder, by its lock and the address file that it wrote."""
    pid = process_lock.holder_pid(state)
    try:
        noted = json.loads((state / DAEMON).read_text())
        running = pid is not None and noted["pid"] == pid
        return {"running": running, "pid": pid if running else None, "url": str(noted["url"]) if running else None}
    except (OSError, ValueError, KeyError, TypeError):
        return {"running": False, "pid": None, "url": None}


def _find_known(text: str) -> KnownVault:
    """Find the known vault that `text` names: by its name, its settings file, its folder or a folder inside it."""
    known = known_vaults(os.environ)
    names = ", ".join(vault_name(vault, known) for vault in known) or "none"
    named = [vault for vault in known if text in (vault_name(vault, known), vault.file.name, vault.file.stem)]
    if text and not named:
        folder = Path.cwd() / expand_home(text)
        around = find_vault_around(known, folder) if os.path.isdir(folder) else None  # noqa: PTH112 - Path.is_dir() fails for a long name
        file = find_vault(known, folder) or around
        named = [vault for vault in known if vault.file == file]
    if not named:
        raise NotFound(f"no vault {text!r} is set up here. Known vaults: {names}. To set one up: memex init FOLDER")
    return named[0]


def _confirm_folder(chosen: Settings, *, create: bool, yes: bool) -> None:
    """Ask before setting up a folder that does not look like a vault; a vault that is set up already needs no question.

    Raises InvalidArgument for a folder inside a vault, and Conflict for one that is not as new as it seems."""
    from syncd.installation.vault_setup import has_notes, refuse_inside_vault, refuse_moved_vault

    folder = chosen.vault.path
    refuse_inside_vault(chosen, os.environ)
    refuse_moved_vault(chosen, os.environ)
    if "state" not in chosen.origins and read_vault_path(chosen.state) is None:
        refuse_served(chosen)
    if not folder.is_dir() or read_vault_path(chosen.state) == folder or (create and not any(folder.iterdir())):
        return
    if not has_notes(folder):
        confirm(f"{folder} has no note, and Obsidian has never opened it. Is it a vault?", yes=yes)


def _print_plan(chosen: Settings) -> None:
    """Print what the setup creates and what it leaves unchanged."""
    print_message(f"memex: creating {chosen.vault.path / chosen.vault.inbox}: the inbox, where agents read and write")
    print_message("memex: agents see only the inbox; none of your notes is changed")
    print_message(f"memex: the index and the keys are outside the vault, in {chosen.state}")


def _choose_git(chosen: Settings, wish: str | None, *, asks: bool) -> bool | None:
    """Decide whether Memex commits what it writes, by the option or the answer; None = the settings decide."""
    from syncd.git.repository import Repository

    if wish is not None or "git.commit" in chosen.origins:
        return wish == "commit" if wish is not None else None
    repo = Repository(chosen.vault.path)
    state = repo.read_state()
    if state.top:
        print_message(f"memex: {repo.advice(state)}")
    elif state.state == "no-repo":
        if asks:
            question = "The vault is not under Git. Put it under Git, and let Memex commit what it writes?"
            return click.confirm(question, default=False, err=True) or None
        print_message(
            f"memex: the vault is not under Git, so nothing is committed; to change that: {init_command(chosen)} --git commit"
        )
    elif state.state != "no-git":
        if asks:
            question = (
                "May Memex commit what it writes? It never commits your edits, and commits at most four times an hour."
            )
            return click.confirm(question, default=True, err=True)
        print_message(
            f"memex: Memex commits what it writes, never your edits; to turn this off: {init_command(chosen)} --git off"
        )
    return None


def _format_init(chosen: Settings, file: Path, key_file: Path, *, usual: bool) -> str:
    vault, how = chosen.vault.path, "" if usual else f" --config {shlex.quote(str(file))}"
    print_message(f"memex: {vault} is set up; agents see only {vault / chosen.vault.inbox}")
    if how and file.parent == settings_folder(os.environ):
        print_message(
            "memex: commands use another vault by default, and this vault only inside its folder; to make it the default:"
        )
        print_message(f"memex:   memex use {shlex.quote(str(vault))}")
    lines = [f"vault     {vault}", f"state     {chosen.state}", f"settings  {file}", f"your key  {key_file}", ""]
    program = shlex.quote(memex_program())
    lines += [f"Start it:\n  {program}{how} serve\n", connect_text(f"{program}{how}")]
    return "\n".join(lines)


def _format_vaults(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "no vault is set up here; to set one up: memex init VAULT"
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
