"""Define the access settings: request limits, what is never shared, and which key a visitor identified by Cloudflare Access uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from index.errors import InvalidArgument
from syncd.settings.values import setting
from syncd.vault.path_rules import patterns_objection

_TEAM: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})")
_SAFE_URL: Final = re.compile(
    r"https://[^\s/?#@]+(?:/[^\s?#]*)?|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?(?:/[^\s?#]*)?"
)


@dataclass(frozen=True, slots=True)
class LimitsSettings:
    """Holds the section `limits`: request limits per key, and per address without a valid key."""

    rate: float = setting(
        20.0, "Requests per second that one key may make in the long run; further ones wait. 0 = unlimited.", least=0
    )
    burst: int = setting(200, "Requests that one key may make in a burst before the rate applies.", least=1)
    failures: int = setting(
        10, "Requests without a valid key that one address may make per minute; 0 = unlimited.", least=0
    )
    queue: int = setting(
        64, "Requests of one key that may wait; the daemon refuses further ones with a retry time.", least=1
    )
    wait_s: float = setting(
        15.0, "Seconds that a request may wait; after that, the daemon refuses it with a retry time.", least=0
    )


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Holds the section `access`: visitors whom Cloudflare Access identifies. Off until a team or an issuer is set."""

    team: str = setting("", "The team name in Cloudflare Access, such as `acme` in https://acme.cloudflareaccess.com.")
    audience: tuple[str, ...] = setting((), "The audience tags (AUD) of the Access applications for this daemon.")
    issuer: str = setting("", "The issuer of the assertions, if it differs from the team's address.")
    jwks_url: str = setting("", "The URL of the signing keys, if it differs from the issuer's /cdn-cgi/access/certs.")
    keys: Mapping[str, str] = setting(
        {},
        "The Memex key whose rights an e-mail address or a service token's client id gets; the daemon refuses others.",
    )

    def __post_init__(self) -> None:
        """Refuse settings that would admit nobody or everybody."""
        if self.team and not _TEAM.fullmatch(self.team):
            raise InvalidArgument(
                "access.team must be the team name only, such as `acme` in https://acme.cloudflareaccess.com"
            )
        if self.is_enabled != bool(self.audience) or not all(self.audience):
            raise InvalidArgument(
                "access.team (or access.issuer) and access.audience need each other: set both or neither"
            )
        for name, url in (("issuer", self.issuer), ("jwks_url", self.jwks_url)):
            if url and not _SAFE_URL.fullmatch(url):
                raise InvalidArgument(f"access.{name} must be an https:// address")

    @property
    def is_enabled(self) -> bool:
        """Return whether the daemon checks assertions."""
        return bool(self.team or self.issuer)

    @property
    def expected_issuer(self) -> str:
        """Return the issuer that an assertion must name."""
        return self.issuer or f"https://{self.team}.cloudflareaccess.com"

    @property
    def key_set_url(self) -> str:
        """Return the URL of the signing keys."""
        return self.jwks_url or f"{self.expected_issuer.rstrip('/')}/cdn-cgi/access/certs"


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """Holds the section `share`: what no agent may read, whatever `memex share` shares."""

    never: tuple[str, ...] = setting(
        (),
        "Folders and notes of the vault that no agent may read, whatever `memex share` shares, as patterns like `Private` or `Diary/**`.",
        wrong=patterns_objection,
    )
