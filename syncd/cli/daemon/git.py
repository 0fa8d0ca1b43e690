"""Define the Git commands: `commit` commits Memex's writes, `sync` pulls and pushes, `hook` installs hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from index.errors import Conflict, NotFound
from syncd.cli.framework.commands import Command, Group, answer, as_json, ask, color, settings, talk
from syncd.cli.terminal import result_text
from syncd.git.hooks import HOOKS, REMOTE_HOOKS, Hook, exclude, find, install, uninstall
from syncd.git.repository import Repository
from syncd.state.folder import remembered

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
    found = _with(remote, install)
    own = _opened(remote).common_folder()
    if not {own, settings().vault.path} & set(Path(found["folder"]).parents):
        talk(f"memex: core.hooksPath leads to {found['folder']}, which may serve other repositories too")
    if remote is None:
        exclude(own / "info", wanted=True)
    answer(found, lambda: _lines(found))


@hook.command("uninstall")
@REPO
def hook_uninstall(remote: Path | None) -> None:
    """Take the hooks away; what stood there before is back, byte for byte."""
    found = _with(remote, uninstall)
    if remote is None and not any(one["state"] in ("installed", "wrapped") for one in found["hooks"]):
        exclude(_opened(None).common_folder() / "info", wanted=False)
    answer(found, lambda: _lines(found))


@hook.command("status")
@REPO
def hook_status(remote: Path | None) -> None:
    """Tell how each hook is."""
    found = _with(remote, find)
    answer(found, lambda: _lines(found))


@hook.command("secret")
@click.option("--rotate", is_flag=True, help="Make another one; the one before ends at once.")
@click.option("--remove", is_flag=True, help="End it: webhooks are off.")
def hook_secret(rotate: bool, remove: bool) -> None:
    """Make the secret with which a forge signs its webhooks; it is shown this once."""
    from syncd.remote.push_webhook import drop_secret, make_secret  # noqa: PLC0415 - it imports the ledger

    state = _state()
    if remove:
        drop_secret(state)
        answer({"removed": True}, lambda: "webhooks are off")
        return
    secret = make_secret(state, rotate=rotate)
    if not as_json():
        talk("memex: in the forge's webhook, set this secret, JSON as content, and the address ending in /hooks/git")
    answer({"secret": secret}, lambda: secret)


def _with(remote: Path | None, work: Callable[[Path, Sequence[str], Path], list[Hook]]) -> dict[str, Any]:
    state = _state()
    repo = _opened(remote)
    folder = repo.hooks_folder()
    hooks = work(folder, HOOKS if remote is None else REMOTE_HOOKS, state)
    repo.close()
    return {"folder": str(folder), "hooks": [asdict(one) for one in hooks]}


def _opened(remote: Path | None) -> Repository:
    if remote is None:
        return Repository(settings().vault.path)
    repo = Repository(remote)
    if repo.state() != "bare":
        raise Conflict(f"{remote} is no bare repository: leave --repo out for the vault's own")
    return repo


def _state() -> Path:
    chosen = settings()
    if remembered(chosen.state) is None:
        raise NotFound(f"{chosen.vault.path} is not set up for Memex yet: run `memex init` first")
    return chosen.state


def _lines(found: dict[str, Any]) -> str:
    rows = [
        (one["name"], TOLD[one["state"]] + ("; the hook that was there before runs too" if one["before"] else ""))
        for one in found["hooks"]
    ]
    return f"{found['folder']}\n{result_text.table(rows, color=color())}"


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
    found = ask("commit", {"dry_run": dry_run})
    answer(found, lambda: report(found, dry_run=dry_run))


def report(found: dict[str, Any], *, dry_run: bool) -> str:
    """What was committed, and what was not."""
    lines = []
    for one in found["commits"]:
        head = "would commit" if dry_run else one["commit"][:8]
        lines.append(f"{head}  {result_text.line(one['subject'], 100)}")
        lines += [f"  {result_text.line(path, 200)}" for path in one["paths"][:SHOWN]]
        lines += [f"  … and {len(one['paths']) - SHOWN:,} more"] if len(one["paths"]) > SHOWN else []
    lines = lines or ["nothing to commit"]
    lines += [f"kept local: {result_text.line(one['path'], 200)}: {one['why']}" for one in found["kept"]]
    lines += [f"left to you: {result_text.line(path, 200)}: edited before it was committed" for path in found["edited"]]
    return "\n".join(lines)


@click.command(cls=Command)
@click.option("--pull", is_flag=True, help="Only take what the remote has.")
@click.option("--push", is_flag=True, help="Only send what it has not; if it has gone on, that is taken first.")
def sync(pull: bool, push: bool) -> None:
    """Bring the vault and the remote of its branch together now: pull, then push, whatever the settings plan.

    What Memex has written is committed first; your own uncommitted edits are left alone. What can't be merged without
    you touches no file: the answer names the command that resolves it.

    With --json: {"took": commits, "files": changed, "merged": bool, "sent": commits}."""
    found = ask("sync", {"pull": pull, "push": push})
    answer(found, lambda: _sentence(found))


def _sentence(found: Mapping[str, Any]) -> str:
    told = []
    if found["took"]:
        told.append(
            f"took {_many(found['took'], 'commit')}, which changed {_many(found['files'], 'file')}"
            + (", merged with your own" if found["merged"] else "")
        )
    if found["sent"]:
        told.append(f"sent {_many(found['sent'], 'commit')}")
    return "; ".join(told) or "both had the same already"


def _many(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"
