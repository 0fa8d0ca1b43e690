"""List recent documents a page at a time: the latest change first, or the creation if a document never changed.

Law, tested: while nothing changes, the pages contain each requested document once. A document that changes between two
pages moves to the front, so it is on no later page: it never appears twice in one walk, and is at the top of the next."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from index.catalog.catalog import RECORDS, Catalog
from index.catalog.schema import CHANGED, to_record
from index.document_ids import path_id
from index.errors import InvalidArgument
from index.model import Filter, Record
from index.query import tag_key

_TAGGED: Final = (
    "exists (select 1 from tags where tags.path = records.path and (tags.key = ? or substr(tags.key, 1, ?) = ?))"
)
_CURSOR: Final = re.compile(r"(-?\d{1,18})\.([0-9a-f-]{36})")


def changed_at(document: Record) -> int:
    """Return the time of a document's last change or, without one, of its creation."""
    return document.created_at if document.updated_at is None else document.updated_at


def list_recent(
    catalog: Catalog, restriction: Filter, limit: int, cursor: str | None = None, *, path: str | None = None
) -> tuple[list[Record], str | None]:
    """Return `limit` documents from the start or after `cursor`, and the cursor of the next page, None at the end.

    `path`: only the document at this path. Raises InvalidArgument for a malformed cursor."""
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (f"{name} = ?", (value,))
        for name in ("workspace", "namespace", "collection", "type", "source")
        if (value := getattr(restriction, name)) is not None
    ]
    asked += [("path = ?", (path,))] if path is not None else []
    asked += [("created_at >= ?", (restriction.since,))] if restriction.since is not None else []
    asked += [("created_at < ?", (restriction.until,))] if restriction.until is not None else []
    asked += [(_TAGGED, _tag_parameters(tag)) for tag in restriction.tags]
    if some := restriction.any_tags:
        asked.append(
            (f"({' or '.join([_TAGGED] * len(some))})", tuple(part for tag in some for part in _tag_parameters(tag)))
        )
    if cursor is not None:
        moment, key = decode_cursor("cursor", cursor)
        asked.append((f"{CHANGED} <= ? and ({CHANGED} < ? or key > ?)", (moment, moment, key)))
    where = f"where {' and '.join(condition for condition, _ in asked)}" if asked else ""
    query = f"{RECORDS} {where} order by {CHANGED} desc, key limit ?"
    rows = catalog.rows(query, *(value for _, values in asked for value in values), limit + 1)
    page = [to_record(values) for values in rows[:limit]]
    return page, encode_cursor(page[-1], changed_at(page[-1])) if len(rows) > limit else None


def list_following(
    catalog: Catalog, cursor: str, limit: int, *, workspace: str | None, namespace: str | None
) -> list[Record]:
    """Return the newest documents by creation that come after the document of `cursor`; documents of one time are ordered by path.

    If that document is gone, all documents of its time are returned again, so that none is missed. Raises InvalidArgument
    for a malformed cursor."""
    query, values = following_query(cursor, limit, workspace=workspace, namespace=namespace)
    return [to_record(row) for row in catalog.rows(query, *values)]


def following_query(
    cursor: str, limit: int, *, workspace: str | None, namespace: str | None
) -> tuple[str, tuple[Any, ...]]:
    """Return the query of `list_following` and its values; the catalog answers it from an index."""
    moment, key = decode_cursor("before", cursor)
    places = {"workspace": workspace, "namespace": namespace}
    asked = {f"{name} = ?": value for name, value in places.items() if value is not None}
    here = "".join(f" and {condition}" for condition in asked)
    query = f"""{RECORDS} where created_at <= ?{here} and (created_at < ?
        or path > coalesce((select path from documents where key = ?{here}), ''))
        order by created_at desc, path limit ?"""  # noqa: S608 - no value of a caller
    return query, (moment, *asked.values(), moment, key, *asked.values(), limit)


def _tag_parameters(tag: str) -> tuple[str, int, str]:
    """Return the SQL parameters that match this tag's key and the keys below it."""
    key = tag_key(tag)
    return key, len(key) + 1, f"{key}/"


def encode_cursor(last: Record, moment: int) -> str:
    """Encode a cursor from a time of a document and a digest of its path, so that it reveals no file name."""
    return base64.urlsafe_b64encode(f"{moment}.{path_id(last.path)}".encode()).decode().rstrip("=")


def decode_cursor(field: str, cursor: str) -> tuple[int, str]:
    """Return the time and the key of which `encode_cursor` made this cursor. Raises InvalidArgument, which names the `field`."""
    try:
        match = _CURSOR.fullmatch(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode())
    except (binascii.Error, ValueError):
        match = None
    if match is None:
        raise InvalidArgument(f"{field} must be the next_{field} of the page before", field=field)
    return int(match[1]), match[2]
