"""Limit the request rate of each name with a token bucket, and compute when its next request is allowed.

Law, tested: a name never takes more than its burst at once and its rate in the long run, and all names together take
bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST: Final = 4_096  # names; a new one displaces the one unused for longest, which then starts with a full bucket


class TokenBuckets:
    """Holds one bucket for each name, filled at `rate` tokens a second up to `burst`; a rate of 0 means no limit."""

    def __init__(self, rate: float, burst: float, *, most: int = MOST) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name -> tokens left, time of that count

    def take(self, name: str, now: float, *, patience: float = 0.0) -> float:
        """Take one token: return 0.0, or the seconds until one is available. `now` never goes back.

        If the wait is within `patience`, the token is taken already, before all later callers."""
        if self._rate <= 0:
            return 0.0
        left, at = self._left.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[name] = (left - 1 if wait <= patience else left, now)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return wait

    def __len__(self) -> int:
        return len(self._left)
