"""Real files of every type, made by the usual programs (tests/files/make.sh), say as Markdown what they say on paper."""

from __future__ import annotations

import functools
import re
import threading
from pathlib import Path

import pytest

from index.errors import MemexError
from syncd.documents.file_types import HEAD, media_type_of
from syncd.files.conversion import converter_child
from syncd.files.conversion.converter import Limits, Unreadable, convert
from syncd.files.conversion.readers.reader_result import MarkdownReading
from tests.support.paths import FILES

TABLE = (
    "| Station | Height (m) | Hour |\n| --- | --- | --- |\n| Helgoland | 2.4 | 06:15 |\n| Cuxhaven | 3.0 | 07:40 |\n"
)


def kind_of(path: Path, name: str = "") -> str:
    with path.open("rb") as file:
        return media_type_of(name or path.name, file.read(HEAD))


@functools.cache
def read(path: Path, name: str = "") -> MarkdownReading:
    """What the converter's child process answers, read in this process: a child takes a third of a second."""
    kind, limits = kind_of(path, name), Limits()
    asked = {"media_type": kind, "pages": limits.pages, "inflated": limits.inflated, "text": limits.text}
    with path.open("rb") as file:
        answer = converter_child._read_file(converter_child._load_reader(kind), file, asked)
    return MarkdownReading(**answer | {"warnings": tuple(answer["warnings"])})


def reason(path: Path, name: str = "") -> str:
    with pytest.raises(MemexError) as error:
        convert(Limits(), path, kind_of(path, name), threading.Event())
    assert error.value.code == "INVALID_ARGUMENT"
    assert not error.value.retryable
    return error.value.message


def shape(text: str) -> list[str]:
    """The headings of a text."""
    return re.findall(r"^#+ .*", text, re.MULTILINE)


REPORT = [
    "# Bericht über die Gezeiten",
    "## 日本語の章",
    "## פרק בעברית",
    "## Measurements",
    "### What was done",
    "## Conclusion",
]


@pytest.mark.parametrize("name", ["report.docx", "report-writer.docx", "report.html"])
def test_a_report_keeps_headings_tables_lists_links_and_code(name):
    found = read(FILES / name)
    assert not found.cut
    text = found.text
    assert list(dict.fromkeys(shape(text))) == REPORT
    assert TABLE in text
    assert "[der Seite des Hafens](https://example.org/hafen?id=7)" in text
    assert "- first the gauge was read\n- then the *wind* was **measured**\n    - a nested remark on gusts\n" in text
    assert "1. Open the gate\n2. Count the boats\n" in text
    assert "```\ntide = mean + amplitude * cos(phase)\n```" in text
    assert "潮の満ち引きは月の引力によって起こる。" in text
    assert "הגאות והשפל נגרמים על ידי כוח המשיכה של הירח." in text


@pytest.mark.parametrize("name", ["report.docx", "report-writer.docx"])
def test_a_footnote_of_a_word_file_is_one_of_markdown(name):
    text = read(FILES / name).text
    assert "Three stations were compared.[^1]\n" in text
    assert text.endswith("[^1]: A footnote explains the method of harmonic analysis.\n")


def test_a_pdf_of_a_word_processor_keeps_headings_tables_and_lists():
    found = read(FILES / "report.pdf")
    assert (found.pages, found.warnings) == (1, ())
    text = found.text
    assert [line.lstrip("# ") for line in shape(text)][1:] == [line.lstrip("# ") for line in REPORT]
    assert len(shape(text)[1].split()[0]) < len(shape(text)[2].split()[0])
    for row in ("Helgoland", "Cuxhaven", "Bremerhaven"):
        assert re.search(rf"^\| {row} \|", text, re.MULTILINE)
    assert "- first the gauge was read\n- then the wind was measured\n" in text
    assert "1. Open the gate\n2. Count the boats\n" in text
    assert "schwimmt oben. Mehr steht auf der Seite des Hafens." in text  # a line that was wrapped
    assert "הגאות והשפל נגרמים על ידי כוח המשיכה של הירח" in text


