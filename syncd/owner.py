"""The operations of the vault's owner, as the command line asks for them: over the control socket, or in one process.

Law: no network door leads here; only who may open the state folder reaches the vault proper through it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from index.index import Index
from syncd import (
    owner_access,
    owner_audit,
    owner_commits,
    owner_consolidation,
    owner_exchange,
    owner_graph,
    owner_history,
    owner_index,
    owner_insight,
    owner_jobs,
    owner_notes,
    owner_perspectives,
    owner_promote,
    owner_queue,
    owner_remote,
    owner_review,
    owner_uploads,
)
from syncd.audit import Author, authored
from syncd.desk import Desk
from syncd.health import Health
from syncd.jobs import Jobs
from syncd.labels import Labels
from syncd.nodes import Nodes
from syncd.opened import Opened
from syncd.steward import Steward
from syncd.worker import Worker

Arguments: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[dict[str, Any]], None]
Operation: TypeAlias = Callable[[Arguments, Progress], Any]


def operations(
    opened: Opened,
    desk: Desk,
    steward: Steward,
    health: Health,
    *,
    labels: Labels,
    worker: Worker,
    jobs: Callable[[], Jobs],
) -> dict[str, Operation]:
    """Every operation by its name; each takes its arguments as JSON values and answers with one."""
    named = {
        **owner_notes.operations(opened, desk, health.degraded),
        **owner_index.operations(opened, health, lambda: jobs().stopping),
        **owner_access.operations(desk, opened.keys, opened.perspectives, state=opened.settings.state),
        "enrich": labels.again,
        "enrich.backfill": labels.backfill,
        "enrich.stop": labels.stop,
        **owner_jobs.operations(jobs),
        **owner_queue.operations(opened.queue, worker),
        **owner_uploads.operations(desk, opened.ledger, lambda: opened.captures.index),
        **_on_graphs(opened, desk),
        **_on_history(opened, steward),
        **owner_consolidation.operations(steward.consolidation, desk, jobs),
        **owner_promote.operations(steward.promotions, steward.ground),
        **owner_review.operations(steward.review, steward.archive, steward.ground),
    }
    return {name: _signed(name, operation) for name, operation in named.items()}


def _on_graphs(opened: Opened, desk: Desk) -> dict[str, Operation]:
    """Those on the graph of a workspace, which must exist."""

    def nodes(workspace: str) -> Nodes:
        return desk.workspace(workspace).nodes

    def index() -> Index:
        return opened.captures.index

    return {
        **owner_graph.operations(nodes),
        **owner_insight.operations(nodes),
        **owner_exchange.operations(nodes, index),
        **owner_perspectives.operations(
            opened.perspectives, workspace=desk.workspace, index=index, look=opened.sync.want_listing
        ),
    }


def _on_history(opened: Opened, steward: Steward) -> dict[str, Operation]:
    """Those on what was written: Git, the remote, what a note was, the audit log."""
    return {
        **owner_remote.operations(steward.remote),
        **owner_commits.operations(steward.commits, steward.settle, steward.due),
        **owner_history.operations(steward.history, steward.undo),
        **owner_audit.operations(opened.audit, opened.vault, inbox=opened.settings.vault.inbox),
    }


def _signed(name: str, operation: Operation) -> Operation:
    """An operation whose writes are logged as the owner's, done by this command."""

    def signed(given: Arguments, progress: Progress) -> Any:
        with authored(Author("cli", name, request=secrets.token_hex(8))):
            return operation(given, progress)

    return signed
