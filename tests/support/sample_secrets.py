"""Generate sample texts with random secrets; no secret is real."""

from __future__ import annotations

import base64
import json
import random
import string

DICE = random.Random(7)


def dice(length, letters=string.ascii_letters + string.digits):
    return "".join(DICE.choice(letters) for _ in range(length))


def token(**claims):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256', 'kid': dice(20)})}.{part(claims or {'sub': dice(30)})}.{dice(86)}"


LINES = "\n".join(dice(64) for _ in range(20))


SECRETS = {
    "memex-key": f"mx_{dice(12, '0123456789abcdef')}_{dice(64, '0123456789abcdef')}",
    "openai-key": f"sk-proj-{dice(44)}",
    "github-token": f"ghp_{dice(36)}",
    "gitlab-token": f"glpat-{dice(20)}",
    "aws-key": f"AKIA{dice(14, string.ascii_uppercase)}7Q",
    "slack-token": f"xoxb-{dice(12, string.digits)}-{dice(24)}",
    "google-key": f"AIza{dice(35)}",
    "jwt": token(),
    "private-key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{LINES}\n-----END OPENSSH PRIVATE KEY-----",
}
