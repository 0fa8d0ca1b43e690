"""Decide when a capture is archived, where in the archive it goes, and where it returns.

Law, tested: a capture is archived only when the owner dismissed it, or when it expired without a decision of the
owner; archiving and restoring leads back to the original path."""

from __future__ import annotations

from typing import Final

from index.errors import InvalidArgument
from syncd.documents.owner_marks import OwnerMarks, read_marks
from syncd.notes.front_matter import PropertyValue, edit, read_properties, split
from syncd.notes.timestamps import DAY_MS
from syncd.review.bases_table import DISMISSED
from syncd.vault.location import ARCHIVE, locate

UNUSED: Final = "unused"
KEEP: Final = "keep"  # the value of `review` for a capture that expired and was moved back


def archive_reason(marks: OwnerMarks, *, now: int, untouched_since: int | None, expire_days: float) -> str:
    """Return why a capture is archived: "dismissed", "expired", "unused", or "" = it is not.

    `untouched_since`: when it last changed, if no person ever changed it. Times are epoch ms."""
    if marks.review == DISMISSED:
        return "dismissed"
    if marks.review is not None or marks.promote:
        return ""  # the owner has decided about it
    if marks.expires is not None and has_expired(marks.expires, now):
        return "expired"
    old = untouched_since is not None and expire_days > 0 and now - untouched_since > expire_days * DAY_MS
    return UNUSED if old else ""


def has_expired(at: int, now: int) -> bool:
    """Check whether a time has passed; a date without a time has passed when it has ended in every time zone."""
    return now > at + (0 if at % DAY_MS else DAY_MS + DAY_MS // 2)


def archive_path(path: str, inbox: str) -> str:
    """Return the path of a capture, or of its stored file, in the archive."""
    return f"{inbox}/{ARCHIVE}/{path.removeprefix(f'{inbox}/')}"


def inbox_path(path: str, inbox: str) -> str:
    """Return the original path of an archived file. Raises InvalidArgument for a path outside the archive."""
    folder = f"{inbox}/{ARCHIVE}/"
    back = f"{inbox}/{path.removeprefix(folder)}"
    if not path.startswith(folder) or locate(back, inbox).scope != "captures":
        raise InvalidArgument(f"{path!r} is not an archived capture", path=path[:200])
    return back


def archive_text(text: str, why: str) -> str:
    """Return the text of an archived capture: `review: dismissed` is added if the owner dismissed it.

    Raises FrontmatterError if its properties can't be changed."""
    return edit(text, {"review": DISMISSED}) if why == DISMISSED else text


def restore_text(text: str, now: int) -> str:
    """Return the text of a restored capture, changed where necessary so that it is not archived again for the same reason.

    Raises FrontmatterError if its properties can't be changed."""
    values = read_properties(split(text)[0])
    changes: dict[str, PropertyValue] = {
        key: None
        for key, value in values.items()
        if key.casefold() == "review" and isinstance(value, str) and value.strip().casefold() == DISMISSED
    }
    back = edit(text, changes)
    marked = read_marks(back)
    again = marked.review is None and not changes
    return (
        edit(back, {"review": KEEP})
        if again or archive_reason(marked, now=now, untouched_since=None, expire_days=0)
        else back
    )
