"""Limit the time by which Memex removes what is old: the clock may be ahead for a while, and a removal is final.

Laws, tested: the trusted time is never later than the clock; while the clock is ahead, each hourly run of the job that
advances it moves it by a day at most."""

from __future__ import annotations

from typing import Final

from index.timings import now_ms
from syncd.state import named_values
from syncd.state.ledger import Ledger

STEP_MS: Final = 24 * 3600 * 1000  # after a pause of the daemon, the trusted time catches up by this each hour
_NAME: Final = "clock.trusted"


def trusted_ms(ledger: Ledger) -> int:
    """Return the clock's time in epoch milliseconds, but at most a day after the stored trusted time."""
    stored = named_values.read(ledger, _NAME)
    return now_ms() if stored is None else min(now_ms(), int(stored) + STEP_MS)


def advance(ledger: Ledger) -> int:
    """Store the trusted time, unless a later one is stored, and return it. Only one job calls this, once an hour."""
    trusted = trusted_ms(ledger)
    # A clock that is back at its start, such as 1970, would otherwise need years to be trusted again.
    named_values.write(ledger, {_NAME: str(max(trusted, int(named_values.read(ledger, _NAME) or 0)))})
    return trusted
