"""Decide the promoted note of a capture, its folder, name and text, and the text of a capture that returns.

Laws, tested: only the lines of the properties named here change; a text that stays unedited returns byte for byte. A
folder that a note or a setting names is data: it never leads out of the vault, into the inbox or to hidden names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import path_id, sha256
from index.errors import InvalidArgument
from index.model import Document, Record
from index.names import fold, note_name
from index.query import tag_key, tag_keys, tag_of
from syncd.documents.capture_note import is_named_after_title
from syncd.documents.collection_membership import plain_tags, tag_changes, tag_texts
from syncd.documents.file_names import numbered_names
from syncd.documents.owner_marks import OwnerMarks
from syncd.notes.front_matter import PropertyValue, edit, read_properties, replace_body, split
from syncd.notes.markdown_outline import is_open_ended
from syncd.notes.property_reader import PERSONS
from syncd.notes.timestamps import iso
from syncd.vault.instruction_files import is_instruction_stem
from syncd.vault.path_rules import HOLE, file_name, objection, template_objection

# Properties that a promotion removes: marks, suggestions, and values that only matter in the inbox.
INBOX_ONLY: Final = PERSONS - {"share", "promoted_at"} | {"collection", "version", "updated_at", "expires"}
# As suggestions name notes: no character in it ends the line or changes the direction of text.
_LINK: Final = re.compile(r"\[\[[^\[\]|\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+\]\]")
PROMOTED_AT: Final = "promoted_at"
UNCLEAR: Final = "its `promote` is neither true nor false: tick its box, or write `promote: true`"
DEFECT: Final = "a bug in Memex prevents its promotion; see the daemon's log"
# Defects that prevent a promotion, and what the owner can do about each.
HINDERING: Final[Mapping[str, str]] = {
    "bad-id": "its `id` is not valid: remove it, and Memex writes a new one",
    "bad-frontmatter": "its properties can't be read: repair them",
    "frontmatter-too-large": "its properties are too large to be read: shorten them",
    "duplicate-keys": "it has a property twice: remove one of the two",
    "unclosed-frontmatter": "its properties have no closing `---`: add it",
    "conflict-copy": "it is a conflict copy that a sync program made: keep what you need of it, and delete it",
    "merge-conflict": "it contains merge markers: resolve the conflict, and remove them",
    "not-utf8": "it is not valid UTF-8: save it as UTF-8",
    "nul-bytes": "it contains NUL bytes: it may be damaged",
    "secret": "it seems to hold a secret: remove the secret, or move the note manually",
}


class Problem(InvalidArgument):
    """Says why a capture can't be promoted as it is, and how to fix it; for its owner alone."""


@dataclass(frozen=True, slots=True)
class PromotionRule:
    """Sends captures that match all given fields to `folder`, named by the template `name` if there is one."""

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

    def matches(self, document: Document | Record) -> bool:
        """Return whether the rule matches this capture. Letter case does not count; a tag matches its subtags too."""
        tag = tag_key(tag_of(self.tag))
        pairs = ((self.source, document.source), (self.collection, document.collection))
        return (
            (not tag or tag in tag_keys(document.tags))
            and all(not wanted or fold(wanted) == fold(is_ or "") for wanted, is_ in pairs)
            and self.workspace in ("", document.workspace)
        )


def refusal_reason(document: Document, marks: OwnerMarks) -> str:
    """Return why this capture can't be promoted at all; "" = it can."""
    if document.type == "entity":
        return "it is an entity of the graph, which stays in the inbox; move it out manually to make it a plain note"
    defects = {defect.name for defect in document.defects}
    for name, advice in HINDERING.items():
        if name in defects:
            return advice
    if not document.writable:
        return HINDERING["bad-frontmatter"]
    if marks.twice:
        return f"the property {marks.twice[0]!r} exists in two spellings: remove one of the two"
    return ""


def choose_folder(
    capture: Document | Record,
    marks: OwnerMarks,
    rules: Sequence[PromotionRule],
    *,
    folder: str,
    inbox: str,
    to: str | None = None,
) -> tuple[str, str, str]:
    """Choose the folder of this capture, "" = the vault's root. Raises Problem for an invalid folder.

    Return it with what chose it ("you", "rule", "suggestion" or "setting"), and the template for the name that a choosing rule
    gives, if any. `to` is the folder of a command, and takes precedence."""
    if to is None and "promote_to" in marks.unclear:
        raise Problem("its `promote_to` is not a folder: write a path such as Projects/Ideas")
    rule = next((candidate for candidate in rules if candidate.matches(capture)), None)
    chosen = (
        (to, "you"),
        (marks.promote_to, "you"),
        (rule.folder if rule else None, "rule"),
        (marks.suggested_folder, "suggestion"),
    )
    where, by = next(((path, by) for path, by in chosen if path is not None), (folder, "setting"))
    return check_folder(where, inbox), by, rule.name if rule and by == "rule" else ""


def check_folder(folder: str, inbox: str) -> str:
    """Return a folder as the vault spells paths. Raises Problem for a folder that no note may be promoted into."""
    path = folder.strip().rstrip("/")
    if not path and not folder.startswith("/"):
        return ""  # the root
    if wrong := objection(path or folder.strip(), new=True):
        raise Problem(f"the folder {folder!r} {wrong}", folder=folder[:200])
    if "[[" in path or "]]" in path:
        raise Problem(f"the folder {folder!r} is a link; write its path instead, such as Projects/Ideas")
    if path.lower().endswith(".md"):
        raise Problem(f"{folder!r} is the name of a note; give the folder only", folder=folder[:200])
    if is_inside(path, inbox):
        raise Problem(f"the folder {folder!r} is the inbox, or is inside it", folder=folder[:200])
    return path


