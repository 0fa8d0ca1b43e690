"""Compose the note that holds the text of a file, and revise the note when the file changes.

Laws, tested: nothing in an uploaded file sets a property that Memex owns or that states where the file lies; a text
that a person has changed no longer belongs to the file and is never replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from index.document_ids import sha256
from syncd.documents.file_names import link_to
from syncd.documents.file_types import MARKDOWN
from syncd.notes.front_matter import (
    OWNED,
    FrontmatterError,
    PropertyValue,
    comparable_key,
    decode,
    edit,
    encode,
    is_publishing,
    read_properties,
    readable_properties,
    replace_body,
    split,
)
from syncd.notes.quoted_text import quote_block

# Properties that Memex writes about a file, in addition to the properties of any note.
ABOUT: Final = (
    "file",
    "file_name",
    "file_type",
    "file_size",
    "file_sha256",
    "file_warnings",
    "pages",
    "text_cut",
    "text_sha256",
)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Holds the facts about a file whose text was read."""

    media_type: str
    size: int
    digest: str  # sha256 of its bytes, hex
    text: str
    pages: int | None = None
    cut: bool = False  # the text is incomplete
    warnings: tuple[str, ...] = ()  # what else could not be read, as sentences


def file_properties(facts: FileFacts, path: str | None, name: str | None = None) -> dict[str, PropertyValue]:
    """Return the properties that state these facts; `path` is the stored file's path, None if no file is stored.

    `name` is the file's wanted name if that name was taken; None if the file has its wanted name."""
    values: dict[str, PropertyValue] = {"file": link_to(path)} if path else {}
    if name:
        values["file_name"] = name
    values |= {"file_type": facts.media_type, "file_size": facts.size}
    if path:
        values["file_sha256"] = facts.digest
    if facts.pages is not None:
        values["pages"] = facts.pages
    if facts.cut:
        values["text_cut"] = True
    if facts.warnings:
        values["file_warnings"] = list(facts.warnings)
    if path:
        values["text_sha256"] = sha256(encode(facts.text))
    return values


def clean_text(text: str) -> str:
    """Return `text` in a form that a note can hold: no lone surrogates, no NUL, no byte order mark, LF line ends."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    return whole.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def without_front_matter(facts: FileFacts) -> FileFacts:
    """Return the facts with Markdown front matter turned into a code block, so that a note can hold it as text."""
    front, body = split(facts.text)
    if facts.media_type != MARKDOWN or not front:
        return facts
    block = quote_block("\n".join(front.strip().split("\n")[1:-1]), "yaml")
    return replace(facts, text="\n".join([*block, "", body.lstrip("\n")]))


def split_uploaded_note(text: str) -> tuple[dict[str, Any], str | None, tuple[str, ...], str]:
    """Split an uploaded note into the properties that it may keep, its title, its tags, and its body.

    Properties that Memex owns or writes about files, and properties that control publishing, are left out. Front matter
    that can't be read stays in the body."""
    front, body = split(text)
    try:
        values = read_properties(front)
    except FrontmatterError:
        return {}, None, (), text
    named = {comparable_key(key): value for key, value in values.items()}
    title, tags = named.get("title"), named.get("tags")
    listed = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    rest = {
        key: value
        for key, value in values.items()
        if comparable_key(key) not in OWNED and comparable_key(key) not in ABOUT and not is_publishing(key)
    }
    return rest, title if isinstance(title, str) else None, tuple(tag for tag in listed if isinstance(tag, str)), body


def digest_of(raw: bytes) -> str | None:
    """Return the file's digest that its note states; None if it states none."""
    digest = readable_properties(decode(raw)).get("file_sha256")
    return digest if isinstance(digest, str) else None


def is_untouched(raw: bytes) -> bool:
    """Return whether the note's text is still the text that was read from the file."""
    text = decode(raw)
    return readable_properties(text).get("text_sha256") == sha256(encode(split(text)[1]))


def revise(raw: bytes, facts: FileFacts, path: str, *, updated_at: str, version: int) -> str:
    """Return the note's text after its file has changed. Raises FrontmatterError if its properties can't be edited."""
    text = decode(raw)
    changes = dict.fromkeys(ABOUT) | file_properties(facts, path) | {"updated_at": updated_at, "version": version}
    for kept in ("file", "file_name"):
        del changes[kept]
    return replace_body(edit(text, changes), facts.text)
