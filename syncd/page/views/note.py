"""Show the note view: the rendered note, its properties, its links both ways, who wrote it and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from index.errors import NotFound
from syncd.page.views.note_versions import EVENTS, ROUTES, list_versions, read_history
from syncd.page.web.note_html import MOST, render_note
from syncd.page.web.view import View, Visit, get

# Fields of a note that are shown as properties, in this order, besides its own.
FIELDS: Final = ("type", "workspace", "namespace", "collection", "source", "summary", "id")


def show_note(visit: Visit) -> Response:
    """Show a note, or the history of a note that was deleted or is not in the index."""
    path = visit.query_path("path")
    try:
        note = visit.ask("get", id=path, links=True, passages=False)
    except NotFound:
        return _show_history(visit, path)
    targets = {entry["target"]: entry["path"] for entry in note["links"]}
    history = read_history(visit, note["path"])
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


def _show_history(visit: Visit, path: str) -> Response:
    """Show the history of a note that no longer exists or is not in the index. Raises NotFound if there is none."""
    history = visit.ask("log", id=path, limit=EVENTS, patch=True)
    return visit.render(
        "note_history.html",
        status=200 if history["exists"] else 404,
        path=history["path"],
        exists=history["exists"],
        versions=list_versions(history["events"]),
        more=history["more"],
    )


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


VIEW: Final = View("note", "Note", "/note", "", (get("/note", show_note), *ROUTES))
