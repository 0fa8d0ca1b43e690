"""Two notes of two workspaces may have one id, such as a memo's name: what Memex records about one is not recorded about the other."""

from __future__ import annotations

import os

import pytest

from syncd.history.audit_log import Author, acting_as
from tests.support.world import World

ID = "standup"


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    opened.app.agent_access.create_workspace("b")
    yield opened
    opened.close()


def drop(world, path, text):
    """A note with the id that a person put there a while ago."""
    file = world.write(path, f"---\nid: {ID}\n---\n{text}\n")
    for _ in range(2):
        world.run()
    os.utime(file, (1_700_000_000, 1_700_000_000))
    world.run()
    return file


def hand(world, workspace):
    return world.app.agent_access.workspace(workspace).hands([ID])[ID]


def test_who_wrote_one_says_nothing_about_the_other_unless_it_was_moved(world):
    with acting_as(Author("mcp", "capture_thought")):
        world.app.agent_access.workspace("default").memos.save("What we said on Monday.", memo_id=ID)
    other = drop(world, "Captures/b/Mine.md", "The plumber mended the heating.")
    assert (hand(world, "default"), hand(world, "b")) == ("key", "hand")
    record = world.app.agent_access.workspace("default").get(ID).record
    other.unlink()
    (world.vault / record.path).rename(other)
    world.run()
    assert hand(world, "b") == "key"


def test_both_get_the_summary_that_is_owed(world):
    texts = {
        "Captures/default/A.md": "The electrician mended the lamp.",
        "Captures/b/Longer name.md": "The plumber mended the heating.",
    }
    for path, text in texts.items():
        drop(world, path, text)
    enricher = world.app.opened.enricher
    for workspace in ("default", "b"):
        enricher.add_retry(workspace, ID, 0)
    with world.app.opened.ledger.transaction():
        world.app.opened.ledger.execute("UPDATE enrichment SET due_at = 0")
    world.app.backfill.retry_failed()
    assert enricher.pending_retries() == []
    assert all(world.app.opened.captures.index.record_at(path).tags for path in texts)


def test_a_use_of_one_is_no_use_of_the_other(world):
    uses = world.app.opened.contexts.uses
    world.app.agent_access.workspace("default").count_uses([ID])
    uses.flush()
    assert (uses.read("default"), uses.read("b")) == ({ID: 1.0}, {})
