"""Compose the note that holds the text of a file, and revise the note when the file changes.

Laws, tested: nothing in an uploaded file sets a property that Memex owns or that states where the file lies; a text
that a person has changed no longer belongs to the file and is never replaced."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final

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

# What Memex writes of the file beside the properties of any note.
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
    """What is known of a file whose text was read."""

    media_type: str
    size: int
    digest: str  # sha256 of its bytes, hex
    text: str
    pages: int | None = None
    cut: bool = False  # the text is not all there was
    warnings: tuple[str, ...] = ()  # what else of it could not be read, in sentences


def file_properties(facts: FileFacts, path: str | None, name: str | None = None) -> dict[str, PropertyValue]:
    """The properties that say it; `path` is where the file lies, None when the note is all that is kept of it.

    `name` is what it would be called if that name were free; None: it is called that."""
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
        values["text_sha256"] = sha256(facts.text)
    return values


def sha256(text: str) -> str:
    """The digest of a text as it stands in a note."""
    return hashlib.sha256(encode(text)).hexdigest()


def clean_text(text: str) -> str:
    """`text` as a note can hold it: no half characters, no NUL, lines that end as those of notes do."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    return whole.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def without_front_matter(facts: FileFacts) -> FileFacts:
    """The facts for a note beside the file: front matter in the text is a block of code, so that it is read as text."""
    front, body = split(facts.text)
    if facts.media_type != MARKDOWN or not front:
        return facts
    block = quote_block("\n".join(front.strip().split("\n")[1:-1]), "yaml")
    return replace(facts, text="\n".join([*block, "", body.lstrip("\n")]))


def split_uploaded_note(text: str) -> tuple[dict[str, Any], str | None, tuple[str, ...], str]:
    """An uploaded note: the properties that it may bring along, its title, its tags, and its body.

    Properties that Memex owns, or writes of files, or that say what is published, are left out; those that can't be read stay text."""
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
    """The digest that the note of a file says of it."""
    digest = readable_properties(decode(raw)).get("file_sha256")
    return digest if isinstance(digest, str) else None


def is_untouched(raw: bytes) -> bool:
    """Whether the note's text is what was read from the file, as nobody has changed it."""
    text = decode(raw)
    return readable_properties(text).get("text_sha256") == sha256(split(text)[1])


def revise(raw: bytes, facts: FileFacts, path: str, *, updated_at: str, version: int) -> str:
    """The note after its file has changed. Raises FrontmatterError when its properties can't be changed by line."""
    text = decode(raw)
    changes = dict.fromkeys(ABOUT) | file_properties(facts, path) | {"updated_at": updated_at, "version": version}
    for kept in ("file", "file_name"):
        del changes[kept]
    return replace_body(edit(text, changes), facts.text)
