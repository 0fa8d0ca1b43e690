"""tests/support/terminal_transcript.py: every line as a person sees it, with its second, and nothing that goes on afterwards."""

from __future__ import annotations

import os

import psutil
import pytest

from tests.support.terminal_transcript import Failed, recorded
from tests.support.until import until


@pytest.fixture
def terminal(tmp_path):
    with recorded(tmp_path, os.environ) as transcript:
        yield transcript


def test_lines_are_those_that_a_person_reads_in_the_order_in_which_they_appear(terminal):
    bar = "printf '\\rone  10 %%\\rone 100 %%\\n'; printf '\\033[1mtwo\\033[0m'"
    terminal.run(bar)
    assert [(line.mark, line.text) for line in terminal.lines] == [("$", bar), (" ", "one 100 %"), (" ", "two")]
    seconds = [line.second for line in terminal.lines]
    assert seconds == sorted(seconds)


def test_a_question_gets_its_answer_at_a_terminal(terminal):
    asked = terminal.run("test -t 0 && read -p 'Well? [y/N]: ' word && echo got $word", [("[y/N]: ", "yes\n")])
    assert [line.text for line in asked.lines] == ["Well? [y/N]: yes", "got yes"]


def test_what_goes_on_in_the_background_is_marked_and_waited_for(terminal):
    daemon = terminal.start("echo ready; read word; echo over", [("", "go\n")])
    line = daemon.first("^rea")
    assert (line.mark, line.text) == ("|", "ready")
    assert daemon.first("over", after=line).second >= line.second
    daemon.wait()


def test_a_failure_is_one(terminal):
    with pytest.raises(Failed, match="exit code 3"):
        terminal.run("exit 3")
    with pytest.raises(Failed, match="before it printed 'ready'"):
        terminal.start("echo not yet").first("ready")


def test_a_key_is_not_shown(terminal):
    key = f"mx_{'0' * 12}_{'a' * 64}"
    printed = terminal.run(f"echo Bearer {key}.").lines[0]
    assert key in printed.text
    assert str(printed).endswith("Bearer mx_….")


def test_nothing_that_was_started_goes_on_after_a_failure(tmp_path):
    with pytest.raises(ZeroDivisionError), recorded(tmp_path, os.environ) as terminal:
        daemon = terminal.start("sleep 600 & echo child $!; wait")
        child = psutil.Process(int(daemon.first("^child ").text.split()[1]))
        assert is_at_work(child)
        _ = 1 / 0
    assert until(lambda: not is_at_work(child))


def is_at_work(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
