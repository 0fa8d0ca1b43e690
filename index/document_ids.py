"""Decide the id of each document, a pure function of the files, so that a rebuilt index gives equal ids; digest bytes.

Law: the ids do not depend on the order in which files were seen."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")  # \Z: "$" would let a newline pass
_PATHS = uuid.UUID("5b0c9d7e-52f4-4f5c-8d4a-6d1f0e8c7a31").bytes


def path_id(path: str) -> str:
    """Return the key of `path`, which is also the id of a note without a claimed id, or whose claimed id another note owns.

    It equals `uuid.uuid5` (version 5), computed in a fifth of the time, because a search needs many keys."""
    digits = hashlib.sha1(_PATHS + path.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def choose_owner(paths: Iterable[str]) -> str:
    """Choose the path that owns an id which several notes of a workspace claim: the shortest, so that "A.md" beats "A copy.md"."""
    return min(paths, key=lambda path: (len(path), path))


def sha256(raw: bytes | None) -> str:
    """Return the SHA-256 of bytes in hex, such as of a file's; "" = no file."""
    return "" if raw is None else hashlib.sha256(raw).hexdigest()
