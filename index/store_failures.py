"""Log the causes of failures in LanceDB, and convert these failures to errors for callers."""

from __future__ import annotations

import logging
import time
from typing import Final

from index.errors import IndexUnusable, Unavailable

LONGEST_CAUSE: Final = 500  # most characters of a failure that are logged
# Characters that identify a failure, seconds until it is logged again, and most failures that are remembered.
SAME, AGAIN_S, KINDS = 60, 60.0, 100

log = logging.getLogger(__name__)
_LOGGED: dict[str, float] = {}  # when each failure was last logged


def log_cause(error: Exception) -> None:
    """Log LanceDB's message of a failure; a repeated message at most once a minute."""
    cause, now = f"{type(error).__name__}: {error}"[:LONGEST_CAUSE], time.monotonic()
    if now - _LOGGED.get(cause[:SAME], -AGAIN_S) >= AGAIN_S:
        if len(_LOGGED) >= KINDS:
            _LOGGED.clear()
        _LOGGED[cause[:SAME]] = now
        log.warning("the store failed: %s", " ".join(cause.split()))


def to_unavailable(error: Exception) -> Unavailable:
    """Convert a failure in LanceDB to the error for callers, without LanceDB's message, which contains paths and values."""
    if "no space left" in str(error).casefold():
        return Unavailable("the search index can't be written: the disk is full; free some space and try again")
    log_cause(error)
    return IndexUnusable("the search index can't be used; if this persists, rebuild it: memex index --full")
