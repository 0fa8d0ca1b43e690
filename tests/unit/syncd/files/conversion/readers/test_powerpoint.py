"""syncd/files/conversion/readers/powerpoint.py: slides, tables and notes of real files; what is damaged or hostile is refused."""

from __future__ import annotations

import io
import zipfile

import pytest

from syncd.files.conversion.readers.powerpoint import DEEPEST, read_pptx
from syncd.files.conversion.readers.reader_result import ReaderLimits, TooLarge, UnreadableFile
from tests.support.paths import FILES

LIMITS = ReaderLimits(pages=100, inflated=64 << 20, text=1_000_000)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
RICH = """\
## Moved to the front

## Harbour talk #1

\\# no heading

1\\. no item

*not* bold

## Points

- first
    - deeper
1. numbered

plain prose

- [oil](https://example.org/oil) and a program
- two lines

### Notes

Dim the hall.

Then begin. 暗く

## Table & groups

| Lamp | Price \\| day |
| --- | --- |
| Pier | two lines |
| merged |  |

in a group

שלט in two groups

- dot

## Slide 5

a slide without a title"""
TALK = """\
## Lantern keeping

Ada Beispiel

## Why lanterns

- Ships come home at night
- A lantern costs [little oil](https://example.org/oil)
    - rapeseed, not whale

### Notes

Remember to dim the hall. 暗くする。

## Costs of a year

| Lamp | Litres | Price |
| --- | --- | --- |
| Pier | 120 | 96.50 |
| Tower | 310 | 249.00 |

## שלט המגדלור

Öl, Docht und ein ruhiger Abend."""


@pytest.mark.parametrize(
    ("name", "text", "pages"),
    [
        ("rich.pptx", RICH, 5),
        ("talk.pptx", TALK, 4),
        ("talk-impress.pptx", TALK, 4),
    ],
)
def test_a_presentation_is_read_in_full_without_what_is_hidden(name, text, pages):
    with (FILES / name).open("rb") as file:
        reading = read_pptx(file, LIMITS)
    assert (reading.text, reading.pages, reading.cut) == (text, pages, False)
    assert reading.warnings == (("one hidden slide was left out",) if name == "rich.pptx" else ())


def test_slides_beyond_the_limit_are_counted_and_left_out():
    with (FILES / "rich.pptx").open("rb") as file:
        reading = read_pptx(file, ReaderLimits(pages=2, inflated=64 << 20, text=1_000_000))
    assert (reading.pages, reading.cut) == (5, True)
    assert reading.text == RICH[: RICH.index("\n\n## Points")]


