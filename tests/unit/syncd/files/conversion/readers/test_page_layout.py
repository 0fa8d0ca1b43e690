"""What stands where on a page tells headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.files.conversion.readers.page_layout import Line, compose


def at(text: str, top: float, left: float = 72, *, size: float = 10, bold: bool = False, right: float = 0) -> Line:
    """A line whose cells stand between tabs, 100 points apart."""
    right = right or left + 5 * len(text)
    cells = tuple((left + 100 * i, left + 100 * i + 5 * len(cell), cell) for i, cell in enumerate(text.split("\t")))
    return Line(text.replace("\t", " "), left, right, top, top - size, size, bold=bold, cells=cells)


def down(*texts: str, size: float = 10, gap: float = 2) -> list[Line]:
    return [at(text, 800 - i * (size + gap), size=size) for i, text in enumerate(texts)]


FULL = "These words fill the line up to its very end and then go on"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        pytest.param(down(FULL, "in the next one."), f"{FULL} in the next one.", id="a paragraph of two lines"),
        pytest.param(down(FULL + ".", "Next", gap=9), f"{FULL}.\n\nNext", id="white space between them"),
        pytest.param(down(FULL, "it ends.", "Another begins here and goes on for long"), f"{FULL} it ends.\n\nAnother begins here and goes on for long", id="a short line that ends"),
        pytest.param([at(FULL, 800), at("it ends in the middle of this line here.", 788), at("Another one", 776, left=90)], f"{FULL} it ends in the middle of this line here.\n\nAnother one", id="an indent"),
        pytest.param(down("• one", "• two that goes on over the", "end of its line", "3. three"), "- one\n- two that goes on over the end of its line\n3. three", id="a list"),
        pytest.param(down("これは長い行の最初の部分であり、ここでは行が終わらずに", "続きます。"), "これは長い行の最初の部分であり、ここでは行が終わらずに続きます。", id="a script without blanks"),
        pytest.param(down(f"{FULL} for an\ufffeother"), f"{FULL} for another", id="a divided word"),
        pytest.param(down("Nord\ufffeSüd, and -\ufffe5"), "Nord-Süd, and --5", id="a hyphen that stays"),
        pytest.param(down("1 Introduction. . . . . . . . . . . 7", "2 More . . . . . . . . . 9"), "1 Introduction … 7\n\n2 More … 9", id="dots that lead"),
        pytest.param(down("# no heading"), "\\# no heading", id="a line that looks like Markdown"),
    ],
)  # fmt: skip
def test_lines_become_blocks(lines, text):
    assert compose([lines]) == text


def test_larger_and_bold_lines_are_headings_by_their_size():
    page = [
        at("Title", 800, size=20), at("Chapter 1", 770, size=14), at(FULL, 750), at("said so.", 738),
        at("Bold words", 720, bold=True), at(FULL, 708), at("Chapter 2", 680, size=14.2), at(FULL, 660),
    ]  # fmt: skip
    assert compose([page]) == (
        f"# Title\n\n## Chapter 1\n\n{FULL} said so.\n\n### Bold words\n\n{FULL}\n\n## Chapter 2\n\n{FULL}"
    )


def test_cells_that_stand_below_each_other_are_a_table():
    assert compose([down("Ship\tFlag", "Aurora\tNorge", "Hikari\tNippon")]) == (
        "| Ship | Flag |\n| --- | --- |\n| Aurora | Norge |\n| Hikari | Nippon |"
    )


def test_cells_that_are_missing_stay_empty():
    page = [*down("A\tB\tC"), at("1", 788), at("2", 788, left=272)]
    row = Line("1 2", 72, 277, 788, 778, 10, bold=False, cells=((72, 77, "1"), (272, 277, "2")))
    assert compose([[page[0], row]]) == "| A | B | C |\n| --- | --- | --- |\n| 1 |  | 2 |"


def test_long_cells_are_columns_of_text_and_no_table():
    wide = f"{FULL} and on\t{FULL} and on"
    assert "|" not in compose([down(wide, wide, wide)])


def test_running_heads_and_numbers_are_left_out_once_known():
    pages = [
        [
            at(f"Annual report, page {n + 3} of 9", 820),
            at(f"{'abcdef'[n]} says more than that.", 600),
            at(str(n + 3), 40),
        ]
        for n in range(6)
    ]
    assert compose(pages).split("\n\n") == [
        "Annual report, page 3 of 9",
        *(f"{n} says more than that." for n in "abcdef"),
    ]


def test_a_sum_at_the_foot_of_each_page_is_no_running_foot():
    sums = (17, 5, 93, 40)
    text = compose([[at(f"Body {n} says.", 600), at(f"Sum: {one} litres.", 60)] for n, one in enumerate(sums)])
    assert all(f"Sum: {one} litres." in text for one in sums)


@given(
    st.lists(
        st.lists(
            st.builds(
                lambda words, top, left, size, bold: at("\t".join(words), top, left, size=size, bold=bold),
                st.lists(st.sampled_from(("tide", "harbour wall", "rope and chain", "lantern")), min_size=1, max_size=3),
                st.integers(0, 800), st.integers(0, 500), st.sampled_from((8, 10, 14)), st.booleans(),
            ),
            max_size=5,
        ),
        max_size=2,
    )
)  # fmt: skip
def test_no_word_is_lost(pages):
    given_words = sorted(re.findall(r"[a-z]{4,9}", " ".join(line.text for page in pages for line in page)))
    assert sorted(re.findall(r"[a-z]{4,9}", compose(pages))) == given_words


@pytest.mark.parametrize(
    "text", ["." * 100_000, ". " * 50_000, "\ufffe" * 100_000, "1" * 100_000, "a) " * 40_000, "-" * 100_000]
)
def test_nothing_takes_long(text):
    begun = time.process_time()
    compose([[at(text, 800)]])
    assert time.process_time() - begun < 1


ROWS = 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda: [at("abc", -12 * n) for n in range(2 * ROWS)], id="short lines"),
        pytest.param(lambda: [at("abc", -12 * n, left=n / 7) for n in range(ROWS)], id="each line further right"),
        pytest.param(
            lambda: [at("abc\tdef", -12 * n, left=n % 97) for n in range(ROWS)], id="cells that are in no columns"
        ),
        pytest.param(
            lambda: [at("abc\tdef", -12 * n, left=200 * n) for n in range(ROWS)], id="each row in other columns"
        ),
        pytest.param(lambda: [at("abc\t" * 1_000, -12 * n) for n in range(20)], id="many columns"),
        pytest.param(lambda: [at(FULL.replace(" ", "\t"), -12 * n) for n in range(1_000)], id="a long table"),
    ],
)
def test_a_full_page_takes_no_longer_than_its_lines_are_many(draw):
    page = draw()
    begun = time.process_time()
    compose([page])
    assert time.process_time() - begun < 5


def test_lines_above_a_table_are_not_part_of_it():
    row = Line(
        "Long title 2026", 72, 300, 812, 802, 10, bold=False, cells=((72, 180, "Long title"), (272, 300, "2026"))
    )
    table = down("Ship\tFlag", "Aurora\tNorge", "Hikari\tNippon")
    assert compose([[row, *table]]) == (
        "Long title 2026\n\n| Ship | Flag |\n| --- | --- |\n| Aurora | Norge |\n| Hikari | Nippon |"
    )
