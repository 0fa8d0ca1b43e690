"""The views of the page as tests open them: an address with content after the history of `page_history`, and a text that it shows."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlencode

from syncd.page.application import VIEWS

NOTE: Final = "Projects/Heron/Heron battery.md"


class Place(NamedTuple):
    """Holds an address of a view, a text that stands there, and a text of the view while there is nothing to show."""

    address: str
    text: str
    empty: str = ""


_PLACES: Final = {
    "home": Place("/", "Bittern release steps", "No agent wrote anything today"),
    "search": Place("/search?q=battery", "Battery thermal sums", "Nothing matches"),
    "note": Place(f"/note?{urlencode({'path': NOTE})}", "lithium iron phosphate"),
    "review": Place("/review", "Waiting, the oldest first", "Nothing waits for a decision"),
    "reports": Place("/reports", "Scan now", "No proposal waits"),
    "graph": Place("/graph?name=Heron", "LFP pack", "This workspace has no entity yet"),
    "activity": Place("/activity", "capture_thought", "The log is empty"),
    "jobs": Place("/jobs", "Add files", "No notes or files were queued"),
    "clients": Place("/clients", "claude-code"),
}
PLACES: Final = {view.name: _PLACES[view.name] for view in VIEWS}
