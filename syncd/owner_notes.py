"""The owner's operations on notes: search all of them, read one, and capture, change and remove those of the inbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from index.errors import InvalidArgument, NotFound
from index.model import Answer, Filter, Hit, Query, Record, Scope
from index.query import request
from index.rerank import reranked
from syncd import meant
from syncd.desk import Desk
from syncd.note import decode, split
from syncd.opened import Opened
from syncd.shelf import SCOPES
from syncd.workspace import Kept

Arguments: TypeAlias = Mapping[str, Any]
Operation: TypeAlias = Callable[[Arguments, Any], Any]


def operations(opened: Opened, desk: Desk, degraded: Callable[[], list[str]]) -> dict[str, Operation]:
    """What the owner may ask of notes, by name. `degraded`: what does not work just now, which a search repeats."""
    return reads(opened, desk, degraded) | writes(opened, desk)


def reads(opened: Opened, desk: Desk, degraded: Callable[[], list[str]]) -> dict[str, Operation]:
    """Those that change nothing."""

    def search(given: Arguments, _: Any) -> dict[str, Any]:
        scope = given.get("scope") or "captures"
        if scope not in ("captures", "vault", "all"):
            raise InvalidArgument(f"scope must be captures, vault or all, not {scope!r}")
        query = _query(given, opened.settings.kb.known)
        if query.filter.workspace:
            desk.workspace(query.filter.workspace)
        scopes = [name for name in SCOPES if scope in (name, "all")]
        answer = reranked(opened.reranker, query, lambda wider: _searched(opened, wider, scopes))
        return {
            "hits": [_hit(hit) for hit in answer.hits],
            "mode": answer.mode,
            "degraded": list(dict.fromkeys([*answer.degraded, *degraded()])),
        }

    def get(given: Arguments, _: Any) -> dict[str, Any]:
        kept = _kept(opened, desk, given["id"], given.get("workspace"))
        return _record(kept.record) | {"content": kept.content, "passages": list(kept.chunks)}

    def recent(given: Arguments, _: Any) -> list[dict[str, Any]]:
        limit = given.get("limit") or 20
        if not 1 <= limit <= 1000:
            raise InvalidArgument("limit must be between 1 and 1000")
        asked = Filter(workspace=desk.workspace(name).name if (name := given.get("workspace")) else None)
        records, _more = opened.captures.index.latest(asked, limit)
        return [_record(record) for record in records]

    return {"search": search, "get": get, "recent": recent}


def writes(opened: Opened, desk: Desk) -> dict[str, Operation]:
    """Those that write captures."""

    def capture(given: Arguments, _: Any) -> dict[str, Any]:
        workspace = desk.workspace(given.get("workspace") or "default")
        captured = workspace.capture(
            given["content"],
            source=given.get("source"),
            metadata=given.get("metadata"),
            namespace=given.get("namespace") or "default",
            collection=given.get("collection"),
        )
        return _record(captured.record) | {"created": captured.created}

    def update(given: Arguments, _: Any) -> dict[str, Any]:
        record = _capture(opened, given)
        wish = {name: given.get(name) for name in ("title", "tags", "collection", "version")}
        updated, changed = desk.workspace(record.workspace).update_note(record.id, given.get("text"), **wish)
        return _record(updated) | {"changed": changed}

    def delete(given: Arguments, _: Any) -> dict[str, Any]:
        record = _capture(opened, given)
        return _record(desk.workspace(record.workspace).delete(record.id)) | {"deleted": True}

    return {"capture": capture, "updatenote": update, "delete": delete}


def _searched(opened: Opened, query: Query, scopes: list[Scope]) -> Answer:
    """The best of these scopes."""
    answers = [opened.shelf.slots[scope].index.search(_in_scope(query, scope)) for scope in scopes]
    hits = sorted((hit for answer in answers for hit in answer.hits), key=lambda hit: -hit.score)
    degraded = tuple(sentence for answer in answers for sentence in answer.degraded)
    return Answer(tuple(hits[: query.limit]), answers[0].mode, degraded)


def _capture(opened: Opened, given: Arguments) -> Record:
    """The capture that is meant; NotFound for a note of the vault, and for one in another workspace than was named."""
    record = meant.found([opened.captures.index], given["id"], workspace=given.get("workspace") or None)
    if record is None:
        raise NotFound(
            f"no capture {given['id'][:64]!r}; memex recent lists them, and notes of the vault are left to you"
        )
    return record


def _kept(opened: Opened, desk: Desk, id: str, workspace: str | None) -> Kept:
    slots = opened.shelf.slots
    indexes = [slots[scope].index for scope in (SCOPES if not workspace else ("captures",))]
    record = meant.found(indexes, id, workspace=workspace or None)
    if record is None:
        raise NotFound(f"no note {id[:200]!r}; memex search finds its id")
    if record.scope == "captures":
        return desk.workspace(record.workspace).get(record.id)
    raw, _ = opened.vault.read(record.path)
    body = split(decode(raw))[1].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Kept(record, body, tuple(opened.notes.index.passages(record)))


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
    fields = asdict(record)
    fields["metadata"] = dict(record.metadata)
    fields["tags"], fields["aliases"] = list(record.tags), list(record.aliases)
    fields["defects"] = [str(defect) for defect in record.defects]
    del fields["writable"], fields["digest"]
    return fields
