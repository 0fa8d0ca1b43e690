"""Limit how far Memex trusts the time of a clock that is ahead when it removes old things, because a removal is final.

Laws, tested: the trusted time is never later than the clock; while the clock is ahead, each hourly run of the job that
advances it moves it by a day at most. A clock at its start, such as 1970, does not delay it."""

from __future__ import annotations

from typing import Final

from index.timings import now_ms
from syncd.state import named_values
from syncd.state.ledger import Ledger

EARLIEST_MS: Final = 1_767_225_600_000  # the start of 2026, the year of the first release: a clock before it is wrong
STEP_MS: Final = 24 * 3600 * 1000  # after a pause of the daemon, the trusted time catches up by this each hour
_NAME: Final = "clock.trusted"


def trusted_ms(ledger: Ledger) -> int:
    """Return the clock's time in epoch milliseconds, but at most a day after the stored trusted time."""
    stored = int(named_values.read(ledger, _NAME) or 0)
    return now_ms() if stored < EARLIEST_MS else min(now_ms(), stored + STEP_MS)


def advance(ledger: Ledger) -> int:
    """Store the trusted time, unless a later one is stored, and return it. Only one job calls this, once an hour."""
    trusted = trusted_ms(ledger)
    # A clock that is back at its start, such as 1970, would otherwise need years to be trusted again.
    named_values.write(ledger, {_NAME: str(max(trusted, int(named_values.read(ledger, _NAME) or 0)))})
    return trusted
