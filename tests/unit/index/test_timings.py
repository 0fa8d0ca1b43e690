"""index/timings.py: times by bound, and failures by cause."""

from __future__ import annotations

import errno

import httpx2
import pytest

from index.errors import Unavailable
from index.timings import BOUNDS, CAUSES, Stopwatch, find_cause


def raised_from(cause):
    error = Unavailable("it is away")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TimeoutError(), "timeout"),
        (raised_from(httpx2.ReadTimeout("slow")), "timeout"),
        (raised_from(httpx2.ConnectError("refused")), "connection"),
        (raised_from(ConnectionResetError()), "connection"),
        (raised_from(OSError(errno.ENOSPC, "full")), "disk_full"),
        (OSError(errno.EIO, "broken"), "system"),
        (Unavailable("no encoder"), "unavailable"),
        (raised_from(ValueError("xqsecretzy")), "unavailable"),
        (KeyError("xqsecretzy"), "bug"),
    ],
)
def test_a_failure_has_a_cause_of_a_few_words(error, cause):
    assert find_cause(error) == cause
    assert cause in CAUSES


def test_what_was_measured_is_counted_whether_it_failed_or_not():
    timing = Stopwatch()
    with timing.measure():
        pass
    with pytest.raises(KeyError), timing.measure():
        raise KeyError
    counts = timing.counts()
    assert (len(counts.at_most), counts.at_most[-1]) == (len(BOUNDS) + 1, 2)
    assert list(counts.at_most) == sorted(counts.at_most)
    assert counts.seconds >= 0
    assert counts.failures == dict.fromkeys(CAUSES, 0) | {"bug": 1}
