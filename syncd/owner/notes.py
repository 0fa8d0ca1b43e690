"""Carry out the owner's commands on notes: search and read all notes; capture, change and delete notes of the inbox."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import Any

from index.document_ids import path_id
from index.errors import InvalidArgument
from index.model import Answer, Filter, Hit, Query, Record, Scope
from index.names import did_you_mean, fold
from index.query import make_query, tag_keys
from index.scope.index import Index
from index.search.fusion import place_below_successors
from index.search.hybrid_search import POOLS
from index.search.reranker import search_reranked
from syncd.daemon.control_socket import Arguments, Operation
from syncd.daemon.open_parts import OpenParts
from syncd.history.audit_log import AUTHOR
from syncd.indexes import note_lookup
from syncd.indexes.index_builds import SCOPES
from syncd.indexes.note_links import find_links
from syncd.indexes.note_lookup import find_successor
from syncd.links.obsidian_url import obsidian_url
from syncd.notes.front_matter import decode, replace_undecoded, split
from syncd.notes.timestamps import iso_or_none
from syncd.vault.location import ABOUT, REPORTS
from syncd.vault.obsidian_settings import ObsidianSettings
from syncd.vault.vault import Vault
from syncd.workspaces.agent_access import AgentAccess

MOST = 10_001  # captures in one list: one more than a command shows


def read_operations(
    opened: OpenParts, agent_access: AgentAccess, degraded: Callable[[], list[str]]
) -> dict[str, Operation]:
    """Return the operations that change nothing. `degraded`: reasons why a search may be incomplete at the moment."""

    def search(arguments: Arguments, _: Any) -> dict[str, Any]:
        scope = arguments.get("scope") or "captures"
        if scope not in ("captures", "vault", "all"):
            raise InvalidArgument(f"scope must be captures, vault or all, not {scope!r}")
        query = _parse_query(arguments, opened.settings.kb.all_collections)
        if query.filter.workspace:
            agent_access.workspace(query.filter.workspace)
        scopes = [name for name in SCOPES if scope in (name, "all")]
        folder, nothing = _parse_folder(arguments.get("folder")), bool(arguments.get("hidden"))
        left_out = LeftOut(opened.vault, opened.settings.vault.inbox, nothing=nothing)
        answer = search_reranked(
            opened.reranker, query, lambda wider: _search_scopes(opened, wider, scopes, folder, left_out)
        )
        opened.searches.record(query.text, [hit.record.id for hit in answer.hits])
        return {
            "hits": [_hit_fields(opened, hit) | _successor_fields(opened, hit.record) for hit in answer.hits],
            "left_out": sorted(left_out.paths),
            "mode": answer.mode,
            "degraded": list(dict.fromkeys([*answer.degraded, *degraded()])),
            "unknown_tags": [] if answer.hits else _find_unknown_tags(opened, query.filter.tags),
        }

    def get(arguments: Arguments, _: Any) -> dict[str, Any]:
        record, content = _read_note(opened, agent_access, arguments)
        return _note_fields(opened, arguments, record, content)

    def recent(arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        limit = arguments.get("limit") or 20
        if not 1 <= limit <= MOST:
            raise InvalidArgument(f"limit must be between 1 and {MOST:,}")
        asked = Filter(workspace=agent_access.workspace(name).name if (name := arguments.get("workspace")) else None)
        records, _more = opened.captures.index.list_recent(asked, limit)
        return [_record_fields(opened, record) for record in records]

    return {"search": search, "get": get, "recent": recent, "folders": lambda *_: _list_folders(opened)}


def write_operations(opened: OpenParts, agent_access: AgentAccess) -> dict[str, Operation]:
    """Return the operations that write captures."""

    def capture(arguments: Arguments, _: Any) -> dict[str, Any]:
        workspace = agent_access.workspace(arguments.get("workspace") or "default")
        captured = workspace.capture(
            arguments["content"],
            source=arguments.get("source"),
            metadata=arguments.get("metadata"),
            namespace=unicodedata.normalize("NFC", arguments.get("namespace") or "default"),
            collection=arguments.get("collection"),
        )
        return _record_fields(opened, captured.record) | {"created": captured.created}

    def update(arguments: Arguments, _: Any) -> dict[str, Any]:
        record = _find_capture(opened, arguments)
        fields = {name: arguments.get(name) for name in ("title", "tags", "collection", "version")}
        updated, changed = agent_access.workspace(record.workspace).update_note(
            record.id, arguments.get("text"), **fields
        )
        return _record_fields(opened, updated) | {"changed": changed, "undo": AUTHOR.get().request if changed else None}

    def delete(arguments: Arguments, _: Any) -> dict[str, Any]:
        record = _find_capture(opened, arguments)
        deleted = agent_access.workspace(record.workspace).delete(record.id)
        return _record_fields(opened, deleted) | {"deleted": True, "undo": AUTHOR.get().request}

    return {"capture": capture, "updatenote": update, "delete": delete}


class LeftOut:
    """Notes that the owner's search leaves out: templates, files that Obsidian excludes, and Memex's own reports."""

    def __init__(self, vault: Vault, inbox: str, *, nothing: bool) -> None:
        settings, self._inbox, self._nothing = ObsidianSettings(vault), inbox, nothing
        self._tests = (settings.template_test(), settings.exclusion_test())
        self.paths: set[str] = set()  # of the hits that were left out

    def take(self, hits: Sequence[Hit], most: int) -> Sequence[Hit]:
        """Filter out the hits that are left out, and record those that rank above the last of `most` others."""
        if self._nothing:
            return hits
        kept = []
        for hit in hits:
            if not self.has(hit.record.path):
                kept.append(hit)
            elif len(kept) < most:
                self.paths.add(hit.record.path)
        return kept

    def has(self, path: str) -> bool:
        """Return whether a note is left out."""
        if path.startswith(f"{self._inbox}/"):  # settings of Obsidian do not apply to the inbox
            inside = fold(path.removeprefix(f"{self._inbox}/"))
            return inside.startswith(f"{fold(REPORTS)}/") or inside == fold(ABOUT)
        return any(test(path) for test in self._tests)


def _search_scopes(opened: OpenParts, query: Query, scopes: Sequence[Scope], folder: str, left_out: LeftOut) -> Answer:
    """Search a folder in these scopes, the best match first.

    More hits than the limit are compared, as a note of one scope may supersede one of the other: the order should not depend
    on the limit."""
    wide = replace(query, limit=max(query.limit, POOLS[0])) if len(scopes) > 1 else query
    answers = []
    for scope in scopes:
        index = opened.builds.scopes[scope].index
        narrow = _query_for_folder(_query_for_scope(wide, scope), index, folder)
        answers.append(
            index.search(narrow) if scope == "captures" else _search_vault(index, narrow, left_out, query.limit)
        )
    hits = [hit for answer in answers for hit in answer.hits]
    if len(answers) > 1:  # the order of one index is final: its later hits may have higher scores than a superseded one
        hits = place_below_successors(hits)
    degraded = tuple(sentence for answer in answers for sentence in answer.degraded)
    return Answer(tuple(hits[: query.limit]), answers[0].mode, degraded)


def _search_vault(index: Index, query: Query, left_out: LeftOut, most: int) -> Answer:
    """Search the vault; further hits replace those that are left out, until there are `most`."""
    wider = query
    while True:
        answer = index.search(wider)
        kept = left_out.take(answer.hits, most)
        if len(kept) >= most or not left_out.paths:
            break
        if len(answer.hits) < wider.limit or wider.limit >= POOLS[-1]:  # others may match less well than a whole pool
            kept = [*kept, *_search_others(index, query, left_out, kept)]
            break
        wider = replace(wider, limit=4 * wider.limit)
    return replace(answer, hits=tuple(kept[: query.limit]))


def _search_others(index: Index, query: Query, left_out: LeftOut, before: Sequence[Hit]) -> list[Hit]:
    """Search only the notes that are not left out, which takes longer; return the hits that follow `before`."""
    others = frozenset(path_id(path) for path in index.manifest.copy() if not left_out.has(path))
    asked = query.filter.documents
    narrow = replace(query.filter, documents=others if asked is None else asked & others)
    known = {hit.record.path for hit in before}
    most = min((hit.score for hit in before), default=1.0)
    hits = index.search(replace(query, filter=narrow)).hits
    return [replace(hit, score=min(hit.score, most)) for hit in hits if hit.record.path not in known]


def _query_for_folder(query: Query, index: Index, folder: str) -> Query:
    """Limit a query to the documents below a folder; "" = all of them."""
    if not folder:
        return query
    below = f"{folder}/"
    inside = (path for path in index.manifest.copy() if unicodedata.normalize("NFC", path).startswith(below))
    return replace(query, filter=replace(query.filter, documents=frozenset(map(path_id, inside))))


def _successor_fields(opened: OpenParts, record: Record) -> dict[str, Any]:
    """Return whether a newer note supersedes a capture, with the id and path of that note if it still exists."""
    newer = find_successor(opened.captures.index, record, vault=opened.notes.index)
    return {
        "stale": record.superseded_by is not None,
        "superseded_by": newer.id if newer else None,
        "successor": newer.path if newer else None,
    }


def _find_capture(opened: OpenParts, arguments: Arguments) -> Record:
    """Find the capture that the arguments name.

    Raises NotFound for a note outside the inbox, and for a capture in another workspace than the named one."""
    record = note_lookup.find_note(
        [opened.captures.index], arguments["id"], workspace=arguments.get("workspace") or None
    )
    if record is None:
        raise note_lookup.missing_note(
            [opened.captures.index],
            arguments["id"],
            "to list captures: memex recent; this command changes no note outside the inbox",
        )
    return record


def _find_note(opened: OpenParts, arguments: Arguments) -> Record:
    """Find the note that the arguments name, in the scope `captures` a capture alone. Raises NotFound."""
    if arguments.get("scope") == "captures":
        return _find_capture(opened, arguments)
    id, workspace = arguments["id"], arguments.get("workspace") or None
    indexes = [opened.captures.index] if workspace else list(opened.builds.indexes.values())
    record = note_lookup.find_note(indexes, id, workspace=workspace)
    if record is None:
        raise note_lookup.missing_note(indexes, id, "to find notes: memex search WORDS", kind="note")
    return record


def _read_note(opened: OpenParts, agent_access: AgentAccess, arguments: Arguments) -> tuple[Record, str]:
    """Return the note that is meant, and its text; that of a node as in its file, where agents see other links. Raises NotFound."""
    record = _find_note(opened, arguments)
    if record.scope == "captures" and record.type != "entity":
        return record, agent_access.workspace(record.workspace).read_content(record)
    raw, _ = opened.vault.read(record.path)
    return record, replace_undecoded(split(decode(raw))[1])


def _note_fields(opened: OpenParts, arguments: Arguments, record: Record, content: str) -> dict[str, Any]:
    """Return the note with what the arguments ask for: its passages, unless they leave them out, and its links."""
    fields = _record_fields(opened, record) | {"content": content}
    # After a large change, the store reads all rows for the passages until it is maintained.
    if arguments.get("passages", True):
        fields["passages"] = opened.builds.scopes[record.scope].index.passages(record)
    return fields | (find_links(list(opened.builds.indexes.values()), record.path) if arguments.get("links") else {})


def _find_unknown_tags(opened: OpenParts, tags: Sequence[str]) -> list[dict[str, str]]:
    """Return the `tags` that no note has, neither alone nor above a nested one, each with the question for a near tag."""
    known = {tag for index in opened.builds.indexes.values() for tag in index.tags()} if tags else set()
    keys = set(tag_keys(known))
    return [{"tag": tag, "near": did_you_mean(tag, keys)} for tag in tags if tag not in keys]


def _list_folders(opened: OpenParts) -> list[str]:
    """List the folders that hold notes, and the folders above them."""
    folders = {path.rpartition("/")[0] for paths in opened.builds.paths().values() for path in paths}
    return sorted({str(above) for folder in folders for above in (folder, *PurePosixPath(folder).parents)} - {"", "."})


def _parse_folder(value: Any) -> str:
    """Return the path of a folder in the vault, without a slash at its end; "" for none."""
    if value is not None and not isinstance(value, str):
        raise InvalidArgument("folder must be text: the path of a folder in the vault", field="folder")
    return unicodedata.normalize("NFC", value or "").strip().strip("/")


def _parse_query(arguments: Arguments, collections: tuple[str, ...]) -> Query:
    names = ("limit", "mode", "workspace", "namespace", "collection", "tags", "type", "source", "since", "until")
    asked = {name: arguments[name] for name in names if arguments.get(name) is not None}
    query = make_query(arguments["query"], collections=collections, **asked)
    return replace(query, filter=replace(query.filter, reads_all=True))


def _query_for_scope(query: Query, scope: Scope) -> Query:
    if scope == "captures" or not query.filter.workspace:
        return query
    return replace(query, filter=replace(query.filter, workspace=None))


def _hit_fields(opened: OpenParts, hit: Hit) -> dict[str, Any]:
    record = hit.record
    return {
        "id": record.id,
        "path": record.path,
        "title": record.title,
        "heading": hit.heading,
        "chunk": hit.chunk,
        "score": round(hit.score, 4),
        "weak": hit.weak,
        "scope": record.scope,
        "workspace": record.workspace,
        "source": record.source,
        "tags": list(record.tags),
        "type": record.type,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "url": _url(opened, record),
    }


def _record_fields(opened: OpenParts, record: Record) -> dict[str, Any]:
    fields = asdict(record)
    fields["metadata"] = dict(record.metadata)
    fields["tags"], fields["aliases"] = list(record.tags), list(record.aliases)
    fields["defects"] = [str(defect) for defect in record.defects]
    del fields["writable"], fields["digest"]
    times = {f"{name}_iso": iso_or_none(fields[name]) for name in ("created_at", "updated_at")}
    return fields | times | {"url": _url(opened, record)}


def _url(opened: OpenParts, record: Record) -> str:
    """Return the URL that opens a note in Obsidian."""
    vault = opened.settings.vault
    return obsidian_url(vault.name or vault.path.name, record.path)
