"""Boxes in reports: whose tick counts, whatever people do to the lines around them, and what is written into them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.notes.checkboxes import (
    ProposalOutcome,
    find_checkboxes,
    format_checkbox,
    mark_checkboxes,
    read_answers,
    write_outcomes,
    write_undone,
)
from tests.support.example_counts import examples

A, B, C = "00112233445566aa", "0011223344556600", "ffffffffffffffff"


def test_a_line_is_read_back_as_it_was_written():
    text = format_checkbox("Keep [[A]]", A)
    assert text == f"- [ ] Keep [[A]] ^p-{A}"
    assert [(box.key, box.mark, text[box.start : box.end]) for box in find_checkboxes(text)] == [(A, " ", text)]
    assert read_answers([text]) == {}
    assert read_answers([text.replace("[ ]", "[x]")]) == {A: "accepted"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(f"- [X] a ^p-{A}", {A: "accepted"}, id="a capital x"),
        pytest.param(f"- [-] a ^p-{A}", {A: "dismissed"}, id="struck out"),
        pytest.param(f"- [/] a ^p-{A}", {}, id="begun, in some themes"),
        pytest.param(f"- [x] a ^P-{A.upper()}", {A: "accepted"}, id="an id in capitals"),
        pytest.param(f"---\na: 1\n---\r\n\r\n* [x] a ^p-{A}\r\n", {A: "accepted"}, id="other line ends, below properties"),
        pytest.param(f"1. one\n\n   - [x] a ^p-{A}", {A: "accepted"}, id="nested"),
        pytest.param(f"- [x] said otherwise by hand ^p-{A} and more", {A: "accepted"}, id="other text, also behind it"),
        pytest.param(f"- [x] a 📅 2026-11-22 ^p-{A}", {A: "accepted"}, id="with a date"),
        pytest.param(f"- [x] a ^p-{A}\n- [ ] b ^p-{B}\n- [-] c ^p-{C}", {A: "accepted", C: "dismissed"}, id="several"),
        pytest.param(f"- [x] a ^p-{A}\n- [ ] a ^p-{A}", {A: "accepted"}, id="a copy that is not ticked"),
        pytest.param(f"- [x] a ^p-{A}\n- [-] a ^p-{A}", {}, id="two answers that differ"),
        pytest.param(f"- [x] a ^p-{A} - [ ] b ^p-{B}", {}, id="two lines that were joined"),
        pytest.param(f"[x] a ^p-{A}", {}, id="no list"),
        pytest.param(f"- [x]a ^p-{A}", {}, id="no box"),
        pytest.param(f"- [x] a^p-{A}", {}, id="no id, but the end of a word"),
        pytest.param(f"- [x] a ^p-{A}0", {}, id="an id too long"),
        pytest.param(f"```\n- [x] a ^p-{A}\n```", {}, id="in a fence"),
        pytest.param(f"~~~~\n```\n- [x] a ^p-{A}\n```\n", {}, id="in a fence that is not closed"),
        pytest.param(f"    - [x] a ^p-{A}", {}, id="in code by its indentation"),
        pytest.param(f"> - [x] a ^p-{A}", {}, id="in a quote"),
        pytest.param(f"> [!note]\n> - [x] a ^p-{A}", {}, id="in a callout"),
        pytest.param(f"- b\n  > - [x] a ^p-{A}", {}, id="in a quote in a list"),
        pytest.param(f"%%\n- [x] a ^p-{A}\n%%", {}, id="in a comment"),
        pytest.param(f"<!--\n- [x] a ^p-{A}\n-->", {}, id="in a comment of HTML"),
        pytest.param(f"- [x] `a ^p-{A} b`", {}, id="in code within the line"),
        pytest.param(f"- [x] a %% ^p-{A} %%", {}, id="in a comment within the line"),
        pytest.param(f"---\na: |\n  - [x] a ^p-{A}\n---\n", {}, id="in the properties"),
        pytest.param(f"# [x] a ^p-{A}", {}, id="in a heading"),
        pytest.param(f"| - [x] a ^p-{A} |\n| --- |\n", {}, id="in a table"),
        pytest.param("- [x] ^p-0011\n" * 3, {}, id="half an id"),
    ],
)  # fmt: skip
def test_only_the_box_of_a_list_item_counts(text, told):
    assert read_answers([text]) == told


def test_answers_of_several_notes_are_one():
    assert read_answers([f"- [x] a ^p-{A}", f"- [ ] a ^p-{A}\n- [-] b ^p-{B}"]) == {A: "accepted", B: "dismissed"}
    assert read_answers([f"- [x] a ^p-{A}", f"- [-] a ^p-{A}"]) == {}


def test_what_was_done_is_told_in_its_line_and_can_not_be_ticked_again():
    text = f"# R\r\n- [x] a ^p-{A}\r\n\t- [X] b ^p-{B} mine\r\n- [ ] c ^p-{C}\r\n"
    told = write_outcomes(
        text,
        {
            A: ProposalOutcome(True, "archived [[X]]"),
            B: ProposalOutcome(False, "changed"),
            C: ProposalOutcome(False, "changed"),
        },
        "2026-11-21",
    )
    assert told == (
        "# R\r\n- [x] a – archived &#91;&#91;X&#93;&#93; ✅ 2026-11-21\r\n"
        f"\t- [-] b – changed ❌ 2026-11-21 mine\r\n- [ ] c ^p-{C}\r\n"
    )
    assert read_answers([told]) == {}
    assert write_outcomes(told, {A: ProposalOutcome(True, "x")}, "2026-11-22") == told


def test_a_box_is_told_as_done_that_was_ticked_in_another_note():
    assert (
        write_outcomes(f"- [ ] a ^p-{A}", {A: ProposalOutcome(True, "done")}, "2026-11-21")
        == "- [x] a – done ✅ 2026-11-21"
    )


def test_an_undone_task_says_so_in_its_line_and_no_other_line_changes():
    text = "# R\r\n- [x] a – archived &#91;X&#93; ✅ 2026-11-21 mine\r\n- [x] b – archived [X] ✅ 2026-11-21\r\n- [x] c – archived &#91;X&#93;\r\n"
    assert write_undone(text, "archived [X]", "2026-11-23") == text.replace(
        "- [x] a – archived &#91;X&#93; ✅ 2026-11-21", "- [-] a – archived &#91;X&#93;, undone ❌ 2026-11-23"
    )
    quoted = "> - a – done ✅ 2026-11-21\n\n    - [x] a – done ✅ 2026-11-21\n"
    assert write_undone(quoted, "done", "2026-11-23") == quoted


noise = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "text", "# heading", "- [ ] mine", "- item", "  more", "> quote", "1. one", "| a |", "***", "- [x] mine ^block"]
        ),
        st.text(st.characters(codec="utf-8", exclude_characters="`~<%$^\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=12),
    ),
    max_size=6,
)  # fmt: skip


@examples(60)
@given(
    st.permutations([A, B, C]), st.tuples(noise, noise, noise, noise), st.sampled_from(["\n", "\r\n", "\r"]), st.data()
)
def test_whatever_stands_around_them_the_ticked_boxes_are_those_that_count(order, around, end, data):
    marks = {key: data.draw(st.sampled_from(" xX-/")) for key in order}
    lines = [*around[0]]
    for key, more in zip(order, around[1:], strict=True):
        # A blank line and an item of its own: what a person writes there can't take the line into a block of theirs.
        lines += ["", "***", "", f"- [{marks[key]}] do it ^p-{key}", *more]
    text = end.join(lines)
    wanted = {key: "dismissed" if mark == "-" else "accepted" for key, mark in marks.items() if mark in "xX-"}
    assert read_answers([text]) == wanted
    told = write_outcomes(text, {A: ProposalOutcome(True, "done")}, "2026-11-21")
    before, after = text.split(f"- [{marks[A]}] do it ^p-{A}")
    assert told == f"{before}- [x] do it – done ✅ 2026-11-21{after}"
    assert read_answers([told]) == {key: answer for key, answer in wanted.items() if key != A}


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text):
    assert write_outcomes(text, {}, "2026-11-21") == text
    assert write_outcomes(f"{text}\n- [x] ^p-{A}", {C: ProposalOutcome(True, "x")}, "2026-11-21").startswith(text)


def test_marks_change_only_the_boxes_of_their_keys():
    text = f"- [ ] One ^p-{'a' * 16}\n\t- [ ] Two ^p-{'b' * 16}\n- [ ] mine\n"
    marked = mark_checkboxes(text, {"a" * 16: "x", "b" * 16: "-", "c" * 16: "x"})
    assert marked == f"- [x] One ^p-{'a' * 16}\n\t- [-] Two ^p-{'b' * 16}\n- [ ] mine\n"


def test_a_row_of_list_marks_does_not_take_long():
    begun = time.process_time()
    assert find_checkboxes(f"{'-  ' * 24}> - [x] a ^p-{A}") == []
    assert time.process_time() - begun < 0.5  # each mark more doubled the time
