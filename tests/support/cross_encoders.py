"""Create small cross-encoders as folders of real models: one with random weights, and one with a known order.

The functions import torch, not the module: the import takes 5 s, and every worker imports this module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.original_model import MODEL

if TYPE_CHECKING:
    from transformers import BertForSequenceClassification

    from index.encoders.cross_encoder import RerankerModel

GOLD = "oven"  # the word that the known model looks for, one token of the bundled vocabulary


def load(folder: Path, name: str) -> RerankerModel:
    from index.encoders.cross_encoder import RerankerModel

    return RerankerModel(folder, name)


def random(folder: Path, *, seed: int = 7, labels: int = 1, layers: int = 2) -> Path:
    """Return a model with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
    )
    return _saved(BertForSequenceClassification(config), folder)


def known(folder: Path) -> Path:
    """Return a model whose score grows with the share of GOLD among the tokens of query and passage.

    Its one layer gives all tokens equal attention and passes them on unchanged, so the first token holds the mean of
    all tokens, and only GOLD points in another direction."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4, max_position_embeddings=64, num_labels=1
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    other, gold = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    identity = torch.eye(4)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "LayerNorm.weight" in name else 0.0)
        words = model.bert.embeddings.word_embeddings.weight
        words[:] = other
        words[tokenizer.convert_tokens_to_ids(GOLD)] = gold
        layer = model.bert.encoder.layer[0]
        for linear in (layer.attention.self.value, layer.attention.output.dense, model.bert.pooler.dense):
            linear.weight.copy_(identity)
        model.classifier.weight[0] = 4 * gold
    return _saved(model, folder)


def _saved(model: BertForSequenceClassification, folder: Path) -> Path:
    from transformers import AutoTokenizer

    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(MODEL).save_pretrained(folder)
    return folder
