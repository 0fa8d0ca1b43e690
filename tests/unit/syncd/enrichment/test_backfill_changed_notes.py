"""syncd/enrichment/backfill.py: a note that changes while the backfill runs gets the summary and tags of its new text."""

import os

import pytest

from index.errors import Conflict
from syncd.settings.settings import EnrichSettings
from tests.support.fakes import FakeChat
from tests.support.world import World

LAMP = "The lighthouse keeper repaired the lamp with copper wire. The lamp shines far over the sea.\n"
BAKERY = "Invoices of the bakery are due on Friday. The bakery sends invoices by post.\n"
ZEBRA = "Captures/default/Zebra.md"


def dropped(world, path, text):
    file = world.write(path, text)
    world.run()
    world.run()
    os.utime(file, (1_700_000_000, 1_700_000_000))
    world.run()
    return file


def rewrite(file):
    file.write_text(file.read_text().replace(LAMP, BAKERY))


def test_a_note_that_is_changed_before_its_turn_is_read_again(tmp_path):
    world = World(tmp_path)
    dropped(world, "Captures/default/Apple.md", "The garden pump needs a new valve before spring.\n")
    file = dropped(world, ZEBRA, LAMP)

    def progress(event):
        if event["stage"] == "writing" and event["done"] == 2:
            rewrite(file)
            world.run()

    report = world.app.operations["enrich.backfill"]({}, progress)
    world.close()
    assert report["enriched"] == 2
    assert "bakery" in file.read_text().split("---")[1]
    assert "lighthouse" not in file.read_text()


class Meanwhile(FakeChat):
    """An endpoint during whose answer the owner rewrites a note; the backfill asks it twice."""

    file = None
    at = 1

    def answer(self, _request):
        if self.file and len(self.requests) == self.at:
            rewrite(self.file)


@pytest.fixture
def chat():
    with Meanwhile() as endpoint:
        yield endpoint


@pytest.fixture
def world(tmp_path, chat):
    opened = World(tmp_path, enrich=EnrichSettings(by="endpoint", base_url=chat.url, model="small", timeout_s=5.0))
    yield opened
    opened.close()


def test_a_note_that_is_changed_during_the_answer_is_skipped_and_named(world, chat):
    chat.file, chat.at = dropped(world, ZEBRA, LAMP), 2
    report = world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert (report["enriched"], [note["path"] for note in report["skipped"]]) == (0, [ZEBRA])
    assert "summary:" not in chat.file.read_text()
    assert world.app.operations["enrich.backfill"]({}, lambda _: None)["enriched"] == 1


def test_the_command_for_one_note_says_that_it_has_changed(world, chat):
    chat.file = dropped(world, ZEBRA, LAMP)
    note = world.app.opened.captures.index.record_at(ZEBRA).id
    with pytest.raises(Conflict, match="changed"):
        world.app.operations["enrich"]({"id": note}, lambda _: None)
    assert "summary:" not in chat.file.read_text()
    assert "summary" in world.app.operations["enrich"]({"id": note}, lambda _: None)["changed"]


def test_a_retry_of_a_note_that_has_changed_waits_for_the_next_time(world, chat):
    chat.file = dropped(world, ZEBRA, LAMP)
    note, enricher = world.app.opened.captures.index.record_at(ZEBRA).id, world.app.opened.enricher
    enricher.add_retry("default", note, 0)
    world.app.backfill.retry_failed()
    assert enricher.pending_retries() == [("default", note, 1)]
    assert "summary:" not in chat.file.read_text()
