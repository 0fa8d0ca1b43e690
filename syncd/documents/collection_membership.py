"""Decide which collection a document is in, and how its note states the collection.

A property `collection` names the collection, and so does each tag `collection:x`. Laws, tested: whatever a note
names, it is in exactly one of the known collections; `set_collection` leaves one name, and changes no other line or
tag."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from index.model import COLLECTION_TAG, COLLECTIONS, SEVERAL_COLLECTIONS, Document, Record
from index.names import fold
from index.query import collection_of, tag_of
from syncd.notes.front_matter import PropertyValue, decode, edit, read_properties, spelling_of, split
from syncd.notes.list_properties import edit_items
from syncd.notes.property_reader import as_text

_BETWEEN = re.compile(r"([,\s]+)")


def choose_collection(
    collection: str | None, tags: Sequence[str], known: Sequence[str]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the collection that a caller names (None: none is named), and the tags that name no collection.

    The argument `collection` takes precedence over tags; among tags, the last one counts. Raises InvalidArgument for
    an unknown collection."""
    plain = {tag: tag_of(tag) for tag in tags}
    named = [plain[tag][len(COLLECTION_TAG) :].strip("-") for tag in tags if is_collection_tag(plain[tag])]
    meant = [collection_of(name, known) for name in (*named, *([] if collection is None else [collection]))]
    return meant[-1] if meant else None, tuple(tag for tag in tags if not is_collection_tag(plain[tag]))


def is_collection_tag(tag: str) -> bool:
    """Return whether a tag names a collection."""
    return tag.casefold().startswith(COLLECTION_TAG)


# Reading a note's collections and tags


@dataclass(frozen=True, slots=True)
class CollectionName:
    """Describes one name of a collection in a note, and whether a tag or the property states it."""

    name: str
    tag: bool


def tag_texts(value: Any) -> list[str]:
    """Return the tags in a property's value, without "#": a list, or a text separated by commas or white space."""
    parts = _BETWEEN.split(value)[::2] if isinstance(value, str) else value if isinstance(value, list) else [value]
    raw_tags = (text for part in parts if (text := as_text(part)) is not None)
    return [tag for text in raw_tags if (tag := text.strip().removeprefix("#"))]


def plain_tags(front: str) -> list[str]:
    """Return the tags in a note's properties, without those that name a collection. Raises FrontmatterError."""
    values = read_properties(front)
    return [tag for tag in tag_texts(values.get(spelling_of("tags", values))) if not is_collection_tag(tag)]


def find_names(values: Mapping[str, Any], tags: Sequence[str]) -> list[CollectionName]:
    """Return the collections that the properties name, as written, in order; `tags` are all tags of the note."""
    by_tag = [CollectionName(tag[len(COLLECTION_TAG) :], tag=True) for tag in tags if is_collection_tag(tag)]
    value = values.get(spelling_of("collection", values))
    parts = value if isinstance(value, list) else [value]
    by_property = [CollectionName(text, tag=False) for part in parts if (text := as_text(part)) is not None]
    keys = [key.casefold() for key in values]
    before = by_property and "tags" in keys and keys.index("collection") < keys.index("tags")
    return [*by_property, *by_tag] if before else [*by_tag, *by_property]


def select_known(named: Iterable[CollectionName], known: Sequence[str]) -> list[CollectionName]:
    """Return the names of `known` collections, each in its known spelling."""
    folded = (replace(mention, name=fold(mention.name.strip())) for mention in named)
    return [mention for mention in folded if mention.name in known]


# Changing a note's collection and tags


def tag_changes(front: str, tags: Sequence[str], collection: str | None) -> dict[str, PropertyValue]:
    """Return the property changes that give a note these tags and this collection. Raises FrontmatterError.

    Without `collection`, tags and properties that name a collection stay unchanged."""
    values = read_properties(front)
    held = tag_texts(values.get(spelling_of("tags", values)))
    plain_tags = [tag for tag in held if not is_collection_tag(tag)]
    names = [tag for tag in held if is_collection_tag(tag)]
    stated = [fold(mention.name.strip()) for mention in find_names(values, held)] or [COLLECTIONS[0]]
    changes: dict[str, PropertyValue] = {}
    if plain_tags != list(tags) or (names and collection is not None):
        changes["tags"] = [*tags, *(names if collection is None else ())] or None
    if collection is not None and (names or stated != [collection]):
        changes["collection"] = collection
    return changes


def set_collection(text: str, collection: str, known: Sequence[str]) -> str:
    """Return the note's text with this collection stated only by its property, and not by tags.

    Raises FrontmatterError."""
    values = read_properties(split(text)[0])
    key = spelling_of("tags", values)
    tags = values.get(key)

    def names_known(tag: str) -> bool:
        return bool(select_known(find_names({}, tag_texts([tag])), known))

    if isinstance(tags, list):
        left = [at for at, tag in enumerate(tags) if isinstance(tag, str) and names_known(tag)]
        text = edit_items(text, key, dict.fromkeys(left)) if left else text
    elif isinstance(tags, str):
        parts = _BETWEEN.split(tags)
        kept = "".join(
            word + after for word, after in zip_longest(parts[::2], parts[1::2], fillvalue="") if not names_known(word)
        )
        text = edit(text, {key: kept.rstrip(", \t\r\n") or None}) if kept != tags else text
    name = values.get(spelling_of("collection", values))
    return (
        text if isinstance(name, str) and fold(name.strip()) == collection else edit(text, {"collection": collection})
    )


# Choosing between several collections


def has_several(document: Document | Record) -> bool:
    """Return whether a document names several collections."""
    return any(defect.name == SEVERAL_COLLECTIONS for defect in document.defects)


@dataclass(frozen=True, slots=True)
class NamedCollections:
    """Holds the collections that a note named when it was last read, and the one that was set last."""

    mentions: frozenset[CollectionName]
    chosen: str

    @classmethod
    def only(cls, collection: str) -> NamedCollections:
        """Return the state of a note that named only this collection, or none."""
        return cls(frozenset({CollectionName(collection, tag=True), CollectionName(collection, tag=False)}), collection)


def choose_latest(mentions: Sequence[CollectionName], before: NamedCollections | None) -> NamedCollections:
    """Choose the collection that was set last: a newly named one; else the earlier choice; else the last one named."""
    names = [mention.name for mention in mentions]
    kept = [before.chosen] if before and before.chosen in names else []
    fresh = [mention.name for mention in mentions if before and mention not in before.mentions]
    return NamedCollections(frozenset(mentions), (*names, *kept, *fresh)[-1])


class CollectionChanges:
    """Tracks notes that name a new collection besides their old one, until they are quiet and can be settled."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known
        self._named: dict[str, NamedCollections] = {}

    def remember(self, document: Document, raw: bytes, record: Callable[[], Record | None]) -> None:
        """Remember the collections that a note names; `record` returns the note's row from before."""
        if not has_several(document) or not document.writable:
            self._named.pop(document.path, None)
            return
        before = record()
        if before is None:
            known = None
        elif has_several(before):
            known = self._named.get(before.path)
        else:
            known = NamedCollections.only(before.collection)
        values = read_properties(split(decode(raw))[0])
        mentions = select_known(find_names(values, tag_texts(values.get(spelling_of("tags", values)))), self._known)
        self._named[document.path] = choose_latest(mentions, known)

    def settle(self, path: str, text: str) -> str:
        """Return the note's text naming only the collection that was set last. Raises FrontmatterError."""
        named = self._named.get(path)
        return set_collection(text, named.chosen, self._known) if named else text
