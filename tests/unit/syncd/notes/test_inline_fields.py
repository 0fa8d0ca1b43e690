"""Relations in a line: found, renamed and taken out, with what stands around them left alone."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.model import Statement
from syncd.notes.inline_fields import NESTED, change_type, find_fields, line_prefix, remove_targets
from tests.support.example_counts import examples


def said(line):
    return [(to.says.type, to.says.target) for field in find_fields(line) for to in field.targets]


def to(*targets):
    return lambda statement: statement.target in targets


@pytest.mark.parametrize(
    ("line", "gone", "left"),
    [
        ("- k:: [[A]]", "A", None),
        ("k:: [[A]] since 1833", "A", "[[A]] since 1833"),
        ("> - k:: At the ball in 1840 [[A]] danced", "A", "> - At the ball in 1840 [[A]] danced"),
        ("- k:: ![[B.png]] [[A]]", "A", "- ![[B.png]] [[A]]"),
        ("- k:: [[A]] ^id", "A", "- [[A]] ^id"),
        ("k:: j:: [[A]]", "A", None),
        ("- k:: [[A]], [[B]], [[C]]", "A", "- k:: [[B]], [[C]]"),
        ("- k:: [[A]], [[B]], [[C]]", "B", "- k:: [[A]], [[C]]"),
        ("- k:: [[A]], [[B]], [[C]]", "C", "- k:: [[A]], [[B]]"),
        ("- k:: [[A]], [[B]], [[C]] x", "BC", "- k:: [[A]] x"),
        ("- k:: [[A]], [[B]], [[C]]", "AC", "- k:: [[B]]"),
        ("- k:: [[A]], [[B]], [[C]]", "AB", "- k:: [[C]]"),
        ("- k:: [[A]], [[B]], [[C]]", "ABC", None),
        ("  > * [k:: [[A]]]", "A", None),
        ("In 1833 she met [k:: [[A|him]]] in [k:: [[B]]].", "A", "In 1833 she met [[A|him]] in [k:: [[B]]]."),
        ("1833 [k:: [[A]]]", "A", "1833 [[A]]"),
        ("x [k:: [[A]], [[B]]] y", "A", "x [k:: [[B]]] y"),
        ("x [k:: [[A]] [[B]]] y", "AB", "x [[A]] [[B]] y"),
        ("x [k:: my friend [[A]], a poet] y", "A", "x my friend [[A]], a poet y"),
        ("[k:: [[A]]] y", "A", "[[A]] y"),
        ("- [k:: dear [[A]]]", "A", "- dear [[A]]"),
        ("- k:: [[B]]", "A", "- k:: [[B]]"),
        ("`k:: [[A]]`", "A", "`k:: [[A]]`"),
    ],
)
def test_a_target_is_taken_out_and_nothing_else(line, gone, left):
    assert remove_targets(line, to(*gone)) == left


@pytest.mark.parametrize(
    ("line", "which", "left"),
    [
        ("-  old :: [[A|x]] y", "A", "-  new :: [[A|x]] y"),
        ("x [old:: [[A]]] [old:: [[B]]]", "B", "x [old:: [[A]]] [new:: [[B]]]"),
        ("- old:: [[A]], [[B]]", "AB", "- new:: [[A]], [[B]]"),
        ("- old:: [[A]], [[B]]", "A", "- old:: [[A]], [[B]]"),
    ],
)
def test_a_type_is_renamed_where_all_of_its_targets_are_meant(line, which, left):
    assert change_type(line, to(*which), "new") == left


def test_the_prefix_of_a_line_is_its_indentation_and_quote():
    assert [line_prefix(line) for line in ("- a", "  > - a", "\ta", "")] == ["", "  > ", "\t", ""]


pieces = st.sampled_from(
    [
        "k:: ",
        "[k:: ",
        "[[A]]",
        "[[B|x]]",
        "[[A#h]]",
        "]",
        "[",
        ", ",
        "::",
        "`",
        "%%",
        "<!--",
        "- ",
        "> ",
        "1. ",
        "é",
        " ",
    ]
)


@pytest.mark.slow
@given(st.lists(pieces | st.text("ab日 \t\u3000", max_size=3), max_size=14).map("".join))
@example("k:: [k:: [[A]]]")
@examples(1_000)
def test_what_is_changed_is_changed_and_what_is_not_stays(line):
    before = said(line)
    left = remove_targets(line, to("A"))
    after = [] if left is None else said(left)
    assert ("A" not in {target for _, target in after}) or not before
    if left is not None:
        rest = iter(line)
        assert all(character in rest for character in left)
    if before and all(target != "A" for _, target in before):
        assert left == line
    renamed = change_type(line, lambda _: True, "new")
    assert said(renamed) == [("new", target) for _, target in before]
    assert change_type(line, lambda _: False, "new") == line
    for field in find_fields(line):
        assert 0 <= field.start <= field.key[0] < field.key[1] < field.targets[0].start
        assert all(line[one.start : one.end].startswith("[[") for one in field.targets)
        assert all(line[one.start : one.end].endswith("]]") for one in field.targets)
        assert field.key[1] < field.value[0] <= field.targets[0].start
        assert field.targets[-1].end <= field.value[1] <= field.end


def test_a_statement_is_compared_in_normal_form():
    (field,) = find_fields("- cafe\u0301:: [[Cafe\u0301]]")
    assert field.targets[0].says == Statement("caf\xe9", "Cafe\u0301")


@pytest.mark.slow
def test_fields_inside_each_other_are_removed_up_to_a_limit():
    def nested(count):
        return "[a:: " * count + "[[X]]" + "]" * count

    assert remove_targets(f"- see {nested(NESTED)}", to("X")) == "- see [[X]]"
    begun = time.process_time()
    assert remove_targets(nested(5_000), to("X")) == nested(5_000 - NESTED)
    assert time.process_time() - begun < 2