def relations(*targets: str, office: str = OFFICE) -> str:
    held = "".join(
        f'<Relationship Id="r{number}" Type="{office}/{kind}" Target="{target}"/>'
        for number, (kind, _, target) in enumerate((target.partition(":") for target in targets), 1)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{held}</Relationships>'


def deck(shapes: str = "", *, office: str = OFFICE, **parts: str) -> io.BytesIO:
    """A presentation of one slide with these shapes; `parts` replace its own ("" = left out)."""
    names = f'xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="{office}"'
    held = {
        "package": ("_rels/.rels", relations("officeDocument:ppt/presentation.xml", office=office)),
        "presentation": (
            "ppt/presentation.xml",
            f'<p:presentation {names}><p:sldIdLst><p:sldId id="7" r:id="r1"/></p:sldIdLst></p:presentation>',
        ),
        "listed": ("ppt/_rels/presentation.xml.rels", relations("slide:/ppt/slides/one.xml", office=office)),
        "slide": ("ppt/slides/one.xml", f"<p:sld {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"),
        "noted": ("ppt/slides/_rels/one.xml.rels", relations("notesSlide:../notes/one.xml", office=office)),
        "notes": ("ppt/notes/one.xml", f"<p:notes {names}/>"),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, (name, text) in held.items():
            if parts.get(key, text):
                archive.writestr(name, parts.get(key, text))
    out.seek(0)
    return out


def shape(text: str, properties: str = "") -> str:
    return f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


@pytest.mark.parametrize("office", [OFFICE, STRICT])
def test_both_namespaces_of_the_standard_are_read(office):
    assert read_pptx(deck(shape("words"), office=office), LIMITS).text == "## Slide 1\n\nwords"


def test_a_shape_in_two_forms_is_read_in_the_newer_one():
    forms = "<p:AlternateContent><p:Choice>{}</p:Choice><p:Fallback>{}</p:Fallback></p:AlternateContent>"
    equation = "<a:r><a:t>The law: </a:t></a:r><m><oMath><r><t>E=mc2</t></r></oMath></m>"
    newer = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p>{equation}</a:p></p:txBody></p:sp>"
    reading = read_pptx(deck(forms.format(newer, shape("older")) + "<p:AlternateContent/>"), LIMITS)
    assert (reading.text, reading.warnings) == ("## Slide 1\n\nThe law:", ("equations were left out",))


def test_the_texts_of_a_diagram_are_a_list():
    point = "<d:pt><d:t><a:p><a:r><a:t>{}</a:t></a:r></a:p></d:t></d:pt>"
    diagram = f'<d:dataModel xmlns:d="urn:d" xmlns:a="urn:a"><d:ptLst><d:pt/>{point.format("Plan")}{point.format("- #do")}</d:ptLst></d:dataModel>'
    noted = relations("notesSlide:../notes/one.xml", "diagramData:../notes/two.xml")
    file = deck(shape("words"), noted=noted)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("ppt/notes/two.xml", diagram)
    assert read_pptx(file, LIMITS).text == "## Slide 1\n\nwords\n\n- Plan\n- \\- \\#do"


def test_hidden_slides_are_told():
    hidden = '<p:sld xmlns:p="urn:p" show="0"/>'
    reading = read_pptx(deck(slide=hidden), LIMITS)
    assert (reading.text, reading.pages, reading.warnings) == ("", 0, ("one hidden slide was left out",))


def test_a_level_that_no_slide_has_is_none():
    shapes = "".join(shape("x", f'<a:pPr lvl="{level}"><a:buChar/></a:pPr>') for level in ("9", "-1", "x", "8"))
    assert read_pptx(deck(shapes), LIMITS).text == "## Slide 1\n\n- x\n\n- x\n\n- x\n\n" + " " * 32 + "- x"


BULLET = "<a:pPr><a:buChar/></a:pPr>"


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("&lt;img src=x&gt; ![[Private]]", "\\<img src=x> \\!\\[[Private]]"),
        ("#tag %%hidden%%", "\\#tag \\%%hidden\\%%"),
        ("# head", "\\# head"),
        ("- nested", "\\- nested"),
        ("1. nested", "1\\. nested"),
        ("one\n# two\u2028# three", "one # two # three"),
        ("&lt;</a:t></a:r><a:r><a:t>b&gt;", "\\<b>"),
        ("&lt;\u200bb&gt; [\u00ad[x]]", "\\<b> \\[[x]]"),
        ("a*b*_c_ C#", "a*b*_c_ C#"),
    ],
)
def test_the_text_of_an_item_makes_no_markdown(text, item):
    assert read_pptx(deck(shape(text, BULLET)), LIMITS).text == f"## Slide 1\n\n- {item}"


@pytest.mark.parametrize(
    ("before", "text", "item"),
    [
        ("!", "pic", "\\![pic](https://example.org/a)"),
        ("[", "x", "\\[[x](https://example.org/a)"),
        ("!</a:t></a:r><a:r><a:t>\u200b", "pic", "\\![pic](https://example.org/a)"),
        ("C:\\", "x", "C:\\\\[x](https://example.org/a)"),
        ("a\\\\", "x", "a\\\\\\\\[x](https://example.org/a)"),
        ("a\\!", "x", "a\\\\\\![x](https://example.org/a)"),
        ("see ", "a] b [c", "see [a\\] b \\[c](https://example.org/a)"),
        ("", "a\\](x) \\", "[a\\\\\\](x) \\\\](https://example.org/a)"),
        ("", "[[Private]]", "[\\[\\[Private\\]\\]](https://example.org/a)"),
        ("", "&lt;b&gt;</a:t></a:r><a:r><a:t> rest", "[\\<b>](https://example.org/a) rest"),
    ],
)
def test_the_text_of_a_link_stays_in_the_link(before, text, item):
    link = f'<a:r><a:rPr><a:hlinkClick r:id="r2"/></a:rPr><a:t>{text}</a:t></a:r>'
    runs = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p>{BULLET}<a:r><a:t>{before}</a:t></a:r>{link}</a:p></p:txBody></p:sp>"
    assert read_pptx(deck(runs, noted=noted_link()), LIMITS).text == f"## Slide 1\n\n- {item}"


