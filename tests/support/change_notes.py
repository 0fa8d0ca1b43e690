"""Change notes as `propose_change` writes them, for tests without an agent."""

from __future__ import annotations

import hashlib

from syncd.changes.change_note import change_properties, compose_body
from syncd.changes.unified_diff import compose_diff
from syncd.documents.capture_note import compose_note


def change_note(id: str, target: str, before: str, after: str, reason: str = "It is shorter.") -> str:
    """Return the text of a capture that proposes `after` in place of `before`, the text of the note at `target`."""
    base = hashlib.sha256(before.encode()).hexdigest()
    properties = change_properties(
        id=id, created_at=0, target=target, base=base, reason=reason, agent="claude-code", workspace="default"
    )
    return compose_note(properties, compose_body(target, base, reason, compose_diff(before, after, target)))
