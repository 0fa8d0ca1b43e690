"""Choose the file names of captures, entities and stored files, and decide which inbox files Memex imports.

Laws, tested: whatever name an agent gives, the stored name is a base name that every system, every link and every
program of the vault can hold, and never the name of a note; no two candidates for it are equal."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator
from types import MappingProxyType
from typing import Final

from index.graph.vertex import NAMELESS
from index.names import fold
from syncd.documents.file_types import KNOWN, MARKDOWN, SUFFIXES
from syncd.notes.inline_syntax import find_wikilinks
from syncd.notes.secret_patterns import redact
from syncd.notes.timestamps import iso
from syncd.vault.instruction_files import is_instruction_stem
from syncd.vault.location import ENTITIES, FILES, locate
from syncd.vault.path_rules import CONFLICT_COPY, file_name

TITLE_LENGTH: Final = 300
# The suffix for a file whose name has no known one: without a suffix, no program opens it and no link finds it.
ENDINGS: Final = MappingProxyType(
    {media_type: end for end, media_type in reversed(SUFFIXES.items()) if media_type != MARKDOWN}
)
# Suffixes of notes, which no stored file may have.
_NOTES = frozenset(end for end, media_type in SUFFIXES.items() if media_type == MARKDOWN)
_LOCK = "~$"  # prefix of the lock file that an office program puts beside an open file
_UNFINISHED = ".download"  # suffix of the folder in which a browser keeps an unfinished download
_UNSAID = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]|[\ud800-\udfff]")
_ENDING = re.compile(r"(?:\.md)+\Z", re.IGNORECASE)  # a link would take it for the suffix of the file


def last_name(path: str) -> str:
    """Return the last part of a path of any system, on one line: the file's original name."""
    name = re.split(r"[\\/]", path.rstrip("\\/ "))[-1]
    return " ".join(_UNSAID.sub(" ", name).split())[:TITLE_LENGTH]


def known_ending(name: str, known: Collection[str] = KNOWN) -> str:
    """Return the suffix of a file's name as it is written, if it is a known one; else ""."""
    head, dot, last = name.rpartition(".")
    return f".{last}" if head.strip(". ") and dot and f".{last.casefold()}" in known else ""


def stored_name(raw_name: str, media_type: str) -> str:
    """Return the name under which a file is stored; it keeps a known suffix."""
    name = last_name(raw_name)
    end = known_ending(name)
    stem = name.removesuffix(end) if end else name
    if not end or end.casefold() in _NOTES:
        stem, end = name, ENDINGS.get(media_type, ".txt")
    return (_safe_name(stem, "") or "File") + end


def uploaded_note_name(raw_name: str) -> str:
    """Return the base name, without ".md", of an uploaded note."""
    name = last_name(raw_name)
    end = known_ending(name, _NOTES)
    return _safe_name(name.removesuffix(end) if end else name, _ENDING) or "Note"


def _safe_name(name: str, unfit: str | re.Pattern[str]) -> str:
    """Return a base name that works everywhere: no secret, and no match of `unfit`."""
    # Masked before and after `file_name`, which removes ":" and "/": file names reach more places than a note's text.
    stem = redact(file_name(redact(name)))
    while stem != (plain := re.sub(unfit, "", file_name(stem))):
        stem = plain
    return stem


def numbered_names(name: str, end: str) -> Iterator[str]:
    """Yield `name`, then numbered alternatives like "report 2.pdf"; `end` is the suffix of `name`, or ""."""
    yield name
    stem = name.removesuffix(end) if end else name
    for number in itertools.count(2):
        yield f"{stem} {number}{end}"


def rename_instruction_file(name: str) -> str:
    """Return `name`, changed only if a coding agent might take a file of this name for its instructions."""
    stem, dot, end = name.rpartition(".")
    return f"{file_name(stem)}{dot}{end}" if is_instruction_stem(stem) else name


def note_folder(path: str, inbox: str) -> str:
    """Return the folder for the note of an inbox file at `path`: the nearest `Files` folder of its workspace."""
    top = inbox.count("/") + 2  # number of folders down to the workspace
    folders = path.split("/")[:-1]
    if FILES in folders[top:]:
        return "/".join(folders[: folders.index(FILES, top) + 1])
    if len(folders) > top and folders[-1] == ENTITIES:
        folders.pop()
    return "/".join((*folders, FILES))


def link_to(path: str) -> str | None:
    """Return the link to a file, relative to the vault's root; None if a link can't hold its path."""
    link = f"[[{path}]]"
    links = list(find_wikilinks(link))
    whole = len(links) == 1 and (links[0].target, links[0].subpath, links[0].display) == (path, "", None)
    return link if whole else None


def why_not_imported(path: str, size: int, *, most: int, inbox: str) -> str | None:
    """Return why the file at `path`, which is not a note, is not imported, as the end of a sentence.

    "" = it is imported once it is quiet. None = nobody expects an import: its type is unknown, it is a temporary file,
    or it lies outside the inbox."""
    folder, _, name = path.rpartition("/")
    if not known_ending(name) or name.startswith(_LOCK) or locate(path, inbox).scope != "captures":
        return None
    if any(part.endswith(_UNFINISHED) for part in folder.split("/")):
        return None
    if CONFLICT_COPY.search(name):
        return "is a conflict copy that a sync program made: keep what you need of it, and delete it"
    if size > most:
        return f"is too large: {size:,} bytes, and the limit (kb.max_file) is {most:,}"
    if link_to(path) is None:
        return "has a character in its path that a link can't contain (# ^ | [ ] or a line break): rename it"
    return ""


def node_name(name: str) -> str:
    """Return the wanted base name of a node's file, without secrets or ".md"."""
    return _safe_name(name, _ENDING) or NAMELESS


def free_name(title: str, created_at: int, taken: Callable[[str], bool]) -> str:
    """Return an unused base name for a new note; a second note of the same name would change what `[[links]]` mean.

    Of many numbers that are taken, only a few are looked up: a workspace may have thousands of notes of one name."""
    name = file_name(title) or f"Capture {iso(created_at)[:19].replace(':', '.').replace('T', ' ')}"
    if not taken(fold(name)):
        return name
    last, step = 1, 1
    while taken(fold(f"{name} {last + step}")):
        last, step = last + step, 2 * step
    free = last + step
    while free - last > 1:
        middle = (last + free) // 2
        last, free = (middle, free) if taken(fold(f"{name} {middle}")) else (last, middle)
    return f"{name} {free}"
