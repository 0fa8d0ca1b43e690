"""Show the search view: the vault and the captures, as one types, restricted by folder, tag, agent, time and kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from index.errors import InvalidArgument, MemexError
from syncd.cli.terminal.result_text import flatten_passage
from syncd.page.web.passages import mark_passage
from syncd.page.web.view import View, Visit, get

LIMIT: Final = 20
MORE: Final = 50
SCOPES: Final = {"all": "Everything", "vault": "Vault", "captures": "Captures"}
KINDS: Final = {"": "Any kind", "note": "Notes", "file": "Files", "entity": "Entities"}


@dataclass(frozen=True, slots=True)
class SearchForm:
    """Holds what the owner entered, as text."""

    q: str
    scope: str
    folder: str
    tag: str
    source: str
    type: str
    since: str
    until: str
    all: str

    @property
    def is_filtered(self) -> bool:
        """Return whether a filter besides the scope is set."""
        return any((self.folder, self.tag, self.source, self.type, self.since, self.until))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the operation. Raises InvalidArgument for a date that is none."""
        return {
            "query": self.q,
            "scope": self.scope,
            "folder": self.folder or None,
            "tags": [tag.strip() for tag in self.tag.split(",") if tag.strip()] or None,
            "source": self.source or None,
            "type": self.type or None,
            "since": parse_day(self.since),
            "until": parse_day(self.until, end=True),
            "limit": MORE if self.all else LIMIT,
        }


def show_search(visit: Visit) -> Response:
    """Show the form, and the hits for what was entered."""
    names = ("q", "scope", "folder", "tag", "source", "type", "since", "until", "all")
    entered = {name: visit.query(name) for name in names}
    form = SearchForm(**(entered | {"scope": entered["scope"] if entered["scope"] in SCOPES else "all"}))
    answer: Mapping[str, Any] = {"hits": [], "degraded": [], "left_out": []}
    mistake = ""
    if form.q:
        try:
            answer = visit.ask("search", **form.arguments())
        except InvalidArgument as error:  # shown beside the form, which keeps what was entered
            mistake = error.message
    return visit.render(
        "search.html",
        status=400 if mistake else 200,
        form=form,
        scopes=SCOPES,
        kinds=KINDS,
        mistake=mistake,
        answer=answer,
        hits=[
            hit | {"passage": mark_passage(flatten_passage(hit["chunk"], hit["heading"]), form.q)}
            for hit in answer["hits"]
        ],
        is_cut=not form.all and len(answer["hits"]) == LIMIT,
        folders=[] if visit.is_refresh else _list_folders(visit),
    )


def _list_folders(visit: Visit) -> list[str]:
    """Return the folders to choose from; none while they can't be listed, because the search itself still works."""
    try:
        return list(visit.ask("folders"))
    except MemexError:
        return []


def parse_day(text: str, *, end: bool = False) -> int | None:
    """Return the first moment of a local day in epoch milliseconds, or with `end` of the next day; None for no text."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007 - a day of the machine's time zone
        return int((day + timedelta(days=end)).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(f"{text[:40]!r} is not a day: use 2026-11-20") from None


VIEW: Final = View("search", "Search", "/search", "s", (get("/search", show_search),))
