"""index/encoders/embedder.py: what it promises, held on the real thing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.encoders.embedder import Embedder, EmbedSettings, load_encoder
from index.encoders.settings import BundledSettings, Encoder, EncoderSettings, EndpointSettings, LocalSettings
from index.errors import LibrariesMissing, MemexError, Unavailable
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.until import until

PLACES = (BundledSettings(), LocalSettings("one"), LocalSettings("two"))  # three settings that are told apart


class Failing(FakeEncoder):
    """A FakeEncoder that fails while `down`, gives NaN while `mad`, and takes `pause_s` for each text."""

    down = False
    mad = False
    pause_s = 0.0
    refusals = 0
    mangled: Callable[[np.ndarray], np.ndarray] | None = None

    def encode(self, texts, *, kind, urgent):
        if self.down:
            self.refusals += 1
            raise Unavailable(f"{self.name} is down; start it")
        time.sleep(self.pause_s * len(texts))
        vectors = super().encode(texts, kind=kind, urgent=urgent)
        if self.mad:
            vectors[0, 0] = np.nan
        return self.mangled(vectors) if self.mangled else vectors


def embedder(*encoders: Encoder | MemexError | Exception, prefer: str | None = None, wait: bool = True) -> Embedder:
    """An Embedder over these encoders, in order; an error stands for one that can't be loaded."""
    settings = EmbedSettings(encoders=PLACES[: len(encoders)])

    def load(chosen: EncoderSettings, _cache: Path) -> Encoder:
        found = encoders[PLACES.index(chosen)]
        if isinstance(found, Exception):
            raise found
        return found

    made = Embedder(settings, cache=Path("unused"), prefer=prefer, load=load, retry_s=(0.02, 0.1))
    made.start()
    if wait:
        made.wait(5)
    return made


def ready_again(made: Embedder) -> bool:
    return until(lambda: made.state == "ready")


def test_loading_happens_in_the_background_and_calls_say_so_meanwhile():
    gate = threading.Event()

    def load(_settings: EncoderSettings, _cache: Path) -> Encoder:
        gate.wait(5)
        return FakeEncoder()

    made = Embedder(EmbedSettings(), cache=Path("unused"), load=load)
    made.start()
    assert made.state == "loading"
    assert not made.wait(0.01)
    for call in (lambda: made.embed_query("x"), lambda: made.embed_documents(["x"]), lambda: made.count_tokens(["x"])):
        with pytest.raises(Unavailable, match="still loading"):
            call()
    gate.set()
    assert made.wait(60)
    assert (made.state, made.problem, made.identity, made.dimensions, made.max_tokens) == ("ready", "", "fake", 64, 256)
    made.close()


def test_vectors_come_in_the_order_of_their_texts():
    made = fake_embedder(FakeEncoder(batch=4))
    texts = [f"{'word ' * (n % 7)}number{n}" for n in range(1300)]
    alone = np.concatenate([made.embed_documents([text]) for text in texts[:20]])
    together = made.embed_documents(texts)
    assert together.shape == (1300, 64)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together[:20], alone, rtol=1e-5)


def test_no_texts_give_no_vectors_of_the_right_width():
    assert fake_embedder().embed_documents([]).shape == (0, 64)


def test_a_lone_surrogate_is_text_like_any_other():
    made = fake_embedder()
    assert np.isfinite(made.embed_query("half \ud83d an emoji")).all()
    assert made.embed_documents(["\udcff"]).shape == (1, 64)
    assert made.count_tokens(["a \ud800 b"]) == [2]


def test_progress_counts_finished_texts():
    seen: list[int] = []
    fake_embedder(FakeEncoder(batch=4)).embed_documents(["a"] * 10, progress=seen.append)
    assert seen == [4, 8, 10]


