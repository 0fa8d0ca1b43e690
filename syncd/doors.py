"""The settings of the doors: how much a key may ask, and whom Cloudflare Access lets in as whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from index.errors import InvalidArgument
from index.model import COLLECTIONS
from index.names import fold
from syncd.typed import setting

_COLLECTION: Final = re.compile(r"[^\W\d_][\w-]{0,63}")
_TEAM: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})")
_SAFE_URL: Final = re.compile(
    r"https://[^\s/?#@]+(?:/[^\s?#]*)?|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?(?:/[^\s?#]*)?"
)


@dataclass(frozen=True, slots=True)
class LimitsSettings:
    """How much is taken from one key, and from one address that has none."""

    rate: float = setting(20.0, "Requests a second that one key may make in the long run; 0 = any number.", least=0)
    burst: int = setting(40, "Requests that one key may make at once.", least=1)
    failures: int = setting(
        10, "Requests without a good key that one address may make in a minute; 0 = any number.", least=0
    )
    queue: int = setting(
        64, "Calls that may wait for a thread, of those that read and of those that write; more are told to come back.",
        least=1,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class KbSettings:
    """The knowledge base: its collections, what it takes from one key, and how far a file is read."""

    collections: tuple[str, ...] = setting((), "Collections besides `documents`, `memory` and `workspace`.")
    max_file: int = setting(1_073_741_824, "The largest file that is taken, in bytes.", least=1)
    staged: int = setting(
        2_147_483_648,
        "Bytes that one key may have uploaded and not turned into documents yet; as many of files that failed are kept.",
        least=1,
    )
    uploads: int = setting(64, "Uploads that one key may have under way.", least=1)
    queued: int = setting(10_000, "Jobs of one key that may wait.", least=1)
    free: int = setting(536_870_912, "Bytes of disk that uploads leave free.", least=0)
    convert_s: float = setting(120.0, "Seconds that reading one file may take.", least=1)
    convert_mb: int = setting(1_024, "Memory that reading one file may take, in MiB.", least=128)
    pages: int = setting(2_000, "Pages, slides or sheets of one file that are read.", least=1)
    inflated_mb: int = setting(1_024, "What a compressed file may unpack to, in MiB.", least=1)
    text_kb: int = setting(
        4_000, "Text of one file that is kept, in kB; what is longer is cut and marked.", least=1, most=4_500
    )
    keep_days: float = setting(30.0, "Days after which a job that ended is forgotten.", least=0)

    def __post_init__(self) -> None:
        """Refuse names that a tag can't have, or that would not compare."""
        for name in self.collections:
            if not _COLLECTION.fullmatch(name) or fold(name) != name:
                raise InvalidArgument(
                    f"kb.collections: {name[:64]!r} must be lower-case letters, digits, `-` and `_`, beginning with a letter"
                )

    @property
    def known(self) -> tuple[str, ...]:
        """All collections there are, the default one first."""
        return tuple(dict.fromkeys((*COLLECTIONS, *self.collections)))


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
        if self.on != bool(self.audience) or not all(self.audience):
            raise InvalidArgument(
                "access.team (or access.issuer) and access.audience belong together: set both, or neither"
            )
        for name, url in (("issuer", self.issuer), ("jwks_url", self.jwks_url)):
            if url and not _SAFE_URL.fullmatch(url):
                raise InvalidArgument(f"access.{name} must be an https:// address")

    @property
    def on(self) -> bool:
        """Whether assertions are looked at."""
        return bool(self.team or self.issuer)

    @property
    def signed_by(self) -> str:
        """The issuer that an assertion must name."""
        return self.issuer or f"https://{self.team}.cloudflareaccess.com"

    @property
    def certificates(self) -> str:
        """Where the signing keys are."""
        return self.jwks_url or f"{self.signed_by.rstrip('/')}/cdn-cgi/access/certs"
