"""Make a PNG of Chromium smaller: one byte for each pixel, with the colours that occur most."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
COLOURS: Final = 256  # of a palette
Bytes = NDArray[np.uint8]


def shrink(picture: bytes) -> bytes:
    """Return a PNG of 8 bits for each channel with at most 256 colours: rare ones become the nearest of the frequent ones."""
    pixels = _read_pixels(picture)
    height, width = pixels.shape[:2]
    packed = (pixels.astype(np.uint32) * np.array([1 << 16, 1 << 8, 1], np.uint32)).sum(2, dtype=np.uint32)
    values, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    kept = np.sort(values[np.argsort(-counts, kind="stable")[:COLOURS]])
    nearest = np.array([_nearest(value, kept) for value in values], np.uint8)
    rows = nearest[places].reshape(height, width)
    data = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()  # each row without a filter
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (b"IHDR", header), (b"PLTE", _channels(kept).astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(data, 9))
    return SIGNATURE + b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))


def _channels(values: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.stack([values >> 16, values >> 8 & 255, values & 255], -1).astype(np.int64)


def _nearest(value: np.uint32, kept: NDArray[np.uint32]) -> int:
    distances = ((_channels(kept) - _channels(np.array([value]))) ** 2).sum(1)
    return int(distances.argmin())


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _read_chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(picture):
        (size,) = struct.unpack_from(">I", picture, place)
        yield picture[place + 4 : place + 8], picture[place + 8 : place + 8 + size]
        place += size + 12


def _read_pixels(picture: bytes) -> Bytes:
    """Return red, green and blue of each pixel. Transparency is dropped: a picture of a page has none."""
    chunks = list(_read_chunks(picture))
    width, height, depth, kind = struct.unpack_from(">IIBB", dict(chunks)[b"IHDR"])
    assert depth == 8
    step = {2: 3, 6: 4}[kind]
    data = zlib.decompress(b"".join(part for name, part in chunks if name == b"IDAT"))
    lines = np.frombuffer(data, np.uint8).reshape(height, 1 + width * step)
    rows = np.zeros((height, width, step), np.uint8)
    above = np.zeros((width, step), np.uint8)
    for number, line in enumerate(lines):
        above = rows[number] = _unfilter(int(line[0]), line[1:].reshape(width, step), above)
    return rows[:, :, :3]


def _unfilter(kind: int, line: Bytes, above: Bytes) -> Bytes:
    """Undo the filter of one row; bytes are numbers modulo 256."""
    match kind:
        case 0:
            return line
        case 1:
            return np.cumsum(line, 0, dtype=np.uint8)
        case 2:
            return line + above
    left, corner = [0] * line.shape[1], [0] * line.shape[1]
    row = []
    for here, up in zip(line.tolist(), above.tolist(), strict=True):
        left = [
            (value + ((a + b) // 2 if kind == 3 else _paeth(a, b, c))) & 255
            for value, a, b, c in zip(here, left, up, corner, strict=True)
        ]
        corner = up
        row.append(left)
    return np.array(row, np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
