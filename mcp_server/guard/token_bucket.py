"""Limit the request rate of each name with a token bucket, and say when its next request is allowed.

Law, tested: a name never takes more than its burst at once and its rate in the long run, and names cost bounded
memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST: Final = (
    4_096  # names; the one that was longest away is forgotten for a new one, which at worst makes it whole again
)


class TokenBuckets:
    """One bucket for each name, filled at `rate` a second up to `burst`; with a rate of 0 there is always more."""

    def __init__(self, rate: float, burst: float, *, most: int = MOST) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name -> what was left, and when

    def take(self, name: str, now: float, *, patience: float = 0.0) -> float:
        """Take one: 0.0, or the seconds until there is one. `now` never goes back.

        Who has the `patience` to wait that long has taken it, and comes before those who ask later."""
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
