"""The randomness of a value: what a program generated, and what a person wrote with words."""

from random import Random

import pytest

from syncd.notes.secret_rules.value_randomness import is_placeholder, is_sequence, looks_random
from tests.support.generated_secrets import BASE62, HEX, LOWER, PASSWORD, URLSAFE, draw


@pytest.mark.parametrize(
    ("letters", "length"),
    [
        pytest.param(HEX, 32, id="hex"),
        pytest.param(BASE62, 20, id="letters and digits"),
        pytest.param(URLSAFE, 43, id="base64url"),
        pytest.param(BASE62 + "+/", 40, id="base64"),
        pytest.param(LOWER, 24, id="small letters"),
        pytest.param(PASSWORD, 20, id="a password with signs"),
    ],
)
def test_nearly_every_generated_value_looks_random(letters, length):
    rng = Random(length)
    values = [draw(rng, length, letters) for _ in range(1000)]
    assert sum(map(looks_random, values)) >= 990


@pytest.mark.parametrize(
    "value",
    [
        "getAccessTokenFromHeader2",
        "requestAnimationFrame123",
        "config.secretKeyBase64Encoded",
        "correct-horse-battery-staple",
        "my-super-secret-password-2024",
        "MY_SECRET_TOKEN_NAME_2",
        "HKEY_LOCAL_MACHINE",
        "Donaudampfschifffahrtsgesellschaft",
        "xiaohongshu-zhanghao-mima",
        "/home/user/.config/app/token.json",
        "https://example.org/path/to/page",
        "kubernetes.io/service-account-token",
        "application/x-www-form-urlencoded",
        "2024-01-02-10-00-00",
        "20240102100000123456",
        "550e8400-e29b-41d4-a716-446655440000",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "abababababababababab",
        "----------------------",
    ],
)
def test_what_a_person_writes_does_not(value):
    assert not looks_random(value)


@pytest.mark.parametrize(
    "value",
    ["changeme", "<your-key>", "${TOKEN}", "{{ token }}", "$(pass show x)", "%TOKEN%", "xxxxxxxxxxxx",
     "AKIAIOSFODNN7EXAMPLE", "your-api-key-here", "sk-...", "********"],
)  # fmt: skip
def test_a_placeholder_is_none(value):
    assert is_placeholder(value)


def test_characters_in_order_are_a_sequence():
    assert all(map(is_sequence, ["1234567890abcdef", "abcdefghijklmnop", "ABCDEFGHIJKLMNOP"]))
    rng = Random(1)
    assert not any(is_sequence(draw(rng, 16, letters)) for letters in (HEX, BASE62) for _ in range(500))
