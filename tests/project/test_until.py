"""tests/support/until.py and tests/support/daemon_logs.py: a wait that is in vain says what was waited for and what the daemon wrote."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.support import daemon_logs
from tests.support.until import until


def test_a_wait_gives_what_came_about():
    values = iter([0, [], "there"])
    assert until(lambda: next(values)) == "there"


def test_a_wait_in_vain_says_what_was_waited_for_and_what_was_there_instead():
    absent = "not there"
    with pytest.raises(AssertionError) as failed:
        until(lambda: absent == "there", 0.01)
    assert 'until(lambda: absent == "there", 0.01)' in str(failed.value)
    assert "last value False" in str(failed.value)
    assert "cores, load" in str(failed.value)


def test_the_log_of_a_daemon_is_shown_while_it_runs_and_when_it_has_just_ended(tmp_path):
    log = tmp_path / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-uc", "print('opening'); input()"], stdin=subprocess.PIPE, stdout=out
        )
    daemon_logs.watch(log, process)
    until(lambda: log.read_text() == "opening\n")
    (shown,) = [text for title, text in daemon_logs.sections(time.time() + 1) if str(log) in title]
    assert shown == "opening\n"
    process.communicate(b"\n")
    (title,) = [title for title, _ in daemon_logs.sections(log.stat().st_mtime) if str(log) in title]
    assert f"daemon {process.pid}, which ended with 0" in title
    assert not [title for title, _ in daemon_logs.sections(time.time() + 1) if str(log) in title]