def is_inside(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` or lies below it, ignoring letter case as some file systems do."""
    return f"{fold(path)}/".startswith(f"{fold(folder)}/")


def spell_like_existing(folder: str, there: Iterable[str]) -> str:
    """Return the existing folder of this name, however its letters are cased; else `folder`."""
    folders = sorted(there)
    return folder if folder in folders else next((name for name in folders if fold(name) == fold(folder)), folder)


def promoted_name(document: Document, template: str, *, old_title: bool = False) -> str:
    """Return the base name that a template gives a capture; its current one where the template gives none.

    `old_title`: Memex made the file's name from an earlier title, so no person chose it."""
    current = note_name(document.path)
    values = {
        "title": document.title if old_title else name_of_capture(document),
        "date": iso(document.created_at)[:10],
        "source": document.source or "",
        "id": document.claimed_id or "",
    }
    name = HOLE.sub(lambda hole: values.get(hole[1], ""), template)
    kept = name == current and not objection(f"{current}.md", new=True) and not is_instruction_stem(current)
    return current if kept else file_name(name) or file_name(current) or "Note"


def name_of_capture(document: Document) -> str:
    """Return a capture's title, or the name of its file once somebody has renamed it."""
    current = note_name(document.path)
    if document.type == "file" and document.file:
        return current  # `report.pdf`: its name is that of its stored file
    return document.title if is_named_after_title(document.path, document.title) else current


def candidate_names(wanted: str, current: str) -> Iterator[str]:
    """Yield the base names to try in turn: the wanted one, the capture's own, then numbered ones."""
    names = numbered_names(wanted, "")
    yield next(names)
    if current != wanted:
        yield current
    yield from names


# The text


def promote_text(text: str, at: int, *, id: str | None = None) -> str:
    """Return the text of a capture as a note of the vault, promoted at that time (epoch ms).

    Raises FrontmatterError.

    `id` replaces the capture's own id, if a note of the vault has that one."""
    renamed = text if id is None else replace_id(text, id)
    return _set_and_remove(renamed, {PROMOTED_AT: iso(at)}, without=INBOX_ONLY)


def take_suggestions(text: str, taken: Sequence[str]) -> str:
    """Return the text of a capture with these of its suggestions: tags among its tags, links together as a last line.

    Raises FrontmatterError, and Problem for a suggestion that the capture does not have."""
    if not taken:
        return text
    front, body = split(text)
    suggested = read_suggestions(read_properties(front))
    if missing := [name for name in taken if name not in (*suggested["tags"], *suggested["links"])]:
        raise Problem(f"it has no suggestion {missing[0][:200]!r}; memex review shows those that it has")
    present = plain_tags(front)
    tags = [tag for tag in suggested["tags"] if tag in taken and fold(tag) not in map(fold, present)]
    changed = edit(text, tag_changes(front, [*present, *tags], None)) if tags else text
    links = [link for link in suggested["links"] if link in taken]
    return replace_body(changed, _append_links(body, links)) if links else changed


def read_suggestions(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the suggested "tags" and "links" that a capture's properties hold."""
    folded = {key.casefold(): value for key, value in values.items()}
    links = folded.get("suggested_links")
    return {
        "tags": tag_texts(folded.get("suggested_tags")),
        "links": [
            link
            for link in (links if isinstance(links, list) else [links])
            if isinstance(link, str) and _LINK.fullmatch(link)
        ],
    }


def _append_links(body: str, links: Sequence[str]) -> str:
    if is_open_ended(body):
        raise Problem("it ends in an unclosed comment or block of code, HTML or math: close it, or take no links")
    end = "\r\n" if "\r\n" in body else "\n"
    gap = "" if not body.strip() or body.endswith(end * 2) else end if body.endswith(end) else end * 2
    return f"{body}{gap}{' · '.join(links)}{end}"


def replace_id(text: str, id: str) -> str:
    """Return `text` with another id in place of its own. Raises FrontmatterError."""
    return edit(text, {key: id for key in read_properties(split(text)[0]) if key.casefold() == "id"})


def derive_other_id(id: str, raw: bytes) -> str:
    """Derive a new id for a note whose id is taken; every machine derives the same one."""
    return path_id(f"{id} {sha256(raw)}")


def remove_mark(text: str) -> str:
    """Return the text of a capture without its promotion mark. Raises FrontmatterError."""
    values = read_properties(split(text)[0])
    return edit(text, {key: False for key, value in values.items() if key.casefold() == "promote" and value is True})


def restore_capture(now: str, before: str, after: str) -> str:
    """Return the text of a capture that was promoted from `before` to `after` and reads `now`.

    Raises FrontmatterError.

    Unedited, it gets its old bytes, except for the promotion mark; edited, it keeps the edits and gets its
    properties back."""
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
    """Return `text` with the `wanted` properties set, and the properties in `without` removed in any spelling."""
    values: Mapping[str, Any] = read_properties(split(text)[0])
    gone = set(without)
    named = {key.casefold() for key in wanted}
    changes: dict[str, PropertyValue] = {
        key: None for key in values if key.casefold() in gone and key.casefold() not in named
    }
    return edit(text, changes | dict(wanted))
