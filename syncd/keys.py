"""Who may do what: API keys, stored as hashes, looked up by their public part, compared in constant time.

Law: scopes, surfaces and workspaces belong to the key; a request can only narrow them."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from index.errors import Conflict, InvalidArgument, NotFound
from syncd.ledger import Ledger

SCOPES: Final = ("read", "write", "admin")
SURFACES: Final = ("mcp", "rest")
PREFIX: Final = "mx"
LONGEST_NAME: Final = 64

_ALL: Final = (
    "SELECT id, name, scopes, workspaces, surfaces, created_at, expires_at, revoked_at, last_used_at, digest FROM keys"
)
_NOBODY: Final = b"\0" * 32  # compared with when no key has the id, so that an unknown id takes as long as a known one


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret. Times are epoch milliseconds."""

    id: str
    name: str
    scopes: frozenset[str]
    workspaces: frozenset[str] | None  # None = all
    surfaces: frozenset[str]
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None

    def sees(self, workspace: str) -> bool:
        """Whether the key may see `workspace` at all."""
        return self.workspaces is None or workspace in self.workspaces

    def may(self, scope: str) -> bool:
        """Whether the key has `scope`; no scope implies another."""
        return scope in self.scopes

    def live(self, now: int) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Keys:
    """The keys of one ledger, read once and kept in memory; `static` secrets live only as long as the process.

    `static` maps a surface ("mcp", "rest") to a secret from the environment: a key with read and write, for all
    workspaces, on that surface."""

    def __init__(self, ledger: Ledger, *, static: Mapping[str, str] | None = None) -> None:
        self._ledger = ledger
        self._lock = threading.RLock()
        self._static = _static(static or {})
        self._keys: dict[str, tuple[Key, bytes]] = {}
        self._used: dict[str, int] = {}  # id -> last use, not yet written
        self._version = -1
        self._load()

    def create(
        self,
        name: str,
        *,
        workspaces: Collection[str] | None,
        scopes: Collection[str] = ("read", "write"),
        surfaces: Collection[str] = SURFACES,
        expires_at: int | None = None,
        now: int,
    ) -> tuple[Key, str]:
        """A new key and its secret, which is never shown again; Conflict when a live key has the name."""
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise InvalidArgument(f"a key's name has 1 to {LONGEST_NAME} printable characters and no blank at its ends")
        if workspaces is not None and not workspaces:
            raise InvalidArgument("a key needs a workspace; name one, or give it all of them")
        if expires_at is not None and expires_at <= now:
            raise InvalidArgument("the key would be expired already; choose a later time")
        key = Key(
            id=secrets.token_hex(6),
            name=name,
            scopes=_known("scope", scopes, SCOPES),
            workspaces=None if workspaces is None else frozenset(workspaces),
            surfaces=_known("surface", surfaces, SURFACES),
            created_at=now,
            expires_at=expires_at,
        )
        secret = f"{PREFIX}_{key.id}_{secrets.token_hex(32)}"
        with self._lock:
            self._load()
            if any(known.name == name and known.revoked_at is None for known, _ in self._keys.values()):
                raise Conflict(f"there is a key named {name!r}; revoke it first, or choose another name")
            row = (
                *(key.id, name, _joined(key.scopes), None if workspaces is None else json.dumps(sorted(workspaces))),
                *(_joined(key.surfaces), now, expires_at, _digest(secret)),
            )
            with self._ledger.writing():
                self._ledger.run(
                    "INSERT INTO keys (id, name, scopes, workspaces, surfaces, created_at, expires_at, digest)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            self._keys[key.id] = (key, _digest(secret))
        return key, secret

    def authenticate(self, secret: str, *, now: int) -> Key | None:
        """The live key that `secret` belongs to; None for anything else."""
        digest = _digest(secret)
        prefix, _, rest = secret.partition("_")
        with self._lock:
            self._load()
            key, expected = self._keys.get(rest.partition("_")[0] if prefix == PREFIX else "", (None, _NOBODY))
            if hmac.compare_digest(digest, expected) and key is not None and key.live(now):
                self._used[key.id] = now
                return key
        for key, expected in self._static:
            if hmac.compare_digest(digest, expected):
                return key
        return None

    def live(self, id: str, *, now: int) -> bool:
        """Whether the key that authenticated a while ago still would: what long-lived streams ask."""
        with self._lock:
            self._load()
            found = self._keys.get(id)
        return found[0].live(now) if found else any(key.id == id for key, _ in self._static)

    def list(self) -> list[Key]:
        """All keys, oldest first, revoked ones too."""
        with self._lock:
            self._load()
            keys = [
                replace(key, last_used_at=self._used.get(key.id, key.last_used_at)) for key, _ in self._keys.values()
            ]
        return sorted(keys, key=lambda key: (key.created_at, key.id))

    def revoke(self, name_or_id: str, *, now: int) -> Key:
        """End a key, at once; of several with a name the live one is meant. Revoking twice changes nothing."""
        with self._lock:
            self._load()
            named = [key for key, _ in self._keys.values() if name_or_id in (key.id, key.name)]
            if not named:
                raise NotFound(f"no key {name_or_id!r}; `memex key list` shows them all")
            key = min(named, key=lambda key: (key.revoked_at is not None, -key.created_at))
            if key.revoked_at is not None:
                return key
            with self._ledger.writing():
                self._ledger.run("UPDATE keys SET revoked_at = ? WHERE id = ?", (now, key.id))
            revoked = replace(key, revoked_at=now)
            self._keys[key.id] = (revoked, self._keys[key.id][1])
        return revoked

    def flush(self) -> None:
        """Write the times of last use: a request must not wait for the disk, so this is called now and then."""
        with self._lock:
            if not self._used:
                return
            used, self._used = self._used, {}
            with self._ledger.writing():
                for used_id, at in used.items():
                    self._ledger.run("UPDATE keys SET last_used_at = ? WHERE id = ?", (at, used_id))
            for used_id, at in used.items():
                if used_id in self._keys:
                    key, digest = self._keys[used_id]
                    self._keys[used_id] = (replace(key, last_used_at=at), digest)

    def _load(self) -> None:
        """Read the table when it was never read, or when another process has written to the ledger."""
        version = self._ledger.version()
        if version == self._version:
            return
        self._version = version
        self._keys = {row[0]: (_key(row), row[-1]) for row in self._ledger.rows(_ALL)}


def _key(row: tuple[object, ...]) -> Key:
    own, name, scopes, workspaces, surfaces, created_at, expires_at, revoked_at, last_used_at, _ = row
    return Key(
        id=str(own),
        name=str(name),
        scopes=frozenset(str(scopes).split(",")),
        workspaces=None if workspaces is None else frozenset(json.loads(str(workspaces))),
        surfaces=frozenset(str(surfaces).split(",")),
        created_at=_time(created_at) or 0,
        expires_at=_time(expires_at),
        revoked_at=_time(revoked_at),
        last_used_at=_time(last_used_at),
    )


def _time(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _joined(words: Collection[str]) -> str:
    return ",".join(sorted(words))


def _known(what: str, words: Collection[str], known: tuple[str, ...]) -> frozenset[str]:
    strange = sorted(set(words) - set(known))
    if strange or not words:
        raise InvalidArgument(
            f"a key's {what}s are some of {', '.join(known)}" + (f", not {strange[0]!r}" if strange else "")
        )
    return frozenset(words)


def _digest(secret: str) -> bytes:
    """SHA-256 is enough: a secret has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _static(secrets_by_surface: Mapping[str, str]) -> tuple[tuple[Key, bytes], ...]:
    """Keys of the environment; one secret given for both surfaces is one key."""
    surfaces: dict[str, set[str]] = {}
    for surface, secret in secrets_by_surface.items():
        if secret:
            surfaces.setdefault(secret, set()).update(_known("surface", (surface,), SURFACES))
    return tuple(
        (
            Key(
                id=f"env-{'-'.join(sorted(where))}",
                name=f"environment ({', '.join(sorted(where))})",
                scopes=frozenset(("read", "write")),
                workspaces=None,
                surfaces=frozenset(where),
                created_at=0,
            ),
            _digest(secret),
        )
        for secret, where in surfaces.items()
    )
