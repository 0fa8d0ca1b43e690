"""Count the totals of one workspace: its documents and how many of them can be found by meaning.

Documents of other workspaces are not counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from index.scope.index import Index


@dataclass(frozen=True, slots=True)
class WorkspaceTotals:
    """The documents of one workspace in numbers, and the encoder that they are found by."""

    documents: tuple[tuple[str, str, int], ...]  # type, collection, how many
    chunks: int
    words_only: int  # documents without vectors
    listed: bool  # whether the vault has been read once
    encoder: tuple[str, int, str]  # the model's name, dimensions, state
    degraded: tuple[str, ...]


def held(index: Index, workspace: str, degraded: Sequence[str]) -> WorkspaceTotals:
    """What the index counts in `workspace`."""
    rows = index.tally(workspace)
    return WorkspaceTotals(
        documents=tuple((kind, collection, count) for kind, collection, count, _, _ in rows),
        chunks=sum(chunks for _, _, _, chunks, _ in rows),
        words_only=sum(bare for *_, bare in rows),
        listed=index.listed,
        encoder=index.encoder,
        degraded=tuple(degraded),
    )
