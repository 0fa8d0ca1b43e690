"""Write the note of an entity, and read the node from the note."""

from __future__ import annotations

from syncd.documents.entity_node import read_node
from syncd.notes.front_matter import read_properties, split

NOW = 1_790_000_000_000
STAMP = "2026-09-21T14:13:20.000Z"

PATH = "Captures/default/Entities/Ada Lovelace.md"


def said(text):
    front, body = split(text)
    return read_node(read_properties(front), body, PATH)[0]


def observed(text):
    return {one.ordinal: one.content for one in said(text).observations}
