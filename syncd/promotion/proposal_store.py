"""Store the proposals to the vault's owner in the ledger, and carry out each accepted proposal once.

Laws, tested: a proposal that is not stored here is never carried out, whatever a box says; a proposal that was
carried out or dismissed is neither done nor proposed again; a proposal that no longer fits its notes is reported as
stale, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from index.errors import MemexError, Unavailable
from syncd.notes.checkboxes import Answer, ProposalOutcome
from syncd.state.ledger import Ledger

# Carries out what a proposal is about (with its `key`), and says what was done. It looks first whether all is still as it was:
# Conflict or NotFound when it is not. A crash may call it again after it has done its work.
Carrier: TypeAlias = Callable[[Mapping[str, Any]], str]

OPEN: Final = ("open", "accepted")
LATE: Final = ("merge-duplicates", "tag-merge")  # done last, in this order: they change the texts that others are about
STATES: Final = (*OPEN, "carried", "dismissed", "stale")
GONE: Final = "it is no longer so"
OTHER: Final = "another answer was carried out"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change that a person may want: `about` is all that whoever carries it out is told, digests of notes included.

    Once dismissed, nothing of this kind is proposed again about the same `subject`, whatever it says by then."""

    kind: str
    subject: tuple[str, ...]
    about: Mapping[str, Any]

    @property
    def key(self) -> str:
        """16 hexadecimal digits that name just this change."""
        return hashlib.sha256(_canonical_json([self.kind, dict(self.about)]).encode()).hexdigest()[:16]


