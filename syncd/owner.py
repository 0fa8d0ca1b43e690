"""The operations of the vault's owner, as the command line asks for them: over the control socket, or in one process.

Law: no network door leads here; only who may open the state folder reaches the vault proper through it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from index.errors import InvalidArgument, NotFound, Unavailable
from index.model import Answer, Filter, Hit, Query, Record, Scope
from index.query import request
from index.rerank import reranked
from syncd import (
    meant,
    owner_audit,
    owner_commits,
    owner_consolidation,
    owner_exchange,
    owner_graph,
    owner_history,
    owner_insight,
    owner_jobs,
    owner_perspectives,
    owner_promote,
    owner_queue,
    owner_remote,
    owner_review,
    owner_uploads,
)
from syncd.audit import Author, authored
from syncd.shelf import SCOPES
from syncd.state import KEY_FILE, private
from syncd.workspace import Kept

if TYPE_CHECKING:
    from syncd.app import App
    from syncd.keys import Key
    from syncd.nodes import Nodes
    from syncd.sync import Sync

Arguments: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[dict[str, Any]], None]
Operation: TypeAlias = Callable[[Arguments, Progress], Any]


def operations(app: App) -> dict[str, Operation]:
    """Every operation by its name; each takes its arguments as JSON values and answers with one."""
    owner = _Owner(app)
    own = {
        "search": owner.search,
        "capture": owner.capture,
        "get": owner.get,
        "recent": owner.recent,
        "updatenote": owner.update,
        "delete": owner.delete,
        "status": owner.status,
        "index": owner.index,
        "check": owner.check,
        "index.examine": owner.examine,
        "workspace.create": owner.create_workspace,
        "workspace.list": owner.list_workspaces,
        "workspace.delete": owner.delete_workspace,
        "enrich": app.labels.again,
        "enrich.backfill": app.labels.backfill,
        "enrich.stop": app.labels.stop,
        "key.create": owner.create_key,
        "key.list": owner.list_keys,
        "key.revoke": owner.revoke_key,
        "key.rotate": owner.rotate_key,
        "key.history": owner.key_history,
        **owner_jobs.operations(lambda: app.jobs),
        **owner_queue.operations(app.queue, app.worker),
        **owner_remote.operations(app.steward.remote),
        **owner_uploads.operations(app.desk, app.ledger, lambda: app.shelf.slots["captures"].index),
        **owner_graph.operations(owner.nodes),
        **owner_insight.operations(owner.nodes),
        **owner_exchange.operations(owner.nodes, lambda: app.shelf.slots["captures"].index),
        **owner_commits.operations(app.steward.commits, app.steward.settle, app.steward.due),
        **owner_history.operations(app.steward.history, app.steward.undo),
        **owner_consolidation.operations(app.steward.consolidation, app.desk, lambda: app.jobs),
        **owner_promote.operations(app.steward.promotions, app.steward.ground),
        **owner_review.operations(app.steward.review, app.steward.archive, app.steward.ground),
        **owner_audit.operations(app.audit, app.vault, inbox=app.settings.vault.inbox),
        **owner_perspectives.operations(
            app.perspectives,
            workspace=app.desk.workspace,
            index=lambda: app.shelf.slots["captures"].index,
            look=app.sync.want_listing,
        ),
    }
    return {name: _signed(name, operation) for name, operation in own.items()}


def _signed(name: str, operation: Operation) -> Operation:
    """An operation whose writes are logged as the owner's, done by this command."""

    def signed(given: Arguments, progress: Progress) -> Any:
        with authored(Author("cli", name, request=secrets.token_hex(8))):
            return operation(given, progress)

    return signed


