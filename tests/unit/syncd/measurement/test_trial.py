"""syncd/measurement/trial.py: a trial finds what its encoder finds, and writes only into its folder."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from index.encoders.embedder import EmbedSettings
from index.encoders.settings import BundledSettings, EndpointSettings
from index.errors import Unavailable
from syncd.measurement.known_items import Question, hide_names
from syncd.measurement.trial import SearchSetup, measure_speed, run_trial
from syncd.settings.settings import SearchSettings
from tests.support.fakes import BlindEncoder, FakeEncoder
from tests.support.parsed_notes import parse

TEXTS = {
    "heron.md": "A heron stands in shallow water and waits for fish.",
    "stork.md": "A stork nests on chimneys and walks over meadows.",
    "kiln.md": "A kiln fires clay at a thousand degrees.",
}
QUESTIONS = (
    Question("waits for fish", "heron.md", "title"),
    Question("nests on chimneys", "stork.md", "title"),
    Question("nothing of it at all", "kiln.md", "title"),
)


def setup(*encoders, **search):
    return SearchSetup(EmbedSettings(encoders or (BundledSettings(),)), SearchSettings(**search))


def documents():
    return [hide_names(parse(text.encode(), path, mtime_ms=0)) for path, text in TEXTS.items()]


def trial(work, encoder=None, chosen=None, questions=QUESTIONS, searches=(), progress=lambda _: None):
    made = encoder or FakeEncoder()
    return run_trial(chosen or setup(), documents(), questions, searches, work, progress=progress, load=lambda *_: made)


def test_ranks_passages_and_costs_are_those_of_the_search(tmp_path):
    events = []
    result = trial(tmp_path, searches=["chimneys", "fish"], progress=events.append)
    assert result.ranks[:2] == (1, 1)
    assert [top[0] for top in result.tops] == ["stork.md", "heron.md"]
    assert result.passages == 3
    assert 0 < result.p50_ms <= result.p95_ms
    assert result.memory_mb > 10
    assert (result.degraded, result.reason) == (0, "")
    assert {event["stage"] for event in events} == {"indexing", "asking questions"}


def test_an_encoder_that_tells_nothing_apart_ranks_worse_by_meaning(tmp_path):
    good, blind = trial(tmp_path / "good"), trial(tmp_path / "blind", BlindEncoder(identity="blind"))
    assert good.near_ranks[:2] == (1, 1)
    assert blind.near_ranks.count(1) <= 1


def test_notes_that_quote_a_question_are_left_out(tmp_path):
    plain = Question("heron waits for fish", "stork.md", "link")
    quoting = replace(plain, without=frozenset({"heron.md"}))
    before, after = trial(tmp_path, questions=(plain, quoting)).near_ranks
    assert after == before - 1


def test_a_second_trial_with_the_same_encoder_embeds_no_note_again(tmp_path):
    encoder = FakeEncoder()
    trial(tmp_path, encoder)
    encoder.calls.clear()
    trial(tmp_path, encoder, chosen=setup(mode="vector"))
    assert sum(count for kind, _, count in encoder.calls if kind == "document") == 1, "the probe alone"


def test_only_the_first_encoder_is_measured(tmp_path):
    def load(settings, cache):
        if isinstance(settings, EndpointSettings):
            raise Unavailable("the server is down")
        return FakeEncoder()

    chosen = setup(EndpointSettings("http://127.0.0.1:1/v1", "m"), BundledSettings())
    with pytest.raises(Unavailable, match="the server is down"):
        run_trial(chosen, documents(), QUESTIONS, (), tmp_path, progress=lambda _: None, load=load)
    with pytest.raises(Unavailable, match="the server is down"):
        measure_speed(chosen, ["a"], tmp_path, load)


def test_an_encoder_that_fails_meanwhile_gives_no_figures(tmp_path):
    class Failing(FakeEncoder):
        def encode(self, texts, *, kind, urgent):
            if len(texts) > 1:
                raise Unavailable("it broke")
            return super().encode(texts, kind=kind, urgent=urgent)

    with pytest.raises(Unavailable, match="failed while it embedded"):
        trial(tmp_path, Failing())


def test_a_reranker_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(Unavailable, match="reranker"):
        trial(tmp_path, chosen=setup(reranker=str(tmp_path / "gone")))


def test_a_trial_writes_only_into_its_folder(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/note.md").write_text("x")
    before = [(path, path.stat().st_mtime_ns) for path in (tmp_path / "other").rglob("*")]
    trial(tmp_path / "work")
    assert [(path, path.stat().st_mtime_ns) for path in (tmp_path / "other").rglob("*")] == before
    assert {path.name for path in tmp_path.iterdir()} == {"other", "work"}


def test_a_speed_counts_characters(tmp_path):
    text = hashlib.sha256(b"x").hexdigest()
    assert measure_speed(setup(), [text] * 20, tmp_path, lambda *_: FakeEncoder()) > 1_000
