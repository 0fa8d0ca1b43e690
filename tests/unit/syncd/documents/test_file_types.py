"""A type is told by what a file begins with, and only then by its name."""

from __future__ import annotations

import time

import pytest

from index.errors import InvalidArgument
from syncd.documents import file_types
from syncd.documents.file_types import (
    CSV,
    DOCX,
    HEAD,
    HTML,
    JSON,
    KNOWN,
    MARKDOWN,
    PDF,
    PPTX,
    TEXT,
    XLSX,
    media_type_of,
)
from tests.support.paths import FILES


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("report.docx", DOCX), ("talk-impress.pptx", PPTX), ("talk.pptx", PPTX), ("sheet.xlsx", XLSX), ("gnumeric.xlsx", XLSX),
        ("report.pdf", PDF), ("report.html", HTML), ("semicolons.csv", CSV), ("latin1.txt", TEXT), ("utf16.txt", TEXT),
        ("utf16-unmarked.txt", TEXT), ("src/report.md", MARKDOWN), ("src/tides.json", JSON),
    ],
)  # fmt: skip
def test_real_files_are_what_they_are(name, kind):
    head = (FILES / name).read_bytes()[:HEAD]
    assert media_type_of(name, head) == kind
    assert media_type_of(name.upper(), head) == kind
    assert f".{name.rpartition('.')[2]}" in KNOWN


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("report.docx", b"%PDF-1.7", PDF),
        ("report", b"%PDF-1.7", PDF),
        ("report.pdf", b"\r\njunk\n%PDF-1.7", PDF),
        ("notes on %PDF-.md", b"about %PDF-1.7", MARKDOWN),
        ("README", b"plain words", TEXT),
        ("page.txt", b"<!doctype html><html>", HTML),
        ("page", b"\xef\xbb\xbf<html lang='en'>", HTML),
        ("page.md", b"<html> in Markdown", MARKDOWN),
        ("page.txt", b'<?xml version="1.0"?>\n<!-- a --> <!----><!-- > -- -->\n<HTML>', HTML),
        ("page.txt", b"<!-- never closed <html>", TEXT),
        ("wide.csv", "a;b\n".encode("utf-16"), CSV),
        ("a.txt", b"one stray \x00 is no harm", TEXT),
        ("riff.txt", b"RIFF is a word", TEXT),
    ],
)
def test_content_comes_before_the_name(name, head, kind):
    assert media_type_of(name, head) == kind


@pytest.mark.parametrize(
    "head",
    [
        b"<!---->" * 24 + b"x",  # each comment more doubled the time, and forty took hours
        (b"<!---->" * (HEAD // 7))[:HEAD],
        (b"<!--" * HEAD)[:HEAD],
        b"<?xml " + b">" * HEAD,
        b"<?xml>" + b" " * HEAD,
        b"<?xml><!-->" * (HEAD // 11),
        b" " * HEAD,
    ],
)
def test_no_beginning_of_a_file_takes_long(head):
    begun = time.process_time()
    assert media_type_of("a.txt", head) == TEXT
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    ("name", "head", "words"),
    [
        ("a.md", b"", "empty"),
        (
            "a.pdf",
            b"PK\x03\x04" + b"\0" * 26 + b"photo.jpg",
            "is a ZIP archive, which Memex does not read, although its name says PDF",
        ),
        ("a.zip", b"PK\x03\x04" + b"\0" * 26 + b"photo.jpg", "is a ZIP archive, which Memex does not read; supported"),
        ("a.odt", b"PK\x03\x04" + b"\0" * 26 + b"mimetypeapplication/vnd.oasis", "OpenDocument"),
        ("a.pdf", b"plain words", "does not match its name"),
        ("a.docx", b"plain words", "does not match its name"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "is a PNG image"),
        ("a.pdf", b"\xff\xd8\xff\xe0", "is a JPEG image"),
        ("a.txt", b"\x7fELF" + b"\0" * 60, "not text"),
        ("a.exe", b"MZ\x90\x00", "is a program"),
        ("a.rst", b"plain words", "does not read files of this type"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office format"),
        (
            "a.docx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "protected by a password",
        ),
        ("a.bin", b"\0" * 100, "not text"),
        ("a.txt", b"\0" * 100, "bytes that are not text, although its name says text; supported types: Markdown,"),
        (
            "a.docx",
            b"PK\x03\x04" + b"\0" * 100 + b"ppt/xl/",
            "a ZIP archive, which Memex does not read, although its name says Word",
        ),
    ],
)
def test_what_is_not_read_is_named(name, head, words):
    with pytest.raises(InvalidArgument) as error:
        media_type_of(name, head)
    assert words in error.value.message


def test_a_refusal_lists_what_is_read():
    with pytest.raises(InvalidArgument, match=r"Markdown, text, HTML, CSV, JSON, PDF, Word \(\.docx\)"):
        media_type_of("a.gif", b"GIF89a")


def test_every_suffix_has_a_reader():
    from syncd.files.conversion.converter_child import READERS

    assert set(file_types.SUFFIXES.values()) == set(READERS) == set(file_types.NAMED)
