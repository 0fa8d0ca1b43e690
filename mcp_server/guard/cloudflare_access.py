"""Verify a signed assertion of Cloudflare Access against its published keys, and map its identity to a Memex key.

Law, tested: an invalid assertion lets nobody in, whatever its fault. Memex fetches signing keys seldom, however many
requests arrive, and known keys stay valid while newer ones cannot be fetched. The daemon sends no request unless
Cloudflare Access is configured."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx2
import jwt

from index.errors import PermissionDenied
from syncd.settings.access import AccessSettings
from syncd.workspaces.api_keys import ApiKey, ApiKeys

log = logging.getLogger(__name__)

ALGORITHMS: Final = ["RS256", "ES256"]
LONGEST: Final = 8_192  # characters of an assertion
LEEWAY_S: Final = 30
FETCH_S: Final = 3.0
FRESH_S: Final = 3_600.0  # age after which Memex fetches the signing keys again; the known keys stay in use meanwhile
APART_S: Final = 30.0  # minimum time between two fetches, however many unknown keys requests name
JWKS_BYTES: Final = 256 * 1024
JWKS_KEYS: Final = 64
RSA_BITS: Final = 2_048
# What a token can make the library raise: the signature is checked before the claims, but anybody can write the header.
_BAD: Final = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)


class CloudflareAccess:
    """Verifies assertions; belongs to one event loop."""

    def __init__(self, settings: AccessSettings, keys: ApiKeys, *, clock: Callable[[], int]) -> None:
        self._settings, self._keys, self._clock = settings, keys, clock
        self._names = {identity.casefold(): name for identity, name in settings.keys.items()}
        self._signing: dict[str, jwt.PyJWK] = {}
        self._tried: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def authenticate(self, assertion: str) -> ApiKey | None:
        """Return the key whose rights the assertion's identity has, valid as long as the assertion; None for an invalid assertion.

        Raises PermissionDenied for an identity without a key."""
        claims = await self._verify_claims(assertion)
        if claims is None:
            return None
        name = self._names.get(_read_identity(claims))
        key = self._keys.find_live(name, now=self._clock()) if name else None
        if key is None:
            raise PermissionDenied("your identity gives no rights here; the owner can name it in access.keys")
        ends = (int(claims["exp"]) + LEEWAY_S) * 1000
        return replace(key, expires_at=ends if key.expires_at is None else min(ends, key.expires_at))

    async def _verify_claims(self, assertion: str) -> Mapping[str, Any] | None:
        if len(assertion) > LONGEST:
            return None
        try:
            kid = jwt.get_unverified_header(assertion).get("kid")
        except _BAD:
            return None
        signing = await self._find_signing_key(kid) if isinstance(kid, str) else None
        if signing is None:
            return None
        try:
            claims: Mapping[str, Any] = jwt.decode(
                assertion,
                signing,
                algorithms=ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._settings.expected_issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "aud", "iss"]},
            )
        except _BAD:
            return None
        return claims

    async def _find_signing_key(self, kid: str) -> jwt.PyJWK | None:
        known = self._signing.get(kid)
        age = None if self._tried is None else time.monotonic() - self._tried
        if age is None or age >= (APART_S if known is None else FRESH_S):
            self._tried = time.monotonic()
            self._fetching = asyncio.create_task(self._fetch_keys())
        if known is None and self._fetching is not None:
            await asyncio.shield(self._fetching)
            known = self._signing.get(kid)
        return known

    async def _fetch_keys(self) -> None:
        """Replace the known keys with the published keys, or log why the known keys stay."""
        try:
            async with asyncio.timeout(FETCH_S):
                signing_keys = _parse_signing_keys(await _download(self._settings.key_set_url))
        except TimeoutError:
            problem = f"no answer within {FETCH_S:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            problem = type(error).__name__
        except ValueError as error:
            problem = str(error)
        else:
            self._signing = signing_keys
            return
        log.warning(
            "the signing keys of Cloudflare Access can't be fetched (%s); %s known keys stay in use",
            problem,
            len(self._signing),
        )


async def _download(url: str) -> bytes:
    """Download `url` within limits of size, without following redirects."""
    async with (
        httpx2.AsyncClient(follow_redirects=False, timeout=FETCH_S) as client,
        client.stream("GET", url) as answer,
    ):
        if answer.status_code != httpx2.codes.OK:
            raise ValueError(f"status {answer.status_code}")
        body = bytearray()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > JWKS_BYTES:
                raise ValueError("the answer is too large")
        return bytes(body)


def _parse_signing_keys(body: bytes) -> dict[str, jwt.PyJWK]:
    """Parse the public keys that may sign assertions, by id; other entries are skipped. Raises ValueError if none is left."""
    try:
        entries = json.loads(body)["keys"][:JWKS_KEYS]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("the answer is not a key set") from None
    keys = {entry["kid"]: key for entry in entries if (key := _parse_signing_key(entry)) is not None}
    if not keys:
        raise ValueError("the answer has no key that signs assertions")
    return keys


def _parse_signing_key(entry: Any) -> jwt.PyJWK | None:
    """Parse the key of one entry; None for a key that signs no assertions."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str) or entry.get("kty") not in ("RSA", "EC"):
        return None
    if entry.get("alg") not in (None, *ALGORITHMS):  # the library raises NotImplementedError for some it knows by name
        return None
    try:
        key = jwt.PyJWK({name: entry[name] for name in entry.keys() & {"kty", "kid", "alg", "n", "e", "crv", "x", "y"}})
    except _BAD:
        return None
    signs = key.algorithm_name in ALGORITHMS and (entry["kty"] == "EC" or key.key.key_size >= RSA_BITS)
    return key if signs else None


def _read_identity(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address of a person or the client id of a service token; "" if the claims name both or neither."""
    named = [name for name in (claims.get("email"), claims.get("common_name")) if isinstance(name, str) and name]
    return named[0].casefold() if len(named) == 1 else ""
