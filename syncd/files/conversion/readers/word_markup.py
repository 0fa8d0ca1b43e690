"""Rewrite the markup of a Word file for `mammoth`, which leaves out the text of some elements and shows hidden text.

It also refuses a file in which a link or a picture names a relation that is missing.
`open_archive` has refused every entity before a part is parsed. Law, tested: a file without such markup stays as it is."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Mapping
from typing import BinaryIO, Final
from xml.etree.ElementTree import Element, fromstring, tostring
from zipfile import ZIP_DEFLATED, ZipFile

_NAMESPACES: Final = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
# Elements that mammoth ignores with their text, and elements that it reads as these must be read.
_READ_AS: Final = {
    "fldSimple": "smartTag", "ruby": "smartTag", "rubyBase": "smartTag", "bdo": "smartTag", "dir": "smartTag",
    "cr": "br", "ptab": "tab",
}  # fmt: skip
_REWRITTEN: Final = re.compile(rb"<[\w.-]*:?(?:fldSimple|ruby|bdo|dir|cr|ptab|txbxContent|vanish)[\s/>]")
# The attributes by which a link or a picture names a relation of its part, and their beginning in the text of the part.
_REFERENCES: Final = {
    f"{{{namespace}}}{name}"
    for namespace in (
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
        "http://purl.oclc.org/ooxml/officeDocument/relationships",
    )
    for name in ("id", "embed", "link")
}
_REFERENCE: Final = re.compile(
    rb"""<[\w.-]*:?(?:hyperlink|hlinkClick|blip|imagedata)\s[^<]*?:(?:id|embed|link)\s*=\s*["']([^"']*)"""
)
_ALTERNATIVES: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_OFF: Final = ("0", "false", "off")


def rewrite_markup(file: BinaryIO) -> BinaryIO:
    """Return the Word file, or a copy in memory that `mammoth` reads as Word shows the file. Raises ParseError."""
    with ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.NameToInfo if name.endswith((".xml", ".rels"))}
    rewritten = {}
    for name, part in parts.items():
        named = {reference.decode("utf-8", "replace") for reference in _REFERENCE.findall(part)}
        ids = _relation_ids(parts, name) if named else set[str]()
        lacks_some = bool(named - ids)
        if lacks_some or _REWRITTEN.search(part):
            rewritten[name] = _rewrite_part(part, ids if lacks_some else None)
    file.seek(0)
    if not rewritten:
        return file
    copy = io.BytesIO()
    with ZipFile(copy, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, part in (parts | rewritten).items():
            archive.writestr(name, part)
    copy.seek(0)
    return copy


def _relation_ids(parts: Mapping[str, bytes], name: str) -> set[str]:
    """Return the ids of the relations of a part."""
    folder, base = posixpath.split(name)
    relations = parts.get(posixpath.join(folder, "_rels", f"{base}.rels"))
    return {relation.get("Id", "") for relation in fromstring(relations)} if relations else set()  # noqa: S314 - as below


def _rewrite_part(part: bytes, ids: set[str] | None) -> bytes:
    """Rewrite a part; `ids`: those of its relations if it names others too."""
    root = fromstring(part)  # noqa: S314 - `open_archive` has refused entities
    if ids is not None:
        for element in root.iter():
            for name in [name for name in element.attrib if name in _REFERENCES and element.attrib[name] not in ids]:
                del element.attrib[name]
    for namespace in (f"{{{name}}}" for name in _NAMESPACES):
        for run in root.iter(f"{namespace}r"):
            marks = run.findall(f"{namespace}rPr/{namespace}vanish")
            if any(mark.get(f"{namespace}val") not in _OFF for mark in marks):  # fields span several runs
                run[:] = [child for child in run if child.tag in (f"{namespace}fldChar", f"{namespace}instrText")]
        for name, other in _READ_AS.items():
            for element in list(root.iter(f"{namespace}{name}")):
                element.tag = f"{namespace}{other}"
        _convert_text_boxes(root, namespace)
    rewritten: bytes = tostring(root, "utf-8")
    return rewritten


def _convert_text_boxes(root: Element, namespace: str) -> None:
    """Turn text boxes that have no older form into this form, the only one that mammoth reads."""
    box = f"{namespace}txbxContent"
    for drawing in list(root.iter(f"{namespace}drawing")):
        if boxes := list(drawing.iter(box)):
            drawing.tag, drawing[:] = f"{namespace}pict", boxes
    for content in list(root.iter(f"{_ALTERNATIVES}AlternateContent")):
        boxed = [form for form in content if next(form.iter(box), None) is not None]
        if boxed and boxed[-1].tag != f"{_ALTERNATIVES}Fallback":
            boxed[0].tag = f"{_ALTERNATIVES}Fallback"
            content[:] = boxed[:1]
