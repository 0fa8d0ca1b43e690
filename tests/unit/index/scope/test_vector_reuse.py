"""index/scope/vector_reuse.py, on a real store: what is stored is read, everything else is embedded, and both at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from index.encoders.embedder import Embedder
from index.encoders.settings import Kind
from index.errors import Unavailable
from index.foreground import count_cores, foreground
from index.scope.vector_reuse import Vectors
from index.storage.chunk_store import ChunkStore
from tests.support.chunk_rows import DIMENSIONS, row
from tests.support.fakes import FakeEncoder, fake_embedder

KEPT, LOST, NEW = (row("a", n, text) for n, text in enumerate(("is stored", "was stored once", "is new")))
TEXTS = {each.digest: each.text for each in (NEW, KEPT, LOST)}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    opened = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    opened.replace({"a": [KEPT, LOST]})
    opened.replace({"a": [KEPT]})
    yield opened
    opened.close()


class HeldEncoder(FakeEncoder):
    """An encoder that can be made to wait, or to fail."""

    def __init__(self) -> None:
        super().__init__(DIMENSIONS)
        self.may_end, self.fails, self.texts = threading.Event(), False, list[str]()
        self.may_end.set()

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        assert self.may_end.wait(20)
        if self.fails:
            raise Unavailable("out of order")
        self.texts += texts
        return super().encode(texts, kind=kind, urgent=urgent)


@pytest.fixture
def encoder() -> HeldEncoder:
    return HeldEncoder()


@pytest.fixture
def embedder(encoder: HeldEncoder) -> Embedder:
    ready = fake_embedder(encoder)
    encoder.texts.clear()  # the probe
    return ready


def test_a_store_knows_what_it_never_had(store):
    assert store.known_digests(TEXTS) == {KEPT.digest, LOST.digest}


def test_only_texts_without_a_vector_are_embedded_and_each_is_counted_once(store, encoder, embedder):
    counted: list[int] = []
    known, fresh = Vectors(store).find(TEXTS, embedder, urgent=False, progress=counted.append)
    assert encoder.texts == [NEW.text, LOST.text]
    assert fresh == {NEW.digest, LOST.digest}
    assert known.keys() == TEXTS.keys()
    assert np.array_equal(known[KEPT.digest], store.vectors([KEPT.digest])[KEPT.digest])
    assert counted == [1, 2]


@pytest.mark.skipif(count_cores() == 1, reason="there is no second core")
def test_the_store_is_read_while_new_texts_are_embedded(store, encoder, embedder, monkeypatch):
    read = store.vectors

    def read_and_let_end(digests):
        encoder.may_end.set()
        return read(digests)

    monkeypatch.setattr(store, "vectors", read_and_let_end)
    encoder.may_end.clear()
    with foreground.call():
        known, _ = Vectors(store).find(TEXTS, embedder, urgent=True)
    assert known.keys() == TEXTS.keys()


def test_what_was_read_or_made_for_a_caller_is_remembered(store, encoder, embedder):
    vectors = Vectors(store)
    first, _ = vectors.find(TEXTS, embedder, urgent=True)
    store.replace({"a": []})
    encoder.fails = True
    again, fresh = vectors.find(TEXTS, embedder, urgent=True)
    assert fresh == set()
    assert all(np.array_equal(again[digest], first[digest]) for digest in TEXTS)


def test_without_an_encoder_only_what_is_stored_is_found(store):
    assert Vectors(store).find(TEXTS, None, urgent=False)[0].keys() == {KEPT.digest}


@pytest.mark.parametrize("texts", [TEXTS, {LOST.digest: LOST.text}], ids=["new texts", "lost texts"])
def test_if_the_encoder_fails_only_an_urgent_call_does(store, encoder, embedder, texts):
    encoder.fails = True
    known, fresh = Vectors(store).find(texts, embedder, urgent=False)
    assert (known.keys(), fresh) == (texts.keys() & {KEPT.digest}, set())
    with pytest.raises(Unavailable):
        Vectors(store).find(texts, embedder, urgent=True)
