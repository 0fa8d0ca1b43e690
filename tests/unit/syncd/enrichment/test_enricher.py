"""syncd/enrichment/enricher.py: a note that shows a defect of the enrichment costs no other note its summary and tags."""

import logging
import os
import time
from types import SimpleNamespace

import pytest

from index.errors import InvalidArgument, Unavailable
from index.timings import now_ms
from syncd.enrichment import enricher as enriching
from syncd.enrichment.backfill import Backfill
from syncd.enrichment.enricher import DefectiveNote
from syncd.settings.settings import EnrichSettings
from tests.support.fakes import FakeChat, FakeEncoder, fake_embedder
from tests.support.world import World

BAD = "The deployment is late, and the deployment of Tuesday was later than that."
PATH = "Captures/default/Note 1.md"


class DefectiveEncoder(FakeEncoder):
    """A model with a defect that one tag shows."""

    error: Exception | None = IndexError("string index out of range")
    pause = 0.0

    def encode(self, texts, *, kind, urgent):
        if "deployment" in texts:
            time.sleep(self.pause)
            if self.error:
                raise self.error
        return super().encode(texts, kind=kind, urgent=urgent)


@pytest.fixture
def encoder():
    return DefectiveEncoder()


@pytest.fixture
def world(tmp_path, encoder):
    opened = World(tmp_path, embedder=fake_embedder(encoder), enrich=EnrichSettings(vocabulary=1))
    for n in range(3):
        capture(opened, f"note {n}", metadata={"tags": ["deploying"]})
    yield opened
    opened.close()


def capture(world, text, **more):
    return world.app.agent_access.workspace("default").capture(text, **more).record


def dropped(world):
    """Three notes, the second of which shows the defect."""
    texts = ["The plumber mended the heating.", BAD, "The gardener cut a pear tree."]
    files = [world.write(f"Captures/default/Note {n}.md", text) for n, text in enumerate(texts)]
    for _ in range(2):
        world.run()
    for file in files:
        os.utime(file, (1_700_000_000, 1_700_000_000))
    world.run()
    return files


def facts(world):
    return world.app.health.facts()["enrichment"]


def record_of(world, path):
    return world.app.opened.captures.index.record_at(path)


def test_a_backfill_enriches_the_others_and_names_the_one(world, encoder, caplog):
    files = dropped(world)
    with caplog.at_level(logging.ERROR):
        report = world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert report["enriched"] == 2
    assert [skipped["path"] for skipped in report["skipped"]] == [PATH]
    assert "IndexError" in report["skipped"][0]["reason"]
    assert ["tags:" in file.read_text() for file in files] == [True, False, True]
    assert PATH in caplog.text
    assert f"{PATH} (IndexError)" in facts(world)["problem"]
    assert any(line.startswith("enrichment:") and PATH not in line for line in world.app.health.degraded())
    encoder.error = None
    assert world.app.operations["enrich.backfill"]({}, lambda _: None)["enriched"] == 1
    assert facts(world)["problem"] == ""
    assert not any(line.startswith("enrichment:") for line in world.app.health.degraded())


def test_what_is_owed_is_done_for_the_others_and_the_one_waits_longer_each_time(world):
    dropped(world)
    enricher, ledger = world.app.opened.enricher, world.app.opened.ledger
    records = [record_of(world, f"Captures/default/Note {n}.md") for n in range(3)]
    for record in records:
        enricher.add_retry("default", record.id, 0)
    for failures in (1, 2):
        world.app.backfill.retry_failed()
        assert enricher.pending_retries() == [("default", records[1].id, failures)]
        world.app.backfill.retry_failed()
        assert enricher.pending_retries() == [("default", records[1].id, failures)], "it is not due yet"
        with ledger.transaction():
            ledger.execute("UPDATE enrichment SET due_at = 0")
    assert [bool(record_of(world, record.path).summary) for record in records] == [True, False, True]


def test_a_note_that_was_postponed_while_the_clock_was_ahead_is_due(world):
    enricher, now = world.app.opened.enricher, now_ms()
    enricher.add_retry("default", "n1", now + 40 * 86_400_000)
    enricher.add_retry("default", "n2", now)
    assert enricher.pending_retries(now) == [("default", "n1", 0)]


def test_a_capture_that_shows_it_is_made_and_the_next_ones_have_their_tags(world):
    bad, good = capture(world, BAD), capture(world, "The plumber mended the heating.")
    assert (bad.summary, bad.tags, bool(good.summary)) == (None, (), True)
    assert bad.path in facts(world)["problem"]
    world.app.agent_access.workspace("default").delete(bad.id)
    assert facts(world)["problem"] == "", "a note that is gone is named no more"


