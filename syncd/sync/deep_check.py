"""Run the daily deep check: compare every note's bytes with the catalog, and the catalog with the stores of each index.

The check finds changes that no event and no stat shows: an edit that kept size and time, a write through a memory
mapping, a lost row.

Law, tested: the check writes no row; a path that differs goes through the sync pipeline, which reads the file."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from index.document_ids import sha256
from index.errors import NotFound, Unavailable
from index.model import Entry
from index.scope.index import Index
from index.timings import now_ms
from syncd.indexes.index_builds import IndexBuilds
from syncd.state.folder import write_private
from syncd.sync.index_pass import Progress
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

DAY_S = 86_400.0
NIGHT_HOUR = 3  # local hour of a check that is not overdue, together with other nightly jobs
FIRST_S = 120.0  # seconds after a start until an overdue check: then the start's own work is done
SLICE_S, REST = 0.02, 4  # seconds of work at a time, and the factor of the pause after it, so that searches stay fast


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Holds the result of a completed check."""

    at: int | None = None  # epoch milliseconds; None = no check yet
    checked: int = 0  # number of notes read
    mended: int = 0  # notes whose indexed state was wrong, and rows without a note


class DeepCheck:
    """Makes checks, one at a time, and keeps the last result across restarts in the file `remembered`."""

    def __init__(
        self, vault: Vault, builds: IndexBuilds, hint: Callable[[Iterable[str]], None], remembered: Path
    ) -> None:
        self._vault, self._builds, self._hint, self._file = vault, builds, hint, remembered
        self._one = threading.Lock()
        self.last = self._load_last()

    def run(self, stopping: threading.Event, progress: Progress | None = None) -> CheckResult:
        """Check everything. An interrupted check, or one during which the vault disappears, is not saved."""
        with self._one:
            indexes = self._builds.indexes.values()
            checked, mended = 0, sum(self._compare_halves(index) for index in indexes)
            known = [(index, entry) for index in indexes for entry in index.manifest.copy().values() if entry.digest]
            known.sort(key=lambda pair: pair[1].path)
            rest = iter(known)
            while checked < len(known):
                begun = time.monotonic()
                for index, entry in rest:
                    mended += self._differs(index, entry)
                    checked += 1
                    if time.monotonic() - begun >= SLICE_S:
                        break
                if progress:
                    progress(checked, len(known), "checking")
                if stopping.wait(REST * (time.monotonic() - begun)) or not self._vault.is_present():
                    return CheckResult(self.last.at, checked, mended)
            self.last = CheckResult(now_ms(), checked, mended)
            with suppress(OSError):  # a full disk: then the next start repeats the check
                write_private(self._file, json.dumps(asdict(self.last)))
            if mended:
                log.warning("the deep check found %d notes or rows that no event had reported", mended)
            return self.last

    def facts(self) -> dict[str, Any]:
        """Return the time and the result of the last check."""
        return asdict(self.last)

    def due_in(self, now_ms: int) -> float:
        """Return the seconds until the next check: at night, or soon after the start if a day has passed without one.

        A daemon that never runs at night, or was stopped during a check, therefore gets its check too."""
        if self.last.at is None or now_ms - self.last.at >= (DAY_S - FIRST_S) * 1000:
            return FIRST_S
        local = time.localtime(now_ms / 1000)
        since_midnight = local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec
        return (NIGHT_HOUR * 3600 - since_midnight - 1) % DAY_S + 1

    def _compare_halves(self, index: Index) -> int:
        """Compare the catalog with the store."""
        torn, orphans = index.repair_torn()
        index.forget_digests(torn)
        self._hint([entry.path for entry in torn])
        return len(torn) + orphans

    def _differs(self, index: Index, entry: Entry) -> bool:
        """Return whether the note's bytes differ from the indexed ones although its stat does not; then reindex it."""
        try:
            raw, stat = self._vault.read(entry.path)
        except NotFound:
            self._hint([entry.path])
            return False
        except Unavailable:  # the pipeline reports it
            return False
        if sha256(raw) == entry.digest:
            return False
        unseen = stat == entry.stat and index.manifest.get(entry.path) == entry
        if unseen:
            index.forget_digests([entry])
        self._hint([entry.path])
        return unseen

    def _load_last(self) -> CheckResult:
        try:
            record = json.loads(self._file.read_text("utf-8"))
            return CheckResult(int(record["at"]), int(record["checked"]), int(record["mended"]))
        except (OSError, ValueError, KeyError, TypeError):  # missing, or damaged by a power cut: check again
            return CheckResult()
