"""Define the owner's Git operations: commit Memex's writes now, and sync the vault with its remote now.

Law: these commits never contain the owner's own edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from index.errors import Conflict
from syncd.commits.committer import Committer, DueCommit, MadeCommit
from syncd.daemon.control_socket import Arguments, Operation, Progress

if TYPE_CHECKING:
    from syncd.remote.branch_sync import RemoteSync

STAGES: Final = ("committing", "fetching", "merging", "moving", "pushing")


def commit_operations(
    commits: Committer, settle: Callable[[], list[MadeCommit]], due: Callable[[], Iterable[DueCommit]]
) -> dict[str, Operation]:
    """Return the owner's operations on commits, by name.

    `due`: the commits of promotion and consolidation that Git did not allow earlier; `settle` makes them."""

    def commit(arguments: Arguments, _: Any) -> dict[str, Any]:
        if arguments.get("dry_run"):
            made, selection = commits.preview(due())
            return {
                "commits": [asdict(commit) for commit in made],
                "kept": _kept_rows(selection.kept),
                "edited": sorted(selection.edited),
            }
        done, edited = commits.commit_pending(), set(commits.edited)
        if not commits.hindrance() and (settled := settle()):
            done += settled + commits.commit_pending()  # writes that were left for those commits, but are not in them
        if not done and (why := commits.problem or commits.hindrance()):
            raise Conflict(commits.explain(why))
        return {
            "commits": [asdict(commit) for commit in done],
            "kept": _kept_rows(commits.kept),
            "edited": sorted(edited | commits.edited),
        }

    return {"commit": commit}


def _kept_rows(kept: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in sorted(kept.items())]


def remote_operations(remote: RemoteSync) -> dict[str, Operation]:
    """Return the owner's operations on the remote, by name."""

    def sync(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        def report_stage(stage: str) -> None:
            progress({"done": STAGES.index(stage), "total": len(STAGES), "stage": stage})

        pull, push = bool(arguments.get("pull")), bool(arguments.get("push"))
        return asdict(remote.sync(pull=pull or not push, push=push or not pull, tell=report_stage))

    return {"sync": sync}
