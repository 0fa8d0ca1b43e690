"""Show the versions of a note, and take changes back: undo a call, restore a version, move the note back.

Law, tested: each of these shows first what it would do, and a note that changed since then is left as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from index.errors import Conflict, InvalidArgument, NotFound
from index.names import replace_surrogates
from syncd.cli.terminal.result_text import EVENT_VERBS, NEVER_KEPT, UNRECORDED, describe_additions
from syncd.page.web.failures import describe_failure
from syncd.page.web.templates import link, unpack_path
from syncd.page.web.text_comparison import patch_lines
from syncd.page.web.view import Visit, get, post

EVENTS: Final = 50
SURFACES: Final = {"cli": "you", "daemon": "Memex", "file": ""}  # who wrote without a key
# Moves of a note; the operation that moves it back, if the move was its last one.
MOVES: Final[Mapping[str, str]] = {
    "promote": "unpromote",
    "dismiss": "unarchive",
    "expire": "unarchive",
    "unpromote": "",
    "unarchive": "",
    "merge": "",
}
# Calls that also change notes outside the inbox, so that no undo of the call exists.
OWN_WAYS: Final = frozenset({"promote", "unpromote", "review.dismiss", "unarchive"})


def read_history(visit: Visit, path: str) -> dict[str, Any]:
    """Return the history of a note; an empty one if neither the log nor Git knows the note."""
    try:
        return dict(visit.ask("log", id=path, limit=EVENTS, patch=True))
    except NotFound:
        return {"path": path, "events": [], "more": 0}


def _read_versions(visit: Visit, path: str) -> list[dict[str, Any]]:
    """Return the versions of a note, the newest first; none for ""."""
    return list_versions(read_history(visit, path)["events"]) if path else []


def list_versions(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what happened to a note, the newest first, with the differences, and the ways back from there; "" = none."""
    last_move = max((place for place, event in enumerate(events) if event["what"] in MOVES), default=None)
    return [
        {
            "at": event["at"],
            "verb": "restored" if event["tool"] == "restore" else EVENT_VERBS.get(event["what"], event["what"]),
            "who": event["author"] or event["key"] or SURFACES.get(event["surface"], event["surface"]),
            "how": event["subject"] if event["commit"] else event["tool"],
            "undone": event["undone"],
            "lines": patch_lines(event.get("diff")),  # None: the old text is no longer kept, or too long to compare
            "remark": _remark(event),  # about the lines
            "call": event["request"] if _is_undoable(event) else "",  # that can be undone
            "name": event["after"] if event.get("restorable") else "",  # of the text after it, if that can be restored
            "way": MOVES[event["what"]] if place == last_move else "",  # the operation that moves the note back
        }
        for place, event in reversed(list(enumerate(events)))
    ]


def _remark(event: Mapping[str, Any]) -> str:
    if event.get("additions"):
        return describe_additions(event["additions"])
    return f"{NEVER_KEPT}." if event.get("diff") is None and event.get("never_kept") else ""


def _is_undoable(event: Mapping[str, Any]) -> bool:
    return not event["undone"] and event["what"] not in UNRECORDED | {"commit"} and event["tool"] not in OWN_WAYS


# Undo of a call


def preview_undo(visit: Visit) -> Response:
    """Show what the undo of a call would do, and change nothing."""
    call, path = visit.query("call"), visit.query_path("path")
    try:
        plan = visit.ask("undo", id=call, dry_run=True)
    except (Conflict, NotFound) as error:
        return _show_refused(visit, path, error)
    versions = [version for version in _read_versions(visit, path) if version["call"] == call]
    return visit.render("note_undo.html", call=call, path=path, plan=plan, versions=versions)


def undo_call(visit: Visit) -> Response:
    """Undo a call; when everything was changed since, show both versions and change nothing."""
    call, path = visit.field("call"), unpack_path(visit.field("path"))
    try:
        result = visit.ask("undo", id=call)
    except (Conflict, NotFound) as error:
        return _show_refused(visit, path, error)
    if result["skipped"] and not result["done"]:
        return _show_conflict(visit, path, result["skipped"])
    done = ", ".join(f"{step['did']} {step['path']}" for step in result["done"]) or "nothing was left to undo"
    skipped = "".join(f"; left alone: {step['path']} ({step['reason']})" for step in result["skipped"])
    back = f" To reverse the undo: `memex undo {result['undo']}`" if result["undo"] else ""
    return visit.redirect(link("/note", path=path) if path else "/", f"Undone: {done}{skipped}.{back}")


