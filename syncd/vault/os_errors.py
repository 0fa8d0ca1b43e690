"""Translate OS errors about a file of the vault into Memex's stable error codes and messages."""

from __future__ import annotations

import errno

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from syncd.vault.listing import words


def failure(error: OSError, path: str, *, making: bool) -> MemexError:  # noqa: PLR0911 - a table, one line a case
    """An error of the system at `path`, in the words of the vault; `making`: something new was to be put there."""
    match error.errno:
        case errno.EEXIST:
            return Conflict(f"{path} exists already")
        case errno.ENOTEMPTY:
            return Conflict(f"{path} is not empty")
        case errno.ENOENT:
            return NotFound(f"nothing is at {path}")
        case errno.ENOTDIR | errno.ELOOP | errno.EXDEV | errno.EISDIR:
            blocked = Conflict if making else NotFound
            return blocked(f"no file is at {path}: a link or another file stands in its way")
        case errno.ENAMETOOLONG:
            return InvalidArgument(f"the name of {path} is too long for the disk")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Unavailable(f"{path}: {words(error)}", retryable=False)
        case _:
            return Unavailable(f"{path}: {words(error)}")
