"""Define the states that the vault's repository can be in, and the command that resolves each.

Law, tested on a real repository in each state: the advice for a state holds at most one command, between backticks,
and running that command ends the state."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

# When Git guesses that a whole folder was renamed, it asks a person about each note that was added there meanwhile, and
# before 2.51 it aborts on a note that one side moved there and the other deleted.
PLAIN = ("-c", "merge.directoryRenames=false")
# The state → what it means and how to resolve it. `{git}` is `git -C VAULT`. A state that needs no action has no advice.
STATES: Mapping[str, str] = {
    "ok": "",
    "no-git": "Git is not installed, so the vault has no history: install it, for example with `{install}`",
    "no-repo": "the vault has no history: run `{git} init`",
    "broken": "Git can't read the repository: run `{git} fsck` to see what is damaged",
    "unmade": "parts of the repository are missing: run `{git} init`, which creates them and overwrites nothing",
    "dubious": "the vault's folder belongs to another user, so Git refuses it: if you trust its content, run `git config --global --add safe.directory {vault}`",
    "bare": "the vault is a bare repository, which has no files: run `git clone {vault} {clone}` and use the clone",
    "no-files": "core.bare says that the repository has no files, so Git refuses them: run `{git} config core.bare false`",
    "conflict": "there are unresolved conflicts: remove the conflict markers from the files that Git names, add the files, then run `{finish}`",
    "locked": "another program works in the repository: wait for it; `memex status` shows when it has finished",
    "stale-lock": "a program died while it used the repository, and its lock blocks Git: run `rm {lock}`",
    "mid-operation": "a {operation} is not finished: run `{finish}`",
    "unborn": "nothing is committed yet: run `{git} add -A && {git} commit -m Begin`",
    "detached": "no branch is checked out: run `{git} switch {branch}`",
    "rewritten": "the history of {upstream} was rewritten: run `{git} pull --rebase --autostash`, which takes it and adds your unpushed commits on top",
    "diverged": "the vault and {upstream} both have new commits: run `{git} {plain} pull --no-rebase`, which merges them",
    "behind": "{upstream} has commits that the vault lacks: run `{git} pull --ff-only`",
    "ahead": "the vault has commits that {upstream} lacks: run `{git} push`",
    "no-upstream": "the branch follows no branch of a remote: run `{git} push --set-upstream {remote} {branch}`",
    "shallow": "the clone has only the newest part of the history: run `{git} fetch --unshallow`",
    "no-remote": "",  # a vault needs only its local history
}
SUBFOLDER = "the vault is a subfolder of the repository at {top}: Memex commits and uses hooks only in a vault that is the top folder of its repository"
UNREADABLE = ("no-git", "broken", "unmade", "dubious", "bare")  # states in which Git lists no commits
REWRITTEN = "refs/memex/rewritten"  # refs below it: histories that replaced one the vault had already
# Problems that prevent commits or damage notes: reported in every health report.
UNWELL: Mapping[str, str] = {
    "broken": "git: the repository can't be read; memex status shows how to fix this",
    "unmade": "git: parts of the repository are missing; memex status shows how to fix this",
    "dubious": "git: the vault belongs to another user, so Git refuses it; memex status shows how to fix this",
    "no-files": "git: core.bare says that the repository has no files; memex status shows how to fix this",
    "conflict": "git: there are unresolved conflicts, and notes may contain conflict markers; memex status shows how to fix this",
    "stale-lock": "git: a stale lock blocks Git; memex status shows how to fix this",
    "rewritten": "git: the history of the remote was rewritten; memex status shows how to fix this",
    "diverged": "git: the vault and its remote both have new commits; memex status shows how to fix this",
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
    """Describes the repository; fields that don't apply are empty."""

    state: str
    head: str | None = None
    branch: str | None = None
    operation: str = ""  # "merge", "rebase", "am", "cherry-pick", "revert" or "bisect" while one is not finished
    lock: str = ""  # the path of a lock
    top: str = ""  # the work tree of a repository that has the vault as a subfolder
    remote: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    shallow: bool = False
    rewritten: bool = False  # the upstream's history was rewritten, so a merge would restore purged commits


def with_upstream_state(state: RepositoryState) -> RepositoryState:
    """Return `state`, which has no local problem, with its state relative to the remote."""
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
    """Return what to do about it, for the owner: it names paths. "" when there is nothing to do."""
    git = f"git -C {shlex.quote(vault)}"
    branch = shlex.quote(state.branch or "")
    return (SUBFOLDER if state.top else STATES[state.state]).format(
        top=state.top,
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
