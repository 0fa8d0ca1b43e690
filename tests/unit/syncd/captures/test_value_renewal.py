"""syncd/captures/value_renewal.py: what nobody gave follows the text, whoever finds it; what somebody gave stays."""

import pytest

from syncd.notes.front_matter import read_properties, split
from syncd.settings.settings import EnrichSettings
from tests.support.agent_writes import capture, delete, undo, update
from tests.support.fakes import FakeChat
from tests.support.world import World, promote

ZEBRA = "Zebra migration across the Serengeti plain."
TAX = "Tax forms are due in April."


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def remote(tmp_path):
    with FakeChat() as chat:
        settings = EnrichSettings(by="endpoint", base_url=chat.url, model="small", timeout_s=5.0)
        opened = World(tmp_path, enrich=settings)
        opened.chat = chat
        yield opened
        opened.close()


def space(world):
    return world.app.agent_access.workspace("default")


def properties(world, record):
    return read_properties(split((world.vault / record.path).read_text())[0])


def before_the_record(world):
    """Every capture as an earlier version of Memex left it: nothing is recorded of it."""
    ledger = world.app.opened.ledger
    with ledger.transaction():
        ledger.execute("DELETE FROM automatic")


def hand_edit(world, record, old, new):
    file = world.vault / record.path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    world.run()
    world.run()
    return space(world).get(record.id).record


def test_an_index_from_scratch_is_the_same_and_a_link_by_the_file_s_name_still_leads_there(world):
    record = capture(world, ZEBRA)
    memo = capture(world, f"See [[{record.title}]].")
    after = update(world, record.id, TAX)
    assert (after.path, after.title) == (record.path, TAX[:-1])
    assert world.found("zebra", mode="text", scope="captures") == [memo.path]
    assert world.dump() == world.rebuilt(world.state.parent / "again")
    assert world.app.operations["get"]({"id": ZEBRA[:-1]}, lambda _: None)["id"] == record.id


def test_an_endpoint_is_asked_again(remote):
    remote.chat.says('{"summary": "Zebras.", "tags": ["zebra"]}')
    record = capture(remote, ZEBRA)
    remote.chat.says('{"summary": "Taxes.", "tags": ["tax"]}')
    after = update(remote, record.id, TAX)
    assert (after.title, after.summary, after.tags) == (TAX[:-1], "Taxes.", ("tax",))
    assert "Zebra" not in str(remote.chat.requests[-1]["messages"][1]), "the old title is not sent with the new text"


def test_while_an_endpoint_fails_old_values_go_and_the_new_ones_come_later(remote, monkeypatch):
    remote.chat.says('{"summary": "Zebras.", "tags": ["zebra"]}')
    record = capture(remote, ZEBRA)
    body, remote.chat.status = remote.chat.body, 500
    after = update(remote, record.id, TAX)
    assert (after.title, after.summary, after.tags) == (TAX[:-1], None, ())
    assert len(remote.app.opened.enricher.pending_retries()) == 1
    remote.chat.status, remote.chat.body = 200, body
    remote.chat.says('{"summary": "Taxes.", "tags": ["tax"]}')
    remote.app.opened.enricher._resting_until = 0.0
    monkeypatch.setattr("syncd.enrichment.backfill.now_ms", lambda: 10**14)
    remote.app.backfill.retry_failed()
    late = space(remote).get(record.id).record
    assert (late.summary, late.tags) == ("Taxes.", ("tax",))
    remote.chat.says('{"summary": "Zebras.", "tags": ["zebra"]}')
    assert update(remote, record.id, ZEBRA).tags == ("zebra",), "what came later is automatic too"


def test_a_note_that_had_nothing_to_find_gets_what_its_new_text_has(world):
    record = capture(world, "x")
    assert record.tags == ()
    assert "tax-form" in update(world, record.id, TAX).tags


def test_tags_in_the_text_take_the_place_of_automatic_ones(world):
    record = capture(world, ZEBRA)
    after = update(world, record.id, "Tax forms are due. #april")
    assert after.tags == ("april",)
    assert "tags" not in properties(world, after)
    assert "zebra-migration" in update(world, record.id, ZEBRA).tags


def test_the_collection_among_the_tags_stays(world):
    record = capture(world, ZEBRA)
    record = hand_edit(world, record, "tags:\n", "tags:\n  - collection:memory\n")
    after = update(world, record.id, TAX)
    assert (after.collection, "tax-form" in after.tags) == ("memory", True)


@pytest.mark.parametrize("name", ["tags", "summary", "title"])
def test_a_person_s_edit_of_one_value_keeps_it_and_the_others_follow(world, name):
    record = capture(world, ZEBRA)
    old, new = {
        "tags": ("  - zebra-migration\n", ""),
        "summary": ("created_at", "summary: A zebra\ncreated_at"),
        "title": ("created_at", "title: Mine\ncreated_at"),
    }[name]
    edited = hand_edit(world, record, old, new)
    after = update(world, record.id, TAX)
    same = {field for field in ("tags", "summary", "title") if getattr(after, field) == getattr(edited, field)}
    assert same == {name}


def test_a_file_that_a_person_renamed_keeps_its_name_as_title(world):
    record = capture(world, ZEBRA)
    (world.vault / record.path).rename(world.vault / "Captures/default/Safari.md")
    world.run()
    assert update(world, record.id, TAX).title == "Safari"


