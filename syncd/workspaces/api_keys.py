"""Store API keys as hashes, and decide what each key may do: look up a key by its public part, compare in constant time.

Law: scopes, surfaces, workspaces and a namespace belong to the key; a request can only narrow them."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from index.names import did_you_mean, pluralize
from index.text.hidden_characters import remove_ignorable
from syncd.notes.secret_patterns import refuse_secret
from syncd.notes.timestamps import DAY_MS
from syncd.state.ledger import Ledger
from syncd.vault.location import namespace_path

SCOPES: Final = ("read", "write", "admin")
SURFACES: Final = ("mcp", "rest")
PREFIX: Final = "mx"
SECRET: Final = re.compile(rf"{PREFIX}_[0-9a-f]{{12}}_[0-9a-f]{{64}}", re.ASCII)
LONGEST_NAME: Final = 64
ENVIRONMENT: Final = {"mcp": "KB_MCP_API_KEY", "rest": "KB_API_KEY"}  # surface -> environment variable with its secret
LEAST_SECRET: Final = 16  # shortest secret that a person may choose: a guessed one opens every workspace
# No key ends later. The year 9999 in UTC: each earlier time is a valid `datetime` in every time zone.
END_OF_KEYS_MS: Final = 253_370_764_800_000
EXPIRING_MS: Final = 14 * DAY_MS  # how long before its expiry a key is reported

log = logging.getLogger(__name__)

_ALL: Final = (
    "SELECT id, name, scopes, workspaces, surfaces, created_at, expires_at, revoked_at, last_used_at, serial, old_until, namespace,"
    " digest, old_digest FROM keys"
)
_NOBODY: Final = b"\0" * 32  # compared when no key has the id, so that unknown and known ids take equal time


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Describes a key without its secret. Times are epoch milliseconds."""

    id: str
    name: str
    scopes: frozenset[str]
    workspaces: frozenset[str] | None  # None = all
    surfaces: frozenset[str]
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    serial: int = 1  # number of its current secret; for an authenticated key, the number of the secret that was used
    old_until: int | None = None  # the previous secret is valid until then
    namespace: str | None = None  # it sees only this namespace of its workspaces; None = all namespaces

    def can_see(self, workspace: str) -> bool:
        """Return whether the key may see `workspace`."""
        return self.workspaces is None or unicodedata.normalize("NFC", workspace) in self.workspaces

    def has_scope(self, scope: str) -> bool:
        """Return whether the key has `scope`; no scope implies another."""
        return scope in self.scopes

    def is_live(self, now: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def read_environment_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets from the environment, by surface. Raises InvalidArgument for one that is too short."""
    secrets_given = {surface: environ[name].strip() for surface, name in ENVIRONMENT.items() if environ.get(name)}
    for surface, secret in secrets_given.items():
        if len(secret) < LEAST_SECRET:
            raise InvalidArgument(
                f"{ENVIRONMENT[surface]} has {pluralize(len(secret), 'character')}, but a key needs at least {LEAST_SECRET}: set a longer one "
                "(for example with `openssl rand -hex 32`), or unset it and create a key with `memex key create`"
            )
    return secrets_given


class ApiKeys:
    """Manages the keys of one ledger, read once and kept in memory; `static` secrets exist only in this process.

    `static` maps a surface ("mcp", "rest") to a secret from the environment: a key with read and write scope for all
    workspaces on that surface."""

    def __init__(self, ledger: Ledger, *, static: Mapping[str, str] | None = None) -> None:
        self._ledger = ledger
        self._lock = threading.RLock()
        self._static = _static_keys(static or {})
        # id -> key, digests of its secret and of the previous one
        self._keys: dict[str, tuple[ApiKey, bytes, bytes]] = {}
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
        namespace: str | None = None,
        expires_at: int | None = None,
        secret: str | None = None,
        replaces: bool = False,
        now: int,
    ) -> tuple[ApiKey, str]:
        """Create a key, and return it with its secret, which is never shown again.

        Raises Conflict when a live key has the name; with `replaces`, that key is revoked in the same transaction.

        `secret`: a secret that was made before, by `make_secret` or for a lost ledger."""
        secret = secret or make_secret()
        _check_new_key(name, workspaces, expires_at, now)
        if namespace is not None:
            namespace = unicodedata.normalize("NFC", namespace)
            _check_namespace(namespace, scopes)
        key = ApiKey(
            id=secret.split("_")[1],
            name=name,
            scopes=_check_known("scope", scopes, SCOPES),
            workspaces=None if workspaces is None else _composed(workspaces),
            surfaces=_check_known("surface", surfaces, SURFACES),
            created_at=now,
            expires_at=expires_at,
            namespace=namespace,
        )
        with self._lock:
            self._load()
            earlier = self._find_key(name)
            if earlier is not None and not replaces:
                raise Conflict(f"a key named {name!r} exists; revoke it first, or choose another name")
            self._store(key, _hash_secret(secret), earlier, now)
        return key, secret

    def _store(self, key: ApiKey, digest: bytes, earlier: ApiKey | None, now: int) -> None:
        """Store a new key, and revoke the earlier one that it replaces."""
        with self._ledger.transaction():
            if earlier is not None:
                self._write_revoked(earlier, now)
            self._insert(key, digest)
            self._log_event("created", key, now)
        if earlier is not None:
            self._note_revoked(earlier, now)
        self._keys[key.id] = (key, digest, _NOBODY)

    def rename(self, key_id: str, name: str, *, now: int) -> ApiKey:
        """Give a key another name; an earlier key of that name is revoked in the same transaction."""
        with self._lock:
            self._load()
            key = self._require_key(key_id)
            earlier, renamed = self._find_key(name), replace(key, name=name)
            if earlier == key:
                return key
            with self._ledger.transaction():
                if earlier is not None:
                    self._write_revoked(earlier, now)
                self._ledger.execute("UPDATE keys SET name = ? WHERE id = ?", (name, key.id))
                self._log_event("renamed", renamed, now)
            if earlier is not None:
                self._note_revoked(earlier, now)
            self._keys[key.id] = (renamed, *self._keys[key.id][1:])
        return renamed

    def rotate(
        self,
        name_or_id: str,
        *,
        overlap_ms: int,
        expires_at: int | None = None,
        now: int,
        storing: Callable[[ApiKey, str], AbstractContextManager[object]] = lambda *_: nullcontext(),
    ) -> tuple[ApiKey, str]:
        """Give a key a new secret, and keep its name and rights; the previous secret stays valid for `overlap_ms`.

        With `expires_at` the key then expires at that time; an expired key requires it. The change is made inside
        `storing`, which gets the key and the new secret: if it can't store the secret, the previous one stays valid."""
        with self._lock:
            self._load()
            key = self._require_key(name_or_id)
            ends = key.expires_at if expires_at is None else expires_at
            if ends is not None and ends <= now:
                raise InvalidArgument(
                    f"the key {key.name!r} has expired, or would expire at once: give a later expiry time"
                )
            # The old secret of an expired key must not become valid again.
            old_until = now + overlap_ms if overlap_ms > 0 and key.is_live(now) else None
            _check_end(expires_at)
            _check_end(old_until)
            old = self._keys[key.id][1] if old_until is not None else _NOBODY
            rotated = replace(key, expires_at=ends, serial=key.serial + 1, old_until=old_until)
            secret = make_secret(key.id)
            with storing(rotated, secret), self._ledger.transaction():
                self._ledger.execute(
                    "UPDATE keys SET digest = ?, old_digest = ?, old_until = ?, serial = ?, expires_at = ? WHERE id = ?",
                    (_hash_secret(secret), old if old_until else None, old_until, rotated.serial, ends, key.id),
                )
                self._log_event("rotated", key, now)
            self._keys[key.id] = (rotated, _hash_secret(secret), old)
        log.warning("key %s (%r) has a new secret", key.id, key.name)
        return rotated, secret

    def authenticate(self, secret: str, *, now: int) -> ApiKey | None:
        """Return the live key of `secret`, and record its use; None for anything else."""
        with self._lock:
            key = self.identify(secret, now=now)
            if key is not None and key.id in self._keys:
                self._used[key.id] = now
        return key

    def identify(self, secret: str, *, now: int) -> ApiKey | None:
        """Return the live key of `secret`; None for anything else. Its use is not recorded.

        For the secret before the newest one, the key's end is the end of that secret."""
        digest = _hash_secret(secret)
        prefix, _, rest = secret.partition("_")
        with self._lock:
            self._load()
            key_id = rest.partition("_")[0] if prefix == PREFIX else ""
            key, newest, old = self._keys.get(key_id, (None, _NOBODY, _NOBODY))
            is_newest, is_old = hmac.compare_digest(digest, newest), hmac.compare_digest(digest, old)
            if key is not None and (is_newest or is_old):
                presented = key if is_newest else replace(key, serial=key.serial - 1)
                if _is_current(presented, key, now):
                    return presented if is_newest else replace(presented, expires_at=_old_end(key))
        for key, expected in self._static:
            if hmac.compare_digest(digest, expected):
                return key
        return None

    def is_live(self, key: ApiKey, *, now: int) -> bool:
        """Return whether a key that was authenticated earlier is still valid, for long-lived streams."""
        with self._lock:
            self._load()
            stored = self._keys.get(key.id)
        return key.is_live(now) and (
            _is_current(key, stored[0], now) if stored else any(known.id == key.id for known, _ in self._static)
        )

    def find_live(self, name: str, *, now: int) -> ApiKey | None:
        """Return the live key with this name, for a caller that somebody else has authenticated."""
        with self._lock:
            self._load()
            key = next((key for key, *_ in self._keys.values() if key.name == name and key.is_live(now)), None)
            if key is not None:
                self._used[key.id] = now
        return key

    def is_bound(self, workspace: str, namespace: str) -> bool:
        """Return whether an unrevoked key is bound to this namespace of `workspace`; an expired one may be rotated."""
        with self._lock:
            self._load()
            return any(
                key.namespace == namespace and key.can_see(workspace) and key.revoked_at is None
                for key, *_ in self._keys.values()
            )

    def list(self) -> list[ApiKey]:
        """Return all keys, oldest first, including revoked ones."""
        with self._lock:
            self._load()
            keys = [
                replace(key, last_used_at=self._used.get(key.id, key.last_used_at)) for key, *_ in self._keys.values()
            ]
        return sorted(keys, key=lambda key: (key.created_at, key.id))

    def revoke(self, name_or_id: str, *, now: int) -> ApiKey:
        """Revoke a key at once; if several have the name, the live one. Revoking twice changes nothing."""
        with self._lock:
            self._load()
            named = [key for key, *_ in self._keys.values() if name_or_id in (key.id, key.name)]
            if not named:
                near = did_you_mean(name_or_id, [key.name for key, *_ in self._keys.values()])
                raise NotFound(f"no key {name_or_id!r}{near or ';'} `memex key list` shows all keys")
            key = min(named, key=lambda key: (key.revoked_at is not None, -key.created_at))
            if key.revoked_at is not None:
                return key
            with self._ledger.transaction():
                self._write_revoked(key, now)
            return self._note_revoked(key, now)

    def reset(self, name: str, secret: str, *, instead_of: Collection[str], now: int) -> ApiKey:
        """Create a key with all rights, named `name`; revoke the key with that name and those with the ids `instead_of`."""
        with self._lock:
            self._load()
            for key, *_ in list(self._keys.values()):
                if key.revoked_at is None and (key.name == name or key.id in instead_of):
                    self.revoke(key.id, now=now)
            made, _ = self.create(name, workspaces=None, scopes=SCOPES, secret=secret, now=now)
            with self._ledger.transaction():
                self._log_event("reset", made, now)
        log.warning("key %s (%r) was created by `memex key reset`", made.id, name)
        return made

    def history(self) -> Sequence[Mapping[str, Any]]:
        """Return the events of keys, oldest first."""
        rows = self._ledger.query("SELECT at, event, key_id, name FROM key_events ORDER BY rowid")
        return [{"at": at, "event": event, "id": key_id, "name": name} for at, event, key_id, name in rows]

    def facts(self, now: int) -> dict[str, Any]:
        """Return the number of live keys, and which of them expire soon."""
        try:
            live = [key for key in self.list() if key.is_live(now)]
        except Unavailable as error:  # the ledger fails; the status must still work
            return {"live": 0, "expiring": [], "problem": error.message}
        soon = now + EXPIRING_MS
        expiring = [key.name for key in live if key.expires_at is not None and key.expires_at <= soon]
        return {"live": len(live), "expiring": expiring}

    def flush(self) -> None:
        """Write the times of last use; requests don't write them, so that they don't wait for the disk."""
        with self._lock:
            if not self._used:
                return
            used, self._used = self._used, {}
        try:
            # Without the lock, so that requests don't wait for the disk.
            rows = ((at, used_id) for used_id, at in used.items())
            self._ledger.execute_each("UPDATE keys SET last_used_at = ? WHERE id = ?", rows)
        except BaseException:
            with self._lock:
                self._used = used | self._used
            raise

    def _load(self) -> None:
        """Read the table, if it was never read or another process has changed the ledger."""
        version = self._ledger.data_version()
        if version == self._version:
            return
        before = self._keys
        self._keys = {row[0]: (_key_of_row(row), row[-2], row[-1] or _NOBODY) for row in self._ledger.query(_ALL)}
        self._version = version  # not before: after a failure the table is read again
        if before and {key_id: digests for key_id, (_, *digests) in before.items()} != {
            key_id: digests for key_id, (_, *digests) in self._keys.items()
        }:
            log.warning("another process changed the keys; see `memex key history`")

    def _find_key(self, name_or_id: str) -> ApiKey | None:
        """Return the unrevoked key with this name or id; it may have expired."""
        unrevoked = (key for key, *_ in self._keys.values() if key.revoked_at is None)
        return next((key for key in unrevoked if name_or_id in (key.id, key.name)), None)

    def _require_key(self, name_or_id: str) -> ApiKey:
        if (key := self._find_key(name_or_id)) is None:
            raise NotFound(f"no live key {name_or_id!r}; `memex key list` shows all keys")
        return key

    def _insert(self, key: ApiKey, digest: bytes) -> None:
        """Insert a new key (inside a `transaction`)."""
        workspaces = None if key.workspaces is None else json.dumps(sorted(key.workspaces))
        self._ledger.execute(
            "INSERT INTO keys (id, name, scopes, workspaces, surfaces, created_at, expires_at, namespace, digest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(key.id, key.name, _join(key.scopes), workspaces),
                *(_join(key.surfaces), key.created_at, key.expires_at, key.namespace, digest),
            ),
        )

    def _write_revoked(self, key: ApiKey, now: int) -> None:
        """Revoke a key in the ledger (inside a `transaction`)."""
        self._ledger.execute("UPDATE keys SET revoked_at = ? WHERE id = ?", (now, key.id))
        self._log_event("revoked", key, now)

    def _note_revoked(self, key: ApiKey, now: int) -> ApiKey:
        """Revoke a key in memory, once the ledger has it so."""
        revoked = replace(key, revoked_at=now)
        self._keys[key.id] = (revoked, *self._keys[key.id][1:])
        log.info("key %s (%r) was revoked", key.id, key.name)
        return revoked

    def _log_event(self, event: str, key: ApiKey, now: int) -> None:
        """Record an event of a key (inside a `transaction`), for later investigation."""
        self._ledger.execute("INSERT INTO key_events VALUES (?, ?, ?, ?)", (now, event, key.id, key.name))


