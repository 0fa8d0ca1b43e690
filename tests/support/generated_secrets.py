"""Generate random secrets of each known kind, in the formats that their issuers describe; no secret is real.

The generators are independent of the expressions that find secrets: they describe how an issuer creates a secret."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

HEX: Final = "0123456789abcdef"
LOWER: Final = string.ascii_lowercase
UPPER: Final = string.ascii_uppercase
DIGITS: Final = string.digits
BASE62: Final = string.ascii_letters + string.digits
URLSAFE: Final = BASE62 + "-_"
BECH32: Final = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
PASSWORD: Final = BASE62 + "!@#$%^&*-_"

Maker = Callable[[Random], str]


def draw(rng: Random, length: int, letters: str = BASE62) -> str:
    """Return a word of random characters."""
    return "".join(rng.choice(letters) for _ in range(length))


def base64_of(rng: Random, size: int) -> str:
    """Return random bytes as base64 with padding."""
    return base64.b64encode(rng.randbytes(size)).decode()


def urlsafe_of(rng: Random, size: int) -> str:
    """Return random bytes as base64url without padding."""
    return base64.urlsafe_b64encode(rng.randbytes(size)).decode().rstrip("=")


def _prefixed(prefix: str, length: int, letters: str = BASE62) -> Maker:
    return lambda rng: prefix + draw(rng, length, letters)


def _one_of(*makers: Maker) -> Maker:
    return lambda rng: rng.choice(makers)(rng)


def _jwt(rng: Random) -> str:
    claims = {"sub": draw(rng, 20), "iat": rng.randrange(10**9)}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "HS256"}, claims))
    return ".".join([*(part.rstrip("=") for part in parts), urlsafe_of(rng, 32)])


def _private_key(rng: Random) -> str:
    kind = rng.choice(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
    lines = "\n".join(draw(rng, 64, BASE62 + "+/") for _ in range(12))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def _jwk(rng: Random) -> str:
    if rng.random() < 0.5:
        return json.dumps({"kty": "oct", "k": urlsafe_of(rng, 32)})
    point = {"crv": "P-256", "x": urlsafe_of(rng, 32), "y": urlsafe_of(rng, 32)}
    return json.dumps({"kty": "EC", **point, "d": urlsafe_of(rng, 32)})


def _slack(rng: Random) -> str:
    numbers = f"{draw(rng, 12, DIGITS)}-{draw(rng, 13, DIGITS)}"
    if rng.random() < 0.2:
        return f"xapp-1-A{draw(rng, 10, UPPER + DIGITS)}-{draw(rng, 13, DIGITS)}-{draw(rng, 64, HEX)}"
    return rng.choice(
        [f"xoxb-{numbers}-{draw(rng, 24)}", f"xoxp-{numbers}-{draw(rng, 13, DIGITS)}-{draw(rng, 32, HEX)}"]
    )


def _azure(rng: Random) -> str:
    if rng.random() < 0.5:
        return f"DefaultEndpointsProtocol=https;AccountName={draw(rng, 8, LOWER)};AccountKey={base64_of(rng, 64)};EndpointSuffix=core.windows.net"
    return f"Endpoint=sb://{draw(rng, 8, LOWER)}.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={base64_of(rng, 32)}"


def _signature(rng: Random) -> str:
    signature = base64_of(rng, 32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    return f"https://{draw(rng, 8, LOWER)}.blob.core.windows.net/c/b.txt?sv=2022-11-02&se=2027-01-01&sr=b&sp=r&sig={signature}"


def _openai(rng: Random) -> str:
    return rng.choice(["sk-", "sk-proj-", "sk-svcacct-"]) + f"{draw(rng, 20)}T3BlbkFJ{draw(rng, 20)}"


def _gitlab(rng: Random) -> str:
    return rng.choice(["glpat-", "gldt-", "glrt-", "glptt-"]) + draw(rng, rng.choice([20, 27, 40]), URLSAFE)


# By kind, as Memex names it: what stands for one credential. Most services have more forms than one; these are the usual.
MAKERS: Final[Mapping[str, Maker]] = {
    "private-key": _private_key,
    "memex-key": lambda rng: f"mx_{draw(rng, 12, HEX)}_{draw(rng, 64, HEX)}",
    "github-token": _one_of(
        lambda rng: f"gh{rng.choice('pousr')}_{draw(rng, 36)}",
        lambda rng: f"github_pat_{draw(rng, 22)}_{draw(rng, 59)}",
    ),
    "gitlab-token": _gitlab,
    "openai-key": _one_of(_openai, lambda rng: f"sk-ant-api03-{draw(rng, 93, URLSAFE)}AA"),
    "stripe-key": _one_of(
        lambda rng: f"{rng.choice('sr')}k_{rng.choice(['live', 'test'])}_{draw(rng, rng.choice([24, 99]))}",
        lambda rng: f"whsec_{draw(rng, 32)}",
    ),
    "aws-key": lambda rng: rng.choice(["AKIA", "ASIA"]) + draw(rng, 16, UPPER + "234567"),
    "slack-token": _slack,
    "slack-hook": lambda rng: (
        f"https://hooks.slack.com/services/T{draw(rng, 10, UPPER + DIGITS)}/B{draw(rng, 10, UPPER + DIGITS)}/{draw(rng, 24)}"
    ),
    "discord-hook": lambda rng: f"https://discord.com/api/webhooks/{draw(rng, 18, DIGITS)}/{draw(rng, 68, URLSAFE)}",
    "telegram-token": lambda rng: f"{rng.randrange(10**8, 10**10)}:AA{draw(rng, 33, URLSAFE)}",
    "google-key": lambda rng: f"AIza{draw(rng, 35, URLSAFE)}",
    "google-oauth": _one_of(
        _prefixed("GOCSPX-", 28, URLSAFE), _prefixed("ya29.", 160, URLSAFE), _prefixed("1//0", 90, URLSAFE)
    ),
    "npm-token": _prefixed("npm_", 36),
    "pypi-token": lambda rng: f"pypi-AgEIcHlwaS5vcmc{urlsafe_of(rng, 100)}",
    "huggingface-token": _prefixed("hf_", 34, string.ascii_letters),
    "sendgrid-key": lambda rng: f"SG.{draw(rng, 22, URLSAFE)}.{draw(rng, 43, URLSAFE)}",
    "digitalocean-token": lambda rng: f"do{rng.choice('por')}_v1_{draw(rng, 64, HEX)}",
    "twilio-key": _prefixed("SK", 32, HEX),
    "mailgun-key": _prefixed("key-", 32, HEX),
    "mailchimp-key": lambda rng: f"{draw(rng, 32, HEX)}-us{rng.randrange(1, 22)}",
    "azure-key": _azure,
    "azure-signature": _signature,
    "azure-client-secret": lambda rng: f"{draw(rng, 3)}{draw(rng, 1, DIGITS)}Q~{draw(rng, 34, BASE62 + '_~.-')}",
    "age-key": _prefixed("AGE-SECRET-KEY-1", 58, BECH32),
    "jwt": _jwt,
    "private-jwk": _jwk,
    "shopify-token": lambda rng: f"shp{rng.choice(['at', 'ca', 'pa', 'ss'])}_{draw(rng, 32, HEX)}",
    "postman-key": lambda rng: f"PMAK-{draw(rng, 24, HEX)}-{draw(rng, 34, HEX)}",
    "linear-key": _prefixed("lin_api_", 40),
    "notion-token": lambda rng: f"ntn_{draw(rng, 11, DIGITS)}{draw(rng, 35)}",
    "doppler-token": _prefixed("dp.pt.", 43),
    "databricks-token": _prefixed("dapi", 32, HEX),
    "grafana-token": lambda rng: f"glsa_{draw(rng, 32)}_{draw(rng, 8, HEX)}",
    "vault-token": _prefixed("hvs.", 92, URLSAFE),
    "terraform-token": lambda rng: f"{draw(rng, 14)}.atlasv1.{draw(rng, 67)}",
    "rubygems-key": _prefixed("rubygems_", 48, HEX),
    "pulumi-token": _prefixed("pul-", 40, HEX),
    "sentry-token": _prefixed("sntryu_", 64, HEX),
    "planetscale-token": _prefixed("pscale_tkn_", 43, URLSAFE),
    "new-relic-key": _prefixed("NRAK-", 27, UPPER + DIGITS),
    "perplexity-key": _prefixed("pplx-", 48),
    "groq-key": _prefixed("gsk_", 52),
    "fly-token": _prefixed("fo1_", 43, URLSAFE),
    "atlassian-token": _prefixed("ATATT3xFfGF0", 176, URLSAFE),
    "dropbox-token": _prefixed("sl.", 135, URLSAFE),
    "docker-token": _prefixed("dckr_pat_", 27, URLSAFE),
    "tailscale-key": lambda rng: f"tskey-auth-{draw(rng, 17)}-{draw(rng, 32)}",
    "brevo-key": lambda rng: f"xkeysib-{draw(rng, 64, HEX)}-{draw(rng, 16)}",
    "1password-token": lambda rng: f"ops_eyJ{base64_of(rng, 300)}",
    "1password-key": lambda rng: "A3-" + "-".join(draw(rng, n, UPPER + DIGITS) for n in (6, 6, 5, 5, 5, 5)),
    "url-password": lambda rng: f"postgres://app:{draw(rng, 16)}@db.example.net:5432/app",
}

# Values that have no shape of their own: what is said about them makes them secrets.
ASSIGNED: Final[Mapping[str, tuple[Maker, tuple[str, ...]]]] = {
    "AWS_SECRET_ACCESS_KEY": (
        lambda rng: base64_of(rng, 30),
        ("AWS_SECRET_ACCESS_KEY={}", "aws_secret_access_key = {}", '"SecretAccessKey": "{}"'),
    ),
    "api_key, base62": (
        _prefixed("", 32),
        ("api_key={}", "export SERVICE_API_KEY='{}'", "apiKey: {}", '{{"api_key": "{}"}}', "x-api-key: {}"),
    ),
    "api_key, hex": (_prefixed("", 32, HEX), ("api_key={}", "apiKey: {}", '{{"api_key": "{}"}}', "key: {}")),
    "Bearer": (
        _prefixed("", 40, URLSAFE),
        ("Authorization: Bearer {}", "curl -H 'authorization: bearer {}' localhost"),
    ),
    "Basic": (
        lambda rng: base64.b64encode(f"svc-{draw(rng, 4, LOWER)}:{draw(rng, 16)}".encode()).decode(),
        ("Authorization: Basic {}", '"authorization": "Basic {}"'),
    ),
    "password": (
        _prefixed("", 20, PASSWORD),
        ("password: {}", "DB_PASSWORD={}", "The password is {}", "| password | {} |", "**Password:** `{}`", "密码：{}"),
    ),
    "password, letters and digits": (_prefixed("", 16), ("password: {}", "passwd={}", "Passwort: {}")),
    "token": (
        _prefixed("", 24, LOWER + DIGITS),
        ("token: {}", "?token={}&page=2&sort=title", 'const authToken = "{}"', "secret -> {}\ntoken => {}"),
    ),
}

# Where a credential stands in a note.
CONTEXTS: Final[Mapping[str, str]] = {
    "a line of an env file": "VALUE={}\n",
    "YAML": "service:\n  credential: {}\n  port: 8080\n",
    "JSON": '{{"name": "service", "value": "{}", "port": 8080}}',
    "a JSON string of several lines": '{{"text": "first line\\n{}\\nlast line"}}',
    "prose": "We moved the service yesterday, and it now uses {}, as agreed with Ada.",
    "the end of a sentence": "For the demo use {}.",
    "a code fence": "```sh\nexport VALUE='{}'\n```\n",
    "inline code": "Put `{}` into the file.",
    "a header": "X-Value: {}\r\nHost: example.org\r\n",
    "Chinese prose": "服务的值是{}，请勿外传。",
}
