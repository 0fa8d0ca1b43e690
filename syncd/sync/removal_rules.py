"""Decide when a missing note counts as removed; hold mass removals until they are certain.

Law: no note is removed from the index before it has been missing for a while. When many notes are missing at once,
none is removed until Git reports the removal, ten minutes have passed, or a person accepts it. A renamed note is not
missing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from syncd.git import head_moves
from syncd.git.repository import GitPosition, Repository
from syncd.state.folder import write_private
from syncd.sync.change_plan import is_mass_removal

FINAL = 2.0  # seconds for which a file must stay missing or empty: editors remove and recreate files
CERTAIN = 600.0  # seconds after which a mass removal is accepted
_OBJECT_NAME = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
LOOKS = 2.0, 60.0  # first and longest pause between two checks of held removals


class RemovalRules:
    """Records since when each path has been missing, and whether removals are held."""

    def __init__(self, repo: Repository, remembered: Path, *, share: float) -> None:
        self._repo, self._file, self._share = repo, remembered, share
        self._since: dict[str, float] = {}
        self._held_since: float | None = None
        self._head: str | None = None  # HEAD when they were held
        self._look, self._pause = 0.0, LOOKS[0]

    @property
    def held_paths(self) -> tuple[str, ...]:
        """Return the paths of the notes whose removals are held."""
        return tuple(self._since) if self._held_since is not None else ()

    def is_due(self) -> bool:
        """Return whether held removals should be checked again, because they may be accepted now."""
        return self._held_since is not None and (time.monotonic() >= self._look or self._repo.head() != self._head)

    def mark_present(self, paths: Iterable[str]) -> None:
        """Record that these paths exist."""
        for path in paths:
            self._since.pop(path, None)

    def keep_only(self, missing: Iterable[str]) -> None:
        """Record, after a listing of everything, that only these paths are missing."""
        there = set(missing)
        self._since = {path: since for path, since in self._since.items() if path in there}

    def decide(
        self,
        missing: Sequence[str],
        known: int,
        *,
        at_once: bool,
        elsewhere: Callable[[Collection[str]], set[str]] = lambda _: set(),
    ) -> tuple[list[str], dict[str, float]]:
        """Return the paths that are certainly removed, and for the others the seconds until the next check.

        `known` is the number of indexed notes; `elsewhere` returns those that only have another name. `at_once`
        accepts a small absence without waiting, as after a start."""
        now = time.monotonic()
        for path in missing:
            self._since.setdefault(path, now)
        if self._is_mass_removal(known, elsewhere):
            self._hold(now)
            if self._held_since is not None and now - self._held_since < CERTAIN:
                return [], {}
        self._held_since = None
        gone = [path for path in missing if at_once or now - self._since[path] >= FINAL]
        wait = {path: FINAL - (now - self._since[path]) for path in missing if path not in set(gone)}
        self.mark_present(gone)
        return gone, wait

    def accept(self, missing: Iterable[str]) -> None:
        """Accept the removal of these paths on behalf of a person."""
        self.mark_present(missing)
        self._held_since = None

    def remember_head(self) -> None:
        """Record Git's HEAD after a listing without missing notes."""
        now, last = self._repo.position(), self._read_last_position()
        if now.head and not self._since and (last is None or (now.head, now.log) != (last.head, last.log)):
            with suppress(OSError):  # a full disk: then the next checkout is held, which is safe
                write_private(self._file, f"{now.head} {now.log}")

    def _is_mass_removal(self, known: int, elsewhere: Callable[[Collection[str]], set[str]]) -> bool:
        """Return whether so much is missing that it may be an accident; costlier checks run only if needed."""
        missing = set(self._since)
        for explained in (None, elsewhere, self._removed_by_git):
            missing -= explained(missing) if explained else set()
            if not is_mass_removal(len(missing), known, share=self._share):
                return False
        return True

    def _removed_by_git(self, _: Collection[str]) -> set[str]:
        """Return the notes that Git removed since the last listing, even if they were added after it."""
        last = self._read_last_position()
        return head_moves.removed_paths(self._repo, last, self._repo.position()) if last else set()

    def _hold(self, now: float) -> None:
        if self._held_since is None:
            self._held_since, self._pause = now, LOOKS[0]
        self._head = self._repo.head()
        self._look = min(now + self._pause, self._held_since + CERTAIN)
        self._pause = min(2 * self._pause, LOOKS[1])

    def _read_last_position(self) -> GitPosition | None:
        try:
            head, _, length = self._file.read_text("ascii").strip().partition(" ")
        except (OSError, ValueError):
            return None
        log = int(length) if length.isdigit() else 0
        return GitPosition(head, None, log) if _OBJECT_NAME.fullmatch(head) else None
