"""Read PowerPoint files as Markdown: a heading for each slide, and below it the slide's text.

A presentation is an archive of XML parts that refer to each other by relations (ECMA-376, parts 1 and 2). `open_archive`
has refused every entity before a part is parsed. Elements are found in any namespace (`{*}`), because the standard defines
two."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO, Final
from xml.etree.ElementTree import Element, ParseError, fromstring
from zipfile import ZipFile

from syncd.files.conversion.readers.clean_text import escape_inline, escape_start, format_table
from syncd.files.conversion.readers.office_archive import open_archive
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge, UnreadableFile

_WEB: Final = re.compile(r"(?:https?://|mailto:)[^\s()<>]{1,2000}")
_BRACKET: Final = re.compile(r"(\\.)|[\[\]\\]")  # or, in a group, what is escaped already
_LEVEL: Final = re.compile(r"[0-8]")
DEEPEST: Final = 50  # most levels of nested groups
_SHAPES: Final = frozenset({"sp", "grpSp", "graphicFrame"})  # shapes that may contain text
_FURNITURE: Final = frozenset({"dt", "ftr", "sldNum", "hdr"})
_EXTRAS: Final = ("diagramData", "notesSlide")  # relations to parts that a slide can be read without
_TITLES: Final = frozenset({"title", "ctrTitle"})
_TRUE: Final = ("1", "true")
_FALSE: Final = ("0", "false")


def read_pptx(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """Read a presentation: visible slides in order, with tables, diagrams and notes; no pictures."""
    text: list[str] = []
    pages, hidden, has_equations, lacks_parts = 0, 0, False, False
    with open_archive(file, "ppt/", limits) as archive:
        for slide in _slides(archive):
            if slide.root.get("show") in _FALSE:
                hidden += 1
                continue
            pages += 1
            if pages <= limits.pages:
                text.append(_format_slide(archive, slide, pages))
                has_equations = has_equations or slide.root.find(".//{*}oMath") is not None
                lacks_parts = lacks_parts or any(
                    part not in archive.NameToInfo for kind in _EXTRAS for part in slide.targets(kind)
                )
    warnings = ["one hidden slide was left out" if hidden == 1 else f"{hidden:,} hidden slides were left out"]
    warnings = warnings * (hidden > 0) + ["equations were left out"] * has_equations
    warnings += ["notes or diagrams that the file lacks were left out"] * lacks_parts
    return MarkdownReading("\n\n".join(text), pages=pages, cut=pages > limits.pages, warnings=tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Relation:
    """Describes what a part refers to by an id: another part, or an address."""

    kind: str  # the last part of its type
    target: str
    is_external: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Holds one part of the package and its relations."""

    root: Element
    relations: Mapping[str, _Relation]

    def targets(self, kind: str) -> list[str]:
        """Return the names of the parts to which the relations of a kind lead."""
        return [link.target for link in self.relations.values() if link.kind == kind and not link.is_external]


def _slides(archive: ZipFile) -> Iterator[_Part]:
    package = _read_relations(archive, "")
    main = next((link.target for link in package.values() if link.kind == "officeDocument"), "ppt/presentation.xml")
    presentation = _read_part(archive, main)
    for listed in presentation.root.findall("{*}sldIdLst/{*}sldId"):
        relation = presentation.relations.get(_relation_id(listed))
        if relation is None:
            raise UnreadableFile("the file is damaged: a slide of it is missing")
        yield _read_part(archive, relation.target)


def _format_slide(archive: ZipFile, slide: _Part, number: int) -> str:
    """Format one slide: its title (or number) as a heading, its shapes from back to front, the speaker's notes."""
    shapes = list(_visible_shapes(_shape_tree(slide)))
    heads = [shape for shape in shapes if _name(shape) == "sp" and _placeholder_type(shape) in _TITLES]
    name = " ".join(" ".join(_plain_text(shape).split()) for shape in heads).strip() or f"Slide {number}"
    blocks = [f"## {escape_inline(name)}"]
    blocks += [_format_shape(shape, slide) for shape in shapes if shape not in heads]
    diagrams, speaker_notes = (
        [_read_part(archive, name) for name in slide.targets(kind) if name in archive.NameToInfo] for kind in _EXTRAS
    )
    blocks += map(_format_diagram, diagrams)
    for notes in speaker_notes[:1]:
        bodies = (shape for shape in _shape_tree(notes) if _placeholder_type(shape) == "body")
        if (body := next(bodies, None)) is not None and (text := _format_paragraphs(body, notes, listed=False)):
            blocks += ["### Notes", text]
    return "\n\n".join(block for block in blocks if block)


def _shape_tree(part: _Part) -> list[Element]:
    return part.root.findall("{*}cSld/{*}spTree/*")


def _visible_shapes(shapes: list[Element], depth: int = 0) -> Iterator[Element]:
    """Yield the visible shapes, including those in groups. Raises TooLarge if groups are nested too deeply."""
    if depth > DEEPEST:
        raise TooLarge("the presentation is nested too deeply")
    for shape in shapes:
        if _name(shape) == "AlternateContent":  # the first form of a shape that PowerPoint knows, and older forms
            yield from _visible_shapes(list(shape[0]) if len(shape) else [], depth + 1)
        named = _properties(shape).find("{*}cNvPr")
        if _name(shape) not in _SHAPES or (named is not None and named.get("hidden") in _TRUE):
            continue
        if _name(shape) == "grpSp":
            yield from _visible_shapes(list(shape), depth + 1)
        else:
            yield shape


def _properties(shape: Element) -> Element:
    """Return the element with a shape's properties: its first child."""
    return next(iter(shape), shape)


