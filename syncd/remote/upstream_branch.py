"""Find the upstream branch that the checked-out branch follows, and fetch from it and push to it.

Law, tested: the remote is the one that Git's configuration names for the branch, for every caller; credentials come
from Git or its helpers, and where they do not suffice the command fails at once; nothing is forced."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from index.errors import Conflict, Unavailable
from syncd.git.child_process import ProcessResult
from syncd.git.repository import DETACHED, Repository
from syncd.notes.secret_patterns import redact
from syncd.state.folder import expand_home

_FORMAT: Final = "--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(upstream)%00%(push:remotename)"
_SSH: Final = "-oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 -oServerAliveCountMax=3"
_SYSTEM_FOLDER: Final = Path("/etc")  # belongs to root
_SILENT: Final = ("http.lowSpeedLimit=1", "http.lowSpeedTime=30", "credential.interactive=false")
# The log of the remote-tracking branch shows which commits the remote once had; Git adds to a log that exists in any case.
_LOGGED: Final = "core.logAllRefUpdates=true"
_EVERYTHING_LOGGED: Final = "always"  # the value that also gives tags a log
# Empty rather than unset, so that no password window opens on anybody's screen.
_UNASKED: Final = {"GIT_ASKPASS": "", "SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
_CROSSED: Final = ("cannot lock ref", "incorrect old value")  # another push or fetch came in between
_UNKNOWN: Final = "couldn't find remote ref"
_ANSWERED: Final = "remote: "
# Git reports the progress of fewer than 100 objects, which may be large, only if it keeps them as a pack.
_KEEP_PACK: Final = ("-c", "fetch.unpackLimit=1")
_TRIES: Final = 3  # attempts, because another fetch may interfere
_REPORTS: Final = ("hint:", "To ", "From ", "Delta compression ", "Total ", "remote: Total ")
_SAID: Final = 400  # characters of Git's output in a message


@dataclass(frozen=True, slots=True)
class TrackedBranch:
    """Describes a local branch and its upstream branch, according to Git's configuration."""

    branch: str  # refs/heads/main
    remote: str  # the name of the remote
    theirs: str  # the branch's full name on the remote, such as refs/heads/main
    tracking: str  # refs/remotes/origin/main
    pushes: str  # name of the remote that a person's `git push` pushes to


def find_tracked_branch(repo: Repository) -> TrackedBranch | None:
    """Return the checked-out branch with its upstream; None if it does not follow a branch of a remote.

    Raises Unavailable if Git can't read the branch."""
    head = repo.run("symbolic-ref", "--quiet", "HEAD")
    branch = "" if head.code else head.text
    output = repo.query("for-each-ref", _FORMAT, branch) if branch.startswith("refs/heads/") else ""
    unread = head.code not in (0, DETACHED) and repo.local_state() not in ("no-git", "no-repo", "bare")
    if unread or output is None:
        raise Unavailable("Git can't read which branch of the remote the vault follows; Memex tries again later")
    remote, theirs, tracking, pushes = (output or "\0\0\0").split("\0")
    tied = theirs.startswith("refs/heads/") and tracking.startswith("refs/remotes/")
    return TrackedBranch(branch, remote, theirs, tracking, pushes) if tied and remote.strip(".") else None


def fetch(repo: Repository, tracked: TrackedBranch, *, limit_s: float, stop: threading.Event) -> None:
    """Fetch the upstream branch, however long it takes, as long as Git reports progress within each `limit_s`.

    Raises Unavailable if the remote can't be reached, Conflict if it has no such branch."""
    options = ("--progress", "--no-auto-maintenance", "--no-recurse-submodules", "--", tracked.remote, tracked.theirs)
    pack: tuple[str, ...] = ()
    for _ in range(_TRIES):
        result = _transfer(repo, *pack, "fetch", *options, limit_s=limit_s, stop=stop)
        if not result.late and not result.code:
            return
        if result.late and not pack and _ANSWERED in result.said and not stop.is_set():
            pack = _KEEP_PACK
        elif result.late or not _is_race(result):
            break
    if _UNKNOWN in result.said:
        raise missing_branch_error(repo, tracked)
    raise _unreachable_error(result, limit_s, stop)


def missing_branch_error(repo: Repository, tracked: TrackedBranch) -> Conflict:
    """Return the error for a remote that lacks the upstream branch."""
    remote, theirs = shlex.quote(tracked.remote), shlex.quote(f"HEAD:{tracked.theirs}")
    return Conflict(
        f"{tracked.remote} has no branch {tracked.theirs.removeprefix('refs/heads/')}: unless your branch should follow another one, "
        f"create it with `git -C {shlex.quote(repo.vault)} push {remote} {theirs}`"
    )


