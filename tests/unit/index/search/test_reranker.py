"""index/search/reranker.py: what it promises, with a judge whose taste is known."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from index.errors import Unavailable
from index.model import Answer, Hit, Query, Record
from index.search.reranker import Reranker, locate_model, passage_text, search_reranked
from syncd.settings.settings import SearchSettings
from tests.support.fakes import FakeJudge
from tests.support.world import World, until

TEXTS = {
    "plain": "the stove is cold",
    "some": "the stove is made of gold",
    "most": "gold gold gold and a stove",
    "none": "a stove and nothing else",
}


class Loading:
    """Loads the judge, when it may."""

    def __init__(self, judge: FakeJudge) -> None:
        self.judge, self.failing = judge, None
        self.calls: list[tuple[str, int]] = []  # the model and threads that were asked for
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, model: str, threads: int) -> FakeJudge:
        self.calls.append((model, threads))
        assert self.gate.wait(30)
        if self.failing:
            raise self.failing
        return self.judge


@pytest.fixture
def judge():
    return FakeJudge()


@pytest.fixture
def loading(judge):
    return Loading(judge)


@pytest.fixture
def folder(tmp_path):
    """A folder that a model might lie in."""
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


@contextmanager
def world_with(tmp_path, reranker, texts=TEXTS):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syncd.daemon.open_parts._build_reranker", lambda *_: reranker)
        world = World(tmp_path)
    for name, text in texts.items():
        world.write(f"Captures/default/{name}.md", f"{text}\n")
    world.run()
    try:
        yield world
    finally:
        judge = reranker._judge
        if judge is not None:
            judge.gate.set()
        reranker.close()
        world.close()


@pytest.fixture
def reranker(folder, loading):
    return Reranker(str(folder), 30, 20.0, load=loading, retry_s=0.0)


@pytest.fixture
def world(tmp_path, reranker):
    with world_with(tmp_path, reranker) as made:
        yield made


def search(world, text="stove", limit=10, mode="hybrid"):
    return world.app.agent_access.workspace("default").search(Query(text, limit, mode))


def reranker_off(world, mode):
    """The hits of the same search without a reranker."""
    return world.app.opened.captures.index.search(Query("stove", 10, mode)).hits


def titles(answer):
    return [hit.record.title for hit in answer.hits]


def ready(world, reranker):
    reranker.start()
    search(world)
    until(lambda: reranker.state == "ready")


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_what_was_found_stands_in_the_order_of_the_model(world, reranker, mode):
    ready(world, reranker)
    before = {hit.record.title: hit.score for hit in reranker_off(world, mode)}
    answer = search(world, mode=mode)
    assert titles(answer)[:2] == ["most", "some"]
    assert set(titles(answer)) == set(TEXTS)
    assert answer.degraded == ()
    scores = [hit.score for hit in answer.hits]
    assert scores[:2] == pytest.approx([(1 - 1 / 5 + before["most"]) / 2, (1 - 1 / 3 + before["some"]) / 2])
    assert scores == sorted(scores, reverse=True)


def test_equals_keep_the_order_of_the_search(world, reranker):
    before = titles(search(world, "gold stove"))
    ready(world, reranker)
    reranker._judge.word = "nowhere"
    assert titles(search(world, "gold stove")) == before


def test_a_search_during_which_the_model_becomes_ready_gives_the_reason_for_its_order(folder, loading):
    reranker = Reranker(str(folder), 2, 20.0, load=loading)
    reranker.start()

    def search_slowly(_query):
        assert reranker.wait(30)
        return Answer((), "hybrid")

    answer = search_reranked(reranker, Query("stove", 3), search_slowly)
    reranker.close()
    assert answer.degraded == ("reranker: still loading; until then results keep the order of the search",)


def test_what_is_beyond_the_pool_changes_no_order_in_it(folder, loading):
    reranker = Reranker(str(folder), 2, 20.0, load=loading)
    reranker.start()
    assert reranker.wait(30)
    record = Record(**dict.fromkeys(Record.__dataclass_fields__))
    successors = {"new": None, "old": "new", "third": None, "fourth": None}
    hits = tuple(
        Hit(replace(record, path=f"{name}.md", title=name, workspace="w", superseded_by=newer), 0, "", "gold", score)
        for (name, newer), score in zip(successors.items(), (0.9, 0.8, 0.79, 0.78), strict=True)
    )
    for limit in (2, 3, 4):
        answer = search_reranked(reranker, Query("stove", limit), lambda query: Answer(hits[: query.limit], "hybrid"))
        assert titles(answer) == ["new", "old", "third", "fourth"][:limit]
        assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    reranker.close()


def test_words_alone_are_left_as_they_are(world, reranker, judge):
    ready(world, reranker)
    before = search(world, mode="text")
    assert judge.asked == []
    assert before.degraded == ()
    assert all("reranker" not in one for one in before.degraded)


def test_the_command_s_search_is_ordered_over_both_scopes(world, reranker):
    world.write("Notes/mine.md", "gold gold gold gold gold, and a stove\n")
    world.run()
    ready(world, reranker)
    assert world.found("stove")[:2] == ["Notes/mine.md", "Captures/default/most.md"]
    assert world.found("stove", limit=1) == ["Notes/mine.md"]


def test_the_best_of_the_pool_is_found_though_few_are_asked_for(world, reranker):
    ready(world, reranker)
    assert titles(search(world, limit=1)) == ["most"]


def test_at_most_a_pool_is_judged_and_the_rest_follows(tmp_path, folder, loading, judge):
    texts = {f"n{n}": f"a stove of {'gold ' * n}" for n in range(9)}
    reranker = Reranker(str(folder), 4, 20.0, load=loading)
    with world_with(tmp_path, reranker, texts) as world:
        before = search(world, limit=9)
        ready(world, reranker)
        answer = search(world, limit=9)
    assert len(judge.asked) == 4
    assert set(titles(answer)[:4]) == set(titles(before)[:4])
    assert titles(answer)[4:] == titles(before)[4:]
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_title_heading_and_passage_are_read(tmp_path, folder, loading, judge):
    reranker = Reranker(str(folder), 30, 20.0, load=loading)
    with world_with(tmp_path, reranker, {"Kitchen": "# Heat\n\n## Wood\n\nthe stove"}) as world:
        ready(world, reranker)
        search(world)
    assert set(judge.queries) == {"stove"}
    assert judge.asked[0].startswith("Kitchen\n")
    assert "Heat" in judge.asked[0] and "the stove" in judge.asked[0]


def test_half_a_character_does_not_reach_the_model(world, reranker, judge):
    ready(world, reranker)
    (hit, *_) = search(world).hits
    assert passage_text(replace(hit, record=replace(hit.record, title="t\ud800"))).startswith("t?\n")


def test_nothing_found_is_nothing_judged(world, reranker, judge):
    ready(world, reranker)
    for path in (world.vault / "Captures/default").glob("*.md"):
        path.unlink()
    world.run()
    assert search(world).hits == ()
    assert judge.asked == []


# Languages


def test_a_query_in_another_language_is_left_to_the_search(tmp_path, folder, loading, judge):
    texts = {"plain": "ein Ofen", "most": "gold gold gold und der Ofen ist nicht warm"}
    reranker = Reranker(str(folder), 30, 20.0, languages=("en",), load=loading)
    with world_with(tmp_path, reranker, texts) as world:
        reranker.start()
        assert reranker.wait(30)
        before = titles(search(world, "wie warm ist der Ofen"))
        assert titles(search(world, "wie warm ist der Ofen")) == before
        assert judge.asked == []
        search(world, "gold oven")
        assert judge.queries == ["gold oven"]


def test_a_passage_in_another_language_keeps_its_place(tmp_path, folder, loading, judge):
    texts = {
        "first": "stove stove stove",
        "ja": "stove ストーブは冷たいので、薪を足してください。",
        "third": "stove gold gold gold, and much more is said here about it and about the winter",
    }
    reranker = Reranker(str(folder), 30, 20.0, languages=("en",), load=loading)
    with world_with(tmp_path, reranker, texts) as world:
        place = titles(search(world)).index("ja")
        reranker.start()
        assert reranker.wait(30)
        answer = search(world)
        scores = [hit.score for hit in answer.hits]
        assert titles(answer).index("ja") == place
        assert titles(answer).index("third") < titles(answer).index("first")
        assert scores == sorted(scores, reverse=True)
        assert not any("ストーブ" in passage for passage in judge.asked)


# Loading


def test_the_first_search_is_told_that_it_loads_and_waits_for_nothing(world, reranker, loading):
    loading.gate.clear()
    before = titles(search(world))
    reranker.start()
    assert (reranker.state, loading.calls) == ("unused", [])
    for _ in range(3):
        answer = search(world)
        assert titles(answer) == before
        assert answer.degraded == ("reranker: still loading; until then results keep the order of the search",)
    assert any("still loading" in one for one in world.app.health.degraded())
    loading.gate.set()
    until(lambda: reranker.state == "ready")
    assert search(world).degraded == ()
    assert world.app.health.degraded() == []
    assert loading.calls == [(reranker.model, 0)]


def test_one_command_loads_nothing_and_says_so(world, reranker, loading):
    (told,) = search(world).degraded
    assert "runs only in the daemon" in told
    assert (loading.calls, reranker.state) == ([], "unused")


def test_a_model_that_is_not_there_is_told_before_anybody_searches(tmp_path):
    reranker = Reranker(str(tmp_path / "gone"), 30, 1.0)
    with world_with(tmp_path, reranker) as world:
        reranker.start()
        until(lambda: reranker.state == "broken")
        (told,) = world.app.health.degraded()
        assert told.startswith("reranker: there is no model 'gone' on this machine")
        assert str(tmp_path) not in told
        answer = search(world)
        assert answer.degraded == (told,)
        assert set(titles(answer)) == set(TEXTS)
        assert world.app.health.facts()["reranker"]["state"] == "broken"
        assert "torch" not in sys.modules or reranker._judge is None


@pytest.mark.parametrize("name", ["no/such-model", "nowhere", "../..x", "a/b/c", "\x00"])
def test_a_name_that_leads_nowhere_is_refused(name):
    with pytest.raises(Unavailable, match=r"check search\.reranker"):
        locate_model(name)


def test_a_model_that_fails_to_load_is_tried_again_later(world, reranker, loading):
    loading.failing = Unavailable("the model 'x' can't be loaded")
    reranker.start()
    search(world)
    until(lambda: reranker.state == "broken")
    assert reranker.degraded.startswith("reranker: the model 'x' can't be loaded; ")
    loading.failing = None
    search(world)  # its time has come, as no pause is set here
    until(lambda: reranker.state == "ready")
    assert search(world).degraded == ()


def test_a_model_that_fails_to_load_is_not_tried_at_once(tmp_path, folder, loading):
    reranker = Reranker(str(folder), 30, 1.0, load=loading)
    loading.failing = Unavailable("broken")
    with world_with(tmp_path, reranker) as world:
        reranker.start()
        search(world)
        until(lambda: reranker.state == "broken")
        assert {search(world).degraded for _ in range(5)} == {(reranker.degraded,)}
    assert len(loading.calls) == 1


def test_a_bug_while_loading_does_not_look_like_loading(world, reranker, loading):
    loading.failing = KeyError("weights of /home/owner")
    reranker.start()
    search(world)
    until(lambda: reranker.state == "broken")
    assert reranker.degraded.startswith("reranker: it failed unexpectedly (KeyError, see the log)")


# At work


@pytest.mark.parametrize("failure", [Unavailable("the model 'fake' failed"), ValueError("a bug")])
def test_a_model_that_fails_leaves_the_order_and_says_so(world, reranker, judge, failure):
    before = titles(search(world))
    ready(world, reranker)
    judge.failing = failure
    answer = search(world)
    assert titles(answer) == before
    (told,) = answer.degraded
    assert told.startswith("reranker: ") and told.endswith("results keep the order of the search")
    judge.failing = None
    search(world)
    until(lambda: reranker.state == "ready")
    assert titles(search(world))[0] == "most"


def test_scores_that_are_no_numbers_are_no_order(world, reranker, judge):
    ready(world, reranker)
    judge.score = lambda _, passages: [float("nan")] * len(passages)
    answer = search(world)
    assert any("are not numbers" in one for one in answer.degraded)
    assert all(hit.score == hit.score for hit in answer.hits)


def test_at_the_time_limit_the_order_of_the_search_stands_and_that_is_told(tmp_path, folder, loading, judge):
    reranker = Reranker(str(folder), 30, 0.2, load=loading)
    with world_with(tmp_path, reranker) as world:
        before = titles(search(world))
        ready(world, reranker)
        judge.gate.clear()
        begun = time.monotonic()
        answer = search(world)
        assert time.monotonic() - begun < 10
        assert titles(answer) == before
        assert answer.degraded == ("reranker: it took longer than 0.2 s; results keep the order of the search",)
        assert world.app.health.degraded() == []
        judge.gate.set()
        until(lambda: titles(search(world))[0] == "most")


def test_what_was_given_up_is_not_judged_to_its_end(tmp_path, folder, loading, judge):
    texts = {f"n{n}": f"a stove, number {n}" for n in range(20)}
    reranker = Reranker(str(folder), 20, 0.1, load=loading)
    with world_with(tmp_path, reranker, texts) as world:
        ready(world, reranker)
        judge.gate.clear()
        with ThreadPoolExecutor(8) as pool:
            told = [one.degraded for one in pool.map(lambda _: search(world, limit=20), range(8))]
        assert all(any("took longer" in one for one in degraded) for degraded in told)
        judge.gate.set()
        reranker.close()
    assert len(judge.asked) <= 4, "only the run under way"


def test_nobody_else_waits_for_it(tmp_path, folder, loading, judge):
    reranker = Reranker(str(folder), 30, 30.0, load=loading)
    with world_with(tmp_path, reranker) as world, ThreadPoolExecutor(1) as pool:
        ready(world, reranker)
        judge.gate.clear()
        judge.entered.clear()
        waiting = pool.submit(search, world)
        assert judge.entered.wait(30)
        space = world.app.agent_access.workspace("default")
        assert space.capture("a new stove, made while a search waits").created
        assert search(world, mode="text").hits
        assert world.app.opened.embedder.embed_query("stove").any()
        assert not waiting.done()
        judge.gate.set()
        assert titles(waiting.result(30))[0] == "most"


def test_closing_ends_the_searches_that_wait(tmp_path, folder, loading, judge):
    reranker = Reranker(str(folder), 30, 60.0, load=loading)
    with world_with(tmp_path, reranker) as world, ThreadPoolExecutor(4) as pool:
        ready(world, reranker)
        judge.gate.clear()
        judge.entered.clear()
        waiting = [pool.submit(search, world) for _ in range(3)]
        assert judge.entered.wait(30)
        closing = pool.submit(reranker.close)
        until(lambda: reranker._closed)
        judge.gate.set()
        begun = time.monotonic()
        assert all(one.result(30).hits for one in waiting)
        closing.result(30)
        assert search(world).degraded == ("reranker: it is closed; results keep the order of the search",)
        assert time.monotonic() - begun < 20


def test_the_mode_and_what_else_was_degraded_are_kept(world, reranker):
    ready(world, reranker)
    found = Answer(search(world).hits, "text", ("no encoder is ready",))
    answer = search_reranked(reranker, Query("stove", 2), lambda query: replace(found, hits=found.hits[: query.limit]))
    assert (answer.mode, answer.degraded, len(answer.hits)) == ("text", ("no encoder is ready",), 2)


@pytest.mark.slow
def test_none_is_made_and_nothing_imported_unless_it_is_set(tmp_path):
    code = (
        "import sys, tests.support.world as w; from pathlib import Path; world = w.World(Path(sys.argv[1]));"
        "world.write('a.md', 'stove'); world.run(); print(len(world.found('stove')));"
        "assert world.app.opened.reranker is None;"
        "print([m for m in ('torch', 'sentence_transformers', 'index.encoders.cross_encoder') if m in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.split("\n")[:2] == ["1", "[]"]


def test_the_settings_reach_it(tmp_path):
    own = SearchSettings(reranker=str(tmp_path), rerank_pool=7, rerank_s=0.5)
    world = World(tmp_path / "w", search=own)
    try:
        made = world.app.opened.reranker
        assert (made.model, made.pool, made.seconds) == (str(tmp_path), 7, 0.5)
        assert world.app.agent_access._inbox.reranker is made
    finally:
        world.close()
