"""Keep the browser sessions of the page in memory: a one-time link becomes a session, which can be listed and revoked.

Laws, tested: a link works once, within a minute. Only digests of secrets are kept, and a session ends with the
process."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LINK_S: Final = 60.0  # seconds within which a link must be used
UNUSED_S: Final = 24 * 3600.0  # seconds without a request after which a session ends
UNSHOWN_S: Final = 600.0  # seconds for which the lines of a new key wait to be shown
LINKS: Final = 16  # most links that wait for their browser
MOST: Final = 64  # most sessions; the one that was unused longest makes room
AGENT: Final = 120  # characters kept of a browser's description of itself


@dataclass(frozen=True, slots=True)
class UndoStep:
    """Describes a change that a browser made, and the operation that undoes it."""

    sentence: str  # what was done
    operation: str
    arguments: Mapping[str, Any]
    id: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True, slots=True)
class Unshown:
    """Holds what a browser may see once, until a time (epoch seconds)."""

    value: Any
    until: float


@dataclass(slots=True)
class Session:
    """Describes the session of one browser; times are epoch seconds."""

    id: str
    csrf: str  # the token that every change must carry
    browser: str
    created_at: float
    seen_at: float
    has_letter_keys: bool = True  # whether single letters are shortcuts in this browser
    messages: list[str] = field(default_factory=list)  # shown once, on the next page
    steps: dict[str, list[UndoStep]] = field(default_factory=dict)  # by view: what can be undone, the last one last
    shown_once: dict[str, Unshown] = field(default_factory=dict)  # by the id of a key: its lines, until they are shown
    sent: dict[str, str] = field(default_factory=dict)  # by the mark of a form that was carried out: where it led
    lock: threading.Lock = field(default_factory=threading.Lock)  # held while a step is taken


class Sessions:
    """Manages links and sessions. Safe from any thread; `clock` returns epoch seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._links: dict[str, float] = {}  # digest → when it was made
        self._sessions: dict[str, Session] = {}  # digest of the cookie's value → session

    def make_link(self) -> str:
        """Return the secret of a new one-time link."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest(secret)] = self._clock()
            for old in list(self._links)[:-LINKS]:
                del self._links[old]
        return secret

    def redeem(self, link: str, browser: str) -> str | None:
        """Return the secret of a new session for a link; None if the link was used before or is too old."""
        now, secret = self._clock(), secrets.token_urlsafe(32)
        with self._lock:
            made = self._links.pop(_digest(link), None)
            if made is None or not 0 <= now - made <= LINK_S:
                return None
            session = Session(secrets.token_hex(4), secrets.token_urlsafe(32), browser[:AGENT], now, now)
            self._sessions[_digest(secret)] = session
            if len(self._sessions) > MOST:
                del self._sessions[min(self._sessions, key=lambda digest: self._sessions[digest].seen_at)]
        return secret

    def find(self, secret: str) -> Session | None:
        """Return the session of a cookie's value, and note that it is in use; None if there is none."""
        with self._lock:
            self.drop_overdue()
            session = self._sessions.get(_digest(secret))
            if session is not None:
                session.seen_at = self._clock()
            return session

    def keep_open(self, session: Session) -> bool:
        """Note that a session is in use; return False if it was revoked since."""
        with self._lock:
            session.seen_at = self._clock()
            return any(kept is session for kept in self._sessions.values())

    def list_open(self) -> list[dict[str, Any]]:
        """Return the open sessions, the one used last first."""
        with self._lock:
            self.drop_overdue()
            kept = sorted(self._sessions.values(), key=lambda session: -session.seen_at)
            return [
                {
                    "id": session.id,
                    "browser": session.browser,
                    "created_at": int(session.created_at * 1000),
                    "seen_at": int(session.seen_at * 1000),
                }
                for session in kept
            ]

    def revoke(self, id: str) -> bool:
        """End the session with this id; return whether there was one."""
        with self._lock:
            digests = [digest for digest, session in self._sessions.items() if session.id == id]
            for digest in digests:
                del self._sessions[digest]
        return bool(digests)

    def drop_overdue(self) -> None:
        """End the sessions that were unused for too long, and forget what no browser asked for in time."""
        now = self._clock()
        with self._lock:
            self._sessions = {
                digest: session for digest, session in self._sessions.items() if session.seen_at >= now - UNUSED_S
            }
            for session in self._sessions.values():
                for id, unshown in list(session.shown_once.items()):
                    if unshown.until < now:
                        session.shown_once.pop(id, None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
