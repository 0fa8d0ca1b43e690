"""Unit tests of `note_facts`: a fact is one line of data, made from a note or from each fact of an entity."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Observation
from syncd.context.note_facts import LONGEST, READ, facts_of_entity, facts_of_note, project_key
from tests.support.context_facts import record
from tests.support.sample_secrets import SECRETS

RECORD = record("Captures/default/Heat pump.md", title="Heat pump")


@pytest.mark.parametrize(
    ("title", "summary", "text", "line"),
    [
        pytest.param("Heat pump", None, "The filter is due in May.", "The filter is due in May.", id="short"),
        pytest.param(
            "Heat pump", "Due in May.", "# Heat pump\n\nThe filter.", "Heat pump: The filter.", id="a heading"
        ),
        pytest.param("Heat pump", "It is due.", "Word " * 200, "Heat pump: It is due.", id="long, with a summary"),
        pytest.param(
            "Heat pump", "Heat pump: it is due.", "Word " * 200, "Heat pump: it is due.", id="a summary with the title"
        ),
        pytest.param("Filters", None, "- *one*\n- [[two|2]]", "one 2", id="markup is left out"),
        pytest.param("Filters", None, "one\n\ntwo\u2028three", "one two three", id="line ends"),
    ],
)
def test_the_fact_of_a_note(title, summary, text, line):
    (fact,) = facts_of_note(replace(RECORD, title=title, summary=summary), text)
    assert fact.text == line
    assert (fact.key, fact.author, fact.day) == (RECORD.id, "claude-code", "2026-05-28")


def test_a_long_note_without_a_summary_gives_its_first_sentences():
    (fact,) = facts_of_note(replace(RECORD, title="Log", summary=None), "First things first. " + "More of it. " * 100)
    assert fact.text.startswith("Log: First things first. More of it.")
    assert len(fact.text) <= LONGEST


def test_a_note_without_a_letter_has_no_fact():
    assert facts_of_note(replace(RECORD, title="-"), "---\n\n***") == []


def test_each_fact_of_an_entity_is_a_fact_with_its_number():
    observations = [Observation(1, "Wrote the\nfirst algorithm"), Observation(3, "Wrote letters to [[Babbage]]")]
    facts = facts_of_entity(replace(RECORD, title="Ada", type="entity"), observations)
    assert [(fact.key, fact.text) for fact in facts] == [
        (f"{RECORD.id}#^o1", "Ada: Wrote the first algorithm"),
        (f"{RECORD.id}#^o3", "Ada: Wrote letters to Babbage"),
    ]
    assert {fact.id for fact in facts} == {RECORD.id}
    assert len({fact.mark for fact in facts}) == 2


def test_of_an_entity_with_very_many_facts_the_newest_count():
    observations = [Observation(number, f"Fact {number}") for number in range(1, 201)]
    facts = facts_of_entity(replace(RECORD, title="Ada", type="entity"), observations)
    assert [fact.text for fact in facts] == [f"Ada: Fact {number}" for number in range(151, 201)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("The heat pump is loud.", "- The heat pump is loud. (2026-05-28, claude-code)", id="names itself"),
        pytest.param("It is loud.", "- It is loud. (2026-05-28, claude-code, note: Heat pump)", id="names the note"),
        pytest.param(
            "The cheat pumps.", "- The cheat pumps. (2026-05-28, claude-code, note: Heat pump)", id="parts of words"
        ),
        pytest.param(
            "Heat: pump is loud.", "- Heat: pump is loud. (2026-05-28, claude-code)", id="names itself with other marks"
        ),
    ],
)
def test_a_line_has_its_date_and_author_and_names_its_note(text, line):
    (fact,) = facts_of_note(RECORD, text)
    assert fact.line == line
    assert replace(fact, stale=True).line == line.replace("claude-code", "claude-code, out of date")


def test_secrets_and_hidden_characters_do_not_reach_a_fact():
    (fact,) = facts_of_note(RECORD, f"The key is {SECRETS['memex-key']} and\u202e here")
    assert SECRETS["memex-key"] not in fact.text
    assert "\u202e" not in fact.text


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_secret_where_a_text_is_cut_does_not_reach_a_fact(cut):
    end = f"\n\nFor staging use ghp_{'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5'} here."
    start = "# Deploy\n\nSee [runbook](https://example.com/"
    text = f"{start}{'a' * (READ - len(start) - cut)}){end}"
    facts = [
        *facts_of_note(RECORD, text),
        *facts_of_entity(RECORD, [Observation(1, f"{' ' * (READ - 30 - cut)}{end}")]),
    ]
    assert not any("aB3" in fact.text for fact in facts)


@given(st.text(max_size=600), st.text(max_size=80), st.text(max_size=40))
def test_a_fact_is_always_one_line(text, title, source):
    for fact in facts_of_note(replace(RECORD, title=title, source=source), text):
        assert len(fact.line.splitlines()) == 1
        assert fact.line.startswith("- ")


def test_projects_come_from_the_folder_the_property_and_the_tags():
    filed = replace(RECORD, namespace="alpha", metadata={"project": "Big Thing"}, tags=("project/beta", "heating"))
    (fact,) = facts_of_note(filed, "Text")
    assert fact.projects == {"alpha", "big-thing", "beta", "heating"}
    assert fact.filed
    assert not facts_of_note(replace(RECORD, tags=("heating",)), "Text")[0].filed
    assert project_key("Big_Thing") == "big-thing"
