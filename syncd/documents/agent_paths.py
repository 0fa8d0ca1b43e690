"""Decide the path under which agents know a note of their workspace.

The address is the path of the file, without the number that a capture's file gets when its name is taken, because the
other note with this name may be one that agents must not know of.

Law: the addresses of a workspace depend on its own notes alone, and each address names one note."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any

from index.model import Record, given_name
from syncd.documents.entity_lines import Page, parse_page
from syncd.documents.file_names import node_name
from syncd.vault.path_rules import file_name

_NUMBERED = re.compile(r"(.*) \d+(\.\w{1,10})?", re.DOTALL)
_ENDING = re.compile(r"(.+)(\.\w{1,10})", re.DOTALL)
_IN_BRACKETS = re.compile(r" \(([A-Za-z0-9_-]{1,64})\)(?=[ .])")  # as `document_ids.ID`


def texts_in_brackets(paths: Iterable[str]) -> set[str]:
    """Return the texts in brackets in these paths or addresses that may be ids or parts of ids."""
    return {text for path in paths for text in _IN_BRACKETS.findall(path)}


def bare_path(path: str, ids: Collection[str]) -> str:
    """Return the common part of all paths and addresses that may mean one note: no ".md", numbers or parts of ids.

    `ids` contains those of the `texts_in_brackets` that are ids, or parts of ids, of notes of the workspace."""
    whole = _strip_additions(path[:-3], ids)
    named = _ENDING.fullmatch(whole)
    return _strip_additions(named[1], ids) + named[2] if named else whole  # a stored file's number precedes its suffix


def _strip_additions(whole: str, ids: Collection[str], *, numbers: bool = True) -> str:
    while True:
        head, blank, last = whole.rpartition(" ")
        is_id = last[:1] == "(" and last[-1:] == ")" and last[1:-1] in ids
        if not blank or not (is_id or (numbers and last.isdecimal())):
            return whole
        whole = head


def base_of(address: str, ids: Collection[str]) -> str:
    """Return the common part of an address and all that may be mistaken for it: no ".md", no parts of ids.

    `ids` is as for `bare_path`."""
    return _strip_additions(address[:-3], ids, numbers=False)


def possible_stems(base: str) -> tuple[str, ...]:
    """Return possible beginnings, without numbers, of the names of files whose address has this `base`."""
    stem, dot, ending = base.rpartition(".")
    return (base, stem) if dot and "/" not in ending else (base,)


def assign_addresses(records: Iterable[Record], root: str) -> dict[str, Record]:
    """Return the notes by address. `records` must contain all notes of a workspace with one `base`.

    `root` is the workspace's folder, with "/" at its end. Of several notes with one title in one folder, the oldest gets
    the plain address, and the others add a part of their id or the whole id."""
    by_address: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: (record.created_at, record.id)):
        plain = strip_number(record.path.removeprefix(root), name_of(record), record.type)
        names = (plain, *(f"{plain[:-3]} ({part}){plain[-3:]}" for part in (record.id[:8], record.id)))
        by_address[next((name for name in names if name not in by_address), plain)] = record
    return by_address


def find_by_form(
    address: str,
    paths: Callable[[], list[str]],
    known_ids: Callable[[set[str]], set[str]],
    assign: Callable[[Iterable[str]], dict[str, Record]],
) -> Record | None:
    """Return the note whose address differs from this one only in its Unicode form, among all `paths` of a workspace."""
    if address.isascii():
        return None
    candidates = paths()
    ids = known_ids(texts_in_brackets([address, *candidates]))
    wanted = _compose(bare_path(address, ids))
    if not wanted.isascii():
        candidates = [path for path in candidates if not path.isascii()]  # an ASCII path has no such address
    by_address = assign(path for path in candidates if _compose(bare_path(path, ids)) == wanted)
    return {_compose(other): record for other, record in by_address.items()}.get(_compose(address))


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def name_of(record: Record) -> str:
    """Return the text that a note's file was named after: its title, or the original name of its stored file."""
    return given_name(record.title, record.metadata) if record.type == "file" else record.title


def visible_metadata(record: Record) -> dict[str, Any]:
    """Return the metadata of a note that agents see.

    They don't see the original name of a stored file: the note states it only if something has that name already, perhaps
    in another workspace or in the vault."""
    hidden = "file_name" if record.type == "file" else None
    return {key: value for key, value in record.metadata.items() if key != hidden}


@lru_cache(maxsize=1_024)  # one answer asks three times for each of its notes
def strip_number(path: str, title: str, type: str) -> str:
    """Return the path of a note without the number that its file got because the name was taken.

    The file was named after `title`. If the note has another title by now, any number at the end of its name counts as
    added."""
    folder, slash, name = path.rpartition("/")
    if name[:-3] == title:
        return path
    titled = _wanted_stem(title, type)
    plain = _strip_number(name[:-3], titled)
    retitled = type not in ("entity", "file") and titled != plain and title != name[:-3]
    if retitled and (numbered := _NUMBERED.fullmatch(plain)):
        plain = numbered[1] + (numbered[2] or "")
    return f"{folder}{slash}{plain}{path[-3:]}"


@lru_cache(maxsize=1_024)  # a workspace may have thousands of notes with one title
def _wanted_stem(title: str, type: str) -> str:
    """Return the name that a file gets from the title of its note, unless the name is taken."""
    return node_name(title) if type == "entity" else file_name(title)


def find_numbers(page: Page) -> list[tuple[int, int]]:
    """Return the start and end of each such number in the relations' links in the body of a node's note."""
    starts = [0, *accumulate(map(len, page.lines))]
    ranges = []
    for at, field in page.fields:
        for target in field.targets:
            link = page.lines[at][target.start + 2 : target.end - 2]
            stem, bar, shown = link.partition("|")
            plain = _strip_number(stem, node_name(shown)) if bar else stem
            # `[[Ada 2|Ada]]` becomes `[[Ada]]`, as if the file had its wanted name.
            cut = (0, len(stem) + 1) if bar and plain == shown else (len(plain), len(stem))
            begin = starts[at] + target.start + 2
            ranges += [(begin + cut[0], begin + cut[1])] if cut[0] < cut[1] else []
    return ranges


def strip_link_numbers(body: str, page: Page | None = None) -> str:
    """Return the body of a node's note as agents read it: links to other nodes without added numbers.

    `page` is the parsed body if the caller has it."""
    parts, at = [], 0
    for start, end in find_numbers(page or parse_page(body)):
        parts.append(body[at:start])
        at = end
    return "".join([*parts, body[at:]])


def _strip_number(stem: str, titled: str) -> str:
    """Return a file's name without the number that it got because another note has the name `titled`."""
    numbered = _NUMBERED.fullmatch(stem)
    return titled if titled and numbered and numbered[1] + (numbered[2] or "") == titled else stem
