"""Read PowerPoint files as Markdown: a heading for each slide, and below it the slide's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER

from syncd.files.conversion.readers.clean_text import escape_inline, escape_line, format_table
from syncd.files.conversion.readers.office_archive import open_archive, read_title
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits, TooLarge

_WEB: Final = re.compile(r"(?:https?://|mailto:)[^\s()<>]{1,2000}")
DEEPEST: Final = 50  # groups in groups
_FURNITURE: Final = frozenset(
    {PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER}
)
_TITLES: Final = frozenset({PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE})


def read_pptx(file: BinaryIO, limits: ReaderLimits) -> MarkdownReading:
    """A presentation: visible slides in their order, with tables and notes; no pictures."""
    with open_archive(file, "ppt/", limits) as archive:
        named = read_title(archive)
    file.seek(0)
    try:
        slides = [slide for slide in pptx.Presentation(file).slides if slide.element.get("show") != "0"]
        text = [_format_slide(slide, number) for number, slide in enumerate(slides[: limits.pages], 1)]
    except RecursionError as error:
        raise TooLarge("the presentation is nested too deeply") from error
    return MarkdownReading("\n\n".join(text), title=named, pages=len(slides), cut=len(slides) > limits.pages)


def _format_slide(slide: Any, number: int) -> str:
    """One slide: its title (or number) as a heading, its shapes as they lie upon each other, the speaker's notes."""
    shapes = list(_visible_shapes(slide.shapes))
    heads = [shape for shape in shapes if _placeholder_type(shape) in _TITLES and shape.has_text_frame]
    name = " ".join(" ".join(shape.text_frame.text.split()) for shape in heads).strip() or f"Slide {number}"
    blocks = [f"## {escape_inline(name)}", *(_format_shape(shape) for shape in shapes if shape not in heads)]
    notes = slide.notes_slide.notes_placeholder if slide.has_notes_slide else None
    if notes is not None and (notes_text := _format_paragraphs(notes, listed=False)):
        blocks += ["### Notes", notes_text]
    return "\n\n".join(block for block in blocks if block)


def _visible_shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:
    """The shapes that are seen, those in groups included."""
    if depth > DEEPEST:
        raise TooLarge("the presentation is nested too deeply")
    for shape in shapes:
        if shape.element.xpath("./*[1]/p:cNvPr[@hidden='1' or @hidden='true']"):
            continue
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _visible_shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _placeholder_type(shape: Any) -> Any:
    return shape.placeholder_format.type if shape.is_placeholder else None


def _format_shape(shape: Any) -> str:
    if getattr(shape, "has_table", False):
        return format_table([[cell.text for cell in row.cells] for row in shape.table.rows])
    if not shape.has_text_frame or _placeholder_type(shape) in _FURNITURE:
        return ""
    return _format_paragraphs(
        shape, listed=shape.is_placeholder and _placeholder_type(shape) != PP_PLACEHOLDER.SUBTITLE
    )


def _format_paragraphs(shape: Any, *, listed: bool) -> str:
    """The paragraphs of a shape; with `listed` those that don't say otherwise are items of a list."""
    lines: list[str] = []
    item = False
    for paragraph in shape.element.xpath("./p:txBody/a:p"):
        text = "".join(_format_runs(paragraph, shape.part.rels)).strip()
        if not text:
            continue
        marks = {mark.tag.rpartition("}")[2] for mark in paragraph.xpath("./a:pPr/*")}
        level = int((paragraph.xpath("./a:pPr/@lvl") or ["0"])[0])
        was, item = item, bool(marks & {"buChar", "buAutoNum"}) or (listed and "buNone" not in marks)
        lines += [""] if lines and not (was and item) else []
        mark = "1. " if "buAutoNum" in marks else "- "
        lines.append(f"{'    ' * min(level, 8)}{mark}{text}" if item else escape_line(text))
    return "\n".join(lines)


def _format_runs(paragraph: Any, relations: Any) -> Iterator[str]:
    """The text of a paragraph, its links to the web as links."""
    for part in paragraph.xpath("./a:r | ./a:br | ./a:fld"):
        text = " " if part.tag.endswith("}br") else "".join(part.xpath("./a:t/text()"))
        links = part.xpath("./a:rPr/a:hlinkClick/@r:id")
        target = relations[links[0]] if links and links[0] in relations else None
        address = target.target_ref if target is not None and target.is_external else ""
        yield f"[{text}]({address})" if text.strip() and _WEB.fullmatch(address) else text
