"""Workspace totals count the documents of one workspace, and name the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from index.scope.index import Index


@dataclass(frozen=True, slots=True)
class WorkspaceTotals:
    """Counts the documents of one workspace, and names the encoder."""

    documents: tuple[tuple[str, str, int], ...]  # type, collection, how many
    chunks: int
    words_only: int  # number of documents without vectors
    listed: bool  # whether the vault has been read once
    encoder: tuple[str, int, str]  # the model's name, dimensions, state
    degraded: tuple[str, ...]


def count_totals(index: Index, workspace: str, namespace: str | None, degraded: Sequence[str]) -> WorkspaceTotals:
    """Return the totals of `workspace`, or of one namespace of it."""
    rows = index.tally(workspace, namespace)
    return WorkspaceTotals(
        documents=tuple((kind, collection, count) for kind, collection, count, _, _ in rows),
        chunks=sum(chunks for _, _, _, chunks, _ in rows),
        words_only=sum(bare for *_, bare in rows),
        listed=index.is_complete,
        encoder=index.encoder,
        degraded=tuple(degraded),
    )