def make_secret(key_id: str = "") -> str:
    """Return a new secret of the key with this id, or of a key that is to be created."""
    return f"{PREFIX}_{key_id or secrets.token_hex(6)}_{secrets.token_hex(32)}"


def _check_new_key(name: str, workspaces: Collection[str] | None, expires_at: int | None, now: int) -> None:
    """Raise InvalidArgument for a new key with an invalid name, no workspace, or an expiry in the past."""
    if not remove_ignorable(name).strip() or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidArgument(
            f"a key's name must have 1 to {LONGEST_NAME} printable characters and no blank at its ends"
        )
    refuse_secret("the key's name", name)
    if workspaces is not None and not workspaces:
        raise InvalidArgument("a key needs a workspace; name one, or allow all of them")
    if expires_at is not None and expires_at <= now:
        raise InvalidArgument("the key would already be expired; choose a later time")
    _check_end(expires_at)


def _check_end(end: int | None) -> None:
    """Raise InvalidArgument for the end of a key or of an old secret that no calendar shows."""
    if end is not None and end >= END_OF_KEYS_MS:
        raise InvalidArgument("a key, or its old secret, must end before the year 9999; choose an earlier time")


def _check_namespace(namespace: str, scopes: Collection[str]) -> None:
    """Raise InvalidArgument for an invalid namespace, or for a namespace of a key with the scope admin."""
    namespace_path(namespace)
    refuse_secret("the namespace", namespace)
    if "admin" in scopes:
        raise InvalidArgument(
            "a key with the scope admin sees more than one namespace; omit the scope or the namespace"
        )


