"""Turn a caller's arguments into a `Query` whose fields are all within their limits, and fold tags for comparison.

Law, tested: the result is a `Query`, or an `InvalidArgument` that names the field; nothing else is ever raised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from index.errors import InvalidArgument
from index.model import COLLECTION_TAG, COLLECTIONS, Filter, Mode, Query
from index.names import fold
from index.text.hidden_characters import remove_ignorable

TEXT, LIMIT, TAGS, WORD = 2_000, 50, 32, 200  # most characters of a query, hits, tags, characters of any other field
TYPES = ("note", "file", "entity")
MODES: tuple[Mode, ...] = get_args(Mode)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Fewer digits are a day, such as 20240101, or a mistake, such as a year; 0 is the epoch.
MILLISECONDS = re.compile(r"-?[0-9]{9,16}|0")
SURROGATE = re.compile("[\ud800-\udfff]")
TAG = 100  # most characters of a stored tag
APART = re.compile(r"[\s#,]+")  # what no tag may contain in Obsidian


def tag_of(text: str) -> str:
    """Return `text` as a tag is stored: no "#" in front, and "-" for blanks, commas and "#"."""
    return APART.sub("-", text).strip("-")[:TAG]


def tag_key(tag: str) -> str:
    """Return a tag as tags are compared: "-" for what no tag may contain, no letter case, one form of each letter."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", tag).casefold())
    return "/".join(part for part in (piece.strip("-") for piece in APART.sub("-", folded).split("/")) if part)


def filter_key(tag: str) -> str:
    """Return the key by which a filter finds a tag: of its first TAG characters, as a longer one is its owner's."""
    return tag_key(tag_of(tag))


def tag_keys(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the keys by which documents with `tags` are found: `a/b` as `a/b` and as `a`; sorted, without repeats."""
    keys = set()
    for tag in tags:
        parts = filter_key(tag).split("/")
        keys |= {"/".join(parts[: n + 1]) for n in range(len(parts))}
    return tuple(sorted(keys - {""}))


def make_query(
    text: Any,
    *,
    limit: Any = None,
    mode: Any = None,
    since: Any = None,
    until: Any = None,
    collections: Sequence[str] = COLLECTIONS,
    **where: Any,
) -> Query:
    """Make a query from a caller's fields; `None` leaves a field at its default or unrestricted.

    `since` and `until` are epoch milliseconds or ISO 8601 text; a time without a zone is UTC, a day is its first moment.
    The rest is a filter: see `make_filter`."""
    words = check_query_text(text)
    most = 10 if limit is None else limit
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= LIMIT:
        raise InvalidArgument(f"limit must be a whole number from 1 to {LIMIT}", field="limit")
    query_filter = replace(
        make_filter(collections=collections, **where),
        since=None if since is None else _check_time("since", since),
        until=None if until is None else _check_time("until", until),
    )
    if query_filter.since is not None and query_filter.until is not None and query_filter.since >= query_filter.until:
        raise InvalidArgument("since must be earlier than until", field="since")
    chosen: Mode = _check_choice("mode", "hybrid" if mode is None else mode, MODES)
    return Query(words, most, chosen, query_filter)


def check_query_text(text: Any) -> str:
    """Return the words of a query in one form of each letter. Raises InvalidArgument if there are none, or too many."""
    return unicodedata.normalize("NFC", _check_text("query", text, TEXT))


def make_filter(
    *,
    workspace: Any = None,
    namespace: Any = None,
    collection: Any = None,
    tags: Any = None,
    any_tags: Any = None,
    type: Any = None,  # the field's name on every surface
    source: Any = None,
    collections: Sequence[str] = COLLECTIONS,
) -> Filter:
    """Make a filter from a caller's fields. `collections` are the known ones; a tag `collection:x` selects one too."""
    every, some = _check_tags("tags", tags), _check_tags("any_tags", any_tags)
    if any(tag.startswith(COLLECTION_TAG) for tag in some):
        raise InvalidArgument("any_tags can't name a collection: give it as collection", field="any_tags")
    return Filter(
        workspace=None if workspace is None else _check_text("workspace", workspace, WORD),
        namespace=None
        if namespace is None
        else unicodedata.normalize("NFC", _check_text("namespace", namespace, WORD)),
        collection=_check_collection(collection, every, collections),
        tags=tuple(tag for tag in every if not tag.startswith(COLLECTION_TAG)),
        type=None if type is None else _check_choice("type", type, TYPES),
        source=None if source is None else unicodedata.normalize("NFC", _check_text("source", source, TEXT)),
        any_tags=some,
    )


def collection_of(value: Any, known: Sequence[str]) -> str:
    """Return the collection that `value` names, in upper or lower case. Raises InvalidArgument, which lists the `known` ones."""
    name = fold(value.strip()) if isinstance(value, str) else ""
    if name not in known:
        raise InvalidArgument(
            f"collection must be one of {', '.join(known)}", field="collection", collections=list(known)
        )
    return name


def _check_collection(value: Any, tags: Sequence[str], known: Sequence[str]) -> str | None:
    named = [tag.removeprefix(COLLECTION_TAG).strip("-") for tag in tags if tag.startswith(COLLECTION_TAG)]
    collections = {collection_of(name, known) for name in (*named, *([] if value is None else [value]))}
    if len(collections) > 1:
        raise InvalidArgument("a note is in one collection; name only one collection", field="collection")
    return next(iter(collections), None)


def _check_text(field: str, value: Any, most: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= most:
        raise InvalidArgument(f"{field} must be text of 1 to {most:,} characters", field=field)
    if not remove_ignorable(value).strip():
        raise InvalidArgument(f"{field} must contain a visible character", field=field)
    if SURROGATE.search(value):
        raise InvalidArgument(f"{field} holds half a character (a lone surrogate): send valid Unicode", field=field)
    return value.strip()


def _check_choice(field: str, value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise InvalidArgument(f"{field} must be one of {', '.join(known)}", field=field, known=list(known))
    return value


def _check_tags(field: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > TAGS:
        raise InvalidArgument(f"{field} must be a list of at most {TAGS} tags", field=field)
    keys = [filter_key(_check_text(field, tag, WORD)) for tag in value]
    if "" in keys:
        raise InvalidArgument(f"{field} must not hold an empty tag", field=field)
    return tuple(dict.fromkeys(keys))


def _check_time(field: str, value: Any) -> int:
    if isinstance(value, str) and MILLISECONDS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            moment = None
        if moment is not None:
            return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    raise InvalidArgument(f"{field} must be epoch milliseconds or an ISO 8601 time", field=field)