class _Owner:
    def __init__(self, app: App) -> None:
        self._app = app

    def nodes(self, workspace: str) -> Nodes:
        """The graph of a workspace, which must exist."""
        return self._app.desk.workspace(workspace).nodes

    def search(self, given: Arguments, _: Progress) -> dict[str, Any]:
        scope = given.get("scope") or "captures"
        if scope not in ("captures", "vault", "all"):
            raise InvalidArgument(f"scope must be captures, vault or all, not {scope!r}")
        query = _query(given, self._app.settings.kb.known)
        if query.filter.workspace:
            self._app.desk.workspace(query.filter.workspace)
        scopes = [one for one in SCOPES if scope in (one, "all")]

        def search(query: Query) -> Answer:
            answers = [self._app.shelf.slots[one].index.search(_in_scope(query, one)) for one in scopes]
            hits = sorted((hit for answer in answers for hit in answer.hits), key=lambda hit: -hit.score)
            degraded = tuple(one for answer in answers for one in answer.degraded)
            return Answer(tuple(hits[: query.limit]), answers[0].mode, degraded)

        answer = reranked(self._app.reranker, query, search)
        return {
            "hits": [_hit(hit) for hit in answer.hits],
            "mode": answer.mode,
            "degraded": list(dict.fromkeys([*answer.degraded, *self._app.health.degraded()])),
        }

    def capture(self, given: Arguments, _: Progress) -> dict[str, Any]:
        workspace = self._app.desk.workspace(given.get("workspace") or "default")
        captured = workspace.capture(
            given["content"],
            source=given.get("source"),
            metadata=given.get("metadata"),
            namespace=given.get("namespace") or "default",
            collection=given.get("collection"),
        )
        return _record(captured.record) | {"created": captured.created}

    def get(self, given: Arguments, _: Progress) -> dict[str, Any]:
        kept = self._kept(given["id"], given.get("workspace"))
        return _record(kept.record) | {"content": kept.content, "passages": list(kept.chunks)}

    def recent(self, given: Arguments, _: Progress) -> list[dict[str, Any]]:
        limit = given.get("limit") or 20
        if not 1 <= limit <= 1000:
            raise InvalidArgument("limit must be between 1 and 1000")
        asked = Filter(workspace=self._app.desk.workspace(name).name if (name := given.get("workspace")) else None)
        found, _more = self._app.shelf.slots["captures"].index.latest(asked, limit)
        return [_record(record) for record in found]

    def update(self, given: Arguments, _: Progress) -> dict[str, Any]:
        record = self._capture(given)
        wish = {name: given.get(name) for name in ("title", "tags", "collection", "version")}
        found, changed = self._app.desk.workspace(record.workspace).update_note(record.id, given.get("text"), **wish)
        return _record(found) | {"changed": changed}

    def delete(self, given: Arguments, _: Progress) -> dict[str, Any]:
        record = self._capture(given)
        return _record(self._app.desk.workspace(record.workspace).delete(record.id)) | {"deleted": True}

    def _capture(self, given: Arguments) -> Record:
        """The capture that is meant; NotFound for a note of the vault, and for one in another workspace than was named."""
        index = self._app.shelf.slots["captures"].index
        record = meant.found([index], given["id"], workspace=given.get("workspace") or None)
        if record is None:
            raise NotFound(
                f"no capture {given['id'][:64]!r}; memex recent lists them, and notes of the vault are left to you"
            )
        return record

    def status(self, given: Arguments, _: Progress) -> dict[str, Any]:
        told = self._app.health.status(None) | self._app.health.facts()
        return told | {"coverage": self._app.health.coverage()} if given.get("coverage") else told

    def index(self, given: Arguments, progress: Progress) -> dict[str, Any]:
        sync, tell = self._rooted(), _teller(progress)
        accept, full = bool(given.get("accept_removals")), bool(given.get("full"))
        if full:
            sync.shelf.accept()
        if not full and not sync.shelf.outdated():
            return asdict(sync.run(accept=accept, progress=tell))
        if accept:
            sync.run(accept=True)  # what is held would keep a new index from being made
        return asdict(sync.rebuild(fresh=full, progress=tell))

    def check(self, _: Arguments, progress: Progress) -> dict[str, Any]:
        sync, tell = self._rooted(), _teller(progress)
        sync.run(progress=tell)  # what a listing finds needs no deep check
        told = self._app.check.run(self._app.jobs.stopping, tell)
        return {"checked": told.checked, "mended": told.mended, "failed": sync.run(progress=tell).failed}

    def examine(self, _: Arguments, __: Progress) -> dict[str, str]:
        """What is wrong with the index of each scope; "" = nothing."""
        return {scope: slot.index.examined() for scope, slot in self._app.shelf.slots.items()}

    def create_workspace(self, given: Arguments, _: Progress) -> dict[str, Any]:
        return {"name": self._app.desk.create_workspace(given["name"]).name}

    def list_workspaces(self, _: Arguments, __: Progress) -> list[dict[str, Any]]:
        return [{"name": name} for name in self._app.desk.workspaces()]

    def delete_workspace(self, given: Arguments, _: Progress) -> dict[str, Any]:
        self._app.desk.delete_workspace(given["name"])
        self._app.perspectives.reset(given["name"])
        return {"name": given["name"], "deleted": True}

    def create_key(self, given: Arguments, _: Progress) -> dict[str, Any]:
        names = given.get("workspaces")
        for name in names or ():
            self._app.desk.workspace(name)
        key, secret = self._app.keys.create(
            given["name"],
            workspaces=names,
            scopes=given.get("scopes") or ("read", "write"),
            expires_at=given.get("expires_at"),
            now=_now(),
        )
        return {"name": key.name, "key": secret}

    def list_keys(self, _: Arguments, __: Progress) -> list[dict[str, Any]]:
        return [_key(key) for key in self._app.keys.list()]

    def revoke_key(self, given: Arguments, _: Progress) -> dict[str, Any]:
        return _key(self._app.keys.revoke(given["name"], now=_now()))

    def rotate_key(self, given: Arguments, _: Progress) -> dict[str, Any]:
        key, secret = self._app.keys.rotate(
            given["name"],
            overlap_ms=given.get("overlap_ms") or 0,
            expires_at=given.get("expires_at"),
            now=_now(),
        )
        file = self._app.settings.state / KEY_FILE
        if file.is_file() and file.read_text().startswith(f"mx_{key.id}_"):
            private(file, secret + "\n")
        return {"name": key.name, "key": secret, "old_until": key.old_until, "expires_at": key.expires_at}

    def key_history(self, _: Arguments, __: Progress) -> list[dict[str, Any]]:
        return [dict(one) for one in self._app.keys.history()]

    def _rooted(self) -> Sync:
        sync = self._app.sync
        if not sync.vault.present():
            raise Unavailable(f"the vault {sync.vault.root} is missing; the index is kept as it was")
        return sync

    def _kept(self, id: str, workspace: str | None) -> Kept:
        slots = self._app.shelf.slots
        indexes = [slots[scope].index for scope in (SCOPES if not workspace else ("captures",))]
        record = meant.found(indexes, id, workspace=workspace or None)
        if record is None:
            raise NotFound(f"no note {id[:200]!r}; memex search finds its id")
        if record.scope == "captures":
            return self._app.desk.workspace(record.workspace).get(record.id)
        vault = slots["vault"].index
        return Kept(record, self._app.text_of(record), tuple(vault.passages(record)))


