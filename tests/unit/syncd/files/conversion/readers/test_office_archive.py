"""What an Office file may be is decided before any library opens it."""

from __future__ import annotations

import io
import os
import random
import struct
import time
import zipfile

import pytest

from syncd.files.conversion.readers.office_archive import open_archive
from syncd.files.conversion.readers.reader_result import ReaderLimits, TooLarge, UnreadableFile
from tests.support.paths import FILES
from tests.support.sample_files import W, docx, paragraph

BOUNDS = ReaderLimits(pages=10, inflated=20 << 20, text=1_000_000)


def look(data: bytes, folder: str = "word/") -> zipfile.ZipFile:
    return open_archive(io.BytesIO(data), folder, BOUNDS)


@pytest.mark.parametrize(
    ("name", "folder"), [("report.docx", "word/"), ("talk-impress.pptx", "ppt/"), ("gnumeric.xlsx", "xl/")]
)
def test_a_real_file_passes(name, folder):
    with look((FILES / name).read_bytes(), folder) as archive:
        assert any(part.startswith(folder) for part in archive.namelist())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(lambda: docx(word__media=b"\0" * (60 << 20)), "unpacks to more than 20 MiB", id="one part"),
        pytest.param(
            lambda: docx(**{f"word__{i}": os.urandom(3 << 20) for i in range(8)}), "unpacks to more than", id="a sum"
        ),
        pytest.param(
            lambda: docx(**{f"word__p{i}": "" for i in range(10_001)}), "more than 10,000 parts", id="many parts"
        ),
    ],
)
def test_a_file_that_unpacks_to_too_much_is_refused_unopened(data, words):
    with pytest.raises(TooLarge, match=words):
        look(data())


def test_a_part_that_shrank_more_than_text_does_is_refused():
    with pytest.raises(TooLarge, match="suspiciously"):
        open_archive(io.BytesIO(docx(word__media=b"\0" * (33 << 20))), "word/", ReaderLimits(10, 1 << 30, 1_000))


def test_a_part_that_is_larger_than_it_states_is_refused():
    data = docx(word__media=b"\0" * (10 << 20))
    real = struct.pack("<I", 10 << 20)
    assert data.count(real) == 2  # before the part, and in the list of parts
    with pytest.raises(UnreadableFile, match="damaged"):
        look(data.replace(real, struct.pack("<I", 10)))


def test_another_kind_of_archive_is_refused():
    with pytest.raises(UnreadableFile, match="ZIP archive, not an Office file"):
        look(docx(paragraph("x")), "xl/")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("lead", [0, (1 << 20) - 14], ids=["at the start", "across two reads"])
def test_entities_are_refused_in_any_encoding_and_place(encoding, lead):
    text = f'<?xml version="1.0"?><!--{"x" * lead}--><!DOCTYPE d [<!ENTITY a "b">]><w:document {W}>&a;</w:document>'
    with pytest.raises(UnreadableFile, match="declares entities"):
        look(docx(word__document=text.encode(encoding)))


def renamed(data: bytes, old: str, new: str) -> bytes:
    """The package with one part under another name, to which it refers."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
        for entry in before.infolist():
            text = before.read(entry).replace(old.encode(), new.encode())
            after.writestr(entry.filename.replace(old, new), text)
    return out.getvalue()


@pytest.mark.parametrize("name", ["document.dat", "document", "document.png", "document.xml.bin", "DOCUMENT.JPEG"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("lead", ["", " \n", "\n" * (1 << 20)], ids=["at once", "after a blank", "after a whole block"])
def test_entities_are_refused_in_a_part_of_any_name(name, encoding, lead):
    text = f'{lead}<!DOCTYPE d [<!ENTITY a "b">]><w:document {W}>&a;</w:document>'
    data = renamed(docx(word__document=text.encode(encoding)), "document.xml", name)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert f"word/{name}" in archive.namelist()
    with pytest.raises(UnreadableFile, match="declares entities"):
        look(data)


@pytest.mark.parametrize(
    "picture",
    [
        b'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd"><svg/>',
        b"\x89PNG\r\n\x1a\n <!ENTITY a 'b'>",
        b"",
        b" " * 100,
    ],
    ids=["an image in SVG", "bytes that are no markup", "an empty part", "blanks"],
)
def test_a_part_that_declares_no_entity_passes(picture):
    data = renamed(docx(paragraph("x"), word__image=picture), "image.xml", "image.svg")
    look(data).close()


def test_a_package_of_many_laughs_ends_at_once_whatever_its_part_is_called(tmp_path):
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!DOCTYPE d [<!ENTITY l0 "ha">{laughs}]><w:document {W}><w:body>&l9;</w:body></w:document>'
    data = renamed(docx(word__document=text), "document.xml", "document.dat")
    begun = time.process_time()
    with pytest.raises(UnreadableFile, match="declares entities"):
        look(data)
    assert time.process_time() - begun < 1


def test_a_locked_archive_is_named():
    data = bytearray(docx(paragraph("x")))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        places = [entry.header_offset for entry in archive.infolist()]
    for place in places:
        data[place + 6] |= 1
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 4)
    with pytest.raises(UnreadableFile, match="protected by a password"):
        look(bytes(data))


def test_an_archive_in_an_archive_is_not_opened():
    with look(docx(word__inner=docx(word__media=b"\0" * (15 << 20)))) as archive:
        assert "word/inner.xml" in archive.namelist()  # it counts as the bytes that it is


def test_damage_anywhere_is_refused_or_harmless():
    data = (FILES / "report.docx").read_bytes()
    dice = random.Random(7)
    for _ in range(300):
        broken = bytearray(data)
        broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        try:
            look(bytes(broken)).close()
        except (UnreadableFile, TooLarge) as error:
            assert str(error)
