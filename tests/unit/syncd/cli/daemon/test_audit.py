"""The audit log as its owner asks for it: with the daemon up and down, for people and for scripts."""

from __future__ import annotations

import json
from datetime import UTC
from types import SimpleNamespace

import pytest

from syncd.cli.daemon import audit
from syncd.cli.daemon.audit import format_verification, table
from syncd.cli.main import run_command
from syncd.history.audit_log import Author, acting_as
from tests.support.known_vault import make_default_vault
from tests.support.world import World

AGENT = Author("mcp", "capture_thought", "k1", "claude", "r1")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A vault with three notes in it, two of them by an agent; its commands find it as the default vault."""
    world = World(tmp_path)
    make_default_vault(monkeypatch, tmp_path / "home", world.vault, world.state)
    agent_access = world.app.agent_access
    agent_access.create_workspace("work")
    with acting_as(AGENT):
        agent_access.workspace("default").capture("one")
        agent_access.workspace("work").capture("two")
    world.app.operations["capture"]({"content": "three"}, lambda _: None)
    yield world
    world.close()


@pytest.fixture
def served(world):
    with world.serving():
        yield world


def lines(capfd):
    return capfd.readouterr().out.splitlines()


def test_what_was_written_is_a_table_newest_last(served, capfd):
    assert run_command(["audit"]) == 0
    head, *rows = lines(capfd)
    assert head.split() == ["entry", "at", "what", "by", "tool", "key", "note"]
    assert [row.split()[3:6] for row in rows] == [
        ["create", "mcp", "capture_thought"],
        ["create", "mcp", "capture_thought"],
        ["create", "cli", "capture"],
    ]
    assert "claude" in rows[0]
    assert rows[2].endswith("Captures/default/three.md")


ASKED = [
    (["--key", "claude"], [1, 2]),
    (["--key", "k1", "--workspace", "work"], [2]),
    (["--tool", "capture"], [3]),
    (["--call", "r1"], [1, 2]),
    (["--surface", "mcp", "--limit", "1"], [2]),
    (["--since", "1h"], [1, 2, 3]),
    (["--until", "1h"], []),
    (["--id", "nobody's"], []),
    (["--id", "Captures/work/two.md"], [2]),
    (["--before-entry", "3", "--limit", "1"], [2]),
]


def test_a_script_gets_those_that_it_asks_for(served, capfd):
    for asked, expected in ASKED:
        assert run_command(["audit", *asked, "--json"]) == 0
        assert [one["seq"] for one in json.loads(capfd.readouterr().out)] == expected, asked


WRONG = [["--surface", "web"], ["--limit", "0"], ["--since", "yesterday"], ["nonsense"]]


def test_what_can_not_be_asked_is_refused(served):
    for wrong in WRONG:
        assert run_command(["audit", *wrong]) == 2, wrong


def test_an_entry_is_shown_with_what_it_changed(served, capfd):
    assert run_command(["audit", "show", "1"]) == 0
    shown = lines(capfd)
    assert [line.split()[:2] for line in shown[1:5]] == [
        ["seq", "1"],
        ["kind", "create"],
        ["surface", "mcp"],
        ["tool", "capture_thought"],
    ]
    assert "+one" in shown
    assert run_command(["audit", "show", "1", "--json"]) == 0
    entry = json.loads(capfd.readouterr().out)
    assert (entry["path"], entry["now"]) == ("Captures/default/one.md", "Captures/default/one.md")
    assert "+one" in entry["diff"]


UNKNOWN = [
    (["--key", "nope"], "memex: the log has no entry with the key 'nope'; to see the known ones: memex key list\n"),
    (
        ["--tool", "nope", "--key", "claude"],
        "memex: the log has no entry of the tool 'nope'; to see the known ones: memex audit (column tool)\n",
    ),
    (
        ["--id", "no/pe.md"],
        "memex: the log has no entry about the note 'no/pe.md'; to see the known ones: memex audit (column note)\n",
    ),
    (
        ["--call", "nope"],
        "memex: the log has no entry of the call 'nope'; to see the known ones: memex audit --json (field request)\n",
    ),
    (["--key", "claude", "--until", "2020-01-01"], ""),
]


def test_an_unknown_value_of_a_filter_is_named(served, capfd):
    for words, message in UNKNOWN:
        assert run_command(["audit", *words]) == 0
        out, err = capfd.readouterr()
        assert (out, err) == ("no entries\n", message)


def test_an_unknown_workspace_is_reported(served, capfd):
    assert run_command(["audit", "--workspace", "nope"]) == 4
    assert "no workspace 'nope'" in capfd.readouterr().err


def test_an_entry_that_is_not_in_the_log_is_named_with_those_that_are(served, capfd):
    assert run_command(["audit", "show", "9"]) == 4
    assert "no entry 9; it has entries 1 to 3" in capfd.readouterr().err


def test_it_can_be_followed_while_a_daemon_writes(served, capfd, monkeypatch):
    rounds = []

    def sleep(_):
        rounds.append(1)
        if len(rounds) > 2:
            raise KeyboardInterrupt
        served.app.agent_access.workspace("work").capture(f"later {len(rounds)}")

    monkeypatch.setattr(audit, "time", SimpleNamespace(sleep=sleep))  # its own only: the daemon's threads sleep too
    assert run_command(["audit", "--follow", "--workspace", "work", "--json"]) == 130
    assert [json.loads(line)["seq"] for line in lines(capfd)] == [2, 4, 5]


def test_all_of_it_is_exported_and_checked_by_itself(served, capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "PAGE", 2)
    assert run_command(["audit", "export"]) == 0
    file = tmp_path / "audit.jsonl"
    file.write_text(capfd.readouterr().out)
    assert len(file.read_text().splitlines()) == 3
    head = str(served.app.opened.audit.head)
    assert run_command(["audit", "verify", str(file), "--head", head]) == 0
    assert head in capfd.readouterr().out
    file.write_text(file.read_text().replace("claude", "nobody"))
    assert run_command(["audit", "verify", str(file), "--json"]) == 7
    assert json.loads(capfd.readouterr().out)["broken"] == 2
    file.write_text("no entry\n")
    assert run_command(["audit", "verify", str(file)]) == 2


def test_a_broken_chain_is_told_with_its_place_and_an_exit_code(served, capfd):
    assert run_command(["audit", "verify"]) == 0
    assert capfd.readouterr().out.startswith("3 entries")
    served.app.opened.ledger._connection.execute("UPDATE audit SET path = 'elsewhere.md' WHERE seq = 2")
    assert run_command(["audit", "verify"]) == 7
    assert "entry 2 does not match its seal" in capfd.readouterr().out


def test_notes_changed_by_hand_are_named_and_break_nothing(served, capfd):
    path = "Captures/default/one.md"
    with (served.vault / path).open("a") as file:
        file.write("more")
    assert run_command(["audit", "verify"]) == 0
    assert lines(capfd)[1:] == ["changed outside Memex since: 1", f"- {path}"]


def test_a_note_that_cannot_be_read_is_named_with_the_reason_and_an_exit_code(served, capfd):
    file = served.vault / "Captures/default/one.md"
    file.unlink()
    file.mkdir()
    assert run_command(["audit", "verify"]) == 7
    assert lines(capfd)[1:] == [
        "could not be read, and were not compared: 1",
        "- Captures/default/one.md: is a folder, not a note",
    ]


def test_old_entries_are_moved_into_a_file(served, capfd, tmp_path):
    target = tmp_path / "old.jsonl"
    assert run_command(["audit", "prune", "--before", "1h", "--to", str(target)]) == 0
    assert lines(capfd) == ["no entry is older than that"]
    assert run_command(["audit", "prune", "--before", "2999-01-01", "--to", str(target)]) == 0
    assert lines(capfd) == [f"2 entries were moved to {target}"]
    assert run_command(["audit", "verify", str(target)]) == 0
    assert run_command(["audit", "verify"]) == 0
    assert run_command(["audit", "prune", "--before", "2999-01-01", "--to", str(target)]) == 5


def test_it_works_while_no_daemon_runs(world, capfd, tmp_path):
    world.app.close()
    try:
        assert run_command(["audit", "--key", "claude", "--json"]) == 0
        assert [one["seq"] for one in json.loads(capfd.readouterr().out)] == [1, 2]
        assert run_command(["audit", "verify"]) == 0
        assert run_command(["audit", "export"]) == 0
        assert len(lines(capfd)) == 4
        assert run_command(["audit", "--follow"]) == 7  # there is nobody who would write
    finally:
        world.app = world._open()


def test_the_status_tells_the_head(served, capfd):
    assert run_command(["status"]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert f"audit 3 entries, head {served.app.opened.audit.head}" in text


def test_an_entry_steers_no_terminal():
    one = dict.fromkeys(("kind", "surface", "tool", "key", "workspace", "outcome"), "") | {
        "seq": 1,
        "at": 1_800_000_000_000,
        "name": "evil\x1b[31m",
        "path": "a\nb.md",
        "outcome": "CONFLICT",
        "kind": "undone",
    }
    _, row = table([one], UTC, color=False).splitlines()
    assert "\x1b" not in row
    assert "2027-01-15 08:00:00  undone (CONFLICT)" in row
    assert table([], None, color=False) == "no entries"


def test_long_lists_are_cut():
    found = {
        "entries": 1,
        "first": 1,
        "head": "1:a",
        "broken": 0,
        "breaks": [],
        "changed": [f"{n}.md" for n in range(12)],
    }
    assert format_verification(found).splitlines()[-1] == "… and 2 more: --json"
