"""The property `share` of a note forbids that agents read it, whatever a rule shares.

Law, tested: a note is withheld unless its properties can be read, and say nothing about `share` or `share: true`."""

from __future__ import annotations

from typing import Final

from syncd.notes.front_matter import FrontmatterError, comparable_key, has_merge_conflict, is_unclosed, read, split

SHARE: Final = "share"


def why_withheld(text: str) -> str:
    """Return why the properties of a note with this text forbid that agents read it, as a sentence; "" = they allow it.

    Only `true` allows it. An empty value, a text such as "false", and a property that occurs twice do not: a person with
    this property in a note probably wants to withhold it. Spellings that look like `share` count as it."""
    if has_merge_conflict(text):
        return "it has an unfinished merge"
    if is_unclosed(text):
        return "its properties have no closing `---`"
    try:
        properties = read(split(text)[0])
    except FrontmatterError:
        return "its properties can't be read"
    named = [value for key, value in properties.values.items() if comparable_key(key) == SHARE]
    if any(comparable_key(key) == SHARE for key in properties.repeated) or len(named) > 1:
        return "its property `share` occurs more than once"
    return "" if all(value is True for value in named) else "its property `share` is not `true`"
