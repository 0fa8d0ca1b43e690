"""Footnotes of a Word file, and values of a sheet as a person would read them, in a time that grows with the sheet and not faster."""

from __future__ import annotations

import datetime as dt
import io
import time
import zipfile

import pytest

from syncd.files.conversion.readers import word_and_excel
from syncd.files.conversion.readers.reader_result import ReaderLimits
from syncd.files.conversion.readers.word_and_excel import (
    _NOTE,
    _format_value,
    _split_into_blocks,
    read_docx,
    read_xlsx,
)
from tests.support.sample_files import W, docx, paragraph, xlsx

LIMITS = ReaderLimits(pages=10, inflated=1 << 20, text=100_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"), (0.1, "0.1"), (1e20, "1e+20"), (-2.5, "-2.5"), (float("nan"), "nan"), (float("inf"), "inf"), (True, "TRUE"), ("a\n b", "a b"), ("", ""),
        (dt.date(2026, 10, 3), "2026-10-03"), (dt.datetime.fromisoformat("2026-10-03"), "2026-10-03"), (dt.datetime.fromisoformat("2026-10-03T04:05"), "2026-10-03 04:05:00"),
        (dt.time(4, 5), "04:05:00"), (dt.timedelta(hours=30), "1 day, 6:00:00"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_it_is_read(value, text):
    assert _format_value(value) == text


def test_blocks_are_parted_by_empty_rows_and_lose_empty_sides():
    rows = [["", "", ""], ["", "A", ""], ["", "", ""], ["", "B", "C"], ["", "", "D"]]
    assert list(_split_into_blocks(iter(rows))) == [[["A"]], [["B", "C"], ["", "D"]]]


def test_many_rows_take_no_longer_than_they_are_many():
    begun = time.process_time()
    list(_split_into_blocks(iter([["x", 1.0, "y"]] * 50_000)))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("note", "text"),
    [
        (paragraph("First"), "First"),
        (paragraph("First") + paragraph("Second"), "First\n\n    Second"),
        ("<w:p><w:r><w:t>First</w:t><w:br/><w:t>Second</w:t></w:r></w:p>", "First\n    Second"),
    ],
    ids=["one line", "two paragraphs", "a line break"],
)
def test_each_footnote_has_its_text(note, text):
    numbers = range(1, 12)
    body = "".join(f"<w:p><w:r><w:footnoteReference w:id='{number}'/></w:r></w:p>" for number in numbers)
    notes = "".join(f"<w:footnote w:id='{number}'>{note}</w:footnote>" for number in numbers)
    file = io.BytesIO(docx(body, word__footnotes=f"<w:footnotes {W}>{notes}</w:footnotes>"))
    lines = read_docx(file, LIMITS).text
    assert "".join(f"[^{number}]\n\n" for number in numbers) in lines
    assert "\n".join(f"[^{number}]: {text}" for number in numbers) in lines
    assert "footnote" not in lines


@pytest.mark.parametrize("kind", ["footnote", "endnote"])
def test_a_file_without_its_part_with_notes_is_read_without_them(kind):
    lost = f"<w:p><w:r><w:t>The text.</w:t></w:r><w:r><w:{kind}Reference w:id='2'/></w:r></w:p>"
    reading = read_docx(io.BytesIO(docx(lost + paragraph("The end."))), LIMITS)
    assert reading.text.split() == ["The", "text.", "The", "end."]
    assert reading.warnings == ("footnotes that the file lacks were left out",)


def test_the_notes_that_a_file_has_stay_although_it_lacks_another():
    references = "".join(f"<w:r><w:footnoteReference w:id='{number}'/></w:r>" for number in (1, 2))
    notes = f"<w:footnotes {W}><w:footnote w:id='2'>{paragraph('Second')}</w:footnote></w:footnotes>"
    reading = read_docx(io.BytesIO(docx(f"<w:p>{references}</w:p>", word__footnotes=notes)), LIMITS)
    assert reading.text.strip() == "[^1]\n\n[^1]: Second"
    assert reading.warnings


def test_a_long_item_that_is_no_footnote_takes_no_longer_than_it_is_long():
    begun = time.process_time()
    assert _NOTE.search("1. item\n" + "   more [↑\n\n" * 100_000) is None
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("block", [1 << 20, 150])
@pytest.mark.parametrize(
    "cell",
    ['<c t="e"><v>{}</v></c>', "<c r='A2' s='1' t='e'><f>B1/0</f><v>{}</v></c>", '<c  t="e" r="A2"><v>{}</v></c>'],
)
@pytest.mark.parametrize("error", ["#DIV/0!", "#N/A", "#REF!"])
def test_an_error_is_the_text_of_its_cell(monkeypatch, error, cell, block):
    monkeypatch.setattr(word_and_excel, "BLOCK", block)
    file = io.BytesIO(with_cells(cell.format(error)))
    assert read_xlsx(file, LIMITS).text == f"## One\n\n| Kind | Sum |\n| --- | --- |\n| \\{error} | 5 |"


@pytest.mark.parametrize("name", ["xl/worksheets/sheet1.XML", "xl/worksheets/first"])
def test_a_sheet_beside_an_error_may_have_any_name(name):
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(with_cells('<c t="e"><v>#N/A</v></c>'))) as archive,
        zipfile.ZipFile(out, "w") as changed,
    ):
        for part in archive.namelist():
            text = archive.read(part).decode().replace("worksheets/sheet1.xml", name.removeprefix("xl/"))
            changed.writestr(part.replace("xl/worksheets/sheet1.xml", name), text)
    assert "\\#N/A" in read_xlsx(out, LIMITS).text


def test_a_workbook_without_errors_is_not_copied():
    file = io.BytesIO(with_cells('<c t="str"><v>t="e"</v></c>'))
    assert word_and_excel._show_errors(file) is file


def with_cells(cell: str) -> bytes:
    """A workbook with a head, and this cell before a number."""
    plain, out = xlsx([["Kind", "Sum"], ["CELL", "5"]]), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain)) as archive, zipfile.ZipFile(out, "w") as changed:
        for name in archive.namelist():
            part = archive.read(name).decode()
            changed.writestr(name, part.replace('<c t="inlineStr"><is><t>CELL</t></is></c>', cell))
    return out.getvalue()
