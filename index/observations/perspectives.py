"""Define perspectives: the named prompts under which observations and queries are embedded.

Law, tested: names and prompts that pass `validate` are words that a filter, a listing and a line of a terminal can
hold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from index.document_ids import sha256
from index.errors import InvalidArgument

MOST: Final = 32  # perspectives of a workspace
PROMPT: Final = 200  # most characters of a prompt
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}\Z")


@dataclass(frozen=True, slots=True)
class Perspective:
    """Describes a perspective: its `prompt` precedes observations and queries when they are embedded."""

    name: str
    prompt: str  # "" = nothing is put in front


DEFAULTS: Final = (
    Perspective("general", ""),
    Perspective("technical", "how:"),
    Perspective("relational", "who:"),
    Perspective("temporal", "when:"),
    Perspective("project", "goal:"),
)


def observation_text(perspective: Perspective, name: str, content: str) -> str:
    """Return the text that is embedded for an observation of the node `name`."""
    return query_text(perspective, f"{name}: {content}")


def query_text(perspective: Perspective, query: str) -> str:
    """Return the text that is embedded for a query."""
    return f"{perspective.prompt} {query}" if perspective.prompt else query


def hash_perspectives(perspectives: Sequence[Perspective]) -> str:
    """Hash the names, prompts and order of a table of perspectives."""
    text = json.dumps([(perspective.name, perspective.prompt) for perspective in perspectives])
    return sha256(text.encode())[:16]


def validate(name: object, prompt: object) -> Perspective:
    """Make a perspective with this name and prompt. Raises InvalidArgument with the reason."""
    if not isinstance(name, str) or not NAME.match(name):
        raise InvalidArgument(
            "a perspective's name must be 1 to 32 lower-case letters, digits and hyphens, and begin with a letter",
            field="name",
        )
    if not isinstance(prompt, str) or len(text := " ".join(prompt.split())) > PROMPT:
        raise InvalidArgument(f"a perspective's prompt must be one line of at most {PROMPT} characters", field="prompt")
    if not text.isprintable():
        raise InvalidArgument("a perspective's prompt must contain no control characters", field="prompt")
    return Perspective(name, text)
