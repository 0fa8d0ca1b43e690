"""Define the operations of the vault's owner; the command line runs them over the control socket or in its own process.

Law: no network interface leads to these operations; only a user who can open the state folder reaches notes outside
the inbox through them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from index.errors import NotFound, Unavailable
from index.names import did_you_mean
from index.scope.index import Index
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.daemon.health import Health
from syncd.daemon.open_parts import OpenParts
from syncd.daemon.vault_services import VaultServices
from syncd.enrichment.backfill import Backfill
from syncd.graph.nodes import Nodes
from syncd.history.audit_log import Author, acting_as
from syncd.jobs.scheduler import Scheduler
from syncd.jobs.worker import Worker
from syncd.owner import audit, consolidation, git, history, notes, promotion, review, uploads, workspaces_and_keys
from syncd.owner import index as owner_index
from syncd.owner import jobs as owner_jobs
from syncd.owner.graph import memory_json, perspectives, reports
from syncd.owner.graph import nodes as owner_graph
from syncd.settings.effective_settings import effective_settings
from syncd.settings.settings import Settings
from syncd.sharing.share_requests import ShareRequests
from syncd.workspaces.agent_access import AgentAccess


def operations(
    opened: OpenParts,
    agent_access: AgentAccess,
    services: VaultServices,
    health: Health,
    *,
    backfill: Backfill,
    worker: Worker,
    jobs: Callable[[], Scheduler],
) -> dict[str, Operation]:
    """Return every operation by its name; each takes a dict of JSON values and returns a JSON value."""
    named = {
        **notes.read_operations(opened, agent_access, health.degraded_search),
        **notes.write_operations(opened, agent_access),
        **owner_index.operations(opened, health, jobs),
        **workspaces_and_keys.workspace_operations(agent_access, opened.perspectives, opened.shares),
        **workspaces_and_keys.key_operations(agent_access, opened.keys, opened.settings.state),
        **_share_operations(opened, agent_access),
        "settings.list": lambda _, __: _list_settings(opened.settings),
        "enrich": backfill.enrich_note,
        "enrich.backfill": backfill.enrich_all,
        "enrich.stop": backfill.stop,
        **owner_jobs.job_operations(jobs),
        **owner_jobs.queue_operations(opened.queue, worker),
        **uploads.operations(agent_access, opened.ledger, lambda: opened.captures.index),
        **_graph_operations(opened, agent_access),
        **_history_operations(opened, services),
        **consolidation.operations(services, agent_access, jobs),
        **promotion.operations(services.promotions, services.snapshot),
        **review.operations(services.review, services.archive, services.snapshot, services.promotions.changes),
    }
    return {name: _sign_operation(name, _find_workspace(operation, agent_access)) for name, operation in named.items()}


def _list_settings(chosen: Settings) -> dict[str, Any]:
    """Return the settings with which the daemon runs, and their file."""
    return {"file": str(chosen.file) if chosen.file else None, "settings": effective_settings(chosen)}


def _graph_operations(opened: OpenParts, agent_access: AgentAccess) -> dict[str, Operation]:
    """Return the operations on the graph of a workspace, which must exist."""

    def nodes(workspace: str) -> Nodes:
        return agent_access.workspace(workspace).nodes

    def index() -> Index:
        return opened.captures.index

    return {
        **owner_graph.operations(nodes),
        **reports.operations(nodes),
        **memory_json.operations(nodes, index),
        **perspectives.operations(
            opened.perspectives, workspace=agent_access.workspace, index=index, look=opened.sync.request_listing
        ),
    }


def _share_operations(opened: OpenParts, agent_access: AgentAccess) -> dict[str, Operation]:
    """Return the operations on what agents may read of the vault."""

    def narrow() -> None:
        opened.builds.shared.discard()
        opened.sync.request_listing()  # fills it with what is still shared

    return ShareRequests(
        opened.shares,
        opened.vault,
        workspaces=agent_access.workspaces,
        require_workspace=agent_access.workspace,
        widened=opened.sync.request_listing,
        narrowed=narrow,
    ).operations()


def _history_operations(opened: OpenParts, services: VaultServices) -> dict[str, Operation]:
    """Return the operations on history: Git, the remote, past versions, the audit log."""
    return {
        **git.remote_operations(services.remote),
        **git.commit_operations(services.commits, services.make_due_commits, services.due_commits),
        **history.operations(services.history, services.undo, services.restoring, services.promotions),
        **audit.operations(opened.audit, opened.vault, services.history, inbox=opened.settings.vault.inbox),
    }


def _find_workspace(operation: Operation, agent_access: AgentAccess) -> Operation:
    """Wrap an operation so that it gets the name of a workspace as its folder has it, in another Unicode form than the owner typed.

    Its error on a missing workspace suggests the nearest name, which only the owner may see."""

    def run_with_advice(arguments: Arguments, progress: Progress) -> Any:
        if isinstance(typed := arguments.get("workspace"), str):
            with suppress(Unavailable):  # the vault is away; the operation may need none
                arguments = {**arguments, "workspace": agent_access.spell_workspace(typed)}
        try:
            return operation(arguments, progress)
        except NotFound as error:
            name, known = str(error.details.get("workspace") or ""), agent_access.workspaces()
            near = did_you_mean(name, known) if name not in ("", *known) else ""
            if not near:
                raise
            raise NotFound(f"no workspace {name!r}{near} `memex workspace list` names them", **error.details) from error

    return run_with_advice


def _sign_operation(name: str, operation: Operation) -> Operation:
    """Wrap an operation so that the audit log attributes its writes to the owner and this command."""

    def run_signed(arguments: Arguments, progress: Progress) -> Any:
        with acting_as(Author("cli", name, request=secrets.token_hex(8))):
            return operation(arguments, progress)

    return run_signed
