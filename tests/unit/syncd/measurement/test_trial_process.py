"""syncd/measurement/trial_process.py: a call in another process gives its answer, its errors, and leaves no process."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest

from index.errors import InvalidArgument, Unavailable
from syncd.measurement.trial_process import call_in_process


def double(number, *, progress):
    progress({"done": number})
    return 2 * number, os.getpid()


def refuse(*, progress):
    raise InvalidArgument("no", reason="x")


def vanish(*, progress):
    os._exit(9)


def wait_long(*, progress):
    progress({"pid": os.getpid()})
    time.sleep(600)


def test_the_answer_and_the_progress_come_from_another_process():
    events = []
    answer, pid = call_in_process(double, 21, progress=events.append)
    assert (answer, events) == (42, [{"done": 21}])
    assert pid != os.getpid()


def test_an_error_keeps_its_kind():
    with pytest.raises(InvalidArgument, match="no") as raised:
        call_in_process(refuse, progress=lambda _: None)
    assert raised.value.details == {"reason": "x"}


def test_a_process_that_vanishes_is_an_error():
    with pytest.raises(Unavailable, match="exit code 9"):
        call_in_process(vanish, progress=lambda _: None)


def test_ctrl_c_ends_the_process():
    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_in_process(wait_long, progress=interrupt)
    assert multiprocessing.active_children() == []
