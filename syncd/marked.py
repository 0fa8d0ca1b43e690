"""Look at what people have marked, and have it carried out once the note is quiet and Git is not at work.

Laws, tested: what can't be done is written into the capture as `promote_problem`, once, and goes when it is solved; nothing
else is written; two machines that see the same mark promote to the same bytes; a mistake of ours in one delays no other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from index.errors import MemexError
from index.model import Record
from index.names import fold
from syncd import moves
from syncd.audit import Author, authored
from syncd.edits import LATEST_MS
from syncd.journal import sha256
from syncd.marks import Marks, marks
from syncd.merging import Merging
from syncd.note import FrontmatterError, decode, edit, encode
from syncd.promotable import Plan, Taken, fit, restless, speak
from syncd.promote import Promotions
from syncd.promotion import DEFECT, UNCLEAR, Problem
from syncd.repo import Repo
from syncd.vault_snapshot import Ground
from syncd.waiting import Waiting

log = logging.getLogger(__name__)

AUTHOR: Final = Author("daemon", "promote")
KEY: Final = "promote_problem"


@dataclass(slots=True)
class Look:
    """What the last look found."""

    moment: object = None
    again: bool = False  # something waits of which no change of a note will tell
    problems: dict[str, str] = field(default_factory=dict)  # path → why it can't be promoted
    promoted: int = 0  # since the start


class Marked:
    """The job that does what marks ask for."""

    def __init__(
        self,
        ground: Ground,
        promotions: Promotions,
        waiting: Waiting,
        merging: Merging,
        *,
        repo: Repo,
        stopping: Callable[[], threading.Event],
    ) -> None:
        self._ground, self._promotions, self._waiting = ground, promotions, waiting
        self._merging, self._repo, self._stopping = merging, repo, stopping
        self._look = Look()

    def run(self) -> None:
        """Look, if anything has changed since the last time."""
        with authored(AUTHOR):
            look, ground = self._look, self._ground
            if not ground.vault.present():
                return
            self._promotions.tend()
            if not ground.settings.promote.marks or not ground.sync.ready.is_set():
                return
            moment = self._waiting.moment, ground.notes.index.generation if look.problems else None
            if moment == look.moment and not look.again:
                return
            look.moment, look.again = moment, False
            self._done()

    def facts(self) -> dict[str, Any]:
        """What its owner is told."""
        problems = [{"path": path, "problem": why} for path, why in sorted(self._look.problems.items())]
        return {"on": self._ground.settings.promote.marks, "problems": problems, "promoted": self._look.promoted}

    def _done(self) -> None:
        look = self._look
        problems: dict[str, str] = {}
        taken: list[tuple[Record, str]] = []
        plans: list[Plan] = []
        spoken: dict[str, str] = {}
        unsure = False  # whether a capture may still be in the way of something
        for record, said in self._waiting.look(_concerned):
            try:
                if restless(self._ground, self._repo, record.path):
                    look.again = unsure = True
                    continue
                if not said.meant:
                    self._say(record, None)
                    continue
                plan = self._planned(record, said, spoken)
            except Taken as error:
                if fold(error.target) in spoken:
                    look.again = unsure = True  # once the other one is there it can be asked about
                    continue
                taken.append((record, error.target))
                problems[record.path] = error.message
            except Problem as error:
                problems[record.path] = error.message
            except MemexError as error:
                log.info("a marked capture waits: %s", error.message)
                look.again = unsure = True
            except Exception:  # a mistake of ours in one must not keep the others from being promoted
                log.exception("a marked capture could not be planned")
                problems[record.path], unsure = DEFECT, True
            else:
                plans.append(plan)
                speak(spoken, plan)
        look.again |= self._carried(plans, problems)
        for path, note in self._merging.ask(taken, whole=not unsure).items():
            problems[path] += f"; see [[{note}]]"
        self._tell(problems)
        look.problems = problems

    def _planned(self, record: Record, said: Marks, spoken: Mapping[str, str]) -> Plan:
        if not said.promote:
            fit(self._ground, record)
            raise Problem(UNCLEAR)
        at = written_at(self._ground, self._repo, record.path)
        return self._promotions.planned(record, tool="mark", at=at, spoken=spoken)

    def _tell(self, problems: Mapping[str, str]) -> None:
        for record, said in self._waiting.look(_concerned):
            if why := problems.get(record.path):
                self._say(record, why, said)

    def _carried(self, plans: list[Plan], problems: dict[str, str]) -> bool:
        """Carry out what can be; whether something of it is left for another time."""
        left = False
        outcomes = self._promotions.carry(plans, stopping=self._stopping())
        for plan, done in zip(plans, outcomes, strict=True):
            if isinstance(done, Problem):
                problems[plan.source] = done.message
            elif isinstance(done, MemexError):
                log.info("a promotion waits: %s", done.message)
                left = True
            else:
                self._look.promoted += 1
        return left

    def _say(self, record: Record, why: str | None, said: Marks | None = None) -> None:
        """Write into the capture why it is not promoted, if it does not say so yet; None: take that out."""
        if said is not None and said.promote_problem == why:
            return
        try:
            raw, _ = self._ground.vault.read(record.path)
            if sha256(raw) == record.digest and marks(decode(raw)).promote_problem != why:
                self._ground.vault.replace(record.path, encode(edit(decode(raw), {KEY: why})), digest=record.digest)
                self._ground.sync.hint([record.path])
        except (MemexError, FrontmatterError) as error:
            log.info("why a capture is not promoted can't be written into it: %s", error)
        except Exception:  # as above
            log.exception("why a capture is not promoted can't be written into it")


def _concerned(said: Marks) -> bool:
    """Whether there is something to do, or to say, about a capture with these marks."""
    return said.meant or said.promote_problem is not None


def written_at(ground: Ground, repo: Repo, path: str) -> int:
    """When a note was written, as every machine that has it can tell: the time of the commit that brought it, or the file's."""
    raw, stat = ground.vault.read(path)
    written = stat.mtime_ns // 1_000_000_000
    if moves.brought(repo, path, raw, written):
        told = repo.answer("rev-list", "--max-count=1", "--timestamp", "HEAD", "--stdin", given=f"--\n{path}\n")
        first = (told or "").partition(" ")[0]
        written = int(first) if first.isdigit() else written
    return min(max(written, 0) * 1000, LATEST_MS - 1000)
