"""Which absences may be believed: a note that is not there now may be back in a moment, or never have left.

Law: nothing is removed before its absence has lasted; and when much is missing at once nothing is, until Git says that
it took the notes away, ten minutes have passed, or a person agrees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from syncd.plan import brake

FINAL = 2.0  # seconds for which a missing or emptied file must stay so: editors remove and make again
CERTAIN = 600.0  # seconds after which a mass removal is believed


class Absence:
    """Remembers since when each path has been missing, and whether the removals are held."""

    def __init__(self, head: Callable[[], str | None], remembered: Path, *, share: float) -> None:
        self._head, self._file, self._share = head, remembered, share
        self._since: dict[str, float] = {}
        self._held_since: float | None = None

    @property
    def held(self) -> int:
        """How many removals wait for certainty; 0 when none is held."""
        return len(self._since) if self._held_since is not None else 0

    def seen(self, paths: Iterable[str]) -> None:
        """These are there."""
        for path in paths:
            self._since.pop(path, None)

    def only(self, missing: Iterable[str]) -> None:
        """A listing of everything: only these are missing."""
        there = set(missing)
        self._since = {path: since for path, since in self._since.items() if path in there}

    def believe(self, missing: Sequence[str], known: int, *, at_once: bool) -> tuple[list[str], dict[str, float]]:
        """The paths whose absence is certain, and for each of the others in how many seconds to look again.

        `known` is the number of indexed notes. `at_once` believes a small absence without waiting, as after a start."""
        now = time.monotonic()
        for path in missing:
            self._since.setdefault(path, now)
        if brake(len(self._since), known, share=self._share) and not self._moved():
            self._held_since = now if self._held_since is None else self._held_since
            if now - self._held_since < CERTAIN:
                return [], {}
        self._held_since = None
        gone = [path for path in missing if at_once or now - self._since[path] >= FINAL]
        wait = {path: FINAL - (now - self._since[path]) for path in missing if path not in set(gone)}
        self.seen(gone)
        return gone, wait

    def accept(self, missing: Iterable[str]) -> None:
        """A person agrees to the removal of all of these."""
        self.seen(missing)
        self._held_since = None

    def listed(self) -> None:
        """The vault was listed and all was believed: remember where Git's HEAD stands."""
        head = self._head()
        if head and self._held_since is None and head != self._last():
            self._file.write_text(head, "utf-8")

    def _moved(self) -> bool:
        """Whether Git itself took the notes away: HEAD is not where it was at the last listing."""
        head, last = self._head(), self._last()
        return head is not None and last is not None and head != last

    def _last(self) -> str | None:
        try:
            return self._file.read_text("utf-8").strip() or None
        except FileNotFoundError:
            return None
