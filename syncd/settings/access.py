"""Define the access settings: request limits, and which key a visitor identified by Cloudflare Access uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from index.errors import InvalidArgument
from syncd.settings.values import setting

_TEAM: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})")
_SAFE_URL: Final = re.compile(
    r"https://[^\s/?#@]+(?:/[^\s?#]*)?|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?(?:/[^\s?#]*)?"
)


@dataclass(frozen=True, slots=True)
class LimitsSettings:
    """How much is taken from one key, and from one address that has none."""

    rate: float = setting(
        20.0, "Requests a second that one key may make in the long run; more wait their turn. 0 = any number.", least=0
    )
    burst: int = setting(200, "Requests that one key may make at once before its rate holds.", least=1)
    failures: int = setting(
        10, "Requests without a good key that one address may make in a minute; 0 = any number.", least=0
    )
    queue: int = setting(64, "Requests of one key that may wait their turn; more are told to come back.", least=1)
    wait_s: float = setting(15.0, "Seconds that a request may wait its turn; then it is told to come back.", least=0)


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Whom Cloudflare Access, in front of the daemon, has identified: off until a team or an issuer is set."""

    team: str = setting("", "The team of Cloudflare Access, as `acme` in https://acme.cloudflareaccess.com.")
    audience: tuple[str, ...] = setting((), "The audience tags (AUD) of the Access applications that lead here.")
    issuer: str = setting("", "Who signs the assertions, if it is not the team's own address.")
    jwks_url: str = setting("", "Where the signing keys are, if not at the issuer's /cdn-cgi/access/certs.")
    keys: Mapping[str, str] = setting(
        {}, "Which key's rights an e-mail address, or a service token's client id, gets; others are refused."
    )

    def __post_init__(self) -> None:
        """Refuse what would let in nobody, or anybody."""
        if self.team and not _TEAM.fullmatch(self.team):
            raise InvalidArgument(
                "access.team is the team's name alone, as `acme` in https://acme.cloudflareaccess.com"
            )
        if self.is_enabled != bool(self.audience) or not all(self.audience):
            raise InvalidArgument(
                "access.team (or access.issuer) and access.audience belong together: set both, or neither"
            )
        for name, url in (("issuer", self.issuer), ("jwks_url", self.jwks_url)):
            if url and not _SAFE_URL.fullmatch(url):
                raise InvalidArgument(f"access.{name} must be an https:// address")

    @property
    def is_enabled(self) -> bool:
        """Whether assertions are looked at."""
        return bool(self.team or self.issuer)

    @property
    def expected_issuer(self) -> str:
        """The issuer that an assertion must name."""
        return self.issuer or f"https://{self.team}.cloudflareaccess.com"

    @property
    def key_set_url(self) -> str:
        """Where the signing keys are."""
        return self.jwks_url or f"{self.expected_issuer.rstrip('/')}/cdn-cgi/access/certs"
