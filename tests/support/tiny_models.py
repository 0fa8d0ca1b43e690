"""Build tiny embedding models with random weights, of the architectures of the presets: BERT, XLM-RoBERTa and ModernBERT.

The function imports torch, not the module: the import takes 5 s, and every worker imports this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.original_model import MODEL

ARCHITECTURES = ("Bert", "XLMRoberta", "ModernBert")
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
WORDS = 128  # most tokens of a text


def build_tiny_model(architecture: str, folder: Path, *, seed: int = 7) -> Path:
    """Return the folder of a sentence-transformers model; equal seeds give equal weights. It has the bundled vocabulary."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(seed)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(MODEL)
    special = {"pad_token_id": 0, "cls_token_id": 101, "sep_token_id": 102, "bos_token_id": 101, "eos_token_id": 102}
    config = getattr(transformers, f"{architecture}Config")(
        **SMALL, vocab_size=len(tokenizer), max_position_embeddings=WORDS + 8, type_vocab_size=2, **special
    )
    getattr(transformers, f"{architecture}Model")(config).save_pretrained(folder / "words")
    tokenizer.save_pretrained(folder / "words")
    words = Transformer(str(folder / "words"), max_seq_length=WORDS)
    SentenceTransformer(modules=[words, Pooling(32, pooling_mode="mean")], device="cpu").save(str(folder))
    return folder
