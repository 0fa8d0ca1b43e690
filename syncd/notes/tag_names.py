"""Turn texts into tag names that Obsidian accepts, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from index.errors import InvalidArgument
from index.names import fold
from index.query import tag_of
from index.text.hidden_characters import remove_ignorable

TAGS: Final = 50
DEFECT: Final = "bad-tag"  # the name of the defect of a note with a tag that Obsidian does not accept


def check_tags(texts: Sequence[str]) -> tuple[str, ...]:
    """Return tags as Obsidian accepts them, each once. Raises InvalidArgument."""
    tags: dict[str, str] = {}
    for tag in map(tag_of, texts):
        tags.setdefault(fold(tag), tag)
    if len(tags) > TAGS:
        raise InvalidArgument(f"a note can have at most {TAGS} tags", limit=TAGS)
    if not all(map(remove_ignorable, tags)) or any(key.startswith("collection:") for key in tags):
        raise InvalidArgument("a tag needs a letter or digit, and can't begin with `collection:`")
    return tuple(tags.values())