def _show_refused(visit: Visit, path: str, error: Conflict | NotFound) -> Response:
    """Show why a change can't be taken back, and the ways that the note's history offers."""
    return visit.render(
        "note_refused.html",
        status=describe_failure(error).status,
        problem=error.message,
        path=path,
        versions=[version for version in _read_versions(visit, path) if version["way"] or version["name"]],
    )


def _show_conflict(visit: Visit, path: str, skipped: Iterable[Mapping[str, Any]]) -> Response:
    """Show each note that was changed since: as it is now, and as the undo would have restored it."""
    notes = [
        {**step, "now": _read_text(visit, step, "get"), "before": _read_text(visit, step, "log.before")}
        for step in skipped
    ]
    return visit.render("note_conflict.html", status=409, path=path, notes=notes)


def _read_text(visit: Visit, step: Mapping[str, Any], operation: str) -> str | None:
    """Return a version of a note of the undo; None if there is none."""
    entries = [entry for entry in step["entries"] if operation == "log.before"]
    try:
        text = str(visit.ask(operation, id=step["path"], entry=min(entries, default=None))["content"])
        return replace_surrogates(text)  # bytes that are no text
    except NotFound:
        return None


# A move back


def preview_move(visit: Visit) -> Response:
    """Show what moving a note back would do."""
    return visit.render("note_move_back.html", path=visit.query_path("path"), way=_check_way(visit.query("way")))


def move_back(visit: Visit) -> Response:
    """Move a promoted note back to the inbox, or an archived capture out of the archive."""
    path, way = unpack_path(visit.field("path")), _check_way(visit.field("way"))
    result = visit.ask(way, ids=[path])
    if result["failed"]:
        error = result["failed"][0]["error"]
        return _show_refused(visit, path, Conflict(error["message"]))
    target = result["returned"][0]["target"]
    return visit.redirect(link("/note", path=target), f"Moved back: `{target}`. Links to it follow.")


def _check_way(way: str) -> str:
    if way not in filter(None, MOVES.values()):
        raise InvalidArgument(f"{way[:64]!r} moves no note back, so nothing was changed")
    return way


# Restore of a version


def preview_restore(visit: Visit) -> Response:
    """Show the lines that the restore of a version would change."""
    return _render_restore(visit, visit.query_path("path"), visit.query("version"))


def _render_restore(visit: Visit, path: str, version: str, *, status: int = 200, mistake: str = "") -> Response:
    plan = visit.ask("restore", id=path, version=version, dry_run=True)
    change = {"lines": patch_lines(plan["diff"])}
    return visit.render(
        "note_restore.html", status=status, path=path, version=version, plan=plan, change=change, mistake=mistake
    )


def restore(visit: Visit) -> Response:
    """Restore a version; if the note changed after it was shown, show the difference again and change nothing."""
    path, version = unpack_path(visit.field("path")), visit.field("version")
    try:
        result = visit.ask("restore", id=path, version=version, shown=visit.field("shown"))
    except Conflict as error:
        return _render_restore(visit, path, version, status=409, mistake=f"{error.message}.")
    return visit.redirect(link("/note", path=result["path"]), describe_restore(result))


def describe_restore(result: Mapping[str, Any]) -> str:
    """Describe in a message what was restored, and how to take it back."""
    if result["undo"] is None:
        return f"`{result['path']}` already has this text."
    commit = f" in commit `{result['commit'][:10]}`" if result["commit"] else ""
    kept = f" The text before is in commit `{result['kept'][:10]}`." if result["kept"] else ""
    return f"Restored `{result['path']}`{commit}.{kept} To undo this, use the history below, or run `memex undo {result['undo']}`"


ROUTES: Final = (
    get("/note/undo", preview_undo),
    post("/note/undo", undo_call),
    get("/note/move-back", preview_move),
    post("/note/move-back", move_back),
    get("/note/restore", preview_restore),
    post("/note/restore", restore),
)
