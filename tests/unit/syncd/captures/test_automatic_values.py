"""syncd/captures/automatic_values.py: the ledger says which values Memex wrote, and a value that somebody gave is none."""

import json

import pytest

from syncd.captures.automatic_values import KEPT, AutomaticValues, digest_of, file_stem
from syncd.state.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    tmp_path.chmod(0o700)
    opened = Ledger.open(tmp_path / "ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def values(ledger):
    return AutomaticValues(ledger)


def test_a_value_that_memex_wrote_is_automatic_until_somebody_gives_one(values):
    assert not values.has("w", "n", "title", "Zebra")
    values.record("w", "n", {"title": "Zebra", "tags": ["a", "b"], "summary": None})
    assert values.has("w", "n", "title", "Zebra")
    assert values.has("w", "n", "tags", ["b", "a"]), "the order of tags says nothing"
    assert values.has("w", "n", "summary", None)
    assert not any(
        (
            values.has("w", "n", "title", "Tax"),
            values.has("w", "n", "tags", ["a"]),
            values.has("w", "m", "title", "Zebra"),
        )
    )
    values.record("w", "n", {}, from_caller={"title"})
    assert not values.has("w", "n", "title", "Zebra")
    assert values.has("w", "n", "tags", ["a", "b"])


def test_earlier_values_count_too_but_no_number_of_them(values):
    for n in range(KEPT + 1):
        values.record("w", "n", {"title": f"Title {n}"})
    assert [values.has("w", "n", "title", f"Title {n}") for n in range(KEPT + 1)] == [False, *[True] * KEPT]


def test_two_unicode_forms_of_a_value_are_one_and_half_a_character_is_none_to_fail_at(values):
    values.record("w", "n", {"title": "Cafe\u0301", "summary": "\ud800"})
    assert values.has("w", "n", "title", "Caf\u00e9")
    assert values.has("w", "n", "summary", "\ud800")
    assert file_stem("a/Cafe\u0301.md") == "Caf\u00e9"


def test_what_is_the_same_already_is_not_written(values, ledger):
    values.record("w", "n", {"title": "Zebra"})
    before = ledger._connection.total_changes
    values.record("w", "n", {"title": "Zebra"}, from_caller={"tags"})
    assert ledger._connection.total_changes == before


def test_each_workspace_has_its_own_note_of_an_id(values, ledger):
    ledger.execute("INSERT INTO automatic VALUES ('', 'old', ?)", (json.dumps({"title": [digest_of("Heron")]}),))
    values.record("w", "standup", {"title": "Monday", "summary": "Short."})
    values.record("x", "standup", {"tags": ["a"]}, from_caller={"title"})
    values.record("x", "old", {}, from_caller={"title"})
    assert values.has("w", "standup", "title", "Monday")
    assert not values.has("x", "standup", "title", "Monday")
    assert values.notes_with_summary() == {("w", "standup")}
    assert [values.has(workspace, "old", "title", "Heron") for workspace in ("w", "x")] == [True, False]


def test_notes_that_are_gone_are_forgotten_and_one_that_is_made_meanwhile_is_not(values):
    values.record("w", "gone", {"title": "x"})
    values.record("w", "kept", {"title": "x"})

    def ids():
        values.record("w", "new", {"title": "x"})
        return {"kept"}

    values.forget_missing(ids)
    assert [values.has("w", id, "title", "x") for id in ("gone", "kept", "new")] == [False, True, True]


def test_a_ledger_that_can_t_be_written_costs_the_record_and_nothing_else(values, ledger):
    ledger.execute("DROP TABLE automatic")
    values.record("w", "n", {"title": "Zebra"})


def test_what_was_recorded_for_a_capture_counts_after_its_move_to_another_workspace(ledger):
    there = {("work", "n"), ("work", "copied")}
    values = AutomaticValues(ledger, lambda workspace, note: (workspace, note) in there)
    for id in ("n", "copied"):
        values.record("work", id, {"summary": "S"})
    there.remove(("work", "n"))
    assert values.has("home", "n", "summary", "S")
    assert not values.has("home", "copied", "summary", "S"), "that note is another one"
    values.record("home", "n", {}, from_caller={"summary"})
    assert not values.has("home", "n", "summary", "S")
