"""syncd/measurement/comparison.py: both setups index the same notes and answer the same questions; a loss is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from index.encoders.embedder import EmbedSettings
from index.encoders.settings import BundledSettings
from index.errors import InvalidArgument
from syncd.measurement import trial
from syncd.measurement.comparison import compare_setups, make_setup, read_sample
from tests.support.fakes import BlindEncoder, FakeEncoder
from tests.support.world import settings_of

TOPICS = (
    "heron",
    "stork",
    "kiln",
    "bread",
    "train",
    "violin",
    "glacier",
    "lantern",
    "compass",
    "orchard",
    "harbour",
    "granite",
)


@pytest.fixture
def settings(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    for number in range(36):
        topic = TOPICS[number % 12]
        text = f"What I know of the {topic} in year {number // 12} of the project. " * 3
        (vault / f"Facts on {topic} {'abc'[number // 12] * 3}.md").write_text(
            f"{text}\n\n## More of {topic} {'abc'[number // 12] * 3}\n\n{text}"
        )
    return settings_of(vault, tmp_path / "state")


def call_here(function, *arguments, progress):
    """Call the function in this process, with a fake encoder for each precision."""
    fakes = {"fp32": FakeEncoder(identity="sees"), "int8": BlindEncoder(identity="blind")}
    load = lambda chosen, _: fakes[chosen.precision]  # noqa: E731 - short
    if function is trial.run_trial:
        return function(*arguments, progress=progress, load=load)
    return 1e6


def compare(settings, changed, searches=(), call=call_here):
    notes = read_sample(settings, lambda _: None)
    return compare_setups(
        make_setup(settings), make_setup(changed), notes, searches, progress=lambda _: None, call=call
    )


def blind(settings):
    return replace(settings, embed_section=replace(settings.embed_section, encoders=(BundledSettings("int8"),)))


@pytest.mark.slow
def test_both_sides_answer_the_same_questions(settings):
    asked = []

    def call(function, *arguments, progress):
        if function is trial.run_trial:
            asked.append([[document.path for document in arguments[1]], arguments[2], arguments[3]])
        return call_here(function, *arguments, progress=progress)

    result = compare(settings, blind(settings), ["heron", "stork"], call)
    assert asked[0] == asked[1]
    assert result["notes"] == result["notes_in_all"] == 36
    assert sum(result["questions"].values()) == len(asked[0][1]) > 20
    assert result["recorded"]["queries"] == 2


@pytest.mark.slow
def test_a_setup_beside_itself_shows_no_difference(settings):
    result = compare(settings, settings)
    assert result["verdict"] == "no difference"
    assert all(figure == {"mean": 0, "low": 0, "high": 0} for figure in result["search"]["difference"].values())
    assert result["recorded"] is None


@pytest.mark.slow
def test_an_encoder_that_sees_nothing_is_worse_by_meaning(settings):
    result = compare(settings, blind(settings))
    assert result["meaning"]["difference"]["MRR"]["high"] < 0
    assert result["verdict"] == "worse"


def test_a_slow_encoder_gets_fewer_notes(settings):
    def call(function, *arguments, progress):
        if function is not trial.run_trial:
            return 20.0  # characters a second
        return call_here(function, *arguments, progress=progress)

    result = compare(settings, blind(settings), call=call)
    assert 1 <= result["notes"] < 36
    assert result["notes_in_all"] == 36


def test_a_sample_is_the_same_each_time(settings):
    first, second = (read_sample(settings, lambda _: None, 5) for _ in range(2))
    assert [document.path for document in first.documents] == [document.path for document in second.documents]
    assert (len(first.documents), first.notes_in_all) == (5, 36)


@pytest.mark.parametrize("notes", [{}, {"x.md": "a short note"}])
def test_notes_without_a_name_of_two_words_give_an_error(tmp_path, notes):
    vault = tmp_path / "vault"
    vault.mkdir()
    for name, text in notes.items():
        (vault / name).write_text(text)
    with pytest.raises(InvalidArgument, match="no question"):
        compare(settings_of(vault, tmp_path / "state"), settings_of(vault, tmp_path / "state"))


@pytest.mark.slow
def test_the_real_precisions_are_compared_in_processes_of_their_own(settings):
    notes = read_sample(settings, lambda _: None, 4)
    result = compare_setups(
        make_setup(settings), make_setup(blind(settings)), notes, ["heron"], progress=lambda _: None
    )
    assert result["cost"]["changed"]["memory_mb"] > 50
    assert result["verdict"] == "too few questions"
    assert not any(Path(settings.vault.path).rglob("*.db"))
    assert make_setup(settings).embed == EmbedSettings()
