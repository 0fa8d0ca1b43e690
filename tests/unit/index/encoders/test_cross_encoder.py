"""index/encoders/cross_encoder.py and model_files.py: what they promise, held on real models; and a search ordered by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from index.encoders import model_files
from index.errors import Unavailable
from index.model import Query
from index.search.reranker import load_model
from syncd.cli.doctor import state_checks
from syncd.cli.doctor.doctor import examine
from syncd.settings.settings import SearchSettings
from tests.support import cross_encoders
from tests.support.cross_encoders import GOLD
from tests.support.original_model import MODEL
from tests.support.world import World, settings_of, until

pytestmark = pytest.mark.slow  # a reranker is not set by default; what search makes of one: ../search/test_reranker.py


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Path:
    return cross_encoders.known(tmp_path_factory.mktemp("models") / "known")


def test_a_model_whose_order_is_known_gives_it(known):
    judge = cross_encoders.load(known, "known")
    passages = ["a cold stove", f"one {GOLD} in a kitchen", f"{GOLD} {GOLD}", f"{GOLD} and {GOLD} and nothing else"]
    scores = judge.score("what is hot", passages)
    assert sorted(range(4), key=lambda n: -scores[n]) == [2, 3, 1, 0]
    assert all(0 <= score <= 1 for score in scores)
    assert scores[0] == pytest.approx(0.5), "the sigmoid of nothing"


def test_a_score_depends_on_its_pair_alone(tmp_path):
    judge = cross_encoders.load(cross_encoders.random(tmp_path / "random"), "random")
    passages = ["short", "a passage that is longer than the others by some words", "暖かい部屋", "x " * 300, ""]
    together = judge.score("what is hot", passages)
    alone = [judge.score("what is hot", [one])[0] for one in passages]
    assert together == pytest.approx(alone, abs=1e-5)
    again = cross_encoders.load(cross_encoders.random(tmp_path / "again"), "random").score("what is hot", passages)
    assert again == pytest.approx(together, abs=1e-6)


def test_what_is_too_long_is_cut(known):
    judge = cross_encoders.load(known, "known")
    assert judge.score("what", [f"{GOLD} " * 5_000])[0] > 0.9
    assert judge.score("what " * 5_000, [GOLD])[0] >= 0.5


def test_a_model_that_gives_no_single_score_is_refused(tmp_path):
    with pytest.raises(Unavailable, match="is not a reranker"):
        cross_encoders.load(cross_encoders.random(tmp_path / "three", labels=3), "three")
    with pytest.raises(Unavailable, match="is not a reranker"):
        cross_encoders.load(MODEL, "an encoder")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda folder: (folder / "config.json").unlink(), id="no configuration"),
        pytest.param(lambda folder: (folder / "config.json").write_text("{"), id="half a configuration"),
        pytest.param(lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), id="torn weights"),
        pytest.param(lambda folder: (folder / "model.safetensors").unlink(), id="no weights"),
        pytest.param(lambda folder: [file.unlink() for file in folder.glob("*token*")], id="no vocabulary"),
    ],
)
def test_a_broken_model_is_named_without_a_path(tmp_path, broken):
    folder = cross_encoders.random(tmp_path / "model")
    broken(folder)
    with pytest.raises(Unavailable, match=r"the model 'model' can't be (loaded|used)") as caught:
        load_model(str(folder), 0)
    assert str(tmp_path) not in caught.value.message


def test_a_model_in_the_cache_is_found_by_its_name(tmp_path, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--cross-encoder--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs/main").write_text("0" * 40)
    cross_encoders.random(home / "snapshots" / ("0" * 40))
    for name in ("tiny", "cross-encoder/tiny"):
        assert model_files.locate(name, owner="cross-encoder") == home / "snapshots" / ("0" * 40)
        assert load_model(name, 0).name == f"the model {name!r}"


def test_a_daemon_s_searches_are_ordered_by_a_real_model(tmp_path, known):
    world = World(tmp_path, search=SearchSettings(reranker=str(known), rerank_s=10))
    try:
        world.write("Captures/default/cold.md", "the kitchen stove is cold\n")
        world.write("Captures/default/warm.md", f"the {GOLD} of the kitchen\n")
        world.write("Captures/default/hot.md", f"kitchen {GOLD} {GOLD} {GOLD}\n")
        world.run()

        def search():
            return world.app.agent_access.workspace("default").search(Query("kitchen stove"))

        with world.serving():
            assert search().hits[0].record.title == "cold"
            until(lambda: world.app.opened.reranker.state == "ready", 120)
            answer = search()
            # The model alone would put "warm" before "cold", which has both words of the query.
            assert [hit.record.title for hit in answer.hits] == ["hot", "cold", "warm"]
            assert answer.degraded == ()
            assert world.found("kitchen stove")[0] == "Captures/default/hot.md"
    finally:
        world.close()


def test_the_doctor_tries_it_and_tells_what_it_costs(tmp_path, known):
    (tmp_path / "vault").mkdir()

    def look(**search):
        own = replace(settings_of(tmp_path / "vault", tmp_path / "state"), search=SearchSettings(**search))
        return [(one.is_, one.says) for one in examine(own, {}, [state_checks.check_reranker], fix=False)]

    assert look() == []
    [(is_, says)] = look(reranker=str(known), rerank_s=10.0)
    assert is_ == "ok" and "the model 'known' judges 30 passages in" in says
    [(is_, says)] = look(reranker=str(known), rerank_pool=200, rerank_s=0.05)
    assert is_ == "advice" and "a search waits only 0.05 s" in says
    [(is_, says)] = look(reranker=str(tmp_path / "gone"))
    assert is_ == "wrong" and "there is no model 'gone'" in says
