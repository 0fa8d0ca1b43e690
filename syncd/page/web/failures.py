"""Map failures of an operation to what the page shows: an HTTP status, what happened, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from index.errors import MemexError, ResourceExhausted
from syncd.daemon.control_socket import DaemonEnded, DaemonSilent, NoDaemon


@dataclass(frozen=True, slots=True)
class Failure:
    """Describes a failure to a person."""

    status: int  # of the HTTP response
    title: str
    sentence: str
    advice: str
    waits: bool = False  # whether the page reloads by itself once the daemon answers


_BY_CODE: Final = {
    "INVALID_ARGUMENT": (400, "Check what you entered", "Go back, correct it, and send it again."),
    "UNAUTHENTICATED": (401, "Not signed in", "Run `memex open` in a terminal."),
    "PERMISSION_DENIED": (403, "Not allowed", "Reload the page, and try again."),
    "NOT_FOUND": (404, "Not found", "It may have been moved or deleted. If it is a note, search finds it by its text."),
    "CONFLICT": (409, "Something changed in the meantime", "Nothing was changed. Reload, compare, and decide again."),
    "RESOURCE_EXHAUSTED": (429, "Too much at once", "Wait a moment, then try again."),
    "UNAVAILABLE": (503, "Not available at the moment", "Nothing was changed. Try again in a moment."),
}
_GONE: Final = Failure(
    503,
    "The daemon does not run",
    "This page shows what the daemon answers, and no daemon runs for this vault.",
    "Start it in a terminal with `memex serve`. This page continues by itself when the daemon is back.",
    waits=True,
)
_SILENT: Final = Failure(
    503,
    "The daemon does not answer",
    "It is busy, or it hangs. If you changed something, check whether it was done before you repeat it.",
    "This page continues by itself when the daemon answers. If that takes long, restart it: `memex stop`, then `memex serve`.",
    waits=True,
)
_ENDED: Final = Failure(
    503,
    "The daemon ended",
    "It stopped or crashed before it answered. If you changed something, check whether it was done before you repeat it.",
    "This page continues by itself when the daemon is back. The reason is in the daemon's log.",
    waits=True,
)


def describe_failure(error: MemexError) -> Failure:
    """Return what the page shows for an error."""
    if isinstance(error, NoDaemon):
        return _GONE
    if isinstance(error, DaemonSilent):
        return _SILENT
    if isinstance(error, DaemonEnded):
        return _ENDED
    if isinstance(error, ResourceExhausted) and "limit" in error.details and not error.retryable:
        return Failure(413, "Too large", error.message, "Nothing was changed. Send something smaller.")
    status, title, advice = _BY_CODE[error.code]
    return Failure(status, title, error.message, advice)
