"""Store the proposals to the vault's owner in the ledger, and carry out each accepted proposal once.

Laws, tested: a proposal that is not stored here is never carried out, whatever a box says; a proposal that was
carried out or dismissed is neither done nor proposed again; a proposal that no longer fits its notes is reported as
stale, and changes nothing."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from index.document_ids import sha256
from index.errors import MemexError, Unavailable
from syncd.notes.checkboxes import Answer, ProposalOutcome
from syncd.state.ledger import Ledger

# Carries out a proposal (`about` with its `key`), and returns what it did. It first checks that its notes are unchanged, and
# raises Conflict or NotFound if not. After a crash it may be called again although its work is done.
Carrier: TypeAlias = Callable[[Mapping[str, Any]], str]

OPEN: Final = ("open", "accepted")  # they wait for an answer, or are not carried out yet
# Done last, in this order: they change texts that other proposals are about.
LATE: Final = ("merge-duplicates", "tag-merge")
STATES: Final = (*OPEN, "carried", "dismissed", "stale")
GONE: Final = "it no longer applies"
OTHER: Final = "another answer was carried out"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Describes one change that a person may want: `about` holds all that its carrier needs, digests of notes included.

    Once dismissed, no proposal of this kind is made again about the same `subject`, whatever its `about`."""

    kind: str
    subject: tuple[str, ...]
    about: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Return 16 hexadecimal digits that identify this change."""
        return sha256(_canonical_json([self.kind, dict(self.about)]).encode())[:16]


class Proposals:
    """Stores all proposals; safe from any thread. When a call returns, its changes are on disk."""

    def __init__(self, ledger: Ledger, now: Callable[[], int]) -> None:
        self.problem = ""  # why the last accepted proposal could not be carried out yet, as a sentence
        self._ledger, self._now = ledger, now
        self._carriers: dict[str, Carrier] = {}
        self._proposal_execution = threading.Lock()

    def register(self, kind: str, carrier: Carrier) -> None:
        """Register the carrier that carries out proposals of this kind."""
        self._carriers[kind] = carrier

    def offer(self, proposals: Iterable[Proposal]) -> list[str]:
        """Store proposals, and return the keys of those that wait for an answer, in their order."""
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
        """Return the keys that `offer` would return, without storing anything."""
        return list(self._find_waiting(proposals))

    def _find_waiting(self, proposals: Iterable[Proposal]) -> dict[str, tuple[Proposal, str]]:
        """Return the proposals that are neither done nor dismissed, each with its state; "" = not stored yet."""
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
        """Mark open proposals of these kinds as stale, except those in `kept`."""
        open_ = self.list_in(["open"]).items()
        self._mark_stale((key for key, (kind, _) in open_ if kind in kinds and key not in kept), GONE)

    def mark_superseded(self, keys: Iterable[str]) -> None:
        """Mark open proposals as stale, because another answer to their question was carried out."""
        self._mark_stale(keys, OTHER)

    def _mark_stale(self, keys: Iterable[str], why: str) -> None:
        """Mark those of these proposals that are open as stale."""
        self._ledger.execute_each(
            "UPDATE proposals SET state = 'stale', said = ? WHERE key = ? AND state = 'open'",
            [(why, key) for key in keys],
        )

    def mark_placed(self, keys: Iterable[str], report: str) -> None:
        """Record that the note at `report` shows these proposals."""
        self._ledger.execute_each("UPDATE proposals SET report = ? WHERE key = ?", [(report, key) for key in keys])

    def list_unplaced(self, keys: Iterable[str]) -> list[str]:
        """Return those of these keys that no note shows yet."""
        shown = {key for (key,) in self._ledger.query("SELECT key FROM proposals WHERE report != ''")}
        return [key for key in keys if key not in shown]

    def report_of(self, key: str) -> str:
        """Return the note that shows a proposal; "" = none."""
        rows = self._ledger.query("SELECT report FROM proposals WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else ""

    def record_answers(self, answers: Mapping[str, Answer]) -> list[str]:
        """Record a person's answers, and return the keys that changed. Only open proposals can be answered."""
        known = self.list_in(["open"])
        new = {key: answer for key, answer in answers.items() if key in known}
        self._ledger.execute_each(
            "UPDATE proposals SET state = ? WHERE key = ? AND state = 'open'", [(s, k) for k, s in new.items()]
        )
        return list(new)

    def reopen(self, keys: Iterable[str]) -> None:
        """Reopen accepted proposals whose ticks a person removed before anything was done."""
        self._ledger.execute_each(
            "UPDATE proposals SET state = 'open' WHERE key = ? AND state = 'accepted'", [(key,) for key in keys]
        )

    def carry_out(self, stopping: threading.Event | None = None) -> dict[str, ProposalOutcome]:
        """Carry out the accepted proposals, and return the outcome of each.

        What can't be done now is left for the next call."""
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
                    self._ledger.execute_each(
                        "UPDATE proposals SET state = ?, said = ? WHERE key = ?", [(state, outcome.said, key)]
                    )
                    done[key] = outcome
        return done

    def outcomes(self) -> dict[str, ProposalOutcome]:
        """Return the outcomes of all proposals that were carried out or became stale, by key."""
        rows = self._ledger.query("SELECT key, state, said FROM proposals WHERE state IN ('carried', 'stale')")
        return {
            key: ProposalOutcome(state == "carried", message, state == "stale" and message == OTHER)
            for key, state, message in rows
        }

    def list_in(self, states: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the kind and the `about` of each proposal in one of these states, by key."""
        rows = self._ledger.query(
            "SELECT key, kind, about FROM proposals WHERE state IN (SELECT value FROM json_each(?))",
            (json.dumps(states),),
        )
        return {key: (kind, json.loads(about)) for key, kind, about in rows}

    def counts(self) -> dict[str, int]:
        """Return the number of proposals in each state."""
        rows = self._ledger.query("SELECT state, count(*) FROM proposals GROUP BY state")
        return dict.fromkeys(STATES, 0) | dict(rows)

    def _carry_out_one(self, key: str, kind: str, about: Mapping[str, Any]) -> ProposalOutcome | None:
        """Carry out one proposal, and return its outcome; None when it is left for later."""
        carrier = self._carriers.get(kind)
        if carrier is None:
            self.problem = f"Memex can't carry out proposals of the kind {kind}"
            return None
        try:
            return ProposalOutcome(done=True, said=carrier({**about, "key": key}))
        except MemexError as error:
            if error.retryable or isinstance(error, Unavailable):
                self.problem = error.message
                log.warning("could not carry out a proposal (%s) yet: %s", kind, error.message)
                return None
            return ProposalOutcome(done=False, said=error.message)
        except Exception:  # a bug that one proposal triggers must not block the others
            self.problem = f"a proposal of the kind {kind} could not be carried out; see the daemon's log"
            log.exception("could not carry out a proposal (%s)", kind)
            return None


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
