"""Decide the promoted note of a capture: its folder, its name and its text; and the way back.

Law, tested: of the text only the lines of the keys named here change; a text that stays unedited comes back byte for
byte. A folder that a note or a setting names is data: it never leads out of the vault, into the inbox or to hidden
names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from index.document_ids import path_id
from index.errors import InvalidArgument
from index.model import Document
from index.names import fold
from syncd.documents.capture_note import is_named_after_title
from syncd.documents.owner_marks import OwnerMarks
from syncd.notes.front_matter import PropertyValue, edit, read_properties, split
from syncd.notes.timestamps import iso
from syncd.vault.instruction_files import is_instruction_stem
from syncd.vault.path_rules import HOLE, file_name, objection, template_objection

# What a note of the vault proper no longer says: marks, suggestions, and what only the inbox counts.
INBOX_ONLY: Final = (
    "promote",
    "promote_to",
    "review",
    "promote_problem",
    "suggested_folder",
    "suggested_tags",
    "suggested_links",
    "suggested_similar",
    "hidden_text",
    "runnable_code",
    "unsafe_links",
    "superseded_by",
    "collection",
    "version",
    "updated_at",
    "expires",
)
PROMOTED_AT: Final = "promoted_at"
UNCLEAR: Final = "its `promote` is neither true nor false: tick its box, or write `promote: true`"
DEFECT: Final = "a mistake of Memex keeps it from being promoted; the daemon's log says more"
# Defects with which a capture stays where it is, and what its owner does about each.
HINDERING: Final[Mapping[str, str]] = {
    "bad-id": "its `id` is none: take it out, and it gets one",
    "bad-frontmatter": "its properties can't be read: mend them",
    "frontmatter-too-large": "its properties are too large to be read: shorten them",
    "duplicate-keys": "a property is there twice: leave one of the two",
    "unclosed-frontmatter": "its properties have no closing `---`: write it",
    "conflict-copy": "a sync program set this version aside: keep what you need of it, and delete it",
    "merge-conflict": "a merge left its markers in it: settle them",
    "not-utf8": "it is not valid UTF-8: save it anew",
    "nul-bytes": "it has NUL bytes in it: it may be damaged",
    "secret": "it seems to hold a secret: take it out, or drag the note to its place yourself",
}


class Problem(InvalidArgument):
    """Why a capture can't be promoted as it is, and what mends it; for its owner alone."""


@dataclass(frozen=True, slots=True)
class PromotionRule:
    """Captures that have all of what is given go to `folder`, under `name` if it is given."""

    folder: str
    name: str = ""
    tag: str = ""
    source: str = ""
    collection: str = ""
    workspace: str = ""

    def __post_init__(self) -> None:
        wrong = objection(self.folder, new=True) if self.folder else ""
        if wrong:
            raise ValueError(f"folder {wrong}")
        if self.name and (wrong := template_objection(self.name)):
            raise ValueError(f"name {wrong}")

    def matches(self, document: Document) -> bool:
        """Whether this capture is one of these. Letter case does not count; a tag stands for those below it too."""
        tag = fold(self.tag.lstrip("#"))
        tags = [fold(name) for name in document.tags]
        pairs = ((self.source, document.source), (self.collection, document.collection))
        return (
            (not tag or any(name == tag or name.startswith(f"{tag}/") for name in tags))
            and all(not wanted or fold(wanted) == fold(is_ or "") for wanted, is_ in pairs)
            and self.workspace in ("", document.workspace)
        )


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a capture is to go, and what it is to be called (without ".md")."""

    folder: str  # "" = the vault's root
    stem: str
    by: str  # what chose the folder: "you", "rule", "suggestion", "setting"


def refusal_reason(document: Document, marks: OwnerMarks) -> str:
    """Why this capture can't be promoted at all; "" = it can."""
    if document.type == "entity":
        return "it is a node of the graph, which stays in the inbox; drag it out yourself if it is to be a plain note"
    defects = {defect.name for defect in document.defects}
    for name, advice in HINDERING.items():
        if name in defects:
            return advice
    if not document.writable:
        return HINDERING["bad-frontmatter"]
    if marks.twice:
        return f"the property {marks.twice[0]!r} is there in two spellings: leave one of the two"
    return ""


def choose_destination(
    document: Document,
    marks: OwnerMarks,
    rules: Sequence[PromotionRule],
    *,
    folder: str,
    name: str,
    inbox: str,
    to: str | None = None,
    old_title: bool = False,
) -> Destination:
    """Where this capture goes. `to` is what a command says, before all others. Raises Problem for a folder that can't be.

    `old_title`: no person chose the name of its file, which is an earlier title."""
    if to is None and "promote_to" in marks.unclear:
        raise Problem("its `promote_to` is no folder: write the path of one, such as Projects/Ideas")
    rule = next((candidate for candidate in rules if candidate.matches(document)), None)
    chosen = (
        (to, "you"),
        (marks.promote_to, "you"),
        (rule.folder if rule else None, "rule"),
        (marks.suggested_folder, "suggestion"),
    )
    where, by = next(((path, by) for path, by in chosen if path is not None), (folder, "setting"))
    template = rule.name if rule and rule.name and by == "rule" else name
    return Destination(check_folder(where, inbox), stem(document, template, old_title=old_title), by)


