"""A vault with a capture to promote, and its content before and after the promotion."""

from __future__ import annotations

CAPTURE = (
    "---\nid: c1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\ncollection: documents\ntags: [herons]\n"
    "{marks}---\nThe heron stands in the reeds, see [[Pond]] and ![[Pond#Depth|deep]].\n"
)


def capture(marks=""):
    return CAPTURE.format(marks=marks)


def promotions(world):
    return world.app.services.promotions


def files(world):
    found = (file for file in world.vault.rglob("*") if file.is_file() and ".git" not in file.parts)
    return {str(file.relative_to(world.vault)): file.read_bytes() for file in found}


def consistent(world, tmp_path):
    assert world.app.opened.sync.run(accept=True).changes == 0, "nothing was left to index"
    assert world.dump() == world.rebuilt(tmp_path / "other")


def marked(world):
    world.app.services.marked_captures.run()
