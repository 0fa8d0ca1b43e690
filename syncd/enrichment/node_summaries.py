"""Draft node summaries with the enrichment endpoint: a few for each report, cached while a node stays unchanged.

Law, tested: whatever the endpoint does, a report is made in time; the report names
the drafts that are not from the endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from index.document_ids import sha256
from index.errors import Unavailable
from index.graph.vertex import Vertex
from syncd.documents.parser import parse
from syncd.enrichment.enricher import Enricher

ASKED: Final = 5  # most nodes sent to the endpoint for one report
ENOUGH_S: Final = 15.0  # seconds after which no further node is sent; the current answer is awaited
KEPT: Final = 1_000  # most cached drafts


@dataclass(slots=True)
class SummaryDrafts:
    """Requests the drafts of one report; `kept` holds drafts of earlier reports, by request."""

    enricher: Enricher
    kept: dict[str, str]
    inbox: str
    clock: Callable[[], float] = time.monotonic
    failed: bool = False
    asked: int = 0
    left: int = 0
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = self.clock() + ENOUGH_S

    def __call__(self, vertex: Vertex, contents: Sequence[str]) -> str | None:
        """Return the endpoint's summary of a node; None when it is not asked, or gives none."""
        if self.enricher.by != "endpoint":
            return None
        text = "\n".join(
            [f"# {vertex.name}", "", *(f"- {'  '.join(content.splitlines(keepends=True))}" for content in contents)]
        )
        key = sha256(text.encode())
        if key in self.kept:
            return self.kept[key]
        if self.failed or self.asked >= ASKED or self.clock() > self._until:
            self.left += 1
            return None
        self.asked += 1
        try:
            enrichment = self.enricher.enrich(parse(text.encode(), vertex.path, mtime_ms=0, inbox=self.inbox), {})
        except Unavailable:  # the enricher has logged it
            self.failed, self.left = True, self.left + 1
            return None
        if enrichment.summary:
            while len(self.kept) >= KEPT:
                self.kept.pop(next(iter(self.kept)), None)
            self.kept[key] = enrichment.summary
        return enrichment.summary

    @property
    def degraded(self) -> tuple[str, ...]:
        """Return why some drafts are not from the endpoint."""
        if self.failed:
            return (f"the endpoint for summaries fails, so {self.left} drafts come from the observations alone",)
        if self.left:
            few = "because Memex sends few nodes at a time to the endpoint; repeat the request for more"
            return (f"{self.left} drafts come from the observations alone, {few}",)
        return ()