def test_a_pdf_in_two_columns_is_read_column_by_column():
    found = read(FILES / "bulletin.pdf")
    assert shape(found.text) == ["# Harbour bulletin", "## 1. Left column topic", "## 2. Right column topic"]
    left, right = found.text.split("## 2. Right column topic")
    assert "make nonsense of both of them.\n\nMore of the first column" in left
    assert "has long since left for another paragraph" in left  # a word that was divided
    assert "Sails are mended in winter. The sailmaker works alone" in right
    assert "| Rope | Length |\n| --- | --- |\n| Hawser | 120 |\n| Painter | 8 |" in right


def test_a_pdf_that_a_browser_printed_keeps_its_order():
    found = read(FILES / "browser.pdf")
    assert shape(found.text) == ["# Harbour", "## Table of tides", "## Steps"]
    assert "| Place | Height |\n| --- | --- |\n| Quay \\| north | 2.40 |" in found.text
    assert "日本語の段落です。" in found.text
    assert "שלום עולם, זה משפט." in found.text
    assert "\\# not a heading" in found.text


def test_slides_printed_to_pdf_have_a_heading_each():
    found = read(FILES / "talk.pdf")
    assert found.pages == 4
    assert shape(found.text) == ["# Lantern keeping", "# Why lanterns", "# Costs of a year", "# שלט המגדלור"]
    assert "| Pier | 120 | 96.50 |" in found.text


def test_a_scan_without_a_text_layer_is_an_empty_text_and_a_warning():
    found = read(FILES / "scan.pdf")
    assert (found.text, found.pages) == ("", 1)
    assert "Memex does not read text in pictures" in found.warnings[0]


@pytest.mark.parametrize("name", ["talk.pptx", "talk-impress.pptx"])
def test_slides_have_a_heading_each_with_lists_tables_and_notes(name):
    found = read(FILES / name)
    assert found.pages == 4
    assert shape(found.text) == [
        "## Lantern keeping", "## Why lanterns", "### Notes", "## Costs of a year", "## שלט המגדלור"
    ]  # fmt: skip
    assert "- A lantern costs [little oil](https://example.org/oil)\n    - rapeseed, not whale\n" in found.text
    assert "Remember to dim the hall. 暗くする。" in found.text
    assert (
        "| Lamp | Litres | Price |\n| --- | --- | --- |\n| Pier | 120 | 96.50 |\n| Tower | 310 | 249.00 |" in found.text
    )
    assert "Öl, Docht und ein ruhiger Abend." in found.text


@pytest.mark.parametrize("name", ["sheet.xlsx", "gnumeric.xlsx"])
def test_sheets_have_a_heading_and_a_table_each(name):
    found = read(FILES / name)
    assert found.text.startswith(
        "## Ships & cargo\n\nCargo of the autumn\n\n| Ship | Arrived | Tonnes | Price | Note |\n| --- | --- | --- | --- | --- |\n"
        "| Möwe | 2026-10-03 | 120 | 96.5 | barley \\| oats |\n| 光丸 | 2026-10-09 | 310 | 0.1 | two lines |\n| Sum |  | 430 |"
    )
    assert "## Crew\n\n| Name | Aboard |\n| --- | --- |\n| שרה |" in found.text


def test_a_hidden_sheet_is_left_out_and_told():
    found = read(FILES / "sheet.xlsx")
    assert "nobody should read this" not in found.text
    assert found.warnings == ("one hidden sheet was left out",)


def test_rows_parted_by_semicolons_are_a_table():
    found = read(FILES / "semicolons.csv")
    assert found.text.startswith("Cargo of the autumn\n\n| Ship | Arrived | Tonnes | Price | Note |\n| --- |")
    assert "| Möwe | 2026-10-03 | 120 | 96.5 | barley \\| oats |" in found.text


