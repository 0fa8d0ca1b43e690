"""Under which path agents know a note of their workspace.

It is the file's own, but for the number that a capture's file gets when its name is in use: the note that has the name
may be one that agents must not know of, so the number is left out.

Law: the addresses of a workspace depend on its own notes alone, and each names one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from index.model import Record
from syncd.capture import file_name

_NUMBERED = re.compile(r"(.*) \d+", re.DOTALL)
_TOLD_APART = re.compile(r"(.*) \([0-9a-f]{8}\)", re.DOTALL)


def stem(path: str) -> str:
    """`path` without the ending that every note has."""
    return path[:-3]


def bare(path: str) -> str:
    """What all paths have in common that can share an address: the stem without a number."""
    whole = stem(path)
    numbered = _NUMBERED.fullmatch(whole)
    return numbered[1] if numbered else whole


def meant(address: str) -> frozenset[str]:
    """The bare forms that a note of this address can have."""
    whole = stem(address)
    told = _TOLD_APART.fullmatch(whole)
    return frozenset(bare(f"{one}.md") for one in ([whole, told[1]] if told else [whole]))


def addresses(records: Iterable[Record], root: str) -> dict[str, Record]:
    """The notes by address; `records` must hold all of the workspace that are `bare` alike. `root` is its folder, with "/".

    Of several notes with one title in one folder the oldest has the plain address, the others add a part of their id."""
    found: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: (record.created_at, record.id)):
        plain = _plain(record, root)
        found[plain if plain not in found else f"{stem(plain)} ({record.id[:8]}).md"] = record
    return found


def _plain(record: Record, root: str) -> str:
    path = record.path.removeprefix(root)
    folder, slash, name = path.rpartition("/")
    titled = file_name(record.title)
    numbered = _NUMBERED.fullmatch(stem(name))
    if titled and numbered and numbered[1] == titled != stem(name):
        return f"{folder}{slash}{titled}{path[-3:]}"
    return path
