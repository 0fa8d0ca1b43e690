"""Show the note view: the rendered note, its properties, its links both ways, who wrote it and when, and a way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from index.errors import NotFound
from syncd.page.web.note_html import MOST, render_note
from syncd.page.web.templates import link, unpack_path
from syncd.page.web.view import View, Visit, get, post

EVENTS: Final = 50
# What happened to a note, in words.
VERBS: Final[Mapping[str, str]] = {
    "create": "created",
    "update": "changed",
    "delete": "deleted",
    "moved": "moved",
    "edit": "changed outside Memex",
    "commit": "committed",
    "promote": "promoted",
    "unpromote": "moved back to the inbox",
    "merge": "appended",
    "dismiss": "dismissed",
    "expire": "expired",
    "unarchive": "unarchived",
}
# Fields of a note that are shown as properties, in this order, besides its own.
FIELDS: Final = ("type", "workspace", "namespace", "collection", "source", "summary", "id")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Holds a line of a difference: `kind` is added, removed, place or same."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Version:
    """Describes what happened to a note, with the difference; `call` can be undone, "" = it can't be from here."""

    at: int
    verb: str
    who: str
    how: str
    call: str
    undone: bool
    lines: tuple[DiffLine, ...] | None  # None: the old text is no longer kept, or too long to compare


def show_note(visit: Visit) -> Response:
    """Show a note, or what is known of a note that was deleted."""
    path = visit.query_path("path")
    try:
        note = visit.ask("get", id=path, links=True)
    except NotFound:
        return _show_deleted(visit, path)
    targets = {entry["target"]: entry["path"] for entry in note["links"]}
    history = _read_history(visit, note["path"])
    return visit.render(
        "note.html",
        note=note,
        body=render_note(note["content"], note["path"], targets, title=note["title"]),
        is_cut=len(note["content"]) > MOST,
        properties=list_properties(note),
        links=_distinct_paths(note["links"]),
        versions=list_versions(history["events"]),
        more=history["more"],
    )


def _show_deleted(visit: Visit, path: str) -> Response:
    """Show the history of a note that no longer exists. Raises NotFound if there never was one."""
    history = visit.ask("log", id=path, limit=EVENTS, patch=True)
    versions = list_versions(history["events"])
    return visit.render("note_deleted.html", status=404, path=history["path"], versions=versions, more=history["more"])


def _read_history(visit: Visit, path: str) -> dict[str, Any]:
    """Return the history of a note; an empty one if neither the log nor Git knows the note."""
    try:
        return dict(visit.ask("log", id=path, limit=EVENTS, patch=True))
    except NotFound:
        return {"path": path, "events": [], "more": 0}


def _changes_of(visit: Visit, call: str, path: str) -> list[Version]:
    """Return what a call changed in a note."""
    events = _read_history(visit, path)["events"] if path else []
    return [version for version in list_versions(events) if version.call == call]


def preview_undo(visit: Visit) -> Response:
    """Show what the undo of a call would do, and change nothing."""
    call, path = visit.query("call"), visit.query_path("path")
    plan = visit.ask("undo", id=call, dry_run=True)
    return visit.render("note_undo.html", call=call, path=path, plan=plan, versions=_changes_of(visit, call, path))


def undo_call(visit: Visit) -> Response:
    """Undo a call; when everything was changed since, show both versions and change nothing."""
    call, path = visit.field("call"), unpack_path(visit.field("path"))
    result = visit.ask("undo", id=call)
    if result["skipped"] and not result["done"]:
        return _show_conflict(visit, path, result["skipped"])
    done = ", ".join(f"{step['did']} {step['path']}" for step in result["done"]) or "nothing was left to undo"
    skipped = "".join(f"; left alone: {step['path']} ({step['reason']})" for step in result["skipped"])
    back = f" To take this back: `memex undo {result['undo']}`" if result["undo"] else ""
    return visit.redirect(link("/note", path=path) if path else "/", f"Undone: {done}{skipped}.{back}")


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
        return str(visit.ask(operation, id=step["path"], entry=min(entries, default=None))["content"])
    except NotFound:
        return None


def list_properties(note: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the properties of a note as text, the ones that Memex defines first."""
    values = {name: note.get(name) for name in FIELDS} | {"aliases": note["aliases"]} | dict(note["metadata"])
    return [(name, _as_text(value)) for name, value in values.items() if value not in (None, "", [], {})]


def _as_text(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_as_text, value))
        case dict():
            return "; ".join(f"{key}: {_as_text(item)}" for key, item in value.items())
        case _:
            return str(value)


def _distinct_paths(links: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return each note to which links lead once, and each target without a note."""
    return list(
        {
            entry["path"] or entry["target"]: {"path": entry["path"] or "", "target": entry["target"]}
            for entry in links
        }.values()
    )


def list_versions(events: Sequence[Mapping[str, Any]]) -> list[Version]:
    """Return the events of a note, the newest first."""
    return [
        Version(
            event["at"],
            VERBS.get(event["what"], event["what"]),
            event["author"] or event["key"] or ("" if event["what"] == "edit" else event["surface"]),
            event["subject"] if event["commit"] else event["tool"],
            "" if event["undone"] or event["what"] in ("commit", "edit") else event["request"],
            event["undone"],
            None if event.get("diff") is None else tuple(map(_diff_line, event["diff"])),
        )
        for event in reversed(events)
    ]


def _diff_line(line: str) -> DiffLine:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return DiffLine("place" if line.startswith(("+++", "---")) else kind, line)


VIEW: Final = View(
    "note",
    "Note",
    "/note",
    "",
    (get("/note", show_note), get("/note/undo", preview_undo), post("/note/undo", undo_call)),
)
