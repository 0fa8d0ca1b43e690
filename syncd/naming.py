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
_ADDED = re.compile(r"\d+|\([0-9a-f-]{8,36}\)")


def bare(path: str) -> str:
    """What all paths and addresses have in common that may mean one note: no ending, no numbers, no parts of ids."""
    whole = path[:-3]
    while True:
        head, blank, last = whole.rpartition(" ")
        if not blank or not _ADDED.fullmatch(last):
            return whole
        whole = head


def addresses(records: Iterable[Record], root: str) -> dict[str, Record]:
    """The notes by address; `records` must hold all of the workspace that are `bare` alike. `root` is its folder, with "/".

    Of several notes with one title in one folder the oldest has the plain address, the others add a part of their id."""
    found: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: (record.created_at, record.id)):
        plain = _plain(record, root)
        names = (plain, *(f"{plain[:-3]} ({part}){plain[-3:]}" for part in (record.id[:8], record.id)))
        found[next((name for name in names if name not in found), plain)] = record
    return found


def _plain(record: Record, root: str) -> str:
    path = record.path.removeprefix(root)
    folder, slash, name = path.rpartition("/")
    titled = file_name(record.title)
    numbered = _NUMBERED.fullmatch(name[:-3])
    if titled and numbered and numbered[1] == titled:
        return f"{folder}{slash}{titled}{path[-3:]}"
    return path
