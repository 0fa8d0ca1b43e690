"""Secrets in text: found by rule, taken out whole, quickly whatever the text."""

import re
import string
import time

import pytest

from index.errors import InvalidArgument
from syncd.notes.secret_patterns import find_secrets, mask, redact, refuse_secret
from tests.support.sample_secrets import SECRETS, dice


@pytest.mark.parametrize("rule", SECRETS)
@pytest.mark.parametrize(
    "around",
    ["{}", "my key is {}.", "a\n{}\nb", '{{"key": "{}"}}', "KEY={}", "中文{}字", "`{}`", "<{}>", "({}),"],
    ids=str,
)
def test_a_secret_is_found_and_no_character_of_it_is_kept(rule, around):
    secret = SECRETS[rule]
    text = around.format(secret)
    assert rule in find_secrets(text)
    kept = redact(text)
    assert kept.startswith(around.format("\0").split("\0")[0])
    assert not any(secret[at : at + 12] in kept for at in range(len(secret) - 12))
    assert find_secrets(kept) == ()


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param("github-token", f"github_pat_{dice(22)}_{dice(30)}", id="a fine-grained token"),
        pytest.param("openai-key", f"sk-ant-api03-{dice(60)}", id="another maker's key of the same kind"),
        pytest.param("aws-key", f"ASIA{dice(15, string.ascii_uppercase)}9", id="a key for a session"),
        pytest.param("private-key", f"-----BEGIN PRIVATE KEY-----\\n{dice(64)}\\n", id="a key in JSON, cut off"),
        pytest.param("private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ", id="a PGP key"),
        pytest.param("assigned-secret", "API_KEY = 'k9f3Jd02mQz81LxPw7Ta'", id="in code"),
        pytest.param("assigned-secret", "password: 8f14e45fceea167a5a36dedd4bea2543", id="in YAML"),
        pytest.param("assigned-secret", "password:: 8f14e45fceea167a5a36dedd4bea2543", id="in an inline field"),
        pytest.param("assigned-secret", '"client_secret": "Zx9-Qw3_Er7.Ty1~Ui5"', id="in JSON"),
        pytest.param("assigned-secret", "Authorization: Bearer 9aX3kQ7zLm2Pv8Rt", id="in a header"),
        pytest.param("url-password", "git clone https://bot:hunter2zz@git.example.org/x.git", id="in an address"),
    ],
)
def test_other_shapes_of_secrets_are_found(rule, text):
    assert rule in find_secrets(text)
    assert find_secrets(redact(text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-in-ten-minutes-for-beginners",
        "risk-adjusted-return-on-capital-2024-report",
        "token: your-api-token-goes-here-123",
        "api_key = os.environ['OPENAI_API_KEY']",
        "password = getpass.getpass('password: ')",
        "secret: 550e8400-e29b-41d4-a716-446655440000",
        "the token count is 16384 and the secret of cooking is patience",
        "commit 8f14e45fceea167a5a36dedd4bea2543d00b7f8a",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "https://example.org:8080/path@2x.png",
        "https://user:password@example.org/",
        "postgres://app:$PGPASSWORD@db/app",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJ is how a token begins",
        "-----BEGIN PUBLIC KEY-----\nMFww\n-----END PUBLIC KEY-----",
        "[[2024-01-01 token of appreciation]] #secret-santa",
        "access_key=${AWS_ACCESS_KEY_ID_FROM_VAULT_2}",
        "token budget: chunk_tokens=256, chunk_overlap=32",
        "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA)",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert find_secrets(text) == ()
    assert redact(text) == text


def test_text_around_secrets_stays_and_each_is_named():
    text = f"one {SECRETS['aws-key']} two {SECRETS['github-token']} three {SECRETS['aws-key']} four"
    assert redact(text) == "one [aws-key] two [github-token] three [aws-key] four"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("stripe-key", f"api_key=sk_live_{dice(24)}", id="a kind of its own, assigned"),
        pytest.param("assigned-secret", f"see https://example.org/?token={dice(32)}&page=2", id="in an address"),
        pytest.param("assigned-secret", f"\u0130\u0130 password: {dice(24)}", id="after a sign that is two when small"),
        pytest.param("azure-key", f"\u017fAccountKey={dice(84)}==", id="after a letter whose capital is ASCII"),
        pytest.param("github-token", f"\U0001f511 ghp_{dice(36)} \udc80", id="among signs of other lengths"),
    ],
)
def test_a_secret_is_named_once_and_by_its_kind(kind, text):
    assert find_secrets(text) == (kind,)
    assert find_secrets(redact(text)) == ()


