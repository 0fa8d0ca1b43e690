"""Damage the bytes of a SQLite file as a failing disk does: here and there, so that SQLite still takes it for one of its files."""

from __future__ import annotations

import random
import re
from pathlib import Path


def flip_bytes(path: Path, seed: int, count: int = 20) -> None:
    """Change `count` bytes of the file, chosen by the seed."""
    choice, raw = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(count):
        raw[choice.randrange(len(raw))] ^= choice.randrange(1, 256)
    path.write_bytes(raw)


def damage_schema(path: Path) -> None:
    """Damage the names and texts of the tables, which SQLite quotes in its message, with bytes that are not UTF-8."""
    raw = path.read_bytes()
    broken = re.sub(
        rb"table(\w{3,20})\1(.)CREATE TABLE",
        lambda match: b"table\xff" + match[1][1:] + match[1] + match[2] + b"XREATE TABLE",
        raw,
        flags=re.DOTALL | re.IGNORECASE,
    )
    assert broken != raw
    path.write_bytes(broken)
