"""Define the Git commands: `commit` commits Memex's writes, `sync` pulls and pushes, `hook` installs hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from index.errors import Conflict, NotFound
from index.names import pluralize
from syncd.cli.framework.commands import (
    Command,
    Group,
    ask,
    has_color,
    load_settings,
    print_answer,
    print_message,
    wants_json,
)
from syncd.cli.terminal import result_text
from syncd.git.hooks import HOOKS, REMOTE_HOOKS, Hook, find, install, uninstall, update_exclude_file
from syncd.git.repository import Repository
from syncd.state.folder import read_vault_path

REPO = click.option(
    "--repo",
    "remote",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A bare repository on this machine that the vault is pushed to; else the vault's own.",
)
TOLD = {
    "installed": "installed",
    "wrapped": "installed; another program's hook runs it",
    "absent": "not installed",
    "other": "not installed; another hook stands there",
    "replaced": "lost: another program has put its hook there",
    "changed": "changed by another since Memex wrote it",
}


@click.group(cls=Group)
def hook() -> None:
    """Let Git tell the daemon at once when it has moved the vault."""


@hook.command("install")
@REPO
def hook_install(remote: Path | None) -> None:
    """Add hooks to the vault's repository; hooks that are there keep running."""
    result = _run_on_hooks(remote, install)
    git_folder = _open_repository(remote).common_folder()
    if not {git_folder, load_settings().vault.path} & set(Path(result["folder"]).parents):
        print_message(f"memex: core.hooksPath leads to {result['folder']}, which may serve other repositories too")
    if remote is None:
        update_exclude_file(git_folder / "info", wanted=True)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("uninstall")
@REPO
def hook_uninstall(remote: Path | None) -> None:
    """Take the hooks away; what stood there before is back, byte for byte."""
    result = _run_on_hooks(remote, uninstall)
    if remote is None and not any(entry["state"] in ("installed", "wrapped") for entry in result["hooks"]):
        update_exclude_file(_open_repository(None).common_folder() / "info", wanted=False)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("status")
@REPO
def hook_status(remote: Path | None) -> None:
    """Tell how each hook is."""
    result = _run_on_hooks(remote, find)
    print_answer(result, lambda: _format_hooks(result))


@hook.command("secret")
@click.option("--rotate", is_flag=True, help="Make another one; the one before ends at once.")
@click.option("--remove", is_flag=True, help="End it: webhooks are off.")
def hook_secret(rotate: bool, remove: bool) -> None:
    """Make the secret with which a forge signs its webhooks; it is shown this once."""
    from syncd.remote.push_webhook import drop_secret, make_secret  # noqa: PLC0415 - it imports the ledger

    state = _state_folder()
    if remove:
        drop_secret(state)
        print_answer({"removed": True}, lambda: "webhooks are off")
        return
    secret = make_secret(state, rotate=rotate)
    if not wants_json():
        print_message(
            "memex: in the forge's webhook, set this secret, JSON as content, and the address ending in /hooks/git"
        )
    print_answer({"secret": secret}, lambda: secret)


def _run_on_hooks(remote: Path | None, work: Callable[[Path, Sequence[str], Path], list[Hook]]) -> dict[str, Any]:
    state = _state_folder()
    repo = _open_repository(remote)
    folder = repo.hooks_folder()
    hooks = work(folder, HOOKS if remote is None else REMOTE_HOOKS, state)
    return {"folder": str(folder), "hooks": [asdict(hook) for hook in hooks]}


def _open_repository(remote: Path | None) -> Repository:
    if remote is None:
        return Repository(load_settings().vault.path)
    repo = Repository(remote)
    if repo.local_state() != "bare":
        raise Conflict(f"{remote} is no bare repository: leave --repo out for the vault's own")
    return repo


def _state_folder() -> Path:
    chosen = load_settings()
    if read_vault_path(chosen.state) is None:
        raise NotFound(f"{chosen.vault.path} is not set up for Memex yet: run `memex init` first")
    return chosen.state


def _format_hooks(result: dict[str, Any]) -> str:
    rows = [
        (hook["name"], TOLD[hook["state"]] + ("; the hook that was there before runs too" if hook["before"] else ""))
        for hook in result["hooks"]
    ]
    return f"{result['folder']}\n{result_text.table(rows, color=has_color())}"


SHOWN = 20  # paths of one commit


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Say what would be committed, and change nothing.")
def commit(*, dry_run: bool) -> None:
    """Commit now what Memex wrote into the vault: captures, promotions, reports. Your own edits and stage stay as they are.

    The daemon does so by itself once nothing was written for `git.quiet_s` seconds; this does not wait, and also works where
    `git.commit` is off. A promotion that Git did not let be committed when it was made gets the commit that it is owed. What
    looks like a secret or an unfinished merge, what you have edited since or staged otherwise, and what a .gitignore names is
    left out and listed. Exits with 5 when Git does not allow a commit just now. With --json:
    {"commits": [{"commit", "subject", "paths"}], "kept": [{"path", "why"}], "edited": [PATH]}."""
    result = ask("commit", {"dry_run": dry_run})
    print_answer(result, lambda: format_commits(result, dry_run=dry_run))


def format_commits(result: dict[str, Any], *, dry_run: bool) -> str:
    """What was committed, and what was not."""
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
@click.option("--pull", is_flag=True, help="Only take what the remote has.")
@click.option("--push", is_flag=True, help="Only send what it has not; if it has gone on, that is taken first.")
def sync(pull: bool, push: bool) -> None:
    """Bring the vault and the remote of its branch together now: pull, then push, whatever the settings plan.

    What Memex has written is committed first; your own uncommitted edits are left alone. What can't be merged without
    you touches no file: the answer names the command that resolves it.

    With --json: {"took": commits, "files": changed, "merged": bool, "sent": commits}."""
    result = ask("sync", {"pull": pull, "push": push})
    print_answer(result, lambda: _format_sync(result))


def _format_sync(result: Mapping[str, Any]) -> str:
    parts = []
    if result["took"]:
        parts.append(
            f"took {pluralize(result['took'], 'commit')}, which changed {pluralize(result['files'], 'file')}"
            + (", merged with your own" if result["merged"] else "")
        )
    if result["sent"]:
        parts.append(f"sent {pluralize(result['sent'], 'commit')}")
    return "; ".join(parts) or "both had the same already"
