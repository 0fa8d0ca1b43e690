"""Define the errors that callers may expect, each with a code that is stable API.

HTTP statuses, MCP results and exit codes are tables in `mcp_server` and the command line, keyed by `code`."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

# In a sentence, why no index can be written or searched; status says it too.
EARLY_CLOCK: Final = "the clock of this machine shows a time before 1970, with which the search index can't work; set the clock to continue"


class MemexError(Exception):
    """Reports an expected failure; `message` names the cause and the way out, and is safe to show to any caller."""

    code: ClassVar[str]
    _retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retryable: bool | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = self._retryable if retryable is None else retryable
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """Return the error as every interface shows it: code, message, retryable, details."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable, "details": self.details}


class InvalidArgument(MemexError):
    """Reports a value that is missing, malformed, out of range or unknown."""

    code = "INVALID_ARGUMENT"


class Unauthenticated(MemexError):
    """Reports a missing or invalid credential."""

    code = "UNAUTHENTICATED"


class PermissionDenied(MemexError):
    """Reports that the key lacks a right."""

    code = "PERMISSION_DENIED"


class NotFound(MemexError):
    """Reports an unknown id, name or workspace, or one that the key may not see, in the same words."""

    code = "NOT_FOUND"


class Conflict(MemexError):
    """Reports a version mismatch, a taken name, or a file that changed meanwhile."""

    code = "CONFLICT"


class ResourceExhausted(MemexError):
    """Reports a request that is too large, too frequent, or one of too many."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(MemexError):
    """Reports that the model, the index, Git or the disk failed; nothing was changed."""

    code = "UNAVAILABLE"
    _retryable = True


class LibrariesMissing(Unavailable):
    """Reports that a setting needs libraries that are not installed; the message has the command that installs them."""

    _retryable = False


class IndexUnusable(Unavailable):
    """Reports that an index can't be read or written, for a cause that is not known to be temporary; a rebuild from the notes helps."""


CODES: dict[str, type[MemexError]] = {
    kind.code: kind
    for kind in (InvalidArgument, Unauthenticated, PermissionDenied, NotFound, Conflict, ResourceExhausted, Unavailable)
}


def from_dict(error: dict[str, Any]) -> MemexError:
    """Rebuild the error that `as_dict` encoded on the other side of a connection."""
    kind = CODES.get(error["code"], Unavailable)
    return kind(error["message"], retryable=error["retryable"], **error.get("details", {}))


def from_os_error(error: OSError) -> MemexError:
    """Return an error of the system as one of Memex, for the owner: it names the file and the reason."""
    if isinstance(error, PermissionError):
        return PermissionDenied(f"{error.filename or 'a file'} can't be read or written: {error.strerror}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" ({error.filename})" if error.filename else ""
        return Unavailable(f"the disk is full{where}: free some space, then run the command again")
    return Unavailable(f"{error.filename or 'the system'}: {error.strerror or error}")


def run_all(steps: Iterable[Callable[[], object]]) -> None:
    """Run all steps, also those after one that fails. Raises the first MemexError after the last step."""
    errors: list[MemexError] = []
    for step in steps:
        try:
            step()
        except MemexError as error:
            errors.append(error)
    if errors:
        raise errors[0]