def push(repo: Repository, tracked: TrackedBranch, tip: str, *, limit_s: float, stop: threading.Event) -> bool:
    """Push the commit `tip` to the upstream branch as `fetch` fetches, and return False if the remote has new commits.

    Raises Unavailable if the remote can't be reached or refuses the commits."""
    options = ("--porcelain", "--progress", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
    where = ("--", tracked.remote, f"{tip}:{tracked.theirs}")
    result = _transfer(repo, "push", *options, *where, limit_s=limit_s, stop=stop)
    if not result.late and not result.code:
        return True
    refused = [line for line in result.out.decode("utf-8", "replace").splitlines() if line.startswith("!\t")]
    if not result.late and (_is_race(result) or any("\t[rejected]" in line for line in refused)):
        return False
    if refused:
        why = redact(refused[0].rpartition("\t")[2])
        raise Unavailable(f"the remote refuses the commits: {why}; {_error_text(result)}")
    raise _unreachable_error(result, limit_s, stop)


def check_may_push(repo: Repository, tracked: TrackedBranch) -> None:
    """Raise Conflict if a person must push manually: pushes go to another remote, or there is a pre-push hook."""
    if tracked.pushes != tracked.remote:
        raise Conflict(
            f"Git pushes this branch to another place than it pulls from, so push manually: {push_command(repo)}"
        )
    if (repo.hooks_folder() / "pre-push").exists():
        raise Conflict(
            f"the repository has a pre-push hook (perhaps of Git LFS), and Memex does not run it, so push manually: {push_command(repo)}"
        )


def push_command(repo: Repository) -> str:
    """Return the command with which a person pushes manually."""
    return f"`git -C {shlex.quote(repo.vault)} push`"


def _transfer(repo: Repository, *words: str, limit_s: float, stop: threading.Event) -> ProcessResult:
    environ = _silent_environ(repo)
    logs_everything = (repo.query("config", "--get", "core.logAllRefUpdates") or "").lower() == _EVERYTHING_LOGGED
    settings = _SILENT if logs_everything else (*_SILENT, _LOGGED)
    options = (word for setting in settings for word in ("-c", setting))
    return repo.run_in_session(*options, *words, environ=environ, limit_s=limit_s, until_silent=True, stop=stop)


def _silent_environ(repo: Repository) -> Mapping[str, str]:
    """Return environment variables with which Git and SSH ask nobody for credentials."""
    ssh = repo.query("config", "--get", "core.sshCommand") or "ssh"
    if ssh.split()[0].rpartition("/")[2] != "ssh":
        return _UNASKED  # another program with other options; it has no terminal to ask on either
    return {**_UNASKED, "GIT_SSH_COMMAND": f"{ssh} {_SSH}{'' if ' -F' in ssh else _settings_option()}"}


def _settings_option() -> str:
    """Return the option with which ssh reads only this user's settings, where the system's would end it; else "".

    In a user namespace without root, such as that of `PrivateUsers=yes`, root's files belong to nobody. Then ssh refuses
    the files that /etc/ssh/ssh_config includes."""
    if _SYSTEM_FOLDER.stat().st_uid in (0, os.getuid()):
        return ""
    settings = expand_home("~/.ssh/config")
    return f" -F {shlex.quote(str(settings)) if settings.is_file() else 'none'}"


def _is_race(result: ProcessResult) -> bool:
    return any(words in result.said for words in _CROSSED)


def _unreachable_error(result: ProcessResult, limit_s: float, stop: threading.Event) -> Unavailable:
    if stop.is_set():
        return Unavailable("the daemon is stopping, so Memex did not wait for the remote")
    if result.late:
        return Unavailable(f"the transfer with the remote made no progress for {limit_s:g} s (git.timeout_s)")
    return Unavailable(f"the remote can't be reached: {_error_text(result)}")


def _error_text(result: ProcessResult) -> str:
    """Return Git's output on one line, without reports of progress and with secrets masked."""
    last = (line.rstrip("\r").rpartition("\r")[2].strip() for line in result.said.split("\n"))
    lines = (line for line in last if not line.startswith(_REPORTS) and not line.endswith(", done."))
    return redact(" ".join(filter(None, lines)))[:_SAID] or f"Git ended with {result.code}"
