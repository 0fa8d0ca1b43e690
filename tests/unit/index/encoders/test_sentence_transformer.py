"""index/encoders/sentence_transformer.py: what it promises, held on the real thing.

torch and what stands on it take 5 s to import: the tests do it, not the module, which every worker reads. All of them are slow,
because each alone would bring that import into `make test`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from index.encoders import bundled_model
from index.encoders.settings import LocalSettings
from index.errors import Unavailable
from tests.support.original_model import MODEL

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from index.encoders.sentence_transformer import LocalEncoder

REAL = [
    "# Weekly review\n\nWhat moved, what is stuck, and what I will drop. [[Projects/Kiln]] waits for parts again.",
    "- 08:30 stand-up\n- 10:00 call with [[Ada]] about the #migration\n- read the paper on reciprocal ranks",
    "## Sourdough\n| flour | water | salt |\n| --- | --- | --- |\n| 500 g | 350 g | 10 g |\n\nBake at 240 °C for 40 min.",
    "```python\ndef settle(pending, now):\n    return [p for p in pending if now - p.seen > QUIET]\n```",
    "Le café du coin ferme à 18 h ; 東京の天気は晴れ。",
    "Notes from the book: attention is a budget, not a reward. " * 12,
    "x",
]


def load(model: Path | str, **settings: Any) -> LocalEncoder:
    from index.encoders.sentence_transformer import LocalEncoder

    return LocalEncoder(LocalSettings(str(model), **settings))


@pytest.fixture(scope="module")
def original() -> LocalEncoder:
    """The bundled model as sentence-transformers runs it."""
    return load(MODEL, device="cpu")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """Another model: two layers, random weights, first token instead of the mean, prompts of its own."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny")
    config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    BertModel(config).save_pretrained(folder / "bert")
    AutoTokenizer.from_pretrained(MODEL).save_pretrained(folder / "bert")
    words = Transformer(str(folder / "bert"), max_seq_length=64)
    prompts = {"query": "search: ", "passage": "text: "}
    model = SentenceTransformer(modules=[words, Pooling(32, pooling_mode="cls")], prompts=prompts, device="cpu")
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.mark.parametrize("name", ["fp32", "blocks"])
def test_the_bundled_graphs_give_the_vectors_of_sentence_transformers(original, name):
    ours = bundled_model.load_graph(name).compute_vectors(REAL)
    theirs = original.encode(REAL, kind="document", urgent=False)
    assert (ours * theirs).sum(axis=1).min() > bundled_model.CLOSE[name]


def test_the_bundled_model_in_torch_is_interchangeable_with_its_graph(original, bundled):
    assert original.identity == bundled.identity
    assert (original.dimensions, original.max_tokens) == (384, 254)
    assert original.count_tokens(REAL) == bundled.count_tokens(REAL)
    assert original.count_tokens([]) == []


def test_any_model_is_named_by_its_folder(tiny):
    made = load(tiny, device="cpu")
    assert (made.dimensions, made.max_tokens) == (32, 62)
    vectors = made.encode(REAL, kind="document", urgent=False)
    assert vectors.shape == (len(REAL), 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert made.encode([], kind="document", urgent=False).shape == (0, 32)
    made.close()


def test_prompts_are_the_models_own_or_those_of_the_settings(tiny):
    own = load(tiny, device="cpu")
    bare = load(tiny, device="cpu", query_prompt="", document_prompt="")
    assert len({own.identity, bare.identity}) == 2
    for kind, prompt in (("query", "search: "), ("document", "text: ")):
        expected = bare.encode([f"{prompt}kiln"], kind=kind, urgent=True)
        np.testing.assert_allclose(own.encode(["kiln"], kind=kind, urgent=True), expected, atol=1e-6)
        assert np.abs(bare.encode(["kiln"], kind=kind, urgent=True) - expected).max() > 1e-4


def test_what_changes_vectors_changes_the_identity(tiny, original):
    short = load(tiny, device="cpu", max_tokens=30)
    again = load(tiny, device="auto")
    whole = load(tiny, device="cpu")
    assert short.max_tokens == 30
    lanes = [short.encode(REAL, kind="document", urgent=urgent) for urgent in (True, False)]
    np.testing.assert_allclose(lanes[0], lanes[1], atol=1e-5)
    assert len({short.identity, whole.identity, original.identity}) == 3
    assert again.identity == whole.identity  # whatever runs it


def test_both_lanes_work_at_once_and_agree(original):
    expected = original.encode(REAL, kind="document", urgent=False)
    apart: list[float] = []

    def ask(urgent: bool) -> None:
        apart.extend(
            float(np.abs(original.encode(REAL, kind="document", urgent=urgent) - expected).max()) for _ in range(2)
        )

    threads = [threading.Thread(target=ask, args=(urgent,)) for urgent in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(apart) == 4
    assert max(apart) < 1e-4


@pytest.mark.parametrize("model", ["no/such-model", "nowhere"])
def test_a_model_that_is_not_there_is_named_with_its_setting(model, caplog):
    with pytest.raises(Unavailable, match=r"model '[\w-]+' is not on this machine; check `model`"):
        load(model)
    assert caplog.records == []


def test_a_folder_without_a_model_is_named_with_its_setting():
    with pytest.raises(Unavailable, match=r"can't be loaded .*; check `model`"):
        load("../..")


def test_a_device_that_is_not_there_is_said(tiny):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(Unavailable, match="`device`"):
        load(tiny, device="cuda")


def test_a_static_model_has_no_limit_and_still_counts_and_embeds(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(Tokenizer.from_file(str(MODEL / "tokenizer.json")), embedding_dim=16)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "static"))
    made = load(tmp_path / "static", device="cpu")
    assert (made.dimensions, made.max_tokens) == (16, 512 - 2)
    assert made.count_tokens(["the cat", ""]) == [2, 0]
    vectors = made.encode([*REAL, ""], kind="query", urgent=True)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_errors_show_no_path_of_the_host(tmp_path):
    with pytest.raises(Unavailable) as caught:
        load(tmp_path / "gone")
    assert str(tmp_path) not in caught.value.message
