"""Write as agents do in a test world, and undo the writes, for tests of history."""

from __future__ import annotations

from syncd.history.audit_log import Author, acting_as

NUMBERS = iter(range(10**9))


def by(key="claude", tool="capture_thought", surface="mcp", request=None):
    """Count all writes in this block as one call of an agent."""
    return acting_as(Author(surface, tool, f"k-{key}", key, request or f"{next(NUMBERS):016x}"))


def space(world, name="default"):
    return world.app.agent_access.workspace(name)


def capture(world, text, **more):
    with by(**{name: more.pop(name) for name in ("key",) if name in more}):
        return space(world, more.pop("workspace", "default")).capture(text, **more).record


def update(world, id, text, key="claude"):
    with by(key, "kb_update_note"):
        return space(world).update_note(id, text)[0]


def delete(world, id, key="claude"):
    with by(key, "delete_thought"):
        space(world).delete(id)


def undo(world, id=None, **more):
    given = {**more} | ({"id": id} if id else {"since": more.get("since", 0)})
    return world.app.operations["undo"](given, lambda _: None)


def inbox(world):
    root = world.vault / "Captures"
    return {str(file.relative_to(world.vault)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
