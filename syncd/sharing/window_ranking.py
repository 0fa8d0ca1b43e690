"""Window ranking joins the captures and the shared notes that a search has found, so that a large vault hides no capture.

Laws, tested: the joined hits are those of both lists, each list in its own order; at most two more shared notes than captures
stand above a capture that fits the query; and a shorter answer is the beginning of a longer one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from index.model import Hit

# How many more shared notes than captures may stand above a capture that fits, unless weak ones precede it.
AHEAD: Final = 2


def join_hits(hits: Iterable[Hit]) -> list[Hit]:
    """Return `hits`, which are in order of their scores, with captures that fit the query before surplus shared notes."""
    captured: list[tuple[int, Hit]] = []
    shared: list[tuple[int, Hit]] = []
    for place, hit in enumerate(hits):
        (captured if hit.record.scope == "captures" else shared).append((place, hit))
    joined: list[Hit] = []
    taken = 0  # captures among the joined
    for place, hit in shared:
        while taken < len(captured):
            rank, capture = captured[taken]
            is_surplus = len(joined) - 2 * taken >= AHEAD and _fits(capture)
            if rank > place and not is_surplus:
                break
            joined.append(capture)
            taken += 1
        joined.append(hit)
    return joined + [hit for _, hit in captured[taken:]]


def _fits(capture: Hit) -> bool:
    """Return whether a capture may go ahead of shared notes with higher scores; one of these may replace a superseded one."""
    return not capture.weak and capture.record.superseded_by is None
