"""Search the captures of a workspace and, through its window, the notes of the vault that its owner shares with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from index.model import Answer, Query
from index.search.fusion import place_below_successors
from index.search.hybrid_search import POOLS
from index.search.reranker import Reranker, search_reranked
from syncd.sharing.window import WorkspaceWindow
from syncd.sharing.window_ranking import join_hits

SearchScope: TypeAlias = Literal["captures", "vault", "all"]


def search_scopes(
    query: Query,
    scope: SearchScope,
    captures: Callable[[Query], Answer],
    window: WorkspaceWindow | None,
    reranker: Reranker | None,
) -> Answer:
    """Return the hits among the captures, the shared notes, or both, the best match first; without a window, only captures.

    Shared notes have no namespace, collection or source, so a search for one of these finds none of them."""
    of_captures = (query.filter.namespace, query.filter.collection, query.filter.source)
    if window is None or any(value is not None for value in of_captures):
        return Answer((), query.mode) if scope == "vault" else search_reranked(reranker, query, captures)
    if scope == "captures":
        return search_reranked(reranker, query, captures)
    if scope == "vault":
        return _recheck(window, reranker, search_reranked(reranker, query, window.search))

    def search_both(wide: Query) -> Answer:
        answers = (captures(wide), window.search(wide))
        hits = place_below_successors([hit for answer in answers for hit in answer.hits])
        return Answer(tuple(hits), answers[0].mode, tuple(line for answer in answers for line in answer.degraded))

    # Twice as many, because joining moves hits of both kinds. Only the joined hits are cut, so that no shared note hides a capture.
    # For usual limits the same number, as a note of one kind may supersede one of the other: the order should not depend on the limit.
    wide = replace(query, limit=max(2 * query.limit, POOLS[0]))
    answer = reranker.search(wide, search_both) if reranker else search_both(wide)
    answer = _recheck(window, reranker, answer)
    return replace(answer, hits=tuple(join_hits(answer.hits)[: query.limit]))


def _recheck(window: WorkspaceWindow, reranker: Reranker | None, answer: Answer) -> Answer:
    """Return `answer` without notes that were withheld while the reranker was at work, which can take seconds."""
    return window.keep_shared(answer) if reranker else answer
