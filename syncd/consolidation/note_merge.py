"""Merge a duplicate note into the note that is kept, and mark the duplicate as superseded.

Laws, tested: every byte of the kept note stays, except for properties that change; no paragraph, tag, property or
relation of the duplicate is lost, except for its expiry date, what it publishes, and relations between the two notes."""

from __future__ import annotations

import re
from typing import Any

from index.model import Block, Document
from index.names import fold
from syncd.documents.collection_membership import is_collection_tag, tag_texts
from syncd.documents.memo_relations import read_relations
from syncd.notes.front_matter import (
    FrontmatterError,
    PropertyValue,
    comparable_key,
    edit,
    is_publishing,
    is_reserved,
    read_properties,
    replace_body,
    split,
)
from syncd.notes.list_properties import edit_items
from syncd.notes.markdown_outline import is_open_ended, parse_outline
from syncd.notes.timestamps import iso

_EXACT = frozenset({"code", "math", "html", "rule"})  # kinds of blocks in which every character counts
_WORD = re.compile(r"\w+")


def missing_blocks(kept: str, other: str) -> str:
    """Return the blocks of `other`'s body that `kept`'s body lacks; prose is compared by words, code by characters."""
    mine = parse_outline(split(kept)[1])
    signs, words = _with_unix_lines(mine.text), f" {_join_words(mine.text)} "
    theirs = parse_outline(split(other)[1])
    new: list[str] = []
    heading = ""
    for block in theirs.blocks:
        text = _text_of(block, theirs.text)
        there = _with_unix_lines(text) in signs if block.kind in _EXACT else f" {_join_words(text)} " in words
        if block.kind == "heading":
            heading = "" if there else text  # added only if a new block follows below it
        elif not there:
            new += [heading, text] if heading else [text]
            heading = ""
    return "\n\n".join(new)


def merge_text(kept: str, other: str, documents: tuple[Document, Document]) -> str:
    """Return the text of the kept note with the additions.

    Raises FrontmatterError when its properties can't be changed.

    `documents` are both notes, parsed."""
    before, body = kept, split(kept)[1]
    mine, theirs = (
        {key.casefold(): (key, value) for key, value in read_properties(split(text)[0]).items()}
        for text in (kept, other)
    )
    changes: dict[str, PropertyValue] = {
        key: value
        for name, (key, value) in theirs.items()
        if not _concerns_note_alone(key) and name not in mine and value is not None
    }
    for name in ("summary", "title", "source"):
        if name in theirs and mine.get(name, ("", None))[1] is None:
            changes[name] = theirs[name][1]
    for name in ("tags", "relations"):
        lacking = _missing_items(name, mine.get(name, ("", None))[1], theirs.get(name, ("", None))[1])
        if lacking := [item for item in lacking if name == "tags" or not _leads_to(item, documents)]:
            kept = _append_items(kept, name, lacking)
    text = missing_blocks(kept, other)
    if text:
        if is_open_ended(body):
            raise FrontmatterError("its text ends in an unclosed comment or block of code, HTML or math")
        newline = "\r\n" if "\r\n" in body else "\n"
        body = body.rstrip("\r\n") + newline * 2 + _with_unix_lines(text).replace("\n", newline) + newline
    a, b = documents
    kept = edit(kept, changes)
    if kept == before and not text:
        return before
    stamps: dict[str, PropertyValue] = {"version": max(a.version, b.version) + 1}
    last = max(document.created_at if document.updated_at is None else document.updated_at for document in documents)
    if a.updated_at is None or a.updated_at < last:
        stamps["updated_at"] = iso(last)
    return replace_body(edit(kept, stamps), body)


def mark_superseded(text: str, link: str) -> str:
    """Write into `text` which note replaces it. Raises FrontmatterError."""
    return edit(text, {"superseded_by": f"[[{link}]]"})


def _text_of(block: Block, body: str) -> str:
    """Return the text of a block; code and lists begin with the indentation of their first line, which has a meaning."""
    line = body.rfind("\n", 0, block.start) + 1
    indented = block.kind in {"code", "list"} and not body[line : block.start].strip()
    return body[line if indented else block.start : block.end]


def _with_unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _join_words(text: str) -> str:
    """Return the words of a text alone, in their form for comparison."""
    return " ".join(_WORD.findall(fold(text)))


def _concerns_note_alone(key: str) -> bool:
    """Return whether a property is about the note itself, so that another note with its text must not get it."""
    return is_reserved(key) or is_publishing(key) or comparable_key(key) == "expires"


def _leads_to(item: Any, documents: tuple[Document, Document]) -> bool:
    """Return whether an entry of `relations` leads to one of these notes."""
    return any(
        relation.target == document.claimed_id
        if relation.target
        else f"/{fold(document.path)}".endswith(f"/{fold(relation.link).removesuffix('.md')}.md")
        for relation in read_relations([item])[0]
        for document in documents
    )


def _missing_items(name: str, mine: Any, theirs: Any) -> list[Any]:
    """Return the items of a list property that only the other note has."""
    if name == "tags":
        known = {fold(tag) for tag in tag_texts(mine)}
        return [tag for tag in tag_texts(theirs) if fold(tag) not in known and not is_collection_tag(tag)]
    held = mine if isinstance(mine, list) else []
    return [item for item in theirs if item not in held] if isinstance(theirs, list) else []


def _append_items(text: str, name: str, more: list[Any]) -> str:
    value = next((v for key, v in read_properties(split(text)[0]).items() if key.casefold() == name), None)
    if value is None or isinstance(value, list):
        return edit_items(text, name, {}, more)
    return edit(text, {name: [*tag_texts(value), *more]})
