"""Unit tests of `generated_note`: what an owner decides in the note stays decided, and nothing of theirs is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.context.generated_note import Decisions, NoteLine, compose_note, line_of, merge_notes, read_decisions
from tests.support.context_facts import fact

FILTER = fact("The filter is due in May")
JUNE, ROOF = fact("The filter is due in June", key=FILTER.key), fact("The roof is new")
GATE = fact("The gate is shut")
TABS = fact("Ada prefers tabs (not spaces)", author="claude (mac)", stale=True)


def composed(*facts, decisions=None):
    return compose_note("default", 1_200, facts, decisions or Decisions())


def lines(*facts):
    return {line.mark: line.body for line in map(line_of, facts)}


def decided(text, *facts):
    return read_decisions(text, [lines(*facts)])


def test_a_note_as_memex_composed_it_decides_nothing():
    assert decided(composed(FILTER, TABS), FILTER, TABS) == Decisions()


def test_a_line_has_text_date_author_link_and_mark():
    line = line_of(TABS)
    assert line.body == (
        "Ada prefers tabs (not spaces) (2026-05-28, claude (mac), out of date) [[Captures/default/Ada prefers tabs (no|note]]"
    )
    assert line.text == TABS.text
    assert f"- {line.body} ^{line.mark}\n" in composed(TABS)


def test_a_promoted_fact_names_its_note_without_a_path():
    line = line_of(fact("The filter is due", promoted=True, path="Captures/default/X.md"))
    assert line.body == "The filter is due (2026-05-28, claude-code, promoted) “The filter is due”"
    assert line.text == "The filter is due"


def edit_changed(text):
    return text.replace("due in May", "due in June")


def edit_moved(text):
    (line,) = [line for line in text.splitlines() if "due in May" in line]
    return text.replace(line, "") + f"\n## Kept\n\n{line}\n"


@pytest.mark.parametrize("edit", [edit_changed, edit_moved])
def test_a_changed_or_moved_line_is_kept(edit):
    decisions = decided(edit(composed(FILTER, TABS)), FILTER, TABS)
    assert [line.mark for line in decisions.kept] == [FILTER.mark]
    assert decisions.left_out == {}
    assert decisions.decided == {FILTER.mark}


@pytest.mark.parametrize(
    "edit",
    [
        lambda _: "",
        lambda line: f"- ~~{line.body}~~ ^{line.mark}",
        lambda line: f"- ~~{line.text}~~ ^{line.mark}",
        lambda line: f"- ~~{line.text}~~{line.body.removeprefix(line.text)} ^{line.mark}",
        lambda line: f"## Left out\n- {line.body} ^{line.mark}",
    ],
    ids=["deleted", "struck", "struck and shortened", "its text struck", "moved"],
)
def test_a_deleted_or_struck_line_stays_out(edit):
    line = line_of(FILTER)
    text = composed(TABS, FILTER).replace(f"- {line.body} ^{line.mark}", edit(line))
    decisions = decided(text, FILTER, TABS)
    assert decisions.decided == {FILTER.mark}
    again = composed(TABS, decisions=decisions)
    assert "## Left out\n\n- ~~The filter is due in May" in again
    assert decided(again, TABS).decided == {FILTER.mark}


def test_a_line_taken_off_the_list_may_come_back():
    text = composed(TABS, decisions=Decisions(left_out={FILTER.mark: line_of(FILTER)}))
    assert decided("\n".join(line for line in text.splitlines() if "~~" not in line), TABS) == Decisions()


def test_what_the_owner_wrote_is_in_the_next_note():
    text = f"---\ntags: [mine]\n---\n{composed(FILTER)}\nA sentence of mine.\n\n- and a line\n"
    decisions = decided(text, FILTER)
    assert [line.body for line in decisions.kept] == ["A sentence of mine.", "and a line"]
    again = composed(FILTER, decisions=decisions)
    assert again.startswith("---\ntags: [mine]\n---\n# ")
    assert decided(again, FILTER) == decisions
    assert composed(FILTER, decisions=decided(again, FILTER)) == again


def test_a_line_of_the_owner_that_is_struck_is_not_said():
    (line,) = decided(f"{composed(FILTER)}- ~~old~~\n", FILTER).kept
    assert line.struck == "old"


@pytest.mark.parametrize("line", ["> A quote", "### A heading", "# What I think", "=======", "<<<<<<< left", ">>>>>>>"])
@pytest.mark.parametrize("heading", ["Kept", "Chosen by Memex", "Left out"])
def test_quotes_headings_and_rules_of_the_owner_stay(line, heading):
    decisions = decided(f"{composed(FILTER)}\n## {heading}\n\n{line}\n\nBelow it\n", FILTER)
    assert [kept.body for kept in decisions.kept] == [line, "Below it"]
    again = composed(FILTER, decisions=decisions)
    assert decided(again, FILTER) == decisions


def test_a_heading_of_the_owner_below_the_chosen_lines_keeps_none_of_them():
    text = composed(FILTER).replace("## Chosen by Memex\n", "## Chosen by Memex\n### Important\n")
    assert [kept.body for kept in decided(text, FILTER).kept] == ["### Important"]


@pytest.mark.parametrize("struck", [False, True], ids=["kept", "struck"])
def test_lines_with_the_same_mark_stay_both(struck):
    bodies = ["~~First~~", "~~Second~~"] if struck else ["First", "Second"]
    text = composed() + "\n## Kept\n\n" + "".join(f"- {body} ^{FILTER.mark}\n" for body in bodies)
    decisions = decided(text, FILTER)
    again = composed(decisions=decisions)
    assert all(f"- {body}" in again for body in bodies)
    assert decisions.decided == {FILTER.mark}
    assert decided(again, FILTER) == decisions


def test_markers_of_a_merge_are_no_lines():
    text = f"{composed(FILTER)}<<<<<<< ours\n=======\n>>>>>>> theirs\n"
    assert decided(text, FILTER) == Decisions()


def test_a_line_that_only_one_version_has_is_not_deleted():
    versions = [lines(FILTER), lines(FILTER, TABS)]
    assert read_decisions(composed(FILTER), versions) == Decisions()
    assert read_decisions(composed(FILTER, TABS), versions) == Decisions()
    assert read_decisions(composed(TABS), versions).decided == {FILTER.mark}


def test_a_note_that_another_device_wrote_leaves_no_line_out():
    text = composed(FILTER, ROOF)
    assert read_decisions(text, [lines(FILTER, TABS)], lambda: lines(FILTER, TABS, ROOF)) == Decisions()
    text = composed(JUNE)
    assert read_decisions(text, [lines(FILTER, TABS)], lambda: lines(JUNE, TABS)) == Decisions()


def test_the_merged_note_of_two_devices_has_the_decisions_of_both():
    out, kept = Decisions(left_out={FILTER.mark: line_of(FILTER)}), Decisions(kept=(line_of(ROOF), NoteLine("mine")))
    ours, theirs = composed(TABS, ROOF, decisions=out), composed(FILTER, GATE, decisions=kept)
    for first, second in ((ours, theirs), (theirs, ours)):
        merged = merge_notes(first.encode(), second.encode()).decode()
        assert merged.startswith(first)
        for written in ([TABS, ROOF], [FILTER, GATE]):  # by either device
            decisions = read_decisions(merged, [lines(*written)], lambda: lines(FILTER, TABS, ROOF, GATE))
            assert decisions == Decisions(left_out=out.left_out, kept=kept.kept)
        assert merge_notes(merged.encode(), second.encode()).decode() == merged
    assert merge_notes(ours.encode(), ours.encode()).decode() == ours


def test_properties_of_one_device_stay_in_the_merged_note():
    ours, theirs = composed(TABS), composed(ROOF)
    assert merge_notes(ours.encode(), f"---\na: 1\n---\n{theirs}".encode()).startswith(b"---\na: 1\n---\n# ")
    assert merge_notes(f"---\na: 2\n---\n{ours}".encode(), f"---\na: 1\n---\n{theirs}".encode()) is None


@given(st.lists(st.text(max_size=60), max_size=6), st.lists(st.text(max_size=60), max_size=6))
def test_every_line_of_both_owners_is_in_the_merged_note(mine, theirs):
    texts = [composed(FILTER) + "\n## Kept\n\n" + "\n".join(written) for written in (mine, theirs)]
    merged = merge_notes(*map(str.encode, texts))
    if merged is not None:
        bodies = {line.body for line in decided(merged.decode(), FILTER).kept}
        for text in texts:
            assert {line.body for line in decided(text, FILTER).kept} <= bodies


def test_a_line_that_equals_the_present_fact_is_not_kept():
    text = composed(JUNE, TABS)
    assert read_decisions(text, [lines(FILTER, TABS)], lambda: lines(JUNE, TABS)) == Decisions()
    assert read_decisions(text, [lines(FILTER, TABS)], lambda: lines(FILTER, TABS)).decided == {FILTER.mark}


def test_a_missing_line_of_a_deleted_note_is_no_decision():
    assert read_decisions(composed(TABS), [lines(FILTER, TABS)], lambda: lines(TABS)) == Decisions()
    assert read_decisions(composed(TABS), [lines(FILTER, TABS)], lambda: lines(FILTER, TABS)).decided == {FILTER.mark}


def test_a_changed_line_beside_a_deleted_one_are_two_decisions():
    text = composed(TABS, ROOF).replace("The roof is new", "The roof is old")
    decisions = read_decisions(text, [lines(FILTER, TABS, ROOF)], lambda: lines(FILTER, TABS, ROOF))
    assert [line.mark for line in decisions.kept] == [ROOF.mark]
    assert list(decisions.left_out) == [FILTER.mark]


@given(st.text(min_size=1, max_size=120), st.text(max_size=40), st.text(max_size=40))
def test_text_of_captures_is_data(text, author, title):
    made = fact(" ".join(text.split()) or "x", author=author, title=title)
    note = composed(made, TABS)
    assert len(note.splitlines()) == len(composed(FILTER, TABS).splitlines())
    assert decided(note, made, TABS) == Decisions()
    assert decided(note, made, TABS).front == ""


@given(st.lists(st.text(max_size=60), max_size=6))
def test_every_line_of_the_owner_stays(written):
    text = composed(FILTER) + "\n## Kept\n\n" + "\n".join(written)
    decisions = decided(text, FILTER)
    again = composed(FILTER, decisions=decisions)
    assert decided(again, FILTER).kept == decisions.kept


def test_a_kept_line_is_read_without_its_origin():
    assert NoteLine("Use tabs (not spaces)").text == "Use tabs (not spaces)"
    assert NoteLine("A &#42; (2026-01-01, x) [[a|note]]").text == "A *"
