"""Save memos as notes, and read them from the files."""

from __future__ import annotations

from syncd.notes.front_matter import read_properties, split


def save(space, content, **given):
    return space.memos.save(content, **given).record


def text_of(world, record):
    return (world.vault / record.path).read_text()


def relations_in(world, record):
    return read_properties(split(text_of(world, record))[0]).get("relations")


def entries(found):
    return [(tie.source.id, tie.target.id, tie.relation.tag) for tie in found.ties]


def titles(found):
    return [item.record.title for item in found.items]


def files(world):
    return {path: path.read_bytes() for path in sorted(world.vault.rglob("*.md"))}