def test_a_page_loses_what_is_not_seen_and_what_would_act():
    found = read(FILES / "src" / "page.html")
    assert shape(found.text) == ["# Harbour", "## Table of tides", "## Steps"]
    for gone in ("hidden", "evil", "javascript", "base64", "About the site", "Send it", "no script", "![", "<b>"):
        assert gone not in found.text.replace("\\<b>", ""), gone
    assert "A paragraph with **bold**, © and [a link](https://example.org/a?b=1&c=2), a trap and" in found.text
    assert "[A lighthouse](https://tracker.example/pixel.png)" in found.text
    assert "\\# not a heading" in found.text
    assert "\\#tag" in found.text
    assert "\\[\\[wiki\\]\\]" in found.text
    assert "and 2 \\< 3" in found.text
    assert "| Quay \\| north | 2.40 |" in found.text
    assert "1. Moor\n    - bow line\n2. Rest" in found.text
    assert "```python\nx = [1]  # not a tag\n```" in found.text


def test_a_page_is_read_in_the_encoding_that_it_states():
    found = read(FILES / "page-latin1.html")
    assert found.text == "# Fahrpläne\n\nDie Fähre fährt täglich über die Förde.\n"


@pytest.mark.parametrize("name", ["latin1.txt", "utf16.txt", "utf16-unmarked.txt"])
def test_text_is_read_in_any_encoding(name):
    assert read(FILES / name).text == (FILES / "src" / "letter.txt").read_text()


def test_japanese_text_of_an_old_encoding_is_read():
    found = read(FILES / "shift-jis.txt")
    assert found.text == (FILES / "src" / "brief.txt").read_text()
    assert found.warnings == ("the encoding was guessed: cp932",)


def test_markdown_stays_as_it_is():
    given = (FILES / "src" / "report.md").read_text()
    found = read(FILES / "src" / "report.md")
    assert found.text == given


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("locked.pdf", "protected by a password"),
        ("locked.docx", "protected by a password"),
        ("old.doc", "old Office format"),
    ],
)
def test_a_file_that_is_locked_or_of_old_says_so(name, words):
    assert words in reason(FILES / name)


@pytest.mark.parametrize(
    ("name", "called", "words"),
    [
        pytest.param("report.docx", "report.pdf", None, id="a Word file that is called PDF is read as what it is"),
        pytest.param("report.docx", "report.xlsx", None, id="and so is one that is called Excel"),
        pytest.param("old.doc", "report.docx", "old Office format", id="an old Word file"),
        pytest.param("report.html", "report.pdf", "does not match its name", id="a page that is called PDF"),
        pytest.param("report.pdf", "report", None, id="a PDF without a name"),
    ],
)
def test_a_type_is_told_by_content_first(name, called, words):
    if words:
        assert words in reason(FILES / name, name=called)
    else:
        assert "Measurements" in read(FILES / name, name=called).text


@pytest.mark.parametrize(
    ("name", "part"),
    [("report.docx", 0.98), ("talk.pptx", 0.5), ("sheet.xlsx", 0.02), ("report.pdf", 0.98), ("report.pdf", 0.5)],
)
def test_a_file_that_was_cut_off_is_refused(tmp_path, name, part):
    cut = tmp_path / name
    raw = (FILES / name).read_bytes()
    cut.write_bytes(raw[: int(len(raw) * part)])
    assert "damaged" in reason(cut)


def test_text_that_begins_like_properties_stays_text(tmp_path):
    from syncd.notes.front_matter import compose, read_properties, split

    (tmp_path / "rule.txt").write_text("---\nid: mine\npromote: true\n---\nbody\n")
    found = read(tmp_path / "rule.txt")
    assert found.text == "---\nid: mine\npromote: true\n---\nbody\n"
    front, body = split(compose({"id": "ours", "type": "file"}, found.text))
    assert read_properties(front) == {"id": "ours", "type": "file"}
    assert body == found.text


@pytest.mark.parametrize(
    "name", ["report.pdf", "report.docx", "talk.pptx", "sheet.xlsx", "report.html", "semicolons.csv"]
)
def test_the_child_reads_the_same(name):
    path = FILES / name
    assert convert(Limits(), path, kind_of(path), threading.Event()) == read(path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "none.pdf").touch()
    assert reason(tmp_path / "none.pdf") == "the file is empty"


def test_unreadable_is_an_invalid_argument():
    assert Unreadable("x").code == "INVALID_ARGUMENT"
