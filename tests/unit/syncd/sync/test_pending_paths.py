"""syncd/sync/pending_paths.py: what the pipe has to look at, and when."""

import threading
import time

import pytest

from syncd.sync.pending_paths import PendingPaths


@pytest.fixture
def pending_paths():
    pending_paths = PendingPaths(quiet=0.05, patience=0.2)
    assert pending_paths.wait(lambda: False)  # the first listing is wanted from the start
    return pending_paths


def due_now(pending_paths):
    with pending_paths.processing_due() as due:
        return due


def test_a_hint_is_handed_out_once_it_is_quiet(pending_paths):
    pending_paths.hint(["a", "b", "a"])
    assert due_now(pending_paths) == []
    assert len(pending_paths.paths) == 2
    assert not pending_paths.wait(lambda: False)
    assert due_now(pending_paths) == ["a", "b"]
    assert len(pending_paths.paths) == 0


def test_hints_that_go_on_are_handed_out_when_patience_ends(pending_paths):
    begun = time.monotonic()
    while not (due := due_now(pending_paths)):
        pending_paths.hint(["a"])
        time.sleep(0.01)
    assert due == ["a"]
    assert 0.2 <= time.monotonic() - begun < 2


def test_a_path_to_look_at_again_waits_its_time_and_counts_as_pending(pending_paths):
    pending_paths.recheck("a", 0.1)
    assert len(pending_paths.paths) == 1
    assert not pending_paths.wait(lambda: False)
    assert due_now(pending_paths) == ["a"]


def test_what_is_being_dealt_with_is_pending_until_it_is_done(pending_paths):
    with pending_paths.processing("abcde") as done:
        assert len(pending_paths.paths) == 5
        done("ab")
        assert len(pending_paths.paths) == 3
    assert len(pending_paths.paths) == 0


def test_a_failure_leaves_nothing_pending(pending_paths):
    with pytest.raises(ZeroDivisionError), pending_paths.processing("abcde"):
        raise ZeroDivisionError
    assert len(pending_paths.paths) == 0


def test_due_paths_are_pending_until_the_block_ends(pending_paths):
    pending_paths.hint(["a"])
    pending_paths.recheck("b", 0)
    assert due_now(pending_paths) == []
    time.sleep(0.06)
    with pending_paths.processing_due() as due:
        assert (due, pending_paths.paths) == (["a", "b"], {"a", "b"})
    assert len(pending_paths.paths) == 0


def test_due_paths_stay_pending_if_the_block_fails(pending_paths):
    pending_paths.recheck("a", 0)
    assert not pending_paths.wait(lambda: False)
    with pytest.raises(ZeroDivisionError), pending_paths.processing_due():
        raise ZeroDivisionError
    assert pending_paths.paths == {"a"}
    assert not pending_paths.wait(lambda: False)
    assert due_now(pending_paths) == ["a"]


def test_a_listing_that_is_wanted_wakes_whoever_waits(pending_paths):
    threading.Timer(0.05, pending_paths.request_listing).start()
    assert pending_paths.wait(lambda: False)


def test_a_stop_wakes_whoever_waits_or_rests(pending_paths):
    threading.Timer(0.05, pending_paths.stop).start()
    begun = time.monotonic()
    pending_paths.pause(30)
    assert not pending_paths.wait(lambda: False)
    assert time.monotonic() - begun < 5


def test_a_path_in_several_hands_is_pending_once(pending_paths):
    pending_paths.hint(["a"])
    with pending_paths.processing(["a", "b"]), pending_paths.processing(["a"]):
        assert len(pending_paths.paths) == 2
    assert len(pending_paths.paths) == 1