class Proposals:
    """All proposals; safe from any thread. What is noted is on disk when a call returns."""

    def __init__(self, ledger: Ledger, now: Callable[[], int]) -> None:
        self.problem = ""  # why the last one that was accepted could not be carried out yet, in a sentence
        self._ledger, self._now = ledger, now
        self._carriers: dict[str, Carrier] = {}
        self._proposal_execution = threading.Lock()

    def register(self, kind: str, carrier: Carrier) -> None:
        """Have proposals of this kind carried out so."""
        self._carriers[kind] = carrier

    def offer(self, proposals: Iterable[Proposal]) -> list[str]:
        """Note what was found; the keys of those that wait for an answer, in their order."""
        with self._ledger.transaction():
            waiting = self._find_waiting(proposals)
            for key, (proposal, state) in waiting.items():
                if state not in OPEN:
                    self._ledger.execute(
                        "INSERT OR REPLACE INTO proposals VALUES (?, ?, ?, ?, 'open', '', '', ?)",
                        (
                            key,
                            proposal.kind,
                            _canonical_json(proposal.subject),
                            _canonical_json(dict(proposal.about)),
                            self._now(),
                        ),
                    )
        return list(waiting)

    def waiting_keys(self, proposals: Iterable[Proposal]) -> list[str]:
        """The keys that `offer` would answer; nothing is noted."""
        return list(self._find_waiting(proposals))

    def _find_waiting(self, proposals: Iterable[Proposal]) -> dict[str, tuple[Proposal, str]]:
        """Those that are neither done nor dismissed, each with its state, "" = unknown so far."""
        waiting: dict[str, tuple[Proposal, str]] = {}
        for proposal in proposals:
            key = proposal.key
            before = self._ledger.query(
                "SELECT key, state FROM proposals WHERE key = ? OR (kind = ? AND subject = ? AND state = 'dismissed')",
                (key, proposal.kind, _canonical_json(proposal.subject)),
            )
            if not {state for _, state in before} & {"carried", "dismissed"}:
                waiting[key] = proposal, next((state for _, state in before), "")
        return waiting

    def withdraw(self, kinds: Collection[str], kept: Collection[str]) -> None:
        """Of these kinds only what is `kept` still holds; the others that are open are stale."""
        gone = [(GONE, key) for key, kind in self._keys_in_state("open") if kind in kinds and key not in kept]
        self._run_for_each("UPDATE proposals SET state = 'stale', said = ? WHERE key = ? AND state = 'open'", gone)

    def mark_superseded(self, keys: Iterable[str]) -> None:
        """In place of these another one was carried out; those that are open are stale, and told so in their note."""
        gone = [(OTHER, key) for key in keys]
        self._run_for_each("UPDATE proposals SET state = 'stale', said = ? WHERE key = ? AND state = 'open'", gone)

    def mark_placed(self, keys: Iterable[str], report: str) -> None:
        """These stand in the note at `report`."""
        self._run_for_each("UPDATE proposals SET report = ? WHERE key = ?", [(report, key) for key in keys])

    def list_unplaced(self, keys: Iterable[str]) -> list[str]:
        """Those of these that no note shows yet."""
        shown = {key for (key,) in self._ledger.query("SELECT key FROM proposals WHERE report != ''")}
        return [key for key in keys if key not in shown]

    def report_of(self, key: str) -> str:
        """The note in which a proposal stands; "" = in none."""
        rows = self._ledger.query("SELECT report FROM proposals WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else ""

    def record_answers(self, answers: Mapping[str, Answer]) -> list[str]:
        """Note what a person answered; the keys that this changed. Only what is open can be answered."""
        known = {key for key, _ in self._keys_in_state("open")}
        new = {key: answer for key, answer in answers.items() if key in known}
        self._run_for_each(
            "UPDATE proposals SET state = ? WHERE key = ? AND state = 'open'", [(s, k) for k, s in new.items()]
        )
        return list(new)

    def accepted_keys(self) -> set[str]:
        """Those that wait to be carried out."""
        return {key for key, _ in self._keys_in_state("accepted")}

    def reopen(self, keys: Iterable[str]) -> None:
        """A person has taken these ticks back, before anything was done."""
        self._run_for_each(
            "UPDATE proposals SET state = 'open' WHERE key = ? AND state = 'accepted'", [(key,) for key in keys]
        )

    def carry_out(self, stopping: threading.Event | None = None) -> dict[str, ProposalOutcome]:
        """Carry out what was accepted; what became of each. What can't be done just now is left for the next call."""
        done: dict[str, ProposalOutcome] = {}
        with self._proposal_execution:
            self.problem = ""
            rows = self._ledger.query(
                "SELECT key, kind, about FROM proposals WHERE state = 'accepted' ORDER BY at, key"
            )
            for key, kind, about in sorted(rows, key=lambda row: LATE.index(row[1]) if row[1] in LATE else -1):
                if stopping is not None and stopping.is_set():
                    break
                if outcome := self._carry_out_one(key, kind, json.loads(about)):
                    state = "carried" if outcome.done else "stale"
                    self._run_for_each(
                        "UPDATE proposals SET state = ?, said = ? WHERE key = ?", [(state, outcome.said, key)]
                    )
                    done[key] = outcome
        return done

    def outcomes(self) -> dict[str, ProposalOutcome]:
        """What became of all that are over and were not dismissed, by key."""
        rows = self._ledger.query("SELECT key, state, said FROM proposals WHERE state IN ('carried', 'stale')")
        return {
            key: ProposalOutcome(state == "carried", message, state == "stale" and message == OTHER)
            for key, state, message in rows
        }

    def list_open(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The kind of each that waits for an answer, and what it is about, by key."""
        rows = self._ledger.query("SELECT key, kind, about FROM proposals WHERE state = 'open'")
        return {key: (kind, json.loads(about)) for key, kind, about in rows}

    def counts(self) -> dict[str, int]:
        """How many there are in each state."""
        rows = self._ledger.query("SELECT state, count(*) FROM proposals GROUP BY state")
        return dict.fromkeys(STATES, 0) | dict(rows)

    def _carry_out_one(self, key: str, kind: str, about: Mapping[str, Any]) -> ProposalOutcome | None:
        """What became of it; None when it is left for later."""
        carrier = self._carriers.get(kind)
        if carrier is None:
            self.problem = f"nothing here carries out a proposal of the kind {kind}"
            return None
        try:
            return ProposalOutcome(done=True, said=carrier({**about, "key": key}))
        except MemexError as error:
            if error.retryable or isinstance(error, Unavailable):
                self.problem = error.message
                log.warning("a proposal (%s) could not be carried out yet: %s", kind, error.message)
                return None
            return ProposalOutcome(done=False, said=error.message)
        except Exception:  # a mistake of ours in one must not keep the others from being carried out
            self.problem = f"a proposal of the kind {kind} could not be carried out; the daemon's log says more"
            log.exception("a proposal (%s) could not be carried out", kind)
            return None

    def _keys_in_state(self, state: str) -> list[tuple[str, str]]:
        return [
            (key, kind) for key, kind in self._ledger.query("SELECT key, kind FROM proposals WHERE state = ?", (state,))
        ]

    def _run_for_each(self, statement: str, rows: Sequence[tuple[str, ...]]) -> None:
        if rows:
            with self._ledger.transaction():
                for row in rows:
                    self._ledger.execute(statement, row)


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
