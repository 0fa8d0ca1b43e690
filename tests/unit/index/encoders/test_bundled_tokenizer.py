"""Unit tests of `bundled_tokenizer`: it counts whole texts, as the model's encoder does."""

from __future__ import annotations

from index.encoders.bundled_model import BundledEncoder
from index.encoders.bundled_tokenizer import count_tokens, load_tokenizer
from index.encoders.settings import BundledSettings

TEXTS = ["", "The filter is due in May.", "word " * 400, "日本語のテキスト", "line\nline"]


def test_it_counts_as_the_encoder_does():
    encoder = BundledEncoder(BundledSettings(), threads=1)
    try:
        assert count_tokens(TEXTS) == encoder.count_tokens(TEXTS)
    finally:
        encoder.close()
    assert count_tokens(TEXTS)[2] == 400
    assert count_tokens([]) == []
    assert load_tokenizer() is load_tokenizer()
