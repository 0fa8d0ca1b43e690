"""syncd/sync/pending_paths.py: what the pipe has to look at, and when."""

import threading
import time

import pytest

from syncd.sync.pending_paths import PendingPaths


@pytest.fixture
def agenda():
    agenda = PendingPaths(quiet=0.05, patience=0.2)
    assert agenda.wait(lambda: False)  # the first listing is wanted from the start
    return agenda


def test_a_hint_is_handed_out_once_it_is_quiet(agenda):
    agenda.hint(["a", "b", "a"])
    assert agenda.due() == []
    assert agenda.pending == 2
    assert not agenda.wait(lambda: False)
    assert agenda.due() == ["a", "b"]
    assert agenda.pending == 0


def test_hints_that_go_on_are_handed_out_when_patience_ends(agenda):
    begun = time.monotonic()
    while not (due := agenda.due()):
        agenda.hint(["a"])
        time.sleep(0.01)
    assert due == ["a"]
    assert 0.2 <= time.monotonic() - begun < 2


def test_a_path_to_look_at_again_waits_its_time_and_counts_as_pending(agenda):
    agenda.again("a", 0.1)
    assert agenda.pending == 1
    assert not agenda.wait(lambda: False)
    assert agenda.due() == ["a"]


def test_what_is_being_dealt_with_is_pending_until_it_is_done(agenda):
    with agenda.dealing("abcde") as done:
        assert agenda.pending == 5
        done("ab")
        assert agenda.pending == 3
    assert agenda.pending == 0


def test_a_failure_leaves_nothing_pending(agenda):
    with pytest.raises(ZeroDivisionError), agenda.dealing("abcde"):
        raise ZeroDivisionError
    assert agenda.pending == 0


def test_a_listing_that_is_wanted_wakes_whoever_waits(agenda):
    threading.Timer(0.05, agenda.list_all).start()
    assert agenda.wait(lambda: False)


def test_a_stop_wakes_whoever_waits_or_rests(agenda):
    threading.Timer(0.05, agenda.stop).start()
    begun = time.monotonic()
    agenda.rest(30)
    assert not agenda.wait(lambda: False)
    assert time.monotonic() - begun < 5


def test_a_path_in_several_hands_is_pending_once(agenda):
    agenda.hint(["a"])
    with agenda.dealing(["a", "b"]), agenda.dealing(["a"]):
        assert agenda.pending == 2
    assert agenda.pending == 1
