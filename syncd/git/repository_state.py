"""Define the states that the vault's repository can be in, and the command that resolves each.

Law, tested on a real repository in each state: the advice for a state holds at most one command, between backticks,
and running that command ends the state."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

# With its guess that a whole folder was renamed Git asks a person about each note that was put there meanwhile, and
# before 2.51 it aborts on a note that was moved there by one and deleted by the other.
PLAIN = ("-c", "merge.directoryRenames=false")
# The state → what it means and the way out of it. `{git}` is `git -C VAULT`. What needs no mending advises nothing.
STATES: Mapping[str, str] = {
    "ok": "",
    "no-git": "Git is not installed, so the vault has no history: install it, with `{install}` or the like",
    "no-repo": "the vault has no history: run `{git} init`",
    "broken": "Git can't read the repository: run `{git} fsck` to see what is damaged",
    "unmade": "parts of the repository are missing: run `{git} init`, which makes them and overwrites nothing",
    "dubious": "the vault's folder belongs to another user, so Git refuses it: if you trust what is in it, run `git config --global --add safe.directory {vault}`",
    "bare": "the vault is a bare repository, which has no files: run `git clone {vault} {clone}` and use the clone",
    "conflict": "conflicts are left to mend: remove the conflict markers from the files that Git names, add the files, then run `{finish}`",
    "locked": "another program works in the repository: wait for it; `memex status` tells when it is done",
    "stale-lock": "a program died in the midst of its work, and its lock keeps Git from working: run `rm {lock}`",
    "mid-operation": "a {operation} is not finished: run `{finish}`",
    "unborn": "nothing is committed yet: run `{git} add -A && {git} commit -m Begin`",
    "detached": "no branch is checked out: run `{git} switch {branch}`",
    "rewritten": "{upstream} has another history than before: run `{git} pull --rebase --autostash`, which takes it and puts what was never pushed on top",
    "diverged": "the vault and {upstream} have both moved on: run `{git} {plain} pull --no-rebase`, which merges them",
    "behind": "{upstream} has commits that the vault has not: run `{git} pull --ff-only`",
    "ahead": "the vault has commits that {upstream} has not: run `{git} push`",
    "no-upstream": "the branch follows no branch of a remote: run `{git} push --set-upstream {remote} {branch}`",
    "shallow": "the clone holds the newest part of the history only: run `{git} fetch --unshallow`",
    "no-remote": "",  # a history of its own is all that a vault needs
}
REWRITTEN = "refs/memex/rewritten"  # below it: what took the place of a history that the vault had already
# What keeps the history from being written or the notes from being whole: told wherever health is told.
UNWELL: Mapping[str, str] = {
    "broken": "git: the repository can't be read; memex status has the way out",
    "unmade": "git: parts of the repository are missing; memex status has the way out",
    "dubious": "git: the vault belongs to another user, so Git refuses it; memex status has the way out",
    "conflict": "git: conflicts are left to mend, and notes may hold conflict markers; memex status has the way out",
    "stale-lock": "git: a lock that nobody holds keeps Git from working; memex status has the way out",
    "rewritten": "git: the remote has another history than before; memex status has the way out",
    "diverged": "git: the vault and its remote have both moved on; memex status has the way out",
}
_FINISH = {
    "merge": "{git} merge --continue",
    "rebase": "{git} rebase --continue",
    "am": "{git} am --continue",
    "cherry-pick": "{git} cherry-pick --continue",
    "revert": "{git} revert --continue",
    "bisect": "{git} bisect reset",
    "": "{git} add --update",
}


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """What is known of the repository; what does not apply stays empty."""

    state: str
    head: str | None = None
    branch: str | None = None
    operation: str = ""  # "merge", "rebase", "am", "cherry-pick", "revert" or "bisect" while one is not finished
    lock: str = ""  # the path of a lock
    remote: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    shallow: bool = False
    rewritten: bool = False  # the upstream's history, so that a merge would bring back what was purged


def with_upstream_state(state: RepositoryState) -> RepositoryState:
    """`state`, in which nothing is amiss, with its state by how it is tied to others."""
    for name, applies in (
        ("no-remote", not state.remote),
        ("rewritten", state.rewritten),
        ("diverged", state.ahead and state.behind),
        ("behind", state.behind),
        ("ahead", state.ahead),
        ("no-upstream", not state.upstream),
        ("shallow", state.shallow),
    ):
        if applies:
            return replace(state, state=name)
    return state


def advice(state: RepositoryState, vault: str, *, install: str = "apt install git") -> str:
    """What to do about it, for the owner: it names paths. "" when there is nothing to do."""
    git = f"git -C {shlex.quote(vault)}"
    branch = shlex.quote(state.branch or "")
    return STATES[state.state].format(
        git=git,
        plain=" ".join(PLAIN),
        vault=shlex.quote(vault),
        clone=shlex.quote(vault.removesuffix(".git") if vault.endswith(".git") else f"{vault}-notes"),
        install=install,
        lock=shlex.quote(state.lock),
        operation=state.operation,
        finish=_FINISH[state.operation].format(git=git),
        upstream=state.upstream,
        remote=shlex.quote(state.remote),
        branch=branch if state.branch else "-c kept",
    )
