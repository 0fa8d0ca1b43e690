"""Give each background job the name by which people know it; programs and the API use its key.

Law, tested: every job of the daemon has a name, no two are equal, and the key and the name lead to the key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from index.names import fold

NAMES: Final[Mapping[str, str]] = {
    "archive": "archive expired captures",
    "commits": "commit to Git",
    "consolidation": "report what needs attention",
    "context": "write what agents get at the start of a session",
    "deep check": "compare notes with the index",
    "dropped files": "import new files",
    "ended jobs": "forget finished jobs",
    "enrichment": "retry summaries and tags",
    "leftovers": "remove leftover files",
    "listing": "list the vault",
    "maintenance": "maintain the index",
    "manual moves": "finish manual moves",
    "old versions": "forget old versions",
    "promotion": "promote marked captures",
    "remote": "exchange with the Git remote",
    "review": "suggest folders and tags",
    "root": "check that the vault is there",
    "suggestions": "renew suggestions at night",
    "ticked proposals": "carry out ticked proposals",
    "uploads": "remove unfinished uploads",
}
_WORDS: Final = str.maketrans("-_", "  ")  # `list-the-vault` is one word for a shell


def job_name(key: str) -> str:
    """Return the name of a job for people."""
    return NAMES.get(key, key)


def shell_word(key: str) -> str:
    """Return the name of a job as one word for a shell."""
    return job_name(key).replace(" ", "-")


def find_key(text: str, keys: Collection[str]) -> str | None:
    """Return the key of the job with this name or key, in any spelling; None when there is no such job."""
    wanted = fold(text.translate(_WORDS)).strip()
    return next((key for key in keys if wanted in map(fold, (key, job_name(key)))), None)
