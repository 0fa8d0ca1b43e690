"""Another model while serving, from outside: a real daemon, the bundled model, and endpoints of other dimensions."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager

import pytest

from tests.support.daemon_process import daemon
from tests.support.fakes import FakeEndpoint

NOTES = 120
PARAPHRASE = "how to keep a plant alive while I am away on holiday"


@contextmanager
def endpoint(**options):
    server = FakeEndpoint(**options)
    try:
        yield server
    finally:
        server.stop()


def configure(memex, *encoders):
    """The settings file of a person who sets these encoders."""
    file = memex.home / ".config/memex/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    tables = ["".join(f"{name} = {json.dumps(value)}\n" for name, value in one.items()) for one in encoders]
    file.write_text("".join(f"[[embed.encoders]]\n{table}\n" for table in tables))


def served_by(server, **more):
    return {"kind": "endpoint", "base_url": server.url, "model": "m", "batch": 4, **more}


def fill(memex):
    memex.write("Captures/default/Ferns.md", "The ferns want water twice a week; ask the neighbour in August.\n")
    for number in range(NOTES):
        memex.write(f"Log/{number:03}.md", f"# Day {number}\n\nEntry {number}: the tide table, word{number}.\n")


def search(memex, query=PARAPHRASE, mode="vector"):
    answer = memex.rest("POST", "/search", json={"query": query, "mode": mode, "top_k": 1})
    assert answer.status_code == 200, answer.text
    return answer.json()


def by_meaning(memex):
    """Whether a search by meaning is answered, rightly."""
    answer = search(memex)
    return answer["mode"] == "vector" and "ferns" in answer["results"][0]["chunk_content"]


def degraded(memex):
    return memex.readyz()["degraded"]


def builds(memex):
    return sorted(one.name for one in (memex.state / "index").iterdir() if one.is_dir())


def identity(memex):
    current = (memex.state / "index/current").read_text()
    return json.loads((memex.state / "index" / current / "made.json").read_text())


def texts(server):
    return {text for body in server.requests for text in body["input"] if "word" in text}


@pytest.mark.slow
def test_the_index_before_answers_by_meaning_until_the_next_is_complete_over_a_kill(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex, endpoint(dimensions=96) as server:
        fill(memex)
        memex.serve()
        assert by_meaning(memex)
        memex.stop()
        old = builds(memex)

        configure(memex, served_by(server))
        server.delay_s = 0.4
        memex.serve(wait=False)
        memex.until(lambda: any("the previous encoder answers" in told for told in degraded(memex)), 60)
        memex.until(lambda: len(texts(server)) > 40, 60)
        assert by_meaning(memex)  # in the middle of it
        assert identity(memex)["dimensions"] == 384
        memex.capture("A heron stood in the shallows at dusk, fishing for its supper.")
        assert "heron" in search(memex, "a wading bird hunts in the evening")["results"][0]["chunk_content"]
        memex.stop(signal.SIGKILL)
        assert len(builds(memex)) == 2
        before = texts(server)
        assert len(before) < NOTES

        server.requests.clear()
        memex.serve(wait=False)
        memex.until(lambda: any("the previous encoder answers" in told for told in degraded(memex)), 60)
        memex.until(lambda: texts(server), 60)
        assert by_meaning(memex)
        server.delay_s = 0.0
        memex.until(lambda: identity(memex)["dimensions"] == 96, 60)
        memex.until(lambda: not degraded(memex), 60)
        again = before & texts(server)
        assert len(again) < 60  # the window that the kill interrupted; the rest was not asked for again
        assert len(before | texts(server)) == NOTES
        assert search(memex, "A heron stood in the shallows")["mode"] == "vector"
        memex.until(lambda: len(builds(memex)) == 1, 90)
        assert builds(memex) != old


@pytest.mark.slow
def test_a_model_that_is_not_there_is_refused_and_the_index_goes_on_answering(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex, endpoint(dimensions=96) as server:
        memex.write("Captures/default/Ferns.md", "The ferns want water twice a week; ask the neighbour in August.\n")
        memex.serve()
        memex.stop()
        server.answers = [(404, {}, '{"error": {"message": "model \\"m\\" not found"}}')] * 1_000
        configure(memex, served_by(server))
        memex.serve(wait=False)
        memex.until(lambda: by_meaning(memex), 60)
        (told,) = [one for one in degraded(memex) if one.startswith("encoder:")]
        assert "check `base_url` and `model`, or pull the model" in told
        assert told.endswith("the previous encoder answers")
        memex.capture("Captured all the same.")
        # The way out, taken while it runs: the model is there now.
        server.answers = []
        memex.until(lambda: identity(memex)["dimensions"] == 96, 120)
        memex.stop()

        # Dimensions that the model does not have.
        configure(memex, served_by(server, dimensions=48))
        server.answers = [(200, {}, json.dumps({"data": [{"index": 0, "embedding": [1.0] * 96}]}))] * 1_000
        memex.serve(wait=False)
        (told,) = memex.until(lambda: [one for one in degraded(memex) if "48" in one], 60)
        assert "gives 96 dimensions, not 48; check `dimensions` and `model`" in told
        assert identity(memex)["dimensions"] == 96


@pytest.mark.slow
def test_an_endpoint_with_another_model_than_before_is_refused_until_it_is_asked_for(tmp_path):
    with daemon(tmp_path, None) as memex, endpoint(dimensions=64) as server:
        configure(memex, served_by(server))
        memex.write("Captures/default/Ferns.md", "The ferns want water.\n")
        memex.serve()
        assert search(memex, "ferns")["mode"] == "vector"
        memex.stop()
        made = builds(memex)

        server.dimensions = 32
        memex.serve(wait=False)
        (told,) = memex.until(lambda: [one for one in degraded(memex) if "32 dimensions" in one], 60)
        assert "load that model there again, or rebuild the index with this one: memex index --full" in told
        assert (
            search(memex, "ferns")["mode"] == "text"
        )  # the encoder of the index can't be had: by words, and it says so
        assert search(memex, "ferns")["results"]
        refused = memex.rest("POST", "/capture", json={"content": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "UNAVAILABLE")
        assert "load that model there again" in refused.json()["error"]["message"]
        assert builds(memex) == made

        server.dimensions = 64  # one way out: the old model is back
        memex.until(lambda: search(memex, "ferns")["mode"] == "vector", 120)
        memex.stop()
        server.dimensions = 32
        memex.serve(wait=False)
        memex.until(lambda: any("32 dimensions" in one for one in degraded(memex)), 60)
        memex.run("index", "--full")  # the other
        assert identity(memex)["dimensions"] == 32
        assert search(memex, "ferns")["mode"] == "vector"
        memex.capture("Captured with the new one.")