def _teller(progress: Progress) -> Callable[[int, int, str], None]:
    return lambda done, total, stage: progress({"done": done, "total": total, "stage": stage})


def _query(given: Arguments, collections: tuple[str, ...]) -> Query:
    names = ("limit", "mode", "workspace", "namespace", "collection", "tags", "type", "source", "since", "until")
    asked = {name: given[name] for name in names if given.get(name) is not None}
    return request(given["query"], collections=collections, **asked)


def _in_scope(query: Query, scope: Scope) -> Query:
    if scope == "captures" or not query.filter.workspace:
        return query
    return replace(query, filter=Filter(**{**asdict(query.filter), "workspace": None}))


def _hit(hit: Hit) -> dict[str, Any]:
    record = hit.record
    return {
        "id": record.id,
        "path": record.path,
        "title": record.title,
        "heading": hit.heading,
        "chunk": hit.chunk,
        "score": round(hit.score, 4),
        "scope": record.scope,
        "workspace": record.workspace,
    }


def _record(record: Record) -> dict[str, Any]:
    told = asdict(record)
    told["metadata"] = dict(record.metadata)
    told["tags"], told["aliases"] = list(record.tags), list(record.aliases)
    told["defects"] = [str(defect) for defect in record.defects]
    del told["writable"], told["digest"]
    return told


def _key(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "workspaces": None if key.workspaces is None else sorted(key.workspaces),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "old_until": key.old_until,
    }


def _now() -> int:
    return time.time_ns() // 1_000_000