def _placeholder_type(shape: Element) -> str | None:
    """Return the type of a placeholder; None for a shape that is not a placeholder."""
    holder = _properties(shape).find("{*}nvPr/{*}ph")
    return None if holder is None else holder.get("type", "obj")


def _format_shape(shape: Element, slide: _Part) -> str:
    if _name(shape) == "graphicFrame":
        return format_table(_table_rows(shape))
    kind = _placeholder_type(shape)
    if kind in _FURNITURE:
        return ""
    return _format_paragraphs(shape, slide, listed=kind not in (None, "subTitle"))


def _format_diagram(diagram: _Part) -> str:
    """Format the texts of a diagram (SmartArt) as a list."""
    paragraphs = diagram.root.findall("{*}ptLst/{*}pt/{*}t/{*}p")
    texts = (escape_start(_format_runs(paragraph, diagram).strip()) for paragraph in paragraphs)
    return "\n".join(f"- {text}" for text in texts if text)


def _table_rows(frame: Element) -> list[list[str]]:
    table = frame.find("{*}graphic/{*}graphicData/{*}tbl")
    rows = [] if table is None else table.findall("{*}tr")
    return [[_plain_text(cell) for cell in row.findall("{*}tc")] for row in rows]


def _plain_text(shape: Element) -> str:
    """Return the text of a shape or a cell, one line for each paragraph."""
    return "\n".join(
        "".join("\v" if _name(run) == "br" else _run_text(run) for run in _runs(paragraph))
        for paragraph in _paragraphs(shape)
    )


def _format_paragraphs(shape: Element, part: _Part, *, listed: bool) -> str:
    """Format the paragraphs of a shape; with `listed`, paragraphs are list items unless they state otherwise."""
    lines: list[str] = []
    item = False
    for paragraph in _paragraphs(shape):
        text = escape_start(_format_runs(paragraph, part).strip())
        if not text:
            continue
        paragraph_properties = paragraph.findall("{*}pPr")
        marks = {_name(mark) for properties in paragraph_properties for mark in properties}
        levels = [level for properties in paragraph_properties if _LEVEL.fullmatch(level := properties.get("lvl", ""))]
        was, item = item, bool(marks & {"buChar", "buAutoNum"}) or (listed and "buNone" not in marks)
        lines += [""] if lines and not (was and item) else []
        mark = "1. " if "buAutoNum" in marks else "- "
        lines.append(f"{'    ' * int(levels[0] if levels else 0)}{mark}{text}" if item else text)
    return "\n".join(lines)


def _format_runs(paragraph: Element, part: _Part) -> str:
    """Format the runs of a paragraph on one line: their text, as a link where it links to the web."""
    runs = [
        (_web_address(run, part), text)
        for run in _runs(paragraph)
        # An empty run would separate the characters of a markup.
        if escape_inline(text := " " if _name(run) == "br" else _run_text(run))
    ]
    pieces: list[str] = []
    for address, texts in groupby(runs, itemgetter(0)):
        text = escape_inline("".join(text for _, text in texts))
        if address and text.strip():
            # With the link, the first two would embed a file or name a note, and a backslash would take its bracket away.
            if pieces and pieces[-1].endswith(("!", "[", "\\")):
                pieces[-1] = f"{pieces[-1][:-1]}\\{pieces[-1][-1]}"
            text = _BRACKET.sub(lambda mark: mark[1] or f"\\{mark[0]}", text)
            text = f"[{text}]({address})"
        pieces.append(text)
    return "".join(pieces)


def _web_address(run: Element, part: _Part) -> str:
    """Return the address on the web to which a run links; "" if it links to none."""
    link = run.find("{*}rPr/{*}hlinkClick")
    target = None if link is None else part.relations.get(_relation_id(link))
    return target.target if target is not None and target.is_external and _WEB.fullmatch(target.target) else ""


def _paragraphs(shape: Element) -> list[Element]:
    return shape.findall("{*}txBody/{*}p")


def _runs(paragraph: Element) -> list[Element]:
    return [run for run in paragraph if _name(run) in ("r", "br", "fld")]


def _run_text(run: Element) -> str:
    return "".join(text.text or "" for text in run.findall("{*}t"))


def _read_part(archive: ZipFile, name: str) -> _Part:
    return _Part(_parse(archive, name), _read_relations(archive, name))


def _read_relations(archive: ZipFile, name: str) -> dict[str, _Relation]:
    """Return the relations of the part with this name, by id; for "", those of the package."""
    folder, base = posixpath.split(name)
    place = posixpath.join(folder, "_rels", f"{base}.rels")
    relations: dict[str, _Relation] = {}
    if place not in archive.NameToInfo:
        return relations
    for element in _parse(archive, place).findall("{*}Relationship"):
        is_external, target = element.get("TargetMode") == "External", element.get("Target", "")
        if not is_external:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        relations[element.get("Id", "")] = _Relation(element.get("Type", "").rpartition("/")[2], target, is_external)
    return relations


def _parse(archive: ZipFile, name: str) -> Element:
    """Parse a part, and return its root. Raises UnreadableFile if the part is missing or not XML."""
    try:
        return fromstring(archive.read(name))  # noqa: S314 - `open_archive` has refused entities
    except (ParseError, ValueError, LookupError) as error:  # LookupError: no such part, or no such encoding
        raise UnreadableFile("the file is damaged: a part of it is missing or is not XML") from error


def _name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _relation_id(element: Element) -> str:
    """Return the id of the relation that an element names; this attribute has a namespace, and other ids have none."""
    return next((value for name, value in element.items() if name.endswith("/relationships}id")), "")