def check_folder(folder: str, inbox: str) -> str:
    """A folder of the vault as it is written. Raises Problem for one that no note may be promoted into."""
    path = folder.strip().rstrip("/")
    if not path and not folder.startswith("/"):
        return ""  # the root
    if wrong := objection(path or folder.strip(), new=True):
        raise Problem(f"the folder {folder!r} {wrong}", folder=folder[:200])
    if "[[" in path or "]]" in path:
        raise Problem(f"the folder {folder!r} is a link; write its path instead, such as Projects/Ideas")
    if path.lower().endswith(".md"):
        raise Problem(f"{folder!r} has the name of a note; name the folder only", folder=folder[:200])
    if is_inside(path, inbox):
        raise Problem(f"the folder {folder!r} is the inbox, or lies in it", folder=folder[:200])
    return path


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it, as a disk sees it that knows no letter case."""
    return f"{fold(path)}/".startswith(f"{fold(folder)}/")


def spell_like_existing(folder: str, there: Iterable[str]) -> str:
    """The folder of this name that is `there` already, however its letters are written; else `folder`."""
    folders = sorted(there)
    return folder if folder in folders else next((name for name in folders if fold(name) == fold(folder)), folder)


def stem(document: Document, template: str, *, old_title: bool = False) -> str:
    """The base name that a template gives a capture; its own where the template says nothing."""
    current = document.path.rpartition("/")[2][:-3]
    values = {
        "title": document.title if old_title else name_of_capture(document),
        "date": datetime.fromtimestamp(document.created_at // 1000, UTC).strftime("%Y-%m-%d"),
        "source": document.source or "",
        "id": document.claimed_id or "",
    }
    name = HOLE.sub(lambda hole: values.get(hole[1], ""), template)
    kept = name == current and not objection(f"{current}.md", new=True) and not is_instruction_stem(current)
    return current if kept else file_name(name) or file_name(current) or "Note"


def name_of_capture(document: Document) -> str:
    """A capture's title; once somebody has given its file another name than that, this name."""
    current = document.path.rpartition("/")[2][:-3]
    if document.type == "file" and document.file:
        return current  # `report.pdf`: it is called after its file
    return document.title if is_named_after_title(document.path, document.title) else current


def candidate_names(wanted: str, current: str) -> Iterator[str]:
    """The base names to try in turn: the one that is wanted, the capture's own, then numbered ones."""
    yield wanted
    if current != wanted:
        yield current
    number = 2
    while True:
        yield f"{wanted} {number}"
        number += 1


# The text


def promote_text(text: str, at: int, *, id: str | None = None) -> str:
    """The text of a capture as a note of the vault, promoted at that time (epoch ms). Raises FrontmatterError.

    `id` is what it has instead of its own, which a note of the vault has."""
    renamed = text if id is None else replace_id(text, id)
    return _set_and_remove(renamed, {PROMOTED_AT: iso(at)}, without=INBOX_ONLY)


def replace_id(text: str, id: str) -> str:
    """`text` with another id in place of the one that it has. Raises FrontmatterError."""
    return edit(text, {key: id for key in read_properties(split(text)[0]) if key.casefold() == "id"})


def derive_other_id(id: str, raw: bytes) -> str:
    """An id for a note that says it has this one, which another has; the same one on every machine."""
    return path_id(f"{id} {hashlib.sha256(raw).hexdigest()}")


def remove_mark(text: str) -> str:
    """The text of a capture without its person's wish that it be promoted. Raises FrontmatterError."""
    values = read_properties(split(text)[0])
    return edit(text, {key: False for key, value in values.items() if key.casefold() == "promote" and value is True})


def restore_capture(now: str, before: str, after: str) -> str:
    """The capture that was promoted from `before` to `after` and says `now` what it says. Raises FrontmatterError.

    Unedited, it is as it was, the wish to be promoted aside; edited, it keeps the edits and gets back what it lost."""
    back = remove_mark(before)
    if now == after:
        return back
    was = read_properties(split(back)[0])
    lost = {key: value for key, value in was.items() if key.casefold() in INBOX_ONLY}
    stamp = next((value for key, value in was.items() if key.casefold() == PROMOTED_AT), None)
    if (old_id := _read_id(back)) and old_id != _read_id(after) == _read_id(now):
        now = replace_id(now, old_id)
    there = {key.casefold() for key in read_properties(split(now)[0])}
    missing = {key: value for key, value in lost.items() if key.casefold() not in there}
    return _set_and_remove(
        now, {**missing, **({PROMOTED_AT: stamp} if stamp is not None else {})}, without=(PROMOTED_AT,)
    )


def _read_id(text: str) -> str | None:
    return next((str(value) for key, value in read_properties(split(text)[0]).items() if key.casefold() == "id"), None)


def _set_and_remove(text: str, wanted: Mapping[str, PropertyValue], *, without: Iterable[str]) -> str:
    """`text` with these properties, and `without` those in any spelling."""
    values: Mapping[str, Any] = read_properties(split(text)[0])
    gone = set(without)
    named = {key.casefold() for key in wanted}
    changes: dict[str, PropertyValue] = {
        key: None for key in values if key.casefold() in gone and key.casefold() not in named
    }
    return edit(text, changes | dict(wanted))
