"""The command for consolidation: what is told, in words and to scripts, and by which code it ends."""

from __future__ import annotations

import json

import pytest

from syncd.cli.main import run_command
from syncd.cli.notes.consolidation import format_result
from tests.support.sample_captures import Inbox
from tests.support.world import answering


@pytest.fixture
def inbox(tmp_path):
    made = Inbox(tmp_path)
    with answering(made.world):
        yield made


def test_a_run_tells_where_the_report_is_and_what_was_done(inbox, capfd):
    here = ["--vault", str(inbox.world.vault), "--state", str(inbox.world.state)]
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    assert run_command(["consolidate", "--dry-run", *here]) == 0
    assert "- [ ] Archive [[Captures/default/nobody reads this|nobody reads this]]" in capfd.readouterr().out
    assert run_command(["consolidate", *here]) == 0
    out = capfd.readouterr().out
    assert out.startswith("1 proposal waits for your answer: Captures/Reports/")
    inbox.tick(*inbox.reports(), "Archive [[")
    inbox.say()
    assert run_command(["consolidate", "--json", *here]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [one["done"] for one in told["carried"]] == [True]
    assert (told["proposals"], told["report"]) == (0, None)
    assert run_command(["consolidate", "--workspace", "nowhere", *here]) == 4


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"proposals": 0, "report": None, "carried": []}, "nothing needs attention"),
        ({"proposals": 2, "report": None, "carried": []}, "2 proposals wait for your answer; none is new"),
        ({"proposals": 0, "report": None, "carried": [{"done": False, "said": "it\x1b[2J has gone"}]}, "not done: it\\u{1b}[2J has gone\nnothing needs attention"),
        ({"text": "# R\x1b[31m\n"}, "# R\\u{1b}[31m"),
    ],
)  # fmt: skip
def test_what_a_person_is_told(told, says):
    assert format_result(told) == says


def test_an_accepted_proposal_that_is_not_carried_out_is_reported_by_the_exit_code(inbox, capfd):
    here = ["--vault", str(inbox.world.vault), "--state", str(inbox.world.state)]
    note = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", note.id))
    assert run_command(["consolidate", *here]) == 0
    (key,) = [row["key"] for row in inbox.world.app.operations["consolidate.list"]({}, lambda _: None)["proposals"]]
    assert run_command(["consolidate", "--accept", key, "--dismiss", key, *here]) == 2
    assert "both name" in capfd.readouterr().err
    file = inbox.world.vault / inbox.world.app.opened.captures.index.record(note.id, "default").path
    file.write_text(file.read_text() + "edited\n")
    capfd.readouterr()
    assert run_command(["consolidate", "--accept", key, *here]) == 5, capfd.readouterr()
    assert "not done" in capfd.readouterr().out
