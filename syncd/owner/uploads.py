"""Define the owner's operations on uploads: check a file's description, find files already imported, queue a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from index.scope.index import Index
from syncd.daemon.control_socket import Operation
from syncd.files.imported_files import documents_of
from syncd.owner import jobs
from syncd.state.ledger import Ledger
from syncd.uploads import upload_request

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess

DESCRIPTION: Final = ("title", "tags", "collection", "namespace", "source")


def operations(agent_access: AgentAccess, ledger: Ledger, index: Callable[[], Index]) -> dict[str, Operation]:
    """Return the owner's operations on uploads, by name; `index` gives the index of captures in use."""

    def check(asked: Mapping[str, Any], _: Any) -> dict[str, Any]:
        workspace = agent_access.workspace(asked["workspace"]).name
        upload_request.check_description(agent_access.uploads.settings.all_collections, **_description_fields(asked))
        digest = str(asked.get("sha256") or "")
        job = agent_access.queue.job_for_file(workspace, digest, int(asked.get("size") or 0)) if digest else None
        return {
            "document": find_same(workspace, digest) if digest else None,
            "job": jobs.job_fields(job) if job else None,
            "largest": agent_access.uploads.settings.max_file,
        }

    def add(asked: Mapping[str, Any], _: Any) -> dict[str, Any]:
        workspace = agent_access.workspace(asked["workspace"]).name
        job = agent_access.uploads.adopt(
            asked["staged"], workspace, filename=asked["name"], sha256=asked.get("sha256"), **_description_fields(asked)
        )
        return jobs.job_fields(job)

    def find_same(workspace: str, digest: str) -> dict[str, Any] | None:
        """Find the note of a file with the same bytes, or the note that a Markdown file with these bytes became."""
        for path, id in documents_of(ledger, digest):
            record = index().record(id, workspace)
            if record is not None and record.file == path:
                return {"id": record.id, "path": path}
        for id in agent_access.queue.documents_of_file(workspace, digest):
            record = index().record(id, workspace)
            if record is not None and record.file is None:
                return {"id": record.id, "path": record.path}
        return None

    return {"file.check": check, "file.add": add}


def _description_fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in DESCRIPTION if asked.get(name) is not None}
