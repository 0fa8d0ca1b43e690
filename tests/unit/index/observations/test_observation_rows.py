"""Observations under perspectives: stored beside the chunks, found under each, and as whole as the rest of the index."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.document_ids import path_id
from index.encoders.embedder import Embedder, EmbedSettings
from index.errors import Unavailable
from index.foreground import count_cores, foreground
from index.model import Document, Stat
from index.observations import observation_rows
from index.observations.perspectives import DEFAULTS, Perspective, observation_text
from index.observations.similarity_baseline import SimilarityBaselines
from index.process_memory import one_large_text
from index.scope.index import POSTPONED, Index
from index.scope.integrity_check import check_index, store_uris
from index.scope.prepared_document import fingerprint
from index.text.chunking import Sizes
from tests.support.documents import note
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.graph_samples import entity
from tests.support.index_dump import dump_index

SIZES = Sizes(120, 20, 40)
STAT = Stat(1, 1, 1)
ADA, CHARLES = "Captures/w/Entities/Ada.md", "Captures/w/Entities/Charles.md"
FACTS = ("wrote the first algorithm", "corresponded with Babbage", "born in December")


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@contextmanager
def opened(
    folder: Path,
    encoder: FakeEncoder | None = None,
    embedder: Embedder | None = None,
    looks: tuple[Perspective, ...] = DEFAULTS,
    *,
    later: bool = False,
) -> Iterator[Index]:
    folder.mkdir(exist_ok=True)
    index = Index(
        "captures",
        folder,
        uri=str(folder),
        options={},
        dimensions=64,
        embedder=embedder or fake_embedder(encoder),
        sizes=SIZES,
        made_by=fingerprint("fake", SIZES),
        perspectives=lambda _: looks,
        later=later,
    )
    try:
        yield index
    finally:
        index.close()


def put(index: Index, *documents: Document, urgent: bool = False) -> None:
    index.commit(index.prepare([(document, STAT) for document in documents], urgent=urgent))


def asked(encoder: FakeEncoder) -> int:
    """How many texts of notes it was given."""
    return sum(count for kind, _, count in encoder.calls if kind == "document")


def rows(folder: Path) -> Path:
    return Path(store_uris(str(folder), "captures")[1])


def found(index: Index, query: str, **given: Any) -> list[tuple[str, int]]:
    answer = index.find_observations("w", query, given.pop("limit", 10), **given)
    return [(hit.path, hit.ordinal) for hit in answer.hits]


# What a row says


def test_what_is_read_of_a_row_is_what_was_written():
    document = entity(ADA, *FACTS, ordinals=(2, 7, 9_000_000_000))
    own = observation_rows.make_facets(document, DEFAULTS)
    written = list(observation_rows.facet_rows(document, own, [None] * len(own)))
    assert len(written) == len({row.ord for row in written}) == 15
    read = [observation_rows.to_observation(row, row.type, 0.5) for row in written]
    assert {(one.key, one.ordinal, one.perspective) for one in read} == {
        (path_id(ADA), ordinal, look.name) for ordinal in (2, 7, 9_000_000_000) for look in DEFAULTS
    }
    assert [row.text[row.cut :] for row in written if row.text] == list(FACTS), "words stand under one perspective"
    assert {row.digest for row in written} == {
        hashlib.sha256(observation_text(look, "Ada", fact).encode()).hexdigest() for fact in FACTS for look in DEFAULTS
    }


def test_a_note_that_is_no_node_has_no_facets():
    assert observation_rows.make_facets(note("Captures/w/Note.md", "plain"), DEFAULTS) == ()


# Finding


def test_the_best_observation_of_each_node_is_found_with_its_perspective(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS), entity(CHARLES, "built the difference engine", "corresponded with Ada"))
        answer = index.find_observations("w", "first algorithm", 10)
        best = answer.hits[0]
        assert (best.path, best.ordinal, best.content) == (ADA, 1, FACTS[0])
        assert best.perspective in {look.name for look in DEFAULTS}
        assert 0 < best.score <= 1
        assert (answer.mode, answer.degraded) == ("embedding", ())
        assert [hit.path for hit in answer.hits] == [ADA, CHARLES], "each node once"
        assert found(index, "first algorithm", limit=1) == [(ADA, 1)]


@pytest.mark.parametrize("mode", ["embedding", "text"])
def test_within_a_node_each_observation_is_found_once(tmp_path, mode):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS, ordinals=(3, 5, 8)), entity(CHARLES, *FACTS))
        hits = found(index, "corresponded in December with Babbage", mode=mode, path=ADA)
        assert sorted(hits) == [(ADA, ordinal) for ordinal in ((3, 5, 8) if mode == "embedding" else (5, 8))]
        assert found(index, "corresponded with Babbage", mode=mode, path=ADA)[0] == (ADA, 5)
        assert len(found(index, "corresponded in December", mode=mode, path=ADA, limit=1)) == 1
        assert found(index, "Babbage", mode=mode, path="Captures/w/Nobody.md") == []


def test_text_mode_finds_words_only_and_says_no_perspective(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS), entity(CHARLES, "built the difference engine"))
        answer = index.find_observations("w", "engine", 10, "text")
        assert [(hit.path, hit.ordinal, hit.perspective) for hit in answer.hits] == [(CHARLES, 1, None)]
        assert answer.hits[0].score > 0
        assert index.find_observations("w", "zeppelin", 10, "text").hits == ()


def test_the_name_of_a_node_finds_it_by_words_and_is_no_word_within_it(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS), entity(CHARLES, "built the difference engine"))
        assert found(index, "Charles", mode="text") == [(CHARLES, 1)]
        assert found(index, "did Ada correspond with Babbage", mode="text", path=ADA) == [(ADA, 2)]


def test_the_name_of_a_renamed_node_is_no_word_within_it(tmp_path):
    with opened(tmp_path) as index:
        ada = entity(ADA, *FACTS)
        put(index, replace(ada, node=replace(ada.node, name="TCP/Byron")))
        for query in ("did Byron correspond with Babbage", "TCP/Byron Babbage"):
            assert found(index, query, mode="text", path=ADA) == [(ADA, 2)]


def test_one_long_node_does_not_keep_the_others_out(tmp_path):
    with opened(tmp_path) as index:
        long = [f"heron seen at the lake on day {n}" for n in range(150)]
        others = [entity(f"Captures/w/Entities/N{n}.md", f"a heron and word{n}") for n in range(5)]
        put(index, entity(ADA, *long), *others)
        for mode in ("embedding", "text"):
            answer = index.find_observations("w", "heron seen at the lake", 6, mode)
            assert len({hit.path for hit in answer.hits}) == 6


@pytest.mark.parametrize("mode", ["embedding", "text"])
def test_nothing_of_another_workspace_is_found(tmp_path, mode):
    with opened(tmp_path) as index:
        other = "Captures/other/Entities/Ada.md"
        put(index, entity(ADA, "a common fact"), entity(other, "a common fact", workspace="other"))
        assert found(index, "common fact", mode=mode) == [(ADA, 1)]
        assert found(index, "common fact", mode=mode, path=other) == []
        assert index.node_vectors("other")[0] == [other]
        assert index.find_observations("nowhere", "common fact", 5, mode).hits == ()


def test_without_an_encoder_words_are_found_and_vectors_come_later(tmp_path):
    def broken(_settings, _cache):
        raise Unavailable("no model here")

    absent = Embedder(EmbedSettings(), cache=tmp_path, load=broken, retry_s=(600, 600))
    absent.start()
    absent.wait()
    with opened(tmp_path / "i", embedder=absent) as index:
        put(index, entity(ADA, *FACTS))
        answer = index.find_observations("w", "algorithm", 5)
        assert [(hit.path, hit.ordinal) for hit in answer.hits] == [(ADA, 1)]
        assert answer.mode == "text"
        assert "words only" in answer.degraded[0]
        assert (len(index.words_only_paths()), index.embedded_share("w")) == (1, 0.0)
        assert index.node_vectors("w")[0] == []
        with pytest.raises(Unavailable):
            put(index, entity(CHARLES, "x"), urgent=True)
    absent.close()
    with opened(tmp_path / "i") as index:
        assert not index.manifest[ADA].embedded
        put(index, entity(ADA, *FACTS))
        assert (len(index.words_only_paths()), index.embedded_share("w")) == (0, 1.0)
        assert found(index, "algorithm") == [(ADA, 1)]


def test_aggregates_are_unit_vectors_of_what_a_node_s_observations_share(tmp_path, encoder):
    with opened(tmp_path, encoder) as index:
        put(index, entity(ADA, *FACTS), entity(CHARLES, "built engines"), entity("Captures/w/Entities/Empty.md"))
        paths, matrix = index.node_vectors("w", "technical")
        assert paths == [ADA, CHARLES]
        texts = [observation_text(DEFAULTS[1], "Ada", fact) for fact in FACTS]
        mean = encoder.encode(texts, kind="document", urgent=False).mean(axis=0)
        assert matrix[0] @ mean / np.linalg.norm(mean) > 0.999
        assert np.allclose(np.linalg.norm(index.node_vectors("w")[1], axis=1), 1.0, atol=1e-5)
        assert index.node_vectors("w", "no such perspective")[0] == []


def test_prompts_shift_scores_and_change_no_order_of_their_own(encoder):
    embedder, scale = fake_embedder(encoder), SimilarityBaselines()
    looks = (Perspective("bare", ""), Perspective("long", "one two three four five six seven:"))
    (_, bare, nothing), (_, prompted, added) = scale.query_points("heron at the lake", looks, embedder)
    assert nothing == 0.0, "without a prompt a score is the similarity"
    assert added > 0.2, "what the prompt alone makes of any two texts"
    fact = [observation_text(look, "Ada", "saw a heron") for look in looks]
    near, far = embedder.embed_documents([fact[0], fact[1]])
    assert prompted @ far > bare @ near, "the longer prompt would always win"
    assert prompted @ far - added < bare @ near + 0.1
    before = len(encoder.calls)
    scale.query_points("another query", looks, embedder)
    assert [kind for kind, _, _ in encoder.calls[before:]] == ["query"], "measured once"


# Keeping it true


def test_nothing_is_opened_before_there_is_an_observation(tmp_path):
    with opened(tmp_path) as index:
        put(index, note("Captures/w/Note.md", "plain"), entity(ADA))
        assert not rows(tmp_path).exists()
        assert (found(index, "plain"), index.embedded_share("w"), index.node_vectors("w")[0]) == ([], 1.0, [])
        put(index, entity(ADA, *FACTS))
        assert rows(tmp_path).exists()


def test_only_what_is_new_is_embedded(tmp_path, encoder):
    with opened(tmp_path, encoder) as index:
        put(index, entity(ADA, *FACTS))
        before = asked(encoder)
        put(index, entity(ADA, *FACTS, "learned French"))
        assert asked(encoder) - before == 1 + 5, "its chunk, and the new observation under each perspective"
        before = asked(encoder)
        put(index, entity(ADA, FACTS[2], FACTS[0], ordinals=(3, 4)))
        assert asked(encoder) - before == 1


def test_a_write_that_is_tried_again_is_not_embedded_again(tmp_path, encoder):
    with opened(tmp_path, encoder) as index:
        put(index, entity(ADA, *FACTS), urgent=True)
        document = entity(ADA, *FACTS, "learned French")
        index.prepare([(document, STAT)], urgent=True)
        before = asked(encoder)
        (ready,) = index.prepare([(replace(document, digest="another"), STAT)], urgent=True)
        assert asked(encoder) == before
        assert (ready.embedded, ready.reused) == (0, 21)


def test_maintenance_is_postponed_while_a_large_text_is_in_memory(tmp_path, monkeypatch):
    with opened(tmp_path) as index:
        put(index, note("Captures/w/Note.md", "a note"))
        monkeypatch.setattr(index._store, "needs_maintenance", lambda: True)
        with one_large_text:
            assert [index.maintain() for _ in range(POSTPONED + 1)] == [False] * POSTPONED + [True]
            assert not index.maintain()
            assert index.maintain(force=True)
        assert index.maintain()


@pytest.mark.parametrize("first", ["the chunks", "the observations"])
def test_stores_that_could_not_be_reconciled_at_their_first_use_are_at_the_next_write(tmp_path, monkeypatch, first):
    def fail(_):
        raise Unavailable("the disk is full")

    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS), note("Captures/w/Note.md", "a plain note"))
        index._store.replace({path_id(ADA): []})  # as a crash may leave it
    with opened(tmp_path, later=True) as index:
        with monkeypatch.context() as patch:
            patch.setattr(index.catalog, "forget", fail)
            with pytest.raises(Unavailable):
                (index.passage_vectors if first == "the chunks" else index._observations).vectors(["a digest"])
        assert index.manifest[ADA].digest
        with foreground.call():  # a call that runs alone writes to both stores at once
            index.commit([], ["Captures/w/Note.md"])
        assert index.mending
        assert index.manifest[ADA].digest == "", "the next pass reads it again"


def test_a_store_that_can_not_be_maintained_keeps_no_other_from_it(tmp_path, monkeypatch):
    def fail():
        raise Unavailable("the disk is full")

    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS))
        (observations,) = index._observations.open_stores
        index._late_writes.finish()
        monkeypatch.setattr(index._store, "maintain", fail)
        assert observations._work.commits > 0
        with pytest.raises(Unavailable, match="the disk is full"):
            index.maintain(force=True)
        assert observations._work.commits == 0


def test_what_is_built_step_by_step_is_what_is_built_at_once(tmp_path):
    last = [entity(ADA, FACTS[1], "learned French", ordinals=(2, 4)), entity(CHARLES, *FACTS)]
    with opened(tmp_path / "steps") as steps:
        put(steps, entity(ADA, *FACTS), note("Captures/w/Note.md", "was a note"))
        put(steps, entity(CHARLES, "x"), entity("Captures/w/Note.md", "an entity for a while"))
        put(steps, note("Captures/w/Note.md", "a note again"), last[0])
        put(steps, last[1], entity("Captures/w/Entities/Gone.md", "soon gone"))
        steps.commit([], ["Captures/w/Entities/Gone.md"])
        steps.maintain(force=True)
        with opened(tmp_path / "once") as once:
            put(once, *last, note("Captures/w/Note.md", "a note again"))
            assert dump_index(steps) == dump_index(once)
        assert steps.describe_differences() == ""
        assert found(steps, "entity for a while soon gone", mode="text") == []
    assert check_index(tmp_path / "steps", "captures", uri=str(tmp_path / "steps")) == ""


def test_it_is_found_again_after_a_restart(tmp_path, encoder):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS))
        before = dump_index(index)
    with opened(tmp_path, encoder) as index:
        assert not index.mending
        assert dump_index(index) == before
        assert found(index, "first algorithm") == [(ADA, 1)]
        before = asked(encoder)
        put(index, entity(ADA, *FACTS))
        assert asked(encoder) == before, "vectors are found by their digests"


class Power:
    """A part of the index that fails when it is called, as if the process had ended there."""

    def __init__(self, real: Any, fails: str) -> None:
        self._real, self._fails = real, fails

    def __getattr__(self, name: str) -> Any:
        if name == self._fails:
            raise KeyboardInterrupt
        return getattr(self._real, name)


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["_store.replace", "catalog.write"])
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(entity(ADA, FACTS[0]), id="an observation is removed"),
        pytest.param(entity(ADA, FACTS[1], FACTS[0]), id="observations change, their number does not"),
        pytest.param(
            note("Captures/w/Note.md", "another plain note"), id="the text changes, the number of chunks does not"
        ),
        pytest.param(entity(CHARLES, "built engines"), id="a node is new"),
        pytest.param(note("Captures/w/Entities/Ada.md", "no entity any more"), id="a node becomes a note"),
        pytest.param(entity("Captures/w/Note.md", "now an entity"), id="a note becomes a node"),
    ],
)
def test_an_end_between_the_stores_is_mended_at_the_next_start(tmp_path, fails, changed):
    kept = [entity(ADA, *FACTS), note("Captures/w/Note.md", "a plain note")]
    attribute, method = fails.split(".")
    with opened(tmp_path / "i") as index:
        put(index, *kept)
        before = dump_index(index)
        ready = index.prepare([(changed, STAT)])
        setattr(index, attribute, Power(getattr(index, attribute), method))
        with pytest.raises(KeyboardInterrupt):
            index.commit(ready)
    with opened(tmp_path / "i") as index:
        known = {path for path, entry in index.manifest.items() if entry.digest}
        put(index, *(one for one in kept if one.path not in known))
        index.drop_orphans()
        assert dump_index(index) == before, "as if nothing had been begun"
        assert index.describe_differences() == ""
        put(index, changed)
        after = dump_index(index)
    with opened(tmp_path / "other") as other:
        put(other, *(one for one in kept if one.path != changed.path), changed)
        assert dump_index(other) == after


def test_observations_that_failed_beside_their_node_are_mended_at_the_next_start(tmp_path, monkeypatch):
    with opened(tmp_path / "i") as index:
        put(index, entity(ADA, *FACTS))
        ready = index.prepare([(entity(ADA, FACTS[0]), STAT)])
        written, write = threading.Event(), index._store.replace
        monkeypatch.setattr(index._store, "replace", lambda rows, **how: (write(rows, **how), written.set()))

        def fail(*_: object, **__: object) -> None:
            assert written.wait(10)
            raise Unavailable("the disk is full")

        with monkeypatch.context() as patched, foreground.call(), pytest.raises(Unavailable, match="full"):
            patched.setattr(type(index._observations), "replace", fail)
            index.commit(ready)
        assert not index.manifest[ADA].digest
    with opened(tmp_path / "i") as index:
        put(index, entity(ADA, FACTS[0]))
        after = dump_index(index)
        assert index.describe_differences() == ""
    with opened(tmp_path / "other") as other:
        put(other, entity(ADA, FACTS[0]))
        assert dump_index(other) == after


@pytest.mark.skipif(count_cores() == 1, reason="there is no second core")
def test_a_node_that_can_not_be_written_waits_for_its_observations(tmp_path, monkeypatch):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS))
        ready = index.prepare([(entity(ADA, FACTS[0]), STAT)])
        real, begun, ended = type(index._observations).replace, threading.Event(), []

        def write_slowly(*given: object, **how: object) -> None:
            begun.set()
            time.sleep(0.2)
            real(*given, **how)
            ended.append(True)

        def fail(_: object, **__: object) -> None:
            assert begun.wait(10)
            raise Unavailable("the disk is full")

        monkeypatch.setattr(type(index._observations), "replace", write_slowly)
        monkeypatch.setattr(index._store, "replace", fail)
        with foreground.call(), pytest.raises(Unavailable, match="full"):
            index.commit(ready)
        assert ended


def test_a_first_node_that_never_came_about_leaves_nothing_behind(tmp_path):
    with opened(tmp_path) as index:
        ready = index.prepare([(entity(ADA, *FACTS), STAT)])
        index.catalog = Power(index.catalog, "write")
        with pytest.raises(KeyboardInterrupt):
            index.commit(ready)
    assert rows(tmp_path).exists()
    with opened(tmp_path) as index:
        put(index, entity(CHARLES, "built engines"))
        assert {row[1] for row in dump_index(index)["observations"]} == {path_id(CHARLES)}


def test_observations_that_got_lost_are_noticed_and_made_again(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS))
        index._observations.replace({path_id(ADA): ()})
        assert "1 note has fewer or more observations" in index.describe_differences()
        entries, orphans = index.repair_torn()
        assert ([entry.path for entry in entries], orphans) == ([ADA], 0)
    shutil.rmtree(rows(tmp_path))
    with opened(tmp_path) as index:
        assert index.mending
        assert index.manifest[ADA].digest == ""
        put(index, entity(ADA, *FACTS))
        assert found(index, "algorithm")[0] == (ADA, 1)


def test_an_index_without_its_observations_is_told_of_where_nobody_has_it_open(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS))
    shutil.rmtree(rows(tmp_path))
    assert check_index(tmp_path, "captures", uri=str(tmp_path)) != ""


def test_other_perspectives_are_noticed_at_the_next_start(tmp_path):
    with opened(tmp_path) as index:
        put(index, entity(ADA, *FACTS), note("Captures/w/Note.md", "plain"))
    with opened(tmp_path, looks=(*DEFAULTS[:2], Perspective("legal", "law:"))) as index:
        assert index.embedded_share("w") == 0.0
        assert not index.mending, "nothing is amiss"
        index.forget_outdated()
        assert {path for path, entry in index.manifest.items() if not entry.digest} == {ADA}
        put(index, entity(ADA, *FACTS))
        assert index.embedded_share("w") == 1.0
        assert len(dump_index(index)["observations"]) == 9
