"""The owner's operations on what waits for a decision: the list, one capture with what is suggested for it, and the archive.

Law: what is told here is drawn from the vault proper; no route or tool of an agent leads here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from index.errors import InvalidArgument, MemexError, NotFound
from index.model import Record
from syncd import meant
from syncd.archive import Archive
from syncd.marks import Marks
from syncd.note import FrontmatterError, decode, properties, split
from syncd.promotion import Problem, goal
from syncd.review import Review
from syncd.vault_snapshot import Ground

Progress = Callable[[dict[str, Any]], None]
Operation = Callable[[Mapping[str, Any], Progress], Any]

MOST = 1_000  # captures in one call
CANDIDATES = 5  # of each kind, with what speaks for them
EXCERPT = 400  # characters of a similar note
TEXT = 20_000  # characters of a capture
SUGGESTED = ("suggested_folder", "suggested_tags", "suggested_links", "suggested_similar")


def operations(review: Review, archive: Archive, ground: Ground) -> dict[str, Operation]:
    """What the owner may ask, by name."""

    def listed(given: Mapping[str, Any], _: Progress) -> dict[str, Any]:
        limit, workspace = int(given.get("limit") or 50), given.get("workspace")
        if not 1 <= limit <= MOST:
            raise InvalidArgument(f"limit must be between 1 and {MOST:,}")
        found = [(record, said) for record, said in review.waiting() if workspace in (None, record.workspace)]
        return {"total": len(found), "waiting": [_told(ground, record, said) for record, said in found[:limit]]}

    def shown(given: Mapping[str, Any], _: Progress) -> dict[str, Any]:
        waiting = {one.path: (one, said) for one, said in review.waiting()}
        one = meant.found([ground.captures.index], given["id"], lambda it: it.path in waiting)
        if one is None:
            raise NotFound(f"no capture {given['id'][:200]!r} waits; memex review --json lists those that do")
        record, said = waiting[one.path]
        may = review.suggestions(record)
        return (
            _told(ground, record, said)
            | _goal(ground, record, said)
            | {
                "file": str(ground.vault.root / record.path),
                "content": split(decode(ground.vault.read(record.path)[0]))[1]
                .encode("utf-8", "replace")
                .decode()[:TEXT],
                "folders": [
                    {"folder": one.what, "score": one.score, "reason": one.reason} for one in may.folders[:CANDIDATES]
                ],
                "similar": [
                    {"path": one.path, "kind": one.kind, "score": one.score, "excerpt": _excerpt(ground, one.path)}
                    for one in may.similar[:CANDIDATES]
                ],
            }
        )

    def dismiss(given: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        done, failed = _each(given, archive.dismiss, progress, "setting aside")
        return {"archived": done, "failed": failed}

    def unarchive(given: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        done, failed = _each(given, archive.bring_back, progress, "bringing back")
        return {"returned": done, "failed": failed}

    def archived(given: Mapping[str, Any], _: Progress) -> list[dict[str, Any]]:
        return archive.latest(int(given.get("limit") or 50))

    return {
        "review.list": listed,
        "review.show": shown,
        "review.dismiss": dismiss,
        "unarchive": unarchive,
        "archived": archived,
    }


def _each(
    given: Mapping[str, Any], work: Callable[[str], dict[str, Any]], progress: Progress, stage: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Do it for each of the ids; what came of it, and what keeps the others from it."""
    ids = list(dict.fromkeys(given.get("ids") or ()))
    if not 1 <= len(ids) <= MOST:
        raise InvalidArgument(f"name 1 to {MOST:,} notes by their ids or paths")
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for number, id in enumerate(ids, 1):
        try:
            done.append(work(id))
        except MemexError as error:
            failed.append({"id": id, "error": error.as_dict()})
        progress({"done": number, "total": len(ids), "stage": stage})
    return done, failed


def _told(ground: Ground, record: Record, said: Marks) -> dict[str, Any]:
    """A capture that waits, with the suggestions that stand in it."""
    own: dict[str, Any] = {}
    try:
        front = split(decode(ground.vault.read(record.path)[0]))[0]
        own = {key.casefold(): value for key, value in properties(front).items()}
    except (MemexError, FrontmatterError):
        pass  # it went a moment ago, or is being edited
    return {
        "id": record.id,
        "path": record.path,
        "workspace": record.workspace,
        "title": record.title,
        "summary": record.summary,
        "tags": list(record.tags),
        "source": record.source,
        "created_at": record.created_at,
        "promote": said.promote,
        "promote_to": said.promote_to,
        "problem": said.promote_problem,
        **{name: own.get(name) for name in SUGGESTED},
    }


def _goal(ground: Ground, record: Record, said: Marks) -> dict[str, Any]:
    """Where it goes if it is promoted, and what chose that; what is wrong with that, if something is."""
    own = ground.settings.promote
    raw, stat = ground.vault.read(record.path)
    document = ground.parsed(raw, record.path, stat)
    try:
        where = goal(document, said, own.rules, folder=own.folder, name=own.name, inbox=ground.inbox)
    except Problem as error:
        return {"goal": None, "by": "", "problem": error.message}
    return {"goal": where.folder, "by": where.by}


def _excerpt(ground: Ground, path: str) -> str:
    try:
        body = split(decode(ground.vault.read(path)[0]))[1]
    except MemexError:  # it went a moment ago
        return ""
    return " ".join(body.encode("utf-8", "replace").decode().split())[:EXCERPT]
