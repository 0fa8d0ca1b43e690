"""index/encoders/embeddings_endpoint.py: what it promises, held on the real thing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from index.encoders import embeddings_endpoint as module
from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.embeddings_endpoint import EndpointEncoder
from index.encoders.settings import SAMPLE, EndpointSettings
from index.errors import Unavailable
from tests.support.fakes import FakeEndpoint


@pytest.fixture
def server(monkeypatch) -> Iterator[FakeEndpoint]:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    fake = FakeEndpoint()
    yield fake
    fake.stop()


@pytest.fixture
def second() -> Iterator[FakeEndpoint]:
    fake = FakeEndpoint()
    yield fake
    fake.stop()


def encoder(server: FakeEndpoint, cache: Path, **settings) -> EndpointEncoder:
    return EndpointEncoder(EndpointSettings(server.url, "nomic-embed-text", **settings), cache=cache)


def test_vectors_are_of_unit_length_and_in_order_however_the_server_answers(server, tmp_path):
    made = encoder(server, tmp_path, batch=3)
    texts = [f"text number {n}" for n in range(8)]
    together = made.encode(texts, kind="document", urgent=False)
    alone = np.concatenate([made.encode([text], kind="document", urgent=True) for text in texts])
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    assert [len(request["input"]) for request in server.requests[1:4]] == [3, 3, 2]
    assert server.requests[1]["model"] == "nomic-embed-text"
    assert made.encode([], kind="document", urgent=False).shape == (0, 64)


def test_dimensions_are_the_servers_own_or_asked_for(server, tmp_path):
    assert encoder(server, tmp_path).dimensions == 64
    assert "dimensions" not in server.requests[0]
    assert encoder(server, tmp_path, dimensions=32).dimensions == 32
    assert server.requests[1]["dimensions"] == 32


def test_a_server_that_ignores_the_dimensions_is_refused(server, tmp_path):
    vector = '{"data": [{"index": 0, "embedding": [1, 0, 0]}]}'
    server.answers = [(200, {}, vector)]
    with pytest.raises(Unavailable, match=r"gives 3 dimensions, not 32; check `dimensions`"):
        encoder(server, tmp_path, dimensions=32)


def test_each_kind_has_its_prompt(server, tmp_path):
    made = encoder(server, tmp_path, query_prompt="search_query: ", document_prompt="search_document: ")
    made.encode(["x"], kind="query", urgent=True)
    made.encode(["x"], kind="document", urgent=True)
    assert [request["input"] for request in server.requests[1:]] == [["search_query: x"], ["search_document: x"]]


def test_an_empty_text_is_sent_as_a_space_because_servers_refuse_it(server, tmp_path):
    encoder(server, tmp_path).encode([""], kind="document", urgent=False)
    assert server.requests[-1]["input"] == [" "]


def test_the_key_comes_from_the_named_variable(server, tmp_path, monkeypatch):
    server.key = "sk-secret"
    monkeypatch.delenv("EMBED_KEY", raising=False)
    with pytest.raises(Unavailable, match="EMBED_KEY is not set"):
        encoder(server, tmp_path, api_key_env="EMBED_KEY")
    with pytest.raises(Unavailable, match="refuses the key"):
        encoder(server, tmp_path)
    monkeypatch.setenv("EMBED_KEY", "sk-secret\n")
    made = encoder(server, tmp_path, api_key_env="EMBED_KEY")
    assert "sk-secret" not in made.identity + made.name
    monkeypatch.setenv("EMBED_KEY", "ключ")
    with pytest.raises(Unavailable, match="the key"):
        encoder(server, tmp_path, api_key_env="EMBED_KEY")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(server, tmp_path, status):
    made = encoder(server, tmp_path)
    server.answers = [(status, {"retry-after": "0"}, "busy"), (status, {}, "busy")]
    assert made.encode(["x"], kind="document", urgent=False).shape == (1, 64)


def test_an_answer_with_broken_compression_or_a_wait_that_is_no_number_is_repeated(server, tmp_path):
    made = encoder(server, tmp_path)
    server.answers = [(200, {"content-encoding": "gzip"}, "not gzip"), (429, {"retry-after": "\u00b2"}, "busy")]
    assert made.encode(["x"], kind="document", urgent=False).shape == (1, 64)
    server.answers = [(200, {"content-encoding": "gzip"}, "not gzip")] * 9
    with pytest.raises(Unavailable, match="can't be reached"):
        made.encode(["x"], kind="query", urgent=True)


def test_a_number_that_no_float_holds_is_no_vector(server, tmp_path):
    server.answers = [(200, {}, f'{{"data": [{{"index": 0, "embedding": [1{"0" * 400}]}}]}}')]
    with pytest.raises(Unavailable, match="does not answer like an embeddings endpoint"):
        encoder(server, tmp_path)


def test_a_server_that_stays_busy_is_unavailable_and_a_query_gives_up_sooner(server, tmp_path):
    made = encoder(server, tmp_path)
    for urgent, asked in ((False, 4), (True, 2)):
        server.answers = [(503, {}, "loading   the\nmodel")] * 9
        before = len(server.requests)
        with pytest.raises(Unavailable, match="503: loading the model"):
            made.encode([SAMPLE], kind="query", urgent=urgent)
        assert len(server.requests) - before == asked


@pytest.mark.parametrize("status", [400, 500, 418])
def test_an_answer_about_a_note_is_not_quoted_as_it_may_quote_the_note(server, tmp_path, status):
    made = encoder(server, tmp_path, retries=0)
    server.answers = [(status, {}, '{"detail": [{"loc": ["input"], "input": "Dear diary"}]}')] * 9
    with pytest.raises(Unavailable, match=f"answers {status}: ") as told:
        made.encode(["Dear diary"], kind="document", urgent=False)
    assert "diary" not in told.value.message


def test_a_server_that_hangs_is_unavailable_after_the_time_limit(server, tmp_path):
    made = encoder(server, tmp_path, timeout_s=0.1, retries=0)
    server.delay_s = 1.0
    with pytest.raises(Unavailable, match="can't be reached"):
        made.encode(["x"], kind="document", urgent=False)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        pytest.param(404, "model not found", "check `base_url` and `model`", id="no such model"),
        pytest.param(302, "", "answers 302", id="a redirect is not followed"),
        pytest.param(200, "<html>", "does not answer like an embeddings endpoint", id="not JSON"),
        pytest.param(200, '{"data": []}', "does not answer like an embeddings endpoint", id="no vector"),
        pytest.param(200, "[]", "does not answer like an embeddings endpoint", id="another shape"),
        pytest.param(200, '{"data": [{"index": 0, "embedding": null}]}', "check `model`", id="null"),
        pytest.param(200, '{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "invalid number", id="NaN"),
        pytest.param(200, '{"data": [{"index": 0, "embedding": [0, 0]}]}', "length zero", id="zero"),
        pytest.param(400, "unknown model", "400: unknown model; check `model`", id="refused"),
    ],
)
def test_an_answer_that_is_no_vector_says_what_to_check(server, tmp_path, status, body, words):
    made = encoder(server, tmp_path)
    server.answers = [(status, {}, body)]
    with pytest.raises(Unavailable, match=words):
        made.encode([module.PROBE], kind="document", urgent=False)


def test_nobody_at_the_address_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match=r"can't be reached .*; start it, or check `base_url`"):
        EndpointEncoder(EndpointSettings("http://127.0.0.1:9/v1", "m"), cache=tmp_path)
    with pytest.raises(Unavailable, match="check `base_url`"):
        EndpointEncoder(EndpointSettings("127.0.0.1:9", "m"), cache=tmp_path)


def test_a_password_in_the_address_is_never_shown(tmp_path):
    with pytest.raises(Unavailable) as caught:
        EndpointEncoder(EndpointSettings("http://me:secret@127.0.0.1:9/v1", "m"), cache=tmp_path)
    assert "secret" not in caught.value.message
    assert "http://127.0.0.1:9/v1" in caught.value.message


def test_a_text_that_is_too_long_is_embedded_by_its_beginning(server, tmp_path):
    server.longest = 100
    made = encoder(server, tmp_path)
    found = made.encode(["short", "word " * 100], kind="document", urgent=False)
    expected = made.encode(["short", ("word " * 100)[:62]], kind="document", urgent=False)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_same_model_at_another_address_has_the_same_identity(server, second, tmp_path):
    assert encoder(server, tmp_path).identity == encoder(second, tmp_path).identity


def test_what_changes_vectors_changes_the_identity(server, second, tmp_path):
    second.salt = "other weights"
    identities = [
        encoder(server, tmp_path).identity,
        encoder(second, tmp_path).identity,
        encoder(server, tmp_path, dimensions=32).identity,
        encoder(server, tmp_path, query_prompt="q: ").identity,
        encoder(server, tmp_path, document_prompt="d: ").identity,
        EndpointEncoder(EndpointSettings(server.url, "other"), cache=tmp_path).identity,
    ]
    assert len(set(identities)) == len(identities)
    assert encoder(server, tmp_path).identity == identities[0]  # remembered over a restart


def test_a_cache_that_can_not_be_written_is_said(server, tmp_path):
    (tmp_path / "probes").write_text("a file is in the way")
    with pytest.raises(Unavailable, match="state folder"):
        encoder(server, tmp_path)


def test_tokens_are_estimated(server, tmp_path):
    made = encoder(server, tmp_path)
    assert made.count_tokens(["", "a cat", "internationalisation", "日本語です", "a, b!"]) == [0, 2, 5, 5, 4]


def test_the_second_server_takes_over_and_a_third_with_another_model_does_not(server, second, tmp_path):
    third = FakeEndpoint()
    third.salt = "other weights"
    servers = (server, third, second)
    settings = EmbedSettings(encoders=tuple(EndpointSettings(one.url, "m", retries=0) for one in servers))
    made = Embedder(settings, cache=tmp_path, retry_s=(0.05, 0.1))
    made.start()
    assert made.wait(60)
    expected = made.embed_query("hello there")
    server.answers = [(500, {}, "boom")] * 1000
    np.testing.assert_allclose(made.embed_query("hello there"), expected, atol=1e-6)
    second.answers = [(500, {}, "boom")] * 1000
    with pytest.raises(Unavailable, match=r"another model than the index was built with|boom"):
        made.embed_query("hello there")
    assert made.state == "broken"
    server.answers = []
    deadline = time.monotonic() + 5
    while made.state != "ready" and time.monotonic() < deadline:
        time.sleep(0.01)
    np.testing.assert_allclose(made.embed_query("hello there"), expected, atol=1e-6)
    made.close()
    third.stop()


def test_close_ends_a_pause_before_a_retry(server, tmp_path):
    made = encoder(server, tmp_path)
    server.answers = [(429, {"retry-after": "8"}, "")] * 9
    ended: list[Unavailable] = []

    def call() -> None:
        try:
            made.encode(["x"], kind="document", urgent=False)
        except Unavailable as error:
            ended.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.1)
    made.close()
    thread.join(7)  # less than the pause
    assert not thread.is_alive()
    assert len(ended) == 1
