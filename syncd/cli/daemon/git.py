"""Define the Git commands: `commit` commits Memex's writes, `sync` pulls and pushes, `hook` installs hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from index.errors import Conflict
from index.names import pluralize
from syncd.cli.framework.commands import (
    Command,
    Group,
    ask,
    has_color,
    load_settings,
    print_answer,
    print_message,
    require_set_up,
    wants_json,
)
from syncd.cli.terminal import result_text
from syncd.git.hooks import HOOKS, REMOTE_HOOKS, Hook, find, install, uninstall, update_exclude_file
from syncd.git.repository import Repository

REPO = click.option(
    "--repo",
    "remote",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A bare repository on this machine that the vault is pushed to. Default: the repository of the vault.",
)
HOOK_STATES = {
    "installed": "installed",
    "wrapped": "installed; another program's hook calls it",
    "absent": "not installed",
    "other": "not installed; another hook is in its place",
    "replaced": "replaced: another program has installed its own hook",
    "changed": "changed by another program since Memex wrote it",
}


@click.group(cls=Group)
def hook() -> None:
    """Manage Git hooks that notify the daemon when Git changes the vault."""


@hook.command("install")
@REPO
def hook_install(remote: Path | None) -> None:
    """Install hooks in the vault's repository; existing hooks keep running."""
    result = _run_on_hooks(remote, install)
    git_folder = _open_repository(remote).common_folder()
    parent = Path(result["folder"]).parent.resolve()  # Git resolves symbolic links, and names no ".."
    if not {git_folder.resolve(), load_settings().vault.path.resolve()} & {parent, *parent.parents}:
        print_message(f"memex: core.hooksPath is {result['folder']}, which other repositories may use too")
    if remote is None:
        update_exclude_file(git_folder / "info", wanted=True)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("uninstall")
@REPO
def hook_uninstall(remote: Path | None) -> None:
    """Remove the hooks, and restore the previous ones byte for byte."""
    result = _run_on_hooks(remote, uninstall)
    if remote is None and not any(entry["state"] in ("installed", "wrapped") for entry in result["hooks"]):
        update_exclude_file(_open_repository(None).common_folder() / "info", wanted=False)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("status")
@REPO
def hook_status(remote: Path | None) -> None:
    """Show the state of each hook."""
    result = _run_on_hooks(remote, find)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("secret")
@click.option("--rotate", is_flag=True, help="Replace the secret; the old one stops working immediately.")
@click.option("--remove", is_flag=True, help="Remove the secret; webhooks are off.")
def hook_secret(rotate: bool, remove: bool) -> None:
    """Create the secret that a forge uses to sign its webhooks, and print it: Memex shows it only now."""
    from syncd.remote.push_webhook import drop_secret, make_secret  # noqa: PLC0415 - it imports the ledger

    state = _state_folder()
    if remove:
        drop_secret(state)
        print_answer({"removed": True}, lambda: "webhooks are off")
        return
    secret = make_secret(state, rotate=rotate)
    if not wants_json():
        print_message(
            "memex: in the webhook of the forge, set this secret, the content type JSON, and an address that ends in /hooks/git"
        )
    print_answer({"secret": secret}, lambda: secret)


def _run_on_hooks(remote: Path | None, work: Callable[[Path, Sequence[str], Path], list[Hook]]) -> dict[str, Any]:
    state = _state_folder()
    folder = _open_repository(remote).hooks_folder()
    hooks = work(folder, HOOKS if remote is None else REMOTE_HOOKS, state)
    return {"folder": str(folder), "hooks": [asdict(hook) for hook in hooks]}


def _open_repository(remote: Path | None) -> Repository:
    if remote is None:
        return Repository(load_settings().vault.path)
    repo = Repository(remote)
    if repo.local_state() != "bare":
        raise Conflict(f"{remote} is not a bare repository; for the repository of the vault, leave out --repo")
    return repo


def _state_folder() -> Path:
    chosen = load_settings()
    require_set_up(chosen)
    return chosen.state


def _format_hooks(result: dict[str, Any]) -> str:
    rows = [
        (hook["name"], HOOK_STATES[hook["state"]] + ("; the previous hook runs too" if hook["before"] else ""))
        for hook in result["hooks"]
    ]
    return f"{result['folder']}\n{result_text.table(rows, color=has_color())}"


SHOWN = 20  # paths of one commit


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what would be committed, and change nothing.")
def commit(*, dry_run: bool) -> None:
    """Commit what Memex wrote into the vault: captures, promotions, reports. Your own edits and staged changes are left alone.

    The daemon commits by itself after `git.quiet_s` seconds without a write; this command does not wait, and works even if
    `git.commit` is off. It also commits promotions that Git could not commit when they were made. Files are left out and
    listed if they look like a secret or an unfinished merge, if you edited or staged them since, or if a .gitignore names
    them. Exits with 5 if Git does not allow a commit at the moment. With --json:
    {"commits": [{"commit", "subject", "paths"}], "kept": [{"path", "why"}], "edited": [PATH]}."""
    result = ask("commit", {"dry_run": dry_run})
    print_answer(result, lambda: format_commits(result, dry_run=dry_run))


def format_commits(result: dict[str, Any], *, dry_run: bool) -> str:
    """Format the commits, and the files that were left out."""
    lines = []
    for entry in result["commits"]:
        head = "would commit" if dry_run else entry["commit"][:8]
        lines.append(f"{head}  {result_text.line(entry['subject'], 100)}")
        lines += [f"  {result_text.line(path, 200)}" for path in entry["paths"][:SHOWN]]
        lines += [f"  … and {len(entry['paths']) - SHOWN:,} more"] if len(entry["paths"]) > SHOWN else []
    lines = lines or ["nothing to commit"]
    lines += [f"kept local: {result_text.line(entry['path'], 200)}: {entry['why']}" for entry in result["kept"]]
    lines += [
        f"left to you: {result_text.line(path, 200)}: edited before it was committed" for path in result["edited"]
    ]
    return "\n".join(lines)


@click.command(cls=Command)
@click.option("--pull", is_flag=True, help="Only pull.")
@click.option("--push", is_flag=True, help="Only push; if the remote has new commits, they are pulled first.")
def sync(pull: bool, push: bool) -> None:
    """Synchronize the vault with the remote of its branch now: pull, then push, whatever the settings say.

    Memex commits its own writes first, and leaves your uncommitted edits alone. If a merge needs you, no file is changed,
    and the answer names the command that resolves it.

    With --json: {"took": commits, "files": changed, "merged": bool, "sent": commits}."""
    result = ask("sync", {"pull": pull, "push": push})
    print_answer(result, lambda: _format_sync(result))


def _format_sync(result: Mapping[str, Any]) -> str:
    parts = []
    if result["took"]:
        parts.append(
            f"pulled {pluralize(result['took'], 'commit')}, which changed {pluralize(result['files'], 'file')}"
            + (", merged with your commits" if result["merged"] else "")
        )
    if result["sent"]:
        parts.append(f"pushed {pluralize(result['sent'], 'commit')}")
    return "; ".join(parts) or "already up to date"
