"""syncd/page/web/failures.py: each error becomes a status, a sentence and what to do."""

from __future__ import annotations

import pytest

from index.errors import CODES, Conflict, ResourceExhausted, Unavailable
from syncd.daemon.control_socket import DaemonEnded, DaemonSilent, NoDaemon
from syncd.page.web.failures import describe_failure


@pytest.mark.parametrize("kind", CODES.values(), ids=CODES)
def test_every_code_has_a_status_and_advice(kind):
    failure = describe_failure(kind("the reason"))
    assert failure.status >= 400
    assert failure.sentence == "the reason"
    assert failure.title
    assert failure.advice


@pytest.mark.parametrize("error", [NoDaemon("x"), DaemonSilent("x"), DaemonEnded("x")])
def test_the_page_waits_for_a_daemon_that_is_gone(error):
    failure = describe_failure(error)
    assert (failure.status, failure.waits) == (503, True)


def test_what_is_too_large_differs_from_too_much_at_once():
    assert describe_failure(ResourceExhausted("x", limit=5)).status == 413
    assert describe_failure(ResourceExhausted("x", limit=5, retryable=True)).status == 429
    assert describe_failure(ResourceExhausted("x")).status == 429


@pytest.mark.parametrize(
    "error", [Conflict("x"), Unavailable("the disk is full", retryable=False), Unavailable("x", retryable=True)]
)
def test_the_page_does_not_wait_where_waiting_does_not_help(error):
    assert not describe_failure(error).waits


def test_a_daemon_that_does_not_run_comes_with_the_command_that_starts_it():
    assert "`memex serve`" in describe_failure(NoDaemon("x")).advice
