"""Record searches in the search log, if the owner turns it on: each query and the ids of its hits, and nothing else.

Laws, tested: only the owner can read the file, it never exceeds its size, and known secrets in a query are replaced."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from syncd.notes.secret_patterns import redact
from syncd.state.folder import read_regular_file, write_private

FILE: Final = "searches.jsonl"  # in the state folder
MOST_BYTES: Final = 1 << 20  # above this size, the older half is removed
LONGEST: Final = 500  # characters of a query

log = logging.getLogger(__name__)


class SearchLog:
    """Appends searches to the file; safe to use from any thread."""

    def __init__(self, state: Path, *, enabled: bool) -> None:
        self._file, self._enabled = state / FILE, enabled
        self._lock = threading.Lock()

    def record(self, query: str, hits: Sequence[str]) -> None:
        """Record a search by its query and the ids of its hits. A failure is logged, and never ends the search."""
        if not self._enabled:
            return
        line = json.dumps({"query": redact(query)[:LONGEST], "hits": list(hits)}) + "\n"
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                log.warning("the search could not be recorded: %s", error.strerror)

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(self._file, flags, 0o600), "a", encoding="utf-8") as stream:  # noqa: PTH123 - the mode makes it private
            stream.write(line)
            size = stream.tell()
        if size > MOST_BYTES:
            kept = self._file.read_text("utf-8", "replace")[-MOST_BYTES // 2 :]
            write_private(self._file, kept.partition("\n")[2])


def read_searches(state: Path) -> list[dict[str, Any]]:
    """Return the recorded searches, the latest last; damaged lines are left out."""
    try:
        text = read_regular_file(state / FILE).decode("utf-8", "replace")
    except OSError:
        return []
    searches = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("query"), str) and isinstance(entry.get("hits"), list):
            searches.append(entry)
    return searches


def erase_searches(state: Path) -> int:
    """Remove all recorded searches, and return their number."""
    count = len(read_searches(state))
    (state / FILE).unlink(missing_ok=True)
    return count
