"""List the formats of credentials that services issue: one row for each kind, with the source of its facts.

The expressions are this project's own; only the facts (prefix, alphabet, length) come from the sources. Each takes
time in proportion to the text, because no repetition backtracks."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from index.deferred_patterns import possessive

GITLEAKS: Final = "gitleaks, config/gitleaks.toml at 009e025 (MIT)"
DETECT: Final = "detect-secrets 1.5.0, plugins (Apache-2.0)"
MEMEX: Final = "syncd/workspaces/api_keys.py"
GITHUB: Final = "docs.github.com: about authentication to GitHub, token formats"
STRIPE: Final = "docs.stripe.com: API keys, webhook signing secrets"
GOOGLE: Final = "developers.google.com/identity: OAuth 2.0 token sizes, and client secrets"
RFC7517: Final = "RFC 7517 and 7518, section 6"
AZURE: Final = "learn.microsoft.com: storage connection strings, shared access signatures"

_ESCAPE: Final = r"(?<=\\[nrt])"  # a line break in JSON ends in a letter


class CredentialFormat(NamedTuple):
    """Describes one kind: a match of `head`, by default no letter or digit, then one of `hints`, then `body`.

    The secret is the group `value` of `body`, or the whole match of head, hint and body."""

    kind: str
    hints: tuple[str, ...]  # as written in the text, or in lower case if `folds`
    body: str
    source: str
    head: str = rf"(?:(?<![A-Za-z0-9])|{_ESCAPE})"
    folds: bool = False  # whether the hint may be written with capitals
    before: int = 0  # characters that `head` matches, and most of them if that `varies`
    varies: bool = False
    random: bool = True  # whether the value is a secret only if it looks random
    needs: str = ""  # text that must occur too


_B62, _URL = "[A-Za-z0-9]", "[A-Za-z0-9_-]"
_HEX: Final = "[0-9a-f]"
_SIGNATURE: Final = possessive("[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}", "{40,120}")

FORMATS: Final = (
    CredentialFormat(
        "private-key",
        ("PRIVATE KEY",),
        r"(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]{0,8192}+",
        GITLEAKS,
        head=r"-----BEGIN [A-Z0-9 ]{0,32}",
        before=44,
        varies=True,
        random=False,
    ),
    CredentialFormat("memex-key", ("mx_",), rf"{_HEX}{{12}}_{_HEX}{{16,64}}+", MEMEX, random=False),
    CredentialFormat("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_B62}{{36,255}}+", GITHUB),
    CredentialFormat("github-token", ("github_pat_",), r"[A-Za-z0-9_]{22,255}+", GITHUB),
    CredentialFormat(
        "gitlab-token",
        (
            *("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glimt-", "glft-", "glsoat-", "gloas-", "glagent-"),
            *("glffct-", "GR1348941"),
        ),
        r"[A-Za-z0-9_.-]{20,1024}+",
        GITLEAKS,
    ),
    CredentialFormat("openai-key", ("sk-",), rf"{_URL}{{20,256}}+", GITLEAKS, head=rf"(?:(?<![A-Za-z0-9_-])|{_ESCAPE})"),
    CredentialFormat(
        "stripe-key",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_", "rk_prod_"),
        rf"{_B62}{{10,247}}+",
        STRIPE,
    ),
    CredentialFormat("stripe-key", ("whsec_",), r"[A-Za-z0-9+/]{24,88}+={0,2}+", STRIPE),
    CredentialFormat("aws-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])", GITLEAKS),
    CredentialFormat(
        "slack-token",
        ("xoxa-", "xoxb-", "xoxe-", "xoxe.xoxb-", "xoxe.xoxp-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        r"(?=[A-Za-z0-9-]{0,30}[0-9]{4})[A-Za-z0-9-]{10,255}+",
        GITLEAKS,
        random=False,
    ),
    CredentialFormat(
        "slack-hook",
        ("hooks.slack.com/",),
        r"(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9+/_-]{40,80}+)",
        GITLEAKS,
        head="",
    ),
    CredentialFormat(
        "discord-hook",
        ("discord.com/api/", "discordapp.com/api/"),
        rf"(?:v[0-9]{{1,2}}/)?webhooks/[0-9]{{15,20}}/(?P<value>{_URL}{{60,100}}+)",
        "discord.com/developers: webhook resource",
        head="",
    ),
    CredentialFormat(
        "telegram-token", (":AA",), rf"{_URL}{{32,34}}(?!{_URL})", GITLEAKS, head=rf"(?:(?<=bot)|(?<![A-Za-z0-9])|{_ESCAPE})[0-9]{{5,16}}", before=20, varies=True
    ),
    CredentialFormat("google-key", ("AIza",), rf"{_URL}{{35}}(?!{_URL})", GITLEAKS),
    CredentialFormat("google-oauth", ("GOCSPX-",), rf"{_URL}{{28}}", GOOGLE),
    CredentialFormat("google-oauth", ("ya29.",), rf"{_URL}{{20,2048}}+", GOOGLE),
    CredentialFormat("google-oauth", ("1//0",), rf"{_URL}{{40,512}}+", GOOGLE),
    CredentialFormat("npm-token", ("npm_",), rf"{_B62}{{36,64}}+", GITLEAKS),
    CredentialFormat("pypi-token", ("pypi-AgE",), rf"{_URL}{{50,1000}}+", DETECT),
    CredentialFormat("huggingface-token", ("hf_", "api_org_"), r"[A-Za-z0-9]{34,40}+", GITLEAKS),
    CredentialFormat("sendgrid-key", ("SG.",), rf"{_URL}{{20,24}}\.{_URL}{{39,50}}", DETECT),
    CredentialFormat("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), rf"{_HEX}{{64}}", GITLEAKS),
    CredentialFormat("twilio-key", ("SK",), rf"{_HEX}{{32}}(?![0-9A-Za-z])", GITLEAKS),
    CredentialFormat("mailgun-key", ("key-", "pubkey-"), rf"{_HEX}{{32}}(?![0-9A-Za-z])", GITLEAKS),
    CredentialFormat("mailchimp-key", ("-us",), r"[0-9]{1,2}(?![0-9A-Za-z])", DETECT, head=rf"(?:(?<![0-9A-Za-z])|{_ESCAPE}){_HEX}{{32}}", before=32, random=False),
    CredentialFormat(
        "azure-key",
        ("accountkey", "sharedaccesskey"),
        r"[\"']?\s{0,3}+[=:]\s{0,3}+[\"']?(?P<value>[A-Za-z0-9+/]{40,96}+={0,2}+)",
        AZURE,
        folds=True,
    ),
    CredentialFormat("azure-signature", ("sig=",), rf"(?P<value>{_SIGNATURE}=?)", AZURE),
    CredentialFormat("azure-client-secret", ("Q~",), r"[A-Za-z0-9_~.-]{31,34}", GITLEAKS, head=rf"(?:(?<![A-Za-z0-9_~.])|{_ESCAPE})[A-Za-z0-9_~.]{{3}}[0-9]", before=4),
    CredentialFormat("age-key", ("AGE-SECRET-KEY-1",), r"[AC-HJ-NP-Z02-9]{58}", GITLEAKS),
    CredentialFormat("jwt", ("eyJ",), rf"{_URL}{{8,4096}}+\.eyJ{_URL}{{8,8192}}+\.{_URL}{{16,2048}}+", GITLEAKS, head=rf"(?:(?<![A-Za-z0-9_-])|{_ESCAPE})", random=False),
    CredentialFormat(
        "private-jwk",
        ('"d"', '"k"', '"p"', '"q"', '"dp"', '"dq"', '"qi"'),
        rf"\s{{0,3}}+:\s{{0,3}}+\"(?P<value>{_URL}{{16,1400}}+)\"",
        RFC7517,
        head="",
        needs='"kty"',
    ),
    CredentialFormat("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[0-9A-Fa-f]{32}", GITLEAKS),
    CredentialFormat("postman-key", ("PMAK-",), rf"{_HEX}{{24}}-{_HEX}{{34}}", GITLEAKS, random=False),
    CredentialFormat("linear-key", ("lin_api_", "lin_oauth_"), rf"{_B62}{{40,64}}+", GITLEAKS),
    CredentialFormat("notion-token", ("ntn_",), rf"[0-9]{{11}}{_B62}{{35}}", GITLEAKS),
    CredentialFormat("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), r"[A-Za-z0-9.-]{40,64}+", GITLEAKS),
    CredentialFormat("databricks-token", ("dapi",), rf"{_HEX}{{32}}", GITLEAKS),
    CredentialFormat("grafana-token", ("glsa_",), rf"{_B62}{{32}}_[0-9A-Fa-f]{{8}}", GITLEAKS),
    CredentialFormat("grafana-token", ("glc_",), r"[A-Za-z0-9+/]{32,400}+={0,3}", GITLEAKS),
    CredentialFormat("vault-token", ("hvs.", "hvb."), rf"{_URL}{{24,300}}+", GITLEAKS),
    CredentialFormat("terraform-token", (".atlasv1.",), r"[A-Za-z0-9=_-]{60,70}", GITLEAKS, head=rf"(?:(?<![A-Za-z0-9])|{_ESCAPE})[A-Za-z0-9]{{14}}", before=14),
    CredentialFormat("rubygems-key", ("rubygems_",), rf"{_HEX}{{48}}", GITLEAKS),
    CredentialFormat("pulumi-token", ("pul-",), rf"{_HEX}{{40}}", GITLEAKS),
    CredentialFormat("sentry-token", ("sntryu_",), rf"{_HEX}{{64}}", GITLEAKS),
    CredentialFormat("sentry-token", ("sntrys_",), r"eyJ[A-Za-z0-9+/=_]{60,600}+", GITLEAKS),
    CredentialFormat("planetscale-token", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), r"[A-Za-z0-9_=.-]{32,64}+", GITLEAKS),
    CredentialFormat("new-relic-key", ("NRAK-",), r"[A-Za-z0-9]{27}", GITLEAKS),
    CredentialFormat("perplexity-key", ("pplx-",), rf"{_B62}{{40,64}}+", GITLEAKS),
    CredentialFormat("groq-key", ("gsk_",), rf"{_B62}{{40,64}}+", "console.groq.com: API keys"),
    CredentialFormat("fly-token", ("fo1_",), rf"{_URL}{{43}}", GITLEAKS),
    CredentialFormat("fly-token", ("fm1a_", "fm1r_", "fm2_"), r"[A-Za-z0-9+/]{100,2000}+={0,3}", GITLEAKS),
    CredentialFormat("atlassian-token", ("ATATT3", "ATCTT3"), r"[A-Za-z0-9_=-]{150,250}+", GITLEAKS),
    CredentialFormat("dropbox-token", ("sl.",), r"[A-Za-z0-9_=-]{130,300}+", GITLEAKS),
    CredentialFormat("docker-token", ("dckr_pat_", "dckr_oat_"), rf"{_URL}{{27,40}}+", "docs.docker.com: access tokens"),
    CredentialFormat("tailscale-key", ("tskey-",), r"[a-z]{2,12}-[A-Za-z0-9-]{16,80}+", "tailscale.com/kb: keys"),
    CredentialFormat("brevo-key", ("xkeysib-",), rf"{_HEX}{{64}}-{_B62}{{16}}", GITLEAKS, random=False),
    CredentialFormat("1password-token", ("ops_eyJ",), r"[A-Za-z0-9+/_=-]{200,4000}+", GITLEAKS),
    CredentialFormat("1password-key", ("A3-",), r"[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}", GITLEAKS),
    CredentialFormat("url-password", ("://",), r"[^\s/:@\"'<>]{0,64}+:(?P<value>[^\s/@\"'<>]{3,256}+)(?=@)", DETECT, head="", random=False),
)  # fmt: skip

# Names after which a random value is a secret; in lower case, in several languages.
_WORDS: Final = (
    *("secret", "token", "passw", "passphrase", "kennwort", "mot de passe", "contrase", "senha", "credential"),
    *("密码", "密碼", "口令", "密钥", "密鑰", "パスワード", "пароль"),
)
_SUFFIX: Final = r"[A-Za-z0-9_\u00f1-]{0,24}+"
_SIGN: Final = r"[\"'`*_\]]{0,4}+\s{0,3}+(?:=>|->|:=|::|[=:|\uff1a]|is(?![a-z])|ist(?![a-z])|是|为|は)"
_CHAR: Final = r"[^\s\"'`<>(){}\[\],;|\\&:\x80-\U0010ffff]"
_CHARS: Final = possessive(rf"{_CHAR}|&(?![A-Za-z0-9_.-]{{1,40}}=)|:(?!//)", "{12,512}")
_VALUE: Final = rf"[\s\"'`*]{{0,8}}+(?P<value>{_CHARS})"
_KEY_OF: Final = (
    "(?:(?<=api)|(?<=access)|(?<=private)|(?<=auth)|(?<=secret)|(?<=[ _-])|(?<![A-Za-z]))(?<!public[ _-])(?<!public)"
)
# Without ASCII, "k" and "s" would be refused: two other characters are their capitals too.
_FOLDED: Final = re.IGNORECASE | re.ASCII

# A word in lower case, and the pattern that matches at its position.
ASSIGNMENTS: Final[Mapping[str, tuple[str, re.RegexFlag]]] = {
    **{word: (f".{{{len(word)}}}{_SUFFIX}{_SIGN}{_VALUE}", re.ASCII | re.DOTALL) for word in _WORDS},
    "pwd": (rf"(?<![a-z])pwd{_SUFFIX}{_SIGN}{_VALUE}", _FOLDED),
    "pass": (rf"(?<![a-z])pass(?![a-z]){_SIGN}{_VALUE}", _FOLDED),
    "key": (rf"{_KEY_OF}key(?![a-z]){_SUFFIX}{_SIGN}{_VALUE}", _FOLDED),
    "bearer": (rf"(?<![a-z])bearer(?=\s){_VALUE}", _FOLDED),
    "authorization": (
        rf"authorization[\"']?\s{{0,3}}+[:=]\s{{0,3}}+[\"']?(?:basic|token|apikey|key)(?=\s){_VALUE}",
        _FOLDED,
    ),
}


@functools.cache
def compile_assignment(word: str) -> re.Pattern[str]:
    """Compile the pattern of a word of `ASSIGNMENTS`.

    Compiling all takes long, and a text contains few of the words."""
    return re.compile(*ASSIGNMENTS[word])
