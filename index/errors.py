"""Define the errors that callers may expect, each with a code that is stable API.

HTTP statuses, MCP results and exit codes are tables in `mcp_server` and the command line, keyed by `code`."""

from __future__ import annotations

from typing import Any, ClassVar, Final

# In a sentence, why no index can be written or searched; status says it too.
EARLY_CLOCK: Final = (
    "the clock of this machine says a time before 1970, with which the search index can't work; set it, and all goes on"
)


class MemexError(Exception):
    """An expected failure; `message` names the thing and the way out, and is safe to show to any caller."""

    code: ClassVar[str]
    _retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retryable: bool | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = self._retryable if retryable is None else retryable
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """The error as every surface shows it: code, message, retryable, details."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable, "details": self.details}


class InvalidArgument(MemexError):
    """A value is missing, malformed, out of range or unknown."""

    code = "INVALID_ARGUMENT"


class Unauthenticated(MemexError):
    """No credential, or one that is not valid."""

    code = "UNAUTHENTICATED"


class PermissionDenied(MemexError):
    """The key lacks the scope."""

    code = "PERMISSION_DENIED"


class NotFound(MemexError):
    """No such id, name or workspace, or one that the key may not see: the words are the same."""

    code = "NOT_FOUND"


class Conflict(MemexError):
    """A version mismatch, a name that is taken, or a file that changed underneath."""

    code = "CONFLICT"


class ResourceExhausted(MemexError):
    """Too large, too many or too fast."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(MemexError):
    """The model, the store, Git or the disk failed; nothing was changed."""

    code = "UNAVAILABLE"
    _retryable = True


class LibrariesMissing(Unavailable):
    """A setting asks for libraries that are not installed with Memex; its message has the line that installs them."""

    _retryable = False


class IndexUnusable(Unavailable):
    """An index can't be read or written, for no cause that is known to pass; made anew from the notes, it can."""


CODES: dict[str, type[MemexError]] = {
    kind.code: kind
    for kind in (InvalidArgument, Unauthenticated, PermissionDenied, NotFound, Conflict, ResourceExhausted, Unavailable)
}


def from_dict(error: dict[str, Any]) -> MemexError:
    """The error that `as_dict` wrote, on the other side of a wire."""
    kind = CODES.get(error["code"], Unavailable)
    return kind(error["message"], retryable=error["retryable"], **error.get("details", {}))
