"""Compose `Review.base`, the Obsidian Bases table for the review: waiting captures, each with a box to tick.

Law, tested: the base is valid for every name that an inbox can have. Its views list only waiting captures: no
entity, report or archived note, and no file beside the workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from syncd.vault.location import ARCHIVE, CONTEXT, ENTITIES, REPORTS

NAME: Final = "Review.base"
DISMISSED: Final = "dismissed"

FOLDER: Final = "if(note.promote_to, note.promote_to, note.suggested_folder)"  # the target folder of a ticked capture
_NAMES: Final = {  # names of columns for people
    "file.name": "Note",
    "formula.folder": "Folder",
    "note.promote": "Promote",
    "note.review": "Review",
    "note.promote_to": "Promote to",
    "note.suggested_folder": "Suggested folder",
    "note.suggested_similar": "Similar",
    "note.suggested_links": "Suggested links",
    "note.suggested_tags": "Suggested tags",
    "note.title": "Title",
    "note.summary": "Summary",
    "note.tags": "Tags",
    "note.source": "Source",
    "note.created_at": "Created",
    "note.promote_problem": "Problem",
    "note.hidden_text": "Hidden characters",
    "note.runnable_code": "Code that Obsidian may run",
    "note.unsafe_links": "Links to files or programs",
}
_WAITING: Final = ("file.name", "note.promote", "formula.folder", "note.summary", "note.suggested_similar")
_DETAILS: Final = (
    *("file.name", "note.promote", "note.review", "note.promote_to", "note.suggested_folder", "note.suggested_links"),
    *("note.suggested_tags", "note.title", "note.tags", "note.source", "note.created_at"),
)
_PROBLEMS: Final = (
    *("file.name", "note.promote_problem", "note.hidden_text", "note.runnable_code", "note.unsafe_links"),
    *("note.promote", "note.promote_to", "note.review", "note.created_at"),
)
_WARNINGS: Final = ("note.promote_problem", "note.hidden_text", "note.runnable_code", "note.unsafe_links")
_HAS_WARNING: Final = " || ".join(f"!{column}.isEmpty()" for column in _WARNINGS)
_RECENT: Final = ("file.name", "note.summary", "note.tags", "note.source", "note.created_at", "note.promote")
_WIDTHS: Final = {  # in pixels
    "file.name": 260,
    "note.promote": 80,
    "note.summary": 360,
    "note.review": 110,
    "note.promote_problem": 420,
}


def compose_table(inbox: str) -> str:
    """Compose the base for the inbox of this name. A ticked capture stays listed until it is moved, so it can be unticked.

    The first view has the columns that a decision needs; the second also has the other properties, including those
    that a person may fill in."""
    lower = inbox.lower()
    return "".join(
        [
            "filters:\n  and:\n",
            _format_filter(4, 'file.ext.lower() == "md"'),
            _format_filter(4, f"file.folder.startsWith({_quote_text(f'{inbox}/')})"),
            "    - not:\n",
            _format_filter(8, f"file.path.lower().startsWith({_quote_text(f'{lower}/{REPORTS.lower()}/')})"),
            _format_filter(8, f"file.path.lower().startsWith({_quote_text(f'{lower}/{ARCHIVE.lower()}/')})"),
            _format_filter(8, f"file.path.lower().startsWith({_quote_text(f'{lower}/{CONTEXT.lower()}/')})"),
            _format_filter(8, 'note.type == "entity"'),
            _format_filter(8, f"note.type.isEmpty() && file.folder.endsWith({_quote_text(f'/{ENTITIES}')})"),
            _format_filter(4, "note.promoted_at.isEmpty()"),
            _format_filter(4, f"note.review != {_quote_text(DISMISSED)}"),
            f"formulas:\n  folder: '{FOLDER}'\n",
            "properties:\n",
            *(f'  {column}:\n    displayName: "{name}"\n' for column, name in _NAMES.items()),
            "views:\n",
            *_format_view("table", "Waiting", _WAITING, "ASC"),
            "    summaries:\n      note.promote: Checked\n    rowHeight: medium\n",
            _format_widths(_WAITING),
            *_format_view("table", "Details", _DETAILS, "ASC"),
            "    rowHeight: medium\n",
            _format_widths(_DETAILS),
            *_format_view("table", "Problems", _PROBLEMS, "ASC", where=_HAS_WARNING),
            "    rowHeight: medium\n",
            _format_widths(_PROBLEMS),
            *_format_view("cards", "Recent", _RECENT, "DESC"),
            "    limit: 50\n    cardSize: 260\n",
        ]
    )


def _format_view(kind: str, name: str, columns: Sequence[str], direction: str, where: str = "") -> list[str]:
    """Return the lines of a view up to its sort order; `where` filters its notes."""
    return [
        f'  - type: {kind}\n    name: "{name}"\n',
        *([f"    filters:\n      and:\n{_format_filter(8, where)}"] if where else []),
        "    order:\n",
        *(f"      - {column}\n" for column in columns),
        f"    sort:\n      - property: note.created_at\n        direction: {direction}\n",
    ]


def _format_widths(columns: Sequence[str]) -> str:
    pixels = {column: _WIDTHS[column] for column in columns if column in _WIDTHS}
    return "    columnSize:\n" + "".join(f"      {column}: {width}\n" for column, width in pixels.items())


def _format_filter(indent: int, expression: str) -> str:
    """Format an item of a list of filters in single quotes, where YAML only needs the quote itself escaped."""
    quoted = expression.replace("'", "''")
    return f"{' ' * indent}- '{quoted}'\n"


def _quote_text(value: str) -> str:
    """Quote a string for an expression."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
