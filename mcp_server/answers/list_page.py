"""Cut a list into pages: a cursor names the last item of a page and its position, so the server keeps no state.

Law, tested: while nothing changes, the pages contain each item once, in order. The next page begins after the item that the
cursor names, even if it has moved, and at its old position if it was removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from index.document_ids import sha256
from index.errors import InvalidArgument

T = TypeVar("T")

_CURSOR: Final = re.compile(r"(\d{1,9})-([0-9a-f]{16})", re.ASCII)


def cut_page(
    items: Sequence[T], limit: int, cursor: str | None, name: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return `limit` items from the start or after `cursor`, and the cursor of the next page, None at the end.

    `name` identifies an item. Raises InvalidArgument for a malformed cursor."""
    start = 0 if cursor is None else _find_start(items, cursor, name)
    page = items[start : start + limit]
    end = start + len(page)
    return page, f"{end}-{_digest(name(page[-1]))}" if end < len(items) else None


def _find_start(items: Sequence[T], cursor: str, name: Callable[[T], str]) -> int:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidArgument("cursor must be the next_cursor of the page before", field="cursor")
    end, last = int(match[1]), match[2]
    if 0 < end <= len(items) and _digest(name(items[end - 1])) == last:
        return end
    return next(
        (at for at, item in enumerate(items, 1) if _digest(name(item)) == last), min(max(end - 1, 0), len(items))
    )


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass"))[:16]
