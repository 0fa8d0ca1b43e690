"""Check the ZIP archive of an Office file before any library opens it.

Law, tested: an accepted archive unpacks to at most the allowed size, is complete, declares no XML entity in any part,
whatever the part's name, and has the expected type."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from typing import BinaryIO, Final

from syncd.files.conversion.readers.reader_result import ReaderLimits, TooLarge, UnreadableFile

ENTRIES: Final = 10_000  # most parts of one file; a large presentation has 2,000
DENSE: Final = 32 << 20  # unpacked bytes above which a part may be compressed at most `PACKED` times
PACKED: Final = 200
PART: Final = 256 << 20  # most bytes of one XML part; its tree takes many times as much memory
BLOCK: Final = 1 << 20

_ENCODINGS: Final = ("ascii", "utf-16-le", "utf-16-be")
_ENTITY: Final = tuple("<!ENTITY".encode(encoding) for encoding in _ENCODINGS)
_DECLARES: Final = (*_ENTITY, *("<!DOCTYPE".encode(encoding) for encoding in _ENCODINGS))
_BEFORE_MARKUP: Final = b" \t\r\n\0\xef\xbb\xbf\xfe\xff"  # white space, byte order marks, half of a character in UTF-16
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    struct.error,
    NotImplementedError,
    ValueError,
    OSError,
    RuntimeError,
    OverflowError,
)
_NAMES: Final = re.compile(r"[^\x00-\x1f\\]{1,1000}")


def open_archive(file: BinaryIO, folder: str, limits: ReaderLimits) -> zipfile.ZipFile:
    """Open the archive and check that it is complete, not too large, and contains `folder`, which its type requires.

    Raises UnreadableFile or TooLarge."""
    try:
        archive = zipfile.ZipFile(file)
        entries = archive.infolist()
    except _DAMAGE as error:
        raise UnreadableFile("the file is damaged or incomplete: it is not a complete Office file") from error
    if len(entries) > ENTRIES:
        raise TooLarge(f"the file has more than {ENTRIES:,} parts")
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableFile("the file is protected by a password; save it without one")
    total = sum(entry.file_size for entry in entries)
    if total > limits.inflated:
        raise TooLarge(f"the file unpacks to more than {limits.inflated >> 20:,} MiB")
    if any(entry.file_size > DENSE and entry.file_size > PACKED * entry.compress_size for entry in entries):
        raise TooLarge("a part of the file unpacks to suspiciously much")
    if not any(entry.filename.startswith(folder) for entry in entries):
        raise UnreadableFile("the file is a ZIP archive, not an Office file of the type that its name says")
    for entry in entries:
        _test_part(archive, entry)
    return archive


def _test_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Unpack a part once without keeping it, up to its stated size, and compare its checksum.

    Raises UnreadableFile or TooLarge."""
    if not _NAMES.fullmatch(entry.filename):
        raise UnreadableFile("the file is damaged: a part of it has an invalid name")
    named = entry.filename.lower().endswith((".xml", ".rels", ".vml"))
    # The package may refer to XML parts with other names. In those, a document type is allowed, as SVG images have one.
    forbidden = _DECLARES if named else _ENTITY
    markup: bool | None = named or None  # None: undecided, as only bytes that may precede markup were read so far
    tail = b""
    try:
        with archive.open(entry) as part:
            while block := part.read(BLOCK):
                if markup is None and (begun := block.lstrip(_BEFORE_MARKUP)):
                    markup = begun.startswith(b"<")
                if markup and entry.file_size > PART:
                    raise TooLarge(f"a part of the file has more than {PART >> 20} MiB of XML")
                if markup and any(word in tail + block for word in forbidden):
                    raise UnreadableFile("the file declares entities, which no Office file does")
                tail = block[-32:]
    except _DAMAGE as error:
        raise UnreadableFile("the file is damaged or incomplete: a part of it can't be unpacked") from error