def test_a_query_and_a_capture_are_urgent_and_a_backlog_is_not():
    encoder = FakeEncoder()
    made = fake_embedder(encoder)
    encoder.calls.clear()
    made.embed_query("q")
    made.embed_documents(["a"], urgent=True)
    made.embed_documents(["a"])
    assert encoder.calls == [("query", True, 1), ("document", True, 1), ("document", False, 1)]


def test_the_first_encoder_that_loads_is_used():
    made = embedder(Unavailable("one is missing"), FakeEncoder(identity="b"), FakeEncoder(identity="c"))
    assert made.identity == "b"


def test_the_facts_of_one_that_loads_state_no_problem():
    made = Embedder(EmbedSettings(encoders=PLACES[:1]), cache=Path("unused"), load=lambda *_: FakeEncoder())
    assert made.problem
    assert made.facts() == {"state": "unused", "problem": ""}
    made.start()
    made.wait(5)
    assert made.facts() == {"state": "ready", "problem": ""}
    made.close()
    assert made.facts() == {"state": "broken", "problem": "the encoder is closed"}


def test_the_first_choice_is_used_though_the_index_was_made_with_another():
    made = embedder(FakeEncoder(identity="a"), FakeEncoder(identity="b"), prefer="b")
    assert made.identity == "a"


def test_while_the_first_choice_is_away_the_encoder_of_the_index_takes_its_place():
    made = embedder(Unavailable("a is down"), FakeEncoder(identity="c"), FakeEncoder(identity="b"), prefer="b")
    assert made.identity == "b"


def test_an_outage_of_the_first_choice_never_makes_a_new_index():
    made = embedder(Unavailable("a is down; start it"), FakeEncoder(identity="c"), prefer="a")
    assert made.state == "broken"
    assert "a is down; start it" in made.problem


def test_no_encoder_at_all_is_broken_and_says_what_each_lacks():
    made = embedder(Unavailable("one is missing; install it"), Unavailable("two is down; start it"))
    assert (made.state, made.problem) == ("broken", "one is missing; install it; two is down; start it")
    with pytest.raises(Unavailable, match="install it"):
        made.embed_query("x")
    made.close()


def test_an_encoder_that_comes_later_is_found_by_the_retry():
    late = Failing()
    late.down = True
    made = embedder(late)
    assert made.state == "broken"
    late.down = False
    assert ready_again(made)
    assert made.embed_query("x").shape == (64,)
    made.close()


def test_a_bug_in_a_loader_is_broken_not_loading_for_ever():
    made = embedder(ZeroDivisionError("a bug"))
    assert made.state == "broken"
    assert made.problem == "loading the encoder failed (ZeroDivisionError, see the log)"
    made.close()


def test_a_failing_call_is_answered_by_the_next_encoder_of_the_same_identity():
    first, second = Failing(), Failing()
    made = embedder(first, second)
    expected = made.embed_query("the same words")
    first.down = True
    np.testing.assert_allclose(made.embed_query("the same words"), expected)
    assert made.state == "ready"
    assert second.calls
    second.down, first.down = True, False
    np.testing.assert_allclose(made.embed_query("the same words"), expected)  # and back again
    made.close()


def test_another_identity_never_answers_for_an_index():
    first, other = Failing(identity="a"), Failing(identity="b")
    made = embedder(first, other)
    first.down = True
    with pytest.raises(Unavailable, match="down; start it"):
        made.embed_query("x")
    assert (made.state, made.identity) == ("broken", "a")
    assert "down; start it" in made.problem
    refusals = first.refusals
    until(lambda: first.refusals >= refusals + 3)  # it is tried again and again, and the other is not
    assert made.state == "broken"
    assert ("query", True, 1) not in other.calls
    first.down = False
    assert ready_again(made)
    assert made.identity == "a"
    made.close()


def test_an_encoder_that_only_claims_the_identity_is_refused():
    first, liar = Failing(), Failing()
    liar.mangled = lambda vectors: np.roll(vectors, 1, axis=1)
    made = embedder(first, liar)
    first.down = True
    with pytest.raises(Unavailable, match="gives other vectors"):
        made.embed_query("x")
    made.close()


