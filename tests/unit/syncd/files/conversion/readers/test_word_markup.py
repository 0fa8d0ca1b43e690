"""A Word file says in the note what it says in Word: no text is lost with its markup, and hidden text stays hidden."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits
from syncd.files.conversion.readers.word_and_excel import read_docx
from syncd.files.conversion.readers.word_markup import rewrite_markup
from tests.support.paths import FILES
from tests.support.sample_files import docx, paragraph

BOUNDS = ReaderLimits(pages=10, inflated=1 << 20, text=100_000)
W14 = "xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml'"
MATH = "<m:oMath xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math'><m:r><m:t>E=mc2</m:t></m:r></m:oMath>"
MC = "xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'"
BOX = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
DRAWING = f"<w:drawing><a:shape xmlns:a='urn:a'>{BOX}</a:shape></w:drawing>"


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWN = (
    f"xmlns:r='{OFFICE}' xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main' "
    "xmlns:wp='http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing' "
    "xmlns:pic='http://schemas.openxmlformats.org/drawingml/2006/picture'"
)
RELATION = (
    "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='{}' "
    f"Type='{OFFICE}/hyperlink' Target='https://e.example' TargetMode='External'/></Relationships>"
)


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def checkbox(value: int) -> str:
    return (
        f"<w:sdt {W14}><w:sdtPr><w14:checkbox><w14:checked w14:val='{value}'/></w14:checkbox></w:sdtPr>"
        f"<w:sdtContent>{run('x')}</w:sdtContent></w:sdt>"
    )


def read_parts(body: str, parts: dict[str, str]) -> MarkdownReading:
    """Read a Word file with parts whose names don't end with `.xml`."""
    file = io.BytesIO(docx(body))
    with zipfile.ZipFile(file, "a") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return read_docx(file, BOUNDS)


def read(body: str, **parts: str) -> MarkdownReading:
    return read_docx(io.BytesIO(docx(f"<w:p>{body}</w:p>", **parts)), BOUNDS)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"{run('Figure ')}<w:fldSimple w:instr=' SEQ Figure '>{run('1')}</w:fldSimple>{run(': Boiler')}", "Figure 1: Boiler"),
        (f"{run('今日は')}<w:r><w:ruby><w:rubyPr/><w:rt>{run('とう')}</w:rt><w:rubyBase>{run('東')}</w:rubyBase></w:ruby></w:r>{run('へ')}", "今日は東へ"),
        (f"{run('a ')}<w:bdo w:val='rtl'>{run('שלום')}</w:bdo><w:dir w:val='rtl'>{run(' עולם')}</w:dir>{run(' b')}", "a שלום עולם b"),
        ("<w:r><w:t>one</w:t><w:cr/><w:t>two</w:t></w:r>", "one\ntwo"),
        (f"{run('Smoker: ')}{checkbox(1)}{run(' yes ')}{checkbox(0)}{run(' no')}", "Smoker: ☒ yes ☐ no"),
        (f"{run('a')}<w:r>{DRAWING}</w:r>", "a\n\nboxed"),
        (f"{run('a')}<w:r><mc:AlternateContent {MC}><mc:Choice>{DRAWING}</mc:Choice><mc:Fallback/></mc:AlternateContent></w:r>", "a\n\nboxed"),
        (f"{run('a')}<w:r><mc:AlternateContent {MC}><mc:Choice>{DRAWING}</mc:Choice><mc:Fallback><w:pict>{BOX}</w:pict></mc:Fallback></mc:AlternateContent></w:r>", "a\n\nboxed"),
    ],
    ids=["a field", "ruby text", "directions", "a line break", "checkboxes", "a text box", "one in a new form", "one in both forms"],
)  # fmt: skip
def test_text_is_not_lost_with_its_markup(body, text):
    assert (read(body).text.strip(), read(body).warnings) == (text, ())


@pytest.mark.parametrize("mark", ["<w:vanish/>", "<w:vanish w:val='1'/>"])
def test_hidden_text_is_left_out(mark):
    assert read(f"{run('shown')}{run(' HIDDEN', mark)}").text.strip() == "shown"


def test_text_that_is_no_longer_hidden_is_read():
    assert read(run("shown", "<w:vanish w:val='0'/>")).text.strip() == "shown"


def test_a_link_whose_field_is_partly_hidden_is_read():
    field = "<w:r><w:rPr><w:vanish/></w:rPr><w:fldChar w:fldCharType='{}'/><w:t>HIDDEN</w:t></w:r>"
    instruction = '<w:r><w:instrText>HYPERLINK "https://e.example"</w:instrText></w:r>'
    body = field.format("begin") + instruction + field.format("separate") + run("link") + field.format("end")
    assert read(body + run(" after")).text.strip() == "[link](https://e.example) after"


@pytest.mark.parametrize(
    "element",
    [
        f"<w:hyperlink r:id='r1'>{run('text')}</w:hyperlink>",
        f"<w:hyperlink r:id='r1' w:anchor='x' >{run('text')}</w:hyperlink>",
        run("text") + "<w:r><w:pict><v:imagedata xmlns:v='urn:schemas-microsoft-com:vml' r:id = 'r1'/></w:pict></w:r>",
        run("text") + "<w:r><w:drawing><wp:inline><wp:docPr id='1'><a:hlinkClick r:id='r1'/></wp:docPr>"
        "<a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip r:embed='r1' r:link='r1'/></pic:blipFill></pic:pic>"
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>",
        run("text")
        + "<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip r:embed='r1' r:link='r3'/>"
        "</pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>",
        f"<w:hyperlink w:tooltip='a > b' r:id='r1'>{run('text')}</w:hyperlink>",
    ],
    ids=[
        "a link",
        "a link with an anchor",
        "a picture",
        "a picture with a link",
        "a picture in two places",
        "a tooltip",
    ],
)
@pytest.mark.parametrize("relations", [None, "<Relationships/>", RELATION.format("r2")])
def test_a_link_or_a_picture_whose_relation_is_missing_does_not_stop_the_reading(element, relations):
    parts = {"word/_rels/document.xml.rels": relations} if relations else {}
    text = read_parts(f"<w:p {DRAWN}>{run('before ')}{element}{run(' after')}</w:p>", parts).text
    assert re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).strip() == "before text after"


def test_the_links_of_a_file_stay_although_one_has_no_relation():
    links = "".join(f"<w:hyperlink r:id='r{number}'>{run(f'link {number}')}</w:hyperlink>" for number in (1, 2))
    reading = read_parts(f"<w:p {DRAWN}>{links}</w:p>", {"word/_rels/document.xml.rels": RELATION.format("r1")})
    assert reading.text.strip() == "[link 1](https://e.example)link 2"


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        (MATH, "equations were left out"),
        ("<w:altChunk/>", "inserted documents were left out"),
        ("<w:r><w:sym w:font='Foo' w:char='F0E9'/></w:r>", "symbols of unknown fonts were left out"),
    ],
)
def test_text_that_cannot_be_read_is_told(body, warning):
    assert read(f"{run('text')}{body}{body}").warnings == (warning,)


def test_a_file_does_not_choose_what_is_read_of_it():
    file = io.BytesIO(docx(paragraph("shown")))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("mammoth/style-map", "p => !")
    assert read_docx(file, BOUNDS).text.strip() == "shown"


@pytest.mark.parametrize("name", ["report.docx", "rich.docx"])
def test_a_file_without_such_markup_stays_as_it_is(name):
    with (FILES / name).open("rb") as file:
        assert rewrite_markup(file) is file