@pytest.mark.parametrize("empty", ["", "\u200b", "\u00ad\ufeff"])
@pytest.mark.parametrize(
    ("before", "behind", "item"),
    [
        ("&lt;", "img src=x onerror=alert(1)&gt;", "\\<img src=x onerror=alert(1)>"),
        ("!", "[pic](https://example.org/p)", "\\![pic](https://example.org/p)"),
        ("50 %", "%a%%", "50 \\%%a\\%%"),
        ("a", "#tag", "a#tag"),
        ("a #", "tag", "a \\#tag"),
        ("[", "[Private]]", "\\[[Private]]"),
    ],
)
def test_a_link_without_visible_text_separates_no_markup(before, behind, item, empty):
    link = f'</a:t></a:r><a:r><a:rPr><a:hlinkClick r:id="r2"/></a:rPr><a:t>{empty}</a:t></a:r><a:r><a:t>'
    runs = shape(f"{before}{link}{behind}", BULLET)
    assert read_pptx(deck(runs, noted=noted_link()), LIMITS).text == f"## Slide 1\n\n- {item}"


def noted_link():
    noted = relations("notesSlide:../notes/one.xml", "hyperlink:https://example.org/a")
    return noted.replace('Target="https', 'TargetMode="External" Target="https')


@pytest.mark.parametrize("kind", ["notesSlide", "diagramData"])
def test_a_slide_without_its_part_with_notes_or_a_diagram_is_read(kind):
    noted = relations(f"{kind}:../notes/one.xml", f"{kind}:../notes/two.xml")
    reading = read_pptx(deck(shape("words"), noted=noted, notes=""), LIMITS)
    assert reading.text == "## Slide 1\n\nwords"
    assert reading.warnings == ("notes or diagrams that the file lacks were left out",)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (part, text)
        for part in ("presentation", "listed", "slide", "notes")
        for text in ("", "<a>", "no markup", '<?xml version="1.0" encoding="none"?><a/>')
        if part != "notes" or text
    ],
)
def test_a_part_that_is_missing_or_damaged_is_refused(part, text):
    with pytest.raises(UnreadableFile, match="damaged"):
        read_pptx(deck(shape("x"), **{part: text}), LIMITS)


def test_a_package_without_relations_is_looked_into_where_a_presentation_lies():
    assert read_pptx(deck(shape("x"), package="", noted=""), LIMITS).pages == 1


def test_groups_within_groups_have_an_end():
    inner = shape("deep")
    for _ in range(DEEPEST):
        inner = f"<p:grpSp><p:nvGrpSpPr/>{inner}</p:grpSp>"
    assert "deep" in read_pptx(deck(inner), LIMITS).text
    with pytest.raises(TooLarge, match="nested too deeply"):
        read_pptx(deck(f"<p:grpSp><p:nvGrpSpPr/>{inner}</p:grpSp>"), LIMITS)


@pytest.mark.slow
def test_elements_of_any_depth_end_no_process():
    depth = 300_000
    assert "seen" in read_pptx(deck("<a:x>" * depth + "</a:x>" * depth + shape("seen")), LIMITS).text


def test_no_entity_is_expanded():
    laughs = '<!DOCTYPE d [<!ENTITY a "ha">]>'
    with pytest.raises(UnreadableFile, match="declares entities"):
        read_pptx(deck(slide=f'{laughs}<p:sld xmlns:p="urn:p">&a;</p:sld>'), LIMITS)
