"""Turn disk errors into errors of the vault, with sentences that never name a path of the host."""

from __future__ import annotations

import errno
import os
from io import FileIO
from pathlib import Path

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable


class NameTaken(Conflict):
    """Reports that the name of a new file is taken; another name may be free."""


class FolderBlocked(Conflict):
    """Reports that a file or a link has the name of a needed folder: no other name helps."""


def failure(error: OSError, path: str, *, making: bool) -> MemexError:  # noqa: PLR0911 - a table, one line per case
    """Return the error of the vault for a system error at `path`; `making`: while creating something new."""
    match error.errno:
        case errno.EEXIST:
            return NameTaken(f"{path} already exists")
        case errno.ENOTEMPTY:
            return Conflict(f"{path} is not empty")
        case errno.ENOENT:
            return NotFound(f"{path} does not exist")
        case errno.ENOTDIR | errno.ELOOP | errno.EXDEV | errno.EISDIR:
            if making:
                return FolderBlocked(f"{path} can't be created: a link or a file blocks the path")
            return NotFound(f"no file exists at {path}: a link or a file blocks the path")
        case errno.ENAMETOOLONG:
            return InvalidArgument(f"the name of {path} is too long for the disk")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Unavailable(f"{path}: {error_text(error)}", retryable=False)
        case _:
            return Unavailable(f"{path}: {error_text(error)}")


def open_source(source: Path, path: str) -> FileIO:
    """Open the file whose bytes are to be stored at `path`."""
    try:
        return source.open("rb", buffering=0)
    except OSError as error:
        raise failure(error, f"the source of {path}", making=False) from error


def error_text(error: OSError) -> str:
    """Describe an error and its solution; never names a path of the host."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full; free some space and try again"
        case errno.EROFS:
            return "the disk is mounted read-only"
        case errno.EACCES | errno.EPERM:
            return "permission denied; give access to the account that Memex runs under; memex doctor names the folder and the command"
        case errno.EMFILE | errno.ENFILE:
            return "too many files are open"
        case _:
            return os.strerror(error.errno or 0)