def _is_current(presented: ApiKey, stored: ApiKey, now: int) -> bool:
    """Return whether a key is valid now with the secret that was used."""
    newest = presented.serial == stored.serial
    old = presented.serial == stored.serial - 1 and stored.old_until is not None and now < stored.old_until
    return stored.is_live(now) and (newest or old)


def _old_end(key: ApiKey) -> int | None:
    """Return the time at which the previous secret expires, at the latest with the key."""
    return min((end for end in (key.old_until, key.expires_at) if end is not None), default=None)


def _key_of_row(row: tuple[object, ...]) -> ApiKey:
    key_id, name, scopes, workspaces, surfaces, *times, namespace, _, _ = row
    created_at, expires_at, revoked_at, last_used_at, serial, old_until = map(_as_time, times)
    return ApiKey(
        id=str(key_id),
        name=str(name),
        scopes=frozenset(str(scopes).split(",")),
        workspaces=None if workspaces is None else _composed(json.loads(str(workspaces))),
        surfaces=frozenset(str(surfaces).split(",")),
        created_at=created_at or 0,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        serial=serial or 1,
        old_until=old_until,
        namespace=None if namespace is None else unicodedata.normalize("NFC", str(namespace)),
    )


def _as_time(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _composed(names: Collection[str]) -> frozenset[str]:
    """Return names of workspaces in the Unicode form in which they are compared."""
    return frozenset(unicodedata.normalize("NFC", name) for name in names)


def _join(words: Collection[str]) -> str:
    return ",".join(sorted(words))


def _check_known(what: str, words: Collection[str], known: tuple[str, ...]) -> frozenset[str]:
    strange = sorted(set(words) - set(known))
    if strange or not words:
        raise InvalidArgument(
            f"choose each {what} of a key from {', '.join(known)}" + (f"; {strange[0]!r} is unknown" if strange else "")
        )
    return frozenset(words)


def _hash_secret(secret: str) -> bytes:
    """Hash a secret. SHA-256 is enough: a secret has 256 random bits, so it can't be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _static_keys(secrets_by_surface: Mapping[str, str]) -> tuple[tuple[ApiKey, bytes], ...]:
    """Return the keys of the environment; one secret for both surfaces is one key."""
    surfaces: dict[str, set[str]] = {}
    for surface, secret in secrets_by_surface.items():
        if secret:
            surfaces.setdefault(secret, set()).update(_check_known("surface", (surface,), SURFACES))
    return tuple(
        (
            ApiKey(
                id=f"env-{'-'.join(sorted(where))}",
                name=f"environment ({', '.join(sorted(where))})",
                scopes=frozenset(("read", "write")),
                workspaces=None,
                surfaces=frozenset(where),
                created_at=0,
            ),
            _hash_secret(secret),
        )
        for secret, where in surfaces.items()
    )