def test_the_text_that_a_person_edits_changes_no_property_until_a_tool_changes_it(world):
    record = capture(world, ZEBRA)
    edited = hand_edit(world, record, f"\n{ZEBRA}", "\nLions rest in the shade.")
    assert (edited.title, edited.tags, edited.summary) == (record.title, record.tags, "Lions rest in the shade.")
    after = update(world, record.id, TAX)
    assert (after.title, after.summary) == (TAX[:-1], TAX)
    assert not set(after.tags) & set(record.tags)


def test_a_person_s_own_note_keeps_its_name_though_its_heading_is_the_same(world):
    file = world.write("Captures/default/Zebra.md", "# Zebra\n\nA zebra has stripes.\n")
    world.run()
    world.run()
    (record,) = [space(world).get(id).record for id in [read_properties(split(file.read_text())[0])["id"]]]
    after = update(world, record.id, TAX)
    assert (after.title, after.tags, after.summary) == ("Zebra", (), None)


def test_of_an_older_capture_title_and_summary_follow_and_the_tags_stay(world):
    record = capture(world, ZEBRA)
    before_the_record(world)
    after = update(world, record.id, TAX)
    assert (after.title, after.summary, after.tags) == (TAX[:-1], TAX, record.tags)
    again = update(world, record.id, ZEBRA)
    assert (again.title, again.summary) == (record.title, record.summary), "from now on they are recorded"


def test_of_an_older_capture_what_somebody_gave_stays(world):
    given = capture(world, ZEBRA, metadata={"title": ZEBRA[:-1]})
    summed = hand_edit(world, given, "created_at", "summary: A zebra\ncreated_at")
    before_the_record(world)
    after = update(world, given.id, TAX)
    assert (after.title, after.summary, after.tags) == (given.title, summed.summary, given.tags)


def test_what_an_undo_brings_back_is_as_automatic_as_it_was(world):
    record = capture(world, ZEBRA)
    update(world, record.id, TAX)
    undo(world, record.id)
    back = space(world).get(record.id).record
    assert (back.title, back.tags, back.summary) == (record.title, record.tags, record.summary)
    after = update(world, record.id, TAX)
    assert (after.title, "tax-form" in after.tags, after.summary) == (TAX[:-1], True, TAX)
    delete(world, record.id)
    undo(world, record.id)
    assert update(world, record.id, ZEBRA).tags == record.tags


def test_it_is_promoted_under_its_title_unless_a_person_named_the_file(world):
    for text, rename in ((ZEBRA, False), ("Lions rest in the shade.", True)):
        record = capture(world, text)
        after = update(world, record.id, TAX if not rename else "Gas bills are due in May.")
        if rename:
            (world.vault / record.path).rename(world.vault / "Captures/default/Mine.md")
            world.run()
        promote(world, record.id, to="Notes")
        assert (world.vault / "Notes" / ("Mine.md" if rename else f"{after.title}.md")).exists()


def test_after_enrichment_is_switched_off_automatic_values_of_the_old_text_go(tmp_path):
    world = World(tmp_path)
    record = capture(world, ZEBRA)
    world._sections = {"enrich": EnrichSettings(by="off")}
    world.reopen()
    try:
        after = update(world, record.id, TAX)
        assert (after.title, after.tags, after.summary) == (TAX[:-1], (), None)
    finally:
        world.close()


@pytest.mark.parametrize(
    "text",
    ["---\n", "\ud7ff", "#", "[[x]]", "📎", "a" * 5000, "-- ~", "CON", "日本語のメモ。\n" * 9, "x.md", "\x00\x01"],
)
def test_whatever_the_text_its_title_is_the_one_that_a_new_capture_of_it_has(world, text):
    world.app.agent_access.create_workspace("other")
    record = capture(world, ZEBRA)
    after = update(world, record.id, text)
    assert (after.path, space(world).get(record.id).content) == (record.path, text)
    fresh = capture(world, text, workspace="other")
    assert after.title == fresh.title or after.title.startswith("Capture 2")


@pytest.mark.parametrize("steps", [("title", "text"), ("tags", "text"), ("text", "tags", "title"), ("text", "text")])
def test_after_any_changes_only_what_somebody_gave_differs_from_a_new_capture_of_the_text(world, steps):
    record = capture(world, ZEBRA)
    for step in steps:
        match step:
            case "text":
                space(world).update_note(record.id, "A boat has a keel of lead.")
            case "title":
                space(world).update_note(record.id, None, title="Given")
            case "tags":
                space(world).update_note(record.id, None, tags=["given"])
    after = update(world, record.id, TAX)
    delete(world, record.id)
    fresh = capture(world, TAX)
    assert after.title == ("Given" if "title" in steps else fresh.title)
    assert sorted(after.tags) == (["given"] if "tags" in steps else sorted(fresh.tags))
    assert after.summary == fresh.summary


def test_what_nobody_gave_still_follows_the_text_after_a_deletion_the_daily_clean_up_and_an_undo(world):
    record = capture(world, ZEBRA)
    world.run()
    delete(world, record.id)
    assert world.app.opened.builds.is_complete, "only then does the clean-up forget notes"
    world.app.jobs.run("leftovers")
    undo(world, record.id)
    assert "tax" in str(update(world, record.id, TAX).tags)
