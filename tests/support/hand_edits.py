"""Edit a note by hand at a chosen time, and let Memex set its properties."""

from __future__ import annotations

import os

from syncd.notes.front_matter import read_properties, split

NOTE = "---\nid: mine\ncreated_at: 2026-01-02T03:04:05.000Z\n---\n"
PATH = "Captures/default/Mine.md"
AT = 1_800_000_000_123


def written(world, text, path=PATH, at=AT):
    """Write a note at the given time, as an editor does, and return the file."""
    file = world.write(path, text)
    if at is not None:
        os.utime(file, ns=(at * 1_000_000, at * 1_000_000))
    return file


def front(file):
    return read_properties(split(file.read_bytes().decode())[0])


def stamps(file):
    said = front(file)
    return said.get("version"), said.get("updated_at")


def settled(world):
    """Run passes until nothing changes; Memex's own property updates are not edits."""
    world.run()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in world.vault.rglob("*.md")}
    for _ in range(3):
        world.run()
    world.reopen()
    world.run()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in world.vault.rglob("*.md")} == before
    assert not world.app.opened.sync.edits.paths
    assert world.dump() == world.rebuilt(world.state.parent / "again")