@pytest.mark.parametrize(
    ("mangled", "words"),
    [
        pytest.param(lambda v: v * np.nan, "not numbers of unit length", id="nan"),
        pytest.param(lambda v: v * np.inf, "not numbers of unit length", id="infinite"),
        pytest.param(lambda v: v * 0, "not numbers of unit length", id="zero"),
        pytest.param(lambda v: v * 2, "not numbers of unit length", id="not unit"),
        pytest.param(lambda v: v[:, :5], "of shape", id="too short"),
        pytest.param(lambda v: v[:0], "of shape", id="too few"),
    ],
)
def test_vectors_that_are_no_vectors_are_refused(mangled, words):
    encoder = Failing()
    made = embedder(encoder)
    encoder.mangled = mangled
    with pytest.raises(Unavailable, match=words):
        made.embed_documents(["a", "b"])
    made.close()


def test_several_threads_fail_over_once_and_all_get_their_answer():
    first, second = Failing(), Failing()
    made = embedder(first, second)
    first.down = True
    answers: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: answers.append(made.embed_query("x"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    made.close()


def test_close_ends_a_backlog_at_its_next_batch():
    slow = Failing(batch=4)
    made = embedder(slow)
    slow.pause_s = 0.01
    begun, ended = threading.Event(), []

    def backlog() -> None:
        try:
            made.embed_documents(["x"] * 5000, progress=lambda _: begun.set())
        except Unavailable as error:
            ended.append(error)

    thread = threading.Thread(target=backlog)
    thread.start()
    assert begun.wait(60)
    made.close()
    thread.join(1)
    assert not thread.is_alive()
    assert ended[0].message == "the encoder is closed"
    assert not ended[0].retryable
    assert slow.closed


def test_close_before_and_without_a_start_is_harmless():
    made = Embedder(EmbedSettings(), cache=Path("unused"))
    made.close()
    made.start()
    assert not made.wait(1)
    with pytest.raises(Unavailable, match="closed"):
        made.embed_query("x")


def test_an_encoder_that_reads_less_than_a_passage_is_refused_with_the_number():
    wide, narrow = FakeEncoder(identity="wide", max_tokens=512), FakeEncoder(identity="narrow", max_tokens=254)

    def told(passage: int, encoder: Encoder) -> tuple[str, str]:
        settings = EmbedSettings(encoders=PLACES[:1], passage=passage)
        made = Embedder(settings, cache=Path("unused"), load=lambda *_: encoder, retry_s=(60, 60))
        made.start()
        made.wait(5)
        state, problem = made.state, made.problem
        made.close()
        return state, problem

    assert told(512, wide) == told(254, narrow) == ("ready", "")
    state, problem = told(512, narrow)
    assert state == "broken"
    assert "narrow encoder reads 254 tokens, and index.chunk_tokens is 512: set it to 254 or less" in problem


def test_the_default_is_the_bundled_model():
    assert EmbedSettings().encoders == (BundledSettings("fp32"),)


def test_the_settings_name_the_encoder_that_is_opened(tmp_path, models):
    made = Embedder(
        EmbedSettings(encoders=(EndpointSettings("http://127.0.0.1:9/v1", "m"), BundledSettings())), cache=models
    )
    made.start()
    assert made.wait(60), made.problem
    assert made.dimensions == 384
    assert made.embed_documents(["a capture"], urgent=True) @ made.embed_query("a capture") > 0.999
    made.close()


def test_a_model_whose_libraries_are_not_installed_says_the_line_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(LibrariesMissing) as missing:
        load_encoder(LocalSettings("/models/all-mpnet-base-v2"), Path("unused"))
    assert missing.value.code == "UNAVAILABLE"
    assert missing.value.message == (
        "the sentence-transformers model 'all-mpnet-base-v2' needs libraries that are not installed with Memex; "
        'install them and restart: pip install "memex-vault[models]"'
    )
