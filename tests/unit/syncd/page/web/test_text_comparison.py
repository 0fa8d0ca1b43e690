"""syncd/page/web/text_comparison.py: lines side by side, words that differ, and folded runs."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from syncd.page.web import text_comparison
from syncd.page.web.text_comparison import ALL_PAIRS, LINES, PAIRS, Row, compare_texts, patch_lines

LINE = st.sampled_from(["", "one", "two", "one two three", "one two four", " indented", "x" * 50])
TEXT = st.lists(LINE, max_size=30).map("\n".join)


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def side(rows, name):
    """The shown lines of a side, and the number of folded ones."""
    shown = ["".join(text for text, _ in getattr(row, name)) for row in rows if getattr(row, name)]
    return shown, sum(row.folded for row in rows)


@given(TEXT, TEXT)
def test_each_side_is_its_text(left, right):
    rows = compare_texts(left, right).rows
    for name, text in (("left", left), ("right", right)):
        shown, folded = side(rows, name)
        assert len(shown) + folded == len(lines(text))
        kept = iter(lines(text))
        assert all(line in kept for line in shown), "in their order"
    assert compare_texts(left, right).is_equal == (lines(left) == lines(right))


def test_words_that_differ_are_marked():
    (row,) = compare_texts("The filter is due in May.", "The filter is due in June.").rows
    assert row.kind == "changed"
    assert row.left == (("The filter is due in", False), (" May.", True))
    assert row.right == (("The filter is due in", False), (" June.", True))


def test_lines_with_nothing_in_common_are_not_marked():
    (row,) = compare_texts("The filter is due", "Lena wants a report").rows
    assert row.left == (("The filter is due", False),)


def test_long_runs_of_equal_lines_are_folded():
    same = "\n".join(map(str, range(20)))
    rows = compare_texts(f"{same}\nold", f"{same}\nnew").rows
    assert [row.kind for row in rows] == ["folded", "same", "same", "changed"]
    assert rows[0] == Row("folded", folded=18)
    assert [row.folded for row in compare_texts(same, same).rows] == [20]


def test_line_ends_and_blank_lines_do_not_count():
    assert compare_texts("a\r\n\r\nb", "a\nb\n").is_equal


def test_a_long_text_is_compared_in_part():
    text = "\n".join(map(str, range(LINES + 1)))
    assert compare_texts(text, text).is_cut
    assert not compare_texts(text, text).is_equal


def test_words_of_long_lines_are_not_marked():
    line = "word " * int(PAIRS**0.5)
    (row,) = compare_texts(f"{line}old", f"{line}new").rows
    assert (row.left, row.right) == (((f"{line}old", False),), ((f"{line}new", False),))


def test_words_are_marked_up_to_a_total():
    words = " ".join(map(str, range(99)))
    left, right = ("\n".join(f"{words} {end}{number}" for number in range(60)) for end in ("old", "new"))
    rows = compare_texts(left, right).rows
    marked = [number for number, row in enumerate(rows) if len(row.left) > 1]
    assert marked == list(range(ALL_PAIRS // 100**2))


def test_each_line_has_its_kind():
    patch = list(difflib.unified_diff(["old", "same"], ["new", "same"], "a.md", "a.md", lineterm=""))
    lines = patch_lines(patch)
    assert [line.kind for line in lines] == ["place", "place", "place", "removed", "added", "same"]
    assert [line.text for line in lines] == patch


def test_a_removed_line_that_begins_with_dashes_is_no_name_of_a_file():
    patch = list(difflib.unified_diff(["-- x"], ["++ x"], "a.md", "a.md", lineterm=""))
    assert [line.kind for line in patch_lines(patch)] == ["place", "place", "place", "removed", "added"]


def test_a_text_that_is_no_longer_kept_has_no_lines():
    assert patch_lines(None) is None
    assert patch_lines([]) == ()


def test_a_beginning_of_a_comparison_compares_no_words_behind_it(monkeypatch):
    left, right = ("\n".join(f"{side} {number} words" for number in range(100)) for side in ("left", "right"))
    whole = compare_texts(left, right)
    compared = []
    monkeypatch.setattr(
        text_comparison, "_mark_words", lambda words, _: compared.append(words) or ((("x", False),), ())
    )
    short = compare_texts(left, right, most=24)
    assert (len(short.rows), short.is_cut, len(compared)) == (24, True, 25)
    monkeypatch.undo()
    assert compare_texts(left, right, most=24).rows == whole.rows[:24]
    assert compare_texts(left, right, most=100) == whole
    assert not compare_texts("a", "b", most=24).is_cut