@pytest.mark.parametrize("rule", SECRETS)
def test_a_secret_with_markdown_escapes_is_found_and_taken_out_whole(rule):
    secret = SECRETS[rule]
    text = "one \\_ {}\ntwo {}\n\\- three".format(re.sub(r"([_.~+=-])", r"\\\1", secret), secret)
    assert find_secrets(text) == (rule,)
    assert redact(text) == f"one \\_ [{rule}]\ntwo [{rule}]\n\\- three"


def test_a_mask_keeps_two_secrets_apart_and_shows_neither():
    first, second = f"ghp_{dice(36)}", f"ghp_{dice(36)}"
    assert mask(f"{first}.md") == mask(f"{first}.md") != mask(f"{second}.md")
    assert re.fullmatch(r"\[github-token [0-9a-f]{8}\]\.md", mask(f"{first}.md"))
    assert mask(mask(first)) == mask(first)
    assert mask("Captures/default/Plan.md") == "Captures/default/Plan.md"


def test_a_name_that_holds_a_secret_is_refused_without_saying_it():
    refuse_secret("memo_id", "session-2026-11-23-planning")
    for digest in ("9f86d081884c7d65", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"):
        refuse_secret("memo_id", f"sess-key:{digest}")
        refuse_secret("memo_id", f"mail/session_key:{digest}")
        for name in (
            f"api-key:{digest}",
            f"key={digest}",
            f"sess-key: {digest}",
            f"sess-key:{digest}Q",
            f"my_session_key:{digest}",
            f"aws-session-key:{digest}",
            f"token:{digest}",
        ):
            with pytest.raises(InvalidArgument):
                refuse_secret("memo_id", name)
    whole = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    for name in (f"session_key:{whole}", f"sess-key:{whole[:41]}"):  # longer than an id needs, as long as a key
        with pytest.raises(InvalidArgument):
            refuse_secret("memo_id", name)
    with pytest.raises(InvalidArgument, match=r"memo_id seems to hold a secret \(github-token\)") as refused:
        refuse_secret("memo_id", SECRETS["github-token"])
    assert SECRETS["github-token"] not in str(refused.value.as_dict())


def test_two_private_keys_are_two():
    key = SECRETS["private-key"]
    assert redact(f"{key}\nbetween\n{key}\nafter") == "[private-key]\nbetween\n[private-key]\nafter"


PIECES = (
    *("sk-", "ghp_", "github_pat_", "AKIA", "xoxb-", "AIza", "glpat-", "eyJ", "eyJ.", "eyJaaaaaaaaaa.", "mx_", "a:", "://"),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n-----END", "PRIVATE KEY", "-----END"),
    *("token", "secret=", "password: ", "token=a", "bearer ", "api_key", "token_a", "token\t", "://a:b", "://:@", "=", " "),
    *("sk_live_", "SG.", "1//0", ":AA", "a-us1", "9Q~", "9" * 9 + ":AA", "Q~", '"d":"', '{"kty":"d":"' + "a1" * 20, "accountkey=", "key = ", "://key="),
    *("a", "A", "0", "-", "_", "aA0", "\n", "\u4e2d", "token='", "\\_", "a\\_b1 ghp\\_", "x" * 15 + " token=", "token=" + "a1" * 128, "Bearer a1"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_long(piece):
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    for work in (find_secrets, redact):
        took = []
        for _ in range(3):  # the machine may be busy: what counts is what the text costs
            began = time.process_time()
            work(text)
            took.append(time.process_time() - began)
        assert min(took) < 0.1, (work, took)
