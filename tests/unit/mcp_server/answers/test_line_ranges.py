"""Which part of a document is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument, NotFound
from mcp_server.answers.line_ranges import LONGEST, SHOWN, TextLines, find_section, list_headings, select_lines
from mcp_server.answers.text_budget import estimate_tokens
from syncd.notes.markdown_outline import parse_outline

BODY = "intro\n\n# One\n\na\n\n## Deeper\n\nb\n\n# Two\n\nc\n\n## Deeper\n\nd\n"
PIECES = st.lists(st.sampled_from(["\n", "\r\n", "\r", "a", "word ", "x" * 700, "日本", "# h", " "]), max_size=30)


def headed(body):
    return TextLines.from_text(body), parse_outline(body).headings


@given(PIECES, st.integers(1, 400))
def test_all_parts_one_after_the_other_are_the_document(pieces, budget):
    body = "".join(pieces)
    text = TextLines.from_text(body)
    assert "".join(text.lines) == body
    assert all(len(line) <= LONGEST for line in text.lines)
    told, at = [], 1
    while at is not None:
        found = select_lines(text, at, len(text.lines), budget) if body else select_lines(text, 1, 1, budget)
        assert found.end >= found.start or not body
        assert found.end == found.start or estimate_tokens(found.text) <= budget + len(text.lines)
        told.append(found.text)
        at = found.next
    assert "".join(told) == body


def test_a_range_of_lines_is_as_it_was_asked_for():
    text = TextLines.from_text(BODY)
    found = select_lines(text, 3, 5, 1_000)
    assert (found.text, found.start, found.end, found.next, found.total) == ("# One\n\na\n", 3, 5, None, 17)
    assert select_lines(text, 16, 99, 1_000).end == 17
    for start, end in ((18, 20), (5, 4)):
        with pytest.raises(InvalidArgument):
            select_lines(text, start, end, 1_000)


def test_an_empty_document_has_no_lines():
    found = select_lines(TextLines.from_text(""), 1, 1, 100)
    assert (found.text, found.start, found.end, found.next, found.total) == ("", 1, 0, None, 0)


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        pytest.param("One", "# One\n\na\n\n## Deeper\n\nb\n\n", id="with what is below it"),
        pytest.param("  one ", "# One\n\na\n\n## Deeper\n\nb\n\n", id="letter case and blanks aside"),
        pytest.param("## Deeper", "## Deeper\n\nb\n\n", id="as the outline writes it; the first of several"),
        pytest.param("Two > Deeper", "## Deeper\n\nd\n", id="by its trail"),
        pytest.param("Two > De…", "## Deeper\n\nd\n", id="by the beginning of its trail"),
        pytest.param("Tw…per", "## Deeper\n\nd\n", id="by its trail without the middle"),
        pytest.param("Two", "# Two\n\nc\n\n## Deeper\n\nd\n", id="up to the end"),
    ],
)
def test_a_section_is_found_by_its_heading(wanted, first):
    text, headings = headed(BODY)
    start, end = find_section(text, headings, wanted)
    assert select_lines(text, start, end, 1_000).text == first


def test_an_unknown_heading_is_refused_and_those_near_are_named():
    text, headings = headed(BODY)
    with pytest.raises(NotFound) as refused:
        find_section(text, headings, "Deepest")
    assert refused.value.details["headings"] == ["Deeper"]
    for wanted in ("…", "Two > Done…", "Tw…Done", "…per"):
        with pytest.raises(NotFound):
            find_section(text, headings, wanted)
    with pytest.raises(NotFound) as refused:
        find_section(*headed("no headings"), "One")
    assert refused.value.details["headings"] == []


def test_headings_after_a_very_long_line_are_where_they_stand():
    body = "x" * (3 * LONGEST) + "\n\n# Late\n\nhere\n"
    text, headings = headed(body)
    start, end = find_section(text, headings, "late")
    assert select_lines(text, start, end, 1_000).text == "# Late\n\nhere\n"
    assert list_headings(text, headings) == [(start, "# Late")]


def test_an_outline_that_is_too_long_leaves_out_the_deeper_levels():
    body = "".join(f"# Part {n}\n\n## Chapter {n}\n\n" for n in range(40))
    shown = list_headings(*headed(body))
    assert [heading for _, heading in shown] == [f"# Part {n}" for n in range(40)]
    assert len(list_headings(*headed("".join(f"# Part {n}\n\n" for n in range(99))))) == SHOWN
