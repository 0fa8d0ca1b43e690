"""The owner's operations on files to be added: what may be said of them, which are there already, and queueing one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from index.scope.index import Index
from syncd.owner import jobs as owner_queue
from syncd.state.ledger import Ledger
from syncd.uploads import upload_request

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import Desk

SAID: Final = ("title", "tags", "collection", "namespace", "source")

Operation: TypeAlias = Callable[[Mapping[str, Any], Any], Any]


def operations(desk: Desk, ledger: Ledger, index: Callable[[], Index]) -> dict[str, Operation]:
    """What the owner may ask, by name; `index` gives the captures' index in use."""

    def check(given: Mapping[str, Any], _: Any) -> dict[str, Any]:
        workspace = desk.workspace(given["workspace"]).name
        upload_request.described(desk.uploads.settings.known, **_said(given))
        digest = given.get("sha256")
        return {
            "document": _same(workspace, str(digest)) if digest else None,
            "job": _waiting(workspace, str(digest), int(given.get("size") or 0)) if digest else None,
            "largest": desk.uploads.settings.max_file,
        }

    def add(given: Mapping[str, Any], _: Any) -> dict[str, Any]:
        workspace = desk.workspace(given["workspace"]).name
        job = desk.uploads.adopted(
            given["staged"], workspace, filename=given["name"], sha256=given.get("sha256"), **_said(given)
        )
        return owner_queue.told(job)

    def _same(workspace: str, digest: str) -> dict[str, Any] | None:
        """The document of a file with these very bytes, or the note that a Markdown file of them became."""
        rows = ledger.rows("SELECT path, document_id FROM handled WHERE digest = ?", (digest,))
        for path, id in rows:
            record = index().record(id, workspace)
            if record is not None and record.file == path:
                return {"id": record.id, "path": path}
        jobs = ledger.rows(
            "SELECT document_id FROM queue WHERE key = '' AND workspace = ? AND kind = 'file' AND status = 'done'"
            " AND instr(given, ?) AND json_extract(given, '$.given.sha256') = ?",  # the first is quick
            (workspace, digest, digest),
        )
        for (id,) in jobs:
            record = index().record(id, workspace)
            if record is not None and record.file is None:
                return {"id": record.id, "path": record.path}
        return None

    def _waiting(workspace: str, digest: str, size: int) -> dict[str, Any] | None:
        """The job that is to make that document, of a call that was broken off or does not wait."""
        rows = ledger.rows(
            "SELECT id FROM queue WHERE key = '' AND kind = 'file' AND status IN ('queued', 'running') AND size = ?"
            " AND workspace = ? AND json_extract(given, '$.given.sha256') = ? ORDER BY seq LIMIT 1",
            (size, workspace, digest),
        )
        return owner_queue.told(desk.queue.job(rows[0][0])) if rows else None

    return {"file.check": check, "file.add": add}


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in SAID if given.get(name) is not None}
