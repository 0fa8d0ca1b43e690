"""What a capture's note holds at first: nothing that a default says, and nothing that the text says already."""

import pytest

from syncd.notes.front_matter import read_properties, split
from syncd.settings.settings import EnrichSettings
from tests.support.world import World

LINE = "The roof terrace door sticks when it rains; plane the lower edge in spring."
ALLOWED = {"id", "created_at", "source", "tags", "summary", "promote"}


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


def capture(world, text=LINE, **given):
    return world.app.agent_access.workspace("default").capture(text, **given).record


def properties(world, record):
    return read_properties(split((world.vault / record.path).read_text())[0])


def test_a_line_without_arguments_has_six_properties_at_most_also_after_the_review(world):
    record = capture(world)
    assert set(properties(world, record)) <= ALLOWED
    world.run()
    world.app.services.review.run()
    held = properties(world, record)
    assert set(held) <= ALLOWED
    assert held["promote"] is False, "the box that Obsidian shows"
    assert "summary" not in held


def test_the_first_sentence_is_the_summary_that_answers_give(world):
    record = capture(world)
    assert record.summary == LINE
    world.app.opened.sync.run(accept=True)
    assert world.app.agent_access.workspace("default").record(record.id).summary == LINE


@pytest.mark.parametrize(
    "text",
    [
        f"{LINE}\n\nAsk the carpenter.",
        f"# {LINE}\n",
        f"- [ ] {LINE}",
        f"**{LINE}**",
    ],
)
def test_no_summary_repeats_the_first_line(world, text):
    record = capture(world, text)
    assert record.summary == LINE
    assert "summary" not in properties(world, record)


def test_a_summary_that_says_something_else_is_written(world):
    text = "Notes of today.\n\nThe heat pump filter of the roof terrace is due in May, and the heat pump is loud.\n"
    record = capture(world, text)
    assert properties(world, record)["summary"] == record.summary != "Notes of today."


def test_what_was_given_is_written(world):
    record = capture(world, metadata={"title": "Door", "tags": ["collection:memory", "roof"]}, source="cli")
    held = properties(world, record)
    assert (held["title"], held["tags"], held["collection"], held["source"]) == ("Door", ["roof"], "memory", "cli")


def test_a_note_that_was_written_with_all_its_properties_is_left_as_it_is(world):
    text = f"---\nid: old\ncreated_at: 2026-01-02T03:04:05Z\ncollection: documents\ntags:\n  - roof\nsummary: {LINE}\npromote: false\n---\n{LINE}"
    file = world.write("Captures/default/Old.md", text)
    world.run()
    world.app.services.review.run()
    world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert file.read_text() == text


def test_a_capture_whose_first_sentence_says_most_counts_as_enriched(world):
    record = capture(world)
    assert world.app.health.facts()["enrichment"]["missing"] == 0
    answer = world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert (answer["enriched"], answer["notes"]) == (0, [])
    assert "summary" not in properties(world, record)


def test_a_note_dropped_in_with_tags_is_read_for_a_summary_once(world):
    file = world.write("Captures/default/Dropped.md", f"---\ntags:\n  - roof\n---\n{LINE}")
    world.run()
    world.run()
    assert world.app.health.facts()["enrichment"]["missing"] == 1
    world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert world.app.health.facts()["enrichment"]["missing"] == 0
    assert "summary" not in file.read_text()


def test_a_capture_that_was_not_enriched_has_neither_summary_nor_tags(tmp_path):
    world = World(tmp_path, enrich=EnrichSettings(by="off"))
    try:
        assert (capture(world).summary, capture(world).tags) == (None, ())
    finally:
        world.close()


def test_the_summary_follows_the_text_of_an_update(world):
    from syncd.captures.note_update import NoteUpdate, update_note

    record = capture(world)
    workspace = world.app.agent_access.workspace("default")
    text = "Tax forms are due in April."
    after, changed = update_note(
        workspace._inbox, "default", lambda: workspace.record(record.id), NoteUpdate(text=text)
    )
    assert (changed, after.summary) == (True, text)
    assert "summary" not in properties(world, after)


# Tags that are in use


TEXT = "Kubernetes restarts the pump service each night; the carpentry of the pump house door is old."


def tags_beside_vault(tmp_path, **enrich):
    """The tags of a capture, where the vault has two tags that the capture's words mean."""
    world = World(tmp_path, enrich=EnrichSettings(**enrich))
    try:
        for n in range(3):
            world.write(f"House/Note {n}.md", f"---\ntags:\n  - k8s\n  - Carpentry\n---\nNote {n}.")
        world.run()
        return capture(world, TEXT).tags
    finally:
        world.close()


def test_tags_of_the_vault_are_preferred_only_where_its_owner_allows_it(tmp_path):
    unasked = tags_beside_vault(tmp_path / "unasked")
    allowed = tags_beside_vault(tmp_path / "allowed", vault_tags=True)
    assert not {"k8s", "Carpentry"} & set(unasked), "agents would read off it which tags the vault has"
    assert {"k8s", "Carpentry"} <= set(allowed)
    assert len(allowed) == 3, "where tags are in use, new ones only make up the fewest"
