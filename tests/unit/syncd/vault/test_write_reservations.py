"""syncd/vault/write_reservations.py: writers of reserved files wait, and nobody waits for ever."""

from __future__ import annotations

import threading

import pytest

from syncd.vault.write_reservations import WriteReservations
from tests.support.until import until


@pytest.fixture
def reservations():
    return WriteReservations()


def begin(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_writer_of_a_reserved_file_waits_and_others_do_not(reservations):
    done = []

    def write(path):
        with reservations.writing(path):
            done.append(path)

    with reservations.reserve(["a"]):
        thread = begin(lambda: write("a"))
        write("b")
        assert done == ["b"]
    thread.join(10)
    assert done == ["b", "a"]


def test_a_writer_at_work_may_write_a_second_file_while_a_reservation_of_both_waits(reservations):
    done = []

    def reserve():
        with reservations.reserve(["a", "b"]):
            done.append("reserved")

    with reservations.writing("a"):
        thread = begin(reserve)
        until(lambda: reservations._changed._waiters)
        with reservations.writing("b"):
            done.append("written")
    thread.join(10)
    assert done == ["written", "reserved"]
