"""Cloudflare Access: whom an assertion lets in, what never does, and keys that rotate on a real server."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from hashlib import sha256
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from index.errors import InvalidArgument, PermissionDenied
from mcp_server.guard import cloudflare_access
from mcp_server.guard.cloudflare_access import APART_S, FRESH_S, LONGEST, CloudflareAccess
from syncd.settings.access import AccessSettings
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.fresh_ledger import put_ledger
from tests.support.identity_provider import AUDIENCE, Team, unsigned

MAPPED = {"ann@Example.org": "ann", "e367826f93b8d71185e03fe518aff3b4.access": "robot", "gone@example.org": "nobody"}


@pytest.fixture
def team():
    made = Team()
    made.add("first")
    made.add("curve", alg="ES256")
    yield made
    made.stop()


@pytest.fixture
def keys(tmp_path):
    tmp_path.chmod(0o700)
    ledger = Ledger.open(put_ledger(tmp_path))
    made = ApiKeys(ledger)
    made.create("ann", workspaces=["work"], scopes=["read"], now=now())
    made.create("robot", workspaces=None, now=now())
    yield made
    ledger.close()


def now():
    return time.time_ns() // 1_000_000


class Timer:
    def __init__(self):
        self.at = 1_000.0

    def __call__(self):
        return self.at


@pytest.fixture
def timer(monkeypatch):
    made = Timer()
    monkeypatch.setattr(cloudflare_access, "time", SimpleNamespace(monotonic=made))
    return made


def door(team, keys, **more):
    settings = AccessSettings(audience=(AUDIENCE, "another"), issuer=team.url, keys=MAPPED, **more)
    return CloudflareAccess(settings, keys, clock=now)


def let_in(access, *assertions):
    """Whom each assertion is taken for, on one event loop."""

    async def all_of_them():
        return [await access.authenticate(assertion) for assertion in assertions]

    return [key and key.name for key in asyncio.run(all_of_them())]


def test_an_assertion_gives_the_rights_of_the_key_that_its_identity_is_mapped_to(team, keys):
    robot = {"email": None, "common_name": "e367826f93b8d71185e03fe518aff3b4.access", "sub": ""}
    assert let_in(
        door(team, keys),
        team.assertion("first"),
        team.assertion("curve", alg="ES256"),
        team.assertion("first", **robot),
        team.assertion("first", aud="another"),
        team.assertion("first", exp=int(time.time()) - 10),
    ) == ["ann", "ann", "robot", "ann", "ann"]
    assert team.fetched == 1


def test_the_rights_end_with_the_assertion_and_with_the_key(team, keys):
    access, ends = door(team, keys), int(time.time()) + 100

    async def come():
        return await access.authenticate(team.assertion("first", exp=ends))

    key = asyncio.run(come())
    assert (key.scopes, key.workspaces) == ({"read"}, {"work"})
    assert keys.is_live(key, now=ends * 1000)
    assert not keys.is_live(key, now=(ends + 31) * 1000)
    keys.revoke("ann", now=now())
    assert not keys.is_live(key, now=now())
    with pytest.raises(PermissionDenied):
        asyncio.run(come())


@pytest.mark.parametrize(
    "who",
    [
        {"email": "mallory@example.org"},
        {"email": None},
        {"email": ""},
        {"email": ["ann@example.org"]},
        {"email": "ann"},
        {"email": "gone@example.org"},
        {"common_name": "e367826f93b8d71185e03fe518aff3b4.access"},
        {"email": None, "sub": "ann@example.org"},
    ],
    ids=str,
)
def test_an_identity_that_is_mapped_to_no_live_key_is_refused_by_name_of_the_setting(team, keys, who):
    with pytest.raises(PermissionDenied, match=r"access\.keys") as caught:
        let_in(door(team, keys), team.assertion("first", **who))
    assert "example.org" not in caught.value.message


def hs256(team, secret):
    """A token whose maker took our public key for a shared secret."""
    token = unsigned({"alg": "HS256", "typ": "JWT", "kid": "first"}, team.claims())
    head = token.rpartition(".")[0]
    signed = hmac.digest(secret, head.encode(), sha256)
    return unsigned({"alg": "HS256", "typ": "JWT", "kid": "first"}, team.claims(), signed)


SECONDS = int(time.time())
BAD = {
    "nothing": lambda _: "",
    "one part": lambda _: "x",
    "three empty parts": lambda _: "..",
    "no base64": lambda _: "ä.b.c",
    "no signature": lambda team: team.assertion("first").rpartition(".")[0] + ".",
    "another signature": lambda team: team.assertion("first")[:-8] + "AAAAAAAA",
    "other claims": lambda team: ".".join(
        one.split(".")[at] for at, one in enumerate([team.assertion("first"), team.assertion("first", email="x@y.z")] * 2)
        if at < 3
    ),
    "alg none": lambda team: unsigned({"alg": "none", "kid": "first"}, team.claims()),
    "alg NONE": lambda team: unsigned({"alg": "NoNe", "kid": "first"}, team.claims()),
    "alg missing": lambda team: unsigned({"kid": "first"}, team.claims(), b"x" * 256),
    "HS256 with our PEM": lambda team: hs256(
        team, team.signing["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    ),
    "HS256 with our JWK": lambda team: hs256(team, json.dumps(team.published["keys"][0]).encode()),
    "HS256 with nothing": lambda team: hs256(team, b""),
    "a foreign key": lambda team: team.assertion(
        "first", key=rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ),
    "a foreign key in the head": lambda team: unsigned(
        {"alg": "RS256", "kid": "first", "jku": "http://127.0.0.1:9/keys", "jwk": team.published["keys"][0]}, team.claims(), b"x"
    ),
    "the other key's name": lambda team: team.assertion("first", named="curve"),
    "the other algorithm": lambda team: team.assertion("first", alg="PS256"),
    "a longer hash": lambda team: team.assertion("first", alg="RS512"),
    "an unknown kid": lambda team: team.assertion("first", named="third"),
    "no kid": lambda team: unsigned({"alg": "RS256"}, team.claims(), b"x" * 256),
    "a kid that is no text": lambda team: unsigned({"alg": "RS256", "kid": ["first"]}, team.claims(), b"x"),
    "a kid that is a path": lambda team: team.assertion("first", named="../../../dev/null"),
    "critical": lambda team: unsigned({"alg": "RS256", "kid": "first", "crit": ["b64"], "b64": False}, team.claims()),
    "expired": lambda team: team.assertion("first", exp=SECONDS - 60),
    "no expiry": lambda team: team.assertion("first", exp=None),
    "an expiry in words": lambda team: team.assertion("first", exp="tomorrow"),
    "not yet": lambda team: team.assertion("first", nbf=SECONDS + 90_000),
    "issued tomorrow": lambda team: team.assertion("first", iat=SECONDS + 90_000),
    "another audience": lambda team: team.assertion("first", aud=["5" * 64]),
    "part of the audience": lambda team: team.assertion("first", aud=AUDIENCE[:-1]),
    "no audience": lambda team: team.assertion("first", aud=None),
    "another issuer": lambda team: team.assertion("first", iss="https://evil.cloudflareaccess.com"),
    "the issuer with a slash": lambda team: team.assertion("first", iss=team.url + "/"),
    "no issuer": lambda team: team.assertion("first", iss=None),
    "huge": lambda team: team.assertion("first", groups=["x" * 100] * 100),
    "a deep head": lambda _: unsigned({}, {}).replace("e30", "W1tb" * 1_500),
    "a deep body": lambda team: team.assertion("first").split(".")[0] + "." + "W1tb" * 1_500 + ".AAAA",
    "a list for claims": lambda _: unsigned({"alg": "RS256", "kid": "first"}, [1], b"x"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_no_other_assertion_lets_anybody_in(team, keys, kind):
    access = door(team, keys)
    assert let_in(access, BAD[kind](team), team.assertion("first")) == [None, "ann"]


@pytest.mark.parametrize(
    "changed",
    [
        {"alg": "none"},
        {"alg": "ML-DSA-65"},
        {"alg": ["RS256"]},
        {"alg": {}},
        {"alg": "HS256"},
        {"kty": "AKP", "alg": "ML-DSA-65"},
        {"kty": "OKP", "crv": "X448"},
        {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": ["RSA"]},
        {"n": None},
        {"n": 5},
        {"kid": None},
        {"kid": ["first"]},
    ],
    ids=str,
)
def test_an_entry_that_is_not_known_is_skipped_alone(team, keys, changed):
    team.published["keys"].insert(0, {**team.published["keys"][0], "kid": "strange", **changed})
    team.published["keys"][1:1] = [None, 5, "first", ["kid"], {}]
    assert let_in(door(team, keys), team.assertion("first"), team.assertion("curve", alg="ES256")) == ["ann", "ann"]


def test_a_new_signing_key_is_fetched_when_it_is_first_named_and_an_old_one_goes(team, keys, timer):
    access = door(team, keys)

    async def story():
        assert await access.authenticate(team.assertion("first"))
        team.add("second")
        assert await access.authenticate(team.assertion("second")) is None  # asked a moment ago
        timer.at += APART_S
        assert await access.authenticate(team.assertion("second"))
        assert team.fetched == 2
        team.retire("first")
        assert await access.authenticate(team.assertion("first"))  # known until the next look
        timer.at += FRESH_S
        assert await access.authenticate(team.assertion("second"))  # which nobody waits for
        await access._fetching
        assert await access.authenticate(team.assertion("first")) is None
        assert team.fetched == 3

    asyncio.run(story())


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 500},
        {"status": 302},
        {"body": b""},
        {"body": b"<html>"},
        {"body": b"[]"},
        {"body": b'{"keys": []}'},
        {"body": b'{"keys": [1, null, {"kid": "first"}, {"kid": "first", "kty": "RSA"}]}'},
        {"body": b'{"keys": [{"kid": "first", "kty": "oct", "k": "AAAA", "alg": "HS256"}]}'},
        {"body": b"[" * 200_000},
        {"body": b'{"keys": [' + b" " * 300_000 + b"]}"},
        {"url": "http://127.0.0.1:9"},
    ],
    ids=lambda trouble: str(trouble)[:60],
)
def test_signing_keys_at_hand_stay_good_while_no_newer_ones_can_be_had(team, keys, timer, trouble, caplog):
    access = door(team, keys)

    async def story():
        assert await access.authenticate(team.assertion("first"))
        for name, value in trouble.items():
            if name == "url":
                access._settings = AccessSettings(
                    audience=(AUDIENCE,), issuer=team.url, keys=MAPPED, jwks_url="http://127.0.0.1:9/"
                )
            else:
                setattr(team, name, value)
        timer.at += FRESH_S
        assert await access.authenticate(team.assertion("first", named="unknown")) is None
        assert await access.authenticate(team.assertion("first"))

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert "can't be fetched" in caplog.text
    assert "2 known keys stay in use" in caplog.text


@pytest.mark.slow
def test_a_server_of_keys_that_hangs_delays_only_who_needs_it_and_not_for_long(team, keys, timer):
    access = door(team, keys)

    async def story():
        assert await access.authenticate(team.assertion("first"))
        team.gate.clear()
        timer.at += APART_S
        began = time.monotonic()
        strangers = [
            asyncio.create_task(access.authenticate(team.assertion("first", named=f"k{n}"))) for n in range(50)
        ]
        await asyncio.sleep(0)
        assert await access.authenticate(team.assertion("first"))
        assert time.monotonic() - began < 1.0
        assert await asyncio.gather(*strangers) == [None] * 50
        assert time.monotonic() - began < 10.0

    asyncio.run(story())
    assert team.fetched == 2


def test_a_flood_of_unknown_keys_is_one_fetch(team, keys):
    access = door(team, keys)
    flood = [team.assertion("first", named=f"kid-{number}") for number in range(300)]
    assert let_in(access, *flood) == [None] * 300
    assert team.fetched == 1
    assert let_in(access, team.assertion("first")) == ["ann"]


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
def test_weak_and_strange_keys_are_not_taken(team, keys):
    team.add("weak", bits=1024)
    other = ec.generate_private_key(ec.SECP384R1())
    team.published["keys"].append(dict(team.published["keys"][0], kid="confused", alg="HS256"))
    assert let_in(
        door(team, keys),
        team.assertion("weak"),
        team.assertion("first", key=other, alg="ES384"),
        team.assertion("first", named="confused"),
    ) == [None, None, None]


def test_settings_that_would_let_in_nobody_or_anybody_are_refused():
    for wrong in (
        {"team": "acme"},
        {"audience": ("x",)},
        {"team": "acme", "audience": ("",)},
        {"team": "acme.cloudflareaccess.com", "audience": ("x",)},
        {"team": "acme/../evil", "audience": ("x",)},
        {"issuer": "http://acme.example", "audience": ("x",)},
        {"issuer": "https://acme.example", "jwks_url": "file:///etc/passwd", "audience": ("x",)},
        {"issuer": "https://u:p@acme.example", "audience": ("x",)},
        {"issuer": "http://127.0.0.1.evil.example/", "audience": ("x",)},
    ):
        with pytest.raises(InvalidArgument, match=r"access\."):
            AccessSettings(**wrong)
    assert not AccessSettings().is_enabled
    acme = AccessSettings(team="acme", audience=("x",))
    assert acme.is_enabled
    assert acme.expected_issuer == "https://acme.cloudflareaccess.com"
    assert acme.key_set_url == "https://acme.cloudflareaccess.com/cdn-cgi/access/certs"
    assert LONGEST < 16_384