def test_an_expected_error_of_one_note_stops_neither_its_capture_nor_the_job(world, encoder):
    encoder.error = InvalidArgument("not this text")
    assert capture(world, BAD).tags == ()
    dropped(world)
    enricher = world.app.opened.enricher
    records = [record_of(world, f"Captures/default/Note {n}.md") for n in range(3)]
    for record in records:
        enricher.add_retry("default", record.id, 0)
    world.app.backfill.retry_failed()
    assert enricher.pending_retries(now_ms()) == []
    assert [bool(record_of(world, record.path).summary) for record in records] == [True, False, True]
    assert (records[1].id, 1) in [(id, failures) for _, id, failures in enricher.pending_retries()]


def test_a_local_analysis_that_takes_long_is_named_with_its_own_limit(world, encoder, monkeypatch):
    encoder.error, encoder.pause = None, 0.5
    monkeypatch.setattr(enriching, "LOCAL_S", 0.05)
    assert capture(world, BAD).tags == ()
    assert facts(world)["problem"] == "enrichment takes longer than 0.05 s"


def test_a_command_for_the_one_note_says_what_failed(world):
    dropped(world)
    with pytest.raises(DefectiveNote, match="IndexError") as raised:
        world.app.operations["enrich"]({"id": record_of(world, PATH).id}, lambda _: None)
    assert (raised.value.code, raised.value.retryable) == (Unavailable.code, False)


def test_a_tag_of_any_form_stops_the_enrichment_of_no_note(world):
    capture(world, "x", metadata={"tags": ["a-b--c", "--", "k8s", "#", "é--"]})
    record = capture(world, "x rays of the hand")
    assert record.summary
    assert facts(world)["problem"] == ""


@pytest.mark.parametrize(
    ("summed", "waiting", "left"),
    [
        ({("work", "a"), ("home", "a")}, ("work", "a"), {("home", "a")}),
        ({("work", "a"), ("work", "b")}, ("", "a"), {("work", "b")}),
        ({("", "a"), ("", "b")}, ("work", "a"), {("", "b")}),
        ({("", "a"), ("", "b")}, ("", "a"), {("", "b")}),
    ],
)
def test_a_note_that_waits_is_not_read_and_no_workspace_means_any(summed, waiting, left):
    asked = []
    catalog = SimpleNamespace(unlabelled_paths=lambda _, summed: asked.append(summed) or [])
    enricher = SimpleNamespace(by="", problem="", pending_retries=lambda: [(*waiting, 1)])
    backfill = Backfill(
        None,
        None,
        SimpleNamespace(index=SimpleNamespace(catalog=catalog)),
        None,
        enricher,
        inbox="",
        summed=lambda: summed,
        record_summary=None,
    )
    assert (backfill.facts()["missing"], asked) == (0, [left])


# Unusable answers of an endpoint


class Refusing(FakeChat):
    """An endpoint that refuses notes with one of these words."""

    words = ("ivy",)

    def answer(self, request):
        refused = any(word in request["messages"][1]["content"] for word in self.words)
        self.says("I can't help with that." if refused else '{"summary": "A summary.", "tags": ["one-tag"]}')


@pytest.fixture
def remote(tmp_path):
    with Refusing() as chat:
        settings = EnrichSettings(by="endpoint", base_url=chat.url, model="small", timeout_s=5.0)
        opened = World(tmp_path / "remote", enrich=settings)
        yield opened, chat
        opened.close()


def put(world, *texts):
    files = [world.write(f"Captures/default/Note {n}.md", text) for n, text in enumerate(texts)]
    world.run()
    world.run()
    for file in files:
        os.utime(file, (1_700_000_000, 1_700_000_000))
    world.run()
    return files


def test_an_unusable_answer_to_one_note_costs_no_other_note_its_tags(remote):
    world, _ = remote
    files = put(world, "Herons wade.", "Poison ivy climbs.", "Terns dive.")
    report = world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert report["enriched"] == 2
    assert [skipped["path"] for skipped in report["skipped"]] == [PATH]
    assert ["tags:" in file.read_text() for file in files] == [True, False, True]
    assert f"{PATH} (the endpoint" in facts(world)["problem"]
    assert capture(world, "More ivy.").tags == ()
    assert capture(world, "A bittern booms.").tags == ("one-tag",)


def test_an_endpoint_without_a_usable_answer_is_paused_and_the_next_backfill_begins_with_other_notes(remote):
    world, chat = remote
    files = put(world, *(f"Poison ivy climbs on wall {n}." for n in range(enriching.UNUSABLE)), "Terns dive.")
    with pytest.raises(Unavailable, match="JSON"):
        world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert world.app.opened.enricher.is_resting
    assert len(chat.requests) == enriching.UNUSABLE
    world.app.opened.enricher._resting_until = 0.0
    chat.words = ()
    chat.requests.clear()
    world.app.operations["enrich.backfill"]({}, lambda _: None)
    assert "Terns" in chat.requests[0]["messages"][1]["content"]
    assert all("tags:" in file.read_text() for file in files)
    assert facts(world)["problem"] == ""
